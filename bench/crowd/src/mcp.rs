//! Messages of legacy and modern MCP revisions, and checks of responses.
use crate::http::{trouble, Checked, Connection, Reply};
use serde_json::{json, Value};

pub const MODERN: &str = "2026-07-28";
pub const LEGACY: &str = "2025-11-25";
pub const WITH_BATCHES: &str = "2025-03-26";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The address of a server, and the caller.
#[derive(Clone)]
pub struct Caller {
    pub port: u16,
    pub path: String,
    /// The number of the API key.
    pub key: Option<u32>,
}

/// An allowed outcome of a request.
#[derive(Debug)]
pub enum Ending {
    Result(Value),
    /// Rejected temporarily: 429 or 503 with `Retry-After`.
    Refused(u16),
    /// The session is unknown: it has expired or was evicted.
    Gone,
    /// A JSON-RPC error.
    Error(Value),
}

impl Ending {
    /// Returns the result if only a result or a rejection is allowed. `Err(Ok(…))` is the outcome
    /// of a rejection.
    pub fn result(self) -> Result<Value, Checked<&'static str>> {
        match self {
            Self::Result(result) => Ok(result),
            Self::Refused(status) => Err(Ok(refused(status))),
            Self::Gone => Err(trouble!("404 for a session that was in use")),
            Self::Error(error) => Err(trouble!("an error that is not allowed here: {error}")),
        }
    }
}

pub fn refused(status: u16) -> &'static str {
    if status == 429 {
        "429, come back"
    } else {
        "503, come back"
    }
}

impl Caller {
    pub async fn connect(&self) -> Checked<Connection> {
        Connection::open(self.port).await
    }

    /// Returns the head and the body of one HTTP request. `headers` consists of whole lines.
    pub fn http(&self, verb: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
        let mut request = self.head(verb, path, headers, body.len());
        request += body;
        request.into_bytes()
    }

    /// Returns the head alone, for a body that is sent in pieces.
    pub fn head(&self, verb: &str, path: &str, headers: &str, length: usize) -> String {
        let key = self.key.map(|key| format!("x-api-key: secret-of-client-{key}\r\n")).unwrap_or_default();
        let content = match verb {
            "GET" | "DELETE" => String::new(),
            _ => format!("content-type: application/json\r\ncontent-length: {length}\r\n"),
        };
        format!("{verb} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n{key}{content}{headers}\r\n", self.port)
    }

    /// Returns a request of 2026-07-28.
    pub fn modern(&self, id: &Value, method: &str, params: Value) -> Vec<u8> {
        let (headers, body) = modern_parts(id, method, params);
        self.http("POST", &self.path, &headers, &body)
    }

    /// Returns the head and the body of a request of 2026-07-28.
    pub fn modern_in_parts(&self, id: &Value, method: &str, params: Value) -> (String, String) {
        let (headers, body) = modern_parts(id, method, params);
        (self.head("POST", &self.path, &headers, body.len()), body)
    }
}

fn modern_parts(id: &Value, method: &str, mut params: Value) -> (String, String) {
    let name = ["name", "uri", "taskId"].iter().find_map(|name| params[*name].as_str());
    let mut headers = format!("{ACCEPT}mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n");
    if let (Some(name), "tools/call" | "resources/read" | "tasks/get" | "tasks/cancel") = (name, method) {
        headers += &format!("mcp-name: {name}\r\n");
    }
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "crowd", "version": "1"});
    meta["io.modelcontextprotocol/clientCapabilities"] =
        json!({"extensions": {TASKS: {}}, "elicitation": {}});
    (headers, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
}

const ACCEPT: &str = "accept: application/json, text/event-stream\r\n";

/// Returns the parameters of `tools/call`.
pub fn call(tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

/// A session of a legacy revision.
pub struct Session {
    pub caller: Caller,
    pub id: String,
    revision: &'static str,
}

impl Session {
    /// Sends `initialize`, and `notifications/initialized` if the session will be used.
    pub async fn open(
        caller: &Caller,
        connection: &mut Connection,
        revision: &'static str,
        used: bool,
    ) -> Checked<Result<Session, u16>> {
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "crowd", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params});
        let request = caller.http("POST", &caller.path, ACCEPT, &body.to_string());
        let reply = connection.exchange(caller.port, &request).await?;
        let id = reply.head.header("mcp-session-id").map(str::to_owned);
        let result = match ending(reply, &json!("open"))? {
            Ending::Result(result) => result,
            Ending::Refused(status) => return Ok(Err(status)),
            other => return trouble!("initialize got {other:?}"),
        };
        if result["protocolVersion"] != revision {
            return trouble!("initialize for {revision} got {result}");
        }
        let Some(id) = id else { return trouble!("the response to initialize has no session id") };
        let session = Session { caller: caller.clone(), id, revision };
        if used {
            let request = session.notification("notifications/initialized", json!({}));
            let reply = connection.exchange(caller.port, &request).await?;
            if reply.head.status != 202 {
                return trouble!("notifications/initialized got status {}", reply.head.status);
            }
        }
        Ok(Ok(session))
    }

    fn headers(&self) -> String {
        format!("{ACCEPT}mcp-session-id: {}\r\nmcp-protocol-version: {}\r\n", self.id, self.revision)
    }

    pub fn post(&self, body: &Value) -> Vec<u8> {
        self.caller.http("POST", &self.caller.path, &self.headers(), &body.to_string())
    }

    pub fn request(&self, id: &Value, method: &str, params: Value) -> Vec<u8> {
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    fn notification(&self, method: &str, params: Value) -> Vec<u8> {
        self.post(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    pub fn get(&self, last_event: Option<&str>) -> Vec<u8> {
        let mut headers = self.headers();
        if let Some(id) = last_event {
            headers += &format!("last-event-id: {id}\r\n");
        }
        self.caller.http("GET", &self.caller.path, &headers, "")
    }

    pub fn delete(&self) -> Vec<u8> {
        self.caller.http("DELETE", &self.caller.path, &self.headers(), "")
    }
}

/// Finds the response to the request with this id. There must be exactly one, and it must be
/// the last message.
pub fn ending(mut reply: Reply, id: &Value) -> Checked<Ending> {
    let status = reply.head.status;
    let answers = reply.messages.iter().filter(|message| message.get("method").is_none()).count();
    let last = reply.messages.pop().unwrap_or_default();
    if answers != 1 || last.get("method").is_some() {
        return trouble!(
            "status {status}, {answers} answers instead of one; the last message: {}",
            short(&last)
        );
    }
    if status == 429 || status == 503 {
        if reply.head.header("retry-after").is_none() {
            return trouble!("status {status} without Retry-After: {}", short(&last));
        }
        if last.get("id").is_some_and(|other| !other.is_null() && other != id) {
            return trouble!("the rejection of {id} has another id: {}", short(&last));
        }
        return Ok(Ending::Refused(status));
    }
    if status == 404 && last["error"]["message"].as_str().is_some_and(|text| text.contains("session")) {
        return Ok(Ending::Gone);
    }
    answer(last, id)
}

/// Evaluates a message as the response to the request with this id.
pub fn answer(mut message: Value, id: &Value) -> Checked<Ending> {
    if message["id"] != *id {
        return trouble!("the response to {id} has another id: {}", short(&message));
    }
    match (message.get("result").is_some(), message.get("error").is_some()) {
        (true, false) => Ok(Ending::Result(message["result"].take())),
        (false, true) => Ok(Ending::Error(message["error"].take())),
        _ => trouble!("neither a result nor an error: {}", short(&message)),
    }
}

/// Checks that a result of `tools/call` is this text.
pub fn is_text(result: &Value, expected: &str) -> Checked<()> {
    let text = result["content"][0]["text"].as_str();
    if result["isError"] == true || text != Some(expected) {
        let wanted: String = expected.chars().take(100).collect();
        return trouble!("expected the text {wanted:?}, got {}", short(result));
    }
    Ok(())
}

/// Returns the beginning of a message, for a report.
pub fn short(message: &Value) -> String {
    message.to_string().chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Head;

    fn reply(status: u16, headers: &[(&str, &str)], messages: &[Value]) -> Reply {
        Reply { head: Head::new(status, headers), messages: messages.to_vec() }
    }

    #[test]
    fn the_one_answer_comes_last_and_has_the_id() {
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
        let good = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
        let ends = |messages: &[Value]| ending(reply(200, &[], messages), &json!(1));
        assert!(matches!(ends(&[progress.clone(), good.clone()]), Ok(Ending::Result(_))));
        assert!(ends(&[]).is_err());
        assert!(ends(std::slice::from_ref(&progress)).is_err());
        assert!(ends(&[good.clone(), progress]).is_err());
        assert!(ends(&[good.clone(), good]).is_err());
        assert!(ends(&[json!({"jsonrpc": "2.0", "id": "1", "result": {}})]).is_err());
        assert!(ends(&[json!({"jsonrpc": "2.0", "id": 1})]).is_err());
    }

    #[test]
    fn a_refusal_says_when_to_come_back() {
        let error =
            |id: Value| [json!({"jsonrpc": "2.0", "id": id, "error": {"code": 503, "message": "full"}})];
        let ends = |headers: &[(&str, &str)], id| ending(reply(503, headers, &error(id)), &json!(1));
        assert!(matches!(ends(&[("retry-after", "5")], json!(1)), Ok(Ending::Refused(503))));
        assert!(matches!(ends(&[("retry-after", "5")], Value::Null), Ok(Ending::Refused(503))));
        assert!(ends(&[], json!(1)).is_err());
        assert!(ends(&[("retry-after", "5")], json!(2)).is_err());
    }
}
