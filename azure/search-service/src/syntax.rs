//! The two syntaxes of search texts, simple and full Lucene, and the rules of synonym maps.

pub mod full;
pub mod simple;
pub mod synonyms;
pub mod tree;

pub use full::parse_full;
pub use simple::parse_simple;

use tree::QueryNode;

use crate::ApiError;

/// The longest search text, in characters.
pub const MAX_TEXT: usize = 100_000;
/// The most words, those within phrases too, and patterns in one search text; Lucene's own default.
pub const MAX_CLAUSES: usize = 1024;
/// How deep parentheses, or changes of the operator, may nest.
pub const MAX_DEPTH: usize = 100;

fn check_length(text: &str) -> Result<(), ApiError> {
    // Bytes first: most texts are short, and then there is nothing to count.
    if text.len() > MAX_TEXT && text.chars().count() > MAX_TEXT {
        return Err(invalid_search_text(format!(
            "The search text is longer than {MAX_TEXT} characters. Shorten it."
        )));
    }
    Ok(())
}

/// Counts one more clause. A word within a phrase costs as much as one that stands alone.
fn count_clause(clauses: &mut usize, node: &QueryNode) -> Result<(), ApiError> {
    *clauses += match node {
        QueryNode::Phrase { text, .. } => text.split_whitespace().count().max(1),
        _ => 1,
    };
    if *clauses > MAX_CLAUSES {
        return Err(invalid_search_text(format!(
            "The search text has more than {MAX_CLAUSES} words and patterns, with the words within phrases. Search for \
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
