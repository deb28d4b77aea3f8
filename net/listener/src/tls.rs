//! TLS with rustls.

use std::io;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::accept::StreamAcceptor;

impl StreamAcceptor for TlsAcceptor {
    type Stream = TlsStream<TcpStream>;

    const IS_SECURE: bool = true;

    async fn accept(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let handshake = TlsAcceptor::accept(self, socket).await;
        handshake.map_err(|error| io::Error::new(error.kind(), format!("TLS handshake: {error}")))
    }
}
