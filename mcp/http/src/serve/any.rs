//! [`AnyListener`]: a listening socket whose kind is known at run time.

use std::fmt;
use std::io;

use bindpost_mcp_server::Server;

use super::{BoundListener, bind, systemd};
use crate::listener::Drain;
use crate::settings::Settings;

/// A listening socket whose kind is known at run time, for example from an option.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyListener {
    /// A socket of TCP.
    Tcp(BoundListener),
    /// A Unix domain socket.
    #[cfg(unix)]
    Unix(BoundListener<crate::listener::UnixSocketListener>),
}

/// What precedes the path of a Unix domain socket in an address.
const UNIX: &str = "unix:";
/// The address of a socket that systemd has passed, alone or before `:` and its name.
const SYSTEMD: &str = "systemd";

impl AnyListener {
    /// Binds an address: a host and a port like `127.0.0.1:7071`, or `unix:` and a path. With `systemd`, or
    /// `systemd:` and the name of a socket, takes a socket that systemd has passed (feature `systemd`).
    ///
    /// `socket_mode` are the permissions of the file of a Unix domain socket (see `bind_unix`).
    ///
    /// ```no_run
    /// # async fn run(server: bindpost_mcp_server::Server) -> std::io::Result<()> {
    /// use bindpost_mcp_http::{AnyListener, Settings};
    ///
    /// let listener = AnyListener::bind("unix:/run/orders/mcp.sock", 0o660).await?;
    /// eprintln!("listening on {listener}");
    /// listener.serve(server, Settings::default()).await
    /// # }
    /// ```
    pub async fn bind(address: &str, socket_mode: u32) -> io::Result<AnyListener> {
        if let Some(path) = address.strip_prefix(UNIX) {
            return AnyListener::bind_path(path, socket_mode).await;
        }
        match address.split_once(':').unwrap_or((address, "")) {
            (SYSTEMD, name) => systemd::bind_systemd(Some(name).filter(|name| !name.is_empty())),
            _ => Ok(AnyListener::Tcp(bind(address).await?)),
        }
    }

    #[cfg(unix)]
    async fn bind_path(path: &str, socket_mode: u32) -> io::Result<AnyListener> {
        Ok(AnyListener::Unix(super::bind_unix(path, socket_mode).await?))
    }

    #[cfg(not(unix))]
    async fn bind_path(path: &str, _: u32) -> io::Result<AnyListener> {
        let problem = format!(
            "cannot listen on {UNIX}{path}: this system has no Unix domain sockets\n  fix: listen on a host \
             and a port, like 127.0.0.1:7071"
        );
        Err(io::Error::new(io::ErrorKind::Unsupported, problem))
    }

    /// Returns the address of a socket of TCP, with the port that the system chose for port 0.
    pub fn local_addr(&self) -> Option<std::net::SocketAddr> {
        match self {
            AnyListener::Tcp(bound) => Some(bound.local_addr()),
            #[cfg(unix)]
            AnyListener::Unix(_) => None,
        }
    }

    /// Serves like [`BoundListener::serve`].
    pub async fn serve(self, server: Server, settings: Settings) -> io::Result<()> {
        match self {
            AnyListener::Tcp(bound) => bound.serve(server, settings).await,
            #[cfg(unix)]
            AnyListener::Unix(bound) => bound.serve(server, settings).await,
        }
    }

    /// Serves like [`BoundListener::serve_until`].
    pub async fn serve_until(self, server: Server, settings: Settings, drain: Drain) -> io::Result<()> {
        match self {
            AnyListener::Tcp(bound) => bound.serve_until(server, settings, drain).await,
            #[cfg(unix)]
            AnyListener::Unix(bound) => bound.serve_until(server, settings, drain).await,
        }
    }
}

/// Writes the address, as [`AnyListener::bind`] reads it.
impl fmt::Display for AnyListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyListener::Tcp(bound) => bound.address.fmt(f),
            #[cfg(unix)]
            AnyListener::Unix(bound) => bound.address.fmt(f),
        }
    }
}
