//! What of a search text counts as a hit in a field's own words.

use super::Pattern;

/// One thing that the search text looks for in one field.
#[derive(Debug, Clone)]
pub struct HighlightTerm {
    /// The field.
    pub path: String,
    pub kind: Highlight,
}

#[derive(Debug, Clone)]
pub enum Highlight {
    Term(String),
    /// Terms with their positions in a row; the first need not be at 0.
    Phrase {
        words: Vec<(usize, String)>,
        slop: u32,
    },
    Pattern(Pattern),
}

impl HighlightTerm {
    pub(super) fn new(path: &str, kind: Highlight) -> Self {
        Self { path: path.to_owned(), kind }
    }

    /// Whether an analyzed token of the field is what is looked for, or a word of the phrase that is.
    pub fn matches(&self, token: &str) -> bool {
        match &self.kind {
            Highlight::Term(text) => text == token,
            Highlight::Phrase { words, .. } => words.iter().any(|(_, word)| word == token),
            Highlight::Pattern(pattern) => pattern.matches(token),
        }
    }
}
