//! [`ByteBudget`]: how many bytes a server keeps for its clients, all together.
//!
//! Bodies that are being received, bodies of calls that wait, messages that clients have not read, the pasts of
//! streams, results of tasks, subscriptions and large answers on their way all count. When the budget is used up, the
//! oldest pasts are dropped first; then what would keep more is refused.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::peer::stream::MessageStream;

/// What is at most this large may use the whole budget. Larger things leave a quarter of it free, so that a few large
/// bodies do not keep ordinary calls out.
const SMALL: usize = 64 * 1024;
/// Pasts are dropped in steps of at least this part of the budget, so that not every message looks for one.
const STEP: usize = 16;
/// For how long nothing is looked for after there was nothing left to drop.
const PAUSE: Duration = Duration::from_millis(100);

/// For how long a client whose connection was cut has its messages kept, whatever else there is no room for.
const PARKED: Duration = Duration::from_secs(30);

/// How many bytes a server keeps for its clients, all together.
#[derive(Debug)]
pub struct ByteBudget {
    used: AtomicUsize,
    most: usize,
    pasts: Mutex<RetainedStreams>,
}

/// The streams that keep what they delivered.
#[derive(Debug, Default)]
struct RetainedStreams {
    streams: Vec<Weak<MessageStream>>,
    /// There was nothing to drop when last looked at; looked at again from then on.
    look_again: Option<Instant>,
}

impl ByteBudget {
    pub(crate) fn new(most: usize) -> Arc<ByteBudget> {
        Arc::new(ByteBudget { used: AtomicUsize::new(0), most, pasts: Mutex::default() })
    }

    /// The bytes that are kept now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether nothing more may be kept. New calls are refused then: their answers would be kept, too.
    pub fn is_exhausted(&self) -> bool {
        self.used() >= self.most
    }

    /// Counts these bytes until what is returned is dropped; `None` if they are too many.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Option<ByteReservation> {
        let mut reserved = ByteReservation { budget: self.clone(), bytes: 0 };
        reserved.grow_to(bytes).then_some(reserved)
    }

    /// Counts these bytes, however many there are: they are here already.
    pub fn reserve_anyway(self: &Arc<Self>, bytes: usize) -> ByteReservation {
        self.take_anyway(bytes);
        ByteReservation { budget: self.clone(), bytes }
    }

    /// Takes bytes of something large, or of something there is much of.
    pub(crate) fn take_bulk(&self, bytes: usize) -> bool {
        self.try_take(bytes, self.most - self.most / 4)
    }

    pub(crate) fn take_anyway(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn try_take(&self, bytes: usize, most: usize) -> bool {
        let take = || {
            let add = |used: usize| used.checked_add(bytes).filter(|used| *used <= most);
            self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
        };
        take() || self.evict_retained(bytes, most) && take()
    }

    fn lock_retained(&self) -> MutexGuard<'_, RetainedStreams> {
        self.pasts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a stream whose past may be dropped.
    pub(crate) fn register_retained(&self, stream: &Arc<MessageStream>) {
        let mut pasts = self.lock_retained();
        if pasts.streams.len() == pasts.streams.capacity() {
            pasts.streams.retain(|stream| stream.strong_count() > 0);
        }
        pasts.streams.push(Arc::downgrade(stream));
    }

    /// Drops the oldest pasts until this many bytes more may be taken: first what was delivered, then what has waited
    /// long for clients that do not read. Nothing is dropped if all of it would not do. `false` if nothing was.
    #[cold]
    fn evict_retained(&self, bytes: usize, most: usize) -> bool {
        let mut streams: Vec<Arc<MessageStream>> = {
            let pasts = self.lock_retained();
            if pasts.look_again.is_some_and(|at| Instant::now() < at) {
                return false;
            }
            pasts.streams.iter().filter_map(Weak::upgrade).collect()
        };
        let needed = self.used().saturating_add(bytes).saturating_sub(most);
        let droppable: usize = streams.iter().map(|stream| stream.droppable(PARKED)).sum();
        if droppable < needed || droppable == 0 {
            self.lock_retained().look_again = Some(Instant::now() + PAUSE);
            return false;
        }
        streams.sort_by_cached_key(|stream| stream.last_touched());
        let mut freed = 0;
        for stream in &streams {
            if freed >= needed.max(self.most / STEP) {
                break;
            }
            freed += stream.drop_delivered();
        }
        for stream in &streams {
            if freed >= needed {
                break;
            }
            freed += stream.drop_parked(PARKED);
        }
        tracing::debug!(freed, used = self.used(), "dropped the oldest pasts of streams");
        freed > 0
    }
}

/// Bytes that count towards a budget, given back when dropped.
#[derive(Debug)]
pub struct ByteReservation {
    budget: Arc<ByteBudget>,
    bytes: usize,
}

impl ByteReservation {
    /// Counts this many bytes from now on; `false` if they are too many, and then nothing changes. It never shrinks.
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return true };
        let budget = &self.budget;
        let taken = if bytes <= SMALL { budget.try_take(more, budget.most) } else { budget.take_bulk(more) };
        if taken {
            self.bytes = bytes;
        }
        taken
    }
}

impl Drop for ByteReservation {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_given_back() {
        let budget = ByteBudget::new(1_000);
        let held = budget.reserve(900).unwrap();
        assert!(budget.reserve(101).is_none());
        let mut more = budget.reserve(50).unwrap();
        assert!(more.grow_to(100) && budget.is_exhausted());
        assert!(!more.grow_to(101));
        let beyond = budget.reserve_anyway(500);
        assert_eq!(budget.used(), 1_500);
        drop((held, more, beyond));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn large_things_leave_room_for_small_ones() {
        let budget = ByteBudget::new(400 * 1024);
        let large = budget.reserve(300 * 1024).unwrap();
        assert!(budget.reserve(SMALL + 1).is_none());
        let small = budget.reserve(SMALL).unwrap();
        drop((large, small));
        assert_eq!(budget.used(), 0);
    }
}
