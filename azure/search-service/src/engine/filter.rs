//! `$filter` as a query over columns.
//!
//! Columns decide everything that they can decide exactly. The stored JSON decides the rest, namely
//! conditions that must hold for the same element of a collection. It is read only for documents that the
//! columns have not excluded.

mod element;
mod joined;
mod negation;
mod stored;

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::IndexSchema;
use bindpost_azure_search_model::odata::ast::{
    ComparisonOperator, FieldPath, FilterLiteral, OdataFilter, TextMatch,
};
use bindpost_azure_search_model::odata::evaluate::satisfies_operator;
use bindpost_azure_search_model::odata::{self, geo};
use tantivy::Term;
use tantivy::query::doc_predicate_query::{DocPredicateQuery, FunctionPredicate};
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, EmptyQuery, ExistsQuery, Occur, Query, RangeQuery, TermQuery,
    TermSetQuery,
};
use tantivy::schema::{Field as Column, IndexRecordOption};

pub(crate) use self::joined::join_comparisons;

use self::negation::negated_query;
use self::stored::stored_json_query;
use super::columns::IndexColumns;
use super::store::StoreView;
use super::watch::BudgetedQuery;
use crate::analysis::Normalizer;
use crate::budget::Budget;

/// The index parts that a filter is compiled against.
pub(crate) struct FilterScope<'a> {
    pub schema: &'a IndexSchema,
    pub columns: &'a IndexColumns,
    pub documents: &'a Arc<StoreView>,
    /// Returns the normalizer of a field, for strings that are compared with it.
    pub normalizer: &'a dyn Fn(&str) -> Option<&'a Normalizer>,
    /// Builds the query for `search.ismatch`.
    pub text: &'a TextQuery<'a>,
    pub budget: &'a Budget,
}

/// Builds a query from a search text in a filter.
pub(crate) type TextQuery<'a> = dyn Fn(&TextMatch) -> Result<Box<dyn Query>, ApiError> + 'a;

/// Compiles a filter into a query. Only `search.ismatchscoring` adds to the scores of the documents.
pub(crate) fn compile(filter: &OdataFilter, scope: &FilterScope<'_>) -> Result<Box<dyn Query>, ApiError> {
    let query: Box<dyn Query> = match filter {
        OdataFilter::Constant(true) => without_score(AllQuery, scope),
        OdataFilter::Constant(false) => Box::new(EmptyQuery),
        OdataFilter::And(parts) => {
            let parts = parts.iter().map(|part| Ok((Occur::Must, compile(part, scope)?)));
            Box::new(BooleanQuery::new(parts.collect::<Result<_, ApiError>>()?))
        }
        OdataFilter::Or(parts) => {
            let parts = parts.iter().map(|part| Ok((Occur::Should, compile(part, scope)?)));
            Box::new(BooleanQuery::new(parts.collect::<Result<_, ApiError>>()?))
        }
        OdataFilter::Not(inner) => negated_query(compile(inner, scope)?, scope),
        OdataFilter::Match(text) if text.scoring => (scope.text)(text)?,
        OdataFilter::Match(text) => Box::new(ConstScoreQuery::new((scope.text)(text)?, 0.0)),
        OdataFilter::Compare { path, operator, value } => match compare(path, *operator, value, scope) {
            Some(query) => query,
            None => stored_json_query(filter, scope),
        },
        OdataFilter::In { path, values } => match one_of(path, values, scope) {
            Some(query) => query,
            None => stored_json_query(filter, scope),
        },
        OdataFilter::Any { path, condition } => element::any_query(filter, path, condition.as_deref(), scope),
        OdataFilter::All { path, condition } => element::all_query(filter, path, condition, scope),
        OdataFilter::Distance { path, point, operator, kilometres } => {
            let (from, operator, limit) = (*point, *operator, *kilometres);
            point_query(filter, path, scope, move |point| {
                satisfies_operator(&geo::kilometres(from, point), operator, &limit)
            })
        }
        OdataFilter::Within { path, ring } => {
            let ring = ring.clone();
            point_query(filter, path, scope, move |point| geo::ring_contains(&ring, point))
        }
    };
    Ok(query)
}

fn point_query(
    filter: &OdataFilter,
    path: &FieldPath,
    scope: &FilterScope<'_>,
    decide: impl Fn(odata::ast::GeoPoint) -> bool + Clone + Send + Sync + 'static,
) -> Box<dyn Query> {
    let columns = scope.columns.for_field(&path.field);
    let (Some(latitude), Some(longitude), false) =
        (columns.latitude, columns.longitude, is_multiple(path, scope))
    else {
        return stored_json_query(filter, scope);
    };
    let name = |column| scope.columns.schema().get_field_name(column).to_owned();
    let (latitude, longitude) = (name(latitude), name(longitude));
    let budget = scope.budget.clone();
    let predicate = FunctionPredicate::from(move |segment: &tantivy::SegmentReader| {
        let latitudes = segment.fast_fields().f64(&latitude)?;
        let longitudes = segment.fast_fields().f64(&longitude)?;
        let (decide, budget) = (decide.clone(), budget.clone());
        Ok(move |doc: tantivy::DocId| {
            budget.check();
            match (latitudes.first(doc), longitudes.first(doc)) {
                (Some(latitude), Some(longitude)) => decide(odata::ast::GeoPoint { longitude, latitude }),
                _ => false,
            }
        })
    });
    without_score(DocPredicateQuery::from(predicate), scope)
}

/// Compares a field that has at most one value. Returns `None` if the columns cannot decide the comparison.
fn compare(
    path: &FieldPath,
    operator: ComparisonOperator,
    value: &FilterLiteral,
    scope: &FilterScope<'_>,
) -> Option<Box<dyn Query>> {
    if is_multiple(path, scope) {
        return None;
    }
    let columns = scope.columns.for_field(&path.field);
    if *value == FilterLiteral::Null {
        let exists = exists(columns.value.or(columns.latitude)?, scope);
        return match operator {
            ComparisonOperator::Equal => Some(negated_query(exists, scope)),
            ComparisonOperator::NotEqual => Some(exists),
            _ => None,
        };
    }
    let column = columns.value?;
    match operator {
        ComparisonOperator::NotEqual => Some(negated_query(
            comparison_query(column, ComparisonOperator::Equal, value, &path.field, scope)?,
            scope,
        )),
        operator => comparison_query(column, operator, value, &path.field, scope),
    }
}

/// Matches documents with a value in the column that satisfies the comparison. It supports neither `ne`
/// nor null.
fn comparison_query(
    column: Column,
    operator: ComparisonOperator,
    value: &FilterLiteral,
    path: &str,
    scope: &FilterScope<'_>,
) -> Option<Box<dyn Query>> {
    let term = |value: &FilterLiteral| match value {
        FilterLiteral::Boolean(value) => Some(Term::from_field_bool(column, *value)),
        FilterLiteral::Integer(value) | FilterLiteral::Date(value) => {
            Some(Term::from_field_i64(column, *value))
        }
        // Columns distinguish the two zeros. Documents are written with the positive zero.
        FilterLiteral::Double(value) => Some(Term::from_field_f64(column, value + 0.0)),
        FilterLiteral::String(text) => Some(Term::from_field_text(column, &normalized(path, text, scope))),
        FilterLiteral::Null => None,
    };
    if matches!(value, FilterLiteral::Double(number) if number.is_nan()) {
        return Some(Box::new(EmptyQuery));
    }
    // NaN sorts above infinity in a column, but no comparison with it is true.
    let least = || match value {
        FilterLiteral::Double(_) => Bound::Included(Term::from_field_f64(column, f64::NEG_INFINITY)),
        _ => Bound::Unbounded,
    };
    let most = || match value {
        FilterLiteral::Double(_) => Bound::Included(Term::from_field_f64(column, f64::INFINITY)),
        _ => Bound::Unbounded,
    };
    let given = term(value)?;
    let (from, to) = match operator {
        ComparisonOperator::Equal => {
            return Some(without_score(TermQuery::new(given, IndexRecordOption::Basic), scope));
        }
        ComparisonOperator::NotEqual => return None,
        ComparisonOperator::Less => (least(), Bound::Excluded(given)),
        ComparisonOperator::LessOrEqual => (least(), Bound::Included(given)),
        ComparisonOperator::Greater => (Bound::Excluded(given), most()),
        ComparisonOperator::GreaterOrEqual => (Bound::Included(given), most()),
    };
    Some(without_score(RangeQuery::new(from, to), scope))
}

fn one_of(path: &FieldPath, values: &[String], scope: &FilterScope<'_>) -> Option<Box<dyn Query>> {
    if is_multiple(path, scope) {
        return None;
    }
    Some(set(scope.columns.for_field(&path.field).value?, values, &path.field, scope))
}

fn set(column: Column, values: &[String], path: &str, scope: &FilterScope<'_>) -> Box<dyn Query> {
    let terms = values.iter().map(|value| Term::from_field_text(column, &normalized(path, value, scope)));
    without_score(TermSetQuery::new(terms), scope)
}

fn normalized<'a>(path: &str, text: &'a str, scope: &FilterScope<'_>) -> Cow<'a, str> {
    (scope.normalizer)(path).map_or(Cow::Borrowed(text), |normalizer| normalizer.apply(text))
}

fn exists(column: Column, scope: &FilterScope<'_>) -> Box<dyn Query> {
    without_score(ExistsQuery::new(scope.columns.schema().get_field_name(column).to_owned(), false), scope)
}

/// Returns a query that adds nothing to the score.
fn without_score(query: impl Query, scope: &FilterScope<'_>) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(Box::new(BudgetedQuery::new(query, scope.budget)), 0.0))
}

/// Returns whether a document may have several values at the path.
fn is_multiple(path: &FieldPath, scope: &FilterScope<'_>) -> bool {
    scope.schema.find(&path.field).is_none_or(|field| field.multiple)
}
