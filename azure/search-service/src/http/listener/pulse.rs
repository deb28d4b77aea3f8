//! What a connection is doing, noted by its stream and its requests.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The notes of one connection. Times are milliseconds after its start, and never 0.
pub(super) struct ConnectionActivity {
    started: Instant,
    /// A request is being answered.
    busy: AtomicBool,
    /// When the first byte of a head came that is not complete yet; 0 if there is none.
    head_since: AtomicU64,
    /// When something was sent or a request ended.
    active: AtomicU64,
    /// Since when the client has taken nothing of what waits to be sent; 0 if nothing waits.
    blocked_since: AtomicU64,
}

impl ConnectionActivity {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            busy: AtomicBool::new(false),
            head_since: AtomicU64::new(0),
            active: AtomicU64::new(1),
            blocked_since: AtomicU64::new(0),
        }
    }

    /// Notes that a head is complete; its request lasts until the value is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        self.busy.store(true, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
        ActiveRequest(self.clone())
    }

    /// Whether a client lets the connection wait too long. While a request is answered, its service decides.
    pub(super) fn is_overdue(&self, head: Duration, idle: Duration, blocked: Duration) -> bool {
        let since = |note: u64| Duration::from_millis(self.now().saturating_sub(note));
        match self.blocked_since.load(Ordering::Relaxed) {
            0 => {}
            start => return since(start) > blocked,
        }
        if self.busy.load(Ordering::Relaxed) {
            return false;
        }
        match self.head_since.load(Ordering::Relaxed) {
            0 => since(self.active.load(Ordering::Relaxed)) > idle,
            start => since(start) > head,
        }
    }

    fn note_received(&self) {
        if !self.busy.load(Ordering::Relaxed) && self.head_since.load(Ordering::Relaxed) == 0 {
            self.head_since.store(self.now(), Ordering::Relaxed);
        }
    }

    fn note_sent(&self) {
        self.active.store(self.now(), Ordering::Relaxed);
    }

    /// Notes whether the client takes what is sent to it.
    fn note_write(&self, taken: bool) {
        if taken {
            self.note_sent();
            self.blocked_since.store(0, Ordering::Relaxed);
        } else if self.blocked_since.load(Ordering::Relaxed) == 0 {
            self.blocked_since.store(self.now(), Ordering::Relaxed);
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

/// A request that is being answered.
pub(super) struct ActiveRequest(Arc<ConnectionActivity>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.note_sent();
        self.0.busy.store(false, Ordering::Relaxed);
    }
}

/// A stream that notes what it carries.
pub(super) struct TrackedStream<S> {
    stream: S,
    pulse: Arc<ConnectionActivity>,
}

impl<S> TrackedStream<S> {
    pub(super) fn new(stream: S, pulse: Arc<ConnectionActivity>) -> Self {
        Self { stream, pulse }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.pulse.note_received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.pulse.note_write(written.is_ready());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.pulse.note_write(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
