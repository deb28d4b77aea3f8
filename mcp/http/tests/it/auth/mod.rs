//! Authentication and authorization: keys, challenges, scopes, and the owners of sessions, streams and
//! tasks. Where it makes sense, for every revision, and for 2024-11-05 over both of its transports.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

mod callers;
mod entries;
mod keys;
mod metadata;
mod opening;
mod request;
mod trouble;

use std::collections::HashMap;

use bindpost_mcp_http::{ApiKeys, Auth, Settings};
use bindpost_mcp_protocol::client::ElicitParams;
use bindpost_mcp_server::{
    Context, PromptEntry, ResourceEntry, Server, TaskLimits, TaskSupport, ToolEntry, ToolError,
};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::client::{Ask, Events, MODERN, Reply, TestServer};

/// Headers with the credentials of a request.
type Credentials = &'static [(&'static str, &'static str)];

const NO_KEY: Credentials = &[];
const ALICE: Credentials = &[("x-api-key", "alice's key")];
const BOB: Credentials = &[("x-api-key", "bob's key")];
/// Has the scope `orders.read`.
const READER: Credentials = &[("x-api-key", "reader's key")];
/// Has the scopes `orders.read` and `orders.write`.
const WRITER: Credentials = &[("x-api-key", "writer's key")];
const WRONG: Credentials = &[("x-api-key", "unknown key")];

fn keys() -> ApiKeys {
    ApiKeys::new()
        .key("alice", "alice's key")
        .key("bob", "bob's key")
        .key_with_scopes("reader", "reader's key", ["orders.read"])
        .key_with_scopes("writer", "writer's key", ["orders.read", "orders.write"])
}

fn with(auth: Auth) -> Settings {
    Settings { auth: Some(auth), ..Settings::default() }
}

fn with_keys() -> Settings {
    with(Auth::new(keys()))
}

/// Entries for all callers, for authenticated ones, and for those with certain rights.
fn mixed() -> Server {
    Server::builder("mixed", "1.0.0")
        .tasks(TaskLimits::default())
        .tool(ToolEntry::new("time", async || "noon").anonymous())
        .tool(ToolEntry::new("http", request::describe).anonymous())
        .tool(ToolEntry::new("whoami", who))
        .tool(ToolEntry::new("read", who).scopes(["orders.read"]))
        .tool(ToolEntry::new("write", who).scopes(["orders.read", "orders.write"]))
        .tool(ToolEntry::new("administer", who).roles(["Orders.Admin"]))
        .tool(ToolEntry::new("ask_name", ask_name))
        .tool(ToolEntry::new("job", job).task(TaskSupport::WhenPossible).timeout(None))
        .tool(ToolEntry::new("tell", tell))
        .resource(ResourceEntry::text("menu://open", "open", "soup").anonymous())
        .resource(ResourceEntry::text("menu://staff", "staff", "steak"))
        .prompt(PromptEntry::new("hello", async || "Say hello").anonymous())
        .prompt(PromptEntry::new("order", async || "Order").scopes(["orders.write"]))
        .build()
        .unwrap()
}

/// All entries require authentication.
fn protected() -> Server {
    Server::builder("protected", "1.0.0")
        .tool(ToolEntry::new("whoami", who))
        .tool(ToolEntry::new("write", who).scopes(["orders.read", "orders.write"]))
        .build()
        .unwrap()
}

async fn who(context: Context) -> String {
    context.caller().id().unwrap_or("anonymous").to_owned()
}

async fn ask_name(context: Context) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let answer = context.elicit_with("name", ElicitParams::form("Your name?", schema)).await?;
    Ok(format!("Hello, {}!", answer.field("name").and_then(Value::as_str).unwrap_or("stranger")))
}

/// Never ends by itself.
async fn job() -> &'static str {
    std::future::pending().await
}

/// Logs a message, so that its response is a stream.
async fn tell(context: Context) -> &'static str {
    context.log(bindpost_mcp_protocol::lifecycle::LogLevel::Error, None, "a secret").await;
    "told"
}

/// A revision and its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// 2024-11-05 over HTTP+SSE.
    Pipe,
    Session(&'static str),
    /// 2026-07-28.
    Alone,
}

const WAYS: [Way; 6] = [
    Way::Pipe,
    Way::Session("2024-11-05"),
    Way::Session("2025-03-26"),
    Way::Session("2025-06-18"),
    Way::Session("2025-11-25"),
    Way::Alone,
];

/// A conversation in one revision over one transport.
struct Talk<'a> {
    server: &'a TestServer,
    way: Way,
    session: Option<String>,
    pipe: Option<(Events, String)>,
}

/// A response, from a body or from a stream.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    message: Value,
}

fn carrying(ask: Ask, credentials: Credentials) -> Ask {
    credentials.iter().fold(ask, |ask, (name, value)| ask.header(name, value))
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

impl<'a> Talk<'a> {
    /// Opens a conversation in the way its revision requires.
    async fn open(server: &'a TestServer, way: Way, credentials: Credentials) -> Talk<'a> {
        let mut talk = Talk { server, way, session: None, pipe: None };
        match way {
            Way::Alone => {}
            Way::Session(revision) => {
                let opened = server.send(&carrying(Ask::initialize(revision), credentials)).await;
                assert_eq!(opened.result()["protocolVersion"], revision);
                talk.session = Some(opened.header("mcp-session-id").unwrap().to_owned());
            }
            Way::Pipe => {
                let ask = Ask::new("GET", "/sse").header("accept", "text/event-stream");
                let mut stream = server.open(&carrying(ask, credentials)).await;
                let path = format!("/{}", stream.next().await.unwrap().data.unwrap());
                talk.pipe = Some((stream, path));
                let params = json!({"protocolVersion": "2024-11-05", "capabilities": {},
                    "clientInfo": {"name": "test", "version": "1"}});
                assert_eq!(talk.ask("initialize", params, credentials).await.status, 200);
            }
        }
        talk
    }

    /// Builds the HTTP request for a message.
    fn ask_for(&self, message: &Value) -> Ask {
        match (self.way, &self.pipe, &self.session) {
            (Way::Pipe, Some((_, path)), _) => Ask::post(message.to_string()).at(path),
            (Way::Session(revision), _, Some(session)) => Ask::post(message.to_string())
                .header("mcp-session-id", session)
                .header("mcp-protocol-version", revision),
            _ if message.get("id").is_some() && message.get("method").is_some() => {
                let capabilities =
                    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
                let method = message["method"].as_str().unwrap();
                Ask::enveloped(method, message["params"].clone(), capabilities)
                    .edit(|sent| sent["id"] = message["id"].clone())
            }
            _ => Ask::post(message.to_string()).header("mcp-protocol-version", MODERN),
        }
    }

    /// Sends a message of any kind.
    async fn send(&self, message: &Value, credentials: Credentials) -> Reply {
        self.server.send(&carrying(self.ask_for(message), credentials)).await
    }

    /// Sends a request and returns its response.
    async fn ask(&mut self, method: &str, params: Value, credentials: Credentials) -> Answer {
        let reply = self.send(&request(method, params), credentials).await;
        match &mut self.pipe {
            Some((stream, _)) if reply.status == 202 => {
                let message = stream.message().await.unwrap();
                Answer { status: 200, headers: reply.headers, message }
            }
            _ => Answer { status: reply.status, message: reply.json(), headers: reply.headers },
        }
    }

    async fn call(&mut self, tool: &str, credentials: Credentials) -> Answer {
        self.ask("tools/call", json!({"name": tool, "arguments": {}}), credentials).await
    }
}

impl Answer {
    /// Returns the text of a tool's result.
    #[track_caller]
    fn text(&self) -> &str {
        assert_eq!(self.status, 200, "{}", self.message);
        let text = &self.message["result"]["content"][0]["text"];
        text.as_str().unwrap_or_else(|| panic!("{}", self.message))
    }

    /// Checks that this is a rejection with this status, and returns the parameters of its challenge.
    #[track_caller]
    fn refused(&self, status: u16) -> HashMap<String, String> {
        assert_eq!(self.status, status, "{}", self.message);
        assert_eq!(self.message["error"]["code"], -32001, "{}", self.message);
        assert_eq!(self.message["id"], 7);
        challenge(&self.headers).1
    }
}

/// Returns the scheme and the parameters of the only challenge.
#[track_caller]
fn challenge(headers: &HeaderMap) -> (String, HashMap<String, String>) {
    let mut all = challenges(headers);
    assert_eq!(all.len(), 1, "{headers:?}");
    all.remove(0)
}

fn challenges(headers: &HeaderMap) -> Vec<(String, HashMap<String, String>)> {
    let all = headers.get_all("www-authenticate").iter().map(|value| value.to_str().unwrap());
    all.map(|value| {
        let (scheme, parameters) = value.split_once(' ').unwrap();
        let pairs = parameters.split("\", ").map(|pair| {
            let (name, value) = pair.split_once("=\"").unwrap_or_else(|| panic!("{value}"));
            (name.to_owned(), value.trim_end_matches('"').to_owned())
        });
        (scheme.to_owned(), pairs.collect())
    })
    .collect()
}

fn parameters(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
