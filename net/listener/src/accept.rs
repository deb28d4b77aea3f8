//! Conversion of an accepted socket to the stream that HTTP uses.

use std::convert::Infallible;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::socket::ClientSocket;

/// Converts an accepted socket to the stream that HTTP uses: the socket itself, or TLS on top of it.
///
/// The feature `tls` implements it for `tokio_rustls::TlsAcceptor`, and adds `TlsFileAcceptor`.
pub trait StreamAcceptor<S: ClientSocket = TcpStream>: Clone + Send + Sync + 'static {
    /// The type of the stream.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Whether the stream is encrypted.
    const IS_SECURE: bool;

    /// Performs the handshake. [`ConnectionLimits::header_read`](crate::ConnectionLimits::header_read)
    /// limits its time.
    fn accept(&self, socket: S) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Runs while the listener serves, for example to read changed certificates. Does nothing by default.
    fn maintain(&self) -> impl Future<Output = Infallible> + Send {
        std::future::pending()
    }
}

/// Accepts sockets as they are, without TLS.
#[derive(Clone, Copy, Debug)]
pub struct PlainSocket;

impl<S: ClientSocket> StreamAcceptor<S> for PlainSocket {
    type Stream = S;

    const IS_SECURE: bool = false;

    async fn accept(&self, socket: S) -> io::Result<S> {
        Ok(socket)
    }
}
