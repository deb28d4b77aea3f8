//! [`RequestFuture`]: handles one HTTP request, from its head to its response.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bindpost_mcp_protocol::jsonrpc::INVALID_REQUEST;
use bindpost_mcp_server::{Caller, HttpRequest};
use http::{HeaderMap, StatusCode, Uri};
use hyper::body::Incoming;

use crate::auth::Denial;
use crate::auth::gate::{PendingAuthorization, RequestSender};
use crate::endpoint::body::BodyReader;
use crate::endpoint::reply::{BoxedReply, Reply, refuse};
use crate::endpoint::{Endpoint, Route};
use crate::headers::{McpHeaders, is_identity_header};
use crate::listener::ConnectedClient;

/// The handling of one HTTP request. Most are complete after one poll.
#[derive(Debug)]
pub struct RequestFuture {
    endpoint: Arc<Endpoint>,
    http: Arc<HttpRequest>,
    client: Option<ConnectedClient>,
    route: Route,
    sender: RequestSender,
    stage: RequestStage,
}

/// The stage of a request.
enum RequestStage {
    /// The authorizer is running. The body has not been read.
    Asking(PendingAuthorization, Incoming, Option<&'static str>),
    Reading(BodyReader),
    Later(ReplyFuture),
    /// The response does not depend on the body.
    Answered(Option<BoxedReply>),
}

/// A reply that is not ready yet.
pub(crate) type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// The result of handling a body.
pub(crate) enum BodyOutcome {
    Reply(Reply),
    Later(ReplyFuture),
}

impl std::fmt::Debug for RequestStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RequestStage::Asking(..) => "Asking",
            RequestStage::Reading(_) => "Reading",
            RequestStage::Later(_) => "Later",
            RequestStage::Answered(_) => "Answered",
        })
    }
}

impl Endpoint {
    /// Answers one HTTP request.
    pub fn handle(self: Arc<Self>, request: http::Request<Incoming>) -> RequestFuture {
        self.begin_request(request, None)
    }

    /// Answers one HTTP request of a client of [`listener`](crate::listener).
    pub fn handle_from(
        self: Arc<Self>,
        request: http::Request<Incoming>,
        client: ConnectedClient,
    ) -> RequestFuture {
        self.begin_request(request, Some(client))
    }

    /// Runs the checks that need no body, and answers requests that need none.
    fn begin_request(
        self: Arc<Self>,
        request: http::Request<Incoming>,
        client: Option<ConnectedClient>,
    ) -> RequestFuture {
        let (mut parts, body) = request.into_parts();
        let route = self.route(&parts);
        let headers = McpHeaders::new(&parts.headers);
        let refused = self.refuse_early(route, &parts.uri, &headers);
        let unreadable = headers.unreadable_reason();
        if headers.names_user && !self.settings.trust_platform_identity {
            remove_identity_headers(&mut parts.headers);
        }
        let http = Arc::new(HttpRequest { parts, peer: client.as_ref().map(ConnectedClient::address) });
        let stage = match (refused, &self.gate) {
            (Some(no), _) => RequestStage::Answered(Some(no)),
            (None, Some(gate)) if route.is_for_callers() => {
                RequestStage::Asking(gate.start_authorization(&http), body, unreadable)
            }
            (None, _) => self.proceed_with_sender(route, &http, &RequestSender::ANONYMOUS, body, unreadable),
        };
        RequestFuture { endpoint: self, http, client, route, sender: RequestSender::ANONYMOUS, stage }
    }

    /// Rejects a request because of its head, independent of its sender.
    fn refuse_early(&self, route: Route, uri: &Uri, headers: &McpHeaders<'_>) -> Option<BoxedReply> {
        let reason = match route {
            Route::Metadata => self.guard.host_refusal_reason(uri, headers),
            _ => self.guard.refusal_reason(uri, headers),
        };
        if let Some(reason) = reason {
            return Some(Box::new(refuse(StatusCode::FORBIDDEN, None, INVALID_REQUEST, reason)));
        }
        let reason = format!("header {} occurs more than once", headers.repeated?);
        Some(Box::new(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason)))
    }

    /// Continues once the sender has been identified.
    fn proceed_with_sender(
        self: &Arc<Self>,
        route: Route,
        http: &Arc<HttpRequest>,
        sender: &RequestSender,
        body: Incoming,
        unreadable: Option<&'static str>,
    ) -> RequestStage {
        if !route.has_messages() {
            return answered(self.answer_caller(route, &self.admitted_request(http, sender)));
        }
        match unreadable {
            None => RequestStage::Reading(BodyReader::new(body)),
            Some(reason) => {
                answered(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, INVALID_REQUEST, reason))
            }
        }
    }
}

impl RequestFuture {
    /// Continues with the result of the authorizer.
    fn finish_authorization(&mut self, answer: Result<Caller, Denial>) {
        let stage = std::mem::replace(&mut self.stage, RequestStage::Answered(None));
        let (Some(gate), RequestStage::Asking(_, body, unreadable)) = (&self.endpoint.gate, stage) else {
            return;
        };
        let server = &self.endpoint.server;
        self.stage = match gate.establish_sender(answer, server, &self.http, self.route.has_messages()) {
            Err(no) => RequestStage::Answered(Some(no)),
            Ok(sender) => {
                self.sender = sender;
                self.endpoint.proceed_with_sender(self.route, &self.http, &self.sender, body, unreadable)
            }
        };
    }
}

impl Future for RequestFuture {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Reply, Infallible>> {
        let this = self.get_mut();
        let mut reply = loop {
            let taken = match &mut this.stage {
                RequestStage::Asking(asking, ..) => {
                    let answer = ready!(asking.poll(context));
                    this.finish_authorization(answer);
                    continue;
                }
                RequestStage::Reading(reader) => {
                    match ready!(reader.poll(&this.endpoint, this.client.as_ref(), context)) {
                        Ok(body) => {
                            this.endpoint.handle_body(this.route, &this.http, &this.sender, body, context)
                        }
                        Err(unread) => BodyOutcome::Reply(this.endpoint.refuse_unread_body(unread)),
                    }
                }
                RequestStage::Later(later) => BodyOutcome::Reply(ready!(later.as_mut().poll(context))),
                RequestStage::Answered(reply) => match reply.take() {
                    Some(reply) => BodyOutcome::Reply(*reply),
                    None => return Poll::Pending,
                },
            };
            match taken {
                BodyOutcome::Reply(reply) => break reply,
                BodyOutcome::Later(later) => this.stage = RequestStage::Later(later),
            }
        };
        this.endpoint.guard.add_cors(&this.http.parts.headers, reply.headers_mut());
        reply.body_mut().count_if_large(this.endpoint.server.budget());
        Poll::Ready(Ok(reply))
    }
}

fn answered(reply: Reply) -> RequestStage {
    RequestStage::Answered(Some(Box::new(reply)))
}

/// Removes the headers in which a platform would name the user.
fn remove_identity_headers(headers: &mut HeaderMap) {
    let named: Vec<_> = headers.keys().filter(|name| is_identity_header(name.as_str())).cloned().collect();
    for name in named {
        headers.remove(name);
    }
}
