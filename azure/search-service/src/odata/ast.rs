//! `$filter` and `$orderby` after parsing and checking: every path exists and every literal has its field's type.

/// A condition on documents. Two-valued: a comparison with a missing value is false, except `ne`.
#[derive(Debug, Clone, PartialEq)]
pub enum OdataFilter {
    Constant(bool),
    And(Vec<OdataFilter>),
    Or(Vec<OdataFilter>),
    Not(Box<OdataFilter>),
    Compare {
        path: FieldPath,
        operator: ComparisonOperator,
        value: FilterLiteral,
    },
    /// `search.in(path, 'a,b')`; the values are sorted, none twice, and none at all matches nothing.
    In {
        path: FieldPath,
        values: Vec<String>,
    },
    /// `path/any(x: …)`; without a condition it asks whether there is an element.
    Any {
        path: FieldPath,
        condition: Option<Box<OdataFilter>>,
    },
    /// `path/all(x: …)`; true when there are no elements.
    All {
        path: FieldPath,
        condition: Box<OdataFilter>,
    },
    /// `geo.distance(path, point) lt 10`; kilometres.
    Distance {
        path: FieldPath,
        point: GeoPoint,
        operator: ComparisonOperator,
        kilometres: f64,
    },
    /// `geo.intersects(path, polygon)`; the ring is closed, its points counterclockwise. Longitudes go on beyond 180
    /// when it crosses that meridian: `geo::within` knows.
    Within {
        path: FieldPath,
        ring: Vec<GeoPoint>,
    },
    /// `search.ismatch` and `search.ismatchscoring`.
    Match(TextMatch),
}

impl OdataFilter {
    /// Whether what it lets through is scored by it: it has a `search.ismatchscoring`.
    pub fn scores(&self) -> bool {
        match self {
            Self::And(parts) | Self::Or(parts) => parts.iter().any(Self::scores),
            Self::Not(inner) => inner.scores(),
            Self::Match(text) => text.scoring,
            _ => false,
        }
    }
}

/// Where a condition looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    /// From the root of the document, through all lambdas: `rooms/tags`.
    pub field: String,
    /// What to read from the element that the innermost lambda is at, member by member; from the root when the path
    /// starts there. Empty for the element itself (`t` in `tags/any(t: t eq 'a')`).
    pub members: Vec<String>,
    /// How many lambdas up `members` starts: 0 is the innermost one. `None`: at the root of the document.
    pub lambda: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FilterLiteral {
    Null,
    Boolean(bool),
    /// For `Int32` and `Int64` fields.
    Integer(i64),
    /// For `Double` fields; may be infinite or NaN.
    Double(f64),
    String(String),
    /// Milliseconds since 1970, UTC.
    Date(i64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoPoint {
    pub longitude: f64,
    pub latitude: f64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMatch {
    pub search: String,
    /// Empty: all searchable fields.
    pub fields: Vec<String>,
    /// `queryType` full; simple otherwise.
    pub full: bool,
    /// `searchMode` all; any otherwise.
    pub all: bool,
    /// Whether the match counts in the score.
    pub scoring: bool,
}

/// One clause of `$orderby`.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderByClause {
    pub by: OrderCriterion,
    pub descending: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum OrderCriterion {
    Field(String),
    Score,
    Distance { field: String, from: GeoPoint },
}
