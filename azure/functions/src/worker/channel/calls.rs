//! The running invocations of one worker.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry as Slot;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::worker::events::LogRecord;
use crate::worker::wire::proto::InvocationResponse;

/// The invocations of one worker, by id. Each receives exactly one answer.
#[derive(Default)]
pub(crate) struct InvocationTable {
    state: Mutex<InvocationTableState>,
    /// The number of running invocations, without cancelled ones.
    waiting: AtomicUsize,
    /// The number of invocations that the worker has not answered, including cancelled ones.
    running: AtomicUsize,
}

#[derive(Default)]
struct InvocationTableState {
    entries: HashMap<Arc<str>, InvocationEntry>,
    closed: bool,
}

enum InvocationEntry {
    Waiting(Arc<PendingInvocation>),
    /// Cancelled or timed out. Its answer only shows that the worker is free again.
    Abandoned,
}

/// How an invocation ended.
#[derive(Debug)]
pub(crate) enum InvocationAnswer {
    Response(Box<InvocationResponse>),
    /// The response was too large or could not be decoded.
    Spoiled(String),
    WorkerExited(String),
}

/// Why an invocation cannot begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BeginInvocationError {
    Closed,
    Duplicate,
}

impl InvocationTable {
    pub(crate) fn begin(
        &self,
        id: &Arc<str>,
        waiting_logs: LogQueueLimits,
    ) -> Result<Arc<PendingInvocation>, BeginInvocationError> {
        let mut state = self.state();
        if state.closed {
            return Err(BeginInvocationError::Closed);
        }
        let Slot::Vacant(slot) = state.entries.entry(Arc::clone(id)) else {
            return Err(BeginInvocationError::Duplicate);
        };
        let call = Arc::new(PendingInvocation { waiting_logs, state: Mutex::default() });
        slot.insert(InvocationEntry::Waiting(Arc::clone(&call)));
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(call)
    }

    /// Removes an invocation that was not sent.
    pub(crate) fn forget(&self, id: &str) {
        self.remove_entry(id);
    }

    /// Completes an invocation with its answer. An unknown id is ignored.
    pub(crate) fn answer(&self, id: &str, answer: InvocationAnswer) {
        if let Some(call) = self.remove_entry(id) {
            call.finish(answer);
        }
    }

    fn remove_entry(&self, id: &str) -> Option<Arc<PendingInvocation>> {
        let entry = self.state().entries.remove(id)?;
        self.running.fetch_sub(1, Ordering::Relaxed);
        match entry {
            InvocationEntry::Abandoned => None,
            InvocationEntry::Waiting(call) => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                Some(call)
            }
        }
    }

    /// Queues the record for its invocation. Returns the record if the invocation is unknown.
    pub(crate) fn log(&self, id: &str, log: LogRecord) -> Result<(), LogRecord> {
        let call = match self.state().entries.get(id) {
            None => return Err(log),
            Some(InvocationEntry::Abandoned) => return Ok(()),
            Some(InvocationEntry::Waiting(call)) => Arc::clone(call),
        };
        call.log(log);
        Ok(())
    }

    /// Marks an invocation as cancelled. Returns whether it was still waiting for its answer.
    pub(crate) fn abandon(&self, id: &str) -> bool {
        let mut state = self.state();
        match state.entries.get_mut(id) {
            Some(entry @ InvocationEntry::Waiting(_)) => {
                *entry = InvocationEntry::Abandoned;
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    /// Returns whether the worker has not answered this invocation yet.
    pub(crate) fn is_running(&self, id: &str) -> bool {
        self.state().entries.contains_key(id)
    }

    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn running_count(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Accepts no further invocations. Running ones may still be answered.
    pub(crate) fn close(&self) {
        self.state().closed = true;
    }

    /// Fails all invocations.
    pub(crate) fn fail_all(&self, reason: &str) {
        let entries = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.entries)
        };
        self.running.fetch_sub(entries.len(), Ordering::Relaxed);
        for entry in entries.into_values() {
            if let InvocationEntry::Waiting(call) = entry {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                call.finish(InvocationAnswer::WorkerExited(reason.to_owned()));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, InvocationTableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of one invocation, shared by the task that reads from the worker and the caller.
pub(crate) struct PendingInvocation {
    waiting_logs: LogQueueLimits,
    state: Mutex<PendingInvocationState>,
}

/// The limits of the log queue of an invocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogQueueLimits {
    pub(crate) records: usize,
    pub(crate) bytes: usize,
}

#[derive(Default)]
struct PendingInvocationState {
    logs: VecDeque<LogRecord>,
    /// The total size of `logs`, in bytes.
    waiting: usize,
    dropped: u64,
    answer: Option<InvocationAnswer>,
    waker: Option<Waker>,
}

/// An event of an invocation.
pub(crate) enum InvocationEvent {
    Log(LogRecord),
    Answer(InvocationAnswer),
}

impl PendingInvocation {
    /// Returns the next log record. The answer follows after the last record.
    pub(crate) async fn next(&self) -> InvocationEvent {
        poll_fn(|context| {
            let mut state = self.state();
            if let Some(log) = state.logs.pop_front() {
                state.waiting -= log.size();
                return Poll::Ready(InvocationEvent::Log(log));
            }
            if let Some(answer) = state.answer.take() {
                if state.dropped > 0 {
                    state.answer = Some(answer);
                    return Poll::Ready(InvocationEvent::Log(LogRecord::dropped_notice(std::mem::take(
                        &mut state.dropped,
                    ))));
                }
                return Poll::Ready(InvocationEvent::Answer(answer));
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn log(&self, log: LogRecord) {
        let mut state = self.state();
        let size = log.size();
        let LogQueueLimits { records, bytes } = self.waiting_logs;
        if state.logs.len() >= records || state.waiting + size > bytes {
            state.dropped += 1;
            return;
        }
        state.waiting += size;
        state.logs.push_back(log);
        wake(state);
    }

    fn finish(&self, answer: InvocationAnswer) {
        let mut state = self.state();
        state.answer = Some(answer);
        wake(state);
    }

    fn state(&self) -> MutexGuard<'_, PendingInvocationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Releases the lock, then wakes the waiting task.
fn wake(mut state: MutexGuard<'_, PendingInvocationState>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: LogQueueLimits = LogQueueLimits { records: 10, bytes: 10_000 };

    #[tokio::test]
    async fn queued_records_are_limited_by_size() {
        let calls = InvocationTable::default();
        let call = calls.begin(&"a".into(), ROOM).unwrap();
        let log = |size| LogRecord {
            category: String::new(),
            message: "x".repeat(size),
            ..LogRecord::dropped_notice(0)
        };
        // The second record fills the queue, and none is removed before the others are added.
        for size in [6_000, 4_000, 1, 1] {
            calls.log("a", log(size)).unwrap();
        }
        calls.answer("a", InvocationAnswer::Spoiled(String::new()));
        let mut received = Vec::new();
        while let InvocationEvent::Log(log) = call.next().await {
            received.push(log.message);
        }
        assert_eq!(received.iter().map(String::len).take(2).collect::<Vec<_>>(), [6_000, 4_000]);
        assert!(received.get(2).is_some_and(|last| last.starts_with("2 log records")), "{received:?}");
    }

    #[test]
    fn an_abandoned_invocation_keeps_the_worker_busy_until_it_answers() {
        let calls = InvocationTable::default();
        calls.begin(&"a".into(), ROOM).unwrap();
        assert_eq!(calls.begin(&"a".into(), ROOM).err(), Some(BeginInvocationError::Duplicate));
        assert!(calls.abandon("a"));
        assert!(!calls.abandon("a"));
        assert_eq!((calls.waiting_count(), calls.running_count()), (0, 1));
        calls.answer("a", InvocationAnswer::Spoiled(String::new()));
        calls.answer("unknown", InvocationAnswer::Spoiled(String::new()));
        assert_eq!((calls.waiting_count(), calls.running_count()), (0, 0));
    }

    #[test]
    fn no_invocation_begins_after_the_end() {
        let calls = InvocationTable::default();
        calls.begin(&"a".into(), ROOM).unwrap();
        calls.close();
        assert_eq!(calls.begin(&"b".into(), ROOM).err(), Some(BeginInvocationError::Closed));
        assert_eq!(calls.waiting_count(), 1);
        calls.fail_all("exited");
        assert_eq!((calls.waiting_count(), calls.running_count()), (0, 0));
    }
}
