//! The first documents of an order: `$orderby`, or scores that a scoring profile has changed.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::{IndexSchema, PrimitiveType};
use bindpost_azure_search_model::odata::ast::{GeoPoint, OrderByClause, OrderCriterion};
use bindpost_azure_search_model::odata::geo;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, MonotonicallyMappableToU64 as _, StrColumn};
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

use super::columns::IndexColumns;
use super::scoring::{ProfileScorer, SegmentScorer};
use crate::budget::{Budget, MemoryReservation};

/// A matching document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SearchHit {
    pub score: f32,
    pub address: DocAddress,
}

/// Collects the first `limit` documents of an order.
pub(crate) struct OrderedTopDocs {
    keys: Vec<SortClause>,
    limit: usize,
    scorer: Option<ProfileScorer>,
    budget: Budget,
}

/// A clause of the order.
struct SortClause {
    by: SortColumn,
    descending: bool,
}

enum SortColumn {
    Score,
    Text(String),
    Integer(String),
    Double(String),
    Boolean(String),
    Distance { latitude: String, longitude: String, from: GeoPoint },
}

impl OrderedTopDocs {
    /// Creates a collector. Equal documents are ordered by score, then by their order in the index.
    pub(crate) fn new(
        order: &[OrderByClause],
        limit: usize,
        scorer: Option<ProfileScorer>,
        schema: &IndexSchema,
        columns: &IndexColumns,
        budget: &Budget,
    ) -> Result<Self, ApiError> {
        let mut keys = Vec::with_capacity(order.len() + 1);
        for (at, clause) in order.iter().enumerate() {
            // Further clauses on the same value cannot change the order.
            if order.iter().take(at).any(|earlier| earlier.by == clause.by) {
                continue;
            }
            keys.push(SortClause {
                by: SortColumn::new(&clause.by, schema, columns)?,
                descending: clause.descending,
            });
        }
        keys.push(SortClause { by: SortColumn::Score, descending: true });
        Ok(Self { keys, limit, scorer, budget: budget.clone() })
    }
}

impl SortColumn {
    fn new(by: &OrderCriterion, schema: &IndexSchema, columns: &IndexColumns) -> Result<Self, ApiError> {
        let name = |column| columns.schema().get_field_name(column).to_owned();
        let unsortable = |field: &str| ApiError::invalid(format!("'{field}' is not a sortable field."));
        match by {
            OrderCriterion::Score => Ok(Self::Score),
            OrderCriterion::Distance { field, from } => match columns.for_field(field) {
                super::columns::FieldColumns {
                    latitude: Some(latitude), longitude: Some(longitude), ..
                } => Ok(Self::Distance { latitude: name(latitude), longitude: name(longitude), from: *from }),
                _ => Err(unsortable(field)),
            },
            OrderCriterion::Field(field) => {
                let primitive = schema.find(field).and_then(|field| field.kind.primitive());
                let column = columns.for_field(field).value.map(name).ok_or_else(|| unsortable(field))?;
                match primitive {
                    Some(PrimitiveType::String) => Ok(Self::Text(column)),
                    Some(PrimitiveType::Boolean) => Ok(Self::Boolean(column)),
                    Some(PrimitiveType::Double) => Ok(Self::Double(column)),
                    Some(PrimitiveType::Int32 | PrimitiveType::Int64 | PrimitiveType::DateTimeOffset) => {
                        Ok(Self::Integer(column))
                    }
                    _ => Err(unsortable(field)),
                }
            }
        }
    }
}

impl Collector for OrderedTopDocs {
    type Fruit = Vec<SearchHit>;
    type Child = SegmentTopDocs;

    fn for_segment(
        &self,
        segment: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<SegmentTopDocs> {
        let columns = reader.fast_fields();
        let source = |by: &SortColumn| {
            tantivy::Result::Ok(match by {
                SortColumn::Score => SegmentSortColumn::Score,
                SortColumn::Text(name) => SegmentSortColumn::Text(columns.str(name)?),
                SortColumn::Integer(name) => SegmentSortColumn::Number(columns.i64(name)?.to_u64_monotonic()),
                SortColumn::Double(name) => SegmentSortColumn::Number(columns.f64(name)?.to_u64_monotonic()),
                SortColumn::Boolean(name) => {
                    SegmentSortColumn::Number(columns.bool(name)?.to_u64_monotonic())
                }
                SortColumn::Distance { latitude, longitude, from } => {
                    SegmentSortColumn::Distance(columns.f64(latitude)?, columns.f64(longitude)?, *from)
                }
            })
        };
        let sources = self.keys.iter().map(|key| Ok((source(&key.by)?, key.descending)));
        Ok(SegmentTopDocs {
            segment,
            sources: sources.collect::<tantivy::Result<_>>()?,
            limit: self.limit,
            scorer: self.scorer.as_ref().map(|scorer| scorer.for_segment(reader)).transpose()?,
            best: BinaryHeap::new(),
            scratch: Vec::new(),
            memory: self.budget.reserve_memory(0),
        })
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, segments: Vec<SegmentTopHits>) -> tantivy::Result<Vec<SearchHit>> {
        self.budget.check();
        // The memory of each segment is released after all documents are ordered.
        let (segments, _memory): (Vec<_>, Vec<_>) =
            segments.into_iter().map(|segment| (segment.documents, segment.memory)).unzip();
        let mut all: Vec<RankedHit> = segments.into_iter().flatten().collect();
        all.sort_by(|left, right| self.compare(left, right));
        all.truncate(self.limit);
        Ok(all.into_iter().map(|ranked| ranked.hit).collect())
    }
}

impl OrderedTopDocs {
    fn compare(&self, left: &RankedHit, right: &RankedHit) -> Ordering {
        for ((key, left), right) in self.keys.iter().zip(&left.keys).zip(&right.keys) {
            let order = match (left, right) {
                (SortValue::Number(left), SortValue::Number(right)) => left.cmp(right),
                (SortValue::Text(left), SortValue::Text(right)) if key.descending => right.cmp(left),
                (SortValue::Text(left), SortValue::Text(right)) => left.cmp(right),
                _ => Ordering::Equal,
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        left.hit.address.cmp(&right.hit.address)
    }
}

/// The column that a clause reads in one segment.
enum SegmentSortColumn {
    Score,
    Text(Option<StrColumn>),
    Number(Column<u64>),
    Distance(Column<f64>, Column<f64>, GeoPoint),
}

impl SegmentSortColumn {
    /// Returns the ascending rank of a document. Strings are ranked by their ordinal in the
    /// segment's dictionary.
    fn read(&self, doc: DocId, score: Score) -> Place {
        match self {
            Self::Score => Some(f64::from(score).to_u64()),
            Self::Text(column) => column.as_ref().and_then(|column| column.ords().first(doc)),
            Self::Number(column) => column.first(doc),
            Self::Distance(latitudes, longitudes, from) => {
                let kilometres = match (latitudes.first(doc), longitudes.first(doc)) {
                    (Some(latitude), Some(longitude)) => {
                        geo::kilometres(*from, GeoPoint { longitude, latitude })
                    }
                    // A document without a point is farther away than all others.
                    _ => f64::INFINITY,
                };
                Some(kilometres.to_u64())
            }
        }
    }
}

/// A number that increases with the value. `None` sorts before all values.
type Place = Option<u64>;

/// A smaller rank sorts first, in both directions of the clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SortRank {
    Rising(Place),
    Falling(Reverse<Place>),
}

impl SortRank {
    fn new(place: Place, descending: bool) -> Self {
        if descending { Self::Falling(Reverse(place)) } else { Self::Rising(place) }
    }

    fn place(self) -> Place {
        match self {
            Self::Rising(place) | Self::Falling(Reverse(place)) => place,
        }
    }
}

/// Collects the first documents of one segment.
pub(crate) struct SegmentTopDocs {
    segment: SegmentOrdinal,
    sources: Vec<(SegmentSortColumn, bool)>,
    limit: usize,
    scorer: Option<SegmentScorer>,
    /// The last document of the order is on top.
    best: BinaryHeap<TopCandidate>,
    scratch: Vec<SortRank>,
    memory: MemoryReservation,
}

/// The first documents of one segment.
pub(crate) struct SegmentTopHits {
    documents: Vec<RankedHit>,
    memory: MemoryReservation,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct TopCandidate {
    keys: Vec<SortRank>,
    doc: DocId,
    /// The bits of the score. They are not compared.
    score: u32,
}

impl SegmentCollector for SegmentTopDocs {
    type Fruit = SegmentTopHits;

    fn collect(&mut self, doc: DocId, score: Score) {
        let score = self.scorer.as_mut().map_or(score, |scorer| scorer.apply(doc, score));
        self.scratch.clear();
        for (source, descending) in &self.sources {
            self.scratch.push(SortRank::new(source.read(doc, score), *descending));
        }
        if self.best.len() >= self.limit {
            let Some(mut last) = self.best.peek_mut() else { return };
            // Documents come in ascending order, so an equal document sorts later.
            if self.scratch >= last.keys {
                return;
            }
            std::mem::swap(&mut last.keys, &mut self.scratch);
            last.doc = doc;
            last.score = score.to_bits();
            return;
        }
        // A heap doubles its capacity when it grows, and the result is a list.
        let keys = self.scratch.len() * (size_of::<SortRank>() + size_of::<SortValue>());
        self.memory.grow(2 * size_of::<TopCandidate>() + size_of::<RankedHit>() + keys);
        self.best.push(TopCandidate { keys: self.scratch.clone(), doc, score: score.to_bits() });
    }

    fn harvest(self) -> SegmentTopHits {
        let Self { sources, best, segment, mut memory, .. } = self;
        let ranked = best.into_iter().map(|candidate| {
            let keys = sources.iter().zip(candidate.keys).map(|((source, _), rank)| {
                let SegmentSortColumn::Text(column) = source else { return SortValue::Number(rank) };
                let mut text = String::new();
                let known = match (column, rank.place()) {
                    (Some(column), Some(place)) => column.ord_to_str(place, &mut text).unwrap_or(false),
                    _ => false,
                };
                memory.grow(text.capacity());
                SortValue::Text(known.then_some(text))
            });
            let keys = keys.collect();
            let address = DocAddress::new(segment, candidate.doc);
            RankedHit { keys, hit: SearchHit { score: f32::from_bits(candidate.score), address } }
        });
        let documents = ranked.collect();
        SegmentTopHits { documents, memory }
    }
}

/// A document with the values that are compared across segments.
pub(crate) struct RankedHit {
    keys: Vec<SortValue>,
    hit: SearchHit,
}

enum SortValue {
    Number(SortRank),
    /// `None` sorts before all strings.
    Text(Option<String>),
}
