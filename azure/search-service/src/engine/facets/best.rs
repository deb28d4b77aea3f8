//! The first buckets of an order, and the merged counts of several segments.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::expression::FacetSort;
use crate::budget::{Budget, MemoryReservation};

/// Merges sorted lists of keys with counts into one sorted list. Counts of equal keys are added.
pub(super) struct MergedCounts<K, I> {
    /// Each list with its next element.
    runs: Vec<(Option<(K, u64)>, I)>,
}

impl<K: Ord, I: Iterator<Item = (K, u64)>> MergedCounts<K, I> {
    pub(super) fn new(runs: Vec<I>) -> Self {
        Self { runs: runs.into_iter().map(|mut run| (run.next(), run)).collect() }
    }
}

impl<K: Ord, I: Iterator<Item = (K, u64)>> Iterator for MergedCounts<K, I> {
    type Item = (K, u64);

    fn next(&mut self) -> Option<(K, u64)> {
        let least = self.runs.iter().filter_map(|(next, _)| next.as_ref()).map(|(key, _)| key).min()?;
        let least =
            self.runs.iter().position(|(next, _)| next.as_ref().is_some_and(|(key, _)| key == least))?;
        let (next, run) = self.runs.get_mut(least)?;
        let (key, mut sum) = std::mem::replace(next, run.next())?;
        for (next, run) in &mut self.runs {
            if next.as_ref().is_some_and(|(other, _)| *other == key) {
                sum += std::mem::replace(next, run.next()).map_or(0, |(_, count)| count);
            }
        }
        Some((key, sum))
    }
}

/// The memory that a kept key needs.
pub(super) trait KeySize {
    fn size(&self) -> usize;
}

impl KeySize for u64 {
    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

impl KeySize for (u64, u64) {
    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

impl KeySize for Vec<u8> {
    fn size(&self) -> usize {
        // Includes the overhead of the allocator.
        size_of::<Self>() + self.len() + 16
    }
}

/// Keeps the first keys of an order, up to a limit. Equal counts are ordered by key.
pub(super) struct TopBuckets<K> {
    /// `None` keeps all keys.
    limit: Option<usize>,
    sort: FacetSort,
    /// The last key of the order is on top.
    kept: BinaryHeap<RankedBucket<K>>,
    memory: MemoryReservation,
}

struct RankedBucket<K> {
    key: K,
    count: u64,
    sort: FacetSort,
}

impl<K: Ord + KeySize> TopBuckets<K> {
    pub(super) fn new(limit: Option<usize>, sort: FacetSort, budget: &Budget) -> Self {
        let limit = limit.filter(|limit| *limit > 0);
        Self { limit, sort, kept: BinaryHeap::new(), memory: budget.reserve_memory(0) }
    }

    pub(super) fn offer(&mut self, key: K, count: u64) {
        let offered = RankedBucket { key, count, sort: self.sort };
        if !self.is_full() {
            // A heap doubles its capacity when it grows.
            self.memory.grow(2 * size_of::<RankedBucket<K>>() + offered.key.size());
            self.kept.push(offered);
            return;
        }
        let Some(mut last) = self.kept.peek_mut() else { return };
        if offered < *last {
            self.memory.grow(offered.key.size().saturating_sub(last.key.size()));
            *last = offered;
        }
    }

    /// Returns whether a further key must replace another one.
    pub(super) fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.kept.len() >= limit)
    }

    /// Returns the last of the kept keys.
    pub(super) fn last(&self) -> Option<&K> {
        self.kept.peek().map(|last| &last.key)
    }

    /// Returns the kept keys and counts, unordered.
    pub(super) fn into_pairs(self) -> Vec<(K, u64)> {
        self.kept.into_iter().map(|ranked| (ranked.key, ranked.count)).collect()
    }

    pub(super) fn for_each_sorted(self, mut take: impl FnMut(K, u64)) {
        let Self { kept, memory, .. } = self;
        kept.into_sorted_vec().into_iter().for_each(|ranked| take(ranked.key, ranked.count));
        drop(memory);
    }
}

impl<K: Ord> Ord for RankedBucket<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.sort {
            FacetSort::Most => other.count.cmp(&self.count).then_with(|| self.key.cmp(&other.key)),
            FacetSort::Fewest => self.count.cmp(&other.count).then_with(|| self.key.cmp(&other.key)),
            FacetSort::Ascending => self.key.cmp(&other.key),
            FacetSort::Descending => other.key.cmp(&self.key),
        }
    }
}

impl<K: Ord> PartialOrd for RankedBucket<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord> PartialEq for RankedBucket<K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<K: Ord> Eq for RankedBucket<K> {}
