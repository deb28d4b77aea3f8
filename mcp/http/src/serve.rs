//! Bind, serve, drain.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use bindpost_mcp_server::Server;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, ToSocketAddrs};

use crate::endpoint::Endpoint;
use crate::settings::Settings;

/// A socket that is bound and waits to be served.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// Binds an address; port 0 takes any free one.
pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Bound> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok(Bound { listener, address })
}

impl Bound {
    /// The address that was bound.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until a signal ends the process' work.
    pub async fn serve(self, server: Server, settings: Settings) -> io::Result<()> {
        let endpoint = Endpoint::new(server, settings);
        loop {
            let (socket, _) = self.listener.accept().await?;
            socket.set_nodelay(true)?;
            let endpoint = endpoint.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let endpoint = endpoint.clone();
                    async move { Ok::<_, Infallible>(endpoint.handle(request).await) }
                });
                let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(TokioIo::new(socket), service).await;
            });
        }
    }
}
