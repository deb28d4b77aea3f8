//! Streams that come in: which worker is it, and did we start it?
//!
//! Any process of this machine can connect. Only a stream whose first `StartStream` carries an id that we minted for
//! a process, and that no other stream has used, becomes a channel.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::worker::channel::WorkerChannel;
use crate::worker::channel::outbox::{CloseReason, WorkerOutbox};
use crate::worker::events::{WorkerEvents, WorkerNumber};
use crate::worker::limits::WorkerLimits;
use crate::worker::wire::framing::{Framing, IncomingMessage, WorkerInbox};
use crate::worker::wire::proto::streaming_message::Content;

/// How long a stream may take to say who it is.
pub(crate) const INTRODUCTION: Duration = Duration::from_secs(10);
/// How large the messages of a stranger may be.
const STRANGER: usize = 64 << 10;

/// The workers we wait for.
pub(crate) struct ExpectedWorkers {
    limits: WorkerLimits,
    events: Arc<dyn WorkerEvents>,
    /// By the id that was minted for each.
    expected: Mutex<HashMap<String, ChannelWaiter>>,
}

/// Somebody who started a worker and waits for its stream.
struct ChannelWaiter {
    worker: WorkerNumber,
    channel: oneshot::Sender<Arc<WorkerChannel>>,
}

impl ExpectedWorkers {
    pub(crate) fn new(limits: WorkerLimits, events: Arc<dyn WorkerEvents>) -> Self {
        Self { limits, events, expected: Mutex::default() }
    }

    /// Mints an id for a process; the answer is its channel, once it has connected.
    pub(crate) fn expect_worker(self: &Arc<Self>, worker: WorkerNumber) -> PendingChannel {
        let id = uuid::Uuid::new_v4().to_string();
        let (channel, receiver) = oneshot::channel();
        self.expected().insert(id.clone(), ChannelWaiter { worker, channel });
        PendingChannel { id, receiver, arrivals: Arc::clone(self) }
    }

    pub(crate) fn message_limit(&self) -> usize {
        self.limits.message
    }

    /// Streams at the same time: ours, some that end, and a few strangers.
    pub(crate) fn max_streams(&self) -> usize {
        64
    }

    fn expected(&self) -> MutexGuard<'_, HashMap<String, ChannelWaiter>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker that has been started and has not connected yet.
pub(crate) struct PendingChannel {
    id: String,
    receiver: oneshot::Receiver<Arc<WorkerChannel>>,
    arrivals: Arc<ExpectedWorkers>,
}

impl PendingChannel {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

impl Future for PendingChannel {
    /// None if the host stops.
    type Output = Option<Arc<WorkerChannel>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver).poll(context).map(Result::ok)
    }
}

impl Drop for PendingChannel {
    fn drop(&mut self) {
        self.arrivals.expected().remove(&self.id);
    }
}

/// The stream is not one of ours, or has broken.
pub(crate) struct StreamClosed;

/// One stream while it lives: its first message admits it, the others go to its channel.
pub(crate) struct IncomingStream {
    arrivals: Arc<ExpectedWorkers>,
    inbox: WorkerInbox,
    outbox: Arc<WorkerOutbox>,
    since: Instant,
    channel: Option<Arc<WorkerChannel>>,
    /// Set when the stream is admitted.
    admitted: Arc<AtomicBool>,
}

impl IncomingStream {
    pub(crate) fn new(arrivals: Arc<ExpectedWorkers>, framing: Framing, outbox: Arc<WorkerOutbox>) -> Self {
        let inbox = WorkerInbox::new(framing, STRANGER.min(arrivals.limits.message));
        Self { arrivals, inbox, outbox, since: Instant::now(), channel: None, admitted: Arc::default() }
    }

    /// Lets a connection know that one of its streams is admitted.
    pub(crate) fn with_admitted_flag(mut self, admitted: Arc<AtomicBool>) -> Self {
        self.admitted = admitted;
        self
    }

    pub(crate) fn inbox(&mut self) -> &mut WorkerInbox {
        &mut self.inbox
    }

    /// How long the stream still has to say who it is; none if it has.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        match self.channel {
            None => Some(INTRODUCTION.saturating_sub(self.since.elapsed())),
            Some(_) => None,
        }
    }

    /// Takes all messages that have arrived.
    pub(crate) fn drain(&mut self) -> Result<(), StreamClosed> {
        loop {
            match self.inbox.next() {
                Ok(None) => return Ok(()),
                Ok(Some(item)) => self.receive(item)?,
                Err(broken) => {
                    self.end(&broken.to_string());
                    return Err(StreamClosed);
                }
            }
        }
    }

    fn receive(&mut self, item: IncomingMessage) -> Result<(), StreamClosed> {
        if let Some(channel) = &self.channel {
            channel.receive(item);
            return Ok(());
        }
        // Anything before StartStream is ignored.
        let IncomingMessage::Message(message) = item else { return Ok(()) };
        let Some(Content::StartStream(start)) = message.content else { return Ok(()) };
        let admitted = self.arrivals.expected().remove(&start.worker_id);
        let Some(waiting) = admitted else {
            self.outbox.close(CloseReason::Refused);
            return Err(StreamClosed);
        };
        let channel = Arc::new(WorkerChannel::new(
            waiting.worker,
            Arc::clone(&self.outbox),
            &self.arrivals.limits,
            Arc::clone(&self.arrivals.events),
        ));
        self.inbox.set_limit(self.arrivals.limits.message);
        self.channel = Some(Arc::clone(&channel));
        self.admitted.store(true, Ordering::Relaxed);
        // If nobody waits any more, the process is about to be ended.
        let _ = waiting.channel.send(channel);
        Ok(())
    }

    /// The stream has ended.
    pub(crate) fn end(&self, reason: &str) {
        if let Some(channel) = &self.channel {
            channel.end(reason);
        }
    }
}

impl Drop for IncomingStream {
    fn drop(&mut self) {
        self.end("the stream to the worker has ended");
        self.outbox.close(CloseReason::Done);
    }
}
