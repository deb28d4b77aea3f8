//! [`Handling`]: one HTTP request from its first look to its reply.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bindpost_mcp_protocol::jsonrpc::INVALID_REQUEST;
use bindpost_mcp_server::{Caller, HttpRequest};
use http::{HeaderMap, StatusCode, Uri};
use hyper::body::Incoming;

use crate::auth::Denial;
use crate::body::BodyReader;
use crate::endpoint::{Endpoint, Route};
use crate::gate::{Asking, Sender};
use crate::headers::{McpHeaders, names_user};
use crate::listener::Client;
use crate::reply::{No, Reply, refuse};

/// An HTTP request on its way to its answer. Most get there when they are polled once.
#[derive(Debug)]
pub struct Handling {
    endpoint: Arc<Endpoint>,
    http: Arc<HttpRequest>,
    client: Option<Client>,
    route: Route,
    sender: Sender,
    stage: Stage,
}

/// How far a request is.
enum Stage {
    /// Who sends it is being established; its body waits.
    Asking(Asking, Incoming, Option<&'static str>),
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
            Stage::Asking(..) => "Asking",
            Stage::Reading(_) => "Reading",
            Stage::Later(_) => "Later",
            Stage::Answered(_) => "Answered",
        })
    }
}

impl Endpoint {
    /// Answers one HTTP request.
    pub fn handle(self: Arc<Self>, request: http::Request<Incoming>) -> Handling {
        self.begin(request, None)
    }

    /// Answers one HTTP request of a client of [`listener`](crate::listener).
    pub fn handle_from(self: Arc<Self>, request: http::Request<Incoming>, client: Client) -> Handling {
        self.begin(request, Some(client))
    }

    /// The checks that need no body, and what answers without one.
    fn begin(self: Arc<Self>, request: http::Request<Incoming>, client: Option<Client>) -> Handling {
        let (mut parts, body) = request.into_parts();
        let route = self.route(&parts);
        let headers = McpHeaders::new(&parts.headers);
        let refused = self.refuse_early(route, &parts.uri, &headers);
        let unreadable = headers.unreadable();
        if headers.names_user && !self.settings.trust_platform_identity {
            remove_users(&mut parts.headers);
        }
        let http = Arc::new(HttpRequest { parts, peer: client.as_ref().map(Client::address) });
        let stage = match (refused, &self.gate) {
            (Some(no), _) => Stage::Answered(Some(no)),
            (None, Some(gate)) if route.is_for_callers() => Stage::Asking(gate.ask(&http), body, unreadable),
            (None, _) => self.enter(route, &http, &Sender::NOBODY, body, unreadable),
        };
        Handling { endpoint: self, http, client, route, sender: Sender::NOBODY, stage }
    }

    /// Refuses a request for what its head says, whoever sends it.
    fn refuse_early(&self, route: Route, uri: &Uri, headers: &McpHeaders<'_>) -> Option<No> {
        let reason = match route {
            Route::Metadata => self.guard.refuses_host(uri, headers),
            _ => self.guard.refuses(uri, headers),
        };
        if let Some(reason) = reason {
            return Some(Box::new(refuse(StatusCode::FORBIDDEN, None, INVALID_REQUEST, reason)));
        }
        let reason = format!("header {} is there twice", headers.repeated?);
        Some(Box::new(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason)))
    }

    /// Who sends it is known.
    fn enter(
        self: &Arc<Self>,
        route: Route,
        http: &Arc<HttpRequest>,
        sender: &Sender,
        body: Incoming,
        unreadable: Option<&'static str>,
    ) -> Stage {
        if !route.has_messages() {
            return answered(self.answer_caller(route, &self.visit(http, sender)));
        }
        match unreadable {
            None => Stage::Reading(BodyReader::new(body)),
            Some(reason) => {
                answered(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, INVALID_REQUEST, reason))
            }
        }
    }
}

impl Handling {
    /// The authorizer has answered.
    fn admit(&mut self, answer: Result<Caller, Denial>) {
        let stage = std::mem::replace(&mut self.stage, Stage::Answered(None));
        let (Some(gate), Stage::Asking(_, body, unreadable)) = (&self.endpoint.gate, stage) else { return };
        let server = &self.endpoint.server;
        self.stage = match gate.establish(answer, server, &self.http, self.route.has_messages()) {
            Err(no) => Stage::Answered(Some(no)),
            Ok(sender) => {
                self.sender = sender;
                self.endpoint.enter(self.route, &self.http, &self.sender, body, unreadable)
            }
        };
    }
}

impl Future for Handling {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Reply, Infallible>> {
        let this = self.get_mut();
        let mut reply = loop {
            let taken = match &mut this.stage {
                Stage::Asking(asking, ..) => {
                    let answer = ready!(asking.poll(context));
                    this.admit(answer);
                    continue;
                }
                Stage::Reading(reader) => {
                    match ready!(reader.poll(&this.endpoint, this.client.as_ref(), context)) {
                        Ok(body) => this.endpoint.take(this.route, &this.http, &this.sender, body, context),
                        Err(unread) => Taken::Reply(this.endpoint.unread(unread)),
                    }
                }
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
        this.endpoint.guard.add_cors(&this.http.parts.headers, reply.headers_mut());
        reply.body_mut().count_if_large(this.endpoint.server.budget());
        Poll::Ready(Ok(reply))
    }
}

fn answered(reply: Reply) -> Stage {
    Stage::Answered(Some(Box::new(reply)))
}

/// Removes the headers by which a platform would name the user.
fn remove_users(headers: &mut HeaderMap) {
    let named: Vec<_> = headers.keys().filter(|name| names_user(name.as_str())).cloned().collect();
    for name in named {
        headers.remove(name);
    }
}
