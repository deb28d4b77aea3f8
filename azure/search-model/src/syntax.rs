//! The two query syntaxes, simple and full Lucene, and the rules of synonym maps.

pub mod full;
pub mod simple;
pub mod synonyms;
pub mod tree;

pub use full::parse_full;
pub use simple::parse_simple;

use tree::QueryNode;

use crate::ApiError;

/// The maximum length of a search text in characters.
pub const MAX_TEXT: usize = 100_000;
/// The maximum number of words and patterns in one search text, including the words in phrases. It is
/// Lucene's default.
pub const MAX_CLAUSES: usize = 1024;
/// The maximum nesting depth of parentheses or operator changes.
pub const MAX_DEPTH: usize = 100;

fn check_length(text: &str) -> Result<(), ApiError> {
    // Check the bytes first. Most texts are short, and their characters need no counting.
    if text.len() > MAX_TEXT && text.chars().count() > MAX_TEXT {
        return Err(invalid_search_text(format!(
            "The search text is longer than {MAX_TEXT} characters. Shorten it."
        )));
    }
    Ok(())
}

/// Counts one more clause. Each word in a phrase counts like a separate word.
fn count_clause(clauses: &mut usize, node: &QueryNode) -> Result<(), ApiError> {
    *clauses += match node {
        QueryNode::Phrase { text, .. } => text.split_whitespace().count().max(1),
        _ => 1,
    };
    if *clauses > MAX_CLAUSES {
        return Err(invalid_search_text(format!(
            "The search text has more than {MAX_CLAUSES} words and patterns, including the words in phrases. Search for \
             fewer at a time."
        )));
    }
    Ok(())
}

fn too_deep() -> ApiError {
    invalid_search_text(format!(
        "The search text nests deeper than {MAX_DEPTH} levels of parentheses or of changing operators. \
         Flatten it, or escape signs that are meant as text with a backslash."
    ))
}

fn invalid_search_text(message: String) -> ApiError {
    ApiError::parameter("search", message)
}
