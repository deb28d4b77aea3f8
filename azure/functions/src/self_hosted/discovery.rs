//! Asks the server of an app what it is and which tools it has, for the start screen.
//!
//! A server of a legacy revision gets a handshake, a server of modern revisions only gets `server/discover`. Requests of
//! clients do not depend on the outcome.

use std::time::Duration;

use bindpost_mcp_protocol::{Revision, Tool, meta};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};

use crate::custom_handler::HandlerSupervisor;
use crate::host::front::SHORT_PATH;
use crate::host::report::{ServerRow, ToolRow, arguments_of, hints_of};

/// The notice about servers that the platform may run on several machines.
pub(super) const SESSIONS_NOTICE: &str = "the server has sessions (Mcp-Session-Id); Azure Functions may run several instances, so it expects a server without";

/// How long the server may take to answer all requests.
const PATIENCE: Duration = Duration::from_secs(15);
/// The maximum size of a response.
const LARGEST: usize = 4 << 20;
/// The maximum number of pages of tools.
const PAGES: usize = 20;
const SESSION_ID: &str = "mcp-session-id";

/// What the server says about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerDiscovery {
    pub(super) server: ServerRow,
    pub(super) tools: Vec<ToolRow>,
    pub(super) has_sessions: bool,
}

/// Why the server is not a server of MCP.
#[derive(Debug, thiserror::Error)]
enum DiscoveryError {
    #[error("no answer within {} s", PATIENCE.as_secs())]
    TimedOut,
    #[error("no valid response")]
    NoResponse(#[from] reqwest::Error),
    #[error("HTTP {}", .0.as_u16())]
    Status(StatusCode),
    #[error("the response is no message of MCP")]
    NoMessage,
    #[error("the response is larger than {LARGEST} bytes")]
    TooLarge,
    #[error("error {0}")]
    Refused(i64),
}

/// Asks the server that runs.
pub(super) async fn discover(supervisor: &HandlerSupervisor) -> ServerDiscovery {
    let Some(process) = supervisor.serving() else { return ServerDiscovery::default() };
    let mut asked = DiscoveryClient {
        client: supervisor.client(),
        url: format!("http://{}{SHORT_PATH}", process.address()),
        revision: Revision::LATEST_WITH_HANDSHAKE,
        session: None,
    };
    let mut found = ServerDiscovery::default();
    let outcome = tokio::time::timeout(PATIENCE, asked.ask(&mut found)).await;
    if let Err(error) = outcome.unwrap_or(Err(DiscoveryError::TimedOut)) {
        tracing::debug!(target: "host", ?error, "the tools of the server are not known");
        found.server.problem = Some(match found.server.revision {
            None => format!("nothing answers MCP requests at {SHORT_PATH}: {error}"),
            Some(_) => format!("the tools are not known: {error}"),
        });
    }
    asked.end_session();
    found
}

struct DiscoveryClient<'a> {
    client: &'a reqwest::Client,
    url: String,
    revision: Revision,
    session: Option<String>,
}

impl DiscoveryClient<'_> {
    async fn ask(&mut self, found: &mut ServerDiscovery) -> Result<(), DiscoveryError> {
        let info = json!({"name": "bindpost", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({
            "protocolVersion": self.revision.as_str(), "capabilities": {}, "clientInfo": info,
        });
        match self.request("initialize", params).await {
            Ok(result) => {
                found.server = server_row(result.get("serverInfo"));
                found.server.revision = result.get("protocolVersion").and_then(text);
                found.has_sessions = self.session.is_some();
                found.server.sessions = found.has_sessions;
                if let Some(Ok(revision)) = found.server.revision.as_deref().map(str::parse) {
                    self.revision = revision;
                }
                let body = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                self.send("notifications/initialized", &body).await?;
            }
            Err(refused) => {
                self.revision = Revision::DISCOVERABLE[0];
                let Ok(result) = self.request("server/discover", json!({})).await else {
                    return Err(refused);
                };
                let info = result.get("_meta").and_then(|members| members.get(meta::SERVER_INFO));
                found.server = server_row(info.or_else(|| result.get("serverInfo")));
                found.server.revision = Some(self.revision.as_str().to_owned());
            }
        }
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES {
            let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let result = self.request("tools/list", params).await?;
            let tools = result.get("tools").and_then(Value::as_array).into_iter().flatten();
            found.tools.extend(tools.filter_map(tool_row));
            cursor = result.get("nextCursor").and_then(text);
            if cursor.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Sends a request and returns its result.
    async fn request(&mut self, method: &str, mut params: Value) -> Result<Value, DiscoveryError> {
        if !self.revision.has_handshake() {
            params["_meta"] = json!({
                meta::PROTOCOL_VERSION: self.revision.as_str(),
                meta::CLIENT_INFO: {"name": "bindpost", "version": env!("CARGO_PKG_VERSION")},
                meta::CLIENT_CAPABILITIES: {},
            });
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut response = self.send(method, &body).await?;
        let status = response.status();
        let session = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
        if let Some(session) = session {
            self.session = Some(session.to_owned());
        }
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > LARGEST {
                return Err(DiscoveryError::TooLarge);
            }
            // The stream may stay open after the response.
            if is_stream && let Some(message) = response_in_events(&bytes) {
                return result_of(message);
            }
        }
        let message = match is_stream {
            true => response_in_events(&bytes),
            false => serde_json::from_slice(&bytes).ok().filter(is_response),
        };
        match message {
            Some(message) => result_of(message),
            None if status.is_success() => Err(DiscoveryError::NoMessage),
            None => Err(DiscoveryError::Status(status)),
        }
    }

    async fn send(&self, method: &str, body: &Value) -> Result<reqwest::Response, DiscoveryError> {
        let mut request = self
            .client
            .post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(body.to_string());
        if method != "initialize" {
            request = request.header("mcp-protocol-version", self.revision.as_str());
        }
        if !self.revision.has_handshake() {
            request = request.header("mcp-method", method);
        }
        if let Some(session) = &self.session {
            request = request.header(SESSION_ID, session);
        }
        Ok(request.send().await?)
    }

    /// Ends the session that the handshake has opened.
    fn end_session(self) {
        if let Some(session) = self.session {
            let ending = self.client.delete(&self.url).header(SESSION_ID, session).timeout(PATIENCE).send();
            tokio::spawn(ending);
        }
    }
}

/// Returns the response among the events of a stream that are complete.
fn response_in_events(bytes: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    let (complete, _) = text.rsplit_once("\n\n")?;
    complete.split("\n\n").find_map(|event| {
        let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
        let data = data.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n");
        let message: Value = serde_json::from_str(&data).ok()?;
        is_response(&message).then_some(message)
    })
}

fn is_response(message: &Value) -> bool {
    message.get("result").is_some() || message.get("error").is_some()
}

fn result_of(mut message: Value) -> Result<Value, DiscoveryError> {
    match message.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => match message.get("error").and_then(|error| error.get("code")).and_then(Value::as_i64) {
            Some(code) => Err(DiscoveryError::Refused(code)),
            None => Err(DiscoveryError::NoMessage),
        },
    }
}

fn server_row(info: Option<&Value>) -> ServerRow {
    let member = |name: &str| info.and_then(|info| info.get(name)).and_then(text);
    ServerRow { name: member("name"), version: member("version"), ..ServerRow::default() }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn tool_row(tool: &Value) -> Option<ToolRow> {
    let name = tool.get("name").and_then(text)?;
    // A tool that is not described as the protocol says is still listed.
    let tool: Option<Tool> = serde_json::from_value(tool.clone()).ok();
    Some(ToolRow {
        name,
        arguments: tool.as_ref().map(|tool| arguments_of(&tool.input_schema)).unwrap_or_default(),
        hints: tool.as_ref().and_then(|tool| tool.annotations.as_ref()).map(hints_of).unwrap_or_default(),
        ..ToolRow::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_is_found_among_events() {
        let stream = b"event: message\r\ndata: {\"method\":\"notifications/message\"}\r\n\r\nid: 2\r\ndata: {\"id\":1,\r\n\
                       data: \"result\":{\"a\":1}}\r\n\r\n: comment";
        assert_eq!(response_in_events(stream), Some(json!({"id": 1, "result": {"a": 1}})));
        // The event is not complete yet.
        assert_eq!(response_in_events(b"data: {\"result\":{}}\n"), None);
        assert_eq!(response_in_events(b"data: {\"result\":{}}\n\n"), Some(json!({"result": {}})));
    }

    #[test]
    fn a_tool_with_a_strange_schema_is_still_listed() {
        let row = tool_row(&json!({"name": "a", "inputSchema": 5})).unwrap();
        assert_eq!((row.name.as_str(), row.arguments.len()), ("a", 0));
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let row = tool_row(&json!({"name": "a", "inputSchema": schema})).unwrap();
        assert_eq!((row.arguments[0].kind.as_str(), row.arguments[0].required), ("integer", true));
    }
}
