//! Turns the counts of all segments into the buckets of the response.
//!
//! Buckets are written directly as JSON text. Only values that can still be among the requested first
//! ones are kept in memory.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;

use bindpost_azure_search_model::definition::PrimitiveType;
use serde_json::{Value, json};
use tantivy::columnar::{MonotonicallyMappableToU64, StrColumn};

use super::best::{MergedCounts, TopBuckets};
use super::calendar::render_date;
use super::counting::{FacetCounts, MetricTotals};
use super::expression::{FacetExpression, FacetKind, FacetMetric, FacetSort};
use crate::budget::{Budget, JsonBuffer};

/// Writes the buckets of one facet, separated by commas. Each bucket is an object with `count` and its
/// value or range.
pub(super) fn write_buckets(
    facet: &FacetExpression,
    segments: &[FacetCounts],
    budget: &Budget,
    out: &mut JsonBuffer,
) -> tantivy::Result<()> {
    match &facet.kind {
        FacetKind::Values { count, sort } if facet.primitive == PrimitiveType::String => {
            let terms = FacetTerms::new(segments, budget);
            terms.first_terms(*count, *sort)?.for_each_sorted(|term, count| {
                bucket(out, count, |bytes| serde_json::to_writer(bytes, &String::from_utf8_lossy(&term)));
            });
        }
        FacetKind::Values { count, sort } => {
            let mut best = TopBuckets::new(*count, *sort, budget);
            merged_keys(segments).for_each(|(key, count)| best.offer(key, count));
            best.for_each_sorted(|key, count| {
                bucket(out, count, |bytes| serde_json::to_writer(bytes, &render(facet.primitive, key)));
            });
        }
        FacetKind::Steps(_) | FacetKind::Calendar(_) => {
            for (key, count) in merged_keys(segments) {
                bucket(out, count, |bytes| serde_json::to_writer(bytes, &render(facet.primitive, key)));
            }
        }
        FacetKind::Ranges(bounds) => ranges(facet.primitive, bounds, &merged_keys(segments).collect(), out),
        FacetKind::Metric { metric: FacetMetric::Cardinality, .. } => {
            let different = match facet.primitive {
                PrimitiveType::String => FacetTerms::new(segments, budget).count_distinct()?,
                _ => merged_keys(segments).count(),
            };
            out.push_json(&json!({ "cardinality": different }));
        }
        FacetKind::Metric { metric, missing } => out.push_json(&metric_value(*metric, *missing, segments)),
    }
    Ok(())
}

/// Writes one bucket. Writing strings and numbers to memory does not fail.
fn bucket(out: &mut JsonBuffer, count: u64, value: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>) {
    out.write_separator();
    out.bytes.extend_from_slice(b"{\"count\":");
    let _ = serde_json::to_writer(&mut out.bytes, &count);
    out.bytes.extend_from_slice(b",\"value\":");
    let _ = value(&mut out.bytes);
    out.bytes.push(b'}');
    out.account_growth();
}

/// Writes all requested ranges, including empty ones.
fn ranges(primitive: PrimitiveType, bounds: &[u64], counts: &HashMap<u64, u64>, out: &mut JsonBuffer) {
    let froms = std::iter::once(None).chain(bounds.iter().map(Some));
    let tos = bounds.iter().map(Some).chain(std::iter::once(None));
    for (at, (from, to)) in (0..).zip(froms.zip(tos)) {
        let mut range = json!({ "count": counts.get(&at).copied().unwrap_or_default() });
        if let Some(from) = from {
            range["from"] = render(primitive, *from);
        }
        if let Some(to) = to {
            range["to"] = render(primitive, *to);
        }
        out.push_json(&range);
    }
}

fn metric_value(metric: FacetMetric, missing: Option<f64>, segments: &[FacetCounts]) -> Value {
    let mut all = MetricTotals::default();
    for segment in segments {
        match segment {
            FacetCounts::Figures(figures) => all.merge(figures),
            FacetCounts::Nothing { documents } => all.missing += documents,
            FacetCounts::Terms { .. } | FacetCounts::Keys { .. } => {}
        }
    }
    if let Some(value) = missing {
        all.add(value, all.missing);
    }
    let value = |figure: f64| if all.values == 0 { Value::Null } else { double(figure) };
    match metric {
        FacetMetric::Sum => json!({ "sum": double(all.sum) }),
        FacetMetric::Average => json!({ "avg": value(all.sum / all.values as f64) }),
        FacetMetric::Minimum => json!({ "min": value(all.minimum) }),
        FacetMetric::Maximum => json!({ "max": value(all.maximum) }),
        FacetMetric::Cardinality => Value::Null,
    }
}

fn render(primitive: PrimitiveType, key: u64) -> Value {
    match primitive {
        PrimitiveType::Boolean => Value::Bool(bool::from_u64(key)),
        PrimitiveType::Double => double(f64::from_u64(key)),
        PrimitiveType::DateTimeOffset => Value::String(render_date(i64::from_u64(key))),
        _ => Value::from(i64::from_u64(key)),
    }
}

/// JSON has no NaN and no infinity. The service writes them as OData does.
fn double(value: f64) -> Value {
    match serde_json::Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => Value::from("NaN"),
        None if value > 0.0 => Value::from("INF"),
        None => Value::from("-INF"),
    }
}

/// Merges the keys of all segments in their order.
fn merged_keys(segments: &[FacetCounts]) -> MergedCounts<u64, impl Iterator<Item = (u64, u64)>> {
    let keys = segments.iter().filter_map(|segment| match segment {
        FacetCounts::Keys { keys, .. } => Some(keys.iter().copied()),
        _ => None,
    });
    MergedCounts::new(keys.collect())
}

/// The terms of one column in all segments.
struct FacetTerms<'a> {
    segments: Vec<TermCounts<'a>>,
    budget: &'a Budget,
}

#[derive(Clone, Copy)]
struct TermCounts<'a> {
    column: &'a StrColumn,
    /// Counts by ordinal. Ordinals are in the order of the terms.
    counts: &'a [u32],
}

impl<'a> FacetTerms<'a> {
    fn new(segments: &'a [FacetCounts], budget: &'a Budget) -> Self {
        let terms = |segment: &'a FacetCounts| match segment {
            FacetCounts::Terms { column, counts, .. } => Some(TermCounts { column, counts }),
            _ => None,
        };
        Self { segments: segments.iter().filter_map(terms).collect(), budget }
    }

    /// Returns the number of distinct terms.
    fn count_distinct(&self) -> io::Result<usize> {
        match self.segments.as_slice() {
            [only] => Ok(only.seen().count()),
            _ => self.merged(|terms| terms.count()),
        }
    }

    /// Returns the first terms of an order. Reading terms from dictionaries is expensive, so it reads as
    /// few as possible.
    fn first_terms(&self, limit: Option<usize>, sort: FacetSort) -> io::Result<TopBuckets<Vec<u8>>> {
        let mut best = TopBuckets::new(limit, sort, self.budget);
        if let [only] = self.segments.as_slice() {
            let mut places = TopBuckets::new(limit, sort, self.budget);
            only.seen().for_each(|(ord, count)| places.offer(ord, count));
            only.resolve(places.into_pairs(), |term, count| best.offer(term.to_vec(), count))?;
            return Ok(best);
        }
        if let (Some(limit), FacetSort::Most) = (limit, sort)
            && let Some(frequent) = self.frequent(limit)
        {
            self.counted(frequent, |term, count| best.offer(term, count))?;
            return Ok(best);
        }
        self.merged(|terms| {
            for (term, count) in terms {
                best.offer(term, count);
                // The terms come in ascending order.
                if sort == FacetSort::Ascending && best.is_full() {
                    break;
                }
            }
        })?;
        Ok(best)
    }

    /// Passes the terms of all segments to `take` in their order. They are read in small blocks.
    fn merged<T>(&self, take: impl FnOnce(MergedCounts<Vec<u8>, TermCursor<'_>>) -> T) -> io::Result<T> {
        let failed = Cell::new(None);
        let cursors = self.segments.iter().map(|segment| TermCursor {
            segment: *segment,
            at: 0,
            ahead: Vec::new().into_iter(),
            failed: &failed,
            budget: self.budget,
        });
        let taken = take(MergedCounts::new(cursors.collect()));
        failed.take().map_or(Ok(taken), Err)
    }

    /// Returns the terms of each segment that can be among the most frequent ones. Returns `None` when
    /// looking them up would cost too much.
    ///
    /// The count of the last of the `limit` most frequent terms of one segment is a lower bound: `limit`
    /// terms have at least this count. To reach it, a term needs this count divided by the number of
    /// segments in at least one segment.
    fn frequent(&self, limit: usize) -> Option<Vec<Vec<(u64, u64)>>> {
        let (mut bound, mut total) = (0, 0);
        for segment in &self.segments {
            let mut counts = TopBuckets::new(Some(limit), FacetSort::Descending, self.budget);
            // Several terms may have the same count, so the ordinal is stored with it.
            for (ord, count) in segment.seen() {
                counts.offer((count, ord), 0);
                total += 1;
            }
            if limit > 0 && counts.is_full() {
                bound = bound.max(counts.last().map_or(0, |(count, _)| *count));
            }
        }
        let least = bound.div_ceil(self.segments.len().max(1) as u64);
        let frequent = |segment: TermCounts<'a>| segment.seen().filter(move |(_, count)| *count >= least);
        let candidates: usize = self.segments.iter().map(|segment| frequent(*segment).count()).sum();
        // A look-up reads half a block of the dictionary in each segment.
        if least <= 1 || candidates.saturating_mul(self.segments.len()).saturating_mul(32) > total {
            return None;
        }
        Some(self.segments.iter().map(|segment| frequent(*segment).collect()).collect())
    }

    /// Looks up the terms of the given ordinals in all segments, and passes them to `take` with their counts.
    fn counted(&self, ords: Vec<Vec<(u64, u64)>>, mut take: impl FnMut(Vec<u8>, u64)) -> io::Result<()> {
        let mut terms: HashMap<Vec<u8>, u64> = HashMap::new();
        for (segment, ords) in self.segments.iter().zip(ords) {
            segment.resolve(ords, |term, _| {
                terms.insert(term.to_vec(), 0);
            })?;
        }
        for (term, mut sum) in terms {
            self.budget.check();
            for segment in &self.segments {
                let place =
                    segment.column.dictionary().term_ord(&term)?.and_then(|ord| usize::try_from(ord).ok());
                let count = place.and_then(|place| segment.counts.get(place)).copied().unwrap_or_default();
                sum += u64::from(count);
            }
            take(term, sum);
        }
        Ok(())
    }
}

impl<'a> TermCounts<'a> {
    /// Returns the ordinals that occurred, with their counts.
    fn seen(self) -> impl Iterator<Item = (u64, u64)> + 'a {
        let seen = (0..).zip(self.counts).filter(|(_, count)| **count > 0);
        seen.map(|(ord, count)| (ord, u64::from(*count)))
    }

    /// Passes the terms of the given ordinals to `take`. The ordinals may be unsorted.
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

/// Iterates over the terms of one segment that occurred.
struct TermCursor<'a> {
    segment: TermCounts<'a>,
    /// The next ordinal to read.
    at: usize,
    ahead: std::vec::IntoIter<(Vec<u8>, u64)>,
    failed: &'a Cell<Option<io::Error>>,
    budget: &'a Budget,
}

/// How many terms of a segment are read at once.
const AHEAD: usize = 1024;

impl Iterator for TermCursor<'_> {
    type Item = (Vec<u8>, u64);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(next) = self.ahead.next() {
            return Some(next);
        }
        self.budget.check();
        let rest = self.segment.counts.get(self.at..)?;
        let mut ords = Vec::with_capacity(AHEAD);
        for (place, count) in rest.iter().enumerate() {
            if *count > 0 {
                ords.push(((self.at + place) as u64, u64::from(*count)));
            }
            if ords.len() == AHEAD {
                break;
            }
        }
        self.at = ords.last().map_or(self.segment.counts.len(), |(ord, _)| *ord as usize + 1);
        let mut ahead = Vec::with_capacity(ords.len());
        if let Err(error) = self.segment.resolve(ords, |term, count| ahead.push((term.to_vec(), count))) {
            self.failed.set(Some(error));
            return None;
        }
        self.ahead = ahead.into_iter();
        self.ahead.next()
    }
}
