//! [`Endpoint`]: POST, GET, DELETE; one message in, one reply out.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bindpost_mcp_protocol::jsonrpc::{self, INVALID_PARAMS, INVALID_REQUEST, SESSION_NOT_FOUND};
use bindpost_mcp_protocol::{
    DecodeError, ErrorObject, Incoming as Decoded, Message, Notification, Request, RequestId, Revision,
};
use bindpost_mcp_server::{
    Answer, Caller, Delivery, Dispatch, Exchange, Peer, ProtocolError, Refusal, Running, Server, Stream,
    join_batch,
};
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;

use crate::body::{BodyReader, ReplyBody, Unread};
use crate::events::{self, Events};
use crate::guard::Guard;
use crate::headers::{Accepts, McpHeaders, SESSION_ID, Version};
use crate::pipes::Pipes;
use crate::sessions::{Entry, Sessions};
use crate::settings::{SessionMode, Settings};

/// An answer.
pub(crate) type Reply = Response<ReplyBody>;

/// An answer that says no; boxed, because most requests never see one.
type No = Box<Reply>;

/// An MCP server behind HTTP.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) server: Server,
    pub(crate) settings: Settings,
    guard: Guard,
    pub(crate) sessions: Sessions,
    pub(crate) pipes: Pipes,
}

/// What an accepted message belongs to.
enum Era {
    /// It stands alone, as 2026-07-28 defines it.
    Alone(Peer),
    /// It belongs to a session.
    Session(Arc<Entry>),
    /// It is of a revision with a handshake, but there is no session.
    Sessionless(Revision),
}

impl Endpoint {
    /// Serves `server` this way.
    pub fn new(server: Server, settings: Settings) -> Arc<Endpoint> {
        Arc::new(Endpoint {
            guard: Guard::new(&settings.allowed_hosts, &settings.allowed_origins),
            sessions: Sessions::new(settings.session_limits.clone()),
            pipes: Pipes::default(),
            server,
            settings,
        })
    }

    /// Looks for expired sessions now and then; runs until it is dropped.
    pub async fn sweep(&self) {
        let mut ticks = tokio::time::interval(self.settings.session_limits.sweep);
        loop {
            ticks.tick().await;
            self.sessions.sweep();
        }
    }

    /// Ends what would stay open for ever: streams without a call, listeners.
    pub fn drain(&self) {
        self.server.shut_down();
        self.sessions.end_streams();
        self.pipes.end();
    }

    /// Answers one HTTP request.
    pub fn handle(self: Arc<Self>, request: http::Request<Incoming>) -> Handling {
        let (parts, body) = request.into_parts();
        let stage = self.begin(&parts, body);
        Handling { endpoint: self, parts, stage }
    }

    /// The checks that need no body, and what answers without one.
    fn begin(self: &Arc<Self>, parts: &Parts, body: Incoming) -> Stage {
        let headers = McpHeaders::new(&parts.headers);
        if let Some(reason) = self.guard.refuses(&parts.uri, &headers) {
            return answered(refuse(StatusCode::FORBIDDEN, None, INVALID_REQUEST, reason));
        }
        answered(match (self.route(parts), &parts.method) {
            (Route::Mcp | Route::SseMessage, &Method::POST) => return self.begin_reading(&headers, body),
            (Route::Mcp, &Method::GET) => self.get(parts, &headers),
            (Route::Mcp, &Method::DELETE) => self.delete(parts, &headers),
            (Route::Mcp, &Method::OPTIONS) => self.options(parts, "GET, POST, DELETE, OPTIONS"),
            (Route::Mcp, _) => not_allowed("GET, POST, DELETE, OPTIONS"),
            (Route::Sse, &Method::GET) => self.open_pipe(parts),
            (Route::Sse, &Method::OPTIONS) => self.options(parts, "GET, OPTIONS"),
            (Route::Sse, _) => not_allowed("GET, OPTIONS"),
            (Route::SseMessage, &Method::OPTIONS) => self.options(parts, "POST, OPTIONS"),
            (Route::SseMessage, _) => not_allowed("POST, OPTIONS"),
            (Route::Unknown, _) => {
                let reason = format!("nothing is served here; MCP is at {}", self.settings.path);
                refuse(StatusCode::NOT_FOUND, None, INVALID_REQUEST, reason)
            }
        })
    }

    fn begin_reading(&self, headers: &McpHeaders<'_>, body: Incoming) -> Stage {
        let reason = if !headers.has_json() {
            "the Content-Type must be application/json"
        } else if headers.is_encoded() {
            "compressed bodies are not read; send the JSON as it is"
        } else {
            return Stage::Reading(BodyReader::new(body, self.settings.max_body, self.settings.body_timeout));
        };
        answered(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, INVALID_REQUEST, reason))
    }

    /// The body could not be read.
    fn unread(&self, unread: Unread) -> Reply {
        let (status, reason) = match unread {
            Unread::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is larger than {} bytes", self.settings.max_body),
            ),
            Unread::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body came too slowly".to_owned()),
            Unread::Broken => (StatusCode::BAD_REQUEST, "the body could not be read".to_owned()),
        };
        let mut reply = refuse(status, None, INVALID_REQUEST, reason);
        // What is left of the body would be taken for the next request.
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        reply
    }

    /// The body is here.
    fn take(self: &Arc<Self>, parts: &Parts, body: Bytes, context: &mut Context<'_>) -> Taken {
        match self.route(parts) {
            Route::SseMessage => self.post_to_pipe(parts, body),
            _ => self.post(parts, body, context),
        }
    }

    fn route(&self, parts: &Parts) -> Route {
        let path = parts.uri.path();
        let path = if path.len() > 1 { path.strip_suffix('/').unwrap_or(path) } else { path };
        if path == self.settings.path {
            return Route::Mcp;
        }
        match &self.settings.sse_paths {
            Some((sse, _)) if path == sse => Route::Sse,
            Some((_, message)) if path == message => Route::SseMessage,
            _ => Route::Unknown,
        }
    }

    fn options(&self, parts: &Parts, allow: &'static str) -> Reply {
        let mut reply = empty(StatusCode::NO_CONTENT);
        let headers = reply.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static(allow));
        self.guard.add_preflight(&parts.headers, headers);
        reply
    }

    pub(crate) fn caller(&self, parts: &Parts) -> Caller {
        match &self.settings.identify {
            None => Caller::ANONYMOUS,
            Some(identify) => identify(parts),
        }
    }

    fn post(self: &Arc<Self>, parts: &Parts, body: Bytes, context: &mut Context<'_>) -> Taken {
        let headers = &McpHeaders::new(&parts.headers);
        Taken::Reply(match jsonrpc::decode(body) {
            Ok(Decoded::One(Message::Request(request))) => {
                let accepts = if self.settings.json_only { Accepts::JsonOnly } else { headers.accepts() };
                match self.start(parts, headers, accepts, request) {
                    Ok((Started::Answer(answer), era)) => self.answer(answer, &era, accepts),
                    Ok((Started::Running(running), era)) => match run_once(running, context) {
                        Ok(answer) => self.answer(answer, &era, accepts),
                        Err(running) => {
                            let endpoint = self.clone();
                            return Taken::Later(Box::pin(async move {
                                endpoint.stream(running, era, accepts).await
                            }));
                        }
                    },
                    Ok((Started::Opened(reply), _)) => reply,
                    Err(no) => *no,
                }
            }
            Ok(Decoded::One(Message::Notification(notification))) => {
                self.take_notification(parts, headers, &notification)
            }
            Ok(Decoded::One(Message::Response(response))) => match self.session_of(parts, headers) {
                Ok(Some(entry)) => {
                    entry.session.answered(response);
                    empty(StatusCode::ACCEPTED)
                }
                Ok(None) => {
                    let reason = "a response belongs to a session; none is named";
                    refuse(StatusCode::BAD_REQUEST, Some(&response.id), INVALID_REQUEST, reason)
                }
                Err(no) => *no,
            },
            Ok(Decoded::Batch(batch)) => return self.take_batch(parts, headers, batch),
            Err(error) => refuse_object(StatusCode::BAD_REQUEST, error.id.as_ref(), &error.error),
        })
    }

    /// Finds out what a request belongs to and dispatches it.
    fn start(
        self: &Arc<Self>,
        parts: &Parts,
        headers: &McpHeaders<'_>,
        accepts: Accepts,
        request: Request,
    ) -> Result<(Started, Era), No> {
        let era = self.era(parts, headers, &request)?;
        let caller = self.caller(parts);
        let peer = match &era {
            Era::Alone(peer) => peer.clone(),
            Era::Session(entry) => Peer::Session(entry.session.clone()),
            Era::Sessionless(revision) => Peer::Alone(*revision),
        };
        let delivery = match accepts {
            Accepts::JsonOnly => Delivery::None,
            _ => Delivery::OnDemand { keeps: matches!(era, Era::Session(_)) },
        };
        let id_of_refused = request.id.clone();
        let started = match self.server.dispatch(request, Exchange { peer, caller, delivery }, headers) {
            Dispatch::Answer(answer) => Started::Answer(answer),
            Dispatch::Running(running) => Started::Running(running),
            Dispatch::Opened(session, answer) => {
                let mut reply = json_reply(StatusCode::OK, ReplyBody::answer(answer));
                if self.settings.sessions != SessionMode::Off {
                    let Ok(id) = self.sessions.add(session) else {
                        return Err(Box::new(too_many_sessions(Some(&id_of_refused))));
                    };
                    if let Ok(id) = HeaderValue::try_from(id) {
                        reply.headers_mut().insert(SESSION_ID, id);
                    }
                }
                Started::Opened(reply)
            }
        };
        Ok((started, era))
    }

    /// Tells the eras apart, and checks what each demands before dispatch.
    fn era(&self, parts: &Parts, headers: &McpHeaders<'_>, request: &Request) -> Result<Era, No> {
        let version = headers.version();
        let has_envelope = Peer::has_envelope(request.params());
        let claims_to_stand_alone = has_envelope
            || request.method() == "server/discover"
            || request.method() != "initialize" && claims_new_revision(version, headers);
        if claims_to_stand_alone {
            let refuse = |error: &ProtocolError| {
                let answer = Answer::refused(&request.id, error, Revision::DISCOVERABLE[0]);
                Box::new(self.json(answer, true))
            };
            if has_envelope {
                headers.check_version(request).map_err(|error| refuse(&error))?;
            }
            let peer = Peer::from_envelope(request.params()).map_err(|error| refuse(&error))?;
            headers.check_method(request).map_err(|error| refuse(&error))?;
            return Ok(Era::Alone(peer));
        }
        // Negotiation happens in the body; a client that comes back with an old session id starts anew.
        if request.method() == "initialize" {
            return Ok(Era::Sessionless(Revision::LATEST_WITH_HANDSHAKE));
        }
        match self.session_of(parts, headers)? {
            Some(entry) => Ok(Era::Session(entry)),
            None => self.sessionless(headers, Some(&request.id)).map(Era::Sessionless),
        }
    }

    /// The revision of a message without a session, where that is allowed.
    fn sessionless(&self, headers: &McpHeaders<'_>, id: Option<&RequestId>) -> Result<Revision, No> {
        if self.settings.sessions == SessionMode::Required {
            let reason = "the Mcp-Session-Id header is missing; send `initialize` first";
            return Err(Box::new(refuse(StatusCode::BAD_REQUEST, id, INVALID_REQUEST, reason)));
        }
        match headers.version() {
            Version::Known(revision) if revision.has_handshake() => Ok(revision),
            _ => Ok(Revision::WITHOUT_HEADER),
        }
    }

    /// The session the headers name; `None` if they name none.
    fn session_of(&self, parts: &Parts, headers: &McpHeaders<'_>) -> Result<Option<Arc<Entry>>, No> {
        if self.settings.sessions == SessionMode::Off {
            return Ok(None);
        }
        let Some(id) = headers.session_id() else { return Ok(None) };
        let Some(entry) = self.sessions.find(id, &self.caller(parts)) else {
            let reason = "unknown or expired session; send `initialize` again";
            return Err(Box::new(refuse(StatusCode::NOT_FOUND, None, SESSION_NOT_FOUND, reason)));
        };
        match headers.version() {
            Version::Unknown(version) => {
                let known = Revision::ALL.map(Revision::as_str).join(", ");
                let reason = format!("unsupported MCP-Protocol-Version {version:?}; known: {known}");
                Err(Box::new(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason)))
            }
            _ => Ok(Some(entry)),
        }
    }

    fn take_notification(
        &self,
        parts: &Parts,
        headers: &McpHeaders<'_>,
        notification: &Notification,
    ) -> Reply {
        // Nothing of 2026-07-28 is left to say by notification over HTTP: a closed connection cancels.
        if Peer::has_envelope(notification.params()) || claims_new_revision(headers.version(), headers) {
            return empty(StatusCode::ACCEPTED);
        }
        match self.session_of(parts, headers) {
            Ok(Some(entry)) => self.server.notify(notification, &Peer::Session(entry.session.clone())),
            Ok(None) => {
                if let Err(no) = self.sessionless(headers, None) {
                    return *no;
                }
            }
            Err(no) => return *no,
        }
        empty(StatusCode::ACCEPTED)
    }

    /// A batch of 2025-03-26: one array with all answers.
    fn take_batch(
        self: &Arc<Self>,
        parts: &Parts,
        headers: &McpHeaders<'_>,
        batch: Vec<Result<Message, DecodeError>>,
    ) -> Taken {
        let refuse =
            |reason: &str| Taken::Reply(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason));
        let entry = match self.session_of(parts, headers) {
            Ok(entry) => entry,
            Err(no) => return Taken::Reply(*no),
        };
        let revision = match (&entry, self.sessionless(headers, None)) {
            (Some(entry), _) => entry.session.revision(),
            (None, Ok(revision)) => revision,
            (None, Err(_)) => Revision::LATEST_WITH_HANDSHAKE,
        };
        let stands_alone = |message: &Result<Message, DecodeError>| match message {
            Ok(Message::Request(request)) => Peer::has_envelope(request.params()),
            _ => false,
        };
        let opens = |message: &Result<Message, DecodeError>| match message {
            Ok(Message::Request(request)) => request.method() == "initialize",
            _ => false,
        };
        if !revision.allows_batches() || batch.iter().any(stands_alone) {
            return refuse("batches belong to revision 2025-03-26 only");
        }
        if batch.iter().any(opens) {
            return refuse("`initialize` must not be part of a batch");
        }
        let mut answers: Vec<Bytes> = Vec::new();
        let mut later = Vec::new();
        for message in batch {
            match message {
                Ok(Message::Request(request)) => {
                    let peer = match &entry {
                        Some(entry) => Peer::Session(entry.session.clone()),
                        None => Peer::Alone(revision),
                    };
                    // One array is the whole answer, so nothing can be sent before it.
                    let exchange = Exchange { peer, caller: self.caller(parts), delivery: Delivery::None };
                    match self.server.dispatch(request, exchange, headers) {
                        Dispatch::Answer(answer) | Dispatch::Opened(_, answer) => {
                            answers.push(answer.into_bytes());
                        }
                        Dispatch::Running(running) => later.push(running),
                    }
                }
                Ok(Message::Notification(notification)) => {
                    if let Some(entry) = &entry {
                        self.server.notify(&notification, &Peer::Session(entry.session.clone()));
                    }
                }
                Ok(Message::Response(response)) => {
                    if let Some(entry) = &entry {
                        entry.session.answered(response);
                    }
                }
                Err(error) => answers.push(jsonrpc::encode_error(error.id.as_ref(), &error.error).into()),
            }
        }
        Taken::Later(Box::pin(async move {
            for answer in futures_util::future::join_all(later).await.into_iter().flatten() {
                answers.push(answer.into_bytes());
            }
            if answers.is_empty() {
                return empty(StatusCode::ACCEPTED);
            }
            json_reply(StatusCode::OK, ReplyBody::shared(join_batch(&answers)))
        }))
    }

    /// Answers what was done at once: by JSON, unless the client would rather have a stream.
    fn answer(&self, answer: Answer, era: &Era, accepts: Accepts) -> Reply {
        if accepts != Accepts::StreamsFirst || answer.refusal().is_some() {
            return self.json(answer, era.stands_alone());
        }
        let limits = self.server.stream_limits();
        match era {
            Era::Session(entry) => {
                let stream = Arc::new(entry.session.keeping_stream(limits));
                let Some(number) = entry.keep_stream(&stream, true, self.settings.session_limits.streams)
                else {
                    return self.json(answer, false);
                };
                stream.finish(answer.into_bytes());
                self.session_events(entry, &stream, number, None)
            }
            Era::Alone(_) | Era::Sessionless(_) => {
                let stream = Arc::new(Stream::new(limits));
                stream.finish(answer.into_bytes());
                self.events(Events::attach(stream, None, self.settings.keep_alive))
            }
        }
    }

    /// Answers a call that was not done at once: by JSON if it ends soon without a word, else by a stream.
    async fn stream(self: &Arc<Self>, running: Running, era: Era, accepts: Accepts) -> Reply {
        if accepts == Accepts::JsonOnly {
            return match running.await {
                Some(answer) => self.json(answer, era.stands_alone()),
                None => empty(StatusCode::ACCEPTED),
            };
        }
        match era {
            Era::Session(entry) => self.stream_in_session(running, &entry).await,
            Era::Alone(_) | Era::Sessionless(_) => self.stream_alone(running, era.stands_alone()).await,
        }
    }

    /// The call lives and dies with the connection.
    async fn stream_alone(&self, mut running: Running, stands_alone: bool) -> Reply {
        let mut patience = Box::pin(tokio::time::sleep(self.settings.stream_after));
        let ended = poll_fn(|context| {
            let polled = Pin::new(&mut running).poll(context);
            if running.stream().is_some() {
                // The answer, if it is there already, follows the messages.
                return Poll::Ready(Some(polled));
            }
            match polled {
                Poll::Ready(answer) => Poll::Ready(Some(Poll::Ready(answer))),
                Poll::Pending => patience.as_mut().poll(context).map(|()| None),
            }
        })
        .await;
        match (ended, running.stream().cloned()) {
            (Some(Poll::Ready(Some(answer))), None) => self.json(answer, stands_alone),
            (Some(Poll::Ready(None)), None) => empty(StatusCode::ACCEPTED),
            (Some(Poll::Ready(answer)), Some(stream)) => {
                match answer {
                    Some(answer) => stream.finish(answer.into_bytes()),
                    None => stream.end(),
                }
                self.events(Events::attach(stream, None, self.settings.keep_alive))
            }
            (Some(Poll::Pending) | None, _) => {
                let stream = running.open_stream().cloned();
                let events = stream.and_then(|stream| Events::attach(stream, None, self.settings.keep_alive));
                self.events(events.map(|events| events.driving(running)))
            }
        }
    }

    /// The call goes on without the connection; whoever comes back gets the rest.
    async fn stream_in_session(&self, running: Running, entry: &Arc<Entry>) -> Reply {
        let Some(stream) = running.open_stream().cloned() else {
            return empty(StatusCode::ACCEPTED);
        };
        let Some(number) = entry.keep_stream(&stream, true, self.settings.session_limits.streams) else {
            let error = ProtocolError::Busy { retry_after_seconds: 1 };
            let answer = Answer::refused(running.id(), &error, entry.session.revision());
            return self.json(answer, false);
        };
        let answered = stream.clone();
        tokio::spawn(async move {
            match running.await {
                Some(answer) => answered.finish(answer.into_bytes()),
                None => answered.end(),
            }
        });
        let ready = poll_fn(|context| stream.poll_ready(context));
        let _ = tokio::time::timeout(self.settings.stream_after, ready).await;
        if let Some(only) = stream.take_only() {
            entry.forget_stream(number);
            return match only {
                Some(answer) => json_reply(StatusCode::OK, ReplyBody::shared(answer)),
                None => empty(StatusCode::ACCEPTED),
            };
        }
        self.session_events(entry, &stream, number, None)
    }

    /// A stream of a session as an answer.
    fn session_events(&self, entry: &Entry, stream: &Arc<Stream>, number: u32, after: Option<u64>) -> Reply {
        let hung_up = stream.is_hung_up() && after.is_none();
        let events = Events::attach(stream.clone(), after, self.settings.keep_alive);
        if hung_up {
            // Attaching begins a new visit; the call asked for the visit before to end.
            stream.hang_up();
        }
        self.events(events.map(|events| {
            let events = events.with_ids(number);
            match after {
                None if entry.session.revision().primes_streams() => {
                    events.opening(events::priming(number, self.settings.retry))
                }
                _ => events,
            }
        }))
    }

    pub(crate) fn events(&self, events: Option<Events>) -> Reply {
        let Some(events) = events else {
            let reason = "the event id is not known (any more)";
            return refuse(StatusCode::BAD_REQUEST, None, INVALID_PARAMS, reason);
        };
        let mut reply = Response::new(ReplyBody::events(events));
        let headers = reply.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        reply
    }

    /// The stream of a session for what belongs to no call, or a cut stream from where it was cut.
    fn get(self: &Arc<Self>, parts: &Parts, headers: &McpHeaders<'_>) -> Reply {
        if self.settings.json_only
            || self.settings.sessions == SessionMode::Off
            || claims_new_revision(headers.version(), headers)
        {
            return not_allowed(if self.settings.sessions == SessionMode::Off {
                "POST, OPTIONS"
            } else {
                "POST, DELETE, OPTIONS"
            });
        }
        let entry = match self.session_of(parts, headers) {
            Ok(Some(entry)) => entry,
            Ok(None) => {
                let reason = "the Mcp-Session-Id header is missing; send `initialize` first";
                return refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason);
            }
            Err(no) => return *no,
        };
        if headers.accepts() == Accepts::JsonOnly {
            let reason = "GET answers with text/event-stream; accept it";
            return refuse(StatusCode::NOT_ACCEPTABLE, None, INVALID_REQUEST, reason);
        }
        if let Some(id) = headers.last_event_id() {
            let found = events::parse_event_id(id)
                .and_then(|(number, after)| entry.stream(number).map(|stream| (number, stream, after)));
            let Some((number, stream, after)) = found else { return self.events(None) };
            if stream.has_nothing_after(after) {
                // Nothing is left to deliver: the call was cancelled, or all of it arrived. Clients take
                // anything but this for a reason to come back once more.
                return not_allowed("POST, DELETE, OPTIONS");
            }
            return self.session_events(&entry, &stream, number, Some(after));
        }
        // A stream of its own for every GET: one that took over from another would make two connections
        // of a client push each other out. The newest one gets the messages.
        let stream = Arc::new(entry.session.keeping_stream(self.server.stream_limits()));
        let Some(number) = entry.keep_stream(&stream, false, self.settings.session_limits.streams) else {
            return busy(None);
        };
        self.server.attach_stream(&entry.session, &stream);
        self.session_events(&entry, &stream, number, None)
    }

    /// Ends a session.
    fn delete(&self, parts: &Parts, headers: &McpHeaders<'_>) -> Reply {
        if self.settings.sessions == SessionMode::Off || claims_new_revision(headers.version(), headers) {
            return not_allowed("POST, OPTIONS");
        }
        match self.session_of(parts, headers) {
            Ok(Some(entry)) => {
                self.sessions.remove(&entry);
                empty(StatusCode::NO_CONTENT)
            }
            Ok(None) => {
                let reason = "the Mcp-Session-Id header is missing";
                refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason)
            }
            Err(no) => *no,
        }
    }

    fn json(&self, answer: Answer, stands_alone: bool) -> Reply {
        let status = match answer.refusal() {
            None | Some(Refusal::InBand) => StatusCode::OK,
            Some(Refusal::BadRequest) => StatusCode::BAD_REQUEST,
            // From 2026-07-28 on the status tells; before, clients look at the body only.
            Some(Refusal::UnknownMethod) if stands_alone => StatusCode::NOT_FOUND,
            Some(Refusal::UnknownMethod) => StatusCode::OK,
            Some(Refusal::Busy { .. }) => StatusCode::TOO_MANY_REQUESTS,
        };
        let retry_after = match answer.refusal() {
            Some(Refusal::Busy { retry_after_seconds }) => Some(retry_after_seconds),
            _ => None,
        };
        let mut reply = json_reply(status, ReplyBody::answer(answer));
        if let Some(seconds) = retry_after {
            reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        reply
    }
}

/// An HTTP request on its way to its answer. Most get there when they are polled once.
#[derive(Debug)]
pub struct Handling {
    endpoint: Arc<Endpoint>,
    parts: Parts,
    stage: Stage,
}

/// How far a request is.
enum Stage {
    Reading(BodyReader),
    Later(Later),
    /// Answered without a look at its body.
    Answered(Option<No>),
}

/// A reply that takes its time.
pub(crate) type Later = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// What became of a body.
pub(crate) enum Taken {
    Reply(Reply),
    Later(Later),
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stage::Reading(_) => "Reading",
            Stage::Later(_) => "Later",
            Stage::Answered(_) => "Answered",
        })
    }
}

impl Future for Handling {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Reply, Infallible>> {
        let this = self.get_mut();
        let mut reply = loop {
            let taken = match &mut this.stage {
                Stage::Reading(reader) => match ready!(reader.poll(context)) {
                    Ok(body) => this.endpoint.take(&this.parts, body, context),
                    Err(unread) => Taken::Reply(this.endpoint.unread(unread)),
                },
                Stage::Later(later) => Taken::Reply(ready!(later.as_mut().poll(context))),
                Stage::Answered(reply) => match reply.take() {
                    Some(reply) => Taken::Reply(*reply),
                    None => return Poll::Pending,
                },
            };
            match taken {
                Taken::Reply(reply) => break reply,
                Taken::Later(later) => this.stage = Stage::Later(later),
            }
        };
        this.endpoint.guard.add_cors(&this.parts.headers, reply.headers_mut());
        Poll::Ready(Ok(reply))
    }
}

enum Route {
    Mcp,
    Sse,
    SseMessage,
    Unknown,
}

enum Started {
    Answer(Answer),
    Running(Running),
    Opened(Reply),
}

impl Era {
    fn stands_alone(&self) -> bool {
        matches!(self, Era::Alone(_))
    }
}

/// Whether the version header names a revision without a handshake, or one nobody knows and no session.
fn claims_new_revision(version: Version<'_>, headers: &McpHeaders<'_>) -> bool {
    match version {
        Version::Absent => false,
        Version::Known(revision) => !revision.has_handshake(),
        Version::Unknown(_) => headers.session_id().is_none(),
    }
}

/// Polls a call once: most are done by then, and have said nothing before.
#[expect(clippy::result_large_err, reason = "handed on to the stream, not an error")]
fn run_once(mut running: Running, context: &mut Context<'_>) -> Result<Answer, Running> {
    match Pin::new(&mut running).poll(context) {
        Poll::Ready(Some(answer)) => match running.stream() {
            None => Ok(answer),
            Some(stream) => {
                stream.finish(answer.into_bytes());
                Err(running)
            }
        },
        _ => Err(running),
    }
}

fn answered(reply: Reply) -> Stage {
    Stage::Answered(Some(Box::new(reply)))
}

fn json_reply(status: StatusCode, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(ReplyBody::empty());
    *reply.status_mut() = status;
    reply
}

/// An error with a JSON-RPC body.
pub(crate) fn refuse(
    status: StatusCode,
    id: Option<&RequestId>,
    code: i64,
    reason: impl Into<String>,
) -> Reply {
    refuse_object(status, id, &ErrorObject::new(code, reason))
}

fn refuse_object(status: StatusCode, id: Option<&RequestId>, error: &ErrorObject) -> Reply {
    json_reply(status, ReplyBody::once(jsonrpc::encode_error(id, error)))
}

fn not_allowed(allow: &'static str) -> Reply {
    let reason = format!("this method is not served here; use {allow}");
    let mut reply = refuse(StatusCode::METHOD_NOT_ALLOWED, None, INVALID_REQUEST, reason);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    reply
}

fn busy(id: Option<&RequestId>) -> Reply {
    let mut reply = refuse(StatusCode::TOO_MANY_REQUESTS, id, 429, "too many streams in this session");
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}

pub(crate) fn too_many_sessions(id: Option<&RequestId>) -> Reply {
    let reason = "too many sessions are open; try again later";
    let mut reply = refuse(StatusCode::SERVICE_UNAVAILABLE, id, 503, reason);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    reply
}
