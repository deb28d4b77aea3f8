//! The distance of two vectors, and the score that Azure AI Search derives from it.
//!
//! Vectors are *prepared* once, when they are stored or searched. The cosine metric divides them by their
//! length, and the hamming metric packs four bytes into the bits of each number. A distance is then one
//! simple loop that the compiler can vectorize without `unsafe`.

/// The `metric` of an algorithm in an index definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VectorMetric {
    #[default]
    Cosine,
    Euclidean,
    DotProduct,
    /// The number of different bits, only for `Collection(Edm.Byte)` with `vectorEncoding: packedBit`.
    Hamming,
}

impl VectorMetric {
    pub const NAMES: &str = "cosine, euclidean, dotProduct or hamming";

    /// Parses the name of the REST API.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "cosine" => Some(Self::Cosine),
            "euclidean" => Some(Self::Euclidean),
            "dotProduct" => Some(Self::DotProduct),
            "hamming" => Some(Self::Hamming),
            _ => None,
        }
    }

    /// Returns the length of a prepared vector.
    pub(super) fn prepared_length(self, length: usize) -> usize {
        match self {
            Self::Hamming => length.div_ceil(4),
            _ => length,
        }
    }

    /// Appends the prepared form of a vector.
    pub(super) fn prepare(self, vector: &[f32], prepared: &mut Vec<f32>) {
        match self {
            Self::Cosine => {
                // Double precision is needed, because the squares of large numbers overflow single precision.
                let square: f64 = vector.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
                // A zero vector has no direction. It is unchanged and has the cosine 0 with all others.
                let factor = if square > 0.0 { square.sqrt().recip() } else { 0.0 };
                prepared.extend(vector.iter().map(|&value| (f64::from(value) * factor) as f32));
            }
            Self::Hamming => prepared.extend(vector.chunks(4).map(|bytes| {
                let mut word = [0; 4];
                for (to, &from) in word.iter_mut().zip(bytes) {
                    *to = from as u8;
                }
                f32::from_bits(u32::from_le_bytes(word))
            })),
            Self::Euclidean | Self::DotProduct => prepared.extend_from_slice(vector),
        }
    }

    /// Returns a number that orders prepared vectors: smaller is nearer. [`VectorMetric::distance`]
    /// converts it to a distance.
    pub(super) fn comparable_distance(self, a: &[f32], b: &[f32]) -> f32 {
        match self {
            Self::Cosine => 1.0 - dot(a, b),
            Self::Euclidean => square(a, b),
            // Sums of huge numbers may be NaN. `max` turns it into the worst product.
            Self::DotProduct => -dot(a, b).max(f32::MIN),
            Self::Hamming => bits(a, b),
        }
    }

    /// Returns the distance: 1 - cosine, the euclidean distance, the negated product, or the number of
    /// different bits.
    pub(super) fn distance(self, order: f32) -> f32 {
        match self {
            Self::Euclidean => order.sqrt(),
            // Rounding may give a result slightly below zero.
            Self::Cosine => order.max(0.0),
            Self::DotProduct | Self::Hamming => order,
        }
    }

    /// Returns the `@search.score` of a hit.
    ///
    /// Azure documents 1 / (1 + distance) for cosine, which gives 0.333 to 1. For the others it documents
    /// only that scores are between 0 and 1. The same formula is used for euclidean and hamming. For
    /// dotProduct the distance is 1 - product, so vectors of length one have the same score as with
    /// cosine. Products above 1 would give a negative distance, so they are their own score. This is
    /// continuous and keeps the order.
    pub fn score(self, distance: f32) -> f32 {
        match self {
            Self::Cosine | Self::Euclidean | Self::Hamming => 1.0 / (1.0 + distance),
            Self::DotProduct => match -distance {
                product if product > 1.0 => product,
                product => 1.0 / (2.0 - product),
            },
        }
    }

    /// Returns Azure's `vectorSimilarity`: the cosine, the product, the euclidean distance, or the number
    /// of different bits.
    pub fn similarity(self, distance: f32) -> f32 {
        match self {
            Self::Cosine => 1.0 - distance,
            Self::DotProduct => -distance,
            Self::Euclidean | Self::Hamming => distance,
        }
    }

    /// Returns whether a smaller `similarity` is better.
    pub fn smaller_is_better(self) -> bool {
        matches!(self, Self::Euclidean | Self::Hamming)
    }
}

/// The number of parallel sums. A single sum would have to be added in order and could not be vectorized.
const LANES: usize = 16;

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (chunks_a, rest_a) = a.as_chunks::<LANES>();
    let (chunks_b, rest_b) = b.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (x, y) in chunks_a.iter().zip(chunks_b) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f32 = rest_a.iter().zip(rest_b).map(|(x, y)| x * y).sum();
    total(sums) + rest
}

fn square(a: &[f32], b: &[f32]) -> f32 {
    let (chunks_a, rest_a) = a.as_chunks::<LANES>();
    let (chunks_b, rest_b) = b.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (x, y) in chunks_a.iter().zip(chunks_b) {
        for lane in 0..LANES {
            let difference = x[lane] - y[lane];
            sums[lane] += difference * difference;
        }
    }
    let rest: f32 = rest_a.iter().zip(rest_b).map(|(x, y)| (x - y) * (x - y)).sum();
    total(sums) + rest
}

fn bits(a: &[f32], b: &[f32]) -> f32 {
    let count: u32 = a.iter().zip(b).map(|(x, y)| (x.to_bits() ^ y.to_bits()).count_ones()).sum();
    count as f32
}

/// Adds the lanes by halves, which has a smaller rounding error than adding them in order.
fn total(mut sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(metric: VectorMetric, a: &[f32], b: &[f32]) -> f32 {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        metric.prepare(a, &mut left);
        metric.prepare(b, &mut right);
        assert_eq!(left.len(), metric.prepared_length(a.len()));
        metric.distance(metric.comparable_distance(&left, &right))
    }

    fn close(a: f32, b: f32) {
        assert!((a - b).abs() < 1e-5, "{a} is not {b}");
    }

    #[test]
    fn distances_are_those_of_the_definitions() {
        // Twenty numbers are one whole chunk and a remainder.
        let a: Vec<f32> = (0..20u8).map(f32::from).collect();
        let b = vec![1.0; 20];
        close(distance(VectorMetric::DotProduct, &a, &b), -190.0);
        let squares: f32 = (0..20i16).map(|x| f32::from(x - 1).powi(2)).sum();
        close(distance(VectorMetric::Euclidean, &a, &b), squares.sqrt());
        close(distance(VectorMetric::Cosine, &a, &b), 1.0 - 190.0 / (2470.0f32.sqrt() * 20.0f32.sqrt()));
        close(
            distance(VectorMetric::Hamming, &[255.0, 0.0, 1.0, 2.0, 128.0], &[254.0, 1.0, 1.0, 1.0, 0.0]),
            5.0,
        );
    }

    #[test]
    fn cosine_of_zeros_and_of_huge_numbers_is_a_number() {
        close(distance(VectorMetric::Cosine, &[0.0, 0.0], &[1.0, 2.0]), 1.0);
        close(distance(VectorMetric::Cosine, &[1e30, 1e30], &[1e-30, 1e-30]), 0.0);
        assert!(!distance(VectorMetric::DotProduct, &[1e38, 1e38], &[1e38, -1e38]).is_nan());
    }

    #[test]
    fn scores_follow_azure() {
        close(VectorMetric::Cosine.score(0.0), 1.0);
        close(VectorMetric::Cosine.score(2.0), 0.333_333);
        close(VectorMetric::Euclidean.score(3.0), 0.25);
        close(VectorMetric::Hamming.score(4.0), 0.2);
        close(VectorMetric::DotProduct.score(-0.5), VectorMetric::Cosine.score(0.5));
        let scores: Vec<f32> =
            [3.0, 1.5, 1.0, 0.9, 0.0, -5.0].map(|product| VectorMetric::DotProduct.score(-product)).into();
        assert!(scores.windows(2).all(|pair| pair[0] > pair[1] && pair[1] > 0.0), "{scores:?}");
    }
}
