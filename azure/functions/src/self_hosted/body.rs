//! [`ServerBody`]: the body of a forwarded response.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::watch;

use crate::forward::ForwardedBody;
use crate::routes::throttle::RequestPlace;

/// The body of a forwarded response. Dropping it closes the connection to the server.
pub(crate) struct ServerBody {
    /// `None` after the end.
    inner: Option<ForwardedBody>,
    /// For a stream that would stay open indefinitely: what ends it.
    ends: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _place: RequestPlace,
}

impl std::fmt::Debug for ServerBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBody").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl ServerBody {
    /// `draining` ends the body, if it is given.
    pub(super) fn new(
        inner: ForwardedBody,
        draining: Option<watch::Receiver<bool>>,
        place: RequestPlace,
    ) -> ServerBody {
        let ends = draining.map(|mut draining| {
            let ends = async move { drop(draining.wait_for(|draining| *draining).await) };
            Box::pin(ends) as Pin<Box<dyn Future<Output = ()> + Send>>
        });
        ServerBody { inner: Some(inner), ends, _place: place }
    }
}

impl Body for ServerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.ends.as_mut().is_some_and(|ends| ends.as_mut().poll(context).is_ready()) {
            self.ends = None;
            self.inner = None;
        }
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(inner).poll_frame(context));
        if frame.is_none() {
            self.ends = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(ForwardedBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), ForwardedBody::size_hint)
    }
}
