//! Bind, serve, drain.

use std::future::{Future as _, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::task::Poll;

use bindpost_mcp_server::Server;
use hyper::service::service_fn;
use tokio::net::{TcpListener, ToSocketAddrs};

use crate::endpoint::Endpoint;
use crate::listener::{self, Drain, DrainTrigger};
use crate::settings::Settings;

/// A socket that is bound and waits to be served.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// Binds an address; port 0 takes any free one. An error names the address.
pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Bound> {
    let mut failed = io::Error::new(io::ErrorKind::InvalidInput, "the name stands for no address");
    for address in tokio::net::lookup_host(address).await? {
        match TcpListener::bind(address).await {
            Ok(listener) => {
                let address = listener.local_addr()?;
                return Ok(Bound { listener, address });
            }
            Err(error) => {
                failed = io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            }
        }
    }
    Err(failed)
}

impl Bound {
    /// The address that was bound.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until SIGTERM or SIGINT, and then until every accepted call is answered. A second signal
    /// ends at once.
    pub async fn serve(self, server: Server, settings: Settings) -> io::Result<()> {
        let (trigger, drain) = Drain::new();
        let mut signals = Box::pin(listener::until_signal(trigger));
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
        let limits = settings.connections.clone();
        let endpoint = Endpoint::new(server, settings);
        let sweeping = endpoint.clone();
        let draining = endpoint.clone();
        let begun = drain.begun();
        let keeper = tokio::spawn(async move {
            tokio::select! {
                () = sweeping.sweep() => {}
                () = begun => draining.drain(),
            }
        });
        let service = |_| {
            let endpoint = endpoint.clone();
            service_fn(move |request| endpoint.clone().handle(request))
        };
        let served = listener::serve(self.listener, service, limits, drain).await;
        keeper.abort();
        served
    }

    /// Serves in the background, for tests: the address and what ends it.
    pub fn serve_in_background(self, server: Server, settings: Settings) -> (SocketAddr, DrainTrigger) {
        let (trigger, drain) = Drain::new();
        let address = self.address;
        tokio::spawn(self.serve_until(server, settings, drain));
        (address, trigger)
    }
}
