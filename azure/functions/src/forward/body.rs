//! The bodies of forwarded requests and responses. Both pass on each chunk as it arrives.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bindpost_mcp_http::listener::{ConnectedClient, PendingBodyGuard};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::Sleep;

use super::UsedConnection;

/// The limits of request bodies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UploadLimits {
    /// The maximum size.
    pub(crate) bytes: u64,
    /// How long the server may wait for the client in total, besides the time that its bytes need at
    /// `bytes_per_second`. Time in which the server does not read is not counted.
    pub(crate) waiting: Duration,
    /// The minimum speed of the client.
    pub(crate) bytes_per_second: u64,
}

impl Default for UploadLimits {
    fn default() -> UploadLimits {
        UploadLimits { bytes: 100 * 1024 * 1024, waiting: Duration::from_secs(30), bytes_per_second: 1024 }
    }
}

/// Why the body of a request was not read completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadFailure {
    TooLarge,
    TooSlow,
    Broken,
}

impl fmt::Display for UploadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UploadFailure::TooLarge => "the body of the request is too large",
            UploadFailure::TooSlow => "the body of the request is too slow",
            UploadFailure::Broken => "the body of the request could not be read",
        })
    }
}

impl std::error::Error for UploadFailure {}

/// Tells the task that forwards a request why its body failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct UploadStatus(Arc<OnceLock<UploadFailure>>);

impl UploadStatus {
    pub(super) fn reason(&self) -> Option<UploadFailure> {
        self.0.get().copied()
    }
}

/// The body of a request, within its limits. Trailers are left out.
pub(crate) struct UploadBody {
    inner: Incoming,
    limits: UploadLimits,
    read: u64,
    status: UploadStatus,
    client: ConnectedClient,
    wait: Option<UploadWait>,
    /// The time for which the server has waited for the client so far.
    waited: Duration,
}

/// The server waits for more of a body.
struct UploadWait {
    since: Instant,
    limit: Pin<Box<Sleep>>,
    /// Marks the request as incomplete for the listener.
    _receiving: PendingBodyGuard,
}

impl UploadBody {
    pub(crate) fn new(
        inner: Incoming,
        limits: UploadLimits,
        client: &ConnectedClient,
    ) -> (UploadBody, UploadStatus) {
        let status = UploadStatus::default();
        let (client, told) = (client.clone(), status.clone());
        let body = UploadBody { inner, limits, read: 0, status, client, wait: None, waited: Duration::ZERO };
        (body, told)
    }

    fn fail(&self, failure: UploadFailure) -> Poll<Option<Result<Frame<Bytes>, UploadFailure>>> {
        let _ = self.status.0.set(failure);
        Poll::Ready(Some(Err(failure)))
    }

    /// Returns how much longer the server may wait.
    fn patience(&self) -> Duration {
        let earned = Duration::from_secs(self.read / self.limits.bytes_per_second.max(1));
        (self.limits.waiting + earned).saturating_sub(self.waited)
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = UploadFailure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadFailure>>> {
        loop {
            let polled = Pin::new(&mut self.inner).poll_frame(context);
            if polled.is_ready()
                && let Some(wait) = self.wait.take()
            {
                self.waited += wait.since.elapsed();
            }
            match polled {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(_))) => return self.fail(UploadFailure::Broken),
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.read = self.read.saturating_add(data.len() as u64);
                    if self.read > self.limits.bytes {
                        return self.fail(UploadFailure::TooLarge);
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Poll::Pending => {
                    let mut wait = self.wait.take().unwrap_or_else(|| UploadWait {
                        since: Instant::now(),
                        limit: Box::pin(tokio::time::sleep(self.patience())),
                        _receiving: self.client.mark_body_pending(),
                    });
                    let is_over = wait.limit.as_mut().poll(context).is_ready();
                    self.wait = Some(wait);
                    return if is_over { self.fail(UploadFailure::TooSlow) } else { Poll::Pending };
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a forwarded response. If the server stops in the middle, the body ends with an error, and the client
/// sees an incomplete response. Dropping it closes the connection to the server.
pub(crate) struct ForwardedBody {
    inner: Incoming,
    /// The connection, until the body has ended.
    connection: Option<UsedConnection>,
}

impl fmt::Debug for ForwardedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardedBody").field("ended", &self.connection.is_none()).finish_non_exhaustive()
    }
}

impl ForwardedBody {
    pub(super) fn new(inner: Incoming, connection: UsedConnection) -> ForwardedBody {
        let mut body = ForwardedBody { inner, connection: Some(connection) };
        body.keep_connection_at_end();
        body
    }

    fn keep_connection_at_end(&mut self) {
        if self.inner.is_end_stream()
            && let Some(connection) = self.connection.take()
        {
            connection.keep();
        }
    }
}

impl Body for ForwardedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        loop {
            let polled = Pin::new(&mut self.inner).poll_frame(context);
            match polled {
                Poll::Ready(None) => {
                    if let Some(connection) = self.connection.take() {
                        connection.keep();
                    }
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Ok(frame))) => {
                    self.keep_connection_at_end();
                    // Trailers belong to the connection to the server.
                    if frame.is_data() {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    self.connection = None;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
