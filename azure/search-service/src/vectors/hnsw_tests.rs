//! Tests of recall against an exact scan, of filters, and of unusual data.

use super::*;

const DEFAULT: HnswBuildParameters = HnswBuildParameters { m: 4, ef_construction: 400 };

/// A small random number generator, so that every run has the same vectors.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }

    /// An approximately normal number, as a sum of uniform numbers.
    fn normal(&mut self) -> f32 {
        (0..6).map(|_| self.next()).sum::<f32>() - 3.0
    }
}

struct TestVectors {
    numbers: Vec<u64>,
    values: Vec<f32>,
    queries: Vec<Vec<f32>>,
    width: usize,
    metric: VectorMetric,
}

impl TestVectors {
    fn new(metric: VectorMetric, count: usize, width: usize, clusters: Option<usize>) -> Self {
        let mut dice = RandomNumbers(7);
        let centres: Vec<Vec<f32>> =
            (0..clusters.unwrap_or(1)).map(|_| (0..width).map(|_| dice.normal()).collect()).collect();
        let vector = |dice: &mut RandomNumbers| {
            let mut raw = Vec::new();
            let centre = &centres[(dice.next() * centres.len() as f32) as usize];
            for place in centre {
                raw.push(if clusters.is_some() { place + 0.2 * dice.normal() } else { dice.normal() });
            }
            if metric == VectorMetric::Hamming {
                raw.iter_mut().for_each(|value| *value = (*value * 30.0 + 128.0).clamp(0.0, 255.0).floor());
            }
            let mut prepared = Vec::new();
            metric.prepare(&raw, &mut prepared);
            prepared
        };
        let values = (0..count).flat_map(|_| vector(&mut dice)).collect();
        let queries = (0..50).map(|_| vector(&mut dice)).collect();
        Self {
            numbers: (0..count as u64).collect(),
            values,
            queries,
            width: metric.prepared_length(width),
            metric,
        }
    }

    fn points(&self) -> PreparedVectors<'_> {
        PreparedVectors { values: &self.values, width: self.width, metric: self.metric }
    }

    fn graph(&self, shape: HnswBuildParameters) -> HnswGraph {
        HnswGraph::build(self.points(), &self.numbers, shape, &|| false).unwrap()
    }

    fn exact(&self, query: &[f32], accept: &dyn Fn(u32) -> bool) -> Vec<NodeDistance> {
        let nodes = (0..self.numbers.len() as u32).filter(|&node| accept(node));
        let mut all: Vec<NodeDistance> = nodes.map(|node| self.points().distance_from(query, node)).collect();
        all.sort_unstable();
        all.truncate(10);
        all
    }

    fn recall(&self, graph: &HnswGraph, ef: usize, accept: &dyn Fn(u32) -> bool) -> f64 {
        let (mut hits, mut wanted) = (0, 0);
        for query in &self.queries {
            let HnswSearchOutcome::Found(found) = graph.search(self.points(), query, ef, usize::MAX, accept)
            else {
                panic!("the search reached its limit")
            };
            assert!(found.iter().all(|near| accept(near.node())));
            let exact = self.exact(query, accept);
            // Results are compared by distance, because equally near vectors are interchangeable.
            let limit = exact.last().unwrap().order();
            hits += found.iter().take(10).filter(|near| near.order() <= limit).count();
            wanted += exact.len();
        }
        hits as f64 / wanted as f64
    }
}

#[test]
fn finds_nearly_all_of_the_nearest() {
    for metric in
        [VectorMetric::Cosine, VectorMetric::Euclidean, VectorMetric::DotProduct, VectorMetric::Hamming]
    {
        for clusters in [None, Some(20)] {
            let data = TestVectors::new(metric, 400, 8, clusters);
            let recall =
                data.recall(&data.graph(HnswBuildParameters { m: 4, ef_construction: 60 }), 40, &|_| true);
            assert!(recall >= 0.95, "{metric:?} {clusters:?}: {recall}");
        }
    }
}

/// The full size with the defaults of Azure. It is too slow in debug builds to run each time.
#[test]
#[ignore = "takes minutes in a debug build; run it with --release after changes to the graph"]
fn finds_nearly_all_of_the_nearest_among_twenty_thousand() {
    for metric in
        [VectorMetric::Cosine, VectorMetric::Euclidean, VectorMetric::DotProduct, VectorMetric::Hamming]
    {
        for clusters in [None, Some(100)] {
            let data = TestVectors::new(metric, 20_000, 64, clusters);
            let start = std::time::Instant::now();
            let graph = data.graph(DEFAULT);
            let built = start.elapsed();
            let start = std::time::Instant::now();
            let recall = data.recall(&graph, 500, &|_| true);
            let filtered = data.recall(&graph, 500, &|node| node % 7 == 0);
            println!("{metric:?} {clusters:?}: {recall} {filtered} built {built:?} {:?}", start.elapsed());
            assert!(recall >= 0.95 && filtered >= 0.95, "{metric:?} {clusters:?}: {recall}, {filtered}");
        }
    }
}

#[test]
fn only_accepted_nodes_are_found_and_the_others_are_walked_through() {
    let data = TestVectors::new(VectorMetric::Euclidean, 500, 8, Some(10));
    let graph = data.graph(HnswBuildParameters { m: 4, ef_construction: 100 });
    assert!(data.recall(&graph, 100, &|node| node % 10 == 3) >= 0.95);
    let none = graph.search(data.points(), &data.queries[0], 100, usize::MAX, &|_| false);
    assert_eq!(none, HnswSearchOutcome::Found(Vec::new()));
    assert_eq!(graph.search(data.points(), &data.queries[0], 100, 50, &|_| false), HnswSearchOutcome::GaveUp);
}

#[test]
fn the_same_vectors_give_the_same_graph() {
    let data = TestVectors::new(VectorMetric::Cosine, 300, 8, None);
    let (one, other) = (data.graph(DEFAULT), data.graph(DEFAULT));
    assert_eq!((one.ground, one.upper), (other.ground, other.upper));
}

#[test]
fn many_equal_vectors_stay_reachable() {
    let mut data = TestVectors::new(VectorMetric::Cosine, 500, 8, None);
    let width = data.width;
    let twin = data.values[..width].to_vec();
    for node in 100..400 {
        data.values[node * width..(node + 1) * width].copy_from_slice(&twin);
    }
    let graph = data.graph(HnswBuildParameters { m: 4, ef_construction: 100 });
    assert!(data.recall(&graph, 100, &|_| true) >= 0.95);
    let HnswSearchOutcome::Found(found) = graph.search(data.points(), &twin, 200, usize::MAX, &|_| true)
    else {
        panic!()
    };
    let twins = found.iter().filter(|near| data.points().at(near.node()) == twin).count();
    assert_eq!(twins, 200);
}

#[test]
fn empty_and_single_node_graphs_can_be_searched() {
    let mut data = TestVectors::new(VectorMetric::Cosine, 1, 4, None);
    let query = data.queries[0].clone();
    let HnswSearchOutcome::Found(found) =
        data.graph(DEFAULT).search(data.points(), &query, 5, 100, &|_| true)
    else {
        panic!()
    };
    assert_eq!(found.len(), 1);
    data.numbers.clear();
    data.values.clear();
    assert_eq!(
        data.graph(DEFAULT).search(data.points(), &query, 5, 100, &|_| true),
        HnswSearchOutcome::Found(Vec::new())
    );
}

#[test]
fn building_stops_on_request() {
    let data = TestVectors::new(VectorMetric::Cosine, 300, 4, None);
    assert!(HnswGraph::build(data.points(), &data.numbers, DEFAULT, &|| true).is_none());
}
