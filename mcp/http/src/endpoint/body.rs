//! [`BodyReader`] reads a request body within limits. [`ReplyBody`] is the body of a response.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bindpost_mcp_protocol::jsonrpc::INVALID_REQUEST;
use bindpost_mcp_server::transport::{ByteBudget, ByteReservation, EncodedResponse};
use bytes::{Buf, Bytes, BytesMut};
use http::header::CONNECTION;
use http::{HeaderValue, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::endpoint::EndpointState;
use crate::endpoint::events::EventStream;
use crate::endpoint::reply::{BoxedReply, Reply, budget_exhausted, refuse};
use crate::listener::{ConnectedClient, PendingBodyGuard};

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyReadError {
    TooLarge,
    TooSlow,
    Broken,
    Trailers,
    /// The server's memory budget is exhausted.
    NoRoom,
}

impl BodyReadError {
    fn reply(self, max_body: usize) -> Reply {
        let (status, reason) = match self {
            BodyReadError::TooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {max_body} bytes"))
            }
            BodyReadError::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body was too slow".to_owned()),
            BodyReadError::Broken => (StatusCode::BAD_REQUEST, "the body could not be read".to_owned()),
            BodyReadError::Trailers => {
                (StatusCode::BAD_REQUEST, "a body with trailers is not supported; omit them".to_owned())
            }
            BodyReadError::NoRoom => return budget_exhausted(),
        };
        let mut reply = refuse(status, None, INVALID_REQUEST, reason);
        // The rest of the body would be read as the next request.
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        reply
    }
}

/// After this time, a body has to arrive at [`SLOWEST`] bytes per second or faster.
const PATIENCE: Duration = Duration::from_secs(5);
const SLOWEST: u64 = 1024;
const TICK: Duration = Duration::from_secs(1);

/// The body of a request: hyper's, or that of another library.
pub(crate) trait RequestBody: Body<Data: Into<Bytes>> + Send + Unpin + 'static {}

impl<B: Body<Data: Into<Bytes>> + Send + Unpin + 'static> RequestBody for B {}

/// Reads a whole body within its limits. A body that has already arrived needs no timer and no copy.
#[derive(Debug)]
pub(crate) struct BodyReader<B> {
    body: B,
    first: Bytes,
    more: BytesMut,
    /// The state of a body that arrives in several chunks.
    pieces: Option<Box<PartialBody>>,
}

/// The state of a body that arrives in several chunks.
#[derive(Debug)]
struct PartialBody {
    started: Instant,
    /// The timer of the speed check. It starts when the body is pending for the first time.
    tick: Option<Pin<Box<Sleep>>>,
    /// Its share of the server's memory budget.
    held: ByteReservation,
    /// Marks the request as incomplete for the listener.
    _receiving: Option<PendingBodyGuard>,
}

impl<B: RequestBody> BodyReader<B> {
    pub(crate) fn new(body: B) -> BodyReader<B> {
        BodyReader { body, first: Bytes::new(), more: BytesMut::new(), pieces: None }
    }

    /// Reads the whole body, or rejects the request.
    pub(crate) async fn read(
        &mut self,
        endpoint: &EndpointState,
        client: Option<&ConnectedClient>,
    ) -> Result<Bytes, BoxedReply> {
        let body = poll_fn(|context| self.poll(endpoint, client, context)).await;
        body.map_err(|error| Box::new(error.reply(endpoint.settings.max_body)))
    }

    /// Reads the next chunks. The limits are those of the endpoint. While the body is incomplete, the
    /// connection of `client` is marked.
    fn poll(
        &mut self,
        endpoint: &EndpointState,
        client: Option<&ConnectedClient>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Bytes, BodyReadError>> {
        let most = endpoint.settings.max_body;
        if self.body.size_hint().lower() > most as u64 {
            return Poll::Ready(Err(BodyReadError::TooLarge));
        }
        loop {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    // MCP clients send no trailers, and proxies disagree on where trailers end.
                    let Ok(data) = frame.into_data() else {
                        return Poll::Ready(Err(BodyReadError::Trailers));
                    };
                    let data: Bytes = data.into();
                    let read = self.first.len() + self.more.len();
                    if read + data.len() > most {
                        return Poll::Ready(Err(BodyReadError::TooLarge));
                    }
                    if read == 0 {
                        self.first = data;
                        if self.body.is_end_stream() {
                            return Poll::Ready(Ok(std::mem::take(&mut self.first)));
                        }
                    } else {
                        if self.more.is_empty() {
                            self.more.extend_from_slice(&std::mem::take(&mut self.first));
                        }
                        self.more.extend_from_slice(&data);
                        let bytes = self.more.capacity();
                        if !self.pieces(endpoint, client).held.grow_to(bytes) {
                            return Poll::Ready(Err(BodyReadError::NoRoom));
                        }
                    }
                }
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(BodyReadError::Broken)),
                Poll::Ready(None) => {
                    return Poll::Ready(Ok(if self.more.is_empty() {
                        std::mem::take(&mut self.first)
                    } else {
                        std::mem::take(&mut self.more).freeze()
                    }));
                }
                Poll::Pending => {
                    let read = (self.first.len() + self.more.len()) as u64;
                    let bytes = self.first.len() + self.more.capacity();
                    let pieces = self.pieces(endpoint, client);
                    if !pieces.held.grow_to(bytes) {
                        return Poll::Ready(Err(BodyReadError::NoRoom));
                    }
                    let timeout = endpoint.settings.body_timeout;
                    return pieces
                        .poll_too_slow(context, read, timeout)
                        .map(|()| Err(BodyReadError::TooSlow));
                }
            }
        }
    }

    fn pieces(&mut self, endpoint: &EndpointState, client: Option<&ConnectedClient>) -> &mut PartialBody {
        self.pieces.get_or_insert_with(|| {
            Box::new(PartialBody {
                started: Instant::now(),
                tick: None,
                held: endpoint.server.budget().reserve_anyway(0),
                _receiving: client.map(ConnectedClient::mark_body_pending),
            })
        })
    }
}

impl PartialBody {
    /// Becomes ready when the body is too slow.
    fn poll_too_slow(&mut self, context: &mut Context<'_>, read: u64, timeout: Duration) -> Poll<()> {
        loop {
            let elapsed = self.started.elapsed();
            let due = elapsed.saturating_sub(PATIENCE).as_secs() * SLOWEST;
            if elapsed >= timeout || read < due {
                return Poll::Ready(());
            }
            let next = Instant::now() + TICK.min(timeout - elapsed);
            let tick = self.tick.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next)));
            match tick.as_mut().poll(context) {
                Poll::Ready(()) => tick.as_mut().reset(next),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// The body of a response.
#[derive(Debug)]
pub struct ReplyBody(ReplyBodyKind);

#[derive(Debug)]
enum ReplyBodyKind {
    Empty,
    Once(Vec<u8>),
    /// The first bytes, before a shared result and the last bytes.
    Head(Vec<u8>, Bytes, Bytes),
    Result(Bytes, Bytes),
    End(Bytes),
    /// A large body. It uses the server's memory budget until the client has received it.
    Counted(Box<CountedBytes>),
    Events(Box<EventStream>),
}

/// Bytes that use the server's memory budget.
#[derive(Debug)]
pub struct CountedBytes {
    bytes: Bytes,
    _held: ByteReservation,
}

/// The minimum size of a response that uses the memory budget.
const LARGE: usize = 64 * 1024;

/// A chunk of a response body.
#[derive(Debug)]
pub enum BodyChunk {
    /// Bytes of this response only, and how many of them have been written.
    Own(Vec<u8>, usize),
    /// Bytes shared with other responses.
    Shared(Bytes),
    /// A large chunk, which uses the server's memory budget.
    Counted(Box<CountedBytes>),
}

impl Buf for BodyChunk {
    fn remaining(&self) -> usize {
        match self {
            BodyChunk::Own(bytes, written) => bytes.len() - written,
            BodyChunk::Shared(bytes) => bytes.len(),
            BodyChunk::Counted(counted) => counted.bytes.len(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match self {
            BodyChunk::Own(bytes, written) => bytes.get(*written..).unwrap_or_default(),
            BodyChunk::Shared(bytes) => bytes,
            BodyChunk::Counted(counted) => &counted.bytes,
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            BodyChunk::Own(bytes, written) => *written = (*written + count).min(bytes.len()),
            BodyChunk::Shared(bytes) => bytes.advance(count),
            BodyChunk::Counted(counted) => counted.bytes.advance(count),
        }
    }
}

/// The bytes of a chunk, without a copy.
impl From<BodyChunk> for Bytes {
    fn from(chunk: BodyChunk) -> Bytes {
        match chunk {
            BodyChunk::Own(bytes, written) => {
                let mut bytes = Bytes::from(bytes);
                bytes.advance(written.min(bytes.len()));
                bytes
            }
            BodyChunk::Shared(bytes) => bytes,
            BodyChunk::Counted(counted) => Bytes::from_owner(*counted),
        }
    }
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ReplyBody {
    pub(crate) fn empty() -> ReplyBody {
        ReplyBody(ReplyBodyKind::Empty)
    }

    pub(crate) fn once(bytes: Vec<u8>) -> ReplyBody {
        ReplyBody(ReplyBodyKind::Once(bytes))
    }

    pub(crate) fn shared(bytes: Bytes) -> ReplyBody {
        ReplyBody(ReplyBodyKind::End(bytes))
    }

    pub(crate) fn answer(answer: EncodedResponse) -> ReplyBody {
        match answer.into_pieces() {
            (whole, None) => ReplyBody(ReplyBodyKind::Once(whole)),
            (head, Some((result, end))) => ReplyBody(ReplyBodyKind::Head(head, result, end)),
        }
    }

    /// Reserves memory budget for a large response until it is written, because a client may read it slowly.
    pub(crate) fn count_if_large(&mut self, budget: &Arc<ByteBudget>) {
        let bytes = match &mut self.0 {
            ReplyBodyKind::Once(bytes) if bytes.len() >= LARGE => Bytes::from(std::mem::take(bytes)),
            ReplyBodyKind::End(bytes) if bytes.len() >= LARGE => std::mem::take(bytes),
            _ => return,
        };
        let held = budget.reserve_anyway(bytes.len());
        self.0 = ReplyBodyKind::Counted(Box::new(CountedBytes { bytes, _held: held }));
    }

    pub(crate) fn events(events: EventStream) -> ReplyBody {
        ReplyBody(ReplyBodyKind::Events(Box::new(events)))
    }
}

/// A body that is already complete.
impl From<Bytes> for ReplyBody {
    fn from(bytes: Bytes) -> ReplyBody {
        ReplyBody::shared(bytes)
    }
}

impl Body for ReplyBody {
    type Data = BodyChunk;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyChunk>, Infallible>>> {
        let piece = match std::mem::replace(&mut self.0, ReplyBodyKind::Empty) {
            ReplyBodyKind::Empty => return Poll::Ready(None),
            ReplyBodyKind::Once(bytes) => BodyChunk::Own(bytes, 0),
            ReplyBodyKind::Head(head, result, end) => {
                self.0 = ReplyBodyKind::Result(result, end);
                BodyChunk::Own(head, 0)
            }
            ReplyBodyKind::Result(result, end) => {
                self.0 = ReplyBodyKind::End(end);
                BodyChunk::Shared(result)
            }
            ReplyBodyKind::End(end) => BodyChunk::Shared(end),
            ReplyBodyKind::Counted(counted) => BodyChunk::Counted(counted),
            ReplyBodyKind::Events(mut events) => {
                let polled = events.poll_next(context);
                self.0 = ReplyBodyKind::Events(events);
                return polled.map(|events| events.map(|events| Ok(Frame::data(BodyChunk::Shared(events)))));
            }
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, ReplyBodyKind::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match &self.0 {
            ReplyBodyKind::Empty => 0,
            ReplyBodyKind::Once(bytes) => bytes.len(),
            ReplyBodyKind::Head(head, result, end) => head.len() + result.len() + end.len(),
            ReplyBodyKind::Result(result, end) => result.len() + end.len(),
            ReplyBodyKind::End(end) => end.len(),
            ReplyBodyKind::Counted(counted) => counted.bytes.len(),
            ReplyBodyKind::Events(_) => return SizeHint::default(),
        } as u64)
    }
}
