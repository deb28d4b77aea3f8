//! A search text after parsing, whichever of the two syntaxes it came in.

/// One node of a query. Texts are as the user wrote them, escapes removed; analysis comes later.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryNode {
    /// Everything: an empty text, or `*` alone.
    All,
    /// Nothing can match, as for `()`.
    Nothing,
    /// Several clauses beside each other. A group of nothing but `MustNot` is everything without them: so the simple
    /// syntax writes `-word`, and the clause around it says how it joins its neighbours.
    Clauses(Vec<QueryClause>),
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
    Wildcard(Vec<WildcardPiece>),
    /// Words that differ by at most so many letters, 0 to 2.
    Fuzzy {
        text: String,
        distance: u8,
    },
    /// `/expression/` in Lucene's dialect, as written.
    Regex(String),
    /// `field:…`, and the path has been checked to be a searchable field.
    Field {
        path: String,
        node: Box<QueryNode>,
    },
    Boost {
        node: Box<QueryNode>,
        factor: f32,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct QueryClause {
    pub occur: ClauseOccur,
    pub node: QueryNode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClauseOccur {
    /// No sign: `searchMode` decides.
    Default,
    Must,
    /// Joined by OR, whatever `searchMode` says: one such clause suffices where nothing is a must, and beside a must it
    /// only adds to the score.
    Should,
    /// Prohibited; where nothing in the group is a must and `searchMode` is `any`, being without it suffices.
    MustNot,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WildcardPiece {
    Text(String),
    /// `*`
    Any,
    /// `?`
    One,
}
