//! One HTTP request, from its head to its reply. `EndpointState::reply_to` names every step in order.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bindpost_mcp_protocol::jsonrpc::{self, INVALID_REQUEST};
use bindpost_mcp_protocol::{DecodedBody, Message, Notification, Request, RequestId, Response};
use bindpost_mcp_server::HttpRequest;
use bindpost_mcp_server::transport::{
    DeliveryTarget, DispatchOutcome, EncodedResponse, Peer, RequestOrigin, Session,
};
use http::header::ALLOW;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use hyper::body::Incoming;

use crate::auth::gate::RequestSender;
use crate::endpoint::batch::answer_batch;
use crate::endpoint::body::{BodyReader, ReplyBody, RequestBody};
use crate::endpoint::pipes::{open_pipe, post_to_pipe};
use crate::endpoint::protocol_mode::{ProtocolMode, claims_new_revision};
use crate::endpoint::reply::{
    BoxedReply, Reply, empty, endpoint_closed, health_reply, json_reply, not_allowed, not_served, refuse,
    refuse_object, too_many_sessions,
};
use crate::endpoint::sessions::new_id;
use crate::endpoint::streaming::{answer_finished, answer_running, open_session_stream, poll_once};
use crate::endpoint::{Endpoint, EndpointState, Route};
use crate::headers::{AcceptedFormats, McpHeaders, SESSION_ID};
use crate::listener::ConnectedClient;
use crate::settings::SessionMode;

/// An HTTP request. Its sender is anonymous until it has been authenticated.
pub(crate) struct AdmittedRequest<'a> {
    pub(crate) endpoint: &'a Arc<EndpointState>,
    pub(crate) http: &'a Arc<HttpRequest>,
    pub(crate) headers: McpHeaders<'a>,
    pub(crate) sender: RequestSender,
}

impl Endpoint {
    /// Answers one HTTP request of a client of [`listener`](crate::listener).
    pub fn handle_from(
        self,
        request: http::Request<Incoming>,
        client: ConnectedClient,
    ) -> impl Future<Output = Result<Reply, Infallible>> + Send + use<> {
        let address = client.address();
        self.0.answer(request, address, Some(client))
    }
}

impl EndpointState {
    /// Answers one HTTP request. Without a `client`, another server received it.
    ///
    /// Not an `async fn`: its future would contain the request twice.
    pub(crate) fn answer<B: RequestBody>(
        self: Arc<Self>,
        request: http::Request<B>,
        address: Option<SocketAddr>,
        client: Option<ConnectedClient>,
    ) -> impl Future<Output = Result<Reply, Infallible>> + Send + use<B> {
        let (mut parts, body) = request.into_parts();
        self.identity_headers.remove_from(&mut parts.headers);
        let http = Arc::new(HttpRequest { parts, peer: address });
        let mut body = BodyReader::new(body);
        async move {
            let mut reply = match self.reply_to(&http, &mut body, client.as_ref()).await {
                Ok(reply) => reply,
                Err(refusal) => *refusal,
            };
            self.guard.add_cors(&http.parts.headers, reply.headers_mut());
            reply.body_mut().count_if_large(self.server.budget());
            Ok(reply)
        }
    }

    /// Answers a request. A new check of a header belongs in step 2, a new operation in `EndpointState::route`.
    async fn reply_to<B: RequestBody>(
        self: &Arc<Self>,
        http: &Arc<HttpRequest>,
        body: &mut BodyReader<B>,
        client: Option<&ConnectedClient>,
    ) -> Result<Reply, BoxedReply> {
        if self.exposure.is_some() {
            return Err(Box::new(not_served()));
        }
        // 1. Find the operation, and type the headers.
        let route = self.route(&http.parts, client.is_none());
        let headers = McpHeaders::new(&http.parts.headers);
        let mut admitted =
            AdmittedRequest { endpoint: self, http, headers, sender: RequestSender::ANONYMOUS };
        if self.settings.sessions == SessionMode::Stateless {
            admitted.headers.forget_session_id();
        }
        // 2. Check Host and Origin, and answer what needs no caller.
        self.guard.check(route, &http.parts.uri, &admitted.headers)?;
        match route {
            Route::Post | Route::PostToPipe | Route::Get | Route::Delete | Route::OpenPipe => {}
            Route::Options(allow) => return Ok(self.options(&http.parts, allow)),
            Route::NotAllowed(allow) => return Ok(not_allowed(allow)),
            Route::Alive => return Ok(health_reply(Ok(()))),
            Route::Ready => return Ok(health_reply(self.readiness())),
            Route::Metadata | Route::Unknown => return Ok(self.metadata(route, http, client.is_none())),
        }
        // 3. Authenticate the caller.
        let has_messages = matches!(route, Route::Post | Route::PostToPipe);
        if let Some(gate) = &self.gate {
            admitted.sender = gate.authenticate(&self.server, http, has_messages).await?;
        }
        // 4. Answer what needs no body.
        match route {
            Route::Get => return open_session_stream(&admitted),
            Route::Delete => return end_session(&admitted),
            Route::OpenPipe => return Ok(open_pipe(&admitted)),
            _ => {}
        }
        // 5. Read the body.
        admitted.headers.check_content()?;
        let body = body.read(self, client).await?;
        if self.is_closed() {
            return Err(Box::new(endpoint_closed()));
        }
        // 6. Decode the messages.
        let decoded = jsonrpc::decode(body);
        // 7. Authorize them: does the caller have the rights that the entries require?
        if let Some(gate) = &self.gate
            && let Some(refusal) = gate.refuse_unpermitted(&self.server, http, &admitted.sender, &decoded)
        {
            return Ok(refusal);
        }
        // 8. Dispatch them, and reply.
        if route == Route::PostToPipe {
            return Box::pin(post_to_pipe(&admitted, decoded)).await;
        }
        match decoded {
            Ok(DecodedBody::One(Message::Request(request))) => answer_request(&admitted, request).await,
            Ok(DecodedBody::One(Message::Notification(notification))) => {
                receive_notification(&admitted, &notification)
            }
            Ok(DecodedBody::One(Message::Response(response))) => receive_response(&admitted, response),
            Ok(DecodedBody::Batch(batch)) => Box::pin(answer_batch(&admitted, batch)).await,
            Err(error) => Ok(refuse_object(StatusCode::BAD_REQUEST, error.id.as_ref(), &error.error)),
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

    /// Returns the reason if new calls should go to another instance.
    fn readiness(&self) -> Result<(), &'static str> {
        if self.draining.load(Ordering::Acquire) { Err("the server is shutting down") } else { Ok(()) }
    }

    fn metadata(&self, route: Route, http: &HttpRequest, is_mounted: bool) -> Reply {
        match &self.gate {
            Some(gate) if route == Route::Metadata => gate.metadata(&self.server, http),
            // The app decides which path leads here.
            _ if is_mounted => {
                let reason = "not found; the MCP endpoint of this app is at another path";
                refuse(StatusCode::NOT_FOUND, None, INVALID_REQUEST, reason)
            }
            _ => {
                let reason = format!("not found; the MCP endpoint is {}", self.settings.path);
                refuse(StatusCode::NOT_FOUND, None, INVALID_REQUEST, reason)
            }
        }
    }
}

impl AdmittedRequest<'_> {
    /// Returns what the server has to know of a request besides its message.
    pub(crate) fn origin(&self, peer: Peer, delivery: DeliveryTarget) -> RequestOrigin {
        RequestOrigin {
            peer,
            caller: self.sender.caller.clone(),
            delivery,
            abilities: self.endpoint.abilities,
            listing: self.endpoint.listing(),
            guarded: self.endpoint.gate.is_some(),
            http: Some(self.http.clone()),
        }
    }
}

/// Dispatches one JSON-RPC request.
async fn answer_request(admitted: &AdmittedRequest<'_>, request: Request) -> Result<Reply, BoxedReply> {
    let endpoint = admitted.endpoint;
    let accepts = match endpoint.settings.json_only {
        true => AcceptedFormats::JsonOnly,
        false => admitted.headers.accepts(),
    };
    // Find the session of a legacy revision, or read the envelope of a modern one.
    let mode = ProtocolMode::of_request(admitted, &request)?;
    let peer = match &mode {
        ProtocolMode::Alone(peer) => peer.clone(),
        ProtocolMode::Session(entry) => Peer::Session(entry.session.clone()),
        ProtocolMode::Sessionless(revision) => Peer::Alone(*revision),
    };
    let delivery = match accepts {
        AcceptedFormats::JsonOnly => DeliveryTarget::None,
        _ => DeliveryTarget::OnDemand { keeps: matches!(mode, ProtocolMode::Session(_)) },
    };
    // Only `initialize` opens a session.
    let opening = (request.method() == "initialize").then(|| request.id.clone());
    match endpoint.server.dispatch(request, admitted.origin(peer, delivery), &admitted.headers) {
        DispatchOutcome::Answer(answer) => Ok(answer_finished(endpoint, answer, &mode, accepts)),
        DispatchOutcome::Opened(session, answer) => {
            open_session(endpoint, session, answer, opening.as_ref()).await
        }
        DispatchOutcome::Running(mut running) => match poll_once(&mut running).await {
            Some(answer) => Ok(answer_finished(endpoint, answer, &mode, accepts)),
            None => Ok(Box::pin(answer_running(admitted, running, mode, accepts)).await),
        },
    }
}

/// Answers `initialize`, with the id of the session that it opened.
async fn open_session(
    endpoint: &EndpointState,
    session: Session,
    answer: EncodedResponse,
    id: Option<&RequestId>,
) -> Result<Reply, BoxedReply> {
    let mut delay = Duration::ZERO;
    let session_id = match endpoint.settings.sessions {
        SessionMode::Required | SessionMode::Optional => {
            let added = endpoint.sessions.add(session).map_err(|_| Box::new(too_many_sessions(id)))?;
            delay = added.delay;
            Some(added.id)
        }
        SessionMode::Stateless => new_id().map(|(_, id)| id),
        SessionMode::Off => None,
    };
    let mut reply = json_reply(StatusCode::OK, ReplyBody::answer(answer));
    if let Some(session_id) = session_id.and_then(|id| HeaderValue::try_from(id).ok()) {
        reply.headers_mut().insert(SESSION_ID, session_id);
    }
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    Ok(reply)
}

fn receive_notification(
    admitted: &AdmittedRequest<'_>,
    notification: &Notification,
) -> Result<Reply, BoxedReply> {
    let headers = &admitted.headers;
    // 2026-07-28 has no notifications from clients over HTTP: closing the connection cancels a call.
    if !Peer::has_envelope(notification.params()) && !claims_new_revision(headers.version(), headers) {
        match admitted.find_session(None)? {
            Some(entry) => {
                let peer = Peer::Session(entry.session.clone());
                admitted.endpoint.server.handle_notification(notification, &peer);
            }
            None => {
                admitted.sessionless_revision(None)?;
            }
        }
    }
    Ok(empty(StatusCode::ACCEPTED))
}

/// Passes a response of the client to the session whose request it answers.
fn receive_response(admitted: &AdmittedRequest<'_>, response: Response) -> Result<Reply, BoxedReply> {
    let Some(entry) = admitted.find_session(None)? else {
        let reason = "a response needs a session; send its id in the Mcp-Session-Id header";
        return Ok(refuse(StatusCode::BAD_REQUEST, Some(&response.id), INVALID_REQUEST, reason));
    };
    entry.session.receive_response(response);
    Ok(empty(StatusCode::ACCEPTED))
}

/// Handles `DELETE`: ends a session.
fn end_session(admitted: &AdmittedRequest<'_>) -> Result<Reply, BoxedReply> {
    let (endpoint, headers) = (admitted.endpoint, &admitted.headers);
    if !endpoint.settings.sessions.has_sessions() || claims_new_revision(headers.version(), headers) {
        return Ok(not_allowed("POST, OPTIONS"));
    }
    let Some(entry) = admitted.find_session(None)? else {
        let reason = "the Mcp-Session-Id header is missing";
        return Ok(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason));
    };
    endpoint.sessions.remove(&entry);
    Ok(empty(StatusCode::NO_CONTENT))
}
