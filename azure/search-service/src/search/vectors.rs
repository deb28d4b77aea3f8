//! The vector part of a search.

use std::collections::HashSet;

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::query::{ConstScoreQuery, DisjunctionMaxQuery, Query, TermQuery};
use tantivy::schema::{IndexRecordOption, Term};
use tantivy::{DocId, Score, SegmentOrdinal, SegmentReader};

use super::scope::Scope;
use crate::ApiError;
use crate::engine::columns::Columns;
use crate::odata::parse_filter;
use crate::vectors::{Allowed, FilterMode, Nearest, VectorQuery};

/// The neighbours that one vector query found in one field, nearest first, with their scores.
pub(super) struct VectorHits {
    pub(super) hits: Vec<(u64, f32)>,
    pub(super) weight: f32,
}

/// Asks every field of every vector query.
pub(super) fn nearest(
    queries: &[VectorQuery],
    mode: FilterMode,
    scope: &Scope<'_>,
    filter: Option<&dyn Query>,
) -> Result<Vec<VectorHits>, ApiError> {
    let snapshot = scope.snapshot;
    let schema = &snapshot.plan.definition.schema;
    let before = match filter {
        Some(filter) if mode == FilterMode::PreFilter => Some(matching(filter, scope)?),
        _ => None,
    };
    let mut all = Vec::new();
    for query in queries {
        let own = match &query.filter_override {
            Some(text) => Some(matching(&*scope.filter(&parse_filter(text, schema)?)?, scope)?),
            None => None,
        };
        let allowed = own.as_ref().or(before.as_ref());
        for path in &query.fields {
            let (Some(view), Some(field)) = (snapshot.vectors.get(path), schema.find(path)) else { continue };
            let settings =
                field.vector.as_ref().and_then(|vector| snapshot.plan.vector_search.settings(vector));
            let Some(metric) = settings.map(|settings| settings.metric) else { continue };
            let test = |number: u64| allowed.is_none_or(|allowed| allowed.contains(&number));
            let hits = view.search(&Nearest {
                vector: &query.vector,
                k: query.k,
                exhaustive: query.exhaustive,
                ef: None,
                allowed: allowed.map(|allowed| Allowed { test: &test, at_most: Some(allowed.len()) }),
            });
            let hits = hits.into_iter().filter(|(_, distance)| {
                query.threshold.is_none_or(|threshold| threshold.keeps(metric, *distance))
            });
            let hits = hits.map(|(number, distance)| (number, metric.score(distance)));
            all.push(VectorHits { hits: hits.collect(), weight: query.weight });
        }
    }
    Ok(all)
}

/// The numbers of all documents that a filter lets through.
fn matching(filter: &dyn Query, scope: &Scope<'_>) -> Result<HashSet<u64>, ApiError> {
    let columns = &scope.snapshot.plan.columns;
    let numbers = Numbers { column: columns.schema().get_field_name(columns.number).to_owned() };
    scope.snapshot.searcher.search(filter, &numbers).map_err(|error| ApiError::internal("filtering", error))
}

/// A query for documents that are known by number; each scores what it has.
pub(super) fn known_documents(ranked: &[(u64, f32)], columns: &Columns) -> impl Query {
    let one = |(number, score): &(u64, f32)| -> Box<dyn Query> {
        let term = Term::from_field_u64(columns.number, *number);
        Box::new(ConstScoreQuery::new(Box::new(TermQuery::new(term, IndexRecordOption::Basic)), *score))
    };
    DisjunctionMaxQuery::new(ranked.iter().map(one).collect())
}

struct Numbers {
    column: String,
}

struct SegmentNumbers {
    column: Column<u64>,
    found: Vec<u64>,
}

impl Collector for Numbers {
    type Fruit = HashSet<u64>;
    type Child = SegmentNumbers;

    fn for_segment(&self, _: SegmentOrdinal, reader: &SegmentReader) -> tantivy::Result<SegmentNumbers> {
        Ok(SegmentNumbers { column: reader.fast_fields().u64(&self.column)?, found: Vec::new() })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, segments: Vec<Vec<u64>>) -> tantivy::Result<HashSet<u64>> {
        Ok(segments.into_iter().flatten().collect())
    }
}

impl SegmentCollector for SegmentNumbers {
    type Fruit = Vec<u64>;

    fn collect(&mut self, doc: DocId, _: Score) {
        self.found.extend(self.column.first(doc));
    }

    fn harvest(self) -> Vec<u64> {
        self.found
    }
}
