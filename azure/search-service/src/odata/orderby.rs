//! `$orderby`: by fields, by distance, by score.

use super::ast::{Order, OrderBy};
use super::functions::field_and_point;
use super::lexer::{Lexeme, Token};
use super::names::{resolve, type_name};
use super::parser::{Expression, Kind, Name, Parser};
use super::problem::Problem;
use crate::definition::{Field, FieldType, Primitive, Schema};
use crate::error::ApiError;

const MOST_CLAUSES: usize = 32;

/// Reads clauses with commas between them. A blank text is no order.
pub fn parse_orderby(text: &str, schema: &Schema) -> Result<Vec<Order>, ApiError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    clauses(text, schema).map_err(|problem| problem.into_error("$orderby", text)).and_then(limited)
}

/// The same for a parameter that is given several times: each is one clause or several.
pub fn parse_orderby_parts(texts: &[String], schema: &Schema) -> Result<Vec<Order>, ApiError> {
    let mut orders = Vec::new();
    for text in texts {
        orders.extend(parse_orderby(text, schema)?);
    }
    limited(orders)
}

fn limited(orders: Vec<Order>) -> Result<Vec<Order>, ApiError> {
    if orders.len() > MOST_CLAUSES {
        let message = format!("Invalid expression: There can be at most {MOST_CLAUSES} clauses in $orderby.");
        return Err(ApiError::parameter("$orderby", message));
    }
    Ok(orders)
}

fn clauses(text: &str, schema: &Schema) -> Result<Vec<Order>, Problem> {
    let mut parser = Parser::new(text)?;
    let mut orders = Vec::new();
    loop {
        let by = criterion(&parser.simple()?, schema)?;
        let descending = direction(&mut parser)?;
        orders.push(Order { by, descending });
        let Lexeme { at, token } = parser.advance()?;
        match token {
            Token::End => return Ok(orders),
            // The refusal comes with the count; a text of megabytes should not be read for it.
            Token::Comma if orders.len() > MOST_CLAUSES => return Ok(orders),
            Token::Comma => {}
            other => {
                let found = other.describe();
                return Err(Problem::new(at, format!("Expected 'asc', 'desc' or ',', found {found}.")));
            }
        }
    }
}

fn direction(parser: &mut Parser<'_>) -> Result<bool, Problem> {
    let descending = parser.ahead.token == Token::Word("desc");
    if descending || parser.ahead.token == Token::Word("asc") {
        parser.advance()?;
    }
    Ok(descending)
}

fn criterion(expression: &Expression<'_>, schema: &Schema) -> Result<OrderBy, Problem> {
    let at = expression.at;
    match &expression.kind {
        Kind::Path(names) => {
            let field = sortable(at, names, schema)?;
            if field.kind == FieldType::One(Primitive::GeographyPoint) {
                let message = format!(
                    "'{0}' is a point and has no order of its own. Use geo.distance({0}, geography'POINT(longitude \
                     latitude)').",
                    field.path
                );
                return Err(Problem::new(at, message));
            }
            Ok(OrderBy::Field(field.path.clone()))
        }
        Kind::Call { function: "search.score", arguments } if arguments.is_empty() => Ok(OrderBy::Score),
        Kind::Call { function: "search.score", .. } => {
            Err(Problem::new(at, "search.score() takes no arguments."))
        }
        Kind::Call { function: "geo.distance", arguments } => {
            let (field, from) = field_and_point(at, arguments)?;
            let Kind::Path(names) = &field.kind else {
                return Err(Problem::new(field.at, "Expected a field."));
            };
            let field = sortable(field.at, names, schema)?;
            if field.kind != FieldType::One(Primitive::GeographyPoint) {
                let (path, kind) = (&field.path, type_name(field.kind));
                return Err(Problem::new(
                    at,
                    format!("'{path}' is of type {kind}; distances are between points."),
                ));
            }
            Ok(OrderBy::Distance { field: field.path.clone(), from })
        }
        Kind::Call { .. } => {
            Err(Problem::new(at, "Only the functions search.score() and geo.distance(…) can be ordered by."))
        }
        _ => Err(Problem::new(at, "Expected a sortable field, search.score() or geo.distance(…).")),
    }
}

fn sortable<'a>(at: usize, names: &[Name<'_>], schema: &'a Schema) -> Result<&'a Field, Problem> {
    let field = match resolve(names, schema, &[]) {
        Ok(found) => found.field,
        // A path through a collection exists; the advice on lambdas would mislead here.
        Err(problem) => {
            let path: Vec<_> = names.iter().map(|name| name.text).collect();
            schema.find(&path.join("/")).ok_or(problem)?
        }
    };
    let path = &field.path;
    if field.multiple {
        return Err(Problem::new(
            at,
            format!("'{path}' may have many values in one document, so it cannot be ordered by."),
        ));
    }
    if field.kind == FieldType::Complex {
        return Err(Problem::new(at, format!("'{path}' is complex; order by one of its subfields.")));
    }
    if !field.sortable || field.vector.is_some() {
        return Err(Problem::new(
            at,
            format!(
                "'{path}' is not a sortable field. Only sortable fields can be used in orderby expressions."
            ),
        ));
    }
    Ok(field)
}
