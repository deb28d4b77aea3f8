//! Reciprocal rank fusion: combines several rankings into one.

use std::collections::HashMap;

/// The constant of the formula. It reduces the weight of the first places.
const CONSTANT: f64 = 60.0;

/// A ranking to fuse, best first: the hits of a text query, or of one field of a vector query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WeightedRanking<'a> {
    pub numbers: &'a [u64],
    /// The `weight` of the vector query. Text has 1.
    pub weight: f32,
}

/// Returns all documents of the rankings with their fused scores, best first. Equal scores are ordered
/// by number.
///
/// A ranking adds weight / (60 + place). Places start at zero. Azure documents only "rank", but its
/// responses to hybrid queries show it: 0.0333333 = 1/60 + 1/60 for a document that leads both rankings,
/// and 0.0327957 = 1/60 + 1/62. Scores have single precision as in Azure.
pub(crate) fn reciprocal_rank_fusion(rankings: &[WeightedRanking<'_>]) -> Vec<(u64, f32)> {
    let most = rankings.iter().map(|ranking| ranking.numbers.len()).max().unwrap_or(0);
    let mut scores: HashMap<u64, f64> = HashMap::with_capacity(most);
    for ranking in rankings {
        for (place, &number) in ranking.numbers.iter().enumerate() {
            *scores.entry(number).or_default() += f64::from(ranking.weight) / (CONSTANT + place as f64);
        }
    }
    // Scores are rounded first, so that the order of additions does not matter.
    let mut fused: Vec<(u64, f32)> =
        scores.into_iter().map(|(number, score)| (number, score as f32)).collect();
    fused.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even<'a>(lists: &[&'a [u64]]) -> Vec<WeightedRanking<'a>> {
        lists.iter().map(|&numbers| WeightedRanking { numbers, weight: 1.0 }).collect()
    }

    #[test]
    fn scores_are_those_seen_in_azure() {
        let fused = reciprocal_rank_fusion(&even(&[&[7, 8, 9], &[7, 1, 2]]));
        assert_eq!(fused[0], (7, 0.033_333_335));
        let fused = reciprocal_rank_fusion(&even(&[&[4, 5, 6], &[1, 2, 4]]));
        assert_eq!(fused[0].0, 4);
        assert_eq!(f64::from(fused[0].1), 0.032_795_697_450_637_82);
    }

    #[test]
    fn a_document_in_two_lists_beats_the_first_of_one() {
        let numbers: Vec<u64> =
            reciprocal_rank_fusion(&even(&[&[1, 2, 3], &[9, 8, 3]])).iter().map(|hit| hit.0).collect();
        assert_eq!(numbers, [3, 1, 9, 2, 8]);
    }

    #[test]
    fn weights_multiply() {
        let text = WeightedRanking { numbers: &[1, 2], weight: 1.0 };
        let vector = WeightedRanking { numbers: &[2, 1], weight: 3.0 };
        let fused = reciprocal_rank_fusion(&[text, vector]);
        assert_eq!(fused[0], (2, (1.0 / 61.0 + 3.0 / 60.0) as f32));
    }

    #[test]
    fn equal_scores_are_ordered_by_number_whatever_the_lists() {
        let lists: [&[u64]; 3] = [&[3, 1, 2], &[1, 2, 3], &[2, 3, 1]];
        let fused = reciprocal_rank_fusion(&even(&lists));
        assert_eq!(fused.iter().map(|hit| hit.0).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(fused.iter().all(|hit| hit.1 == fused[0].1));
        assert!(reciprocal_rank_fusion(&[]).is_empty());
    }
}
