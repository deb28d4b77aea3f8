//! A server over real HTTP, and conversations of every revision with it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use bindpost_mcp_http::listener::DrainTrigger;
use bindpost_mcp_http::{Auth, SessionLimits, Settings, bind};
use bindpost_mcp_oauth::TokenAuthorizer;
use bindpost_mcp_server::{Context, Server, TaskLimits, TaskSupport, ToolEntry};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::issuer::within;
use crate::requests::AUDIENCE;

/// A revision and its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// 2024-11-05 over HTTP+SSE.
    Pipe,
    Session(&'static str),
    /// 2026-07-28.
    Alone,
}

/// Every revision, and the oldest over both of its transports.
pub(crate) const WAYS: [Way; 6] = [
    Way::Pipe,
    Way::Session("2024-11-05"),
    Way::Session("2025-03-26"),
    Way::Session("2025-06-18"),
    Way::Session("2025-11-25"),
    Way::Alone,
];

/// The bearer token of a request.
pub(crate) type Bearer<'a> = Option<&'a str>;

/// A server that accepts tokens.
#[derive(Debug)]
pub(crate) struct TestServer {
    address: SocketAddr,
    client: Client,
    _serving: DrainTrigger,
}

/// Entries for all callers, for authenticated ones, and for those with certain rights.
pub(crate) fn mixed() -> Server {
    Server::builder("mixed", "1.0.0")
        .tasks(TaskLimits::default())
        .tool(ToolEntry::new("time", async || "noon").anonymous())
        .tool(ToolEntry::new("whoami", who))
        .tool(ToolEntry::new("write", who).scopes(["orders.read", "orders.write"]))
        .tool(ToolEntry::new("report", who).scopes(["report.read"]).roles(["Report.All"]))
        .tool(ToolEntry::new("tell", tell))
        .tool(ToolEntry::new("job", job).task(TaskSupport::WhenPossible).timeout(None))
        .build()
        .unwrap()
}

/// All entries require authentication.
pub(crate) fn protected() -> Server {
    Server::builder("protected", "1.0.0").tool(ToolEntry::new("whoami", who)).build().unwrap()
}

async fn who(context: Context) -> String {
    let caller = context.caller();
    let subject = caller.claim("sub").and_then(Value::as_str);
    subject.unwrap_or("anonymous").to_owned()
}

/// Sends progress, so that its response is a stream.
async fn tell(context: Context) -> &'static str {
    context.progress(1.0, None, Some("a secret")).await;
    "told"
}

/// Never ends by itself.
async fn job() -> &'static str {
    std::future::pending().await
}

impl TestServer {
    pub(crate) async fn start(server: Server, tokens: &TokenAuthorizer) -> TestServer {
        TestServer::with_auth(server, Auth::new(tokens.clone()).resource(AUDIENCE)).await
    }

    pub(crate) async fn with_auth(server: Server, auth: Auth) -> TestServer {
        let auth = Some(auth);
        let session_limits = SessionLimits { sweep: Duration::from_millis(100), ..SessionLimits::default() };
        let settings = Settings { auth, session_limits, ..Settings::default() };
        let (address, serving) = bind("127.0.0.1:0").await.unwrap().serve_in_background(server, settings);
        let client = bindpost_net_upstream::client_builder().no_proxy().build().unwrap();
        TestServer { address, client, _serving: serving }
    }

    /// Builds a request to this path.
    pub(crate) fn request(&self, method: Method, path: &str, bearer: Bearer<'_>) -> RequestBuilder {
        let request = self.client.request(method, format!("http://{}{path}", self.address));
        let request = request.header("accept", "application/json, text/event-stream");
        match bearer {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    /// Posts this message and returns the response.
    pub(crate) async fn post(
        &self,
        path: &str,
        bearer: Bearer<'_>,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let mut request = self.request(Method::POST, path, bearer).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::read(within(request.body(body.to_string()).send()).await.unwrap()).await
    }
}

/// A conversation in one revision over one transport.
#[derive(Debug)]
pub(crate) struct Talk<'a> {
    server: &'a TestServer,
    way: Way,
    pub(crate) session: Option<String>,
    pub(crate) pipe: Option<(Events, String)>,
    /// Added to every address.
    pub(crate) query: String,
    /// Added to every request.
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    /// The client capabilities in every modern request.
    pub(crate) capabilities: Value,
}

/// A response, from a body or from a stream.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) message: Value,
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

/// The envelope of a modern request.
fn envelope(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

impl<'a> Talk<'a> {
    /// Creates a conversation that is not open yet.
    pub(crate) fn new(server: &'a TestServer, way: Way) -> Talk<'a> {
        let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        Talk {
            server,
            way,
            session: None,
            pipe: None,
            query: String::new(),
            headers: Vec::new(),
            capabilities,
        }
    }

    /// Opens a conversation in the way its revision requires.
    pub(crate) async fn open(server: &'a TestServer, way: Way, bearer: Bearer<'_>) -> Talk<'a> {
        let mut talk = Talk::new(server, way);
        let opened = talk.opening(bearer).await;
        assert_eq!(opened.status, 200, "{way:?}: {opened:?}");
        talk
    }

    /// Sends the first request of the revision.
    pub(crate) async fn opening(&mut self, bearer: Bearer<'_>) -> Answer {
        if self.way == Way::Pipe {
            let response = within(self.server.request(Method::GET, "/sse", bearer).send()).await.unwrap();
            if response.status() != 200 {
                return Answer::read(response).await;
            }
            let mut events = Events::of(response);
            // The address is relative to `/sse`.
            let path = format!("/{}", events.next().await.unwrap());
            self.pipe = Some((events, path));
        }
        let revision = match self.way {
            Way::Pipe => "2024-11-05",
            Way::Session(revision) => revision,
            Way::Alone => return self.ask("server/discover", json!({}), bearer).await,
        };
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
        let opened = self.ask("initialize", params, bearer).await;
        let session = opened.headers.get("mcp-session-id");
        self.session = session.map(|session| session.to_str().unwrap().to_owned());
        opened
    }

    /// Sends a request and returns its response.
    pub(crate) async fn ask(&mut self, method: &str, params: Value, bearer: Bearer<'_>) -> Answer {
        let mut params = params;
        let path = self.pipe.as_ref().map_or("/mcp", |(_, path)| path);
        let mut headers = self.headers.clone();
        let name =
            ["name", "uri", "taskId"].iter().find_map(|name| params[*name].as_str()).map(str::to_owned);
        match (self.way, &self.session) {
            (Way::Session(revision), Some(session)) => {
                headers.extend([("mcp-session-id", session.as_str()), ("mcp-protocol-version", revision)]);
            }
            (Way::Alone, _) => {
                params["_meta"] = envelope(&self.capabilities);
                headers.extend([("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)]);
                headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
            }
            _ => {}
        }
        let path = match (self.query.as_str(), path.contains('?')) {
            ("", _) => path.to_owned(),
            (query, true) => format!("{path}&{query}"),
            (query, false) => format!("{path}?{query}"),
        };
        let answer = self.server.post(&path, bearer, &headers, &request(method, &params)).await;
        match &mut self.pipe {
            Some((events, _)) if answer.status == 202 => {
                let message = serde_json::from_str(&events.next().await.unwrap()).unwrap();
                Answer { status: 200, headers: answer.headers, message }
            }
            _ => answer,
        }
    }

    /// Calls these tools in one batch.
    pub(crate) async fn batch(&mut self, tools: &[&str], bearer: &str) -> Answer {
        let (Way::Session(revision), Some(session)) = (self.way, &self.session) else {
            panic!("{:?} has no batches", self.way)
        };
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", revision)];
        let calls: Vec<Value> = (1..)
            .zip(tools)
            .map(|(id, tool)| {
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}})
            })
            .collect();
        self.server.post("/mcp", Some(bearer), &headers, &Value::Array(calls)).await
    }

    pub(crate) async fn call(&mut self, tool: &str, bearer: Bearer<'_>) -> Answer {
        self.ask("tools/call", json!({"name": tool, "arguments": {}}), bearer).await
    }
}

impl Answer {
    async fn read(response: Response) -> Answer {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = within(response.bytes()).await.unwrap();
        Answer { status, headers, message: serde_json::from_slice(&body).unwrap_or_default() }
    }

    /// Returns the text of a tool's result.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        assert_eq!(self.status, 200, "{self:?}");
        let text = &self.message["result"]["content"][0]["text"];
        text.as_str().unwrap_or_else(|| panic!("{}", self.message))
    }

    /// Checks that this is a rejection with this status, and returns the parameters of its only challenge.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16) -> HashMap<String, String> {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.message["error"]["code"], -32001, "{}", self.message);
        let challenges: Vec<&str> =
            self.headers.get_all("www-authenticate").iter().map(|value| value.to_str().unwrap()).collect();
        let [challenge] = challenges[..] else { panic!("{challenges:?}") };
        let parameters = challenge.strip_prefix("Bearer ").unwrap();
        parameters
            .split(", ")
            .map(|parameter| {
                let (name, value) = parameter.split_once('=').unwrap();
                (name.to_owned(), value.trim_matches('"').to_owned())
            })
            .collect()
    }
}

/// Reads the data of an event stream, one event at a time.
#[derive(Debug)]
pub(crate) struct Events {
    response: Response,
    text: String,
}

impl Events {
    pub(crate) fn of(response: Response) -> Events {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { response, text: String::new() }
    }

    /// Returns the data of the next event that has any, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.next_with_id().await.map(|(_, data)| data)
    }

    pub(crate) async fn next_with_id(&mut self) -> Option<(Option<String>, String)> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let lines = block.lines().filter_map(|line| line.strip_prefix(name));
                    lines.map(|value| value.trim_start().to_owned()).next()
                };
                if let Some(data) = field("data:") {
                    return Some((field("id:"), data));
                }
                continue;
            }
            let piece = within(self.response.chunk()).await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}
