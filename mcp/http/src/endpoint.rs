//! [`Endpoint`]: routes HTTP requests, dispatches their messages and builds the responses.

pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod events;
pub(crate) mod pipes;
pub(crate) mod protocol_mode;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod sessions;
pub(crate) mod streaming;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;
use std::time::Duration;

use bindpost_mcp_protocol::jsonrpc::{self, INVALID_REQUEST};
use bindpost_mcp_protocol::{DecodeError, DecodedBody as Decoded, Message, Notification, Request};
use bindpost_mcp_server::{
    DeliveryTarget, DispatchOutcome, EncodedResponse, HttpRequest, Peer, RequestOrigin, RunningCall, Server,
};
use bytes::Bytes;
use http::header::{ALLOW, CONNECTION};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};

use self::body::{BodyReadError, ReplyBody};
use self::pipes::PipeStore;
use self::protocol_mode::{ProtocolMode, claims_new_revision};
use self::reply::{
    BoxedReply, Reply, budget_exhausted, empty, endpoint_closed, json_reply, not_allowed, refuse,
    refuse_object, too_many_sessions, too_many_streams,
};
use self::request::BodyOutcome;
use self::sessions::{SessionStore, new_id};
use self::streaming::poll_once;
use crate::auth::gate::{AuthGate, RequestSender};
use crate::guard::Guard;
use crate::headers::{AcceptedFormats, McpHeaders, SESSION_ID};
use crate::settings::{SessionMode, Settings};

/// Serves an MCP server over HTTP.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) server: Server,
    pub(crate) settings: Settings,
    pub(crate) guard: Arc<Guard>,
    pub(crate) gate: Option<AuthGate>,
    pub(crate) sessions: SessionStore,
    pub(crate) pipes: PipeStore,
    pub(crate) draining: AtomicBool,
    closed: AtomicBool,
}

/// An HTTP request whose sender has been identified.
pub(crate) struct AdmittedRequest<'a> {
    pub(crate) http: &'a Arc<HttpRequest>,
    pub(crate) headers: McpHeaders<'a>,
    pub(crate) sender: &'a RequestSender,
}

/// The operation that an HTTP method and a path select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Post,
    Get,
    Delete,
    OpenPipe,
    PostToPipe,
    Metadata,
    Options(&'static str),
    NotAllowed(&'static str),
    Unknown,
}

/// The minimum interval of sweeps. A shorter setting is raised to this.
const SHORTEST_SWEEP: Duration = Duration::from_millis(10);

impl Route {
    pub(crate) fn is_for_callers(self) -> bool {
        matches!(self, Route::Get | Route::Delete | Route::OpenPipe) || self.has_messages()
    }

    pub(crate) fn has_messages(self) -> bool {
        matches!(self, Route::Post | Route::PostToPipe)
    }
}

impl Endpoint {
    /// Creates an endpoint that serves `server` with these settings.
    pub fn new(server: Server, mut settings: Settings) -> Arc<Endpoint> {
        // The path works with and without a trailing slash. It is compared without one.
        settings.path.truncate(settings.path.trim_end_matches('/').len());
        if !settings.path.starts_with('/') {
            settings.path.insert(0, '/');
        }
        let guard = Arc::new(Guard::new(&settings));
        let gate = settings.auth.clone();
        Arc::new(Endpoint {
            gate: gate.map(|auth| AuthGate::new(auth, &settings.path, guard.clone())),
            guard,
            sessions: SessionStore::new(settings.session_limits.clone()),
            pipes: PipeStore::default(),
            draining: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            server,
            settings,
        })
    }

    /// Periodically ends expired sessions, and the sessions and streams of callers whose credentials are no
    /// longer valid. Runs until it is dropped.
    pub async fn sweep(&self) {
        let mut ticks = tokio::time::interval(self.settings.session_limits.sweep.max(SHORTEST_SWEEP));
        loop {
            ticks.tick().await;
            self.sessions.sweep();
            self.end_unknown_callers();
        }
    }

    /// Begins a graceful shutdown: ends the streams that would stay open indefinitely, that is, streams
    /// without a call and subscriptions.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.server.shut_down();
        self.sessions.end_streams();
        self.pipes.drain(self.settings.connections.drain);
    }

    /// Closes the endpoint, because another one with different settings replaces it. Streams end as in
    /// [`drain`](Endpoint::drain). Running calls are still answered. A request whose body has not been
    /// received completely gets 503 and has no effect.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.drain();
    }

    /// Returns whether the endpoint has been closed. This is one atomic load, cheap enough for every request.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn route(&self, parts: &Parts) -> Route {
        let path = parts.uri.path();
        let path = if path.len() > 1 { path.strip_suffix('/').unwrap_or(path) } else { path };
        if path == self.settings.path {
            return match parts.method {
                Method::POST => Route::Post,
                Method::GET => Route::Get,
                Method::DELETE => Route::Delete,
                Method::OPTIONS => Route::Options("GET, POST, DELETE, OPTIONS"),
                _ => Route::NotAllowed("GET, POST, DELETE, OPTIONS"),
            };
        }
        match (&self.settings.sse_paths, &parts.method) {
            (Some((sse, _)), &Method::GET) if path == sse => Route::OpenPipe,
            (Some((sse, _)), &Method::OPTIONS) if path == sse => Route::Options("GET, OPTIONS"),
            (Some((sse, _)), _) if path == sse => Route::NotAllowed("GET, OPTIONS"),
            (Some((_, message)), &Method::POST) if path == message => Route::PostToPipe,
            (Some((_, message)), &Method::OPTIONS) if path == message => Route::Options("POST, OPTIONS"),
            (Some((_, message)), _) if path == message => Route::NotAllowed("POST, OPTIONS"),
            (_, method) if self.gate.as_ref().is_some_and(|gate| gate.has_metadata_at(path)) => match *method
            {
                Method::GET | Method::OPTIONS => Route::Metadata,
                _ => Route::NotAllowed("GET, OPTIONS"),
            },
            _ => Route::Unknown,
        }
    }

    /// Answers requests that need neither authentication nor a body.
    pub(crate) fn answer_public(&self, route: Route, http: &HttpRequest) -> Reply {
        match (route, &self.gate) {
            (Route::Options(allow), _) => self.options(&http.parts, allow),
            (Route::NotAllowed(allow), _) => not_allowed(allow),
            (Route::Metadata, Some(gate)) => gate.metadata(&self.server, http),
            _ => {
                let reason = format!("not found; the MCP endpoint is {}", self.settings.path);
                refuse(StatusCode::NOT_FOUND, None, INVALID_REQUEST, reason)
            }
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

    /// Answers requests that need authentication but no body.
    pub(crate) fn answer_caller(self: &Arc<Self>, route: Route, visit: &AdmittedRequest<'_>) -> Reply {
        match route {
            Route::Get => self.get(visit),
            Route::Delete => self.delete(visit),
            Route::OpenPipe => self.open_pipe(visit),
            _ => self.answer_public(route, visit.http),
        }
    }

    pub(crate) fn admitted_request<'a>(
        &self,
        http: &'a Arc<HttpRequest>,
        sender: &'a RequestSender,
    ) -> AdmittedRequest<'a> {
        let mut headers = McpHeaders::new(&http.parts.headers);
        if self.settings.sessions == SessionMode::Stateless {
            headers.forget_session_id();
        }
        AdmittedRequest { http, headers, sender }
    }

    /// Rejects a request whose body could not be read.
    pub(crate) fn refuse_unread_body(&self, unread: BodyReadError) -> Reply {
        let (status, reason) = match unread {
            BodyReadError::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is larger than {} bytes", self.settings.max_body),
            ),
            BodyReadError::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body was too slow".to_owned()),
            BodyReadError::Broken => (StatusCode::BAD_REQUEST, "the body could not be read".to_owned()),
            BodyReadError::Trailers => {
                (StatusCode::BAD_REQUEST, "a body with trailers is not supported; omit them".to_owned())
            }
            BodyReadError::NoRoom => return budget_exhausted(),
        };
        let mut reply = refuse(status, None, INVALID_REQUEST, reason);
        // The rest of the body would be read as the next request.
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        reply
    }

    /// Handles a request whose body has been received.
    pub(crate) fn handle_body(
        self: &Arc<Self>,
        route: Route,
        http: &Arc<HttpRequest>,
        sender: &RequestSender,
        body: Bytes,
        context: &mut Context<'_>,
    ) -> BodyOutcome {
        if self.is_closed() {
            return BodyOutcome::Reply(endpoint_closed());
        }
        let decoded = jsonrpc::decode(body);
        if let Some(gate) = &self.gate
            && let Some(no) = gate.refuse_unpermitted(&self.server, http, sender, &decoded)
        {
            return BodyOutcome::Reply(no);
        }
        let visit = self.admitted_request(http, sender);
        match route {
            Route::PostToPipe => self.post_to_pipe(&visit, decoded),
            _ => self.post(&visit, decoded, context),
        }
    }

    fn post(
        self: &Arc<Self>,
        visit: &AdmittedRequest<'_>,
        decoded: Result<Decoded, DecodeError>,
        context: &mut Context<'_>,
    ) -> BodyOutcome {
        BodyOutcome::Reply(match decoded {
            Ok(Decoded::One(Message::Request(request))) => {
                let accepts =
                    if self.settings.json_only { AcceptedFormats::JsonOnly } else { visit.headers.accepts() };
                match self.dispatch_request(visit, accepts, request) {
                    Ok((StartedRequest::Answer(answer), mode)) => {
                        self.answer_finished(answer, &mode, accepts)
                    }
                    Ok((StartedRequest::Running(running), mode)) => match poll_once(running, context) {
                        Ok(answer) => self.answer_finished(answer, &mode, accepts),
                        Err(running) => {
                            let (endpoint, caller) = (self.clone(), visit.sender.caller.clone());
                            return BodyOutcome::Later(Box::pin(async move {
                                endpoint.answer_running(running, mode, accepts, &caller).await
                            }));
                        }
                    },
                    Ok((StartedRequest::Opened(reply, Duration::ZERO), _)) => reply,
                    Ok((StartedRequest::Opened(reply, delay), _)) => {
                        return BodyOutcome::Later(Box::pin(async move {
                            tokio::time::sleep(delay).await;
                            reply
                        }));
                    }
                    Err(no) => *no,
                }
            }
            Ok(Decoded::One(Message::Notification(notification))) => {
                self.handle_notification(visit, &notification)
            }
            Ok(Decoded::One(Message::Response(response))) => match self.find_session(visit, None) {
                Ok(Some(entry)) => {
                    entry.session.receive_response(response);
                    empty(StatusCode::ACCEPTED)
                }
                Ok(None) => {
                    let reason = "a response needs a session; send its id in the Mcp-Session-Id header";
                    refuse(StatusCode::BAD_REQUEST, Some(&response.id), INVALID_REQUEST, reason)
                }
                Err(no) => *no,
            },
            Ok(Decoded::Batch(batch)) => return self.handle_batch(visit, batch, context),
            Err(error) => refuse_object(StatusCode::BAD_REQUEST, error.id.as_ref(), &error.error),
        })
    }

    /// Determines the protocol mode of a request and dispatches it.
    fn dispatch_request(
        self: &Arc<Self>,
        visit: &AdmittedRequest<'_>,
        accepts: AcceptedFormats,
        request: Request,
    ) -> Result<(StartedRequest, ProtocolMode), BoxedReply> {
        let mode = self.protocol_mode(visit, &request)?;
        let peer = match &mode {
            ProtocolMode::Alone(peer) => peer.clone(),
            ProtocolMode::Session(entry) => Peer::Session(entry.session.clone()),
            ProtocolMode::Sessionless(revision) => Peer::Alone(*revision),
        };
        let delivery = match accepts {
            AcceptedFormats::JsonOnly => DeliveryTarget::None,
            _ => DeliveryTarget::OnDemand { keeps: matches!(mode, ProtocolMode::Session(_)) },
        };
        let id_of_refused = request.id.clone();
        let exchange = self.exchange(visit, peer, delivery);
        let started = match self.server.dispatch(request, exchange, &visit.headers) {
            DispatchOutcome::Answer(answer) => StartedRequest::Answer(answer),
            DispatchOutcome::Running(running) => StartedRequest::Running(running),
            DispatchOutcome::Opened(session, answer) => {
                let mut reply = json_reply(StatusCode::OK, ReplyBody::answer(answer));
                let mut delay = Duration::ZERO;
                let id = match self.settings.sessions {
                    SessionMode::Required | SessionMode::Optional => match self.sessions.add(session) {
                        Ok(added) => {
                            delay = added.delay;
                            Some(added.id)
                        }
                        Err(_) => return Err(Box::new(too_many_sessions(Some(&id_of_refused)))),
                    },
                    SessionMode::Stateless => new_id().map(|(_, id)| id),
                    SessionMode::Off => None,
                };
                if let Some(id) = id.and_then(|id| HeaderValue::try_from(id).ok()) {
                    reply.headers_mut().insert(SESSION_ID, id);
                }
                StartedRequest::Opened(reply, delay)
            }
        };
        Ok((started, mode))
    }

    pub(crate) fn exchange(
        &self,
        visit: &AdmittedRequest<'_>,
        peer: Peer,
        delivery: DeliveryTarget,
    ) -> RequestOrigin {
        RequestOrigin {
            peer,
            caller: visit.sender.caller.clone(),
            delivery,
            listing: self.listing(),
            guarded: self.gate.is_some(),
            http: Some(visit.http.clone()),
        }
    }

    fn handle_notification(&self, visit: &AdmittedRequest<'_>, notification: &Notification) -> Reply {
        let headers = &visit.headers;
        // 2026-07-28 has no notifications from clients over HTTP: closing the connection cancels a call.
        if Peer::has_envelope(notification.params()) || claims_new_revision(headers.version(), headers) {
            return empty(StatusCode::ACCEPTED);
        }
        match self.find_session(visit, None) {
            Ok(Some(entry)) => {
                self.server.handle_notification(notification, &Peer::Session(entry.session.clone()))
            }
            Ok(None) => {
                if let Err(no) = self.sessionless_revision(headers, None) {
                    return *no;
                }
            }
            Err(no) => return *no,
        }
        empty(StatusCode::ACCEPTED)
    }

    /// Opens a stream for messages that belong to no call, or resumes an interrupted stream after its
    /// last event.
    fn get(self: &Arc<Self>, visit: &AdmittedRequest<'_>) -> Reply {
        let headers = &visit.headers;
        if !self.settings.sessions.has_sessions() {
            return not_allowed("POST, OPTIONS");
        }
        if self.settings.json_only || claims_new_revision(headers.version(), headers) {
            return not_allowed("POST, DELETE, OPTIONS");
        }
        let entry = match self.find_session(visit, None) {
            Ok(Some(entry)) => entry,
            Ok(None) => {
                let reason = "the Mcp-Session-Id header is missing; send `initialize` first";
                return refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason);
            }
            Err(no) => return *no,
        };
        if headers.accepts() == AcceptedFormats::JsonOnly {
            let reason = "GET returns text/event-stream; the Accept header must allow it";
            return refuse(StatusCode::NOT_ACCEPTABLE, None, INVALID_REQUEST, reason);
        }
        let expires = visit.sender.caller.expires_at();
        if let Some(id) = headers.last_event_id() {
            let found = events::parse_event_id(id)
                .and_then(|(number, after)| entry.stream(number).map(|stream| (number, stream, after)));
            let Some((number, stream, after)) = found else { return self.event_stream_reply(None) };
            if stream.has_nothing_after(after) {
                // All messages were delivered, or the call was cancelled. Clients retry after any
                // other status.
                return not_allowed("POST, DELETE, OPTIONS");
            }
            return self.session_stream_reply(&entry, &stream, number, Some(after), expires);
        }
        // Every GET gets a new stream. If it replaced an open one, two connections of a client would
        // close each other in turn. The newest stream gets the messages.
        let stream = self.server.new_resumable_stream(&entry.session);
        let Some(number) = entry.keep_stream(&stream, false, self.settings.session_limits.streams) else {
            return too_many_streams(None);
        };
        self.server.attach_stream(&entry.session, &stream);
        // A shutdown or a change of the owner may have happened while the stream was created.
        if self.draining.load(Ordering::SeqCst) || *entry.owner() != visit.sender.caller {
            stream.end();
        }
        self.session_stream_reply(&entry, &stream, number, None, expires)
    }

    /// Ends a session.
    fn delete(&self, visit: &AdmittedRequest<'_>) -> Reply {
        let headers = &visit.headers;
        if !self.settings.sessions.has_sessions() || claims_new_revision(headers.version(), headers) {
            return not_allowed("POST, OPTIONS");
        }
        match self.find_session(visit, None) {
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

enum StartedRequest {
    Answer(EncodedResponse),
    Running(RunningCall),
    /// A session was opened. The reply is sent after this delay.
    Opened(Reply, Duration),
}
