//! A hierarchical navigable small world (HNSW) graph. It finds the nearest vectors without comparing all
//! of them.
//!
//! The graph stores nodes 0, 1, 2 … and their links. The vectors belong to the caller, who passes them as
//! [`PreparedVectors`]. Nodes are never removed. A search accepts only some nodes and walks through the
//! others. All links are in two flat arrays, and no function is recursive.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

use super::metric::VectorMetric;
use super::points::{NodeDistance, PreparedVectors};

/// The parameters `m` and `efConstruction` of an index definition. Each search has its own `efSearch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HnswBuildParameters {
    pub m: usize,
    pub ef_construction: usize,
}

impl HnswBuildParameters {
    /// Returns the number of links of a node on the ground level.
    ///
    /// The usual graph has 2·m. Azure's default of 4 would give 8, which finds too few of the nearest
    /// vectors if the vectors have no structure. Three times as many links cost 64 bytes per vector and
    /// solve this. The dot product of vectors of different lengths is not a distance. Its graphs have
    /// dead ends and need even more links.
    fn ground_links(self, metric: VectorMetric) -> usize {
        self.m * if metric == VectorMetric::DotProduct { 8 } else { 6 }
    }

    /// Returns the number of links of a node on each upper level.
    fn upper_links(self) -> usize {
        self.m * 2
    }
}

pub(super) struct HnswGraph {
    shape: HnswBuildParameters,
    ground_links: usize,
    upper_links: usize,
    /// `ground_links` slots for each node, of which `ground_counts` are used.
    ground: Vec<u32>,
    ground_counts: Vec<u8>,
    /// One block per upper level of a node: a count, then `upper_links` slots.
    upper: Vec<u32>,
    /// The start of the blocks of a node in `upper`. Unused for nodes of the ground level.
    upper_starts: Vec<u32>,
    levels: Vec<u8>,
    /// The start of every search: a node of the highest level.
    entry: u32,
    /// Buffers of finished searches, for reuse.
    spare: Mutex<Vec<HnswScratch>>,
}

/// The outcome of a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HnswSearchOutcome {
    /// The nearest accepted nodes, nearest first.
    Found(Vec<NodeDistance>),
    /// The limit of distances was reached, because too few nodes are accepted.
    GaveUp,
}

/// The maximum level of a node. With m = 4 it is enough for 4^16 nodes.
const MAX_LEVEL: u8 = 16;

impl HnswGraph {
    /// Builds the graph of all points. `numbers` seed the levels, so equal vectors always give an
    /// equal graph.
    ///
    /// Returns `None` if `stop` returned true. It is called before each node.
    pub(super) fn build(
        points: PreparedVectors<'_>,
        numbers: &[u64],
        shape: HnswBuildParameters,
        stop: &dyn Fn() -> bool,
    ) -> Option<Self> {
        let ground_links = shape.ground_links(points.metric);
        let mut graph = Self {
            shape,
            ground_links,
            upper_links: shape.upper_links(),
            ground: Vec::with_capacity(numbers.len() * ground_links),
            ground_counts: Vec::with_capacity(numbers.len()),
            upper: Vec::new(),
            upper_starts: Vec::with_capacity(numbers.len()),
            levels: Vec::with_capacity(numbers.len()),
            entry: 0,
            spare: Mutex::default(),
        };
        let mut scratch = HnswScratch::default();
        for (node, &number) in (0..).zip(numbers) {
            if stop() {
                return None;
            }
            graph.insert(points, node, number, &mut scratch);
        }
        Some(graph)
    }

    /// Returns approximately the nearest `ef` accepted nodes. Computes at most `budget` distances.
    pub(super) fn search(
        &self,
        points: PreparedVectors<'_>,
        query: &[f32],
        ef: usize,
        budget: usize,
        accept: &dyn Fn(u32) -> bool,
    ) -> HnswSearchOutcome {
        if self.levels.is_empty() {
            return HnswSearchOutcome::Found(Vec::new());
        }
        let idle = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = idle.unwrap_or_default();
        let entry = self.descend(points, query, 0);
        let complete = self.search_level(
            points,
            query,
            entry,
            HnswLevelSearch { level: 0, ef, budget },
            accept,
            &mut scratch,
        );
        let walk =
            if complete { HnswSearchOutcome::Found(scratch.take_found()) } else { HnswSearchOutcome::GaveUp };
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        walk
    }

    /// Returns the maximum number of links of a node on the ground level.
    pub(super) fn max_ground_links(&self) -> usize {
        self.ground_links
    }

    pub(super) fn bytes(&self) -> usize {
        4 * (self.ground.len() + self.upper.len() + self.upper_starts.len()) + 2 * self.levels.len()
    }

    fn insert(&mut self, points: PreparedVectors<'_>, node: u32, number: u64, scratch: &mut HnswScratch) {
        let query = points.at(node);
        let level = level_of(number, self.shape.m);
        let top = self.levels.get(self.entry as usize).copied();
        self.levels.push(level);
        self.ground_counts.push(0);
        self.ground.resize(self.ground.len() + self.ground_links, 0);
        self.upper_starts.push(self.upper.len() as u32);
        self.upper.resize(self.upper.len() + usize::from(level) * (self.upper_links + 1), 0);
        let Some(top) = top else {
            self.entry = node;
            return;
        };

        let mut entry = self.descend(points, query, level);
        for level in (0..=level.min(top)).rev() {
            let scope = HnswLevelSearch { level, ef: self.shape.ef_construction, budget: usize::MAX };
            self.search_level(points, query, entry, scope, &|_| true, scratch);
            let found = scratch.take_found();
            entry = found.first().copied().unwrap_or(entry);
            let mut chosen = Vec::with_capacity(self.limit(level));
            choose(points, node, &found, self.limit(level), &mut chosen);
            self.set_links(node, level, &chosen);
            for neighbour in chosen {
                self.link(points, neighbour, node, level);
            }
        }
        if level > top {
            self.entry = node;
        }
    }

    /// Walks from the entry down to the level above `floor`, each time to the nearest neighbour.
    fn descend(&self, points: PreparedVectors<'_>, query: &[f32], floor: u8) -> NodeDistance {
        let mut best = points.distance_from(query, self.entry);
        for level in (floor + 1..=self.levels[self.entry as usize]).rev() {
            loop {
                let around = self.neighbours(best.node(), level).iter();
                match around.map(|&node| points.distance_from(query, node)).min() {
                    Some(nearer) if nearer < best => best = nearer,
                    _ => break,
                }
            }
        }
        best
    }

    /// Fills `scratch.found` with the `ef` nearest accepted nodes of one level. Returns `false` if the
    /// budget is used up.
    fn search_level(
        &self,
        points: PreparedVectors<'_>,
        query: &[f32],
        entry: NodeDistance,
        HnswLevelSearch { level, ef, budget }: HnswLevelSearch,
        accept: &dyn Fn(u32) -> bool,
        scratch: &mut HnswScratch,
    ) -> bool {
        let HnswScratch { visited, ahead, found } = scratch;
        visited.reset(self.levels.len());
        ahead.clear();
        found.clear();
        visited.insert(entry.node());
        ahead.push(Reverse(entry));
        if accept(entry.node()) {
            found.push(entry);
        }
        // The distance of the worst result, once there are enough. Farther nodes are skipped.
        let mut worst = NodeDistance::FARTHEST;
        if found.len() >= ef {
            worst = entry;
        }
        while let Some(Reverse(near)) = ahead.pop() {
            if near > worst {
                break;
            }
            for &node in self.neighbours(near.node(), level) {
                if !visited.insert(node) {
                    continue;
                }
                let next = points.distance_from(query, node);
                if next >= worst {
                    continue;
                }
                ahead.push(Reverse(next));
                if accept(node) {
                    found.push(next);
                    if found.len() > ef {
                        found.pop();
                    }
                    if found.len() >= ef {
                        worst = found.peek().copied().unwrap_or(worst);
                    }
                }
            }
            if visited.count() > budget {
                return false;
            }
        }
        true
    }

    fn limit(&self, level: u8) -> usize {
        if level == 0 { self.ground_links } else { self.upper_links }
    }

    fn block(&self, node: u32, level: u8) -> usize {
        let above = usize::from(level - 1) * (self.upper_links + 1);
        self.upper_starts[node as usize] as usize + above
    }

    fn neighbours(&self, node: u32, level: u8) -> &[u32] {
        if level == 0 {
            let start = node as usize * self.ground_links;
            let count = self.ground_counts[node as usize];
            return &self.ground[start..start + usize::from(count)];
        }
        let block = self.block(node, level);
        let count = self.upper[block] as usize;
        &self.upper[block + 1..block + 1 + count]
    }

    fn set_links(&mut self, node: u32, level: u8, links: &[u32]) {
        if level == 0 {
            let start = node as usize * self.ground_links;
            self.ground[start..start + links.len()].copy_from_slice(links);
            self.ground_counts[node as usize] = links.len() as u8;
            return;
        }
        let block = self.block(node, level);
        self.upper[block] = links.len() as u32;
        self.upper[block + 1..block + 1 + links.len()].copy_from_slice(links);
    }

    /// Adds a link back. If all slots are used, the best links are kept.
    fn link(&mut self, points: PreparedVectors<'_>, from: u32, to: u32, level: u8) {
        let limit = self.limit(level);
        let mut links = self.neighbours(from, level).to_vec();
        links.push(to);
        if links.len() > limit {
            let home = points.at(from);
            let mut candidates: Vec<NodeDistance> =
                links.iter().map(|&node| points.distance_from(home, node)).collect();
            candidates.sort_unstable();
            choose(points, from, &candidates, limit, &mut links);
        }
        self.set_links(from, level, &links);
    }
}

#[derive(Clone, Copy)]
struct HnswLevelSearch {
    level: u8,
    ef: usize,
    budget: usize,
}

/// Selects the links of a node from candidates, nearest first. It selects candidates that are nearer to
/// the node than to any selected one, so that links lead in all directions. Free slots are filled with
/// the nearest of the rest.
///
/// Vectors equal to the node's vector get at most half of the slots, and those with the closest node
/// numbers come first. Many equal vectors therefore form a chain that a walk can follow, and stay linked
/// with the other nodes.
fn choose(
    points: PreparedVectors<'_>,
    node: u32,
    candidates: &[NodeDistance],
    limit: usize,
    chosen: &mut Vec<u32>,
) {
    let home = points.at(node);
    let is_twin = |near: &NodeDistance| points.at(near.node()) == home;
    chosen.clear();
    chosen.extend(candidates.iter().filter(|near| is_twin(near)).map(|near| near.node()));
    chosen.sort_unstable_by_key(|twin| twin.abs_diff(node));
    chosen.truncate(limit / 2);
    let mut rest = Vec::new();
    for near in candidates {
        if chosen.len() >= limit {
            return;
        }
        if is_twin(near) {
            continue;
        }
        let place = points.at(near.node());
        if chosen
            .iter()
            .all(|&other| points.metric.comparable_distance(place, points.at(other)) >= near.order())
        {
            chosen.push(near.node());
        } else if rest.len() < limit {
            rest.push(near.node());
        }
    }
    rest.truncate(limit - chosen.len());
    chosen.append(&mut rest);
}

/// Returns the level of a node. Each level has 1/m of the nodes below it. The level depends only on
/// the number.
fn level_of(number: u64, m: usize) -> u8 {
    // The SplitMix64 mixer spreads the bits evenly.
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let chance = ((mixed >> 11) + 1) as f64 / (1u64 << 53) as f64;
    let level = -chance.ln() / (m as f64).ln();
    (level as u8).min(MAX_LEVEL)
}

/// The buffers of a walk.
#[derive(Default)]
struct HnswScratch {
    visited: VisitedNodes,
    ahead: BinaryHeap<Reverse<NodeDistance>>,
    /// The farthest node is on top.
    found: BinaryHeap<NodeDistance>,
}

impl HnswScratch {
    fn take_found(&mut self) -> Vec<NodeDistance> {
        let mut found: Vec<NodeDistance> = self.found.drain().collect();
        found.sort_unstable();
        found
    }
}

/// A set of nodes: one bit each, and a list of the set bits to clear them again.
#[derive(Default)]
struct VisitedNodes {
    words: Vec<u64>,
    nodes: Vec<u32>,
}

impl VisitedNodes {
    fn reset(&mut self, nodes: usize) {
        for node in self.nodes.drain(..) {
            self.words[node as usize / 64] = 0;
        }
        self.words.resize(nodes.div_ceil(64).max(self.words.len()), 0);
    }

    /// Adds a node. Returns whether it is new.
    fn insert(&mut self, node: u32) -> bool {
        let word = &mut self.words[node as usize / 64];
        let bit = 1 << (node % 64);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.nodes.push(node);
        true
    }

    fn count(&self) -> usize {
        self.nodes.len()
    }
}

#[cfg(test)]
#[path = "hnsw_tests.rs"]
mod tests;
