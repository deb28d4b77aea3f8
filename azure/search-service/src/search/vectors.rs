//! The vector part of a search.

use std::collections::HashSet;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::odata::parse_filter;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::query::{ConstScoreQuery, DisjunctionMaxQuery, Query, TermQuery};
use tantivy::schema::{IndexRecordOption, Term};
use tantivy::{DocId, Score, SegmentOrdinal, SegmentReader};

use super::run::FILTER_BYTES;
use super::scope::SearchScope;
use crate::budget::{Budget, MemoryReservation};
use crate::engine::columns::IndexColumns;
use crate::vectors::{AllowedDocuments, NearestQuery, VectorFilterMode, VectorQuery};

/// The nearest documents for one vector query in one field, nearest first, with their scores.
pub(super) struct VectorHits {
    pub(super) hits: Vec<(u64, f32)>,
    pub(super) weight: f32,
}

/// Runs every vector query on each of its fields.
pub(super) fn nearest(
    queries: &[VectorQuery],
    mode: VectorFilterMode,
    scope: &SearchScope<'_>,
    filter: Option<&dyn Query>,
) -> Result<Vec<VectorHits>, ApiError> {
    let snapshot = scope.snapshot;
    let schema = &snapshot.plan.definition.schema;
    let before = match filter {
        Some(filter) if mode == VectorFilterMode::PreFilter => Some(matching(filter, scope)?),
        _ => None,
    };
    let budget = scope.budget;
    let mut all = Vec::new();
    for query in queries {
        let own = match &query.filter_override {
            Some(text) => {
                let _memory = budget.reserve_memory(text.len().saturating_mul(FILTER_BYTES));
                Some(matching(&*scope.filter_query(&parse_filter(text, schema)?)?, scope)?)
            }
            None => None,
        };
        let allowed = own.as_ref().or(before.as_ref());
        for path in &query.fields {
            let (Some(view), Some(field)) = (snapshot.vectors.get(path), schema.find(path)) else { continue };
            let settings =
                field.vector.as_ref().and_then(|vector| snapshot.plan.vector_search.settings(vector));
            let Some(metric) = settings.map(|settings| settings.metric) else { continue };
            let test = |number: u64| allowed.is_none_or(|allowed| allowed.numbers.contains(&number));
            budget.take_memory(query.k.min(view.len()).saturating_mul(HIT_BYTES));
            let look = || budget.check();
            let hits = view.search(&NearestQuery {
                vector: &query.vector,
                k: query.k,
                exhaustive: query.exhaustive,
                ef: None,
                look: Some(&look),
                allowed: allowed
                    .map(|allowed| AllowedDocuments { test: &test, at_most: Some(allowed.numbers.len()) }),
            });
            let hits = hits.into_iter().filter(|(_, distance)| {
                query.threshold.is_none_or(|threshold| threshold.is_met(metric, *distance))
            });
            let hits = hits.map(|(number, distance)| (number, metric.score(distance)));
            all.push(VectorHits { hits: hits.collect(), weight: query.weight });
        }
    }
    Ok(all)
}

/// Returns the numbers of all documents that match a filter.
fn matching(filter: &dyn Query, scope: &SearchScope<'_>) -> Result<FilteredNumbers, ApiError> {
    let columns = &scope.snapshot.plan.columns;
    let column = columns.schema().get_field_name(columns.number).to_owned();
    let numbers = NumberCollector { column, budget: scope.budget.clone() };
    scope.snapshot.searcher.search(filter, &numbers).map_err(|error| ApiError::internal("filtering", error))
}

/// The numbers of documents, and their reserved memory.
struct FilteredNumbers {
    numbers: HashSet<u64>,
    _memory: Vec<MemoryReservation>,
}

/// The memory of a number in the list of a segment and in a set with spare capacity.
const NUMBER_BYTES: usize = 40;
/// The memory of a vector hit in its ranking and in the fused ranking.
const HIT_BYTES: usize = 64;
/// The memory of a query for one document number.
pub(super) const KNOWN_BYTES: usize = 512;

/// Builds a query for the given document numbers with the given scores.
pub(super) fn known_documents(ranked: &[(u64, f32)], columns: &IndexColumns) -> impl Query {
    let one = |(number, score): &(u64, f32)| -> Box<dyn Query> {
        let term = Term::from_field_u64(columns.number, *number);
        Box::new(ConstScoreQuery::new(Box::new(TermQuery::new(term, IndexRecordOption::Basic)), *score))
    };
    DisjunctionMaxQuery::new(ranked.iter().map(one).collect())
}

struct NumberCollector {
    column: String,
    budget: Budget,
}

struct SegmentNumberCollector {
    column: Column<u64>,
    found: Vec<u64>,
    budget: Budget,
    memory: MemoryReservation,
}

impl Collector for NumberCollector {
    type Fruit = FilteredNumbers;
    type Child = SegmentNumberCollector;

    fn for_segment(
        &self,
        _: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<SegmentNumberCollector> {
        let column = reader.fast_fields().u64(&self.column)?;
        let (budget, memory) = (self.budget.clone(), self.budget.reserve_memory(0));
        Ok(SegmentNumberCollector { column, found: Vec::new(), budget, memory })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, segments: Vec<(Vec<u64>, MemoryReservation)>) -> tantivy::Result<FilteredNumbers> {
        let (numbers, memory): (Vec<_>, Vec<_>) = segments.into_iter().unzip();
        Ok(FilteredNumbers { numbers: numbers.into_iter().flatten().collect(), _memory: memory })
    }
}

impl SegmentCollector for SegmentNumberCollector {
    type Fruit = (Vec<u64>, MemoryReservation);

    fn collect(&mut self, doc: DocId, _: Score) {
        self.budget.check();
        self.memory.grow(NUMBER_BYTES);
        self.found.extend(self.column.first(doc));
    }

    fn harvest(self) -> (Vec<u64>, MemoryReservation) {
        (self.found, self.memory)
    }
}
