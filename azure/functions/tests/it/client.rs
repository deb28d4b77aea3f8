//! An MCP client for every way to talk to the host: streamable HTTP of legacy and modern revisions, calls
//! without a handshake, and HTTP+SSE. A test for all ways is written once.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::net::TcpStream;

pub(crate) const PATH: &str = "/runtime/webhooks/mcp";
/// The timeout of a test, longer than any test takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The maximum number of rounds. No function here asks that often.
const MOST_ROUNDS: usize = 40;

pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it took too long")
}

/// The transport and revision that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Stateless requests of 2026-07-28.
    Alone,
    /// Streamable HTTP with a handshake, of this revision.
    Session(&'static str),
    /// Streamable HTTP of a legacy revision, without the handshake.
    Cold,
    /// The HTTP+SSE transport.
    Sse,
}

impl Way {
    pub(crate) const LATEST: Way = Way::Session("2025-11-25");
    pub(crate) const ALL: [Way; 5] =
        [Way::Alone, Way::LATEST, Way::Session("2025-06-18"), Way::Cold, Way::Sse];
    /// Those in which the server has the client's capabilities and can ask it.
    pub(crate) const ACQUAINTED: [Way; 4] = [Way::Alone, Way::LATEST, Way::Session("2025-06-18"), Way::Sse];

    pub(crate) fn revision(self) -> &'static str {
        match self {
            Way::Alone => "2026-07-28",
            Way::Session(revision) => revision,
            Way::Cold | Way::Sse => "2025-06-18",
        }
    }
}

/// Answers requests of the server: returns the result for a method and its params.
pub(crate) type Answers = fn(&str, &Value) -> Value;

pub(crate) struct Client {
    pub(crate) way: Way,
    /// The id of the session, if there is one.
    pub(crate) session: Option<String>,
    /// The result of `initialize` or `server/discover`.
    pub(crate) greeting: Value,
    /// The notifications received, in order.
    pub(crate) heard: Vec<Value>,
    /// The minimum level of log messages, for stateless requests. Sessions set theirs by a request.
    pub(crate) log_level: Option<&'static str>,
    /// Declares the tasks extension in stateless requests.
    pub(crate) has_tasks: bool,
    pub(crate) answers: Answers,
    address: SocketAddr,
    /// The headers of every request.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The path to post to, and the stream of HTTP+SSE for responses.
    endpoint: String,
    stream: Option<Events>,
    next_id: u64,
}

/// A request without a response yet. Dropping it closes its connection.
pub(crate) struct Call {
    pub(crate) id: u64,
    events: Option<Events>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr, way: Way) -> Client {
        Client::connect_with(address, way, &[]).await
    }

    /// Connects a client that sends these headers with every request.
    pub(crate) async fn connect_with(
        address: SocketAddr,
        way: Way,
        headers: &[(&'static str, &str)],
    ) -> Client {
        let mut client = Client {
            way,
            session: None,
            greeting: Value::Null,
            heard: Vec::new(),
            log_level: None,
            has_tasks: false,
            answers: |method, _| panic!("the server asks for {method}"),
            address,
            headers: headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
            endpoint: PATH.to_owned(),
            stream: None,
            next_id: 1,
        };
        if way == Way::Sse {
            let headers = client.headers.clone();
            let mut stream = get(address, &format!("{PATH}/sse"), &headers).await;
            let (kind, data) = stream.event().await.unwrap();
            assert_eq!(kind, "endpoint");
            // The address is relative to that of the stream.
            client.endpoint = format!("{PATH}/{data}");
            client.stream = Some(stream);
        }
        match way {
            Way::Alone => client.greeting = client.result("server/discover", json!({})).await,
            Way::Session(_) | Way::Sse => client.initialize().await,
            Way::Cold => {}
        }
        client
    }

    async fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": self.way.revision(), "capabilities": capabilities(), "clientInfo": info(),
        });
        let mut call = self.begin("initialize", params).await;
        self.greeting = self.message_of(&mut call).await.unwrap()["result"].clone();
        assert_eq!(self.greeting["protocolVersion"], self.way.revision());
        if let Some(events) = call.events {
            self.session = events.head.get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        }
        self.notify("notifications/initialized", json!({})).await;
    }

    /// Sends a request.
    pub(crate) async fn begin(&mut self, method: &str, mut params: Value) -> Call {
        let id = self.next_id;
        self.next_id += 1;
        if self.way == Way::Alone {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.way.revision());
            meta["io.modelcontextprotocol/clientInfo"] = info();
            let mut capabilities = capabilities();
            if self.has_tasks {
                capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
            }
            meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
            if let Some(level) = self.log_level {
                meta["io.modelcontextprotocol/logLevel"] = json!(level);
            }
        }
        let name =
            ["name", "uri", "taskId"].iter().find_map(|name| params[*name].as_str().map(str::to_owned));
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut headers = Vec::new();
        if self.way == Way::Alone {
            headers.push(("mcp-method", method.to_owned()));
            headers.extend(name.map(|name| ("mcp-name", name)));
        }
        let events = self.post(&message, headers).await;
        Call { id, events: (self.way != Way::Sse).then_some(events) }
    }

    /// Returns the next message for a request, or `None` at the end.
    pub(crate) async fn message_of(&mut self, call: &mut Call) -> Option<Value> {
        let events = call.events.as_mut().or(self.stream.as_mut()).unwrap();
        events.message().await
    }

    /// Sends a request, answers the requests of the server, and returns the response.
    pub(crate) async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        for _ in 0..MOST_ROUNDS {
            let mut call = self.begin(method, params.clone()).await;
            let response = loop {
                let message = self.message_of(&mut call).await.expect("a response");
                match (message["method"].as_str(), message.get("id")) {
                    (Some(asked), Some(id)) => {
                        let result = (self.answers)(asked, &message["params"]);
                        self.tell(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
                    }
                    (Some(_), None) => self.heard.push(message),
                    (None, _) => break message,
                }
            };
            assert_eq!(response["id"], call.id, "{response}");
            let result = &response["result"];
            if result["resultType"] != "input_required" {
                return response;
            }
            let asked = result["inputRequests"].as_object().unwrap().iter();
            let answers: Map<String, Value> = asked
                .map(|(key, asked)| {
                    (key.clone(), (self.answers)(asked["method"].as_str().unwrap(), &asked["params"]))
                })
                .collect();
            params["inputResponses"] = Value::Object(answers);
            params["requestState"] = result["requestState"].clone();
        }
        panic!("{:?} {method}: the server does not stop asking", self.way);
    }

    /// Returns the text of the response to a request.
    pub(crate) async fn response_text(&mut self, method: &str, params: Value) -> String {
        let mut call = self.begin(method, params).await;
        let events = call.events.as_mut().or(self.stream.as_mut()).unwrap();
        events.event().await.expect("a response").1
    }

    /// Returns the result of a request that must succeed.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let response = self.ask(method, params).await;
        response.get("result").unwrap_or_else(|| panic!("{:?} {method}: {response}", self.way)).clone()
    }

    /// Returns the code and text of a request that must fail.
    pub(crate) async fn error(&mut self, method: &str, params: Value) -> (i64, String) {
        let response = self.ask(method, params).await;
        let error = response.get("error").unwrap_or_else(|| panic!("{:?} {method}: {response}", self.way));
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Returns the text of a tool's result, which must be a success with one block of text.
    pub(crate) async fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_ne!(result["isError"], true, "{:?} {tool}: {result}", self.way);
        match result["content"].as_array().map(Vec::as_slice) {
            Some([block]) => block["text"].as_str().unwrap().to_owned(),
            _ => panic!("{:?} {tool}: {result}", self.way),
        }
    }

    /// Returns the only item of a resource.
    pub(crate) async fn read(&mut self, uri: &str) -> Value {
        let result = self.result("resources/read", json!({"uri": uri})).await;
        match result["contents"].as_array().map(Vec::as_slice) {
            Some([item]) => item.clone(),
            _ => panic!("{:?} {uri}: {result}", self.way),
        }
    }

    /// Returns the messages of a prompt, as role and text.
    pub(crate) async fn prompt(&mut self, name: &str, arguments: Value) -> Vec<(String, String)> {
        let result = self.result("prompts/get", json!({"name": name, "arguments": arguments})).await;
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{name}: {result}")).to_owned();
        let messages = result["messages"].as_array().unwrap().iter();
        messages.map(|message| (text(&message["role"]), text(&message["content"]["text"]))).collect()
    }

    /// Returns the definitions of a list: `member` of the result of `method`.
    pub(crate) async fn list(&mut self, method: &str, member: &str) -> Vec<Value> {
        let result = self.result(method, json!({})).await;
        assert_eq!(result.get("nextCursor"), None, "all are on one page");
        result[member].as_array().unwrap_or_else(|| panic!("{method}: {result}")).clone()
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.tell(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Requests log messages from this level on, as each revision does it.
    pub(crate) async fn listen(&mut self, level: &'static str) {
        if self.way == Way::Alone {
            self.log_level = Some(level);
        } else {
            self.result("logging/setLevel", json!({"level": level})).await;
        }
    }

    /// Sends a message that has no response.
    async fn tell(&mut self, message: &Value) {
        let events = self.post(message, Vec::new()).await;
        assert_eq!(events.status, StatusCode::ACCEPTED, "{message}");
    }

    async fn post(&self, message: &Value, more: Vec<(&'static str, String)>) -> Events {
        let mut headers = self.headers.clone();
        headers.extend(more);
        headers.extend(self.session.clone().map(|session| ("mcp-session-id", session)));
        headers.push(("mcp-protocol-version", self.way.revision().to_owned()));
        post(self.address, &self.endpoint, &headers, message.to_string()).await
    }
}

fn info() -> Value {
    json!({"name": "scenarios", "title": "The scenarios", "version": "1.2.3"})
}

fn capabilities() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

/// The response: messages in a stream, or a single message.
pub(crate) struct Events {
    pub(crate) status: StatusCode,
    pub(crate) head: HeaderMap,
    body: Incoming,
    is_stream: bool,
    text: String,
    ready: VecDeque<(String, String)>,
}

impl Events {
    /// Returns the kind and the data of the next event. A body that is not a stream is one message.
    pub(crate) async fn event(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match within(self.body.frame()).await {
                Some(frame) => {
                    let data = frame.ok()?.into_data().unwrap_or_default();
                    self.text.push_str(std::str::from_utf8(&data).unwrap());
                    if self.is_stream {
                        self.cut();
                    }
                }
                None if self.text.is_empty() => return None,
                None => return Some(("message".to_owned(), std::mem::take(&mut self.text))),
            }
        }
    }

    pub(crate) async fn message(&mut self) -> Option<Value> {
        let (kind, data) = self.event().await?;
        assert_eq!(kind, "message");
        Some(serde_json::from_str(&data).unwrap_or_else(|_| panic!("{} {data}", self.status)))
    }

    fn cut(&mut self) {
        while let Some(end) = self.text.find("\n\n") {
            let block: String = self.text.drain(..end + 2).collect();
            let field = |name: &str| {
                let start = format!("{name}: ");
                block.lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned))
            };
            // Comments keep a connection alive. An event without data is ignored.
            if let Some(data) = field("data").filter(|data| !data.is_empty()) {
                self.ready.push_back((field("event").unwrap_or_else(|| "message".to_owned()), data));
            }
        }
    }
}

pub(crate) async fn get(address: SocketAddr, path: &str, headers: &[(&'static str, String)]) -> Events {
    let mut all = vec![("accept", "text/event-stream".to_owned())];
    all.extend_from_slice(headers);
    send(address, Method::GET, path, &all, String::new()).await
}

pub(crate) async fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&'static str, String)],
    body: String,
) -> Events {
    let mut all = vec![
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
    ];
    all.extend_from_slice(headers);
    send(address, Method::POST, path, &all, body).await
}

/// Sends one request on a new connection.
pub(crate) async fn send(
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&'static str, String)],
    body: String,
) -> Events {
    let stream = within(TcpStream::connect(address)).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", address.to_string());
    }
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let (head, body) = within(sender.send_request(request)).await.unwrap().into_parts();
    let is_stream = head.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
    Events {
        status: head.status,
        head: head.headers,
        body,
        is_stream,
        text: String::new(),
        ready: VecDeque::new(),
    }
}
