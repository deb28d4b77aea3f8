//! All vectors of one field of an index, and their changes.
//!
//! A set is a list of immutable segments. A batch marks deleted vectors and appends a segment of inserted
//! ones. Small segments at the end are merged immediately, which copies each vector only a few times. A
//! search uses a [`VectorView`], so it sees a batch completely or not at all, and never waits.
//! [`VectorSet::maintain`] does the long work on its own thread: it merges segments into large ones,
//! removes deleted vectors, and builds graphs. A segment without a graph is scanned.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bindpost_azure_search_model::ApiError;

use super::definition::HnswParameters;
use super::hnsw::HnswBuildParameters;
use super::metric::VectorMetric;
use super::segment::{VectorLayout, VectorSegment, VectorSegmentView};
use super::view::{VectorView, VectorViewState};

/// How a set stores and searches its vectors. `VectorSearch::settings` creates it from a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorSettings {
    pub metric: VectorMetric,
    /// The length of a vector: the dimensions, or an eighth of them for packed bits.
    pub length: usize,
    /// `None` for the algorithm `exhaustiveKnn`, which never builds a graph.
    pub hnsw: Option<HnswParameters>,
}

/// The minimum number of vectors in a segment with a graph. A walk with `efSearch` 500 computes about 8,000
/// distances in random memory order. This takes as long as 40,000 distances in sequential order (measured).
const GRAPH_FROM: usize = 50_000;
/// The maximum size of segments that are merged immediately by batches.
const JOIN_UP_TO: usize = 2_048;
/// More small segments than this are merged, even if they get no graph.
const MAX_SMALL: usize = 16;
/// How many segments of about the same size are merged into a larger one.
const TIER: usize = 4;

pub(crate) struct VectorSet {
    layout: VectorLayout,
    shape: Option<HnswBuildParameters>,
    graph_from: usize,
    current: RwLock<VectorView>,
    /// The number of sealed parts at the start. Batches delete from them, and only `maintain` replaces
    /// them. A view may be published only while holding this lock.
    sealed: Mutex<usize>,
    /// Held during maintenance.
    upkeep: Mutex<()>,
}

/// Changes that become visible together. The last change of a document is used.
pub(crate) struct VectorBatch {
    layout: VectorLayout,
    /// Prepared vectors in one flat array.
    values: Vec<f32>,
    /// The position of the vector of a document in `values`, counted in vectors. `None` removes the vector.
    changes: BTreeMap<u64, Option<usize>>,
}

impl VectorBatch {
    /// Sets the vector of a document and replaces an existing one.
    pub(crate) fn insert(&mut self, number: u64, vector: &[f32]) -> Result<(), ApiError> {
        if vector.len() != self.layout.length {
            return Err(ApiError::invalid(format!(
                "A vector of this field must have {} numbers, but it has {}.",
                self.layout.length,
                vector.len()
            )));
        }
        if let Some(at) = vector.iter().position(|value| !value.is_finite()) {
            return Err(ApiError::invalid(format!("Number {at} of a vector is not finite.")));
        }
        let row = self.values.len() / self.layout.width;
        self.layout.metric.prepare(vector, &mut self.values);
        self.changes.insert(number, Some(row));
        Ok(())
    }

    /// Removes the vector of a document, if it has one.
    pub(crate) fn remove(&mut self, number: u64) {
        self.changes.insert(number, None);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    fn into_segment(self) -> VectorSegment {
        let Self { layout, values: given, changes } = self;
        let kept = || changes.iter().filter_map(|(&number, &row)| Some((number, row?)));
        let numbers: Vec<u64> = kept().map(|(number, _)| number).collect();
        if numbers.len() * layout.width == given.len() && kept().map(|(_, row)| row).is_sorted() {
            // The numbers are already ascending, as in a load from the store. No copy is needed.
            return VectorSegment::new(numbers, given);
        }
        let mut values = Vec::with_capacity(numbers.len() * layout.width);
        for (_, row) in kept() {
            values.extend_from_slice(&given[row * layout.width..(row + 1) * layout.width]);
        }
        VectorSegment::new(numbers, values)
    }
}

/// A long task on sealed parts.
enum VectorMaintenanceJob {
    Build(VectorSegmentView),
    Join(Vec<VectorSegmentView>),
}

impl VectorSet {
    pub(crate) fn new(settings: VectorSettings) -> Self {
        Self::with_graph_threshold(settings, GRAPH_FROM)
    }

    /// Creates a set with another graph threshold. Tests lower it, because large graphs take too long in
    /// debug builds.
    fn with_graph_threshold(settings: VectorSettings, graph_from: usize) -> Self {
        let VectorSettings { metric, length, hnsw } = settings;
        let layout = VectorLayout { metric, length, width: metric.prepared_length(length) };
        let ef = hnsw.unwrap_or_default().ef_search;
        let view = VectorView(Arc::new(VectorViewState { layout, ef, parts: Vec::new() }));
        Self {
            layout,
            shape: hnsw.map(|hnsw| HnswBuildParameters { m: hnsw.m, ef_construction: hnsw.ef_construction }),
            graph_from,
            current: RwLock::new(view),
            sealed: Mutex::new(0),
            upkeep: Mutex::new(()),
        }
    }

    /// Returns the current vectors.
    pub(crate) fn view(&self) -> VectorView {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns an empty batch for this set.
    pub(crate) fn batch(&self) -> VectorBatch {
        VectorBatch { layout: self.layout, values: Vec::new(), changes: BTreeMap::new() }
    }

    /// Applies all changes of a batch at once, and returns the new view.
    pub(crate) fn apply(&self, batch: VectorBatch) -> VectorView {
        let sealed = lock(&self.sealed);
        if batch.is_empty() {
            return self.view();
        }
        let mut parts = self.view().0.parts.clone();
        for part in &mut parts {
            // Document numbers mostly increase, so most parts have none of the changed documents.
            if let Some(span) = part.segment.number_range() {
                part.delete(batch.changes.range(span).map(|(&number, _)| number));
            }
        }
        let mut open = parts.split_off(*sealed);
        open.retain(|part| part.live() > 0);
        open.push(VectorSegmentView::new(batch.into_segment()));
        self.join_last(&mut open);
        open.retain(|part| part.live() > 0);
        parts.append(&mut open);
        self.publish(parts)
    }

    /// Applies a batch of one vector.
    #[cfg(test)]
    pub(crate) fn insert(&self, number: u64, vector: &[f32]) -> Result<VectorView, ApiError> {
        let mut batch = self.batch();
        batch.insert(number, vector)?;
        Ok(self.apply(batch))
    }

    /// Applies a batch that removes one vector.
    #[cfg(test)]
    pub(crate) fn remove(&self, number: u64) -> VectorView {
        let mut batch = self.batch();
        batch.remove(number);
        self.apply(batch)
    }

    /// Does all pending long work. Returns whether there was any.
    ///
    /// Call it after batches, on a thread that may be busy for minutes. Searches and batches continue in
    /// the meantime. `stop` is called many times per second. A stop leaves the set unchanged or improved.
    pub(crate) fn maintain(&self, stop: &dyn Fn() -> bool) -> bool {
        let _alone = self.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
        let mut worked = false;
        while !stop()
            && let Some(job) = self.next_job()
        {
            worked = true;
            let done = match job {
                VectorMaintenanceJob::Build(part) => self.build(&part.segment, stop),
                VectorMaintenanceJob::Join(parts) => self.join(&parts, stop),
            };
            if !done {
                break;
            }
        }
        worked
    }

    /// Merges the last parts while the previous part is not larger, like the carry of a counter. Each
    /// vector is copied at most a dozen times, and there are at most a dozen such parts.
    fn join_last(&self, open: &mut Vec<VectorSegmentView>) {
        while let [.., before, last] = open.as_slice()
            && before.live() <= last.live()
            && before.live() + last.live() <= JOIN_UP_TO
        {
            let joined = VectorSegment::merge(&open[open.len() - 2..], self.layout);
            open.truncate(open.len() - 2);
            open.push(VectorSegmentView::new(joined));
        }
    }

    fn next_job(&self) -> Option<VectorMaintenanceJob> {
        let mut sealed = lock(&self.sealed);
        let view = self.view();
        let parts = &view.0.parts;
        let job = self.choose_job(parts)?;
        *sealed = parts.len();
        Some(job)
    }

    fn choose_job(&self, parts: &[VectorSegmentView]) -> Option<VectorMaintenanceJob> {
        let is_small = |part: &&VectorSegmentView| part.live() < self.graph_from;
        let small: Vec<VectorSegmentView> = parts.iter().filter(is_small).cloned().collect();
        let together: usize = small.iter().map(VectorSegmentView::live).sum();
        if small.len() > 1 && (together >= self.graph_from || small.len() > MAX_SMALL) {
            return Some(VectorMaintenanceJob::Join(small));
        }
        // A part with more than a third of deleted vectors is compacted.
        let wasteful = parts.iter().find(|part| part.live() == 0 || part.live() * 3 < part.segment.len() * 2);
        if let Some(part) = wasteful {
            return Some(VectorMaintenanceJob::Join(vec![part.clone()]));
        }
        self.shape?;
        let mut tiers: BTreeMap<u32, Vec<&VectorSegmentView>> = BTreeMap::new();
        for part in parts.iter().filter(|part| !is_small(part)) {
            let tier = (part.live() / self.graph_from).ilog(TIER);
            tiers.entry(tier).or_default().push(part);
        }
        if let Some(alike) = tiers.into_values().find(|alike| alike.len() >= TIER) {
            return Some(VectorMaintenanceJob::Join(alike.into_iter().cloned().collect()));
        }
        let bare = |part: &&VectorSegmentView| part.segment.graph().is_none() && !is_small(part);
        parts.iter().find(bare).cloned().map(VectorMaintenanceJob::Build)
    }

    fn build(&self, segment: &VectorSegment, stop: &dyn Fn() -> bool) -> bool {
        self.shape.is_none_or(|shape| segment.build_graph(self.layout, shape, stop))
    }

    fn join(&self, sources: &[VectorSegmentView], stop: &dyn Fn() -> bool) -> bool {
        let segment = VectorSegment::merge(sources, self.layout);
        // Existing graphs are used until the new one is ready. Without graphs, the new segment is
        // published now, and the memory of the old ones is free while the graph is built.
        let served = sources.iter().any(|part| part.segment.graph().is_some());
        if served && segment.len() >= self.graph_from && !self.build(&segment, stop) {
            return false;
        }
        let mut joined = VectorSegmentView::new(segment);
        let mut sealed = lock(&self.sealed);
        let mut parts = self.view().0.parts.clone();
        for source in sources {
            let same = |part: &VectorSegmentView| Arc::ptr_eq(&part.segment, &source.segment);
            let Some(at) = parts.iter().position(same) else { continue };
            // Vectors that batches have deleted in the meantime are deleted from the new segment too.
            joined.delete(parts.remove(at).deleted_since(source).into_iter());
            *sealed -= 1;
        }
        if joined.live() > 0 {
            parts.insert(0, joined);
            *sealed += 1;
        }
        self.publish(parts);
        true
    }

    fn publish(&self, parts: Vec<VectorSegmentView>) -> VectorView {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let VectorViewState { layout, ef, .. } = *current.0;
        *current = VectorView(Arc::new(VectorViewState { layout, ef, parts }));
        current.clone()
    }
}

fn lock(sealed: &Mutex<usize>) -> MutexGuard<'_, usize> {
    sealed.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
