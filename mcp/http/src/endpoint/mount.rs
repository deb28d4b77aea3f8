//! [`Endpoint`] as a tower service, for servers of axum, warp, hyper and others.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bindpost_mcp_protocol::jsonrpc::INVALID_REQUEST;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tower_service::Service;

use crate::endpoint::body::ReplyBody;
use crate::endpoint::reply::{Reply, refuse};
use crate::endpoint::{Endpoint, EndpointState, Route};
use crate::exposure;

/// The future of a response of a mounted [`Endpoint`].
pub type MountedFuture = Pin<Box<dyn Future<Output = Result<Response<MountedBody>, Infallible>> + Send>>;

impl Endpoint {
    /// Answers one HTTP request that another server received, for instance in hyper's `service_fn`.
    ///
    /// The address of the client is the [`SocketAddr`] in the extensions of the request, if a middleware has
    /// put it there. Handlers find the other extensions in
    /// [`HttpRequest::parts`](bindpost_mcp_server::HttpRequest). Without authentication, a client with an address of
    /// another machine gets the status 403, unless [`Settings::open_to_all`](crate::Settings::open_to_all) is set.
    pub fn handle<B>(self, request: Request<B>) -> MountedFuture
    where
        B: Body<Data: Into<Bytes>> + Send + 'static,
    {
        self.0.start_sweep();
        let address = request.extensions().get::<SocketAddr>().copied();
        if self.0.refuses_address(address) {
            return Box::pin(async { Ok(other_machine().map(MountedBody)) });
        }
        self.0.warn_of_mount(address);
        // In a box, a body need not be `Unpin`.
        let reply = self.0.answer(request.map(Box::pin), address, None);
        Box::pin(async { Ok(reply.await?.map(MountedBody)) })
    }
}

/// Answers like [`Endpoint::handle`].
impl<B> Service<Request<B>> for Endpoint
where
    B: Body<Data: Into<Bytes>> + Send + 'static,
{
    type Response = Response<MountedBody>;
    type Error = Infallible;
    type Future = MountedFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> MountedFuture {
        self.clone().handle(request)
    }
}

impl EndpointState {
    /// Warns once of settings that are wrong for a mounted endpoint: nothing tells who can reach one without
    /// authentication, or it has TLS, which the app has to serve.
    fn warn_of_mount(&self, client: Option<SocketAddr>) {
        // A load for each request. Only the first one writes.
        if self.is_mount_checked.load(Ordering::Relaxed) {
            return;
        }
        let is_guarded = self.gate.is_some() || self.settings.open_to_all || client.is_some();
        let problem = exposure::mount_problem(&self.settings);
        if is_guarded && problem.is_none() || self.is_mount_checked.swap(true, Ordering::Relaxed) {
            return;
        }
        if !is_guarded {
            tracing::warn!(
                "the endpoint has no authentication and does not know who can reach it; call \
                 `Endpoint::check_address` with the address on which the app listens"
            );
        }
        if let Some(problem) = problem {
            tracing::warn!("{problem}");
        }
    }

    /// Starts the sweep at the first request. It ends when the last clone of the endpoint is dropped.
    fn start_sweep(self: &Arc<Self>) {
        if self.sweeps.load(Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        if !self.sweeps.swap(true, Ordering::Relaxed) {
            runtime.spawn(sweep_while_used(Arc::downgrade(self)));
        }
    }

    /// Returns whether this address is of another machine, and the endpoint serves this machine only.
    fn refuses_address(&self, address: Option<SocketAddr>) -> bool {
        let is_other = address.is_some_and(|address| !address.ip().to_canonical().is_loopback());
        is_other && self.gate.is_none() && !self.settings.open_to_all
    }

    /// Finds the operation of a request whose path may lack the path of the endpoint, because the router
    /// removed it.
    pub(crate) fn mounted_route(&self, path: &str, method: &Method) -> Route {
        if path == "/" {
            return Route::of_endpoint(method);
        }
        // Without the path of the endpoint in front, the address for messages would not lead back here.
        let mount = self.settings.path.trim_end_matches('/');
        if let Some((sse, message)) = &self.settings.sse_paths {
            for known in [sse, message] {
                let below = known.strip_prefix(mount).filter(|below| below.starts_with('/'));
                if below.is_some_and(|below| path == known || path == below) {
                    return self.other_route(known, method);
                }
            }
        }
        match self.other_route(path, method) {
            metadata @ (Route::Metadata | Route::NotAllowed(_))
                if self.gate.as_ref().is_some_and(|gate| gate.has_metadata_at(path)) =>
            {
                metadata
            }
            _ => Route::Unknown,
        }
    }
}

fn other_machine() -> Reply {
    let reason = "the server has no authentication, so it serves clients on its own machine only";
    refuse(StatusCode::FORBIDDEN, None, INVALID_REQUEST, reason)
}

async fn sweep_while_used(endpoint: Weak<EndpointState>) {
    let Some(mut ticks) = endpoint.upgrade().map(|endpoint| endpoint.sweep_interval()) else { return };
    loop {
        ticks.tick().await;
        let Some(endpoint) = endpoint.upgrade() else { return };
        endpoint.sweep_once();
    }
}

/// The body of a response of a mounted [`Endpoint`].
#[derive(Debug)]
pub struct MountedBody(ReplyBody);

impl Body for MountedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = Pin::new(&mut self.0).poll_frame(context);
        frame.map(|frame| frame.map(|frame| frame.map(|frame| frame.map_data(Bytes::from))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
