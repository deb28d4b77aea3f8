//! [`MessageStream`]: a bounded queue of messages to a client, with one reader at a time.
//!
//! The writer waits while the reader is slow (backpressure). A reader that stays slow is detached. A stream
//! that retains delivered messages can be resumed after any of them, so a client that was disconnected gets
//! the rest.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

use crate::budget::ByteBudget;

/// The limits of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// The maximum number of unread messages.
    pub unread_messages: usize,
    /// The maximum size of the unread messages.
    pub unread_bytes: usize,
    /// The maximum number of retained messages: delivered ones that can be read again, and unread ones
    /// without a reader. All streams of a session share this limit.
    pub kept_messages: usize,
    /// The maximum size of the retained messages. All streams of a session share this limit.
    pub kept_bytes: usize,
    /// How long a writer waits for a slow reader.
    pub blocked: Duration,
}

impl Default for StreamLimits {
    fn default() -> StreamLimits {
        StreamLimits {
            unread_messages: 256,
            unread_bytes: 1024 * 1024,
            kept_messages: 1_000,
            kept_bytes: 4 * 1024 * 1024,
            blocked: Duration::from_secs(30),
        }
    }
}

/// Counts the messages that the streams of one session retain together.
#[derive(Debug, Default)]
pub(crate) struct RetentionCounter {
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

impl RetentionCounter {
    fn add(&self, message: &Bytes) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(message.len(), Ordering::Relaxed);
    }

    fn remove(&self, message: &Bytes) {
        self.messages.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(message.len(), Ordering::Relaxed);
    }

    fn is_over(&self, limits: &StreamLimits) -> bool {
        self.messages.load(Ordering::Relaxed) > limits.kept_messages
            || self.bytes.load(Ordering::Relaxed) > limits.kept_bytes
    }
}

/// A queue of encoded messages to a client.
#[derive(Debug)]
pub struct MessageStream {
    limits: StreamLimits,
    /// The server's budget, which limits the bytes of all streams together.
    budget: Arc<ByteBudget>,
    /// The session's counter, if delivered messages are retained.
    shelf: Option<Arc<RetentionCounter>>,
    state: Mutex<StreamState>,
    reader: AtomicWaker,
    room: Notify,
}

#[derive(Debug)]
struct StreamState {
    messages: VecDeque<Bytes>,
    /// The number of `messages[0]`.
    first: u64,
    /// The number of the next message to deliver.
    next: u64,
    unread_bytes: usize,
    /// Nothing more will be written.
    ended: bool,
    /// The stream ended with a response.
    answered: bool,
    hang_up: bool,
    /// The number of the newest reader. Only this reader reads.
    reader: u64,
    attached: bool,
    touched: Instant,
}

/// The outcome of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamRead {
    /// The next message, with its number.
    Message {
        /// The number of the message in the stream, from 1.
        number: u64,
        /// The encoded message.
        message: Bytes,
    },
    /// The stream has ended.
    End,
    /// The reader should disconnect and resume later.
    HangUp,
    /// Another reader has attached.
    Replaced,
}

/// A thread that waits for room.
struct ParkedThread(Thread);

impl Wake for ParkedThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Why a message was not written.
#[derive(Debug, PartialEq, Eq)]
enum PushError {
    Full,
    Ended,
}

impl MessageStream {
    /// Returns a stream that discards messages once they are read.
    pub(crate) fn new(limits: StreamLimits, budget: Arc<ByteBudget>) -> Arc<MessageStream> {
        Arc::new(MessageStream::with(limits, budget, None))
    }

    /// Returns a stream that retains delivered messages, so that it can be resumed.
    pub(crate) fn new_resumable(
        limits: StreamLimits,
        budget: Arc<ByteBudget>,
        shelf: Arc<RetentionCounter>,
    ) -> Arc<MessageStream> {
        let stream = Arc::new(MessageStream::with(limits, budget, Some(shelf)));
        stream.budget.register_retained(&stream);
        stream
    }

    fn with(
        limits: StreamLimits,
        budget: Arc<ByteBudget>,
        shelf: Option<Arc<RetentionCounter>>,
    ) -> MessageStream {
        let state = StreamState {
            messages: VecDeque::new(),
            first: 1,
            next: 1,
            unread_bytes: 0,
            ended: false,
            answered: false,
            hang_up: false,
            reader: 0,
            attached: false,
            touched: Instant::now(),
        };
        let (reader, room) = (AtomicWaker::new(), Notify::new());
        MessageStream { limits, budget, shelf, state: Mutex::new(state), reader, room }
    }

    fn lock(&self) -> MutexGuard<'_, StreamState> {
        // The state is plain data, and every change is complete before the lock is released.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a message. Waits while the reader is slow. Returns `false` if the stream has ended or the
    /// reader was detached.
    pub async fn send(&self, message: Bytes) -> bool {
        match self.push(&message, false) {
            Ok(()) => return true,
            Err(PushError::Ended) => return false,
            Err(PushError::Full) => {}
        }
        let until = tokio::time::Instant::now() + self.limits.blocked;
        loop {
            let room = self.room.notified();
            match self.push(&message, false) {
                Ok(()) => return true,
                Err(PushError::Ended) => return false,
                Err(PushError::Full) => {}
            }
            if tokio::time::timeout_at(until, room).await.is_err() {
                self.give_up_reader();
                return self.push(&message, false).is_ok();
            }
        }
    }

    /// Writes a message like [`send`](MessageStream::send), on a thread that may block.
    pub fn send_blocking(&self, message: &Bytes) -> bool {
        let until = Instant::now() + self.limits.blocked;
        let waker = Waker::from(Arc::new(ParkedThread(thread::current())));
        loop {
            let mut room = pin!(self.room.notified());
            match self.push(message, false) {
                Ok(()) => return true,
                Err(PushError::Ended) => return false,
                Err(PushError::Full) => {}
            }
            while room.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    self.give_up_reader();
                    return self.push(message, false).is_ok();
                }
                thread::park_timeout(left);
            }
        }
    }

    /// Writes a message if the stream has room now. Returns whether it did.
    pub fn try_send(&self, message: Bytes) -> bool {
        self.push(&message, false).is_ok()
    }

    /// Writes the last message regardless of the limits, and ends the stream.
    pub fn finish(&self, message: Bytes) {
        if self.push(&message, true).is_ok() {
            self.lock().answered = true;
        }
        self.end();
    }

    /// Ends the stream. The reader gets the unread messages and then the end.
    pub fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.touched = Instant::now();
        drop(state);
        self.reader.wake();
        self.room.notify_waiters();
    }

    /// Asks the reader to disconnect and resume later.
    pub fn hang_up(&self) {
        self.lock().hang_up = true;
        self.reader.wake();
    }

    /// Returns whether the reader is asked to disconnect.
    pub fn is_hung_up(&self) -> bool {
        self.lock().hang_up
    }

    /// Takes the response if the stream has ended and the response is its only message. Returns
    /// `Some(None)` if the stream ended without any message, and `None` in all other cases.
    pub fn take_sole_answer(&self) -> Option<Option<Bytes>> {
        let mut state = self.lock();
        let only_answered = state.messages.len() == usize::from(state.answered);
        let untouched = state.ended && state.next == 1 && only_answered && !state.hang_up;
        untouched.then(|| {
            let only = state.messages.front().cloned();
            self.drop_first(&mut state);
            only
        })
    }

    /// Returns whether the stream has ended and this is its last message.
    pub fn has_nothing_after(&self, number: u64) -> bool {
        let state = self.lock();
        state.ended && number.saturating_add(1) == state.first + state.messages.len() as u64
    }

    /// Returns whether the stream has ended.
    pub fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Polls until a read would be ready: a message, the end, or a hang-up.
    pub fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        self.reader.register(context.waker());
        let state = self.lock();
        let unread = state.first + state.messages.len() as u64 > state.next;
        if unread || state.ended || state.hang_up { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Returns whether a reader is attached.
    pub fn is_read(&self) -> bool {
        self.lock().attached
    }

    /// Returns how long the stream has been idle without a reader. `None` if a reader is attached.
    pub fn abandoned_for(&self) -> Option<Duration> {
        let state = self.lock();
        (!state.attached).then(|| state.touched.elapsed())
    }

    /// Attaches a reader that starts after the message `after`, and returns its number. Returns `None` if
    /// that message is unknown or no longer retained.
    pub fn attach(&self, after: Option<u64>) -> Option<u64> {
        let mut state = self.lock();
        if let Some(after) = after {
            let end = state.first + state.messages.len() as u64;
            if after >= end || after + 1 < state.first {
                return None;
            }
            state.next = after + 1;
            let skip = (state.next - state.first) as usize;
            state.unread_bytes = state.messages.iter().skip(skip).map(Bytes::len).sum();
        }
        state.reader += 1;
        state.attached = true;
        state.hang_up = false;
        state.touched = Instant::now();
        let reader = state.reader;
        drop(state);
        // Wake the previous reader, so that it sees that it was replaced.
        self.reader.wake();
        Some(reader)
    }

    /// Detaches a reader.
    pub fn detach(&self, reader: u64) {
        let mut state = self.lock();
        if state.reader == reader {
            state.attached = false;
            state.touched = Instant::now();
        }
        drop(state);
        self.room.notify_waiters();
    }

    /// Polls the next message for this reader.
    pub fn poll_pop(&self, context: &mut Context<'_>, reader: u64) -> Poll<StreamRead> {
        let mut state = self.lock();
        if state.reader != reader {
            return Poll::Ready(StreamRead::Replaced);
        }
        self.reader.register(context.waker());
        let index = (state.next - state.first) as usize;
        let Some(message) = state.messages.get(index).cloned() else {
            return match (state.ended, state.hang_up) {
                (true, _) => Poll::Ready(StreamRead::End),
                (false, true) => Poll::Ready(StreamRead::HangUp),
                (false, false) => Poll::Pending,
            };
        };
        let number = state.next;
        state.next += 1;
        state.unread_bytes -= message.len();
        state.touched = Instant::now();
        if self.shelf.is_none() {
            self.drop_first(&mut state);
        }
        drop(state);
        self.room.notify_waiters();
        Poll::Ready(StreamRead::Message { number, message })
    }

    fn push(&self, message: &Bytes, last: bool) -> Result<(), PushError> {
        // Before the lock, because an eviction takes the locks of other streams.
        let counted = self.budget.take_bulk(cost(message));
        let pushed = self.push_counted(message, last, counted);
        if counted && pushed.is_err() {
            self.budget.give_back(cost(message));
        }
        pushed
    }

    fn push_counted(&self, message: &Bytes, last: bool, counted: bool) -> Result<(), PushError> {
        let mut state = self.lock();
        if state.ended {
            return Err(PushError::Ended);
        }
        // Until the first reader attaches, the writer waits as for a slow reader.
        let parked = self.shelf.is_some() && !state.attached && state.reader > 0;
        let unread = state.first + state.messages.len() as u64 - state.next;
        let full = unread as usize >= self.limits.unread_messages
            || unread > 0 && state.unread_bytes + message.len() > self.limits.unread_bytes;
        // With an exhausted budget, a reader that keeps up still gets its messages, one at a time.
        if (full && !parked || !counted && unread > 0) && !last {
            return Err(PushError::Full);
        }
        if !counted {
            self.budget.take_anyway(cost(message));
        }
        state.unread_bytes += message.len();
        state.messages.push_back(message.clone());
        if let Some(shelf) = &self.shelf {
            shelf.add(message);
            // The oldest messages of this stream are dropped, except those that an attached reader has not
            // read. The unread limits apply to those.
            while shelf.is_over(&self.limits)
                && state.messages.len() > 1
                && (parked || state.next > state.first)
            {
                self.drop_first(&mut state);
            }
        }
        state.touched = Instant::now();
        drop(state);
        self.reader.wake();
        Ok(())
    }

    /// Detaches a reader that is too slow. A stream that cannot be resumed ends.
    fn give_up_reader(&self) {
        let mut state = self.lock();
        state.attached = false;
        state.reader += 1;
        if self.shelf.is_none() {
            state.ended = true;
        }
        drop(state);
        self.reader.wake();
    }

    fn drop_first(&self, state: &mut StreamState) {
        if let Some(message) = state.messages.pop_front() {
            self.budget.give_back(cost(&message));
            if let Some(shelf) = &self.shelf {
                shelf.remove(&message);
            }
            if state.next == state.first {
                state.unread_bytes -= message.len();
                state.next += 1;
            }
            state.first += 1;
        }
    }
}

impl MessageStream {
    /// Returns the time of the last write or read.
    pub(crate) fn last_touched(&self) -> Instant {
        self.lock().touched
    }

    /// Returns the bytes that an eviction would free: delivered messages, and unread ones if no reader was
    /// attached for this long.
    pub(crate) fn droppable(&self, parked_for: Duration) -> usize {
        let state = self.lock();
        let delivered = (state.next - state.first) as usize;
        let most = if self.is_parked(&state, parked_for) { state.messages.len() } else { delivered };
        state.messages.iter().take(most).map(cost).sum()
    }

    /// Drops delivered messages. Returns the freed bytes.
    pub(crate) fn drop_delivered(&self) -> usize {
        let mut state = self.lock();
        self.drop_while(&mut state, |state| state.first < state.next)
    }

    /// Drops all messages if no reader was attached for this long. Returns the freed bytes.
    pub(crate) fn drop_parked(&self, parked_for: Duration) -> usize {
        let mut state = self.lock();
        let parked = self.is_parked(&state, parked_for);
        self.drop_while(&mut state, |_| parked)
    }

    fn is_parked(&self, state: &StreamState, for_: Duration) -> bool {
        self.shelf.is_some() && !state.attached && state.reader > 0 && state.touched.elapsed() >= for_
    }

    fn drop_while(&self, state: &mut StreamState, more: impl Fn(&StreamState) -> bool) -> usize {
        let mut freed = 0;
        while more(state)
            && let Some(bytes) = state.messages.front().map(cost)
        {
            self.drop_first(state);
            freed += bytes;
        }
        state.messages.shrink_to_fit();
        freed
    }
}

/// Returns the bytes of the budget that a message uses.
fn cost(message: &Bytes) -> usize {
    /// The approximate memory of a message besides its bytes.
    const OVERHEAD: usize = 64;
    message.len() + OVERHEAD
}

impl Drop for MessageStream {
    fn drop(&mut self) {
        for message in &self.lock().messages {
            self.budget.give_back(cost(message));
            if let Some(shelf) = &self.shelf {
                shelf.remove(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    async fn pop(stream: &MessageStream, reader: u64) -> StreamRead {
        poll_fn(|context| stream.poll_pop(context, reader)).await
    }

    /// Returns a budget that is never exhausted.
    fn ample() -> Arc<ByteBudget> {
        ByteBudget::new(usize::MAX)
    }

    fn message(number: u64, text: &'static str) -> StreamRead {
        StreamRead::Message { number, message: Bytes::from_static(text.as_bytes()) }
    }

    #[tokio::test]
    async fn a_resumable_stream_can_be_read_again_after_any_message() {
        let stream = MessageStream::new_resumable(StreamLimits::default(), ample(), Arc::default());
        let first = stream.attach(None).unwrap();
        for text in ["a", "b", "c"] {
            assert!(stream.send(text.into()).await);
        }
        assert_eq!(pop(&stream, first).await, message(1, "a"));
        assert_eq!(pop(&stream, first).await, message(2, "b"));
        let second = stream.attach(Some(1)).unwrap();
        assert_eq!(pop(&stream, first).await, StreamRead::Replaced);
        assert_eq!(pop(&stream, second).await, message(2, "b"));
        stream.finish("d".into());
        assert_eq!(pop(&stream, second).await, message(3, "c"));
        assert_eq!(pop(&stream, second).await, message(4, "d"));
        assert_eq!(pop(&stream, second).await, StreamRead::End);
        assert_eq!(stream.attach(Some(9)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_waits_for_a_slow_reader_and_then_detaches_it() {
        let limits = StreamLimits { unread_messages: 2, ..StreamLimits::default() };
        let stream = MessageStream::new(limits, ample());
        let reader = stream.attach(None).unwrap();
        assert!(stream.send("a".into()).await && stream.send("b".into()).await);
        assert!(!stream.try_send("c".into()));
        assert!(!stream.send("c".into()).await);
        assert_eq!(pop(&stream, reader).await, StreamRead::Replaced);
        assert!(stream.has_ended());
    }

    #[tokio::test]
    async fn a_thread_waits_for_a_slow_reader_and_then_detaches_it() {
        let limits =
            StreamLimits { unread_messages: 1, blocked: Duration::from_secs(1), ..StreamLimits::default() };
        let stream = MessageStream::new(limits, ample());
        let reader = stream.attach(None).unwrap();
        let writer = stream.clone();
        let written = thread::spawn(move || {
            [b"a", b"b", b"c", b"d"].map(|text| writer.send_blocking(&Bytes::from_static(text)))
        });
        for (number, text) in [(1, "a"), (2, "b")] {
            assert_eq!(pop(&stream, reader).await, message(number, text));
        }
        // The third one fills the stream, and nothing reads it any more.
        assert_eq!(written.join().unwrap(), [true, true, true, false]);
        assert!(stream.has_ended());
    }

    #[tokio::test(start_paused = true)]
    async fn a_resumable_stream_without_a_reader_retains_messages_within_its_limits() {
        let limits = StreamLimits { unread_messages: 2, kept_messages: 3, ..StreamLimits::default() };
        let stream = MessageStream::new_resumable(limits, ample(), Arc::default());
        let disconnected = stream.attach(None).unwrap();
        stream.detach(disconnected);
        for text in ["a", "b", "c", "d", "e"] {
            assert!(stream.send(text.into()).await);
        }
        let reader = stream.attach(None).unwrap();
        assert_eq!(pop(&stream, reader).await, message(3, "c"));
        assert_eq!(stream.attach(Some(1)), None);
    }

    #[tokio::test]
    async fn the_streams_of_a_session_share_the_retention_limit() {
        let limits = StreamLimits { kept_bytes: 100, ..StreamLimits::default() };
        let shelf = Arc::<RetentionCounter>::default();
        let budget = ample();
        let streams = [(); 5].map(|()| MessageStream::new_resumable(limits, budget.clone(), shelf.clone()));
        for stream in &streams {
            let reader = stream.attach(None).unwrap();
            stream.detach(reader);
            for _ in 0..10 {
                assert!(stream.send(Bytes::from(vec![b'x'; 30])).await);
            }
        }
        // Each stream may retain its newest message beyond the shared limit.
        assert!(shelf.bytes.load(Ordering::Relaxed) <= 100 + 5 * 30);
        drop(streams);
        assert_eq!(shelf.bytes.load(Ordering::Relaxed), 0);
        assert_eq!(shelf.messages.load(Ordering::Relaxed), 0);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn the_oldest_retained_messages_are_evicted_first() {
        let message = || Bytes::from(vec![b'x'; 936]);
        // Streams may use three quarters of it, which is nine messages.
        let budget = ByteBudget::new(12_000);
        let stream = || MessageStream::new_resumable(StreamLimits::default(), budget.clone(), Arc::default());
        let [old, new] = [stream(), stream()];
        for stream in [&old, &new] {
            let reader = stream.attach(None).unwrap();
            for _ in 0..4 {
                assert!(stream.send(message()).await);
                pop(stream, reader).await;
            }
        }
        let reader = new.attach(Some(4)).unwrap();
        for _ in 0..4 {
            assert!(new.send(message()).await);
            pop(&new, reader).await;
        }
        assert!(budget.used() <= 9_000, "{}", budget.used());
        assert_eq!(old.attach(Some(1)), None, "the older messages are still retained");
        assert!(new.attach(Some(1)).is_some(), "the newer messages were evicted first");
    }

    #[tokio::test]
    async fn nothing_is_evicted_if_it_would_not_free_enough() {
        let budget = ByteBudget::new(12_000);
        let stream = MessageStream::new_resumable(StreamLimits::default(), budget.clone(), Arc::default());
        let reader = stream.attach(None).unwrap();
        assert!(stream.send(Bytes::from(vec![b'x'; 936])).await);
        pop(&stream, reader).await;
        // A client that was disconnected a moment ago resumes and gets its unread messages.
        stream.detach(reader);
        assert!(stream.send(Bytes::from(vec![b'y'; 936])).await);
        assert!(budget.reserve(20_000).is_none());
        let _others = budget.reserve_anyway(10_500);
        assert!(budget.reserve(1_500).is_none(), "unread messages were evicted");
        assert!(stream.attach(Some(0)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_keeps_up_gets_its_messages_with_an_exhausted_budget() {
        let budget = ByteBudget::new(1_000);
        let _others = budget.reserve_anyway(5_000);
        let stream = MessageStream::new(StreamLimits::default(), budget.clone());
        let reader = stream.attach(None).unwrap();
        for number in 1..10 {
            assert!(stream.send("a".into()).await);
            assert!(!stream.try_send("b".into()), "two unread messages with an exhausted budget");
            assert_eq!(pop(&stream, reader).await, message(number, "a"));
        }
        stream.finish("end".into());
        drop(stream);
        assert_eq!(budget.used(), 5_000);
    }
}
