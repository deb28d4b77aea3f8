//! Bodies: reading one with limits, and what an answer's body is.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bindpost_mcp_server::Answer;
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use crate::events::Events;

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    TooLarge,
    TooSlow,
    Broken,
}

/// After this long, a body has to come at least at [`SLOWEST`] bytes a second.
const PATIENCE: Duration = Duration::from_secs(5);
const SLOWEST: u64 = 1024;
const TICK: Duration = Duration::from_secs(1);

/// Reads a whole body within its limits. One that is there already costs no timer and no copy.
pub(crate) async fn read(mut body: Incoming, most: usize, timeout: Duration) -> Result<Bytes, Unread> {
    if body.size_hint().lower() > most as u64 {
        return Err(Unread::TooLarge);
    }
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    let mut clock: Option<Clock> = None;
    poll_fn(|context| {
        loop {
            match Pin::new(&mut body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    if first.len() + more.len() + data.len() > most {
                        return Poll::Ready(Err(Unread::TooLarge));
                    }
                    if first.is_empty() && more.is_empty() {
                        first = data;
                        if body.is_end_stream() {
                            return Poll::Ready(Ok(()));
                        }
                    } else {
                        if more.is_empty() {
                            more.extend_from_slice(&std::mem::take(&mut first));
                        }
                        more.extend_from_slice(&data);
                    }
                }
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(Unread::Broken)),
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    let clock = clock.get_or_insert_with(Clock::start);
                    let read = (first.len() + more.len()) as u64;
                    return clock.poll(context, read, timeout).map(|()| Err(Unread::TooSlow));
                }
            }
        }
    })
    .await?;
    Ok(if more.is_empty() { first } else { more.freeze() })
}

struct Clock {
    started: Instant,
    tick: Pin<Box<Sleep>>,
}

impl Clock {
    fn start() -> Clock {
        Clock { started: Instant::now(), tick: Box::pin(tokio::time::sleep(TICK)) }
    }

    /// Ready when the body is too slow.
    fn poll(&mut self, context: &mut Context<'_>, read: u64, timeout: Duration) -> Poll<()> {
        loop {
            let elapsed = self.started.elapsed();
            let due = elapsed.saturating_sub(PATIENCE).as_secs() * SLOWEST;
            if elapsed >= timeout || read < due {
                return Poll::Ready(());
            }
            let next = Instant::now() + TICK.min(timeout - elapsed);
            match self.tick.as_mut().poll(context) {
                Poll::Ready(()) => self.tick.as_mut().reset(next),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// The body of an answer.
#[derive(Debug)]
pub struct ReplyBody(Kind);

#[derive(Debug)]
enum Kind {
    Empty,
    Once(Bytes),
    /// A head, a shared result, an end.
    Pieces([Bytes; 3], u8),
    Events(Box<Events>),
}

impl ReplyBody {
    pub(crate) fn empty() -> ReplyBody {
        ReplyBody(Kind::Empty)
    }

    pub(crate) fn once(bytes: Bytes) -> ReplyBody {
        ReplyBody(Kind::Once(bytes))
    }

    pub(crate) fn answer(answer: Answer) -> ReplyBody {
        match answer.into_pieces() {
            (whole, None) => ReplyBody(Kind::Once(whole)),
            (head, Some((result, end))) => ReplyBody(Kind::Pieces([head, result, end], 0)),
        }
    }

    pub(crate) fn events(events: Events) -> ReplyBody {
        ReplyBody(Kind::Events(Box::new(events)))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Once(bytes) => {
                let bytes = std::mem::take(bytes);
                self.0 = Kind::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Kind::Pieces(pieces, next) => {
                let piece = pieces.get_mut(usize::from(*next)).map(std::mem::take);
                *next += 1;
                if *next == 3 {
                    self.0 = Kind::Empty;
                }
                Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
            }
            Kind::Events(events) => {
                events.poll_next(context).map(|events| events.map(|events| Ok(Frame::data(events))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Once(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Pieces(pieces, _) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}
