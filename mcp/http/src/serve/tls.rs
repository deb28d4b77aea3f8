//! HTTPS with the certificate and the key of two files.

use std::convert::Infallible;
use std::error::Error;
use std::io;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::Service;

use crate::listener::{
    ConnectedClient, ConnectionLimits, ConnectionListener, Drain, TlsFileAcceptor, serve_with,
};
use crate::settings::TlsFiles;

pub(super) async fn serve_tls<L, S, B>(
    files: &TlsFiles,
    listener: L,
    make: impl Fn(ConnectedClient) -> S,
    limits: ConnectionLimits,
    drain: Drain,
) -> io::Result<()>
where
    L: ConnectionListener,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let acceptor = TlsFileAcceptor::open(&files.certificate, &files.key, files.look_every)?;
    serve_with(acceptor, listener, make, limits, drain).await
}
