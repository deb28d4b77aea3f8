//! `any` and `all`: conditions on the elements of a collection.

use bindpost_azure_search_model::definition::FieldType;
use bindpost_azure_search_model::odata::ast::{ComparisonOperator, FieldPath, FilterLiteral, OdataFilter};
use tantivy::query::{BooleanQuery, Occur, Query};

use super::negation::negated_query;
use super::stored::stored_json_query;
use super::{FilterScope, comparison_query, exists, set};

pub(super) fn any_query(
    whole: &OdataFilter,
    path: &FieldPath,
    condition: Option<&OdataFilter>,
    scope: &FilterScope<'_>,
) -> Box<dyn Query> {
    let field = scope.schema.find(&path.field);
    let Some(condition) = condition else {
        let columns = scope.columns.for_field(&path.field);
        let plain =
            field.is_some_and(|field| matches!(field.kind, FieldType::Many(_)) && !field.below_collection);
        return match columns.value.or(columns.latitude) {
            Some(column) if plain => exists(column, scope),
            _ => stored_json_query(whole, scope),
        };
    };
    if field.is_none_or(|field| field.below_collection) {
        return stored_json_query(whole, scope);
    }
    match some_element(condition, scope) {
        Some(query) => query,
        None => match candidate_query(condition, scope) {
            Some(coarse) => Box::new(BooleanQuery::new(vec![
                (Occur::Must, coarse),
                (Occur::Must, stored_json_query(whole, scope)),
            ])),
            None => stored_json_query(whole, scope),
        },
    }
}

/// Compiles `all`. All elements satisfy a condition when no element satisfies its negation.
pub(super) fn all_query(
    whole: &OdataFilter,
    path: &FieldPath,
    condition: &OdataFilter,
    scope: &FilterScope<'_>,
) -> Box<dyn Query> {
    let nested = scope.schema.find(&path.field).is_none_or(|field| field.below_collection);
    let opposite = opposite(condition).filter(|_| !nested);
    match opposite.and_then(|opposite| some_element(&opposite, scope)) {
        Some(query) => negated_query(query, scope),
        None => stored_json_query(whole, scope),
    }
}

/// Matches documents in which some element satisfies the condition, if columns can decide it. The
/// condition must read only one value of the element, because columns do not record which values belong
/// to the same element.
fn some_element(condition: &OdataFilter, scope: &FilterScope<'_>) -> Option<Box<dyn Query>> {
    match condition {
        OdataFilter::Or(parts) => {
            let parts = parts.iter().map(|part| Some((Occur::Should, some_element(part, scope)?)));
            Some(Box::new(BooleanQuery::new(parts.collect::<Option<_>>()?)))
        }
        OdataFilter::Compare { path, operator, value } if is_own_value(path, scope) => {
            if *value == FilterLiteral::Null || *operator == ComparisonOperator::NotEqual {
                return None;
            }
            comparison_query(
                scope.columns.for_field(&path.field).value?,
                *operator,
                value,
                &path.field,
                scope,
            )
        }
        OdataFilter::In { path, values } if is_own_value(path, scope) => {
            Some(set(scope.columns.for_field(&path.field).value?, values, &path.field, scope))
        }
        _ => None,
    }
}

/// Matches the candidates for a condition of several parts: documents in which each part is satisfied by
/// some element.
fn candidate_query(condition: &OdataFilter, scope: &FilterScope<'_>) -> Option<Box<dyn Query>> {
    let OdataFilter::And(parts) = condition else { return None };
    let known: Vec<_> =
        parts.iter().filter_map(|part| Some((Occur::Must, some_element(part, scope)?))).collect();
    if known.is_empty() { None } else { Some(Box::new(BooleanQuery::new(known))) }
}

/// Returns whether the path reads one value of the element itself, without another collection or an
/// outer element.
fn is_own_value(path: &FieldPath, scope: &FilterScope<'_>) -> bool {
    let Some(field) = scope.schema.find(&path.field) else { return false };
    path.lambda == Some(0) && (path.members.is_empty() || !field.kind.is_collection())
}

/// Returns the negated condition, or `None` if it has no simple form.
fn opposite(condition: &OdataFilter) -> Option<OdataFilter> {
    match condition {
        OdataFilter::Not(inner) => Some((**inner).clone()),
        OdataFilter::And(parts) => Some(OdataFilter::Or(parts.iter().map(opposite).collect::<Option<_>>()?)),
        OdataFilter::Compare { path, operator: ComparisonOperator::NotEqual, value }
            if *value != FilterLiteral::Null =>
        {
            Some(OdataFilter::Compare {
                path: path.clone(),
                operator: ComparisonOperator::Equal,
                value: value.clone(),
            })
        }
        _ => None,
    }
}
