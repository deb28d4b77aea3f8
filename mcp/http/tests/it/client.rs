//! A raw HTTP/1 client, a server with tools that can be observed, and a server in a separate process.
//!
//! The client sends exactly the bytes of a test and returns exactly the bytes of the response.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bindpost_mcp_http::listener::{Drain, DrainTrigger};
use bindpost_mcp_http::{AnonymousAccess, Auth, Authorizer, Denial, Settings, bind};
use bindpost_mcp_protocol::client::{ElicitParams, SampleParams};
use bindpost_mcp_protocol::lifecycle::LogLevel;
use bindpost_mcp_server::{
    Args, Caller, Context, HttpRequest, Identity, PromptEntry, ResourceEntry, Server, ServerLimits,
    TaskLimits, ToolEntry, ToolError,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A timeout that no step reaches, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The modern revision, without a handshake.
pub(crate) const MODERN: &str = "2026-07-28";
/// The last legacy revision, with a handshake.
pub(crate) const LATEST: &str = "2025-11-25";

pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("timed out")
}

/// An HTTP request that has not been sent yet.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Ask {
    pub(crate) fn new(method: &'static str, path: &str) -> Ask {
        let headers = vec![("host".to_owned(), "localhost".to_owned())];
        Ask { method, path: path.to_owned(), headers, body: None }
    }

    /// Builds a POST of this body to the endpoint, with the headers every client sends.
    pub(crate) fn post(body: impl Into<Vec<u8>>) -> Ask {
        Ask::new("POST", "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body)
    }

    /// Builds a modern request with everything it needs. Its id is 1.
    pub(crate) fn modern(method: &str, params: Value) -> Ask {
        Ask::enveloped(method, params, json!({}))
    }

    /// The same with these client capabilities.
    pub(crate) fn enveloped(method: &str, mut params: Value, capabilities: Value) -> Ask {
        let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
        meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
        meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        let name = ["name", "uri", "taskId"].iter().find_map(|name| params[*name].as_str());
        let name = name.map(str::to_owned);
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let ask = Ask::post(message.to_string())
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", method);
        match name {
            Some(name) => ask.header("mcp-name", &name),
            None => ask,
        }
    }

    /// Builds a modern call of a tool.
    pub(crate) fn modern_call(tool: &str, arguments: Value) -> Ask {
        Ask::modern("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Builds `initialize` for this revision. Its id is `"open"`.
    pub(crate) fn initialize(revision: &str) -> Ask {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params});
        Ask::post(message.to_string())
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Ask {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Ask {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    /// Replaces a header.
    pub(crate) fn with(self, name: &str, value: &str) -> Ask {
        self.without(name).header(name, value)
    }

    pub(crate) fn at(mut self, path: &str) -> Ask {
        self.path = path.to_owned();
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Ask {
        self.body = Some(body.into());
        self
    }

    /// Changes the message in the body.
    pub(crate) fn edit(mut self, change: impl FnOnce(&mut Value)) -> Ask {
        let mut message = serde_json::from_slice(self.body.as_ref().unwrap()).unwrap();
        change(&mut message);
        self.body = Some(message.to_string().into_bytes());
        self
    }

    /// Returns the request for a service without a connection.
    pub(crate) fn request(&self) -> http::Request<Vec<u8>> {
        let request = http::Request::builder().method(self.method).uri(&self.path);
        let request = self.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        request.body(self.body.clone().unwrap_or_default()).unwrap()
    }

    /// Returns the bytes of the request.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.path).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        if let Some(body) = &self.body {
            bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the JSON-RPC message in the body, and checks its `jsonrpc` member.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        let message: Value = serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}", self.text()));
        if let Some(message) = message.as_object() {
            assert_eq!(message["jsonrpc"], "2.0");
        }
        message
    }

    /// Returns the result, and checks that the status is 200.
    pub(crate) fn result(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        let message = self.json();
        message.get("result").unwrap_or_else(|| panic!("no result: {message}")).clone()
    }

    /// Checks that this is a JSON-RPC error with this status and code, and returns it.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: i64) -> Value {
        let message = self.json();
        assert_eq!((self.status, &message["error"]["code"]), (status, &json!(code)), "{message}");
        assert!(message["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{message}");
        message
    }

    /// Checks that the response is 202 without a body.
    #[track_caller]
    pub(crate) fn accepted(&self) {
        assert_eq!((self.status, self.text().as_str()), (202, ""));
        assert_eq!(self.header("content-type"), None);
    }

    /// Returns the text of a tool's result.
    pub(crate) fn tool_text(&self) -> String {
        text_of(&self.result())
    }
}

/// The text of a tool's result.
pub(crate) fn text_of(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

/// The length of a response body.
#[derive(Debug)]
enum Length {
    Fixed(usize),
    Chunked,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        Client { stream: within(TcpStream::connect(address)).await.unwrap(), buffer: Vec::new() }
    }

    /// Connects with a small receive buffer.
    pub(crate) async fn with_small_window(address: SocketAddr) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 << 10).unwrap();
        Client { stream: within(socket.connect(address)).await.unwrap(), buffer: Vec::new() }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        within(self.stream.write_all(bytes)).await.unwrap();
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn send(&mut self, ask: &Ask) -> Reply {
        self.write(&ask.bytes()).await;
        // The timeout is for the whole response, because a stream with keep-alive comments never ends.
        within(self.reply(ask.method == "HEAD")).await
    }

    /// Reads one whole response.
    pub(crate) async fn reply(&mut self, headless: bool) -> Reply {
        let (mut reply, mut length) = self.head().await;
        if headless {
            return reply;
        }
        while let Some(piece) = self.piece(&mut length).await {
            reply.body.extend_from_slice(&piece);
        }
        reply
    }

    /// Sends a request whose response must be a stream.
    pub(crate) async fn open(mut self, ask: &Ask) -> Events {
        self.write(&ask.bytes()).await;
        let (mut head, mut length) = self.head().await;
        if head.header("content-type") != Some("text/event-stream") {
            while let Some(piece) = self.piece(&mut length).await {
                head.body.extend_from_slice(&piece);
            }
            panic!("no stream but {} {:?} {}", head.status, head.headers, head.text());
        }
        Events { client: self, head, length, text: String::new() }
    }

    async fn fill(&mut self) -> usize {
        let mut piece = vec![0; 64 << 10];
        // A reset connection is treated like a closed one.
        let read = within(self.stream.read(&mut piece)).await.unwrap_or_default();
        self.buffer.extend_from_slice(&piece[..read]);
        read
    }

    /// Removes and returns all bytes up to this mark. The mark itself is dropped.
    async fn until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(mark.len()).position(|window| window == mark) {
                let mut taken: Vec<u8> = self.buffer.drain(..at + mark.len()).collect();
                taken.truncate(at);
                return Some(taken);
            }
            if self.fill().await == 0 {
                return None;
            }
        }
    }

    async fn head(&mut self) -> (Reply, Length) {
        let head = self.until(b"\r\n\r\n").await.expect("the connection ended without a response");
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap()[9..12].parse().unwrap();
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        }
        let length = match headers.get("transfer-encoding") {
            Some(_) => Length::Chunked,
            None => {
                let length = headers.get("content-length");
                Length::Fixed(length.map_or(0, |length| length.to_str().unwrap().parse().unwrap()))
            }
        };
        (Reply { status, headers, body: Vec::new() }, length)
    }

    /// Returns the next chunk of a body, or `None` at its end. A truncated chunked body fails.
    async fn piece(&mut self, length: &mut Length) -> Option<Vec<u8>> {
        match length {
            Length::Fixed(0) => None,
            Length::Fixed(left) => {
                if self.buffer.is_empty() {
                    assert_ne!(self.fill().await, 0, "the body is truncated");
                }
                let piece: Vec<u8> = self.buffer.drain(..self.buffer.len().min(*left)).collect();
                *left -= piece.len();
                Some(piece)
            }
            Length::Chunked => {
                let size = self.until(b"\r\n").await.expect("the body is truncated");
                let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap(), 16).unwrap();
                while self.buffer.len() < size + 2 {
                    assert_ne!(self.fill().await, 0, "the body is truncated");
                }
                let piece: Vec<u8> = self.buffer.drain(..size).collect();
                self.buffer.drain(..2);
                (size > 0).then_some(piece)
            }
        }
    }

    /// Reads a response and returns only its status.
    pub(crate) async fn status(&mut self) -> u16 {
        self.head().await.0.status
    }

    /// Waits until the server has closed the connection, without another response.
    pub(crate) async fn closed(&mut self) {
        while self.fill().await > 0 {}
        assert_eq!(String::from_utf8_lossy(&self.buffer), "");
    }
}

/// A stream of events, read one by one.
#[derive(Debug)]
pub(crate) struct Events {
    client: Client,
    pub(crate) head: Reply,
    length: Length,
    text: String,
}

/// One event, or a comment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) comment: bool,
}

impl Event {
    /// Returns the message of the event.
    pub(crate) fn message(&self) -> Value {
        let data = self.data.as_deref().unwrap_or_default();
        serde_json::from_str(data).unwrap_or_else(|_| panic!("no message: {self:?}"))
    }

    /// Returns the stream number and the message number of the event id.
    pub(crate) fn place(&self) -> (u32, u64) {
        let (stream, number) = self.id.as_ref().unwrap().split_once("::").unwrap();
        (stream.parse().unwrap(), number.parse().unwrap())
    }
}

impl Events {
    /// Returns the next event or comment, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                return Some(parse_event(block.trim_end_matches('\n')));
            }
            let piece = self.client.piece(&mut self.length).await?;
            self.text.push_str(&String::from_utf8(piece).unwrap());
        }
    }

    /// Returns the next event. Comments are skipped.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            match self.next().await {
                Some(event) if event.comment => {}
                event => return event,
            }
        }
    }

    /// Returns the next message. Comments and the priming event are skipped.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            match self.event().await {
                Some(event) if event.data.as_deref() == Some("") => {}
                event => return event.map(|event| event.message()),
            }
        }
    }

    /// Returns all messages up to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.message().await {
            messages.push(message);
        }
        messages
    }

    /// Waits this long and checks that only comments arrive.
    pub(crate) async fn stays_silent(&mut self, for_: Duration) {
        if let Ok(event) = tokio::time::timeout(for_, self.event()).await {
            panic!("unexpected event: {event:?}");
        }
    }

    /// Returns the connection after the end of the stream.
    pub(crate) fn into_client(self) -> Client {
        self.client
    }
}

fn parse_event(block: &str) -> Event {
    let mut event = Event::default();
    for line in block.split('\n') {
        match line.split_once(':') {
            Some(("", _)) => event.comment = true,
            Some((field, value)) => {
                let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
                match field {
                    "id" => event.id = Some(value),
                    "event" => event.kind = Some(value),
                    "retry" => event.retry = Some(value),
                    "data" => match &mut event.data {
                        None => event.data = Some(value),
                        Some(data) => *data = format!("{data}\n{value}"),
                    },
                    other => panic!("unknown field {other:?} in {block:?}"),
                }
            }
            None => panic!("no field in {block:?}"),
        }
    }
    event
}

/// Controls and observes the tools of the fixture.
#[derive(Debug)]
pub(crate) struct Watch {
    /// A permit for each `wait`, `tell_and_wait`, `hang_up` or `flood` that has begun.
    pub(crate) begun: Semaphore,
    /// A permit for each that may continue.
    pub(crate) go_on: Semaphore,
    /// A permit for each that was dropped before it was complete.
    pub(crate) cut: Semaphore,
    /// The number of handlers that have completed.
    done: AtomicUsize,
}

/// Detects that a handler is dropped.
struct Cut {
    watch: Arc<Watch>,
    done: bool,
}

impl Drop for Cut {
    fn drop(&mut self) {
        if self.done {
            self.watch.done.fetch_add(1, Ordering::Relaxed);
        } else {
            self.watch.cut.add_permits(1);
        }
    }
}

impl Watch {
    fn new() -> Arc<Watch> {
        Arc::new(Watch {
            begun: Semaphore::new(0),
            go_on: Semaphore::new(0),
            cut: Semaphore::new(0),
            done: AtomicUsize::new(0),
        })
    }

    async fn wait(self: Arc<Watch>) -> &'static str {
        let mut cut = Cut { watch: self.clone(), done: false };
        self.begun.add_permits(1);
        self.go_on.acquire().await.unwrap().forget();
        cut.done = true;
        "waited"
    }

    /// Waits until this many further calls have begun.
    pub(crate) async fn has_begun(&self, calls: u32) {
        within(self.begun.acquire_many(calls)).await.unwrap().forget();
    }

    /// Waits until a call was dropped.
    pub(crate) async fn was_cut(&self) {
        within(self.cut.acquire()).await.unwrap().forget();
    }
}

/// The tools, resources and prompts of the tests.
pub(crate) fn fixture(limits: ServerLimits) -> (Server, Arc<Watch>) {
    let watch = Watch::new();
    let [silent, telling, hanging_up, flooding, watched] = [(); 5].map(|()| watch.clone());
    let region = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"}}});
    let typed = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let server = Server::builder("test", "1.0.0")
        .limits(limits)
        .tasks(TaskLimits::default())
        .tool(ToolEntry::new("echo", async |Args(arguments): Args<Value>| arguments.to_string()))
        .tool(ToolEntry::new("wait", move || silent.clone().wait()).timeout(None))
        .tool(
            ToolEntry::new("tell_and_wait", move |context: Context| {
                let watch = telling.clone();
                async move {
                    context.log(LogLevel::Info, None, "about to wait").await;
                    context.progress(1.0, Some(2.0), None).await;
                    watch.wait().await
                }
            })
            .timeout(None),
        )
        .tool(
            ToolEntry::new("hang_up", move |context: Context| {
                context.hang_up();
                hanging_up.clone().wait()
            })
            .timeout(None),
        )
        .tool(ToolEntry::new("count", count).timeout(None))
        .tool(
            ToolEntry::new("flood", move |context: Context, Args(arguments): Args<Value>| {
                flood(flooding.clone(), context, arguments)
            })
            .timeout(None),
        )
        .tool(ToolEntry::new("watched", move || {
            let (done, cut) = (watched.done.load(Ordering::Relaxed), watched.cut.available_permits());
            async move { json!({"done": done, "cut": cut}).to_string() }
        }))
        .tool(
            ToolEntry::new("region", async |Args(arguments): Args<Value>| arguments.to_string())
                .input_schema(region),
        )
        .tool(
            ToolEntry::new("typed", async |Args(arguments): Args<Value>| arguments.to_string())
                .input_schema(typed),
        )
        .tool(ToolEntry::new("ask_name", ask_name))
        .tool(ToolEntry::new("ask_model", ask_model))
        .tool(ToolEntry::new("panic", async || -> &'static str { panic!("as asked") }))
        .resource(ResourceEntry::text("test://one", "one", "the first").description("One"))
        .prompt(PromptEntry::new("greet", async || "Say hello").description("Greets"))
        .build()
        .unwrap();
    (server, watch)
}

/// Sends `messages` log messages, `pause_ms` apart.
async fn count(context: Context, Args(arguments): Args<Value>) -> String {
    let messages = arguments["messages"].as_u64().unwrap_or(3);
    let pause = Duration::from_millis(arguments["pause_ms"].as_u64().unwrap_or(0));
    for number in 1..=messages {
        context.log(LogLevel::Info, None, number).await;
        tokio::time::sleep(pause).await;
    }
    format!("said {messages} things")
}

/// Sends `megabytes` of messages, 64 KiB each.
async fn flood(watch: Arc<Watch>, context: Context, arguments: Value) -> &'static str {
    let mut cut = Cut { watch: watch.clone(), done: false };
    watch.begun.add_permits(1);
    let text = "x".repeat(64 << 10);
    for _ in 0..arguments["megabytes"].as_u64().unwrap_or(1) * 16 {
        context.log(LogLevel::Info, None, text.as_str()).await;
    }
    cut.done = true;
    "flooded"
}

async fn ask_name(context: Context) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let answer = context.elicit_with("name", ElicitParams::form("Your name?", schema)).await?;
    Ok(format!("Hello, {}!", answer.field("name").and_then(Value::as_str).unwrap_or("stranger")))
}

async fn ask_model(context: Context) -> Result<String, ToolError> {
    let answer = context.sample_with("model", SampleParams::user("Hello", 10)).await?;
    Ok(answer.text().unwrap_or_default().to_owned())
}

/// A server on its own port.
#[derive(Debug)]
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) trigger: DrainTrigger,
    pub(crate) server: Server,
    pub(crate) watch: Arc<Watch>,
    running: JoinHandle<std::io::Result<()>>,
}

/// The client side of a session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) revision: &'static str,
}

impl Session {
    /// Builds a POST of this body in the session.
    pub(crate) fn post(&self, body: impl Into<Vec<u8>>) -> Ask {
        self.own(Ask::post(body))
    }

    /// Builds a request in the session.
    pub(crate) fn request(&self, id: impl Into<Value>, method: &str, params: Value) -> Ask {
        let id = id.into();
        self.post(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
    }

    /// Builds a call of a tool with a progress token, which is its id.
    pub(crate) fn call(&self, id: impl Into<Value>, tool: &str, arguments: Value) -> Ask {
        let id = id.into();
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
        self.request(id, "tools/call", params)
    }

    pub(crate) fn notify(&self, method: &str, params: Value) -> Ask {
        self.post(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
    }

    pub(crate) fn ping(&self) -> Ask {
        self.request("ping", "ping", json!({}))
    }

    pub(crate) fn get(&self) -> Ask {
        self.own(Ask::new("GET", "/mcp").header("accept", "text/event-stream"))
    }

    /// Builds a GET that resumes a stream after this event.
    pub(crate) fn resume(&self, event_id: &str) -> Ask {
        self.get().header("last-event-id", event_id)
    }

    pub(crate) fn delete(&self) -> Ask {
        self.own(Ask::new("DELETE", "/mcp"))
    }

    fn own(&self, ask: Ask) -> Ask {
        ask.header("mcp-session-id", &self.id).header("mcp-protocol-version", self.revision)
    }
}

impl TestServer {
    pub(crate) async fn start(settings: Settings) -> TestServer {
        TestServer::with_limits(settings, ServerLimits::default()).await
    }

    pub(crate) async fn with_limits(settings: Settings, limits: ServerLimits) -> TestServer {
        let (server, watch) = fixture(limits);
        TestServer::serving(server, watch, settings).await
    }

    /// Serves another server than the fixture.
    pub(crate) async fn of(server: Server, settings: Settings) -> TestServer {
        TestServer::serving(server, Watch::new(), settings).await
    }

    async fn serving(server: Server, watch: Arc<Watch>, settings: Settings) -> TestServer {
        let bound = bind("127.0.0.1:0").await.unwrap();
        let address = bound.local_addr();
        let (trigger, drain) = Drain::new();
        let running = tokio::spawn(bound.serve_until(server.clone(), settings, drain));
        TestServer { address, trigger, server, watch, running }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Sends one request on a new connection.
    pub(crate) async fn send(&self, ask: &Ask) -> Reply {
        self.connect().await.send(ask).await
    }

    /// Opens a stream on a new connection.
    pub(crate) async fn open(&self, ask: &Ask) -> Events {
        self.connect().await.open(ask).await
    }

    /// Sends a request without waiting for the response.
    pub(crate) fn send_in_background(&self, ask: Ask) -> JoinHandle<Reply> {
        let address = self.address;
        tokio::spawn(async move { Client::connect(address).await.send(&ask).await })
    }

    /// Opens a session.
    pub(crate) async fn session(&self, revision: &'static str) -> Session {
        self.session_of(revision, |ask| ask).await
    }

    /// Opens a session. `change` is applied to its requests before they are sent.
    pub(crate) async fn session_of(&self, revision: &'static str, change: impl Fn(Ask) -> Ask) -> Session {
        let mut client = self.connect().await;
        let opened = client.send(&change(Ask::initialize(revision))).await;
        assert_eq!(opened.result()["protocolVersion"], revision);
        let session = Session { id: opened.header("mcp-session-id").unwrap().to_owned(), revision };
        client.send(&change(session.notify("notifications/initialized", json!({})))).await.accepted();
        session
    }

    /// Checks that a valid request on a new connection is answered.
    pub(crate) async fn is_well(&self) {
        assert_eq!(self.send(&Ask::modern_call("echo", json!({"a": 1}))).await.tool_text(), r#"{"a":1}"#);
    }

    /// Waits until the server has stopped.
    pub(crate) async fn ended(self) {
        within(self.running).await.unwrap().unwrap();
    }
}

/// Trusts the headers of a request: `x-caller` is the id, `x-scopes` are the scopes of the caller, and
/// `x-expires-ms` is the lifetime of its credentials.
#[derive(Debug)]
pub(crate) struct Trusting;

impl Authorizer for Trusting {
    async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
        let id = request.header("x-caller").ok_or_else(Denial::missing)?;
        let scopes = request.header("x-scopes").unwrap_or_default().split_whitespace();
        let identity = scopes.fold(Identity::new(id), Identity::scope);
        let expires = request.header("x-expires-ms").map(|text| Duration::from_millis(text.parse().unwrap()));
        Ok(match expires {
            Some(after) => identity.expires_at(std::time::Instant::now() + after).into(),
            None => identity.into(),
        })
    }
}

/// Adds an authorizer that trusts the caller's headers, with anonymous access.
pub(crate) fn trusting(settings: Settings) -> Settings {
    Settings { auth: Some(Auth::new(Trusting).opening(AnonymousAccess::Open)), ..settings }
}

/// Settings with a short sweep interval.
pub(crate) fn attentive() -> Settings {
    let mut settings = Settings::default();
    settings.session_limits.sweep = Duration::from_millis(50);
    settings.connections.sweep = Duration::from_millis(20);
    settings
}

/// A server in a separate process, so that its memory can be measured. The process is this test
/// binary, which runs one test again.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct ChildServer {
    child: std::process::Child,
    pub(crate) address: SocketAddr,
}

#[cfg(target_os = "linux")]
impl ChildServer {
    const ROLE: &str = "BINDPOST_TEST_SERVES";

    /// In the child process, serves and never returns. In the parent, starts a child that runs the test
    /// of this name.
    #[expect(clippy::print_stdout, reason = "the parent reads the port from stdout")]
    pub(crate) fn start(test: &str, settings: impl FnOnce() -> (Settings, ServerLimits)) -> ChildServer {
        use std::io::{BufRead as _, BufReader, Read as _};

        if std::env::var_os(ChildServer::ROLE).is_some() {
            let (settings, limits) = settings();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let served = async {
                let bound = bind("127.0.0.1:0").await.unwrap();
                println!("\nport {}", bound.local_addr().port());
                let (_trigger, drain) = Drain::new();
                bound.serve_until(fixture(limits).0, settings, drain).await
            };
            // The parent's end of this pipe is closed whenever the parent ends.
            std::thread::spawn(|| {
                let _ = std::io::stdin().read(&mut [0]);
                std::process::exit(0);
            });
            runtime.block_on(served).unwrap();
            std::process::exit(0);
        }
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--include-ignored"])
            .env(ChildServer::ROLE, "1")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port =
            lines.find_map(|line| line.unwrap().strip_prefix("port ").map(|port| port.parse().unwrap()));
        ChildServer { child, address: SocketAddr::from(([127, 0, 0, 1], port.unwrap())) }
    }

    /// Returns the memory of the process, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
        kilobytes << 10
    }

    pub(crate) async fn send(&self, ask: &Ask) -> Reply {
        Client::connect(self.address).await.send(ask).await
    }
}

#[cfg(target_os = "linux")]
impl Drop for ChildServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
