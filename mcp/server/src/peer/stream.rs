//! [`MessageStream`]: a bounded queue of messages to a client, with one reader at a time.
//!
//! The writing side waits while the reader is behind; a reader that stays behind is given up. A
//! stream that keeps what it delivered can be read again from any message on: that is how a client
//! whose connection was cut gets the rest.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

use crate::budget::ByteBudget;

/// How much a stream holds.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// Messages that wait for the reader.
    pub unread_messages: usize,
    /// Their bytes.
    pub unread_bytes: usize,
    /// Messages kept for reading again, or parked while nobody reads; all streams of a session share it.
    pub kept_messages: usize,
    /// Their bytes.
    pub kept_bytes: usize,
    /// How long a writer waits for a reader that is behind.
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

/// What the streams of one session keep together.
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
    /// What counts the bytes of all streams, and of all else that is kept for clients.
    budget: Arc<ByteBudget>,
    /// Where delivered messages are kept, if they are.
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
    /// It ended with an answer.
    answered: bool,
    hang_up: bool,
    /// Counts readers; only the newest one reads.
    reader: u64,
    attached: bool,
    touched: Instant,
}

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamRead {
    /// The next message, with its number.
    Message {
        /// Counts from 1.
        number: u64,
        /// Encoded.
        message: Bytes,
    },
    /// Nothing more will come.
    End,
    /// Go away and come back: the rest will be here.
    HangUp,
    /// Another reader has taken over.
    Replaced,
}

/// Why a message was not taken.
#[derive(Debug, PartialEq, Eq)]
enum PushError {
    Full,
    Ended,
}

impl MessageStream {
    /// A stream whose messages are gone once read.
    pub(crate) fn new(limits: StreamLimits, budget: Arc<ByteBudget>) -> Arc<MessageStream> {
        Arc::new(MessageStream::with(limits, budget, None))
    }

    /// A stream that keeps what it delivered, so that it can be read again.
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
        // The state is plain data and every change to it is complete before the lock is let go.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a message, waiting while the reader is behind. `false`: the stream has ended, or the
    /// reader was given up.
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

    /// Writes a message if there is room now.
    pub fn try_send(&self, message: Bytes) -> bool {
        self.push(&message, false).is_ok()
    }

    /// Writes the last message, whatever the limits say, and ends the stream.
    pub fn finish(&self, message: Bytes) {
        if self.push(&message, true).is_ok() {
            self.lock().answered = true;
        }
        self.end();
    }

    /// Ends the stream: the reader gets what is there and then the end.
    pub fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.touched = Instant::now();
        drop(state);
        self.reader.wake();
        self.room.notify_waiters();
    }

    /// Asks the reader to go away and come back later.
    pub fn hang_up(&self) {
        self.lock().hang_up = true;
        self.reader.wake();
    }

    /// Whether the reader is asked to go away.
    pub fn is_hung_up(&self) -> bool {
        self.lock().hang_up
    }

    /// The answer a stream has ended with, if nobody has read it and nothing was said before
    /// (`Some(None)` if it ended without a word); `None` if there is more to it than that.
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

    /// Whether a reader that has seen this message has seen everything.
    pub fn has_nothing_after(&self, number: u64) -> bool {
        let state = self.lock();
        state.ended && number.saturating_add(1) == state.first + state.messages.len() as u64
    }

    /// Whether nothing more will be written.
    pub fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Whether there is something for a reader: a message, the end, a hang-up.
    pub fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        self.reader.register(context.waker());
        let state = self.lock();
        let unread = state.first + state.messages.len() as u64 > state.next;
        if unread || state.ended || state.hang_up { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether somebody reads.
    pub fn is_read(&self) -> bool {
        self.lock().attached
    }

    /// How long nothing has been written or read, when nobody reads.
    pub fn abandoned_for(&self) -> Option<Duration> {
        let state = self.lock();
        (!state.attached).then(|| state.touched.elapsed())
    }

    /// Becomes the reader, from the message after `after` on. `None` if that one is not known (any more).
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
        // The reader before this one wakes up to learn that it was replaced.
        self.reader.wake();
        Some(reader)
    }

    /// Stops reading.
    pub fn detach(&self, reader: u64) {
        let mut state = self.lock();
        if state.reader == reader {
            state.attached = false;
            state.touched = Instant::now();
        }
        drop(state);
        self.room.notify_waiters();
    }

    /// The next message for this reader.
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
        // Before the lock: to make room the budget may take the locks of other streams.
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
        // Before its first reader comes, a stream waits for it like for a slow one.
        let parked = self.shelf.is_some() && !state.attached && state.reader > 0;
        let unread = state.first + state.messages.len() as u64 - state.next;
        let full = unread as usize >= self.limits.unread_messages
            || unread > 0 && state.unread_bytes + message.len() > self.limits.unread_bytes;
        // With the budget used up, a reader that keeps up still gets its messages, one at a time.
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
            // The oldest ones of this stream make room, but none that a reader is on its way to: the unread
            // limits bound those.
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

    /// The reader is too slow: park what follows, or end.
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
    /// When something was last written or read.
    pub(crate) fn last_touched(&self) -> Instant {
        self.lock().touched
    }

    /// The bytes that dropping what was delivered, and what has been parked for this long, would free.
    pub(crate) fn droppable(&self, parked_for: Duration) -> usize {
        let state = self.lock();
        let delivered = (state.next - state.first) as usize;
        let most = if self.is_parked(&state, parked_for) { state.messages.len() } else { delivered };
        state.messages.iter().take(most).map(cost).sum()
    }

    /// Forgets what was delivered; the bytes that are free then.
    pub(crate) fn drop_delivered(&self) -> usize {
        let mut state = self.lock();
        self.drop_while(&mut state, |state| state.first < state.next)
    }

    /// Forgets what waits for a reader that has been gone for this long; the bytes that are free then.
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

/// What a message takes of the budget.
fn cost(message: &Bytes) -> usize {
    /// What is kept besides its bytes.
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

    /// A budget that is never used up.
    fn ample() -> Arc<ByteBudget> {
        ByteBudget::new(usize::MAX)
    }

    fn message(number: u64, text: &'static str) -> StreamRead {
        StreamRead::Message { number, message: Bytes::from_static(text.as_bytes()) }
    }

    #[tokio::test]
    async fn a_kept_stream_can_be_read_again_from_any_message_on() {
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
    async fn a_writer_waits_for_a_slow_reader_and_then_gives_it_up() {
        let limits = StreamLimits { unread_messages: 2, ..StreamLimits::default() };
        let stream = MessageStream::new(limits, ample());
        let reader = stream.attach(None).unwrap();
        assert!(stream.send("a".into()).await && stream.send("b".into()).await);
        assert!(!stream.try_send("c".into()));
        assert!(!stream.send("c".into()).await);
        assert_eq!(pop(&stream, reader).await, StreamRead::Replaced);
        assert!(stream.has_ended());
    }

    #[tokio::test(start_paused = true)]
    async fn a_kept_stream_parks_what_nobody_reads_within_its_limits() {
        let limits = StreamLimits { unread_messages: 2, kept_messages: 3, ..StreamLimits::default() };
        let stream = MessageStream::new_resumable(limits, ample(), Arc::default());
        let gone = stream.attach(None).unwrap();
        stream.detach(gone);
        for text in ["a", "b", "c", "d", "e"] {
            assert!(stream.send(text.into()).await);
        }
        let reader = stream.attach(None).unwrap();
        assert_eq!(pop(&stream, reader).await, message(3, "c"));
        assert_eq!(stream.attach(Some(1)), None);
    }

    #[tokio::test]
    async fn the_streams_of_a_session_share_what_they_keep() {
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
        // Each may hold its newest message, whatever the others keep.
        assert!(shelf.bytes.load(Ordering::Relaxed) <= 100 + 5 * 30);
        drop(streams);
        assert_eq!(shelf.bytes.load(Ordering::Relaxed), 0);
        assert_eq!(shelf.messages.load(Ordering::Relaxed), 0);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn the_oldest_pasts_make_room_for_what_is_new() {
        let message = || Bytes::from(vec![b'x'; 936]);
        // Three quarters of it are for streams: room for nine messages.
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
        assert_eq!(old.attach(Some(1)), None, "the older past is still there");
        assert!(new.attach(Some(1)).is_some(), "the newer past was dropped first");
    }

    #[tokio::test]
    async fn no_past_is_dropped_for_what_would_not_fit_anyway() {
        let budget = ByteBudget::new(12_000);
        let stream = MessageStream::new_resumable(StreamLimits::default(), budget.clone(), Arc::default());
        let reader = stream.attach(None).unwrap();
        assert!(stream.send(Bytes::from(vec![b'x'; 936])).await);
        pop(&stream, reader).await;
        // A client whose connection was cut a moment ago comes back for what it has not read.
        stream.detach(reader);
        assert!(stream.send(Bytes::from(vec![b'y'; 936])).await);
        assert!(budget.reserve(20_000).is_none());
        let _others = budget.reserve_anyway(10_500);
        assert!(budget.reserve(1_500).is_none(), "what waits for a client was dropped");
        assert!(stream.attach(Some(0)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_keeps_up_gets_its_messages_though_the_budget_is_used_up() {
        let budget = ByteBudget::new(1_000);
        let _others = budget.reserve_anyway(5_000);
        let stream = MessageStream::new(StreamLimits::default(), budget.clone());
        let reader = stream.attach(None).unwrap();
        for number in 1..10 {
            assert!(stream.send("a".into()).await);
            assert!(!stream.try_send("b".into()), "two messages wait though nothing is left");
            assert_eq!(pop(&stream, reader).await, message(number, "a"));
        }
        stream.finish("end".into());
        drop(stream);
        assert_eq!(budget.used(), 5_000);
    }
}
