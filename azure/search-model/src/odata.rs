//! The OData expressions of search requests: text → tokens → tree → checked against the fields of an index.

pub mod ast;
mod check;
pub mod date;
pub mod evaluate;
mod functions;
pub mod geo;
mod lexer;
mod names;
mod orderby;
mod parser;
mod problem;
#[cfg(test)]
mod tests;

pub use evaluate::matches;
pub use orderby::{parse_orderby, parse_orderby_parts};

use crate::definition::IndexSchema;
use crate::error::ApiError;
use ast::OdataFilter;

/// Parses `$filter`. A blank text is the condition that is always true.
pub fn parse_filter(text: &str, schema: &IndexSchema) -> Result<OdataFilter, ApiError> {
    if text.trim().is_empty() {
        return Ok(OdataFilter::Constant(true));
    }
    parser::parse_expression(text)
        .and_then(|tree| check::check_filter(&tree, schema))
        .map_err(|problem| problem.into_error("$filter", text))
}
