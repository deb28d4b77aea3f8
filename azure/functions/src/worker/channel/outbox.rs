//! The queue of outgoing messages to a worker.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::invocation::Invocation;
use crate::worker::wire::framing::Framing;
use crate::worker::wire::proto::StreamingMessage;
use crate::worker::wire::socket::SocketWriter;

/// Writes messages to one worker, from any task.
///
/// On a socket, a message is written directly while the queue is empty, so an invocation does not need
/// another task. Bytes that the socket does not accept, and all messages under load, are queued. One task
/// empties the queue and writes many messages at once.
pub(crate) struct WorkerOutbox {
    framing: Framing,
    limit: usize,
    socket: Option<std::sync::Arc<SocketWriter>>,
    state: Mutex<OutboxState>,
}

#[derive(Default)]
struct OutboxState {
    /// Chunks of one or more messages, in the order in which they are written.
    queue: VecDeque<Vec<u8>>,
    /// The total size of `queue`, in bytes.
    waiting: usize,
    /// The number of bytes of the first chunk that are already written.
    written: usize,
    /// A task is writing a chunk that it took from the queue. No message may be written before it.
    taken: bool,
    waker: Option<Waker>,
    closed: Option<CloseReason>,
}

impl OutboxState {
    fn remember(&mut self, context: &Context<'_>) {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.waker = Some(context.waker().clone());
        }
    }
}

/// Why the host closes a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    Refused,
    Done,
}

/// Why a message was not written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    #[error("the stream to the worker has ended")]
    Ended,
    #[error("the request has {size} bytes, but the limit for one message is {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("the worker does not read its messages")]
    Stuck,
}

/// The maximum size of the queue for a worker that does not read, as a multiple of the message limit.
const WAITING: usize = 2;

/// Messages are joined up to this many bytes. Larger messages are not copied, because a second
/// write is cheaper.
const TOGETHER: usize = 32 << 10;

/// Above this many invocations on one worker, a message is queued instead of written directly.
const BUSY: usize = 2;

impl WorkerOutbox {
    pub(crate) fn new(framing: Framing, limit: usize, socket: Option<std::sync::Arc<SocketWriter>>) -> Self {
        Self { framing, limit, socket, state: Mutex::default() }
    }

    /// Writes or queues a message. `in_flight` is the number of invocations of the worker.
    pub(crate) fn send(&self, message: &StreamingMessage, in_flight: usize) -> Result<(), SendError> {
        self.post(self.framing.encode(message, self.limit), in_flight)
    }

    /// Writes or queues the request of an invocation.
    pub(crate) fn send_invocation(&self, invocation: Invocation, in_flight: usize) -> Result<(), SendError> {
        self.post(self.framing.encode_invocation(invocation, self.limit), in_flight)
    }

    fn post(&self, encoded: Result<Vec<u8>, usize>, in_flight: usize) -> Result<(), SendError> {
        let frame = encoded.map_err(|size| SendError::TooLarge { size, limit: self.limit })?;
        let mut state = self.state();
        if state.closed.is_some() {
            return Err(SendError::Ended);
        }
        if let Some(socket) = &self.socket
            && in_flight <= BUSY
            && state.queue.is_empty()
            && !state.taken
        {
            match socket.try_write(&frame) {
                Ok(written) if written == frame.len() => return Ok(()),
                Ok(written) => state.written = written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => {
                    // The reader of the stream gets the same error and reports it.
                    state.closed = Some(CloseReason::Done);
                    return Err(SendError::Ended);
                }
            }
        }
        if !state.queue.is_empty() && state.waiting + frame.len() > self.limit.saturating_mul(WAITING) {
            return Err(SendError::Stuck);
        }
        state.waiting += frame.len();
        match state.queue.back_mut() {
            Some(last) if last.len() + frame.len() <= TOGETHER => {
                // Reserve the maximum size, so that the chunk is moved only once.
                last.reserve_exact(TOGETHER - last.len());
                last.extend_from_slice(&frame);
            }
            _ => state.queue.push_back(frame),
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// Waits until the queue is not empty or the stream is closed. The call confirms that the last
    /// chunk was written.
    pub(crate) fn poll_waiting(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        state.taken = false;
        if state.closed.is_some() || !state.queue.is_empty() {
            return Poll::Ready(());
        }
        state.remember(context);
        Poll::Pending
    }

    /// Takes the next chunk, for the one task that writes. The call confirms that the last chunk was written.
    pub(crate) fn poll_take(&self, context: &Context<'_>) -> Poll<Result<Bytes, CloseReason>> {
        let mut state = self.state();
        state.taken = false;
        if let Some(closed) = state.closed {
            return Poll::Ready(Err(closed));
        }
        let Some(piece) = state.queue.pop_front() else {
            state.remember(context);
            return Poll::Pending;
        };
        state.taken = true;
        state.waiting -= piece.len();
        let mut bytes = Bytes::from(piece);
        let written = std::mem::take(&mut state.written);
        Poll::Ready(Ok(bytes.split_off(written.min(bytes.len()))))
    }

    /// Closes the stream. Queued messages are not written.
    pub(crate) fn close(&self, how: CloseReason) {
        let mut state = self.state();
        state.closed.get_or_insert(how);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
