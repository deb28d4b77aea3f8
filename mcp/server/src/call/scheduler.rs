//! [`CallScheduler`]: decides which calls run now and which call runs next.
//!
//! A call gets a free permit by one atomic step. Only calls that have to wait take a lock. They queue by
//! caller, then by session, and the callers take turns. A client without a running call can use one of the
//! extra permits, so it need not wait for the calls of others.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::auth::Caller;

/// The number of permits for each extra permit. Extra permits are for clients without a running call.
const PLACES_PER_EXTRA: usize = 4;

/// The permits of running calls, and the queue of waiting calls.
#[derive(Debug)]
pub(crate) struct CallScheduler {
    running: AtomicUsize,
    waiting: AtomicUsize,
    /// The permits for all calls.
    places: usize,
    /// The extra permits for clients without a running call.
    extra: usize,
    most_waiting: usize,
    queue: Mutex<CallQueue>,
}

/// The client of a call, as the scheduler identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey {
    pub(crate) caller: Caller,
    pub(crate) part: ClientPart,
}

/// Distinguishes the clients of one caller, above all anonymous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientPart {
    /// The session, identified by its memory address.
    Session(usize),
    /// The remote address, for calls without a session.
    Address(IpAddr),
    /// All clients of the caller together.
    Any,
}

impl ClientKey {
    /// Returns the key under which running calls are counted: an authenticated caller as a whole, an
    /// anonymous one by session or address.
    fn holder(&self) -> ClientKey {
        let part = if self.caller.is_authenticated() { ClientPart::Any } else { self.part };
        ClientKey { caller: self.caller.clone(), part }
    }
}

/// The outcome of a request for a permit.
#[derive(Debug)]
pub(crate) enum CallAdmission {
    Now(CallPermit),
    Later(PermitFuture),
    /// The queue is full.
    Refused,
}

#[derive(Debug, Default)]
struct CallQueue {
    /// The callers, in the order of their turns.
    callers: VecDeque<CallerQueue>,
    /// The number of permits that each client holds. Calls that finish at once are not counted.
    held: HashMap<ClientKey, usize>,
    last: u64,
}

#[derive(Debug)]
struct CallerQueue {
    caller: Caller,
    /// The clients of the caller, in the order of their turns.
    parts: VecDeque<ClientQueue>,
}

#[derive(Debug)]
struct ClientQueue {
    part: ClientPart,
    calls: VecDeque<QueuedCall>,
}

#[derive(Debug)]
struct QueuedCall {
    number: u64,
    granted: oneshot::Sender<CallPermit>,
}

impl CallScheduler {
    pub(crate) fn new(places: usize, most_waiting: usize) -> CallScheduler {
        CallScheduler {
            running: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            places,
            extra: places / PLACES_PER_EXTRA,
            most_waiting,
            queue: Mutex::default(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, CallQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grants a permit if one is free, and queues the call otherwise.
    pub(crate) fn admit(self: &Arc<Self>, key: impl FnOnce() -> ClientKey) -> CallAdmission {
        if self.waiting.load(Ordering::Relaxed) == 0 && self.occupy(self.places) {
            return CallAdmission::Now(CallPermit { turns: Some(self.clone()), holder: None });
        }
        self.admit_or_queue(key(), true)
    }

    /// Admits a call that has run before and continues. It is never rejected.
    pub(crate) fn readmit(self: &Arc<Self>, key: ClientKey) -> CallAdmission {
        self.admit_or_queue(key, false)
    }

    #[cold]
    fn admit_or_queue(self: &Arc<Self>, key: ClientKey, may_refuse: bool) -> CallAdmission {
        let mut queue = self.queue();
        let holder = key.holder();
        if !queue.held.contains_key(&holder) && self.occupy(self.places + self.extra) {
            return CallAdmission::Now(self.grant_permit(&mut queue, holder));
        }
        if may_refuse && self.waiting.load(Ordering::Relaxed) >= self.most_waiting {
            if !queue.displace_for(&key) {
                return CallAdmission::Refused;
            }
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        let (number, granted) = queue.push(key.clone());
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // A permit may have been released since the first check.
        self.grant_waiting(&mut queue);
        CallAdmission::Later(PermitFuture { turns: self.clone(), key, number, granted })
    }

    /// Increments the number of running calls if it is below `most`.
    fn occupy(&self, most: usize) -> bool {
        let one_more = |running: usize| (running < most).then_some(running + 1);
        self.running.fetch_update(Ordering::SeqCst, Ordering::Relaxed, one_more).is_ok()
    }

    fn grant_permit(self: &Arc<Self>, queue: &mut CallQueue, holder: ClientKey) -> CallPermit {
        *queue.held.entry(holder.clone()).or_default() += 1;
        CallPermit { turns: Some(self.clone()), holder: Some(holder) }
    }

    /// Grants free permits to queued calls.
    fn grant_waiting(self: &Arc<Self>, queue: &mut CallQueue) {
        while self.waiting.load(Ordering::SeqCst) > 0 {
            let next = if self.occupy(self.places) {
                queue.pop(|_, _| true)
            } else if self.occupy(self.places + self.extra) {
                queue.pop(|key, held| !held.contains_key(&key.holder()))
            } else {
                return;
            };
            let Some((key, call)) = next else {
                self.running.fetch_sub(1, Ordering::SeqCst);
                return;
            };
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            let place = self.grant_permit(queue, key.holder());
            if let Err(place) = call.granted.send(place) {
                // The call was dropped meanwhile. The lock is held, so the permit cannot be
                // released by `drop`.
                place.give_back(queue);
            }
        }
    }
}

impl CallQueue {
    fn push(&mut self, key: ClientKey) -> (u64, oneshot::Receiver<CallPermit>) {
        let (granted, receiver) = oneshot::channel();
        self.last += 1;
        let call = QueuedCall { number: self.last, granted };
        let ClientKey { caller, part } = key;
        let at = self.callers.iter().position(|line| line.caller == caller);
        let at = at.unwrap_or_else(|| {
            self.callers.push_back(CallerQueue { caller, parts: VecDeque::new() });
            self.callers.len() - 1
        });
        if let Some(line) = self.callers.get_mut(at) {
            match line.parts.iter_mut().find(|line| line.part == part) {
                Some(line) => line.calls.push_back(call),
                None => line.parts.push_back(ClientQueue { part, calls: VecDeque::from([call]) }),
            }
        }
        (self.last, receiver)
    }

    /// Removes and returns the next call among those that may run.
    fn pop(
        &mut self,
        may_run: impl Fn(&ClientKey, &HashMap<ClientKey, usize>) -> bool,
    ) -> Option<(ClientKey, QueuedCall)> {
        for at_caller in 0..self.callers.len() {
            let line = self.callers.get_mut(at_caller)?;
            for at_part in 0..line.parts.len() {
                let key = ClientKey { caller: line.caller.clone(), part: line.parts.get(at_part)?.part };
                if !may_run(&key, &self.held) {
                    continue;
                }
                let mut part = line.parts.remove(at_part)?;
                let call = part.calls.pop_front()?;
                if !part.calls.is_empty() {
                    line.parts.push_back(part);
                }
                let line = self.callers.remove(at_caller)?;
                if !line.parts.is_empty() {
                    self.callers.push_back(line);
                }
                return Some((key, call));
            }
        }
        None
    }

    /// Removes a call that no longer waits. Returns `false` if it is not in the queue.
    fn remove(&mut self, key: &ClientKey, number: u64) -> bool {
        let Some(line) = self.callers.iter_mut().find(|line| line.caller == key.caller) else { return false };
        let Some(part) = line.parts.iter_mut().find(|line| line.part == key.part) else { return false };
        let before = part.calls.len();
        part.calls.retain(|call| call.number != number);
        let removed = part.calls.len() < before;
        self.forget_empty();
        removed
    }

    /// Rejects the newest call of the client with the most queued calls, if it has more than this client
    /// would have. Callers are compared first. Within the same caller, its sessions are compared.
    fn displace_for(&mut self, key: &ClientKey) -> bool {
        let own = self.callers.iter().find(|line| line.caller == key.caller);
        let own_calls = own.map_or(0, CallerQueue::waiting);
        let own_part = own.and_then(|line| line.parts.iter().find(|line| line.part == key.part));
        let own_part_calls = own_part.map_or(0, |line| line.calls.len());
        let Some(most) = self.callers.iter_mut().max_by_key(|line| line.waiting()) else { return false };
        let is_same = most.caller == key.caller;
        if !is_same && most.waiting() <= own_calls + 1 {
            return false;
        }
        let Some(part) = most.parts.iter_mut().max_by_key(|line| line.calls.len()) else { return false };
        if is_same && part.calls.len() <= own_part_calls + 1 {
            return false;
        }
        let displaced = part.calls.pop_back().is_some();
        self.forget_empty();
        displaced
    }

    fn forget_empty(&mut self) {
        for line in &mut self.callers {
            line.parts.retain(|part| !part.calls.is_empty());
        }
        self.callers.retain(|line| !line.parts.is_empty());
    }

    fn release(&mut self, holder: &ClientKey) {
        if let Some(held) = self.held.get_mut(holder) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(holder);
            }
        }
    }
}

impl CallerQueue {
    fn waiting(&self) -> usize {
        self.parts.iter().map(|part| part.calls.len()).sum()
    }
}

/// The permit of a running call. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct CallPermit {
    turns: Option<Arc<CallScheduler>>,
    /// The client that holds the permit, once it was recorded.
    holder: Option<ClientKey>,
}

impl CallPermit {
    /// Records the client that holds the permit. Calls that finish at once need not do this.
    pub(crate) fn record_holder(&mut self, key: impl FnOnce() -> ClientKey) {
        if let (Some(turns), None) = (&self.turns, &self.holder) {
            let holder = key().holder();
            *turns.queue().held.entry(holder.clone()).or_default() += 1;
            self.holder = Some(holder);
        }
    }

    fn give_back(mut self, queue: &mut CallQueue) {
        if let (Some(turns), Some(holder)) = (self.turns.take(), &self.holder) {
            queue.release(holder);
            turns.running.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let Some(turns) = self.turns.take() else { return };
        match &self.holder {
            None => {
                turns.running.fetch_sub(1, Ordering::SeqCst);
                if turns.waiting.load(Ordering::SeqCst) > 0 {
                    turns.grant_waiting(&mut turns.queue());
                }
            }
            Some(holder) => {
                let mut queue = turns.queue();
                queue.release(holder);
                turns.running.fetch_sub(1, Ordering::SeqCst);
                turns.grant_waiting(&mut queue);
            }
        }
    }
}

/// A queued call. It resolves to a permit, or to `None` if it was rejected in favour of a client
/// with fewer calls.
#[derive(Debug)]
pub(crate) struct PermitFuture {
    turns: Arc<CallScheduler>,
    key: ClientKey,
    number: u64,
    granted: oneshot::Receiver<CallPermit>,
}

impl Future for PermitFuture {
    type Output = Option<CallPermit>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<CallPermit>> {
        Pin::new(&mut self.granted).poll(context).map(Result::ok)
    }
}

impl Drop for PermitFuture {
    fn drop(&mut self) {
        let mut queue = self.turns.queue();
        if queue.remove(&self.key, self.number) {
            self.turns.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        // A permit that was granted but not received is dropped with the receiver, after the lock.
    }
}
