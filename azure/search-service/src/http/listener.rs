//! Connections: accepting them, their time limits and their number, and letting them finish.
//!
//! HTTP/1.1 only, plain or over TLS. No request arms a timer: every connection notes what it is doing, and
//! looks at its notes once a second.

mod pulse;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::HttpService;

use self::pulse::{ConnectionActivity, TrackedStream};

/// What one listener allows its clients.
#[derive(Clone, Debug)]
pub struct ListenerLimits {
    /// Open connections. One more is answered 503. 1,024.
    pub connections: usize,
    /// For a TLS handshake, and for a request's head once its first byte is there. 10 s.
    pub header_read: Duration,
    /// For a connection on which nothing happens. 120 s.
    pub idle: Duration,
    /// For a client that takes nothing of its answer. 30 s.
    pub blocked_write: Duration,
    /// The largest head of a request; long filters of GET are in it. 64 KiB.
    pub header_bytes: usize,
    /// For requests under way when the listener stops. 10 s.
    pub drain: Duration,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            header_read: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            blocked_write: Duration::from_secs(30),
            header_bytes: 64 * 1024,
            drain: Duration::from_secs(10),
        }
    }
}

const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// hyper refuses a smaller buffer.
const SMALLEST_BUFFER: usize = 8 * 1024;
/// How often a connection looks at its notes.
const SWEEP: Duration = Duration::from_secs(1);
/// The wait after a failed accept, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Connections that the system holds until they are accepted; it may have a smaller limit of its own. Those of a burst
/// beyond it wait for seconds, or fail.
const BACKLOG: u32 = 1024;

/// Listens on the first address of the host that can be had.
pub async fn bind(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut failed = None;
    for address in lookup_host((host, port)).await? {
        match listen(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable)))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A port is free again as soon as its owner has ended. On Windows this would be to take it from another program.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves every client of `listener` until `stop` is done; then the socket is closed, requests under way may
/// finish, and what is left after [`ListenerLimits::drain`] is cut.
///
/// Trouble with one connection, or with accepting, is logged and never ends the listener. Dropping the future
/// cuts all connections.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    service: Arc<HttpService>,
    limits: ListenerLimits,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    tracing::info!(address = %listener.local_addr()?, scheme, "listening");
    let free = Arc::new(Semaphore::new(limits.connections));
    let (finish, finishing) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let (stream, address) = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = open.join_next(), if !open.is_empty() => continue,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if !is_client_abort(&error) {
                        tracing::warn!(%error, "cannot accept a connection");
                        sleep(PAUSE).await;
                    }
                    continue;
                }
            },
        };
        let Ok(permit) = free.clone().try_acquire_owned() else {
            refuse(stream, tls.is_some());
            continue;
        };
        let connection = HttpConnection {
            service: service.clone(),
            limits: limits.clone(),
            finishing: finishing.clone(),
            _permit: permit,
        };
        open.spawn(connection.serve_stream(stream, tls.clone(), address));
    }
    drop(listener);
    let _ = finish.send(true);
    let all = async { while open.join_next().await.is_some() {} };
    if timeout(limits.drain, all).await.is_err() {
        tracing::warn!(left = open.len(), "cutting connections that did not finish in time");
    }
    open.shutdown().await;
    Ok(())
}

/// Whether an accept failed because the client is gone already.
fn is_client_abort(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Answers 503 to a client too many. One that wants to speak TLS could not read it.
fn refuse(mut stream: TcpStream, tls: bool) {
    if tls {
        return;
    }
    tokio::spawn(async move {
        let _ = timeout(SWEEP, async {
            stream.write_all(REFUSAL).await?;
            stream.shutdown().await
        })
        .await;
    });
}

struct HttpConnection {
    service: Arc<HttpService>,
    limits: ListenerLimits,
    finishing: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

impl HttpConnection {
    async fn serve_stream(self, stream: TcpStream, tls: Option<TlsAcceptor>, address: SocketAddr) {
        let _ = stream.set_nodelay(true);
        let served = match tls {
            None => self.serve_requests(stream, false).await,
            Some(tls) => match timeout(self.limits.header_read, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.serve_requests(stream, true).await,
                Ok(Err(error)) => Err(format!("TLS handshake: {error}")),
                Err(_) => Err("TLS handshake: took too long".to_owned()),
            },
        };
        if let Err(error) = served {
            tracing::debug!(%address, error, "connection failed");
        }
    }

    async fn serve_requests<S>(mut self, stream: S, secure: bool) -> Result<(), String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let pulse = Arc::new(ConnectionActivity::new());
        let answer = service_fn(|request| {
            let (service, busy) = (self.service.clone(), pulse.begin_request());
            async move {
                let response = service.handle(request, secure).await;
                drop(busy);
                Ok::<_, Infallible>(response)
            }
        });
        let io = TokioIo::new(TrackedStream::new(stream, pulse.clone()));
        let mut http1 = http1::Builder::new();
        http1.max_buf_size(self.limits.header_bytes.max(SMALLEST_BUFFER));
        let mut connection = pin!(http1.serve_connection(io, answer));
        let ListenerLimits { header_read, idle, blocked_write, .. } = self.limits;
        let mut sweep = interval(SWEEP.min(header_read).min(idle).min(blocked_write));
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = false;
        loop {
            tokio::select! {
                served = connection.as_mut() => return served.map_err(|error| error.to_string()),
                changed = self.finishing.wait_for(|finishing| *finishing), if !told => {
                    told = true;
                    // An error says that the listener is gone, which is another way to tell it.
                    drop(changed);
                    connection.as_mut().graceful_shutdown();
                }
                _ = sweep.tick() => {
                    if pulse.is_overdue(header_read, idle, blocked_write) {
                        return Err("nothing came in time".to_owned());
                    }
                }
            }
        }
    }
}
