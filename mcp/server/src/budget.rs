//! [`ByteBudget`]: the limit on the bytes that a server holds for all its clients together.
//!
//! The budget includes bodies being received, bodies of queued calls, unread and retained messages of
//! streams, results of tasks, subscriptions, and large responses being sent. When it is exhausted, the
//! oldest retained messages are dropped first. Then reservations fail.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::peer::stream::MessageStream;

/// Reservations up to this size may use the whole budget. Larger ones leave a quarter of it free, so that a
/// few large bodies do not block ordinary calls.
const SMALL: usize = 64 * 1024;
/// At least this fraction (one in `STEP`) of the budget is freed at once, so that not every message evicts.
const STEP: usize = 16;
/// The pause before the next eviction after an eviction found nothing to drop.
const PAUSE: Duration = Duration::from_millis(100);

/// Unread messages of a disconnected client are not evicted for this long.
const PARKED: Duration = Duration::from_secs(30);

/// The limit on the bytes that a server holds for all its clients together.
#[derive(Debug)]
pub struct ByteBudget {
    used: AtomicUsize,
    most: usize,
    retained: Mutex<RetainedStreams>,
}

/// The streams that retain delivered messages.
#[derive(Debug, Default)]
struct RetainedStreams {
    streams: Vec<Weak<MessageStream>>,
    /// The next eviction starts no earlier than this, because the last one found nothing to drop.
    look_again: Option<Instant>,
}

impl ByteBudget {
    pub(crate) fn new(most: usize) -> Arc<ByteBudget> {
        Arc::new(ByteBudget { used: AtomicUsize::new(0), most, retained: Mutex::default() })
    }

    /// Returns the bytes that are held now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns whether the budget is exhausted. New calls are rejected then, because their responses would
    /// need memory too.
    pub fn is_exhausted(&self) -> bool {
        self.used() >= self.most
    }

    /// Reserves these bytes until the reservation is dropped. Returns `None` if the budget does not allow it.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Option<ByteReservation> {
        let mut reserved = ByteReservation { budget: self.clone(), bytes: 0 };
        reserved.grow_to(bytes).then_some(reserved)
    }

    /// Reserves these bytes even beyond the limit, because they are in memory already.
    pub fn reserve_anyway(self: &Arc<Self>, bytes: usize) -> ByteReservation {
        self.take_anyway(bytes);
        ByteReservation { budget: self.clone(), bytes }
    }

    /// Takes bytes for a large object or for one of many. A quarter of the budget stays free.
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
        self.retained.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a stream whose retained messages may be evicted.
    pub(crate) fn register_retained(&self, stream: &Arc<MessageStream>) {
        let mut retained = self.lock_retained();
        if retained.streams.len() == retained.streams.capacity() {
            retained.streams.retain(|stream| stream.strong_count() > 0);
        }
        retained.streams.push(Arc::downgrade(stream));
    }

    /// Evicts the oldest retained messages until this many more bytes fit: first delivered messages, then
    /// messages that have waited long for disconnected clients. If evicting all of them would not suffice,
    /// nothing is evicted. Returns whether something was evicted.
    #[cold]
    fn evict_retained(&self, bytes: usize, most: usize) -> bool {
        let mut streams: Vec<Arc<MessageStream>> = {
            let retained = self.lock_retained();
            if retained.look_again.is_some_and(|at| Instant::now() < at) {
                return false;
            }
            retained.streams.iter().filter_map(Weak::upgrade).collect()
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
        tracing::debug!(freed, used = self.used(), "dropped the oldest retained messages of streams");
        freed > 0
    }
}

/// Reserved bytes of a budget. Dropping the reservation releases them.
#[derive(Debug)]
pub struct ByteReservation {
    budget: Arc<ByteBudget>,
    bytes: usize,
}

impl ByteReservation {
    /// Grows the reservation to this many bytes. Returns `false` and changes nothing if the budget does not
    /// allow it. A reservation never shrinks.
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
    fn dropped_reservations_are_released() {
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
    fn large_reservations_leave_room_for_small_ones() {
        let budget = ByteBudget::new(400 * 1024);
        let large = budget.reserve(300 * 1024).unwrap();
        assert!(budget.reserve(SMALL + 1).is_none());
        let small = budget.reserve(SMALL).unwrap();
        drop((large, small));
        assert_eq!(budget.used(), 0);
    }
}
