//! The vectors of a graph's nodes, and their distances from a query.

use super::metric::VectorMetric;

/// Prepared vectors in one flat array.
#[derive(Clone, Copy)]
pub(super) struct PreparedVectors<'a> {
    pub values: &'a [f32],
    pub width: usize,
    pub metric: VectorMetric,
}

impl<'a> PreparedVectors<'a> {
    pub(super) fn at(self, node: u32) -> &'a [f32] {
        let start = node as usize * self.width;
        &self.values[start..start + self.width]
    }

    pub(super) fn distance_from(self, query: &[f32], node: u32) -> NodeDistance {
        NodeDistance::new(self.metric.comparable_distance(query, self.at(node)), node)
    }
}

/// A node and its distance in one integer that sorts by distance. Of equally near nodes, the newer
/// sorts first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeDistance(u64);

impl NodeDistance {
    /// Greater than the distance of every node.
    pub(super) const FARTHEST: Self = Self(u64::MAX);

    pub(super) fn new(order: f32, node: u32) -> Self {
        Self(u64::from(sortable(order)) << 32 | u64::from(!node))
    }

    pub(super) fn node(self) -> u32 {
        !(self.0 as u32)
    }

    pub(super) fn order(self) -> f32 {
        let key = (self.0 >> 32) as u32;
        f32::from_bits(if key >> 31 == 1 { key ^ (1 << 31) } else { !key })
    }
}

/// Returns an integer with the order of the floats. The sign bit of positive floats is set, and negative
/// floats are inverted.
fn sortable(value: f32) -> u32 {
    // Adding zero turns -0 into 0, so that both are equal.
    let bits = (value + 0.0).to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_sorts_like_the_float_and_gives_it_back() {
        let orders = [f32::NEG_INFINITY, -2.5, -1.0, 0.0, 1e-20, 1.0, f32::INFINITY];
        let nears: Vec<NodeDistance> = orders.iter().map(|&order| NodeDistance::new(order, 9)).collect();
        assert!(nears.is_sorted() && nears.iter().all(|near| *near < NodeDistance::FARTHEST));
        assert!(nears.iter().zip(orders).all(|(near, order)| near.order() == order && near.node() == 9));
        assert!(NodeDistance::new(1.0, 8) < NodeDistance::new(1.0, 7));
        assert_eq!(NodeDistance::new(-0.0, 1), NodeDistance::new(0.0, 1));
    }
}
