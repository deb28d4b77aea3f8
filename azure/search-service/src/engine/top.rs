//! The first documents of an order: `$orderby`, or scores that a profile has changed.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, MonotonicallyMappableToU64 as _, StrColumn};
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

use super::columns::Columns;
use super::scoring::{ProfileScorer, SegmentScorer};
use crate::ApiError;
use crate::budget::{Budget, Held};
use crate::definition::{Primitive, Schema};
use crate::odata::ast::{Order, OrderBy, Point};
use crate::odata::geo;

/// One found document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub score: f32,
    pub address: DocAddress,
}

/// Collects the first `limit` documents of an order.
pub struct Top {
    keys: Vec<Key>,
    limit: usize,
    scorer: Option<ProfileScorer>,
    budget: Budget,
}

/// One clause of the order.
struct Key {
    by: By,
    descending: bool,
}

enum By {
    Score,
    Text(String),
    Integer(String),
    Double(String),
    Boolean(String),
    Distance { latitude: String, longitude: String, from: Point },
}

impl Top {
    /// Equal documents come in the order of their scores, then in that of the index.
    pub fn new(
        order: &[Order],
        limit: usize,
        scorer: Option<ProfileScorer>,
        schema: &Schema,
        columns: &Columns,
        budget: &Budget,
    ) -> Result<Self, ApiError> {
        let mut keys = Vec::with_capacity(order.len() + 1);
        for (at, clause) in order.iter().enumerate() {
            // What has been compared before is equal by now.
            if order.iter().take(at).any(|earlier| earlier.by == clause.by) {
                continue;
            }
            keys.push(Key { by: By::new(&clause.by, schema, columns)?, descending: clause.descending });
        }
        keys.push(Key { by: By::Score, descending: true });
        Ok(Self { keys, limit, scorer, budget: budget.clone() })
    }
}

impl By {
    fn new(by: &OrderBy, schema: &Schema, columns: &Columns) -> Result<Self, ApiError> {
        let name = |column| columns.schema().get_field_name(column).to_owned();
        let unsortable = |field: &str| ApiError::invalid(format!("'{field}' is not a sortable field."));
        match by {
            OrderBy::Score => Ok(Self::Score),
            OrderBy::Distance { field, from } => match columns.of(field) {
                super::columns::FieldColumns {
                    latitude: Some(latitude), longitude: Some(longitude), ..
                } => Ok(Self::Distance { latitude: name(latitude), longitude: name(longitude), from: *from }),
                _ => Err(unsortable(field)),
            },
            OrderBy::Field(field) => {
                let primitive = schema.find(field).and_then(|field| field.kind.primitive());
                let column = columns.of(field).value.map(name).ok_or_else(|| unsortable(field))?;
                match primitive {
                    Some(Primitive::String) => Ok(Self::Text(column)),
                    Some(Primitive::Boolean) => Ok(Self::Boolean(column)),
                    Some(Primitive::Double) => Ok(Self::Double(column)),
                    Some(Primitive::Int32 | Primitive::Int64 | Primitive::DateTimeOffset) => {
                        Ok(Self::Integer(column))
                    }
                    _ => Err(unsortable(field)),
                }
            }
        }
    }
}

impl Collector for Top {
    type Fruit = Vec<Hit>;
    type Child = SegmentTop;

    fn for_segment(&self, segment: SegmentOrdinal, reader: &SegmentReader) -> tantivy::Result<SegmentTop> {
        let columns = reader.fast_fields();
        let source = |by: &By| {
            tantivy::Result::Ok(match by {
                By::Score => Source::Score,
                By::Text(name) => Source::Text(columns.str(name)?),
                By::Integer(name) => Source::Number(columns.i64(name)?.to_u64_monotonic()),
                By::Double(name) => Source::Number(columns.f64(name)?.to_u64_monotonic()),
                By::Boolean(name) => Source::Number(columns.bool(name)?.to_u64_monotonic()),
                By::Distance { latitude, longitude, from } => {
                    Source::Distance(columns.f64(latitude)?, columns.f64(longitude)?, *from)
                }
            })
        };
        let sources = self.keys.iter().map(|key| Ok((source(&key.by)?, key.descending)));
        Ok(SegmentTop {
            segment,
            sources: sources.collect::<tantivy::Result<_>>()?,
            limit: self.limit,
            scorer: self.scorer.as_ref().map(|scorer| scorer.for_segment(reader)).transpose()?,
            best: BinaryHeap::new(),
            scratch: Vec::new(),
            memory: self.budget.hold(0),
        })
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, segments: Vec<SegmentFirst>) -> tantivy::Result<Vec<Hit>> {
        self.budget.check();
        // Each segment's memory is kept until its documents have been ordered.
        let (segments, _memory): (Vec<_>, Vec<_>) =
            segments.into_iter().map(|segment| (segment.documents, segment.memory)).unzip();
        let mut all: Vec<Ranked> = segments.into_iter().flatten().collect();
        all.sort_by(|left, right| self.compare(left, right));
        all.truncate(self.limit);
        Ok(all.into_iter().map(|ranked| ranked.hit).collect())
    }
}

impl Top {
    fn compare(&self, left: &Ranked, right: &Ranked) -> Ordering {
        for ((key, left), right) in self.keys.iter().zip(&left.keys).zip(&right.keys) {
            let order = match (left, right) {
                (Part::Number(left), Part::Number(right)) => left.cmp(right),
                (Part::Text(left), Part::Text(right)) if key.descending => right.cmp(left),
                (Part::Text(left), Part::Text(right)) => left.cmp(right),
                _ => Ordering::Equal,
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        left.hit.address.cmp(&right.hit.address)
    }
}

/// Where a clause reads its values in one segment.
enum Source {
    Score,
    Text(Option<StrColumn>),
    Number(Column<u64>),
    Distance(Column<f64>, Column<f64>, Point),
}

impl Source {
    /// Where a document stands in a rising order. Texts are compared by their place in the segment's dictionary.
    fn read(&self, doc: DocId, score: Score) -> Place {
        match self {
            Self::Score => Some(f64::from(score).to_u64()),
            Self::Text(column) => column.as_ref().and_then(|column| column.ords().first(doc)),
            Self::Number(column) => column.first(doc),
            Self::Distance(latitudes, longitudes, from) => {
                let kilometres = match (latitudes.first(doc), longitudes.first(doc)) {
                    (Some(latitude), Some(longitude)) => {
                        geo::kilometres(*from, Point { longitude, latitude })
                    }
                    // A document without a place is farther away than any other.
                    _ => f64::INFINITY,
                };
                Some(kilometres.to_u64())
            }
        }
    }
}

/// A number that grows with the value; no value comes before every other.
type Place = Option<u64>;

/// Smaller is earlier, whatever the direction of the clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Rising(Place),
    Falling(Reverse<Place>),
}

impl Rank {
    fn new(place: Place, descending: bool) -> Self {
        if descending { Self::Falling(Reverse(place)) } else { Self::Rising(place) }
    }

    fn place(self) -> Place {
        match self {
            Self::Rising(place) | Self::Falling(Reverse(place)) => place,
        }
    }
}

/// The first documents of one segment.
pub struct SegmentTop {
    segment: SegmentOrdinal,
    sources: Vec<(Source, bool)>,
    limit: usize,
    scorer: Option<SegmentScorer>,
    /// The last one on top.
    best: BinaryHeap<Candidate>,
    scratch: Vec<Rank>,
    memory: Held,
}

/// What one segment found.
pub struct SegmentFirst {
    documents: Vec<Ranked>,
    memory: Held,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    keys: Vec<Rank>,
    doc: DocId,
    /// The bits of the score; only carried along.
    score: u32,
}

impl SegmentCollector for SegmentTop {
    type Fruit = SegmentFirst;

    fn collect(&mut self, doc: DocId, score: Score) {
        let score = self.scorer.as_mut().map_or(score, |scorer| scorer.apply(doc, score));
        self.scratch.clear();
        for (source, descending) in &self.sources {
            self.scratch.push(Rank::new(source.read(doc, score), *descending));
        }
        if self.best.len() >= self.limit {
            let Some(mut last) = self.best.peek_mut() else { return };
            // Documents come in rising order, so an equal one comes later.
            if self.scratch >= last.keys {
                return;
            }
            std::mem::swap(&mut last.keys, &mut self.scratch);
            last.doc = doc;
            last.score = score.to_bits();
            return;
        }
        // A heap doubles when it grows, and is made a list for the answer.
        let keys = self.scratch.len() * (size_of::<Rank>() + size_of::<Part>());
        self.memory.more(2 * size_of::<Candidate>() + size_of::<Ranked>() + keys);
        self.best.push(Candidate { keys: self.scratch.clone(), doc, score: score.to_bits() });
    }

    fn harvest(self) -> SegmentFirst {
        let Self { sources, best, segment, mut memory, .. } = self;
        let ranked = best.into_iter().map(|candidate| {
            let keys = sources.iter().zip(candidate.keys).map(|((source, _), rank)| {
                let Source::Text(column) = source else { return Part::Number(rank) };
                let mut text = String::new();
                let known = match (column, rank.place()) {
                    (Some(column), Some(place)) => column.ord_to_str(place, &mut text).unwrap_or(false),
                    _ => false,
                };
                memory.more(text.capacity());
                Part::Text(known.then_some(text))
            });
            let keys = keys.collect();
            let address = DocAddress::new(segment, candidate.doc);
            Ranked { keys, hit: Hit { score: f32::from_bits(candidate.score), address } }
        });
        let documents = ranked.collect();
        SegmentFirst { documents, memory }
    }
}

/// A document with what it is compared by across segments.
pub struct Ranked {
    keys: Vec<Part>,
    hit: Hit,
}

enum Part {
    Number(Rank),
    /// No text sorts before every other one.
    Text(Option<String>),
}
