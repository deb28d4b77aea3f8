//! What of a search text counts as a hit in a field's own words.

use super::TermPattern;

/// One thing that the search text looks for in one field.
#[derive(Debug, Clone)]
pub struct HighlightTerm {
    /// The field.
    pub path: String,
    pub kind: HighlightKind,
}

#[derive(Debug, Clone)]
pub enum HighlightKind {
    Term(String),
    /// Terms with their positions in a row; the first need not be at 0.
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

    /// Whether an analyzed token of the field is what is looked for, or a word of the phrase that is.
    pub fn matches(&self, token: &str) -> bool {
        match &self.kind {
            HighlightKind::Term(text) => text == token,
            HighlightKind::Phrase { words, .. } => words.iter().any(|(_, word)| word == token),
            HighlightKind::Pattern(pattern) => pattern.matches(token),
        }
    }
}
