//! A consistent view of all vectors of a field, for a search.

use std::collections::BinaryHeap;
use std::sync::Arc;

use super::hnsw::HnswSearchOutcome;
use super::points::PreparedVectors;
use super::segment::{VectorLayout, VectorSegmentView};

/// The vectors of a field at one moment. It is cheap to clone, and later batches do not change it.
#[derive(Clone)]
pub struct VectorView(pub(super) Arc<VectorViewState>);

pub(super) struct VectorViewState {
    pub layout: VectorLayout,
    /// `efSearch` of the definition.
    pub ef: usize,
    /// The segments. A document has a vector in at most one of them.
    pub parts: Vec<VectorSegmentView>,
}

/// A search for the nearest vectors.
#[derive(Clone, Copy)]
pub struct NearestQuery<'a> {
    /// The query vector, with the length of the field's vectors.
    pub vector: &'a [f32],
    pub k: usize,
    /// Compares with all vectors, even if there is a graph.
    pub exhaustive: bool,
    /// How many candidates a graph search keeps. `None` uses `efSearch` of the definition.
    pub ef: Option<usize>,
    /// Called for every visited vector. It may unwind.
    pub look: Option<&'a dyn Fn()>,
    pub allowed: Option<AllowedDocuments<'a>>,
}

/// The documents that a search may return.
#[derive(Clone, Copy)]
pub struct AllowedDocuments<'a> {
    pub test: &'a dyn Fn(u64) -> bool,
    /// The maximum number of allowed documents, if known. A small number is scanned instead of searched
    /// in the graph.
    pub at_most: Option<usize>,
}

/// The cost of a graph search per candidate and link, in distances of a scan. Two thirds of the links
/// lead to a new vector, and a vector at a random address costs four times as much as the next one.
const WALK_COST: f64 = 2.5;
/// How many tests of a document cost as much as one distance.
const TESTS_PER_DISTANCE: usize = 16;
/// How many documents are tested to estimate how many are allowed.
const SAMPLE: usize = 256;

impl VectorView {
    pub fn len(&self) -> usize {
        self.0.parts.iter().map(VectorSegmentView::live).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory of the vectors and their graphs, including deleted vectors that are not
    /// yet removed.
    pub fn bytes(&self) -> usize {
        self.0.parts.iter().map(|part| part.segment.bytes()).sum()
    }

    pub fn contains(&self, number: u64) -> bool {
        self.0.parts.iter().any(|part| part.segment.slot(number).is_some_and(|slot| part.is_live(slot)))
    }

    /// Returns the nearest documents and their distances, nearest first. Equally near documents are
    /// ordered by number.
    ///
    /// [`VectorMetric::score`](super::VectorMetric::score) converts a distance to a score. The time is
    /// proportional to the number of vectors, so call it on a thread that may block. A vector of the
    /// wrong length finds nothing. The caller must check the length.
    pub fn search(&self, nearest: &NearestQuery<'_>) -> Vec<(u64, f32)> {
        let VectorViewState { layout, ef, ref parts } = *self.0;
        if nearest.vector.len() != layout.length || nearest.k == 0 {
            return Vec::new();
        }
        let mut query = Vec::with_capacity(layout.width);
        layout.metric.prepare(nearest.vector, &mut query);
        let ef = nearest.ef.unwrap_or(ef).max(nearest.k);
        let total = self.len();
        let mut best = NearestHits { k: nearest.k, hits: BinaryHeap::new() };
        for part in parts {
            let search =
                VectorSegmentSearch { part, points: part.segment.points(layout), query: &query, nearest, ef };
            if nearest.exhaustive || !search.walk(total, &mut best) {
                search.scan(&mut best);
            }
        }
        let hits = best.hits.into_sorted_vec();
        hits.into_iter().map(|hit| (hit.number, layout.metric.distance(hit.order))).collect()
    }
}

impl std::fmt::Debug for VectorView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VectorView").field("len", &self.len()).finish_non_exhaustive()
    }
}

struct VectorSegmentSearch<'a> {
    part: &'a VectorSegmentView,
    points: PreparedVectors<'a>,
    query: &'a [f32],
    nearest: &'a NearestQuery<'a>,
    ef: usize,
}

impl VectorSegmentSearch<'_> {
    fn accepts(&self, slot: u32) -> bool {
        if let Some(look) = self.nearest.look {
            look();
        }
        let allowed = self.nearest.allowed;
        self.part.is_live(slot)
            && allowed.is_none_or(|allowed| (allowed.test)(self.part.segment.number(slot)))
    }

    /// Compares with each accepted vector.
    fn scan(&self, best: &mut NearestHits) {
        for slot in (0..self.part.segment.len() as u32).filter(|&slot| self.accepts(slot)) {
            let order = self.points.metric.comparable_distance(self.query, self.points.at(slot));
            best.offer(order, || self.part.segment.number(slot));
        }
    }

    /// Searches the graph. Returns `false` and adds nothing if there is no graph or a scan is cheaper.
    fn walk(&self, total: usize, best: &mut NearestHits) -> bool {
        let Some(graph) = self.part.segment.graph() else { return false };
        let all = self.part.segment.len();
        let accepted = self.accepted(total).max(1);
        let scan_cost = accepted + if self.nearest.allowed.is_some() { all / TESTS_PER_DISTANCE } else { 0 };
        // If fewer vectors are accepted, more of the graph is visited until ef of them are found.
        let rarity = all as f64 / accepted as f64;
        if self.ef as f64 * graph.max_ground_links() as f64 * WALK_COST * rarity >= scan_cost as f64 {
            return false;
        }
        let budget = 2 * scan_cost;
        let walk = graph.search(self.points, self.query, self.ef, budget, &|slot| self.accepts(slot));
        let HnswSearchOutcome::Found(found) = walk else { return false };
        // Either few vectors are accepted, or the search could not reach them. A scan is needed.
        if found.len() < self.nearest.k.min(self.part.live()) {
            return false;
        }
        for near in found.into_iter().take(self.nearest.k) {
            best.offer(near.order(), || self.part.segment.number(near.node()));
        }
        true
    }

    /// Estimates how many vectors of this part are accepted.
    fn accepted(&self, total: usize) -> usize {
        let live = self.part.live();
        let Some(allowed) = self.nearest.allowed else { return live };
        if let Some(at_most) = allowed.at_most {
            let share = at_most as f64 * live as f64 / total.max(1) as f64;
            return (share.ceil() as usize).min(live);
        }
        let all = self.part.segment.len();
        let step = all.div_ceil(SAMPLE).max(1);
        let hits = (0..all as u32).step_by(step).filter(|&slot| self.accepts(slot)).count();
        (hits * step).min(live)
    }
}

/// The best hits so far.
struct NearestHits {
    k: usize,
    /// The worst hit is on top.
    hits: BinaryHeap<NearestHit>,
}

impl NearestHits {
    fn offer(&mut self, order: f32, number: impl FnOnce() -> u64) {
        if self.hits.len() < self.k {
            self.hits.push(NearestHit { order, number: number() });
            return;
        }
        let Some(mut worst) = self.hits.peek_mut() else { return };
        if order <= worst.order {
            let hit = NearestHit { order, number: number() };
            if hit < *worst {
                *worst = hit;
            }
        }
    }
}

struct NearestHit {
    order: f32,
    number: u64,
}

impl Ord for NearestHit {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.total_cmp(&other.order).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for NearestHit {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for NearestHit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for NearestHit {}
