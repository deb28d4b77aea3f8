//! From the counts of all segments to the buckets that the client reads.

use std::collections::HashMap;
use std::io;

use serde_json::{Value, json};
use tantivy::columnar::{MonotonicallyMappableToU64, StrColumn};

use super::calendar::render_date;
use super::counting::{Counted, Figures};
use super::expression::{Facet, FacetKind, Metric, Sort};
use crate::definition::Primitive;

/// The buckets of one facet, each an object with `count` and what it counts.
pub(super) fn buckets(facet: &Facet, segments: Vec<Counted>) -> tantivy::Result<Vec<Value>> {
    Ok(match &facet.kind {
        FacetKind::Values { count, sort } if facet.primitive == Primitive::String => {
            let mut terms = merge_terms(term_counts(segments), *count, *sort)?;
            arrange(&mut terms, *count, *sort);
            terms.into_iter().map(|(term, count)| bucket(Value::String(text(term)), count)).collect()
        }
        FacetKind::Values { count, sort } => {
            let mut keys: Vec<_> = merge_keys(segments).into_iter().collect();
            arrange(&mut keys, *count, *sort);
            keys.into_iter().map(|(key, count)| bucket(render(facet.primitive, key), count)).collect()
        }
        FacetKind::Steps(_) | FacetKind::Calendar(_) => {
            let mut keys: Vec<_> = merge_keys(segments).into_iter().collect();
            keys.sort_unstable();
            keys.into_iter().map(|(key, count)| bucket(render(facet.primitive, key), count)).collect()
        }
        FacetKind::Ranges(bounds) => ranges(facet.primitive, bounds, &merge_keys(segments)),
        FacetKind::Metric { metric: Metric::Cardinality, .. } => {
            let different = match facet.primitive {
                Primitive::String => merge_terms(term_counts(segments), None, Sort::Most)?.len(),
                _ => merge_keys(segments).len(),
            };
            vec![json!({ "cardinality": different })]
        }
        FacetKind::Metric { metric, missing } => vec![figure(*metric, *missing, &segments)],
    })
}

fn bucket(value: Value, count: u64) -> Value {
    json!({ "value": value, "count": count })
}

/// All ranges, empty ones too: the client asked for each of them.
fn ranges(primitive: Primitive, bounds: &[u64], counts: &HashMap<u64, u64>) -> Vec<Value> {
    let froms = std::iter::once(None).chain(bounds.iter().map(Some));
    let tos = bounds.iter().map(Some).chain(std::iter::once(None));
    let range = |(at, (from, to)): (u64, (Option<&u64>, Option<&u64>))| {
        let mut range = json!({ "count": counts.get(&at).copied().unwrap_or_default() });
        if let Some(from) = from {
            range["from"] = render(primitive, *from);
        }
        if let Some(to) = to {
            range["to"] = render(primitive, *to);
        }
        range
    };
    (0..).zip(froms.zip(tos)).map(range).collect()
}

fn figure(metric: Metric, missing: Option<f64>, segments: &[Counted]) -> Value {
    let mut all = Figures::default();
    for segment in segments {
        match segment {
            Counted::Figures(figures) => all.merge(figures),
            Counted::Nothing { documents } => all.missing += documents,
            Counted::Terms { .. } | Counted::Keys(_) => {}
        }
    }
    if let Some(value) = missing {
        all.add(value, all.missing);
    }
    let value = |figure: f64| if all.values == 0 { Value::Null } else { double(figure) };
    match metric {
        Metric::Sum => json!({ "sum": double(all.sum) }),
        Metric::Average => json!({ "avg": value(all.sum / all.values as f64) }),
        Metric::Minimum => json!({ "min": value(all.minimum) }),
        Metric::Maximum => json!({ "max": value(all.maximum) }),
        Metric::Cardinality => Value::Null,
    }
}

fn render(primitive: Primitive, key: u64) -> Value {
    match primitive {
        Primitive::Boolean => Value::Bool(bool::from_u64(key)),
        Primitive::Double => double(f64::from_u64(key)),
        Primitive::DateTimeOffset => Value::String(render_date(i64::from_u64(key))),
        _ => Value::from(i64::from_u64(key)),
    }
}

/// JSON has no numbers beyond the finite ones; the service writes them as OData does.
fn double(value: f64) -> Value {
    match serde_json::Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => Value::from("NaN"),
        None if value > 0.0 => Value::from("INF"),
        None => Value::from("-INF"),
    }
}

fn text(term: Vec<u8>) -> String {
    String::from_utf8(term).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn merge_keys(segments: Vec<Counted>) -> HashMap<u64, u64> {
    let mut all = HashMap::new();
    for segment in segments {
        if let Counted::Keys(keys) = segment {
            for (key, count) in keys {
                *all.entry(key).or_default() += count;
            }
        }
    }
    all
}

/// Sorts, and keeps as many as were asked for. Equal counts are ordered by value.
fn arrange<K: Ord>(buckets: &mut Vec<(K, u64)>, limit: Option<usize>, sort: Sort) {
    let order = |one: &(K, u64), other: &(K, u64)| match sort {
        Sort::Most => other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)),
        Sort::Fewest => one.1.cmp(&other.1).then_with(|| one.0.cmp(&other.0)),
        Sort::Ascending => one.0.cmp(&other.0),
        Sort::Descending => other.0.cmp(&one.0),
    };
    if let Some(limit) = limit.filter(|limit| *limit > 0 && *limit < buckets.len()) {
        buckets.select_nth_unstable_by(limit - 1, order);
        buckets.truncate(limit);
    }
    buckets.sort_unstable_by(order);
}

/// Terms with the numbers of their documents.
type Terms = Vec<(Vec<u8>, u64)>;

struct TermCounts {
    column: StrColumn,
    counts: Vec<u32>,
}

fn term_counts(segments: Vec<Counted>) -> Vec<TermCounts> {
    let terms = |segment| match segment {
        Counted::Terms { column, counts } => Some(TermCounts { column, counts }),
        _ => None,
    };
    segments.into_iter().filter_map(terms).collect()
}

impl TermCounts {
    /// The ordinals that were seen, with their counts.
    fn seen(&self) -> Vec<(u64, u64)> {
        let seen = (0..).zip(&self.counts).filter(|(_, count)| **count > 0);
        seen.map(|(ord, count)| (ord, u64::from(*count))).collect()
    }

    /// Hands over the terms of some ordinals, which need not be sorted.
    fn resolve(&self, mut ords: Vec<(u64, u64)>, mut take: impl FnMut(&[u8], u64)) -> io::Result<()> {
        ords.sort_unstable();
        let (ords, counts): (Vec<u64>, Vec<u64>) = ords.into_iter().unzip();
        let mut counts = counts.into_iter();
        self.column
            .dictionary()
            .sorted_ords_to_term_cb(&ords, |term| take(term, counts.next().unwrap_or_default()))?;
        Ok(())
    }
}

/// The terms of all segments with their counts: all of them, or at least those that can be among the first `limit`.
/// Reading terms from dictionaries is what costs here, so as few as possible are read.
fn merge_terms(segments: Vec<TermCounts>, limit: Option<usize>, sort: Sort) -> io::Result<Terms> {
    let mut merged: HashMap<Vec<u8>, u64> = HashMap::new();
    let alone = segments.len() == 1;
    if let (false, Some(limit), Sort::Most) = (alone, limit, sort)
        && let Some(terms) = most_frequent(&segments, limit)?
    {
        return Ok(terms);
    }
    for segment in &segments {
        let mut seen = segment.seen();
        // Ordinals are in the order of terms. A value among the first of all segments is among the first of each
        // segment that has it, so its count is complete.
        if alone || matches!(sort, Sort::Ascending | Sort::Descending) {
            arrange(&mut seen, limit, sort);
        }
        segment.resolve(seen, |term, count| match merged.get_mut(term) {
            Some(sum) => *sum += count,
            None => {
                merged.insert(term.to_vec(), count);
            }
        })?;
    }
    Ok(merged.into_iter().collect())
}

/// The most frequent terms without reading the rare ones; `None` when that would not pay.
///
/// The last of the most frequent terms of one segment is a bound: `limit` terms occur at least so often. To reach it, a
/// term must occur that often divided by the number of segments in at least one of them.
fn most_frequent(segments: &[TermCounts], limit: usize) -> io::Result<Option<Terms>> {
    let mut bound = 0;
    let mut total = 0;
    for segment in segments {
        let mut seen = segment.seen();
        total += seen.len();
        if limit > 0 && seen.len() >= limit {
            let (_, last, _) = seen.select_nth_unstable_by(limit - 1, |one, other| other.1.cmp(&one.1));
            bound = bound.max(last.1);
        }
    }
    let least = bound.div_ceil(segments.len().max(1) as u64);
    let frequent = |segment: &TermCounts| -> Vec<(u64, u64)> {
        segment.seen().into_iter().filter(|(_, count)| *count >= least).collect()
    };
    let frequent: Vec<_> = segments.iter().map(frequent).collect();
    let candidates: usize = frequent.iter().map(Vec::len).sum();
    // A look-up reads half a block of the dictionary, in each segment.
    if least <= 1 || candidates.saturating_mul(segments.len()).saturating_mul(32) > total {
        return Ok(None);
    }
    let mut terms: HashMap<Vec<u8>, u64> = HashMap::new();
    for (segment, ords) in segments.iter().zip(frequent) {
        segment.resolve(ords, |term, _| {
            terms.insert(term.to_vec(), 0);
        })?;
    }
    for (term, sum) in &mut terms {
        for segment in segments {
            let place = segment.column.dictionary().term_ord(term)?.and_then(|ord| usize::try_from(ord).ok());
            let count = place.and_then(|place| segment.counts.get(place)).copied().unwrap_or_default();
            *sum += u64::from(count);
        }
    }
    Ok(Some(terms.into_iter().collect()))
}
