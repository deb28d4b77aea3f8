//! The conversations of the server crate, over real sockets: Streamable HTTP, and HTTP+SSE for those
//! with a handshake.
//!
//! The clients behave like real clients, so the same files can be replayed: headers repeat values of
//! the body, each message carries the session id, and a GET stream receives the messages that belong to
//! no call. The clients also check the properties that every response must have.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bindpost_mcp_http::listener::DrainTrigger;
use bindpost_mcp_http::{Settings, bind};
use bindpost_mcp_protocol::{Revision, header, meta};
use bindpost_mcp_server::Server;
use bindpost_mcp_server::testing::{Conversation, ConversationReport, ConversationTransport, play_all};
use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

#[path = "../../../server/tests/it/fixture.rs"]
mod fixture;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/conversations");
/// The timeout for the head of a response.
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn all_conversations_replay_over_http() {
    let connect = async |conversation: &Conversation| -> io::Result<HttpClient> {
        Ok(HttpClient::connect(serve(fixture::server(conversation.server())).await?))
    };
    check(&play_all(&conversations(), &Revision::ALL, connect).await);
}

#[tokio::test]
async fn all_conversations_with_a_handshake_replay_over_http_and_sse() {
    let connect = async |conversation: &Conversation| -> io::Result<SseClient> {
        SseClient::connect(serve(fixture::server(conversation.server())).await?).await
    };
    let with_handshake = Revision::ALL.into_iter().filter(|revision| revision.has_handshake());
    check(&play_all(&conversations(), &with_handshake.collect::<Vec<_>>(), connect).await);
}

fn conversations() -> Vec<Conversation> {
    Conversation::read_all(FOLDER).unwrap()
}

fn check(report: &ConversationReport) {
    assert!(report.played > 0, "nothing was played");
    assert!(report.failures.is_empty(), "{report}");
}

/// A server on its own port. It stops when its client is dropped.
struct Served {
    address: SocketAddr,
    trigger: DrainTrigger,
}

impl Drop for Served {
    fn drop(&mut self) {
        // The second trigger stops the server immediately.
        self.trigger.pull();
        self.trigger.pull();
    }
}

/// Serves with short delays, so that streams begin soon and send keep-alive comments often.
async fn serve(server: Server) -> io::Result<Served> {
    let settings = Settings {
        stream_after: Duration::from_millis(20),
        keep_alive: Duration::from_millis(30),
        ..Settings::default()
    };
    let (address, trigger) = bind("127.0.0.1:0").await?.serve_in_background(server, settings);
    Ok(Served { address, trigger })
}

/// A client of Streamable HTTP.
struct HttpClient {
    server: Served,
    session: Option<Session>,
    status: Option<u16>,
    messages: Messages,
}

struct Session {
    id: String,
    version: String,
}

/// Messages of all streams, in the order they arrive. The reading tasks end when this is dropped.
struct Messages {
    readers: JoinSet<()>,
    sender: UnboundedSender<io::Result<Bytes>>,
    receiver: UnboundedReceiver<io::Result<Bytes>>,
}

impl Messages {
    fn new() -> Messages {
        let (sender, receiver) = unbounded_channel();
        Messages { readers: JoinSet::new(), sender, receiver }
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        self.receiver.recv().await.transpose()
    }
}

impl HttpClient {
    fn connect(server: Served) -> HttpClient {
        HttpClient { server, session: None, status: None, messages: Messages::new() }
    }

    fn request(&self, method: Method) -> http::request::Builder {
        let mut request =
            Request::builder().method(method).uri("/mcp").header("host", self.server.address.to_string());
        if let Some(Session { id, version }) = &self.session {
            request = request.header("mcp-session-id", id);
            // The first two revisions do not have this header.
            if !["2024-11-05", "2025-03-26"].contains(&version.as_str()) {
                request = request.header("mcp-protocol-version", version);
            }
        }
        request
    }

    /// Builds a POST with the headers that the body requires.
    fn post(&self, text: &str, said: &Said, revision: Revision) -> Request<Full<Bytes>> {
        let mut request = self
            .request(Method::POST)
            .header(CONTENT_TYPE, "application/json")
            .header("accept", "application/json, text/event-stream");
        let headers = request.headers_mut().unwrap();
        if let Some(version) = &said.envelope {
            headers.insert("mcp-protocol-version", version.parse().unwrap());
            headers.insert("mcp-method", said.method.parse().unwrap());
            if let Some(name) = &said.name {
                headers.insert("mcp-name", header::encode_value(name).parse().unwrap());
            }
        }
        if said.envelope.is_none() && self.session.is_none() && !revision.has_handshake() {
            headers.insert("mcp-protocol-version", revision.as_str().parse().unwrap());
        }
        request.body(Full::from(text.to_owned())).unwrap()
    }

    /// Opens the stream for messages that belong to no call.
    async fn listen(&mut self) -> io::Result<()> {
        let request = self.request(Method::GET).header("accept", "text/event-stream");
        let response = ask(self.server.address, request.body(Full::default()).unwrap()).await?;
        wrong_unless(response.status() == StatusCode::OK, || {
            format!("GET is answered with {}", response.status())
        })?;
        self.read(response, Said::default())
    }

    /// Reads the events of a response in the background, until it ends.
    fn read(&mut self, response: Response<Incoming>, said: Said) -> io::Result<()> {
        let headers = response.headers();
        wrong_unless(headers.get(CACHE_CONTROL).is_some_and(|value| value == "no-cache"), || {
            "a stream that may be cached".to_owned()
        })?;
        wrong_unless(headers.get("x-accel-buffering").is_some_and(|value| value == "no"), || {
            "a stream that a proxy may hold back".to_owned()
        })?;
        let rules = match (&said.envelope, &self.session) {
            (Some(_), _) => EventRules { ids: false, priming: false },
            (None, session) => {
                EventRules { ids: true, priming: session.as_ref().is_some_and(|s| s.version == "2025-11-25") }
            }
        };
        let sender = self.messages.sender.clone();
        self.messages.readers.spawn(async move {
            if let Err(error) = read_stream(response.into_body(), rules, &said, &sender).await {
                let _ = sender.send(Err(error));
            }
        });
        Ok(())
    }
}

impl ConversationTransport for HttpClient {
    const NAME: &'static str = "http";

    async fn send(&mut self, message: &str, revision: Revision) -> io::Result<()> {
        let said = Said::read(message);
        let response = ask(self.server.address, self.post(message, &said, revision)).await?;
        let status = response.status();
        self.status = Some(status.as_u16());
        if content_type(&response) == "text/event-stream" {
            wrong_unless(status == StatusCode::OK, || format!("a stream with status {status}"))?;
            wrong_unless(said.is_request(), || "a stream answers a notification or response".to_owned())?;
            return self.read(response, said);
        }
        let session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        let json = content_type(&response) == "application/json";
        let body = response.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        if body.is_empty() {
            wrong_unless(status == StatusCode::ACCEPTED, || format!("nothing but status {status}"))?;
        } else {
            wrong_unless(json, || format!("an answer that is no JSON: {body:?}"))?;
            let answer: Value = serde_json::from_slice(&body).map_err(io::Error::other)?;
            said.check_status(status, &answer)?;
            if let Some(version) = answer["result"]["protocolVersion"].as_str() {
                let id = session.ok_or_else(|| wrong("initialize opened no session".to_owned()))?;
                self.session = Some(Session { id, version: version.to_owned() });
            }
            let _ = self.messages.sender.send(Ok(body));
        }
        if said.method == "notifications/initialized" && self.session.is_some() {
            self.listen().await?;
        }
        Ok(())
    }

    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        self.messages.next().await
    }

    fn status(&self) -> Option<u16> {
        self.status
    }
}

/// The parts of a message that the headers and checks need.
#[derive(Clone, Debug, Default)]
struct Said {
    id: Value,
    method: String,
    /// The value that `Mcp-Name` repeats.
    name: Option<String>,
    /// The revision of a modern request.
    envelope: Option<String>,
    is_batch: bool,
}

impl Said {
    fn read(text: &str) -> Said {
        let message = Members::read(text);
        let params = message.member("params");
        let method = message.text("method").unwrap_or_default();
        let name = match method.as_str() {
            "tools/call" | "prompts/get" => Some("name"),
            "resources/read" => Some("uri"),
            "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
            _ => None,
        };
        Said {
            id: message.value("id"),
            // A missing or non-text value cannot be repeated. The server rejects the body for it.
            name: name.map(|member| params.text(member).unwrap_or_default()),
            method,
            envelope: params.member("_meta").text(meta::PROTOCOL_VERSION),
            is_batch: text.trim_start().starts_with('['),
        }
    }

    fn is_request(&self) -> bool {
        self.is_batch || !self.method.is_empty() && !self.id.is_null()
    }

    /// Checks the status of a response that is not a stream.
    fn check_status(&self, status: StatusCode, answer: &Value) -> io::Result<()> {
        let code = answer["error"]["code"].as_i64();
        let allowed: &[u16] = match (code, self.envelope.is_some()) {
            (None, _) => &[200],
            (Some(-32700 | -32600 | -32020 | -32021 | -32022), _) => &[400],
            (Some(-32601), true) => &[404],
            // An invalid envelope is 400. Other invalid parameters are JSON-RPC errors with status 200.
            (Some(-32602), _) => &[200, 400],
            (Some(429), _) => &[429],
            (Some(_), _) => &[200],
        };
        wrong_unless(allowed.contains(&status.as_u16()), || format!("status {status} for {answer}"))
    }
}

/// The members of an object, or none if the text is not an object. Values that are not read may be any JSON.
#[derive(Default)]
struct Members(BTreeMap<String, Box<RawValue>>);

impl Members {
    fn read(text: &str) -> Members {
        Members(serde_json::from_str(text).unwrap_or_default())
    }

    fn member(&self, name: &str) -> Members {
        self.0.get(name).map(|raw| Members::read(raw.get())).unwrap_or_default()
    }

    fn value(&self, name: &str) -> Value {
        self.0.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.value(name).as_str().map(str::to_owned)
    }
}

/// The form of the events of a stream.
#[derive(Clone, Copy)]
struct EventRules {
    /// Events have ids, so that the stream can be resumed.
    ids: bool,
    /// The first event has an id and a reconnection delay but no data.
    priming: bool,
}

/// Reads a stream to its end and forwards its messages.
async fn read_stream(
    mut body: Incoming,
    rules: EventRules,
    said: &Said,
    sender: &UnboundedSender<io::Result<Bytes>>,
) -> io::Result<()> {
    let mut events = EventReader::default();
    let mut primed = false;
    let mut answered = false;
    while let Some(event) = events.next(&mut body).await? {
        wrong_unless(!answered, || format!("one more event after the answer: {event:?}"))?;
        wrong_unless(event.id.is_some() == rules.ids, || {
            format!("an event with or without an id: {event:?}")
        })?;
        if rules.priming && !primed {
            primed = true;
            let is_priming = event.data.is_empty() && event.retry.is_some();
            wrong_unless(is_priming, || format!("the first event does not prime: {event:?}"))?;
            continue;
        }
        wrong_unless(!event.data.is_empty(), || "an event without data".to_owned())?;
        wrong_unless(event.name == "message", || format!("an event of another kind: {event:?}"))?;
        let message: Value = serde_json::from_str(&event.data).map_err(io::Error::other)?;
        answered = message.get("method").is_none();
        let of_call = !said.method.is_empty();
        wrong_unless(!answered || of_call && message["id"] == said.id, || {
            format!("an answer on the stream of something else: {message}")
        })?;
        let _ = sender.send(Ok(event.data.into()));
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Event {
    name: String,
    id: Option<String>,
    retry: Option<String>,
    data: String,
}

#[derive(Default)]
struct EventReader {
    unread: BytesMut,
}

impl EventReader {
    /// Returns the next event, or `None` at the end. Comments are skipped.
    async fn next(&mut self, body: &mut Incoming) -> io::Result<Option<Event>> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|two| two == b"\n\n") {
                let block = self.unread.split_to(end + 2);
                match parse_event(std::str::from_utf8(&block).map_err(io::Error::other)?)? {
                    Some(event) => return Ok(Some(event)),
                    None => continue,
                }
            }
            match body.frame().await {
                Some(frame) => {
                    let data = frame.map_err(io::Error::other)?.into_data().unwrap_or_default();
                    self.unread.extend_from_slice(&data);
                }
                None if self.unread.is_empty() => return Ok(None),
                None => return Err(wrong("the stream ends inside an event".to_owned())),
            }
        }
    }
}

fn parse_event(block: &str) -> io::Result<Option<Event>> {
    let mut event = Event::default();
    let mut lines = Vec::new();
    let mut is_comment = true;
    for line in block.lines().filter(|line| !line.is_empty() && !line.starts_with(':')) {
        is_comment = false;
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "event" => event.name = value,
            "id" => event.id = Some(value),
            "retry" => event.retry = Some(value),
            "data" => lines.push(value),
            _ => return Err(wrong(format!("unknown SSE field: {line}"))),
        }
    }
    event.data = lines.join("\n");
    Ok((!is_comment).then_some(event))
}

/// A client of HTTP+SSE.
struct SseClient {
    server: Served,
    endpoint: String,
    messages: Messages,
}

impl SseClient {
    async fn connect(server: Served) -> io::Result<SseClient> {
        let address = server.address;
        let request =
            Request::get("/sse").header("host", address.to_string()).header("accept", "text/event-stream");
        let response = ask(address, request.body(Full::default()).unwrap()).await?;
        wrong_unless(content_type(&response) == "text/event-stream", || "no stream".to_owned())?;
        let mut body = response.into_body();
        let mut events = EventReader::default();
        let first = events.next(&mut body).await?.unwrap_or_default();
        wrong_unless(first.name == "endpoint", || format!("the stream begins with {first:?}"))?;
        let mut messages = Messages::new();
        let sender = messages.sender.clone();
        messages.readers.spawn(async move {
            loop {
                let passed = match events.next(&mut body).await {
                    Ok(Some(event)) if event.name == "message" && event.id.is_none() => {
                        sender.send(Ok(event.data.into()))
                    }
                    Ok(Some(event)) => {
                        sender.send(Err(wrong(format!("an event of another kind: {event:?}"))))
                    }
                    Ok(None) => return,
                    Err(error) => sender.send(Err(error)),
                };
                if passed.is_err() {
                    return;
                }
            }
        });
        // The address is relative to `/sse`.
        Ok(SseClient { server, endpoint: format!("/{}", first.data), messages })
    }
}

impl ConversationTransport for SseClient {
    const NAME: &'static str = "sse";

    async fn send(&mut self, message: &str, _: Revision) -> io::Result<()> {
        let request = Request::post(&self.endpoint)
            .header("host", self.server.address.to_string())
            .header(CONTENT_TYPE, "application/json")
            .header("accept", "*/*");
        let response =
            ask(self.server.address, request.body(Full::from(message.to_owned())).unwrap()).await?;
        let status = response.status();
        wrong_unless(status == StatusCode::ACCEPTED, || format!("a post is answered with {status}"))?;
        let body = response.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        wrong_unless(body.is_empty(), || format!("a post is answered with {body:?}"))
    }

    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        self.messages.next().await
    }
}

/// Sends a request on a new connection and waits for the head of the response.
async fn ask(address: SocketAddr, request: Request<Full<Bytes>>) -> io::Result<Response<Incoming>> {
    let answered = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(TcpStream::connect(address).await?))
            .await
            .map_err(io::Error::other)?;
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(io::Error::other)
    };
    tokio::time::timeout(PATIENCE, answered).await.map_err(|_| wrong("no answer".to_owned()))?
}

fn content_type(response: &Response<Incoming>) -> &str {
    response.headers().get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap())
}

fn wrong(what: String) -> io::Error {
    io::Error::other(what)
}

fn wrong_unless(right: bool, what: impl FnOnce() -> String) -> io::Result<()> {
    if right { Ok(()) } else { Err(wrong(what())) }
}
