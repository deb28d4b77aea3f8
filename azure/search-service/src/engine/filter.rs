//! `$filter` as a query over columns.
//!
//! What columns can decide exactly is decided by them; the rest (conditions that must hold for the same element of a
//! collection) is decided on the stored JSON, for the documents that columns have not ruled out.

mod element;
mod joined;
mod negation;
mod stored;

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use tantivy::Term;
use tantivy::query::doc_predicate_query::{DocPredicateQuery, FunctionPredicate};
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, EmptyQuery, ExistsQuery, Occur, Query, RangeQuery, TermQuery,
    TermSetQuery,
};
use tantivy::schema::{Field as Column, IndexRecordOption};

pub use self::joined::joined;

use self::negation::not;
use self::stored::on_json;
use super::columns::Columns;
use super::store::StoreView;
use super::watch::Watched;
use crate::ApiError;
use crate::analysis::Normalizer;
use crate::budget::Budget;
use crate::definition::Schema;
use crate::odata::ast::{Filter, Literal, Operator, Path, TextMatch};
use crate::odata::evaluate::ordered;
use crate::odata::{self, geo};

/// What a filter is compiled against.
pub struct FilterScope<'a> {
    pub schema: &'a Schema,
    pub columns: &'a Columns,
    pub documents: &'a Arc<StoreView>,
    /// The normalizer of a field, for a text that is compared with it.
    pub normalizer: &'a dyn Fn(&str) -> Option<&'a Normalizer>,
    /// The query behind `search.ismatch`.
    pub text: &'a TextQuery<'a>,
    pub budget: &'a Budget,
}

/// Makes a query of a text in a filter.
pub type TextQuery<'a> = dyn Fn(&TextMatch) -> Result<Box<dyn Query>, ApiError> + 'a;

/// A query that matches the same documents. Only `search.ismatchscoring` adds to their scores.
pub fn compile(filter: &Filter, scope: &FilterScope<'_>) -> Result<Box<dyn Query>, ApiError> {
    let query: Box<dyn Query> = match filter {
        Filter::Constant(true) => silent(AllQuery, scope),
        Filter::Constant(false) => Box::new(EmptyQuery),
        Filter::And(parts) => {
            let parts = parts.iter().map(|part| Ok((Occur::Must, compile(part, scope)?)));
            Box::new(BooleanQuery::new(parts.collect::<Result<_, ApiError>>()?))
        }
        Filter::Or(parts) => {
            let parts = parts.iter().map(|part| Ok((Occur::Should, compile(part, scope)?)));
            Box::new(BooleanQuery::new(parts.collect::<Result<_, ApiError>>()?))
        }
        Filter::Not(inner) => not(compile(inner, scope)?, scope),
        Filter::Match(text) if text.scoring => (scope.text)(text)?,
        Filter::Match(text) => Box::new(ConstScoreQuery::new((scope.text)(text)?, 0.0)),
        Filter::Compare { path, operator, value } => match compare(path, *operator, value, scope) {
            Some(query) => query,
            None => on_json(filter, scope),
        },
        Filter::In { path, values } => match one_of(path, values, scope) {
            Some(query) => query,
            None => on_json(filter, scope),
        },
        Filter::Any { path, condition } => element::any(filter, path, condition.as_deref(), scope),
        Filter::All { path, condition } => element::all(filter, path, condition, scope),
        Filter::Distance { path, point, operator, kilometres } => {
            let (from, operator, limit) = (*point, *operator, *kilometres);
            on_point(filter, path, scope, move |point| {
                ordered(&geo::kilometres(from, point), operator, &limit)
            })
        }
        Filter::Within { path, ring } => {
            let ring = ring.clone();
            on_point(filter, path, scope, move |point| geo::within(&ring, point))
        }
    };
    Ok(query)
}

fn on_point(
    filter: &Filter,
    path: &Path,
    scope: &FilterScope<'_>,
    decide: impl Fn(odata::ast::Point) -> bool + Clone + Send + Sync + 'static,
) -> Box<dyn Query> {
    let columns = scope.columns.of(&path.field);
    let (Some(latitude), Some(longitude), false) =
        (columns.latitude, columns.longitude, is_multiple(path, scope))
    else {
        return on_json(filter, scope);
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
                (Some(latitude), Some(longitude)) => decide(odata::ast::Point { longitude, latitude }),
                _ => false,
            }
        })
    });
    silent(DocPredicateQuery::from(predicate), scope)
}

/// A comparison with a field that has at most one value. `None`: columns cannot tell.
fn compare(
    path: &Path,
    operator: Operator,
    value: &Literal,
    scope: &FilterScope<'_>,
) -> Option<Box<dyn Query>> {
    if is_multiple(path, scope) {
        return None;
    }
    let columns = scope.columns.of(&path.field);
    if *value == Literal::Null {
        let exists = exists(columns.value.or(columns.latitude)?, scope);
        return match operator {
            Operator::Equal => Some(not(exists, scope)),
            Operator::NotEqual => Some(exists),
            _ => None,
        };
    }
    let column = columns.value?;
    match operator {
        Operator::NotEqual => Some(not(holds(column, Operator::Equal, value, &path.field, scope)?, scope)),
        operator => holds(column, operator, value, &path.field, scope),
    }
}

/// Documents with a value in the column for which the comparison holds. Not for `ne`, nor for null.
fn holds(
    column: Column,
    operator: Operator,
    value: &Literal,
    path: &str,
    scope: &FilterScope<'_>,
) -> Option<Box<dyn Query>> {
    let term = |value: &Literal| match value {
        Literal::Boolean(value) => Some(Term::from_field_bool(column, *value)),
        Literal::Integer(value) | Literal::Date(value) => Some(Term::from_field_i64(column, *value)),
        // Columns tell zeros apart; documents are written with the positive one.
        Literal::Double(value) => Some(Term::from_field_f64(column, value + 0.0)),
        Literal::String(text) => Some(Term::from_field_text(column, &normalized(path, text, scope))),
        Literal::Null => None,
    };
    if matches!(value, Literal::Double(number) if number.is_nan()) {
        return Some(Box::new(EmptyQuery));
    }
    // NaN lies beyond infinity in a column, and compares with nothing.
    let least = || match value {
        Literal::Double(_) => Bound::Included(Term::from_field_f64(column, f64::NEG_INFINITY)),
        _ => Bound::Unbounded,
    };
    let most = || match value {
        Literal::Double(_) => Bound::Included(Term::from_field_f64(column, f64::INFINITY)),
        _ => Bound::Unbounded,
    };
    let given = term(value)?;
    let (from, to) = match operator {
        Operator::Equal => return Some(silent(TermQuery::new(given, IndexRecordOption::Basic), scope)),
        Operator::NotEqual => return None,
        Operator::Less => (least(), Bound::Excluded(given)),
        Operator::LessOrEqual => (least(), Bound::Included(given)),
        Operator::Greater => (Bound::Excluded(given), most()),
        Operator::GreaterOrEqual => (Bound::Included(given), most()),
    };
    Some(silent(RangeQuery::new(from, to), scope))
}

fn one_of(path: &Path, values: &[String], scope: &FilterScope<'_>) -> Option<Box<dyn Query>> {
    if is_multiple(path, scope) {
        return None;
    }
    Some(set(scope.columns.of(&path.field).value?, values, &path.field, scope))
}

fn set(column: Column, values: &[String], path: &str, scope: &FilterScope<'_>) -> Box<dyn Query> {
    let terms = values.iter().map(|value| Term::from_field_text(column, &normalized(path, value, scope)));
    silent(TermSetQuery::new(terms), scope)
}

fn normalized<'a>(path: &str, text: &'a str, scope: &FilterScope<'_>) -> Cow<'a, str> {
    (scope.normalizer)(path).map_or(Cow::Borrowed(text), |normalizer| normalizer.apply(text))
}

fn exists(column: Column, scope: &FilterScope<'_>) -> Box<dyn Query> {
    silent(ExistsQuery::new(scope.columns.schema().get_field_name(column).to_owned(), false), scope)
}

/// A query that adds nothing to the score.
fn silent(query: impl Query, scope: &FilterScope<'_>) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(Box::new(Watched::new(query, scope.budget)), 0.0))
}

/// Whether a document may have several values at the path.
fn is_multiple(path: &Path, scope: &FilterScope<'_>) -> bool {
    scope.schema.find(&path.field).is_none_or(|field| field.multiple)
}
