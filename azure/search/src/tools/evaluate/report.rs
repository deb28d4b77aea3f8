//! The result of an evaluation: means, gains and losses, and notes on their validity.

use bindpost_mcp_openapi::count_fitting;
use serde_json::{Map, Value, json};

use super::measure::RankingMeasures;
use super::{EvaluatedQuery, Outcome};
use crate::tools::builder::pluralized;

/// Maximum number of keys of one kind per query.
const KEYS: usize = 5;
/// A smaller difference of nDCG is neither a gain nor a loss.
const SAME: f64 = 1e-6;

/// Returns the result. Queries are sorted by loss, or by nDCG. Queries beyond the size limit are omitted.
pub(super) fn report(judged: &[EvaluatedQuery], k: usize, compares: bool, bytes: usize) -> Value {
    let baseline = || judged.iter().filter_map(|one| one.baseline.as_ref().ok());
    let candidate = || judged.iter().filter_map(|one| one.candidate.as_ref()?.as_ref().ok());
    let mut means = Map::from_iter([("baseline".to_owned(), means_of(baseline()))]);
    let mut answer = json!({"k": k, "queries": judged.len()});
    if compares {
        means.insert("candidate".to_owned(), means_of(candidate()));
        let changes: Vec<f64> = judged.iter().filter_map(change).collect();
        let count = |is: fn(f64) -> bool| changes.iter().filter(|change| is(**change)).count();
        let (gains, losses) = (count(|change| change > SAME), count(|change| change < -SAME));
        set(&mut answer, "gains", gains.into());
        set(&mut answer, "losses", losses.into());
        set(&mut answer, "unchanged", (changes.len() - gains - losses).into());
        // Without a query that both variants answered there is no comparison.
        let mean = (!changes.is_empty()).then(|| changes.iter().sum::<f64>() / changes.len() as f64);
        set(&mut answer, "meanNdcgChange", mean.map(rounded).into());
    }
    set(&mut answer, "mean", Value::Object(means));
    let mut ordered: Vec<&EvaluatedQuery> = judged.iter().collect();
    let place = |one: &EvaluatedQuery| match compares {
        true => change(one).unwrap_or(f64::NEG_INFINITY),
        false => one.baseline.as_ref().ok().and_then(|measures| measures.ndcg).unwrap_or(2.0),
    };
    ordered.sort_by(|one, other| place(one).total_cmp(&place(other)));
    let told: Vec<Value> = ordered.into_iter().map(|one| query_json(one, compares)).collect();
    set(&mut answer, "notes", json!(notes(judged, k)));
    let room = bytes.saturating_sub(answer.to_string().len() + 1024);
    let fit = count_fitting(&told, room);
    let left_off = told.len() - fit;
    set(&mut answer, "perQuery", told.into_iter().take(fit).collect());
    if left_off > 0 {
        set(&mut answer, "leftOff", left_off.into());
    }
    answer
}

fn set(answer: &mut Value, name: &str, value: Value) {
    if let Some(members) = answer.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

/// Returns the difference in nDCG between candidate and baseline.
fn change(one: &EvaluatedQuery) -> Option<f64> {
    let ndcg = |outcome: &Outcome| outcome.as_ref().ok()?.ndcg;
    Some(ndcg(one.candidate.as_ref()?)? - ndcg(&one.baseline)?)
}

fn means_of<'a>(measures: impl Iterator<Item = &'a RankingMeasures> + Clone) -> Value {
    let mean = |of: fn(&RankingMeasures) -> Option<f64>| {
        let values: Vec<f64> = measures.clone().filter_map(of).collect();
        match values.is_empty() {
            true => Value::Null,
            false => rounded(values.iter().sum::<f64>() / values.len() as f64),
        }
    };
    json!({
        "ndcg": mean(|measures| measures.ndcg),
        "recall": mean(|measures| measures.recall),
        // A query without relevant judgments has no meaningful precision.
        "precision": mean(|measures| measures.ndcg.map(|_| measures.precision)),
        "mrr": mean(|measures| measures.reciprocal_rank),
    })
}

fn query_json(one: &EvaluatedQuery, compares: bool) -> Value {
    let mut told = json!({"search": one.query.search, "baseline": outcome(&one.baseline)});
    if let Some(id) = &one.query.id {
        set(&mut told, "id", id.as_str().into());
    }
    if let Some(candidate) = one.candidate.as_ref().filter(|_| compares) {
        set(&mut told, "candidate", outcome(candidate));
        if let Some(change) = change(one) {
            set(&mut told, "ndcgChange", rounded(change));
        }
        if let (Ok(before), Ok(after)) = (&one.baseline, candidate) {
            let lost = after.missing.iter().filter(|key| !before.missing.contains(key));
            let won = before.missing.iter().filter(|key| !after.missing.contains(key));
            set(&mut told, "lostKeys", lost.take(KEYS).map(String::as_str).collect());
            set(&mut told, "wonKeys", won.take(KEYS).map(String::as_str).collect());
        }
    }
    told
}

fn outcome(outcome: &Outcome) -> Value {
    let measures = match outcome {
        Ok(measures) => measures,
        Err(failure) => return failure.to_json(),
    };
    let unjudged: Vec<Value> =
        measures.unjudged.iter().take(KEYS).map(|(rank, key)| json!({"rank": rank, "key": key})).collect();
    let mut told = json!({
        "ndcg": measures.ndcg.map(rounded),
        "recall": measures.recall.map(rounded),
        "precision": rounded(measures.precision),
        "reciprocalRank": measures.reciprocal_rank.map(rounded),
        "top": measures.top.iter().take(KEYS).collect::<Vec<_>>(),
        "missing": measures.missing.iter().take(KEYS).collect::<Vec<_>>(),
        "missingCount": measures.missing.len(),
        "unjudgedAtTop": unjudged,
        "unjudgedCount": measures.unjudged.len(),
    });
    if let Some((worst, best)) = measures.tied {
        set(&mut told, "ndcgWithTies", json!([rounded(worst), rounded(best)]));
    }
    if let Some(note) = &measures.note {
        set(&mut told, "note", note.as_str().into());
    }
    told
}

/// Returns notes on the validity of the means.
fn notes(judged: &[EvaluatedQuery], k: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let outcomes = || judged.iter().flat_map(|one| [Some(&one.baseline), one.candidate.as_ref()]).flatten();
    let mut note = |count: usize, text: String| {
        if count > 0 {
            notes.push(text);
        }
    };
    let failed = outcomes().filter(|outcome| outcome.is_err()).count();
    note(
        failed,
        format!(
            "{} not in the means; perQuery has the reasons.",
            pluralized(failed as u64, "search failed and is", "searches failed and are")
        ),
    );
    let measured = || outcomes().filter_map(|outcome| outcome.as_ref().ok());
    let nothing = judged.iter().filter(|one| one.query.judgments.values().all(|grade| *grade <= 0.0)).count();
    note(
        nothing,
        format!(
            "{} not in the means.",
            pluralized(
                nothing as u64,
                "query has no relevant judgment and is",
                "queries have no relevant judgment and are"
            )
        ),
    );
    let unjudged: usize = measured().map(|measures| measures.unjudged.len()).sum();
    note(
        unjudged,
        format!(
            "{} without judgment among the first {k}, treated as irrelevant. A better variant may find good documents \
             without judgment. Judge those in unjudgedAtTop first.",
            pluralized(unjudged as u64, "hit", "hits")
        ),
    );
    let tied = measured().filter(|measures| measures.tied.is_some()).count();
    note(
        tied,
        format!(
            "{} hits with equal scores in arbitrary order; ndcgWithTies gives the range. A \
             difference within it is not significant.",
            pluralized(tied as u64, "result has", "results have")
        ),
    );
    let partial = measured().filter(|measures| measures.note.is_some()).count();
    note(
        partial,
        format!(
            "{} answered only partially; see the note.",
            pluralized(partial as u64, "search was", "searches were")
        ),
    );
    let few = judged.len();
    note(
        usize::from(few < 25),
        format!(
            "{} few: small differences of means may be chance.",
            pluralized(few as u64, "query is", "queries are")
        ),
    );
    notes
}

/// Rounds to four digits, which is more than the precision of judgments.
fn rounded(value: f64) -> Value {
    let rounded = (value * 10_000.0).round() / 10_000.0;
    // Small losses would round to -0.0.
    json!(if rounded == 0.0 { 0.0 } else { rounded })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_has_no_sign() {
        for value in [-0.0, -0.000_01, 0.0] {
            assert_eq!(rounded(value).to_string(), "0.0");
        }
        assert_eq!(rounded(-0.5).to_string(), "-0.5");
    }
}
