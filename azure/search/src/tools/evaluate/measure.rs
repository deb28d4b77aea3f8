//! The measures of one ranked list against judgments. Hits without a judgment are irrelevant.
//!
//! With the grade `g` of a document and its rank `r`, counted from 1:
//! - gain: `2^g - 1`
//! - DCG@k: the sum of `gain / log2(r + 1)` over the first k hits
//! - nDCG@k: DCG@k divided by that of the best order of all judged documents
//! - recall@k: relevant hits among the first k, of all documents judged relevant (grade above 0)
//! - precision@k: relevant hits among the first k, of k, also when there are fewer hits
//! - reciprocal rank: 1 / rank of the first relevant hit among the first k, or 0

use std::collections::BTreeMap;

/// Smaller differences are rounding errors.
const SAME: f64 = 1e-9;

/// One hit of a search.
#[derive(Clone, Debug)]
pub(crate) struct ScoredHit {
    pub(crate) key: String,
    pub(crate) score: f64,
}

/// The measures of one query in one variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RankingMeasures {
    /// `None` if no document was judged relevant.
    pub(crate) ndcg: Option<f64>,
    pub(crate) recall: Option<f64>,
    pub(crate) precision: f64,
    pub(crate) reciprocal_rank: Option<f64>,
    /// The worst and the best nDCG over the orders of hits with equal scores, if they differ.
    pub(crate) tied: Option<(f64, f64)>,
    /// The first k keys.
    pub(crate) top: Vec<String>,
    /// Relevant documents that are not among the first k.
    pub(crate) missing: Vec<String>,
    /// Hits among the first k without a judgment, with their ranks.
    pub(crate) unjudged: Vec<(usize, String)>,
    pub(crate) note: Option<String>,
}

pub(crate) fn measure(hits: &[ScoredHit], judgments: &BTreeMap<String, f64>, k: usize) -> RankingMeasures {
    let grade = |hit: &ScoredHit| judgments.get(&hit.key).copied().unwrap_or_default();
    let grades: Vec<f64> = hits.iter().map(grade).collect();
    let mut ideal: Vec<f64> = judgments.values().copied().collect();
    ideal.sort_by(|one, other| other.total_cmp(one));
    let best = dcg(&ideal, k);
    let normalized = |grades: &[f64]| (best > 0.0).then(|| dcg(grades, k) / best);

    let top = || hits.iter().take(k);
    let relevant = judgments.values().filter(|grade| **grade > 0.0).count();
    let found = grades.iter().take(k).filter(|grade| **grade > 0.0).count();
    let first = grades.iter().take(k).position(|grade| *grade > 0.0);
    let is_top = |key: &str| top().any(|hit| hit.key == key);
    let missing = judgments.iter().filter(|(key, grade)| **grade > 0.0 && !is_top(key));
    let unjudged = top().enumerate().filter(|(_, hit)| !judgments.contains_key(&hit.key));
    let is_judged = relevant > 0;
    RankingMeasures {
        ndcg: normalized(&grades),
        recall: is_judged.then(|| found as f64 / relevant as f64),
        precision: found as f64 / k as f64,
        reciprocal_rank: is_judged.then(|| first.map_or(0.0, |index| 1.0 / (index + 1) as f64)),
        tied: reordered(hits, &grades)
            .and_then(|(worst, best)| Some((normalized(&worst)?, normalized(&best)?)))
            .filter(|(worst, best)| best - worst > SAME),
        top: top().map(|hit| hit.key.clone()).collect(),
        missing: missing.map(|(key, _)| key.clone()).collect(),
        unjudged: unjudged.map(|(index, hit)| (index + 1, hit.key.clone())).collect(),
        note: None,
    }
}

/// Returns the discounted cumulative gain of the first k grades.
fn dcg(grades: &[f64], k: usize) -> f64 {
    let gains = grades.iter().take(k).enumerate();
    // Not `sum`, which is -0.0 without any grades.
    gains.fold(0.0, |sum, (index, grade)| sum + (grade.exp2() - 1.0) / ((index + 2) as f64).log2())
}

/// Returns the grades with ties in the worst and in the best order, or `None` if the hits are not
/// sorted by score, as with `orderby`.
fn reordered(hits: &[ScoredHit], grades: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
    if !hits.is_sorted_by(|one, next| one.score >= next.score) {
        return None;
    }
    let (mut worst, mut best) = (Vec::new(), Vec::new());
    let mut rest = grades;
    for tie in hits.chunk_by(|one, next| one.score == next.score) {
        let (group, after) = rest.split_at_checked(tie.len())?;
        let mut group = group.to_vec();
        group.sort_by(f64::total_cmp);
        worst.extend(&group);
        best.extend(group.iter().rev());
        rest = after;
    }
    Some((worst, best))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(list: &[(&str, f64)]) -> Vec<ScoredHit> {
        list.iter().map(|(key, score)| ScoredHit { key: (*key).to_owned(), score: *score }).collect()
    }

    fn judgments(list: &[(&str, f64)]) -> BTreeMap<String, f64> {
        list.iter().map(|(key, grade)| ((*key).to_owned(), *grade)).collect()
    }

    fn close(one: Option<f64>, other: f64) {
        assert!((one.unwrap() - other).abs() < 1e-4, "{one:?} {other}");
    }

    #[test]
    fn ndcg_has_graded_gains_and_an_ideal_of_all_judged() {
        // Gains 2^3-1 = 7, 2^2-1 = 3, 2^1-1 = 1; discounts log2(2) = 1, log2(3) = 1.58496, log2(4) = 2.
        // Found: b (2), x (0), a (3): 3 + 0 + 7/2 = 6.5. Ideal: 7 + 3/1.58496 + 1/2 = 9.39279.
        let judged = judgments(&[("a", 3.0), ("b", 2.0), ("c", 1.0), ("d", 0.0)]);
        let measures = measure(&hits(&[("b", 3.0), ("x", 2.0), ("a", 1.0)]), &judged, 3);
        close(measures.ndcg, 6.5 / 9.392_789);
        close(measures.recall, 2.0 / 3.0);
        close(Some(measures.precision), 2.0 / 3.0);
        close(measures.reciprocal_rank, 1.0);
        assert_eq!(measures.missing, ["c"]);
        assert_eq!(measures.unjudged, [(2, "x".to_owned())]);
        assert_eq!(measures.tied, None);
    }

    #[test]
    fn only_the_first_k_hits_are_measured_and_fewer_hits_are_no_better() {
        let judged = judgments(&[("a", 1.0), ("b", 1.0)]);
        let measures = measure(&hits(&[("x", 3.0), ("a", 2.0), ("b", 1.0)]), &judged, 2);
        // DCG 1/log2(3) = 0.63093; ideal 1 + 0.63093.
        close(measures.ndcg, 0.630_93 / 1.630_93);
        close(measures.recall, 0.5);
        close(measures.reciprocal_rank, 0.5);
        let measures = measure(&hits(&[("a", 1.0)]), &judged, 4);
        close(Some(measures.precision), 0.25);
        let measures = measure(&[], &judged, 4);
        close(measures.ndcg, 0.0);
        close(measures.reciprocal_rank, 0.0);
    }

    #[test]
    fn the_best_order_has_one() {
        let judged = judgments(&[("a", 3.0), ("b", 1.0)]);
        close(measure(&hits(&[("a", 2.0), ("b", 1.0)]), &judged, 10).ndcg, 1.0);
    }

    #[test]
    fn without_relevant_judgments_there_are_no_measures() {
        let measures = measure(&hits(&[("a", 1.0)]), &judgments(&[("a", 0.0)]), 10);
        assert_eq!((measures.ndcg, measures.recall, measures.reciprocal_rank), (None, None, None));
    }

    #[test]
    fn ties_give_a_range_even_across_the_end_of_the_page() {
        let judged = judgments(&[("a", 1.0)]);
        let measures = measure(&hits(&[("x", 1.0), ("a", 1.0)]), &judged, 1);
        assert_eq!(measures.tied, Some((0.0, 1.0)));
        close(measures.ndcg, 0.0);
        // Hits of an `orderby` are not sorted by score.
        assert_eq!(measure(&hits(&[("x", 1.0), ("a", 2.0)]), &judged, 2).tied, None);
    }
}
