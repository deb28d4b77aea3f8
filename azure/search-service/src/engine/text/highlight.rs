//! The terms of a search text to highlight in a field.

use super::TermPattern;

/// A term, phrase or pattern that the search text looks for in one field.
#[derive(Debug, Clone)]
pub struct HighlightTerm {
    /// The path of the field.
    pub path: String,
    pub kind: HighlightKind,
}

#[derive(Debug, Clone)]
pub enum HighlightKind {
    Term(String),
    /// Terms with their positions in order. The first position may be above 0.
    Phrase {
        words: Vec<(usize, String)>,
        slop: u32,
    },
    Pattern(TermPattern),
}

impl HighlightTerm {
    pub(super) fn new(path: &str, kind: HighlightKind) -> Self {
        Self { path: path.to_owned(), kind }
    }

    /// Returns whether an analyzed token of the field matches, or belongs to a matching phrase.
    pub fn matches(&self, token: &str) -> bool {
        match &self.kind {
            HighlightKind::Term(text) => text == token,
            HighlightKind::Phrase { words, .. } => words.iter().any(|(_, word)| word == token),
            HighlightKind::Pattern(pattern) => pattern.matches(token),
        }
    }
}
