//! A memory limit that all requests share.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of bytes that are still available.
pub(super) struct MemoryPool(AtomicUsize);

impl MemoryPool {
    pub(super) fn new(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    /// Takes `bytes` from the pool. Returns `false` and takes nothing when fewer are available.
    pub(super) fn try_take(&self, bytes: usize) -> bool {
        bytes == 0
            || self
                .0
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes))
                .is_ok()
    }

    pub(super) fn give(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
