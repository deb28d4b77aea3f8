//! [`Forwarder`]: forwards HTTP requests to a server on this machine and streams the bodies in both directions.
//!
//! The path of one request:
//!
//! 1. Reject what cannot be forwarded: CONNECT, and a body that declares more bytes than allowed.
//! 2. Rewrite the head (`forward/head.rs`): headers of one connection are removed, `X-Forwarded-…` added, and `Host`
//!    names the server. Path and query stay as they are.
//! 3. Take an idle connection, or open one. A refused connection is tried again: the server may just be starting.
//! 4. Send the head, and the body as it arrives (`forward/body.rs`).
//! 5. Return the response when its head has arrived. Its body streams through [`ForwardedBody`].
//!
//! Dropping the future, or the body of the response, closes the connection to the server, so the server learns at once
//! that its client has disconnected. No body is collected in memory. A request is sent once: it is repeated only if
//! nothing of it was sent.

mod body;
mod head;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bindpost_mcp_http::listener::ConnectedClient;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub(crate) use self::body::{ForwardedBody, UploadBody, UploadFailure, UploadLimits};

/// How often a refused connection is tried again, and the delays before the second and the last attempt.
const ATTEMPTS: u32 = 10;
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LAST_DELAY: Duration = Duration::from_millis(250);
/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How long an idle connection is used again. Servers close idle connections after 5 s or more. A request that is
/// sent in the moment when the server closes would fail.
const IDLE: Duration = Duration::from_secs(2);
/// The maximum number of idle connections.
const IDLE_CONNECTIONS: usize = 32;

/// Options of a [`Forwarder`].
#[derive(Clone, Debug, Default)]
pub(crate) struct ForwardOptions {
    /// The limits of request bodies.
    pub(crate) uploads: UploadLimits,
    /// A proxy in front sets `X-Forwarded-…` and `Forwarded`. Otherwise a client has forged them, and they are removed.
    pub(crate) trusts_forwarded: bool,
}

/// Forwards requests to one server on this machine. Clones share its connections.
#[derive(Clone, Debug)]
pub(crate) struct Forwarder {
    target: SocketAddr,
    authority: HeaderValue,
    options: ForwardOptions,
    idle: Arc<IdleConnections>,
}

/// Why a request was not forwarded, or got no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForwardError {
    #[error("the method CONNECT is not supported")]
    Connect,
    #[error("the body is larger than {0} bytes")]
    TooLarge(u64),
    #[error("the body was too slow")]
    TooSlow,
    #[error("the body could not be read")]
    BrokenUpload,
    #[error("no connection to the server: {0}")]
    NotConnected(io::Error),
    #[error("the server closed the connection without a valid response: {0}")]
    NoResponse(hyper::Error),
}

impl ForwardError {
    /// Returns the status of the response to the client.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            ForwardError::Connect => StatusCode::METHOD_NOT_ALLOWED,
            ForwardError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            ForwardError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            ForwardError::BrokenUpload => StatusCode::BAD_REQUEST,
            ForwardError::NotConnected(_) | ForwardError::NoResponse(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// Returns whether the rest of the body may still arrive, so that the connection of the client must be closed.
    pub(crate) fn leaves_body(&self) -> bool {
        !matches!(self, ForwardError::NotConnected(_) | ForwardError::NoResponse(_))
    }
}

impl Forwarder {
    /// Creates a forwarder to the server at this address.
    pub(crate) fn new(target: SocketAddr, options: ForwardOptions) -> Forwarder {
        // An address has no character that a header cannot hold.
        let authority = HeaderValue::try_from(target.to_string());
        let authority = authority.unwrap_or_else(|_| HeaderValue::from_static("localhost"));
        Forwarder { target, authority, options, idle: Arc::default() }
    }

    /// Returns the address of the server.
    pub(crate) fn target(&self) -> SocketAddr {
        self.target
    }

    /// Forwards a request of this client. Returns the response as soon as its head has arrived.
    pub(crate) async fn forward(
        &self,
        request: Request<Incoming>,
        client: &ConnectedClient,
    ) -> Result<Response<ForwardedBody>, ForwardError> {
        let (mut parts, body) = request.into_parts();
        if parts.method == Method::CONNECT {
            return Err(ForwardError::Connect);
        }
        let limits = self.options.uploads;
        if body.size_hint().lower() > limits.bytes {
            return Err(ForwardError::TooLarge(limits.bytes));
        }
        head::rewrite_request(&mut parts, &self.authority, client, self.options.trusts_forwarded);
        head::set_length(&mut parts.headers, &body);
        let (body, failure) = UploadBody::new(body, limits, client);
        let sent = self.send(Request::from_parts(parts, body)).await;
        let (mut response, connection) = sent.map_err(|error| match failure.reason() {
            None => error,
            Some(UploadFailure::TooLarge) => ForwardError::TooLarge(limits.bytes),
            Some(UploadFailure::TooSlow) => ForwardError::TooSlow,
            Some(UploadFailure::Broken) => ForwardError::BrokenUpload,
        })?;
        head::rewrite_response(&mut response);
        Ok(response.map(|body| ForwardedBody::new(body, connection)))
    }

    async fn send(
        &self,
        mut request: Request<UploadBody>,
    ) -> Result<(Response<Incoming>, UsedConnection), ForwardError> {
        if let Some(mut sender) = self.idle.take() {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, self.used(sender))),
                // The server closed the idle connection before anything was sent.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(ForwardError::NoResponse(error.into_error())),
                },
            }
        }
        let mut sender = self.connect().await?;
        match sender.send_request(request).await {
            Ok(response) => Ok((response, self.used(sender))),
            Err(error) => Err(ForwardError::NoResponse(error)),
        }
    }

    fn used(&self, sender: SendRequest<UploadBody>) -> UsedConnection {
        UsedConnection { sender, idle: self.idle.clone() }
    }

    async fn connect(&self) -> Result<SendRequest<UploadBody>, ForwardError> {
        let stream = connect_patiently(self.target).await.map_err(ForwardError::NotConnected)?;
        // Without it, the server gets the end of a short body up to 40 ms late.
        let _ = stream.set_nodelay(true);
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(ForwardError::NoResponse)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to the server ended");
            }
        });
        Ok(sender)
    }
}

/// Connects to the server. A refused connection is tried again with increasing delays.
async fn connect_patiently(target: SocketAddr) -> io::Result<TcpStream> {
    let mut attempt = 1;
    loop {
        let connected = tokio::time::timeout(CONNECT, TcpStream::connect(target)).await;
        match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && attempt < ATTEMPTS => {
                let step = (LAST_DELAY - FIRST_DELAY) / (ATTEMPTS - 2);
                tokio::time::sleep(FIRST_DELAY + step * (attempt - 1)).await;
                attempt += 1;
            }
            connected => return connected,
        }
    }
}

/// Connections on which the last response has ended, the most recent one last.
#[derive(Debug, Default)]
struct IdleConnections(Mutex<Vec<(SendRequest<UploadBody>, Instant)>>);

impl IdleConnections {
    /// Returns a connection that is ready for a request.
    fn take(&self) -> Option<SendRequest<UploadBody>> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(sender, since)| since.elapsed() < IDLE && !sender.is_closed());
        let ready = idle.iter().rposition(|(sender, _)| sender.is_ready())?;
        Some(idle.swap_remove(ready).0)
    }

    fn put(&self, sender: SendRequest<UploadBody>) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= IDLE_CONNECTIONS {
            idle.retain(|(sender, since)| since.elapsed() < IDLE && !sender.is_closed());
        }
        if idle.len() < IDLE_CONNECTIONS {
            idle.push((sender, Instant::now()));
        }
    }
}

/// The connection of a response that is being received.
struct UsedConnection {
    sender: SendRequest<UploadBody>,
    idle: Arc<IdleConnections>,
}

impl UsedConnection {
    /// Keeps the connection for another request. The response has ended.
    fn keep(self) {
        // It is closed if the server announced so, or if the request has not been sent completely yet.
        if !self.sender.is_closed() {
            self.idle.put(self.sender);
        }
    }
}
