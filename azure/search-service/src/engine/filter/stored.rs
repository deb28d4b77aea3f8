//! Conditions that are decided on the stored JSON of each document.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tantivy::query::Query;
use tantivy::query::doc_predicate_query::{DocPredicateQuery, FunctionPredicate};

use super::{FilterScope, silent};
use crate::analysis::Normalizer;
use crate::odata;
use crate::odata::ast::{Filter, Literal};

pub(super) fn on_json(filter: &Filter, scope: &FilterScope<'_>) -> Box<dyn Query> {
    let mut filter = filter.clone();
    let mut normalizers = Normalizers::new();
    normalize(&mut filter, scope, &mut normalizers);
    let condition = Arc::new((filter, normalizers));
    let documents = Arc::clone(scope.documents);
    let number = scope.columns.schema().get_field_name(scope.columns.number).to_owned();
    let predicate = FunctionPredicate::from(move |segment: &tantivy::SegmentReader| {
        let numbers = segment.fast_fields().u64(&number)?;
        let (condition, documents) = (Arc::clone(&condition), Arc::clone(&documents));
        Ok(move |doc: tantivy::DocId| {
            let decide = |json: &[u8]| {
                let (filter, normalizers) = &*condition;
                // What the store holds is JSON that we wrote ourselves.
                let mut document = serde_json::from_slice(json).unwrap_or_default();
                for (path, normalizer) in normalizers {
                    apply(normalizer, &mut document, path);
                }
                odata::matches(filter, &document, &mut |_| false)
            };
            let read = numbers.first(doc).map(|number| documents.read(number, decide));
            matches!(read, Some(Ok(Some(true))))
        })
    });
    silent(DocPredicateQuery::from(predicate))
}

/// By the path of the field that they are for.
type Normalizers = BTreeMap<String, Normalizer>;

/// Columns hold texts as normalizers leave them, and conditions on JSON must see the same ones: this changes the texts
/// of a filter, and notes which fields of a document are to be changed.
fn normalize(filter: &mut Filter, scope: &FilterScope<'_>, normalizers: &mut Normalizers) {
    let mut of = |path: &str| {
        let normalizer = (scope.normalizer)(path)?;
        normalizers.entry(path.to_owned()).or_insert_with(|| normalizer.clone());
        Some(normalizer)
    };
    match filter {
        Filter::Compare { path, value: Literal::String(text), .. } => {
            if let Some(normalizer) = of(&path.field) {
                *text = normalizer.apply(text).into_owned();
            }
        }
        Filter::In { path, values } => {
            if let Some(normalizer) = of(&path.field) {
                *values = values.iter().map(|value| normalizer.apply(value).into_owned()).collect();
                // They are searched as a sorted list.
                values.sort_unstable();
                values.dedup();
            }
        }
        Filter::And(parts) | Filter::Or(parts) => {
            parts.iter_mut().for_each(|part| normalize(part, scope, normalizers));
        }
        Filter::Not(condition)
        | Filter::All { condition, .. }
        | Filter::Any { condition: Some(condition), .. } => normalize(condition, scope, normalizers),
        Filter::Any { condition: None, .. }
        | Filter::Compare { .. }
        | Filter::Constant(_)
        | Filter::Distance { .. }
        | Filter::Within { .. }
        | Filter::Match(_) => {}
    }
}

/// Normalizes the texts at a path, in all elements of the collections on the way.
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
