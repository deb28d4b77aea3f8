//! Matches incoming streams to the workers that the host started.
//!
//! Any process on this machine can connect. A stream becomes a channel only if its first `StartStream`
//! carries an id that the host created for a process and that no other stream has used.

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

/// How long a stream may take to send its worker id.
pub(crate) const INTRODUCTION: Duration = Duration::from_secs(10);
/// The maximum message size before a stream has sent its worker id.
const STRANGER: usize = 64 << 10;

/// Workers that were started and have not connected yet.
pub(crate) struct ExpectedWorkers {
    limits: WorkerLimits,
    events: Arc<dyn WorkerEvents>,
    /// The waiting starts, by worker id.
    expected: Mutex<HashMap<String, ChannelWaiter>>,
}

/// The start of a worker that waits for its stream.
struct ChannelWaiter {
    worker: WorkerNumber,
    channel: oneshot::Sender<Arc<WorkerChannel>>,
}

impl ExpectedWorkers {
    pub(crate) fn new(limits: WorkerLimits, events: Arc<dyn WorkerEvents>) -> Self {
        Self { limits, events, expected: Mutex::default() }
    }

    /// Creates an id for a process. The result resolves to its channel once the process has connected.
    pub(crate) fn expect_worker(self: &Arc<Self>, worker: WorkerNumber) -> PendingChannel {
        let id = uuid::Uuid::new_v4().to_string();
        let (channel, receiver) = oneshot::channel();
        self.expected().insert(id.clone(), ChannelWaiter { worker, channel });
        PendingChannel { id, receiver, arrivals: Arc::clone(self) }
    }

    pub(crate) fn message_limit(&self) -> usize {
        self.limits.message
    }

    /// Returns the maximum number of concurrent streams: those of workers, and a few unknown ones.
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
    /// `None` if the host stops.
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

/// The stream does not belong to a worker, or is broken.
pub(crate) struct StreamClosed;

/// One incoming stream. Its first message admits it, and the following ones are passed to its channel.
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

    /// Sets the flag that is raised when the stream is admitted.
    pub(crate) fn with_admitted_flag(mut self, admitted: Arc<AtomicBool>) -> Self {
        self.admitted = admitted;
        self
    }

    pub(crate) fn inbox(&mut self) -> &mut WorkerInbox {
        &mut self.inbox
    }

    /// Returns the time left to send the worker id. `None` if the stream is admitted.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        match self.channel {
            None => Some(INTRODUCTION.saturating_sub(self.since.elapsed())),
            Some(_) => None,
        }
    }

    /// Handles all messages that have been received.
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
        // If the receiver was dropped, the process is about to be killed.
        let _ = waiting.channel.send(channel);
        Ok(())
    }

    /// Ends the channel of the stream.
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
