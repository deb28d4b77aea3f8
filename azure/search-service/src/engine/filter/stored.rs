//! Conditions that are evaluated on the stored JSON of each document.

use std::collections::BTreeMap;
use std::sync::Arc;

use bindpost_azure_search_model::odata;
use bindpost_azure_search_model::odata::ast::{FilterLiteral, OdataFilter};
use serde_json::Value;
use tantivy::query::Query;
use tantivy::query::doc_predicate_query::{DocPredicateQuery, FunctionPredicate};

use super::{FilterScope, without_score};
use crate::analysis::Normalizer;
use crate::budget::parsed_bytes;

pub(super) fn stored_json_query(filter: &OdataFilter, scope: &FilterScope<'_>) -> Box<dyn Query> {
    let mut filter = filter.clone();
    let mut normalizers = Normalizers::new();
    normalize(&mut filter, scope, &mut normalizers);
    let condition = Arc::new((filter, normalizers));
    let (documents, budget) = (Arc::clone(scope.documents), scope.budget.clone());
    let number = scope.columns.schema().get_field_name(scope.columns.number).to_owned();
    let predicate = FunctionPredicate::from(move |segment: &tantivy::SegmentReader| {
        let numbers = segment.fast_fields().u64(&number)?;
        let (condition, documents) = (Arc::clone(&condition), Arc::clone(&documents));
        let budget = budget.clone();
        Ok(move |doc: tantivy::DocId| {
            let decide = |json: &[u8]| {
                budget.check();
                let _memory = (json.len() > LARGE).then(|| budget.reserve_memory(parsed_bytes(json)));
                let (filter, normalizers) = &*condition;
                // The store holds only JSON that this service has written.
                let mut document = serde_json::from_slice(json).unwrap_or_default();
                for (path, normalizer) in normalizers {
                    apply(normalizer, &mut document, path);
                }
                odata::evaluate::matches_watched(filter, &document, &mut |_| false, &|| budget.check())
            };
            let read = numbers.first(doc).map(|number| documents.read(number, decide));
            matches!(read, Some(Ok(Some(true))))
        })
    });
    without_score(DocPredicateQuery::from(predicate), scope)
}

/// Documents up to this size are parsed without reserving memory.
const LARGE: usize = 64 << 10;

/// Normalizers by the path of their field.
type Normalizers = BTreeMap<String, Normalizer>;

/// Normalizes the strings of a filter and collects the fields of a document that need the same. Columns
/// hold normalized strings, and conditions on JSON must see the same strings.
fn normalize(filter: &mut OdataFilter, scope: &FilterScope<'_>, normalizers: &mut Normalizers) {
    let mut of = |path: &str| {
        let normalizer = (scope.normalizer)(path)?;
        normalizers.entry(path.to_owned()).or_insert_with(|| normalizer.clone());
        Some(normalizer)
    };
    match filter {
        OdataFilter::Compare { path, value: FilterLiteral::String(text), .. } => {
            if let Some(normalizer) = of(&path.field) {
                *text = normalizer.apply(text).into_owned();
            }
        }
        OdataFilter::In { path, values } => {
            if let Some(normalizer) = of(&path.field) {
                *values = values.iter().map(|value| normalizer.apply(value).into_owned()).collect();
                // The values are searched as a sorted list.
                values.sort_unstable();
                values.dedup();
            }
        }
        OdataFilter::And(parts) | OdataFilter::Or(parts) => {
            parts.iter_mut().for_each(|part| normalize(part, scope, normalizers));
        }
        OdataFilter::Not(condition)
        | OdataFilter::All { condition, .. }
        | OdataFilter::Any { condition: Some(condition), .. } => normalize(condition, scope, normalizers),
        OdataFilter::Any { condition: None, .. }
        | OdataFilter::Compare { .. }
        | OdataFilter::Constant(_)
        | OdataFilter::Distance { .. }
        | OdataFilter::Within { .. }
        | OdataFilter::Match(_) => {}
    }
}

/// Normalizes the strings at a path, in all elements of the collections on the way.
fn apply(normalizer: &Normalizer, value: &mut Value, path: &str) {
    match value {
        Value::String(text) if path.is_empty() => *text = normalizer.apply(text).into_owned(),
        Value::Array(elements) => elements.iter_mut().for_each(|element| apply(normalizer, element, path)),
        Value::Object(members) => {
            let (name, rest) = path.split_once('/').unwrap_or((path, ""));
            if let Some(member) = members.get_mut(name) {
                apply(normalizer, member, rest);
            }
        }
        _ => {}
    }
}
