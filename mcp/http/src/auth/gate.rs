//! [`AuthGate`]: identifies the caller of a request and checks whether it may send these messages.
//!
//! All requests pass it (POST, GET, DELETE, HTTP+SSE), before the revision is determined. The
//! authorizer runs once for each HTTP request. The server decides which access each message requires.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bindpost_mcp_protocol::{DecodeError, DecodedBody, RequestId};
use bindpost_mcp_server::transport::MessageStream;
use bindpost_mcp_server::{Caller, CallerKind, HttpRequest, Server};
use tokio::time::Sleep;

use crate::auth::metadata::ResourceUrl;
use crate::auth::{AnonymousAccess, Auth, AuthorizeFuture, Authorizer as _, Denial, DenialKind};
use crate::endpoint::pipes::PipeStore;
use crate::endpoint::reply::{BoxedReply, Reply};
use crate::endpoint::sessions::SessionStore;
use crate::guard::Guard;

/// The settings of authentication, with the properties of the authorizer.
#[derive(Debug)]
pub(crate) struct AuthGate {
    pub(crate) auth: Auth,
    /// The challenges of a 401 response. `None` means `Bearer` and comes first.
    pub(crate) challenges: Vec<Option<String>>,
    pub(crate) authorization_servers: Vec<String>,
    /// The public address of the endpoint, if one is configured.
    pub(crate) resource: Option<ResourceUrl>,
    /// The path of the MCP endpoint.
    pub(crate) path: String,
    pub(crate) guard: Arc<Guard>,
    streams: OpenStreams,
}

/// The sender of a request: an authenticated or an anonymous caller.
#[derive(Debug)]
pub(crate) struct RequestSender {
    pub(crate) caller: Caller,
    /// Why the caller is not authenticated, if the authorizer gave a reason.
    pub(crate) denial: Option<Box<Denial>>,
}

impl RequestSender {
    pub(crate) const ANONYMOUS: RequestSender = RequestSender { caller: Caller::ANONYMOUS, denial: None };
}

/// A running authorization, with its timeout.
struct PendingAuthorization {
    answer: AuthorizeFuture,
    patience: Duration,
    /// The timer of the timeout. It starts when the authorizer is pending for the first time.
    clock: Option<Pin<Box<Sleep>>>,
}

impl PendingAuthorization {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Caller, Denial>> {
        match catch_unwind(AssertUnwindSafe(|| self.answer.as_mut().poll(context))) {
            Ok(Poll::Ready(answer)) => Poll::Ready(answer),
            Ok(Poll::Pending) => {
                let patience = self.patience;
                let clock = self.clock.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
                clock.as_mut().poll(context).map(|()| {
                    tracing::warn!("the authorizer did not answer within {} s", patience.as_secs_f32());
                    Err(Denial::unavailable("authentication timed out; try again"))
                })
            }
            Err(_) => {
                tracing::error!("the authorizer panicked");
                Poll::Ready(Err(Denial::failed()))
            }
        }
    }
}

impl AuthGate {
    pub(crate) fn new(auth: Auth, path: &str, guard: Arc<Guard>, server: &Server) -> AuthGate {
        let mut challenges = auth.authorizer.challenges();
        // Some clients read only the first challenge, and `Bearer` is the scheme they support.
        challenges.sort_by_key(Option::is_some);
        let resource = auth.resource.as_deref().and_then(|resource| match ResourceUrl::parse(resource) {
            Ok(resource) => Some(resource),
            Err(problem) => {
                tracing::error!("{problem}");
                None
            }
        });
        if let Some(problem) = auth.authorizer.problem() {
            tracing::error!("{problem}");
        }
        for warning in auth.authorizer.warnings(&server.scopes()) {
            tracing::warn!("{warning}");
        }
        let authorization_servers = auth.authorizer.authorization_servers();
        if !authorization_servers.is_empty() && auth.resource.is_none() && guard.serves_any_host() {
            tracing::warn!(
                "clients cannot discover the authorization servers: set `Auth::resource`, or list the host \
                 names in `Settings::allowed_hosts`"
            );
        }
        AuthGate {
            authorization_servers,
            auth,
            challenges,
            resource,
            path: path.to_owned(),
            guard,
            streams: OpenStreams::default(),
        }
    }

    /// Starts to identify the caller of a request.
    fn start_authorization(&self, request: &Arc<HttpRequest>) -> PendingAuthorization {
        PendingAuthorization {
            answer: self.auth.authorizer.authorize_owned(request),
            patience: self.auth.timeout,
            clock: None,
        }
    }

    /// Identifies the sender of a request, or rejects the request.
    pub(crate) async fn authenticate(
        &self,
        server: &Server,
        request: &Arc<HttpRequest>,
        has_messages: bool,
    ) -> Result<RequestSender, BoxedReply> {
        let mut pending = self.start_authorization(request);
        let answer = poll_fn(|context| pending.poll(context)).await;
        self.establish_sender(answer, server, request, has_messages)
    }

    /// Returns the sender for the result of the authorizer, or a rejection. An unauthenticated caller
    /// is rejected before its body is read if the server has nothing that it may use.
    fn establish_sender(
        &self,
        answer: Result<Caller, Denial>,
        server: &Server,
        request: &HttpRequest,
        has_messages: bool,
    ) -> Result<RequestSender, BoxedReply> {
        let denial = match answer {
            Ok(caller) if caller.is_authenticated() => return Ok(RequestSender { caller, denial: None }),
            Ok(_) => None,
            Err(denial) => Some(denial),
        };
        let broken = denial
            .as_ref()
            .is_some_and(|denial| matches!(denial.kind, DenialKind::Malformed | DenialKind::Failed));
        let has_anonymous = || has_messages && server.has_anonymous_entries();
        if broken || !self.admits_anonymous(server) && !has_anonymous() {
            return Err(Box::new(self.refuse_unauthenticated(request, denial.as_ref(), None, &[])));
        }
        Ok(RequestSender { caller: Caller::ANONYMOUS, denial: denial.map(Box::new) })
    }

    /// Returns whether unauthenticated callers may connect.
    fn admits_anonymous(&self, server: &Server) -> bool {
        match self.auth.opening {
            AnonymousAccess::Auto => server.has_anonymous_entries(),
            AnonymousAccess::Open => true,
            AnonymousAccess::Closed => false,
        }
    }

    /// Returns the rejection of a body that the sender may not send, or `None` if it may. A batch is
    /// rejected as a whole if the sender may not send one of its messages.
    pub(crate) fn refuse_unpermitted(
        &self,
        server: &Server,
        request: &HttpRequest,
        sender: &RequestSender,
        body: &Result<DecodedBody, DecodeError>,
    ) -> Option<Reply> {
        let refused = server.refuse_body(&sender.caller, body, || self.admits_anonymous(server))?;
        let lacking = refused.lacking_access(&sender.caller);
        Some(match lacking.kind {
            CallerKind::Anonymous => {
                self.refuse_unauthenticated(request, sender.denial.as_deref(), refused.id, &lacking.scopes)
            }
            _ => self.refuse_forbidden(request, refused.id, &lacking),
        })
    }

    /// Rejects a request for a session or pipe of another caller if its credentials were not accepted.
    /// With valid ones the session might be its own. Returns `None` if the request has no credentials or
    /// valid ones.
    pub(crate) fn refuse_invalid_credentials(
        &self,
        request: &HttpRequest,
        sender: &RequestSender,
        id: Option<&RequestId>,
    ) -> Option<BoxedReply> {
        let denial = sender.denial.as_deref().filter(|denial| denial.kind != DenialKind::Missing)?;
        Some(Box::new(self.refuse_unauthenticated(request, Some(denial), id, &[])))
    }

    /// Registers a stream of a caller, so that it can be ended when the caller's credentials become invalid.
    pub(crate) fn track_stream(&self, caller: &Caller, stream: &Arc<MessageStream>) {
        if !caller.is_authenticated() {
            return;
        }
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() == open.capacity() {
            open.retain(|(_, stream)| stream.strong_count() > 0);
        }
        open.push((caller.clone(), Arc::downgrade(stream)));
    }

    /// Ends the sessions, pipes and streams of callers whose credentials are no longer valid.
    pub(crate) fn end_unknown_callers(&self, sessions: &SessionStore, pipes: &PipeStore) {
        for entry in sessions.all().iter().filter(|entry| !self.knows(entry.owner())) {
            sessions.remove(entry);
        }
        pipes.end_unless_known(|caller| self.knows(caller));
        let mut open = std::mem::take(&mut *self.streams.0.lock().unwrap_or_else(PoisonError::into_inner));
        open.retain(|(caller, stream)| match stream.upgrade() {
            None => false,
            Some(_) if self.knows(caller) => true,
            Some(stream) => {
                stream.end();
                false
            }
        });
        self.streams.0.lock().unwrap_or_else(PoisonError::into_inner).extend(open);
    }

    fn knows(&self, caller: &Caller) -> bool {
        let knows = || !caller.is_authenticated() || self.auth.authorizer.knows(caller);
        catch_unwind(AssertUnwindSafe(knows)).unwrap_or_else(|_| {
            tracing::error!("the authorizer panicked");
            true
        })
    }
}

/// The open streams of calls without a session, each with its caller.
#[derive(Debug, Default)]
struct OpenStreams(Mutex<Vec<(Caller, Weak<MessageStream>)>>);
