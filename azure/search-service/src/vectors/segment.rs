//! Immutable lists of vectors, and which of them are deleted.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use super::hnsw::{HnswBuildParameters, HnswGraph};
use super::metric::VectorMetric;
use super::points::PreparedVectors;

/// The memory layout of the vectors of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VectorLayout {
    pub metric: VectorMetric,
    /// The length of a vector as the client sends it.
    pub length: usize,
    /// The length of a prepared vector.
    pub width: usize,
}

/// Vectors in the order of their document numbers, with a graph after it is built.
#[derive(Default)]
pub(super) struct VectorSegment {
    numbers: Vec<u64>,
    values: Vec<f32>,
    graph: OnceLock<HnswGraph>,
}

impl VectorSegment {
    /// Creates a segment. `numbers` are ascending, and `values` has a prepared vector for each.
    pub(super) fn new(numbers: Vec<u64>, values: Vec<f32>) -> Self {
        Self { numbers, values, graph: OnceLock::new() }
    }

    /// Merges the vectors of several parts that are not deleted.
    pub(super) fn merge(parts: &[VectorSegmentView], layout: VectorLayout) -> Self {
        let mut rows: Vec<(u64, usize, u32)> =
            Vec::with_capacity(parts.iter().map(VectorSegmentView::live).sum());
        for (at, part) in parts.iter().enumerate() {
            rows.extend(part.live_slots().map(|slot| (part.segment.number(slot), at, slot)));
        }
        rows.sort_unstable();
        let mut values = Vec::with_capacity(rows.len() * layout.width);
        for &(_, at, slot) in &rows {
            values.extend_from_slice(parts[at].segment.points(layout).at(slot));
        }
        Self::new(rows.into_iter().map(|(number, ..)| number).collect(), values)
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the range of document numbers, or `None` if the segment is empty.
    pub(super) fn number_range(&self) -> Option<RangeInclusive<u64>> {
        Some(*self.numbers.first()?..=*self.numbers.last()?)
    }

    pub(super) fn bytes(&self) -> usize {
        8 * self.numbers.len() + 4 * self.values.len() + self.graph().map_or(0, HnswGraph::bytes)
    }

    pub(super) fn number(&self, slot: u32) -> u64 {
        self.numbers[slot as usize]
    }

    pub(super) fn slot(&self, number: u64) -> Option<u32> {
        self.numbers.binary_search(&number).ok().map(|slot| slot as u32)
    }

    pub(super) fn points(&self, layout: VectorLayout) -> PreparedVectors<'_> {
        PreparedVectors { values: &self.values, width: layout.width, metric: layout.metric }
    }

    pub(super) fn graph(&self) -> Option<&HnswGraph> {
        self.graph.get()
    }

    /// Builds the graph. Returns `false` if it was stopped before the end.
    pub(super) fn build_graph(
        &self,
        layout: VectorLayout,
        shape: HnswBuildParameters,
        stop: &dyn Fn() -> bool,
    ) -> bool {
        match HnswGraph::build(self.points(layout), &self.numbers, shape, stop) {
            // An existing graph is the same.
            Some(graph) => self.graph.set(graph).is_ok() || self.graph.get().is_some(),
            None => false,
        }
    }
}

/// A segment in one view, without the vectors that were deleted before.
#[derive(Clone)]
pub(super) struct VectorSegmentView {
    pub segment: Arc<VectorSegment>,
    /// One bit for each slot. It is shared with older views until a deletion copies it.
    deleted: Option<Arc<Vec<u64>>>,
    live: usize,
}

impl VectorSegmentView {
    pub(super) fn new(segment: VectorSegment) -> Self {
        Self { live: segment.len(), segment: Arc::new(segment), deleted: None }
    }

    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn is_live(&self, slot: u32) -> bool {
        let word = self.deleted.as_ref().and_then(|words| words.get(slot as usize / 64));
        word.is_none_or(|word| word >> (slot % 64) & 1 == 0)
    }

    pub(super) fn live_slots(&self) -> impl Iterator<Item = u32> {
        (0..self.segment.len() as u32).filter(|&slot| self.is_live(slot))
    }

    /// Deletes the vectors of the given documents.
    pub(super) fn delete(&mut self, numbers: impl Iterator<Item = u64>) {
        for number in numbers {
            let Some(slot) = self.segment.slot(number).filter(|&slot| self.is_live(slot)) else { continue };
            let words = self.segment.len().div_ceil(64);
            let deleted = Arc::make_mut(self.deleted.get_or_insert_with(|| Arc::new(vec![0; words])));
            deleted[slot as usize / 64] |= 1 << (slot % 64);
            self.live -= 1;
        }
    }

    /// Returns the documents that an earlier view of the same segment had and this one does not have.
    pub(super) fn deleted_since(&self, earlier: &VectorSegmentView) -> Vec<u64> {
        if self.live == earlier.live {
            return Vec::new();
        }
        let deleted = earlier.live_slots().filter(|&slot| !self.is_live(slot));
        deleted.map(|slot| self.segment.number(slot)).collect()
    }
}
