//! `any` and `all`: conditions on the elements of a collection.

use tantivy::query::{BooleanQuery, Occur, Query};

use super::negation::not;
use super::stored::on_json;
use super::{FilterScope, exists, holds, set};
use crate::definition::FieldType;
use crate::odata::ast::{Filter, Literal, Operator, Path};

pub(super) fn any(
    whole: &Filter,
    path: &Path,
    condition: Option<&Filter>,
    scope: &FilterScope<'_>,
) -> Box<dyn Query> {
    let field = scope.schema.find(&path.field);
    let Some(condition) = condition else {
        let columns = scope.columns.of(&path.field);
        let plain =
            field.is_some_and(|field| matches!(field.kind, FieldType::Many(_)) && !field.below_collection);
        return match columns.value.or(columns.latitude) {
            Some(column) if plain => exists(column, scope),
            _ => on_json(whole, scope),
        };
    };
    if field.is_none_or(|field| field.below_collection) {
        return on_json(whole, scope);
    }
    match some_element(condition, scope) {
        Some(query) => query,
        None => match ruled_out(condition, scope) {
            Some(coarse) => {
                Box::new(BooleanQuery::new(vec![(Occur::Must, coarse), (Occur::Must, on_json(whole, scope))]))
            }
            None => on_json(whole, scope),
        },
    }
}

/// All elements fulfil a condition when none fulfils its opposite.
pub(super) fn all(
    whole: &Filter,
    path: &Path,
    condition: &Filter,
    scope: &FilterScope<'_>,
) -> Box<dyn Query> {
    let nested = scope.schema.find(&path.field).is_none_or(|field| field.below_collection);
    let opposite = opposite(condition).filter(|_| !nested);
    match opposite.and_then(|opposite| some_element(&opposite, scope)) {
        Some(query) => not(query, scope),
        None => on_json(whole, scope),
    }
}

/// Documents in which some element fulfils the condition, when columns can tell: it must look at one value of the
/// element only, because columns do not know which values belong to the same one.
fn some_element(condition: &Filter, scope: &FilterScope<'_>) -> Option<Box<dyn Query>> {
    match condition {
        Filter::Or(parts) => {
            let parts = parts.iter().map(|part| Some((Occur::Should, some_element(part, scope)?)));
            Some(Box::new(BooleanQuery::new(parts.collect::<Option<_>>()?)))
        }
        Filter::Compare { path, operator, value } if is_own_value(path, scope) => {
            if *value == Literal::Null || *operator == Operator::NotEqual {
                return None;
            }
            holds(scope.columns.of(&path.field).value?, *operator, value, &path.field, scope)
        }
        Filter::In { path, values } if is_own_value(path, scope) => {
            Some(set(scope.columns.of(&path.field).value?, values, &path.field, scope))
        }
        _ => None,
    }
}

/// Documents that may fulfil a condition of several parts: those in which some element fulfils each of them.
fn ruled_out(condition: &Filter, scope: &FilterScope<'_>) -> Option<Box<dyn Query>> {
    let Filter::And(parts) = condition else { return None };
    let known: Vec<_> =
        parts.iter().filter_map(|part| Some((Occur::Must, some_element(part, scope)?))).collect();
    if known.is_empty() { None } else { Some(Box::new(BooleanQuery::new(known))) }
}

/// Whether the path reads one value of the element itself: no other collection on the way, no outer element.
fn is_own_value(path: &Path, scope: &FilterScope<'_>) -> bool {
    let Some(field) = scope.schema.find(&path.field) else { return false };
    path.lambda == Some(0) && (path.members.is_empty() || !field.kind.is_collection())
}

/// The condition that holds exactly where this one does not; `None` when it cannot be written simply.
fn opposite(condition: &Filter) -> Option<Filter> {
    match condition {
        Filter::Not(inner) => Some((**inner).clone()),
        Filter::And(parts) => Some(Filter::Or(parts.iter().map(opposite).collect::<Option<_>>()?)),
        Filter::Compare { path, operator: Operator::NotEqual, value } if *value != Literal::Null => {
            Some(Filter::Compare { path: path.clone(), operator: Operator::Equal, value: value.clone() })
        }
        _ => None,
    }
}
