//! `$orderby`: by fields, by distance and by score.

use super::ast::{OrderByClause, OrderCriterion};
use super::functions::field_and_point;
use super::lexer::{OdataLexeme, OdataToken};
use super::names::{resolve, type_name};
use super::parser::{OdataExpression, OdataExpressionKind, OdataIdentifier, OdataParser};
use super::problem::OdataError;
use crate::definition::{FieldType, IndexField, IndexSchema, PrimitiveType};
use crate::error::ApiError;

const MOST_CLAUSES: usize = 32;

/// Parses a comma-separated list of clauses. A blank text has no clauses.
pub fn parse_orderby(text: &str, schema: &IndexSchema) -> Result<Vec<OrderByClause>, ApiError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    clauses(text, schema).map_err(|problem| problem.into_error("$orderby", text)).and_then(check_clause_count)
}

/// Like [`parse_orderby`], for a parameter that is given several times. Each value has one or more clauses.
pub fn parse_orderby_parts(texts: &[String], schema: &IndexSchema) -> Result<Vec<OrderByClause>, ApiError> {
    let mut orders = Vec::new();
    for text in texts {
        orders.extend(parse_orderby(text, schema)?);
    }
    check_clause_count(orders)
}

fn check_clause_count(orders: Vec<OrderByClause>) -> Result<Vec<OrderByClause>, ApiError> {
    if orders.len() > MOST_CLAUSES {
        let message = format!("Invalid expression: There can be at most {MOST_CLAUSES} clauses in $orderby.");
        return Err(ApiError::parameter("$orderby", message));
    }
    Ok(orders)
}

fn clauses(text: &str, schema: &IndexSchema) -> Result<Vec<OrderByClause>, OdataError> {
    let mut parser = OdataParser::new(text)?;
    let mut orders = Vec::new();
    loop {
        let by = criterion(&parser.parse_primary()?, schema)?;
        let descending = direction(&mut parser)?;
        orders.push(OrderByClause { by, descending });
        let OdataLexeme { at, token } = parser.advance()?;
        match token {
            OdataToken::End => return Ok(orders),
            // The error follows from the count. A text of megabytes is not read to the end for it.
            OdataToken::Comma if orders.len() > MOST_CLAUSES => return Ok(orders),
            OdataToken::Comma => {}
            other => {
                let found = other.describe();
                return Err(OdataError::new(at, format!("Expected 'asc', 'desc' or ',', found {found}.")));
            }
        }
    }
}

fn direction(parser: &mut OdataParser<'_>) -> Result<bool, OdataError> {
    let descending = parser.ahead.token == OdataToken::Word("desc");
    if descending || parser.ahead.token == OdataToken::Word("asc") {
        parser.advance()?;
    }
    Ok(descending)
}

fn criterion(expression: &OdataExpression<'_>, schema: &IndexSchema) -> Result<OrderCriterion, OdataError> {
    let at = expression.at;
    match &expression.kind {
        OdataExpressionKind::Path(names) => {
            let field = sortable(at, names, schema)?;
            if field.kind == FieldType::One(PrimitiveType::GeographyPoint) {
                let message = format!(
                    "'{0}' is a point and has no order. Use geo.distance({0}, geography'POINT(longitude \
                     latitude)').",
                    field.path
                );
                return Err(OdataError::new(at, message));
            }
            Ok(OrderCriterion::Field(field.path.clone()))
        }
        OdataExpressionKind::Call { function: "search.score", arguments } if arguments.is_empty() => {
            Ok(OrderCriterion::Score)
        }
        OdataExpressionKind::Call { function: "search.score", .. } => {
            Err(OdataError::new(at, "search.score() takes no arguments."))
        }
        OdataExpressionKind::Call { function: "geo.distance", arguments } => {
            let (field, from) = field_and_point(at, arguments)?;
            let OdataExpressionKind::Path(names) = &field.kind else {
                return Err(OdataError::new(field.at, "Expected a field."));
            };
            let field = sortable(field.at, names, schema)?;
            if field.kind != FieldType::One(PrimitiveType::GeographyPoint) {
                let (path, kind) = (&field.path, type_name(field.kind));
                return Err(OdataError::new(
                    at,
                    format!("'{path}' is of type {kind}, but distances are between points."),
                ));
            }
            Ok(OrderCriterion::Distance { field: field.path.clone(), from })
        }
        OdataExpressionKind::Call { .. } => Err(OdataError::new(
            at,
            "Only the functions search.score() and geo.distance(…) can be used in $orderby.",
        )),
        _ => Err(OdataError::new(at, "Expected a sortable field, search.score() or geo.distance(…).")),
    }
}

fn sortable<'a>(
    at: usize,
    names: &[OdataIdentifier<'_>],
    schema: &'a IndexSchema,
) -> Result<&'a IndexField, OdataError> {
    let field = match resolve(names, schema, &[]) {
        Ok(found) => found.field,
        // The path passes through a collection. The hint about lambdas in this error would be
        // misleading here.
        Err(problem) => {
            let path: Vec<_> = names.iter().map(|name| name.text).collect();
            schema.find(&path.join("/")).ok_or(problem)?
        }
    };
    let path = &field.path;
    if field.multiple {
        return Err(OdataError::new(
            at,
            format!("'{path}' may have many values in one document, so it cannot be used in $orderby."),
        ));
    }
    if field.kind == FieldType::Complex {
        return Err(OdataError::new(at, format!("'{path}' is complex. Order by one of its subfields.")));
    }
    if !field.sortable || field.vector.is_some() {
        return Err(OdataError::new(
            at,
            format!(
                "'{path}' is not a sortable field. Only sortable fields can be used in orderby expressions."
            ),
        ));
    }
    Ok(field)
}
