//! Counts within one segment. Blocks of documents become keys of a column, and keys become counts.
//!
//! Every column is read as `u64` keys in the order of its values: ordinals of terms, or mapped numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use bindpost_azure_search_model::definition::PrimitiveType;
use tantivy::collector::SegmentCollector;
use tantivy::columnar::{Cardinality, Column, MonotonicallyMappableToU64, StrColumn};
use tantivy::{DocId, Score, SegmentReader};

use super::expression::{FacetExpression, FacetKind, FacetMetric, double_key};
use crate::budget::{Budget, MemoryReservation};

/// The counts of one facet in one segment.
pub(crate) enum FacetCounts {
    /// The segment has no values in the column, only a number of matching documents.
    Nothing {
        documents: u64,
    },
    /// Counts by ordinal of the column's dictionary.
    Terms {
        column: StrColumn,
        counts: Vec<u32>,
        _memory: MemoryReservation,
    },
    /// Counts of keys, in the order of the keys.
    Keys {
        keys: Vec<(u64, u64)>,
        _memory: MemoryReservation,
    },
    Figures(MetricTotals),
}

/// The totals that the metrics of a column are computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetricTotals {
    pub sum: f64,
    pub values: u64,
    pub minimum: f64,
    pub maximum: f64,
    /// The number of documents without a value.
    pub missing: u64,
}

impl Default for MetricTotals {
    fn default() -> Self {
        Self { sum: 0.0, values: 0, minimum: f64::INFINITY, maximum: f64::NEG_INFINITY, missing: 0 }
    }
}

impl MetricTotals {
    pub(crate) fn add(&mut self, value: f64, times: u64) {
        if times > 0 {
            let total = value * times as f64;
            self.sum += total;
            self.values += times;
            self.minimum = self.minimum.min(value);
            self.maximum = self.maximum.max(value);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.values += other.values;
        self.minimum = self.minimum.min(other.minimum);
        self.maximum = self.maximum.max(other.maximum);
        self.missing += other.missing;
    }
}

/// All facets of a request over one segment.
pub(crate) struct SegmentFacets {
    facets: Vec<SegmentFacet>,
    /// Documents that wait for a full block. With scores, documents come one by one.
    waiting: Vec<DocId>,
    budget: Budget,
}

const BLOCK: usize = 128;

impl SegmentFacets {
    pub(super) fn new(
        facets: &[(FacetExpression, String)],
        segment: &SegmentReader,
        budget: &Budget,
    ) -> tantivy::Result<Self> {
        let facets = facets.iter().map(|(facet, column)| SegmentFacet::new(facet, column, segment, budget));
        let facets = facets.collect::<Result<_, _>>()?;
        Ok(Self { facets, waiting: Vec::with_capacity(BLOCK), budget: budget.clone() })
    }

    fn flush(&mut self) {
        for facet in &mut self.facets {
            self.budget.check();
            facet.count(&self.waiting);
        }
        self.waiting.clear();
    }
}

impl SegmentCollector for SegmentFacets {
    type Fruit = Vec<FacetCounts>;

    fn collect(&mut self, doc: DocId, _: Score) {
        self.waiting.push(doc);
        if self.waiting.len() == BLOCK {
            self.flush();
        }
    }

    fn collect_block(&mut self, docs: &[DocId]) {
        self.flush();
        for facet in &mut self.facets {
            self.budget.check();
            facet.count(docs);
        }
    }

    fn harvest(mut self) -> Vec<FacetCounts> {
        self.flush();
        self.facets.into_iter().map(SegmentFacet::harvest).collect()
    }
}

struct SegmentFacet {
    source: Option<FacetColumn>,
    bucketing: FacetBucketing,
    tally: FacetTally,
    /// The memory of the tally.
    memory: MemoryReservation,
    documents: u64,
    // Buffers that all blocks reuse.
    docs: Vec<DocId>,
    rows: Vec<u32>,
    keys: Vec<u64>,
}

/// The column as keys, and its dictionary if the keys are ordinals.
struct FacetColumn {
    keys: Column<u64>,
    terms: Option<StrColumn>,
}

/// Maps the key of a value to the key of its bucket.
enum FacetBucketing {
    None,
    /// Doubles: only minus zero is mapped, to zero.
    Doubles,
    Ranges(Vec<u64>),
    IntegerSteps(i64),
    DoubleSteps(f64),
    Calendar(super::CalendarInterval),
}

enum FacetTally {
    /// An array of counts for the keys from `base` on: terms, ranges, and numbers within a small span.
    Dense {
        base: u64,
        counts: Vec<u32>,
    },
    Sparse(HashMap<u64, u64, BuildHasherDefault<KeyHasher>>),
    Figures {
        figures: MetricTotals,
        doubles: bool,
    },
}

/// Numbers within this span are counted in an array.
const DENSE_SPAN: u64 = 1 << 16;

impl SegmentFacet {
    fn new(
        facet: &FacetExpression,
        column: &str,
        segment: &SegmentReader,
        budget: &Budget,
    ) -> tantivy::Result<Self> {
        let fast = segment.fast_fields();
        let plain = |keys: Option<Column<u64>>| keys.map(|keys| FacetColumn { keys, terms: None });
        let source = match facet.primitive {
            PrimitiveType::String => {
                fast.str(column)?.map(|terms| FacetColumn { keys: terms.ords().clone(), terms: Some(terms) })
            }
            PrimitiveType::Boolean => plain(fast.column_opt::<bool>(column)?.map(Column::to_u64_monotonic)),
            PrimitiveType::Double => plain(fast.column_opt::<f64>(column)?.map(Column::to_u64_monotonic)),
            _ => plain(fast.column_opt::<i64>(column)?.map(Column::to_u64_monotonic)),
        };
        let double = facet.primitive == PrimitiveType::Double;
        let bucketing = match &facet.kind {
            FacetKind::Ranges(keys) => FacetBucketing::Ranges(keys.clone()),
            FacetKind::Steps(step) if double => FacetBucketing::DoubleSteps(*step as f64),
            FacetKind::Steps(step) => FacetBucketing::IntegerSteps(*step),
            FacetKind::Calendar(calendar) => FacetBucketing::Calendar(*calendar),
            _ if double => FacetBucketing::Doubles,
            _ => FacetBucketing::None,
        };
        let (tally, memory) = FacetTally::new(facet, source.as_ref(), budget);
        let (docs, rows, keys) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { source, bucketing, tally, memory, documents: 0, docs, rows, keys })
    }

    fn count(&mut self, docs: &[DocId]) {
        self.documents += docs.len() as u64;
        let Some(source) = &self.source else { return };
        let column = &source.keys;
        let cardinality = column.get_cardinality();
        self.docs.clear();
        self.rows.clear();
        let rows = match cardinality {
            Cardinality::Full => docs,
            _ => {
                column.row_ids_for_docs(docs, &mut self.docs, &mut self.rows);
                &self.rows
            }
        };
        self.keys.resize(rows.len(), 0);
        column.values.get_vals(rows, &mut self.keys);
        if let FacetTally::Figures { figures, doubles } = &mut self.tally {
            let with_value = match cardinality {
                Cardinality::Multivalued => self.docs.chunk_by(|one, next| one == next).count(),
                _ => rows.len(),
            };
            figures.missing += docs.len().saturating_sub(with_value) as u64;
            for key in &self.keys {
                figures.add(number(*key, *doubles), 1);
            }
            return;
        }
        self.bucketing.apply(&mut self.keys);
        if cardinality == Cardinality::Multivalued {
            keep_once_per_document(&self.docs, &mut self.keys);
        }
        self.tally.add(&self.keys, &mut self.memory);
    }

    fn harvest(self) -> FacetCounts {
        let Some(source) = self.source else { return FacetCounts::Nothing { documents: self.documents } };
        let memory = self.memory;
        match (self.tally, source.terms) {
            (FacetTally::Dense { counts, .. }, Some(column)) => {
                FacetCounts::Terms { column, counts, _memory: memory }
            }
            (FacetTally::Dense { base, counts }, None) => {
                let counts = (base..).zip(counts).filter(|(_, count)| *count > 0);
                let keys = counts.map(|(key, count)| (key, u64::from(count))).collect();
                FacetCounts::Keys { keys, _memory: memory }
            }
            (FacetTally::Sparse(counts), _) => {
                let mut keys: Vec<_> = counts.into_iter().collect();
                keys.sort_unstable();
                FacetCounts::Keys { keys, _memory: memory }
            }
            (FacetTally::Figures { figures, .. }, _) => FacetCounts::Figures(figures),
        }
    }
}

impl FacetBucketing {
    fn apply(&self, keys: &mut [u64]) {
        match self {
            Self::None => {}
            Self::Doubles => keys.iter_mut().for_each(|key| *key = double_key(f64::from_u64(*key))),
            Self::Ranges(bounds) => {
                keys.iter_mut().for_each(|key| *key = bounds.partition_point(|bound| bound <= key) as u64);
            }
            Self::IntegerSteps(step) => keys.iter_mut().for_each(|key| {
                let value = i64::from_u64(*key);
                *key = value.saturating_sub(value.rem_euclid(*step)).to_u64();
            }),
            Self::DoubleSteps(step) => keys.iter_mut().for_each(|key| {
                let value = f64::from_u64(*key);
                // Infinities and NaN keep a bucket of their own.
                *key = double_key(if value.is_finite() { (value / step).floor() * step } else { value });
            }),
            Self::Calendar(calendar) => {
                keys.iter_mut().for_each(|key| *key = calendar.start(i64::from_u64(*key)).to_u64());
            }
        }
    }
}

/// The size of an entry in a map of counts, including its share of the unused capacity.
const SPARSE_PLACE: usize = 2 * size_of::<(u64, u64)>();

impl FacetTally {
    /// Creates the tally and reserves its memory.
    fn new(
        facet: &FacetExpression,
        source: Option<&FacetColumn>,
        budget: &Budget,
    ) -> (Self, MemoryReservation) {
        let dense = |base, places: u64| {
            let places = usize::try_from(places).unwrap_or(usize::MAX);
            let memory = budget.reserve_memory(places.saturating_mul(size_of::<u32>()));
            (Self::Dense { base, counts: vec![0; places] }, memory)
        };
        match (&facet.kind, source) {
            (FacetKind::Metric { metric, .. }, _) if *metric != FacetMetric::Cardinality => {
                let doubles = facet.primitive == PrimitiveType::Double;
                (Self::Figures { figures: MetricTotals::default(), doubles }, budget.reserve_memory(0))
            }
            (FacetKind::Ranges(keys), _) => dense(0, keys.len() as u64 + 1),
            (_, Some(FacetColumn { terms: Some(terms), .. })) => dense(0, terms.num_terms() as u64),
            (FacetKind::Values { .. } | FacetKind::Metric { .. }, Some(FacetColumn { keys, .. }))
                if facet.primitive != PrimitiveType::Double
                    && keys.max_value().saturating_sub(keys.min_value()) < DENSE_SPAN =>
            {
                dense(keys.min_value(), keys.max_value().saturating_sub(keys.min_value()) + 1)
            }
            _ => (Self::Sparse(HashMap::default()), budget.reserve_memory(0)),
        }
    }

    fn add(&mut self, keys: &[u64], memory: &mut MemoryReservation) {
        match self {
            Self::Dense { base, counts } => {
                for key in keys {
                    // Keys are within the bounds of the column. A key outside them would not be counted.
                    let place = usize::try_from(key.wrapping_sub(*base)).unwrap_or(usize::MAX);
                    if let Some(count) = counts.get_mut(place) {
                        *count += 1;
                    }
                }
            }
            Self::Sparse(counts) => {
                let before = counts.len();
                keys.iter().for_each(|key| *counts.entry(*key).or_default() += 1);
                // The list that is built from the map needs the same memory again.
                memory.grow((counts.len() - before) * 2 * SPARSE_PLACE);
            }
            Self::Figures { .. } => {}
        }
    }
}

fn number(key: u64, doubles: bool) -> f64 {
    if doubles { f64::from_u64(key) } else { i64::from_u64(key) as f64 }
}

/// Keeps each bucket once per document, even if several values of the document fall into it. `docs` and
/// `keys` have the same length, and the values of one document are adjacent.
fn keep_once_per_document(docs: &[DocId], keys: &mut Vec<u64>) {
    let (mut read, mut write) = (0, 0);
    for group in docs.chunk_by(|one, next| one == next) {
        let end = read + group.len();
        if let Some(own) = keys.get_mut(read..end) {
            own.sort_unstable();
        }
        let first = write;
        for at in read..end {
            if write == first || keys.get(write - 1) != keys.get(at) {
                keys.swap(write, at);
                write += 1;
            }
        }
        read = end;
    }
    keys.truncate(write);
}

/// Mixes the bits of one `u64`. The standard hasher would dominate the time of counting.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        let mixed = u128::from(self.0 ^ key ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        let folded = (mixed as u64) ^ ((mixed >> 64) as u64);
        self.0 = folded;
    }
}
