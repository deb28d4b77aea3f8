//! Connections: accepting them, their time limits and caps, and draining them.
//!
//! [`serve`] runs any hyper service over HTTP/1, and over HTTP/2 with prior knowledge. It knows nothing of
//! MCP and does not look at bodies: how long a request may take to send one is for the service to say.
//!
//! No request arms a timer. Connections note what they are doing, and one sweep a second looks through the
//! notes, so a limit may strike up to two sweeps late.

mod connection;
mod drain;
mod roster;

use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

pub use self::connection::{ConnectedClient, PendingBodyGuard};
pub use self::drain::{Drain, DrainTrigger, drain_on_signal};

use self::connection::{ConnectionSignal, ProtocolBuilders, serve_connection};
use self::roster::ConnectionRegistry;

/// What one listener allows its clients.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// For the first byte of a new connection, and then for a whole request head. 10 s.
    pub header_read: Duration,
    /// For a connection without a request. 75 s.
    pub keep_alive_idle: Duration,
    /// For a client that takes nothing while bytes wait to be sent to it. 30 s.
    ///
    /// The system reports room in a full send buffer only when about a third of it is free, so a client has
    /// to take that much in this time.
    pub blocked_write: Duration,
    /// How often the three limits above are looked at. 1 s.
    pub sweep: Duration,

    /// The largest HTTP/1 request head; about as much of a response waits in memory. 64 KiB, at least 8 KiB.
    pub max_header_bytes: usize,
    /// Header fields in one HTTP/1 request. 100; any other number costs an allocation per request.
    pub max_headers: usize,

    /// Concurrent HTTP/2 streams of one connection. 100.
    pub h2_streams: u32,
    /// HTTP/2 flow control: unread request bytes of one stream. 64 KiB.
    pub h2_stream_window: u32,
    /// HTTP/2 flow control: unread request bytes of one connection. 1 MiB.
    pub h2_connection_window: u32,
    /// HTTP/2 response bytes of one stream that wait in memory. 64 KiB.
    pub h2_send_buffer: u32,
    /// The largest HTTP/2 header list. 16 KiB.
    pub h2_header_bytes: u32,
    /// HTTP/2 streams reset by the client before the service saw them. 20.
    pub h2_pending_resets: usize,
    /// HTTP/2 streams reset by us because of the client's mistakes. 1024.
    pub h2_local_resets: usize,
    /// How often an HTTP/2 client is pinged. 20 s.
    pub h2_ping: Duration,
    /// For an HTTP/2 client's answer to a ping. 20 s.
    pub h2_ping_answer: Duration,

    /// Open connections. For one more, a connection without a whole request under way is closed: one that never
    /// sent a whole head, then one with half a head or a slow body, then one that is idle. If there is none, the
    /// new one is answered 503. 10,000.
    pub connections: usize,
    /// Open connections from one IPv4 address or one IPv6 /64 network, loopback included; the same happens when
    /// there are more. 256.
    ///
    /// Turn it off (`None`) behind a proxy, which brings everyone from the same address.
    pub connections_per_address: Option<usize>,

    /// For requests under way when the drain begins. 25 s.
    pub drain: Duration,
    /// How long a drain leaves idle connections open, for requests that are on the wire already. 500 ms.
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

/// The number for which hyper keeps the fields on the stack.
const DEFAULT_MAX_HEADERS: usize = 100;
/// hyper refuses a smaller HTTP/1 buffer.
const SMALLEST_BUFFER: usize = 8 * 1024;

/// The wait after a failed accept: it doubles from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// More connections than a system keeps waiting, so that new ones do not hold up a drain.
const LONGEST_BACKLOG: usize = 4096;

/// What a client over the cap gets.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// For a refused client to take its answer and leave.
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// How many refused clients are waited for at the same time.
const REFUSED: usize = 256;

/// Serves every client of `listener` until it is drained, and returns when the last connection is gone.
///
/// `make` gets the client and gives the service for its connection. When the drain begins the
/// listening socket is closed, and connections close after the request under way. What is left after
/// [`ConnectionLimits::drain`], or when the trigger is pulled again, is cut. Dropping the future cuts all connections,
/// too.
///
/// Trouble with one connection, or with accepting, is logged and never ends the listener. Fails only at the
/// start, if the socket has no address.
pub async fn serve<S, B>(
    listener: TcpListener,
    make: impl Fn(ConnectedClient) -> S,
    limits: ConnectionLimits,
    drain: Drain,
) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    tracing::info!(address = %listener.local_addr()?, "listening");
    let roster = Arc::new(ConnectionRegistry::new(&limits));
    let protocols = Arc::new(protocol_builders(&limits));
    let refused = Arc::new(Semaphore::new(REFUSED));
    let _cut = CutOnDrop(&roster);

    let welcome = |stream: TcpStream, address: SocketAddr| {
        let Some(entry) = roster.admit(address) else {
            let _ = refuse(stream, &refused);
            return;
        };
        let service = make(ConnectedClient(entry.connection().clone()));
        let protocols = protocols.clone();
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            if let Err(error) = serve_connection(stream, service, &protocols, entry.connection()).await {
                tracing::debug!(%address, error, "connection failed");
            }
        });
    };

    let work = async {
        let mut begun = pin!(drain.begun());
        loop {
            tokio::select! {
                biased;
                () = &mut begun => break,
                (stream, address) = accept(&listener) => welcome(stream, address),
            }
        }
        // Whoever has connected by now has not been refused; closing the socket would reset them.
        accept_backlog(listener, welcome);
        roster.signal_all(ConnectionSignal::LastRequest);
        tokio::select! {
            () = roster.wait_until_empty() => {}
            () = drain.ended() => {}
            () = async {
                let idle = limits.drain_idle.min(limits.drain);
                tokio::time::sleep(idle).await;
                roster.signal_all(ConnectionSignal::Finish);
                tokio::time::sleep(limits.drain - idle).await;
            } => {}
        }
        roster.signal_all(ConnectionSignal::Cut);
        roster.wait_until_empty().await;
    };
    tokio::select! {
        () = work => Ok(()),
        never = roster.sweep(limits.sweep) => match never {},
    }
}

/// Ends the connections of a listener whose future is dropped.
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
    ProtocolBuilders { http1, http2 }
}

/// The next client. Waits out errors such as a lack of descriptors.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
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

/// Whether an accept failed because the client is gone already.
fn is_about_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Accepts what waits in the backlog and closes the socket.
fn accept_backlog(listener: TcpListener, welcome: impl Fn(TcpStream, SocketAddr)) {
    // Straight from the system: tokio may not have heard of the last ones yet.
    let Ok(listener) = listener.into_std() else { return };
    for _ in 0..LONGEST_BACKLOG {
        match listener.accept() {
            Ok((stream, address)) => {
                let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
                if let Ok(stream) = stream {
                    welcome(stream, address);
                }
            }
            Err(error) if is_about_one_client(&error) => {}
            Err(_) => return,
        }
    }
}

/// Answers 503. Then waits for the client to close, since closing first could take the answer away from it.
fn refuse(stream: TcpStream, waiting: &Arc<Semaphore>) -> io::Result<()> {
    // A new socket takes these few bytes at once; tokio would first wait to hear that it does.
    let mut stream = stream.into_std()?;
    stream.write_all(REFUSAL)?;
    stream.shutdown(Shutdown::Write)?;
    if let Ok(permit) = waiting.clone().try_acquire_owned() {
        let stream = TcpStream::from_std(stream)?;
        tokio::spawn(async move {
            let _ = tokio::time::timeout(REFUSAL_TIME, discard_until_closed(&stream)).await;
            drop(permit);
        });
    }
    Ok(())
}

/// Ignores what a client sends until it closes.
async fn discard_until_closed(stream: &TcpStream) -> io::Result<()> {
    let mut ignored = [0; 1024];
    loop {
        stream.readable().await?;
        match stream.try_read(&mut ignored) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
