//! Listening sockets.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, ToSocketAddrs};

/// The number of connections that the system holds until they are accepted. The standard library's 128 are
/// too few for a burst of clients: a client beyond the backlog retries only after a second.
pub(super) const BACKLOG: u32 = 1024;

/// Listens on the first of these addresses that is available. Port 0 selects a free port. The error names
/// the address.
pub async fn bind(address: impl ToSocketAddrs) -> io::Result<TcpListener> {
    let mut failed = io::Error::new(io::ErrorKind::InvalidInput, "the name resolves to no address");
    let explain = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidInput => io::Error::new(
            error.kind(),
            format!("{error}; an address is a host and a port, like 127.0.0.1:7071"),
        ),
        _ => error,
    };
    for address in tokio::net::lookup_host(address).await.map_err(explain)? {
        match listen(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => {
                failed = io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"));
            }
        }
    }
    Err(failed)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port is free again as soon as its owner has ended. On Windows another program could take the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
