//! One connection: its record for the sweeper, the socket that hyper reads and writes, and the task that
//! serves it.
//!
//! No code in this file sets a timer. A request costs a few relaxed stores. Time is measured in ticks of
//! the sweeper.

use std::convert::Infallible;
use std::error::Error;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use futures_util::future::{Either, TryFutureExt, select};
use futures_util::task::AtomicWaker;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::accept::StreamAcceptor;
use crate::header_names::{HeaderNameRecorder, SentHeaderNames};
use crate::socket::ClientSocket;

/// The first bytes of an HTTP/2 client with prior knowledge. No HTTP/1 request can begin with them.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The buffer of the first read. Almost all first requests fit, so that they need one read like all others.
const FIRST_READ: usize = 1024;
/// The buffer of each read of a connection whose header names are recorded.
const RECORDED_READ: usize = 8 * 1024;

/// The state of one connection for the sweeper, and the channel by which the connection is
/// ordered to close.
///
/// Ticks come from [`SweepClock`]. 0 means that the state does not apply now.
pub(super) struct ConnectionState {
    /// The address of the client, if it has one.
    address: Option<SocketAddr>,
    is_secure: bool,
    clock: Arc<SweepClock>,
    /// The tick when the current request head began. It is also set for a client that has not
    /// sent anything yet.
    head: AtomicU32,
    /// The tick when the last request began, or was last seen running.
    active: AtomicU32,
    /// The tick when the socket stopped accepting bytes.
    blocked: AtomicU32,
    /// Whether a complete request head has been received.
    begun: AtomicBool,
    /// The number of requests whose body is incomplete.
    receiving: AtomicUsize,
    /// The tick when the first of them began to wait for more of its body.
    receiving_since: AtomicU32,
    /// Whether the connection is included in the connection limits. A connection that was ordered to close
    /// is not, even while it is still closing.
    counted: AtomicBool,
    /// Each running request holds a clone until its response and body are passed to hyper.
    requests: Arc<()>,
    told: AtomicU8,
    task: AtomicWaker,
    /// Reads the header names of requests, if they are wanted.
    names: OnceLock<HeaderNameRecorder>,
}

/// The client of one connection, as a service sees it.
#[derive(Clone)]
pub struct ConnectedClient(pub(super) Arc<ConnectionState>);

impl ConnectedClient {
    /// Returns the address of the client. A client of a Unix domain socket has none.
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.address
    }

    /// Returns whether the connection is encrypted.
    pub fn is_secure(&self) -> bool {
        self.0.is_secure
    }

    /// Returns the header names of a request as the client spelled them, with
    /// [`ConnectionLimits::header_names`](crate::ConnectionLimits::header_names). A service has to call it once for
    /// each request, before it awaits anything.
    pub fn next_header_names(&self) -> Option<SentHeaderNames> {
        self.0.names.get()?.next_request()
    }

    /// Records that a request waits for more of its body, until the returned guard is dropped. At a
    /// connection limit, a connection without another running request may be closed in favor of a new one.
    pub fn mark_body_pending(&self) -> PendingBodyGuard {
        if self.0.receiving.fetch_add(1, Ordering::Relaxed) == 0 {
            self.0.receiving_since.store(self.0.clock.now(), Ordering::Relaxed);
        }
        PendingBodyGuard(self.0.clone())
    }
}

impl std::fmt::Debug for ConnectedClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ConnectedClient").field(&self.0.address).finish()
    }
}

/// Marks a request that waits for more of its body, until it is dropped.
pub struct PendingBodyGuard(Arc<ConnectionState>);

impl std::fmt::Debug for PendingBodyGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PendingBodyGuard")
    }
}

impl Drop for PendingBodyGuard {
    fn drop(&mut self) {
        self.0.receiving.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The coarse clock of the sweeper. It starts at 1.
#[derive(Debug)]
pub(super) struct SweepClock(AtomicU32);

/// The maximum number of ticks of each state.
#[derive(Debug)]
pub(super) struct TickLimits {
    pub(super) header_read: u32,
    pub(super) keep_alive_idle: u32,
    pub(super) blocked_write: u32,
}

/// The order in which connections are closed in favor of new ones at a connection limit. The first kind is
/// closed first. Connections of one kind are closed in the order in which they entered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvictionRank {
    /// No complete request head was received: the client is silent, or has sent a part of its first head.
    NeverWhole,
    /// A part of a further head was received.
    HalfHead,
    /// A body has been incomplete for longer than a well-behaved client needs.
    SlowBody,
    /// No request is running. The client can open a new connection at any time.
    Idle,
    /// A head or a body has just begun.
    JustBegun,
}

/// The number of ticks for which a connection without a request is treated as if its request were in
/// transit. The last tick may have been a moment ago.
const ON_ITS_WAY: u32 = 2;
/// The number of ticks for which an incomplete body is treated as that of a well-behaved client.
const HONEST_BODY: u32 = 5;

/// The orders to a connection, from mild to severe. An order is never revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum ConnectionSignal {
    Serve,
    /// Close after the response to the current request, or to the next one.
    LastRequest,
    /// Close after the current request. Without one, close now.
    Finish,
    /// Close now.
    Cut,
}

/// The settings of hyper for both protocols.
pub(super) struct ProtocolBuilders {
    pub(super) http1: http1::Builder,
    pub(super) http2: http2::Builder<TokioExecutor>,
    /// Whether requests have the header names as the client spelled them.
    pub(super) header_names: bool,
}

impl SweepClock {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(1))
    }

    pub(super) fn now(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn tick(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
}

impl ConnectionState {
    pub(super) fn new(address: Option<SocketAddr>, is_secure: bool, clock: Arc<SweepClock>) -> Self {
        let now = clock.now();
        Self {
            address,
            is_secure,
            clock,
            head: AtomicU32::new(now),
            active: AtomicU32::new(now),
            blocked: AtomicU32::new(0),
            begun: AtomicBool::new(false),
            receiving: AtomicUsize::new(0),
            receiving_since: AtomicU32::new(0),
            counted: AtomicBool::new(true),
            requests: Arc::new(()),
            told: AtomicU8::new(ConnectionSignal::Serve as u8),
            task: AtomicWaker::new(),
            names: OnceLock::new(),
        }
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Applies the time limits. The sweeper calls it once per tick.
    pub(super) fn enforce_limits(&self, now: u32, patience: &TickLimits) {
        let blocked = self.blocked.load(Ordering::Relaxed);
        let head = self.head.load(Ordering::Relaxed);
        let late = |since: u32, limit: u32| now.wrapping_sub(since) > limit;
        if blocked != 0 && late(blocked, patience.blocked_write) {
            tracing::debug!(
                address = self.address.map(tracing::field::display),
                "disconnected: the client does not read"
            );
            self.signal(ConnectionSignal::Cut);
        } else if blocked != 0 || self.in_request() {
            self.active.store(now, Ordering::Relaxed);
        } else if head != 0 {
            if late(head, patience.header_read) {
                tracing::debug!(
                    address = self.address.map(tracing::field::display),
                    "disconnected: timeout of the request head"
                );
                self.signal(ConnectionSignal::Cut);
            }
        } else if late(self.active.load(Ordering::Relaxed), patience.keep_alive_idle) {
            // hyper closes the connection unless an unread body remains. In that case it gets the same time
            // again.
            self.signal(if self.was_signaled(ConnectionSignal::Finish) {
                ConnectionSignal::Cut
            } else {
                ConnectionSignal::Finish
            });
            self.active.store(now, Ordering::Relaxed);
        }
    }

    /// Returns the kind of connection for closing at a limit, and the tick since when. Returns `None` if it
    /// must not be closed, because a complete request is running or has just ended.
    pub(super) fn eviction_rank(&self) -> Option<(EvictionRank, u32)> {
        let now = self.clock.now();
        let rank = |kind: EvictionRank, since: u32, honest: u32| {
            let has_just_begun = now.wrapping_sub(since) < honest;
            Some((if has_just_begun { EvictionRank::JustBegun } else { kind }, since))
        };
        let head = self.head.load(Ordering::Relaxed);
        if !self.begun.load(Ordering::Relaxed) {
            return rank(EvictionRank::NeverWhole, head, ON_ITS_WAY);
        }
        let under_way = Arc::strong_count(&self.requests) - 1;
        if under_way == 0 && head != 0 {
            return rank(EvictionRank::HalfHead, head, ON_ITS_WAY);
        }
        if under_way == 0 {
            let idle_since = self.active.load(Ordering::Relaxed);
            let is_idle = now.wrapping_sub(idle_since) >= ON_ITS_WAY;
            return is_idle.then_some((EvictionRank::Idle, idle_since));
        }
        if self.receiving.load(Ordering::Relaxed) < under_way {
            return None;
        }
        rank(EvictionRank::SlowBody, self.receiving_since.load(Ordering::Relaxed), HONEST_BODY)
    }

    /// Removes the connection from the connection limits. Returns `false` if it was removed before.
    pub(super) fn uncount(&self) -> bool {
        self.counted.swap(false, Ordering::Relaxed)
    }

    pub(super) fn is_counted(&self) -> bool {
        self.counted.load(Ordering::Relaxed)
    }

    pub(super) fn signal(&self, word: ConnectionSignal) {
        if self.told.fetch_max(word as u8, Ordering::Release) < word as u8 {
            self.task.wake();
        }
    }

    fn was_signaled(&self, word: ConnectionSignal) -> bool {
        self.told.load(Ordering::Relaxed) >= word as u8
    }

    async fn until_signaled(&self, word: ConnectionSignal) {
        std::future::poll_fn(|cx| {
            self.task.register(cx.waker());
            if self.was_signaled(word) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn in_request(&self) -> bool {
        Arc::strong_count(&self.requests) > 1
    }

    /// Records a complete head. The request lasts until the returned value is dropped.
    fn begin_request(&self) -> Arc<()> {
        self.head.store(0, Ordering::Relaxed);
        self.begun.store(true, Ordering::Relaxed);
        self.active.store(self.clock.now(), Ordering::Relaxed);
        self.requests.clone()
    }

    /// Records received bytes. Outside a request they begin a head, or continue it.
    fn record_read(&self) {
        if self.head.load(Ordering::Relaxed) == 0 && !self.in_request() {
            self.begin_head();
        }
    }

    fn begin_head(&self) {
        self.head.store(self.clock.now(), Ordering::Relaxed);
    }

    /// Records a write: it succeeded in part or in full, or the socket accepted nothing.
    fn record_write(&self, progress: bool) {
        let blocked = self.blocked.load(Ordering::Relaxed) != 0;
        if progress && blocked {
            self.blocked.store(0, Ordering::Relaxed);
        } else if !progress && !blocked {
            self.blocked.store(self.clock.now(), Ordering::Relaxed);
        }
    }

    /// Returns whether hyper may close the connection after an order to close.
    fn may_finish(&self) -> bool {
        // hyper may treat a connection as idle while the end of a response still waits for the socket.
        let is_idle =
            || self.was_signaled(ConnectionSignal::Finish) && self.blocked.load(Ordering::Relaxed) == 0;
        self.in_request() || is_idle()
    }
}

/// Serves one connection until it is closed.
pub(super) async fn serve_connection<C, A, S, B>(
    acceptor: &A,
    socket: C,
    service: S,
    protocols: &ProtocolBuilders,
    connection: &Arc<ConnectionState>,
) -> Result<(), Box<dyn Error + Send + Sync>>
where
    C: ClientSocket,
    A: StreamAcceptor<C>,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (stream, early) = {
        let opened = pin!(open_stream(acceptor, socket, connection));
        let signaled = pin!(connection.until_signaled(ConnectionSignal::Finish));
        match select(opened, signaled).await {
            Either::Left((opened, _)) => opened?,
            Either::Right(_) => return Ok(()),
        }
    };
    let is_http2 = early.starts_with(PREFACE);
    let stream = TokioIo::new(stream);
    let has_names = protocols.header_names && !is_http2;
    if has_names {
        connection.names.get_or_init(HeaderNameRecorder::default);
    }
    let socket =
        TrackedSocket { stream, early, is_http2, has_names, shut: false, connection: connection.clone() };

    let noted = connection.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let under_way = noted.begin_request();
        // HTTP/2 announces the end with its own frame.
        let last = noted.was_signaled(ConnectionSignal::LastRequest) && !is_http2;
        service.call(request).map_ok(move |mut response| {
            if last {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            // The closure is dropped together with the body, which ends the request.
            response.map(|body| {
                body.map_err(move |error| {
                    let _ = &under_way;
                    error
                })
            })
        })
    });

    if is_http2 {
        connection.head.store(0, Ordering::Relaxed);
        // Boxed, because otherwise every HTTP/1 connection would need the larger state.
        let mut conversation = Box::pin(protocols.http2.serve_connection(socket, service));
        drive_connection(conversation.as_mut(), http2::Connection::graceful_shutdown, connection).await?;
    } else {
        let conversation = pin!(protocols.http1.serve_connection(socket, service));
        drive_connection(conversation, http1::Connection::graceful_shutdown, connection).await?;
    }
    Ok(())
}

/// Polls the connection of hyper, and applies orders to the connection.
async fn drive_connection<C: Future<Output = hyper::Result<()>>>(
    mut conversation: Pin<&mut C>,
    graceful_shutdown: fn(Pin<&mut C>),
    connection: &ConnectionState,
) -> hyper::Result<()> {
    let mut task: Option<Waker> = None;
    let mut finishing = false;
    std::future::poll_fn(|cx| {
        // A task's waker rarely changes, and the comparison is cheaper than registering it again.
        if !task.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            connection.task.register(cx.waker());
            task = Some(cx.waker().clone());
        }
        if !connection.was_signaled(ConnectionSignal::LastRequest) {
            return conversation.as_mut().poll(cx);
        }
        // An order consumes the registered waker, and another order may follow.
        connection.task.register(cx.waker());
        if connection.was_signaled(ConnectionSignal::Cut) {
            return Poll::Ready(Ok(()));
        }
        // This precedes the shutdown, so that a request that has already arrived gets its response.
        let ended = conversation.as_mut().poll(cx);
        if ended.is_ready() || finishing || !connection.may_finish() {
            return ended;
        }
        finishing = true;
        graceful_shutdown(conversation.as_mut());
        conversation.as_mut().poll(cx)
    })
    .await
}

/// Performs the TLS handshake, if any, and reads until the protocol of the client is known.
async fn open_stream<C: ClientSocket, A: StreamAcceptor<C>>(
    acceptor: &A,
    socket: C,
    connection: &ConnectionState,
) -> io::Result<(A::Stream, Bytes)> {
    let mut stream = acceptor.accept(socket).await?;
    let mut bytes = vec![0; FIRST_READ];
    let mut filled = 0;
    loop {
        let unfilled = bytes.get_mut(filled..).unwrap_or_default();
        let mut buffer = ReadBuf::new(unfilled);
        std::future::poll_fn(|cx| Pin::new(&mut stream).poll_read(cx, &mut buffer)).await?;
        let read = buffer.filled().len();
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if filled == 0 {
            connection.begin_head();
        }
        filled += read;
        let seen = filled.min(PREFACE.len());
        if seen == PREFACE.len() || bytes[..seen] != PREFACE[..seen] {
            bytes.truncate(filled);
            return Ok((stream, bytes.into()));
        }
    }
}

/// The socket for hyper: a stream that updates the record for the sweeper.
struct TrackedSocket<T> {
    stream: TokioIo<T>,
    /// The bytes that were read to detect the protocol, until hyper reads them.
    early: Bytes,
    is_http2: bool,
    /// Whether the write half was shut down.
    shut: bool,
    connection: Arc<ConnectionState>,
    /// Whether header names are recorded.
    has_names: bool,
}

impl<T: AsyncRead + Unpin> TrackedSocket<T> {
    /// Reads from the stream into hyper's buffer, and records header names. hyper's buffer does not show what was
    /// read into it, so this needs a buffer of its own.
    #[cold]
    #[inline(never)]
    fn poll_recorded(&mut self, cx: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let mut own = [const { MaybeUninit::uninit() }; RECORDED_READ];
        let size = own.len().min(buffer.remaining());
        let mut read = ReadBuf::uninit(own.get_mut(..size).unwrap_or_default());
        ready!(Pin::new(self.stream.inner_mut()).poll_read(cx, &mut read))?;
        self.record_names(read.filled());
        buffer.put_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl<T> TrackedSocket<T> {
    fn record_names(&self, bytes: &[u8]) {
        if let Some(names) = self.connection.names.get() {
            names.scan(bytes);
        }
    }

    #[cold]
    fn take_early(&mut self, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let taken = self.early.len().min(buffer.remaining());
        let taken = self.early.split_to(taken);
        if self.has_names {
            self.record_names(&taken);
        }
        buffer.put_slice(&taken);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> Read for TrackedSocket<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            return self.take_early(buffer);
        }
        let read = match self.has_names {
            false => Pin::new(&mut self.stream).poll_read(cx, buffer),
            true => self.poll_recorded(cx, buffer),
        };
        // An HTTP/2 connection without requests still exchanges pings.
        if read.is_ready() && !self.is_http2 {
            self.connection.record_read();
        }
        read
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Write for TrackedSocket<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.connection.record_write(written.is_ready());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.connection.record_write(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.shut {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.shut = true;
            self.connection.begin_head();
        }
        // Closing a socket with unread bytes resets it, and a client that is still sending, for example a
        // rejected body, could lose the response. The client may continue for the time of a request head.
        if self.is_http2 || self.connection.was_signaled(ConnectionSignal::LastRequest) {
            return Poll::Ready(Ok(()));
        }
        let mut ignored = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut ignored);
            ready!(Pin::new(self.stream.inner_mut()).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
