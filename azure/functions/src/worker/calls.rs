//! Invocations that one worker is busy with.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry as Slot;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::events::Log;
use super::proto::InvocationResponse;

/// The invocations of one worker, found by their id. Each is answered exactly once.
#[derive(Default)]
pub(super) struct Calls {
    state: Mutex<State>,
    /// Invocations somebody waits for.
    waiting: AtomicUsize,
    /// Those and the ones nobody waits for any more, but which the worker has not answered.
    running: AtomicUsize,
}

#[derive(Default)]
struct State {
    entries: HashMap<Arc<str>, Entry>,
    closed: bool,
}

enum Entry {
    Waiting(Arc<Call>),
    /// Cancelled or timed out; its answer is only good for knowing that the worker is free again.
    Abandoned,
}

/// How an invocation ended, as far as the stream can tell.
#[derive(Debug)]
pub(super) enum Answer {
    Response(Box<InvocationResponse>),
    /// The answer was too large or could not be read.
    Spoiled(String),
    WorkerExited(String),
}

/// Why an invocation cannot begin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Closed,
    Duplicate,
}

impl Calls {
    pub(super) fn begin(&self, id: &Arc<str>, waiting_logs: Room) -> Result<Arc<Call>, Refused> {
        let mut state = self.state();
        if state.closed {
            return Err(Refused::Closed);
        }
        let Slot::Vacant(slot) = state.entries.entry(Arc::clone(id)) else { return Err(Refused::Duplicate) };
        let call = Arc::new(Call { waiting_logs, state: Mutex::default() });
        slot.insert(Entry::Waiting(Arc::clone(&call)));
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(call)
    }

    /// Takes back an invocation that was not sent.
    pub(super) fn forget(&self, id: &str) {
        self.take(id);
    }

    /// Hands the answer to whoever waits. An id that is not known is ignored.
    pub(super) fn answer(&self, id: &str, answer: Answer) {
        if let Some(call) = self.take(id) {
            call.finish(answer);
        }
    }

    fn take(&self, id: &str) -> Option<Arc<Call>> {
        let entry = self.state().entries.remove(id)?;
        self.running.fetch_sub(1, Ordering::Relaxed);
        match entry {
            Entry::Abandoned => None,
            Entry::Waiting(call) => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                Some(call)
            }
        }
    }

    /// Gives the record to its invocation, or back if that is not known.
    pub(super) fn log(&self, id: &str, log: Log) -> Result<(), Log> {
        let call = match self.state().entries.get(id) {
            None => return Err(log),
            Some(Entry::Abandoned) => return Ok(()),
            Some(Entry::Waiting(call)) => Arc::clone(call),
        };
        call.log(log);
        Ok(())
    }

    /// Nobody waits for this invocation any more. Says whether somebody did.
    pub(super) fn abandon(&self, id: &str) -> bool {
        let mut state = self.state();
        match state.entries.get_mut(id) {
            Some(entry @ Entry::Waiting(_)) => {
                *entry = Entry::Abandoned;
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    /// Whether the worker has still not answered this invocation.
    pub(super) fn is_running(&self, id: &str) -> bool {
        self.state().entries.contains_key(id)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// No invocation begins from now on; those that run may still be answered.
    pub(super) fn close(&self) {
        self.state().closed = true;
    }

    /// Ends all invocations with an error.
    pub(super) fn fail_all(&self, reason: &str) {
        let entries = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.entries)
        };
        self.running.fetch_sub(entries.len(), Ordering::Relaxed);
        for entry in entries.into_values() {
            if let Entry::Waiting(call) = entry {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                call.finish(Answer::WorkerExited(reason.to_owned()));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One invocation, between the task that reads from the worker and the one that waits.
pub(super) struct Call {
    waiting_logs: Room,
    state: Mutex<CallState>,
}

/// How much of what a function logs may wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) records: usize,
    pub(super) bytes: usize,
}

#[derive(Default)]
struct CallState {
    logs: VecDeque<Log>,
    /// Bytes of all of them.
    waiting: usize,
    dropped: u64,
    answer: Option<Answer>,
    waker: Option<Waker>,
}

/// What comes next for one who waits for an invocation.
pub(super) enum Next {
    Log(Log),
    Answer(Answer),
}

impl Call {
    /// The next log record; the answer only after the last of them.
    pub(super) async fn next(&self) -> Next {
        poll_fn(|context| {
            let mut state = self.state();
            if let Some(log) = state.logs.pop_front() {
                state.waiting -= log.size();
                return Poll::Ready(Next::Log(log));
            }
            if let Some(answer) = state.answer.take() {
                if state.dropped > 0 {
                    state.answer = Some(answer);
                    return Poll::Ready(Next::Log(Log::dropped(std::mem::take(&mut state.dropped))));
                }
                return Poll::Ready(Next::Answer(answer));
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn log(&self, log: Log) {
        let mut state = self.state();
        let size = log.size();
        let Room { records, bytes } = self.waiting_logs;
        if state.logs.len() >= records || state.waiting + size > bytes {
            state.dropped += 1;
            return;
        }
        state.waiting += size;
        state.logs.push_back(log);
        wake(state);
    }

    fn finish(&self, answer: Answer) {
        let mut state = self.state();
        state.answer = Some(answer);
        wake(state);
    }

    fn state(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the one who waits, after the lock is free.
fn wake(mut state: MutexGuard<'_, CallState>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { records: 10, bytes: 10_000 };

    #[tokio::test]
    async fn records_wait_up_to_so_many_bytes() {
        let calls = Calls::default();
        let call = calls.begin(&"a".into(), ROOM).unwrap();
        let log = |size| Log { category: String::new(), message: "x".repeat(size), ..Log::dropped(0) };
        // The second one fills the room, and nothing has left it when the others come.
        for size in [6_000, 4_000, 1, 1] {
            calls.log("a", log(size)).unwrap();
        }
        calls.answer("a", Answer::Spoiled(String::new()));
        let mut told = Vec::new();
        while let Next::Log(log) = call.next().await {
            told.push(log.message);
        }
        assert_eq!(told.iter().map(String::len).take(2).collect::<Vec<_>>(), [6_000, 4_000]);
        assert!(told.get(2).is_some_and(|last| last.starts_with("2 log records")), "{told:?}");
    }

    #[test]
    fn an_abandoned_invocation_keeps_the_worker_busy_until_it_answers() {
        let calls = Calls::default();
        calls.begin(&"a".into(), ROOM).unwrap();
        assert_eq!(calls.begin(&"a".into(), ROOM).err(), Some(Refused::Duplicate));
        assert!(calls.abandon("a"));
        assert!(!calls.abandon("a"));
        assert_eq!((calls.waiting(), calls.running()), (0, 1));
        calls.answer("a", Answer::Spoiled(String::new()));
        calls.answer("never heard of", Answer::Spoiled(String::new()));
        assert_eq!((calls.waiting(), calls.running()), (0, 0));
    }

    #[test]
    fn no_invocation_begins_after_the_end() {
        let calls = Calls::default();
        calls.begin(&"a".into(), ROOM).unwrap();
        calls.close();
        assert_eq!(calls.begin(&"b".into(), ROOM).err(), Some(Refused::Closed));
        assert_eq!(calls.waiting(), 1);
        calls.fail_all("gone");
        assert_eq!((calls.waiting(), calls.running()), (0, 0));
    }
}
