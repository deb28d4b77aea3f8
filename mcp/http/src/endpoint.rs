//! [`Endpoint`]: POST, GET, DELETE; one message in, one reply out.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bindpost_mcp_protocol::jsonrpc::{self, INVALID_REQUEST};
use bindpost_mcp_protocol::{DecodeError, Incoming as Decoded, Message, Notification, Request, Revision};
use bindpost_mcp_server::{
    Answer, Caller, Delivery, Dispatch, Exchange, Peer, Running, Server, join_batch, refuse_batch,
};
use bytes::Bytes;
use http::header::{ALLOW, CONNECTION};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use hyper::body::Incoming;

use crate::body::{BodyReader, ReplyBody, Unread};
use crate::era::{Era, claims_new_revision};
use crate::events;
use crate::guard::Guard;
use crate::headers::{Accepts, McpHeaders, SESSION_ID};
use crate::pipes::Pipes;
use crate::reply::{
    No, Reply, busy, empty, json_reply, not_allowed, refuse, refuse_object, too_many_sessions,
};
use crate::sessions::Sessions;
use crate::settings::{SessionMode, Settings};
use crate::streaming::run_once;

/// An MCP server behind HTTP.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) server: Server,
    pub(crate) settings: Settings,
    guard: Guard,
    pub(crate) sessions: Sessions,
    pub(crate) pipes: Pipes,
    pub(crate) draining: AtomicBool,
}

impl Endpoint {
    /// Serves `server` this way.
    pub fn new(server: Server, settings: Settings) -> Arc<Endpoint> {
        Arc::new(Endpoint {
            guard: Guard::new(&settings.allowed_hosts, &settings.allowed_origins),
            sessions: Sessions::new(settings.session_limits.clone()),
            pipes: Pipes::default(),
            draining: AtomicBool::new(false),
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
        self.draining.store(true, Ordering::SeqCst);
        self.server.shut_down();
        self.sessions.end_streams();
        self.pipes.drain(self.settings.connections.drain);
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
        if let Some(name) = headers.repeated {
            let reason = format!("header {name} is there twice");
            return answered(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason));
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
        self.guard.add_cors(&parts.headers, headers);
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
            Ok(Decoded::One(Message::Response(response))) => match self.session_of(parts, headers, None) {
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
            Ok(Decoded::Batch(batch)) => return self.take_batch(parts, headers, batch, context),
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
        match self.session_of(parts, headers, None) {
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
        context: &mut Context<'_>,
    ) -> Taken {
        let entry = match self.session_of(parts, headers, None) {
            Ok(entry) => entry,
            Err(no) => return Taken::Reply(*no),
        };
        let revision = match (&entry, self.sessionless(headers, None)) {
            (Some(entry), _) => entry.session.revision(),
            (None, Ok(revision)) => revision,
            (None, Err(_)) => Revision::LATEST_WITH_HANDSHAKE,
        };
        if let Some(reason) = refuse_batch(revision, &batch) {
            return Taken::Reply(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason));
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
                        Dispatch::Running(running) => match run_once(running, context) {
                            Ok(answer) => answers.push(answer.into_bytes()),
                            Err(running) => later.push(running),
                        },
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
            let later = futures_util::future::join_all(later);
            let ended = match entry {
                // A disconnect cancels no call of a session.
                Some(_) => tokio::spawn(later).await.unwrap_or_default(),
                None => later.await,
            };
            answers.extend(ended.into_iter().flatten().map(Answer::into_bytes));
            if answers.is_empty() {
                return empty(StatusCode::ACCEPTED);
            }
            json_reply(StatusCode::OK, ReplyBody::shared(join_batch(&answers)))
        }))
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
        let entry = match self.session_of(parts, headers, None) {
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
        if self.draining.load(Ordering::SeqCst) {
            stream.end();
        }
        self.session_events(&entry, &stream, number, None)
    }

    /// Ends a session.
    fn delete(&self, parts: &Parts, headers: &McpHeaders<'_>) -> Reply {
        if self.settings.sessions == SessionMode::Off || claims_new_revision(headers.version(), headers) {
            return not_allowed("POST, OPTIONS");
        }
        match self.session_of(parts, headers, None) {
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

fn answered(reply: Reply) -> Stage {
    Stage::Answered(Some(Box::new(reply)))
}
