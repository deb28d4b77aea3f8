//! Serves the HTTP service on a listening socket, plain or over TLS.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bindpost_net_listener::{
    ConnectedClient, ConnectionLimits, Drain, PendingBodyGuard, serve as serve_plain, serve_with,
};
use http::Request;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::HttpService;

/// The limits of the search service's connections: 1,024 in all, 120 s without a request, 10 s to finish
/// requests when it stops. There is no cap for one address, because most clients are on this machine or
/// behind one proxy.
pub fn connection_limits() -> ConnectionLimits {
    ConnectionLimits {
        connections: 1024,
        connections_per_address: None,
        keep_alive_idle: Duration::from_secs(120),
        drain: Duration::from_secs(10),
        ..ConnectionLimits::default()
    }
}

/// Serves every client of `listener` until `stop` completes. Then the socket is closed, current requests
/// may finish, and connections that are still open after [`ConnectionLimits::drain`] are cut. Dropping
/// the future cuts all connections.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    service: Arc<HttpService>,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let make = |client: ConnectedClient| {
        let service = service.clone();
        service_fn(move |request: Request<Incoming>| {
            let (service, is_secure) = (service.clone(), client.is_secure());
            let request = request.map(|body| TrackedBody { body, pending: Some(client.mark_body_pending()) });
            async move { Ok::<_, Infallible>(service.handle(request, is_secure).await) }
        })
    };
    let (trigger, drain) = Drain::new();
    let serving = async {
        match tls {
            None => serve_plain(listener, make, limits, drain).await,
            Some(tls) => serve_with(tls, listener, make, limits, drain).await,
        }
    };
    let mut serving = pin!(serving);
    tokio::select! {
        served = &mut serving => return served,
        () = stop => trigger.pull(),
    }
    serving.await
}

/// A request's body. Until it has arrived whole, its connection may be closed when the cap is reached.
struct TrackedBody {
    body: Incoming,
    pending: Option<PendingBodyGuard>,
}

impl Body for TrackedBody {
    type Data = <Incoming as Body>::Data;
    type Error = <Incoming as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if self.body.is_end_stream() || matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.pending = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
