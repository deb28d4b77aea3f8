//! The sockets of a listener: what [`serve`](crate::serve) needs of TCP and of Unix domain sockets.

use std::fmt::{Debug, Display};
use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// A listening socket: TCP, or a Unix domain socket.
pub trait ConnectionListener: Send + Sync + Sized + 'static {
    /// The type of the accepted sockets.
    type Socket: ClientSocket;
    /// The type of its address.
    type Address: ListenerAddress;

    /// Returns the address that clients connect to.
    fn address(&self) -> io::Result<Self::Address>;

    /// Accepts the next client.
    fn accept(&self) -> impl Future<Output = io::Result<AcceptedClient<Self::Socket>>> + Send;

    /// Returns the clients that have connected but are not accepted yet, and closes the socket when the
    /// iterator is dropped. The iterator returns errors, and [`io::ErrorKind::WouldBlock`] at its end.
    fn into_backlog(self) -> io::Result<impl Iterator<Item = io::Result<AcceptedClient<Self::Socket>>>>;
}

/// An accepted socket, and the address of its client. A client of a Unix domain socket has none.
pub type AcceptedClient<S> = (S, Option<SocketAddr>);

/// The address of a listening socket.
pub trait ListenerAddress: Clone + Debug + Display + Send + Sync + 'static {
    /// Returns whether only programs on this machine can connect.
    fn is_local(&self) -> bool;
}

/// The socket of one client.
pub trait ClientSocket: AsyncRead + AsyncWrite + Unpin + Send + Sized + 'static {
    /// Makes the system send small responses at once.
    fn disable_delay(&self);

    /// Sends a short last response on a new socket without waiting, and closes the sending side.
    fn send_last(self, response: &[u8]) -> io::Result<Self>;
}

impl ListenerAddress for SocketAddr {
    fn is_local(&self) -> bool {
        self.ip().to_canonical().is_loopback()
    }
}

impl ConnectionListener for TcpListener {
    type Socket = TcpStream;
    type Address = SocketAddr;

    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    async fn accept(&self) -> io::Result<AcceptedClient<TcpStream>> {
        let (socket, address) = TcpListener::accept(self).await?;
        Ok((socket, Some(address)))
    }

    fn into_backlog(self) -> io::Result<impl Iterator<Item = io::Result<AcceptedClient<TcpStream>>>> {
        // Uses the system directly, because tokio may not know the last connections yet.
        let listener = self.into_std()?;
        Ok(std::iter::from_fn(move || {
            Some(listener.accept().and_then(|(socket, address)| {
                let socket = socket.set_nonblocking(true).and_then(|()| TcpStream::from_std(socket));
                Ok((socket.map_err(about_one_client)?, Some(address)))
            }))
        }))
    }
}

impl ClientSocket for TcpStream {
    fn disable_delay(&self) {
        let _ = self.set_nodelay(true);
    }

    fn send_last(self, response: &[u8]) -> io::Result<TcpStream> {
        // A new socket accepts a few bytes immediately. tokio would first wait until it is writable.
        let mut socket = self.into_std()?;
        socket.write_all(response)?;
        socket.shutdown(Shutdown::Write)?;
        TcpStream::from_std(socket)
    }
}

/// Returns an error that concerns one client only.
pub(super) fn about_one_client(error: io::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, error)
}

/// Returns whether an accept failed because of one client, for example because it has disconnected.
pub(super) fn is_about_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
