//! The parsed search text, for both query syntaxes.

/// One node of a query. Texts are as the user wrote them, without escapes. They are analyzed later.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryNode {
    /// Matches everything: an empty text, or `*` alone.
    All,
    /// Matches nothing, as for `()`.
    Nothing,
    /// Several clauses side by side. A group with only `MustNot` clauses matches everything else. The
    /// simple syntax uses such a group for `-word`, and the clause around it determines how it is joined.
    Clauses(Vec<QueryClause>),
    /// A word. Analysis may turn it into several terms, or none.
    Term(String),
    /// Consecutive words. `slop` is the maximum distance between them (`"a b"~3`).
    Phrase {
        text: String,
        slop: u32,
    },
    /// Words with this prefix (`hot*`).
    Prefix(String),
    /// A word with `*` or `?` anywhere but at its end.
    Wildcard(Vec<WildcardPiece>),
    /// Words within this edit distance, 0 to 2.
    Fuzzy {
        text: String,
        distance: u8,
    },
    /// `/expression/` in Lucene's regular expression syntax, as written.
    Regex(String),
    /// `field:…`. The path is a searchable field.
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
    /// No operator. `searchMode` decides.
    Default,
    Must,
    /// Joined by OR, regardless of `searchMode`. Without a required clause in the group, one such
    /// clause must match. With one, it only adds to the score.
    Should,
    /// Prohibited. If the group has no required clause and `searchMode` is `any`, not
    /// matching it is sufficient.
    MustNot,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WildcardPiece {
    Text(String),
    /// Any number of characters (`*`).
    Any,
    /// One character (`?`).
    One,
}
