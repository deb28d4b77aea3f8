//! Bind, serve, drain.

mod any;
#[cfg_attr(not(all(feature = "systemd", target_os = "linux")), path = "serve/no_systemd.rs")]
mod systemd;
#[cfg_attr(not(feature = "tls"), path = "serve/no_tls.rs")]
mod tls;

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future as _, poll_fn};
use std::io;
use std::task::Poll;

use bindpost_mcp_server::Server;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use tokio::net::{TcpListener, ToSocketAddrs};

use crate::auth::Authorizer as _;
use crate::auth::metadata::ResourceUrl;
use crate::endpoint::Endpoint;
use crate::exposure::listener_problem;
use crate::listener::{self, ConnectedClient, ConnectionListener, Drain, DrainTrigger, ListenerAddress};
use crate::settings::Settings;

pub use any::AnyListener;
#[cfg(all(feature = "systemd", target_os = "linux"))]
pub use systemd::bind_systemd;

/// A socket that is bound and waits to be served: of TCP ([`bind`]), or a Unix domain socket
/// (`bind_unix`).
#[derive(Debug)]
pub struct BoundListener<L: ConnectionListener = TcpListener> {
    listener: L,
    address: L::Address,
}

/// Binds the first of these addresses that is available. Port 0 selects a free port. The error names the address.
pub async fn bind(address: impl ToSocketAddrs) -> io::Result<BoundListener> {
    BoundListener::new(listener::bind(address).await?)
}

/// Binds a Unix domain socket, which only programs on this machine can reach. The error names the path.
///
/// `mode` are the permissions of its file. A client needs the permission to write: 0o600 admits the same
/// user only, 0o660 also the group. A socket file on which no process listens, for example after a crash, is
/// replaced. The file is deleted when the server begins to shut down.
///
/// The `Host` header is checked as everywhere: a proxy has to send `localhost` (the default of nginx for
/// Unix sockets), or a name in [`Settings::allowed_hosts`]. If the proxy forwards requests of other machines,
/// set [`Settings::behind_proxy`]. Clients have no address, so
/// [`connections_per_address`](listener::ConnectionLimits::connections_per_address) does not apply to them.
///
/// ```no_run
/// # async fn run(server: bindpost_mcp_server::Server) -> std::io::Result<()> {
/// use bindpost_mcp_http::{Settings, bind_unix};
///
/// bind_unix("/run/orders/mcp.sock", 0o660).await?.serve(server, Settings::default()).await
/// # }
/// ```
#[cfg(unix)]
pub async fn bind_unix(
    path: impl AsRef<std::path::Path>,
    mode: u32,
) -> io::Result<BoundListener<listener::UnixSocketListener>> {
    BoundListener::new(listener::bind_unix(path, mode).await?)
}

impl<L: ConnectionListener> BoundListener<L> {
    /// Takes a socket that already listens.
    pub fn new(listener: L) -> io::Result<BoundListener<L>> {
        let address = listener.address()?;
        Ok(BoundListener { listener, address })
    }

    /// The address that was bound.
    pub fn local_addr(&self) -> L::Address {
        self.address.clone()
    }

    /// Serves until SIGTERM or SIGINT, and then until every accepted call is answered. A second signal
    /// ends at once.
    ///
    /// Without authentication it does not serve what other machines can reach, by its address, by a name in
    /// [`Settings::allowed_hosts`], [behind a proxy](Settings::behind_proxy) or as a custom handler (the variable
    /// `FUNCTIONS_CUSTOMHANDLER_PORT` is set), unless [`Settings::open_to_all`] says that this is intended.
    pub async fn serve(self, server: Server, settings: Settings) -> io::Result<()> {
        let (trigger, drain) = Drain::new();
        let mut signals = Box::pin(listener::drain_on_signal(trigger));
        // Polled once, the handlers are in place before the first request is.
        if let Poll::Ready(failed) = poll_fn(|context| Poll::Ready(signals.as_mut().poll(context))).await {
            return failed;
        }
        let signals = tokio::spawn(signals);
        let served = self.serve_until(server, settings, drain).await;
        signals.abort();
        served
    }

    /// Serves until `drain` says so.
    pub async fn serve_until(self, server: Server, settings: Settings, drain: Drain) -> io::Result<()> {
        // Checked here too, so that an endpoint that is not served does not log the same problem.
        check_settings(&self.address, &settings)?;
        let endpoint = Endpoint::new(server, settings);
        let service = |client: ConnectedClient| {
            let endpoint = endpoint.clone();
            service_fn(move |request| endpoint.clone().handle_from(request, client.clone()))
        };
        self.serve_behind(&endpoint, service, drain).await
    }

    /// Serves an endpoint behind a service of yours, until `drain` says so. `make` gives the service for a
    /// client; it answers what it likes and hands the rest to [`Endpoint::handle_from`].
    pub async fn serve_behind<S, B>(
        self,
        endpoint: &Endpoint,
        make: impl Fn(ConnectedClient) -> S,
        drain: Drain,
    ) -> io::Result<()>
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
        S::Future: Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        check_settings(&self.address, &endpoint.0.settings)?;
        let limits = endpoint.0.settings.connections.clone();
        let sweeping = endpoint.clone();
        let draining = endpoint.clone();
        let begun = drain.begun();
        let keeper = tokio::spawn(async move {
            tokio::select! {
                () = sweeping.sweep() => {}
                () = begun => draining.drain(),
            }
        });
        let served = match &endpoint.0.settings.tls {
            None => listener::serve(self.listener, make, limits, drain).await,
            Some(files) => tls::serve_tls(files, self.listener, make, limits, drain).await,
        };
        keeper.abort();
        served
    }

    /// Serves a service of yours without an endpoint, until `drain` says so. The service checks requests itself
    /// ([`RequestGuard`](crate::RequestGuard)).
    pub async fn serve_service<S, B>(
        self,
        make: impl Fn(ConnectedClient) -> S,
        limits: listener::ConnectionLimits,
        drain: Drain,
    ) -> io::Result<()>
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
        S::Future: Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        listener::serve(self.listener, make, limits, drain).await
    }

    /// Serves in the background, for tests: the address and what ends it.
    pub fn serve_in_background(self, server: Server, settings: Settings) -> (L::Address, DrainTrigger) {
        let (trigger, drain) = Drain::new();
        let address = self.local_addr();
        tokio::spawn(async move {
            if let Err(error) = self.serve_until(server, settings, drain).await {
                tracing::error!("{error}");
            }
        });
        (address, trigger)
    }
}

/// Returns an error if this is not served. Its text says what to change.
pub(crate) fn check_settings(address: &impl ListenerAddress, settings: &Settings) -> io::Result<()> {
    let problem = match &settings.auth {
        None => listener_problem(address, settings),
        Some(auth) => {
            let resource = auth.resource.as_deref().and_then(|resource| ResourceUrl::parse(resource).err());
            resource.or_else(|| auth.authorizer.problem())
        }
    };
    problem.map_or(Ok(()), |problem| Err(io::Error::new(io::ErrorKind::InvalidInput, problem)))
}
