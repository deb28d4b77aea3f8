//! A search text after parsing, whichever of the two syntaxes it came in.

/// One node of a query. Texts are as the user wrote them, escapes removed; analysis comes later.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// Everything: an empty text, or `*` alone.
    All,
    /// Nothing can match, as for `()`.
    Nothing,
    /// Words without a sign between them; how many must match is up to `searchMode`.
    Clauses(Vec<Clause>),
    /// A word; analysis may make several terms of it, or none.
    Term(String),
    /// Words in a row. `slop` is how many places they may be apart (`"a b"~3`).
    Phrase {
        text: String,
        slop: u32,
    },
    /// Words that begin so (`hot*`).
    Prefix(String),
    /// A word with `*` and `?` in other places than its end.
    Wildcard(Vec<Piece>),
    /// Words that differ by at most so many letters, 0 to 2.
    Fuzzy {
        text: String,
        distance: u8,
    },
    /// `/expression/` in Lucene's dialect, as written.
    Regex(String),
    /// `[a TO b}`; an open end is `None`.
    Range {
        from: Option<Bound>,
        to: Option<Bound>,
    },
    /// `field:…`, and the path has been checked to be a searchable field.
    Field {
        path: String,
        node: Box<Node>,
    },
    Boost {
        node: Box<Node>,
        factor: f32,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    pub occur: Occur,
    pub node: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occur {
    /// No sign: `searchMode` decides.
    Default,
    Must,
    /// Joined by OR: one of its neighbours suffices, whatever `searchMode` says.
    Should,
    MustNot,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// `*`
    Any,
    /// `?`
    One,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    pub text: String,
    pub inclusive: bool,
}
