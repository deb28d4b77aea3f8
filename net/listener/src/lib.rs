//! Connections of HTTP servers: accepting, time limits, connection limits, TLS, and graceful shutdown.
//!
//! [`serve`] runs any hyper service over HTTP/1, and over HTTP/2 with prior knowledge. This crate is
//! independent of MCP and does not read bodies. The service limits the time of a body.
//!
//! Requests set no timers. Connections record their state, and one sweep per second checks these records,
//! so a limit may take effect up to two sweeps late.
//!
//! Files, in reading order: `socket.rs`, `bind.rs`, `unix.rs` and `systemd.rs` (sockets), `accept.rs` and `tls.rs` (from a
//! socket to a stream), `registry.rs` (all connections, the caps and the sweep), `connection.rs` (one connection),
//! `header_names.rs` (how a client spells header names), `drain.rs` (stopping).

mod accept;
mod bind;
mod connection;
mod drain;
mod header_names;
mod registry;
mod socket;
#[cfg(all(feature = "systemd", target_os = "linux"))]
mod systemd;
#[cfg(feature = "tls")]
mod tls;
#[cfg(unix)]
mod unix;

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Semaphore;

pub use self::accept::{PlainSocket, StreamAcceptor};
pub use self::bind::bind;
pub use self::connection::{ConnectedClient, PendingBodyGuard};
pub use self::drain::{Drain, DrainTrigger, drain_on_signal};
pub use self::header_names::SentHeaderNames;
pub use self::socket::{AcceptedClient, ClientSocket, ConnectionListener, ListenerAddress};
#[cfg(all(feature = "systemd", target_os = "linux"))]
pub use self::systemd::{SystemdListener, take_systemd_socket};
#[cfg(feature = "tls")]
pub use self::tls::TlsFileAcceptor;
#[cfg(unix)]
pub use self::unix::{UnixSocketAddress, UnixSocketListener, bind_unix};

use self::connection::{ConnectionSignal, ProtocolBuilders, serve_connection};
use self::registry::ConnectionRegistry;
use self::socket::is_about_one_client;

/// The limits of one listener.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// The time for the first byte of a new connection, and then for a complete request head.
    /// Default: 10 s.
    pub header_read: Duration,
    /// The time for a connection without a request. Default: 75 s.
    pub keep_alive_idle: Duration,
    /// The time for a client that reads nothing while bytes wait to be sent to it. Default: 30 s.
    ///
    /// The system reports space in a full send buffer only when about a third of it is free, so a client
    /// has to read that much in this time.
    pub blocked_write: Duration,
    /// The interval at which the three limits above are checked. Default: 1 s.
    pub sweep: Duration,

    /// The maximum size of an HTTP/1 request head, and of buffered response bytes. Default: 64 KiB, at
    /// least 8 KiB.
    pub max_header_bytes: usize,
    /// The maximum number of header fields in an HTTP/1 request. Default: 100. Any other number costs an
    /// allocation per request.
    pub max_headers: usize,
    /// Whether header names of HTTP/1 requests are kept as the client spelled them, for
    /// [`ConnectedClient::next_header_names`]. Default: false, because received bytes are copied and read once more.
    pub header_names: bool,

    /// The maximum number of concurrent HTTP/2 streams of one connection. Default: 100.
    pub h2_streams: u32,
    /// HTTP/2 flow control: the maximum of unread request bytes of one stream. Default: 64 KiB.
    pub h2_stream_window: u32,
    /// HTTP/2 flow control: the maximum of unread request bytes of one connection. Default: 1 MiB.
    pub h2_connection_window: u32,
    /// The maximum of buffered response bytes of one HTTP/2 stream. Default: 64 KiB.
    pub h2_send_buffer: u32,
    /// The maximum size of an HTTP/2 header list. Default: 16 KiB.
    pub h2_header_bytes: u32,
    /// The maximum number of HTTP/2 streams that the client reset before they reached the
    /// service. Default: 20.
    pub h2_pending_resets: usize,
    /// The maximum number of HTTP/2 streams that the server reset because of the client's
    /// errors. Default: 1024.
    pub h2_local_resets: usize,
    /// The interval of pings to an HTTP/2 client. Default: 20 s.
    pub h2_ping: Duration,
    /// The time for an HTTP/2 client to respond to a ping. Default: 20 s.
    pub h2_ping_answer: Duration,

    /// The maximum number of open connections. At the limit, a connection without a complete request is
    /// closed for a new one: first one that never sent a complete head, then one with a partial head or a
    /// slow body, then an idle one. If there is none, the new one gets 503. Default: 10,000.
    pub connections: usize,
    /// The maximum number of open connections from one IPv4 address or one IPv6 /64 network, including
    /// loopback. The same rule applies at the limit. Default: 256.
    ///
    /// Set it to `None` behind a proxy, because all clients then have the same address.
    pub connections_per_address: Option<usize>,

    /// The time for running requests after the drain has begun. Default: 25 s.
    pub drain: Duration,
    /// The time for which a drain keeps idle connections open, for requests in transit. Default: 500 ms.
    pub drain_idle: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            header_read: Duration::from_secs(10),
            keep_alive_idle: Duration::from_secs(75),
            blocked_write: Duration::from_secs(30),
            sweep: Duration::from_secs(1),
            max_header_bytes: 64 * 1024,
            max_headers: DEFAULT_MAX_HEADERS,
            header_names: false,
            h2_streams: 100,
            h2_stream_window: 64 * 1024,
            h2_connection_window: 1024 * 1024,
            h2_send_buffer: 64 * 1024,
            h2_header_bytes: 16 * 1024,
            h2_pending_resets: 20,
            h2_local_resets: 1024,
            h2_ping: Duration::from_secs(20),
            h2_ping_answer: Duration::from_secs(20),
            connections: 10_000,
            connections_per_address: Some(256),
            drain: Duration::from_secs(25),
            drain_idle: Duration::from_millis(500),
        }
    }
}

/// The number of header fields that hyper keeps on the stack.
const DEFAULT_MAX_HEADERS: usize = 100;
/// The minimum HTTP/1 buffer size of hyper.
const SMALLEST_BUFFER: usize = 8 * 1024;

/// The delays after a failed accept. They double from the first to the maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// More connections than the backlog of any system, so that new connections do not delay a drain.
const LONGEST_BACKLOG: usize = 4096;

/// The response to a client over the limit.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// The time for a rejected client to read the response and close.
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// The maximum number of rejected clients that are waited for at the same time.
const REFUSED: usize = 256;

/// Serves every client of `listener` without TLS until it is drained. Returns when the last connection
/// is closed.
///
/// `make` returns the service for the connection of a client. When the drain begins, the listening socket
/// is closed, and every connection closes after its current request. Connections that are still open after
/// [`ConnectionLimits::drain`], or when the drain is triggered again, are closed. Dropping the future
/// closes all connections.
///
/// Errors of one connection, and failures to accept one, are logged and never end the listener. The
/// function fails only at its start, if the socket has no address.
pub async fn serve<L, S, B>(
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
    serve_with(PlainSocket, listener, make, limits, drain).await
}

/// Serves like [`serve`], over the streams of an acceptor: with or without TLS.
pub async fn serve_with<A, L, S, B>(
    acceptor: A,
    listener: L,
    make: impl Fn(ConnectedClient) -> S,
    limits: ConnectionLimits,
    drain: Drain,
) -> io::Result<()>
where
    L: ConnectionListener,
    A: StreamAcceptor<L::Socket>,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let scheme = if A::IS_SECURE { "https" } else { "http" };
    tracing::info!(address = %listener.address()?, scheme, "listening");
    let registry = Arc::new(ConnectionRegistry::new(&limits, A::IS_SECURE));
    let protocols = Arc::new(protocol_builders(&limits));
    let refused = Arc::new(Semaphore::new(REFUSED));
    let _cut = CutOnDrop(&registry);

    let welcome = |(socket, address): AcceptedClient<L::Socket>| {
        let Some(slot) = registry.admit(address) else {
            // A client that expects TLS could not read the response.
            if !A::IS_SECURE {
                let _ = refuse(socket, &refused);
            }
            return;
        };
        let service = make(ConnectedClient(slot.connection().clone()));
        let (acceptor, protocols) = (acceptor.clone(), protocols.clone());
        tokio::spawn(async move {
            socket.disable_delay();
            if let Err(error) =
                serve_connection(&acceptor, socket, service, &protocols, slot.connection()).await
            {
                tracing::debug!(address = address.map(tracing::field::display), error, "connection failed");
            }
        });
    };

    let work = async {
        let mut begun = pin!(drain.begun());
        loop {
            tokio::select! {
                biased;
                () = &mut begun => break,
                accepted = accept(&listener) => welcome(accepted),
            }
        }
        // Clients that have connected by now must be served. Closing the socket would reset them.
        accept_backlog(listener, welcome);
        registry.signal_all(ConnectionSignal::LastRequest);
        tokio::select! {
            () = registry.wait_until_empty() => {}
            () = drain.ended() => {}
            () = async {
                let idle = limits.drain_idle.min(limits.drain);
                tokio::time::sleep(idle).await;
                registry.signal_all(ConnectionSignal::Finish);
                tokio::time::sleep(limits.drain - idle).await;
            } => {}
        }
        registry.signal_all(ConnectionSignal::Cut);
        registry.wait_until_empty().await;
    };
    tokio::select! {
        () = work => Ok(()),
        never = registry.sweep(limits.sweep) => match never {},
        never = acceptor.maintain() => match never {},
    }
}

/// Closes the connections of a listener whose future is dropped.
struct CutOnDrop<'a>(&'a ConnectionRegistry);

impl Drop for CutOnDrop<'_> {
    fn drop(&mut self) {
        self.0.signal_all(ConnectionSignal::Cut);
    }
}

fn protocol_builders(limits: &ConnectionLimits) -> ProtocolBuilders {
    let mut http1 = http1::Builder::new();
    http1.max_buf_size(limits.max_header_bytes.max(SMALLEST_BUFFER));
    if limits.max_headers != DEFAULT_MAX_HEADERS {
        http1.max_headers(limits.max_headers);
    }
    let mut http2 = http2::Builder::new(TokioExecutor::new());
    http2
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.h2_streams)
        .initial_stream_window_size(limits.h2_stream_window)
        .initial_connection_window_size(limits.h2_connection_window)
        .max_send_buf_size(limits.h2_send_buffer as usize)
        .max_header_list_size(limits.h2_header_bytes)
        .max_pending_accept_reset_streams(limits.h2_pending_resets)
        .max_local_error_reset_streams(limits.h2_local_resets)
        .keep_alive_interval(limits.h2_ping)
        .keep_alive_timeout(limits.h2_ping_answer);
    ProtocolBuilders { http1, http2, header_names: limits.header_names }
}

/// Accepts the next client. Retries after errors such as a lack of file descriptors.
async fn accept<L: ConnectionListener>(listener: &L) -> AcceptedClient<L::Socket> {
    let mut pause = FIRST_PAUSE;
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_about_one_client(&error) => {}
            Err(error) => {
                tracing::warn!(%error, ?pause, "cannot accept a connection");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Accepts the connections in the backlog and closes the socket.
fn accept_backlog<L: ConnectionListener>(listener: L, welcome: impl Fn(AcceptedClient<L::Socket>)) {
    let Ok(backlog) = listener.into_backlog() else { return };
    for accepted in backlog.take(LONGEST_BACKLOG) {
        match accepted {
            Ok(accepted) => welcome(accepted),
            Err(error) if is_about_one_client(&error) => {}
            Err(_) => return,
        }
    }
}

/// Sends 503, then waits until the client closes, because closing first could discard the response.
fn refuse<C: ClientSocket>(socket: C, waiting: &Arc<Semaphore>) -> io::Result<()> {
    let mut socket = socket.send_last(REFUSAL)?;
    if let Ok(permit) = waiting.clone().try_acquire_owned() {
        tokio::spawn(async move {
            let _ = tokio::time::timeout(REFUSAL_TIME, discard_until_closed(&mut socket)).await;
            drop(permit);
        });
    }
    Ok(())
}

/// Discards received bytes until the client closes.
async fn discard_until_closed(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut ignored = [0; 1024];
    loop {
        let mut buffer = ReadBuf::new(&mut ignored);
        poll_fn(|context| Pin::new(&mut *socket).poll_read(context, &mut buffer)).await?;
        if buffer.filled().is_empty() {
            return Ok(());
        }
    }
}
