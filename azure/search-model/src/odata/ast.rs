//! Parsed and checked `$filter` and `$orderby` expressions. Every path exists, and every literal has
//! the type of its field.

/// A condition on documents. Its result is true or false: a comparison with a missing value is false,
/// except for `ne`.
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
    /// `search.in(path, 'a,b')`. The values are sorted and unique. An empty list matches nothing.
    In {
        path: FieldPath,
        values: Vec<String>,
    },
    /// `path/any(x: …)`. Without a condition, it matches if the collection has an element.
    Any {
        path: FieldPath,
        condition: Option<Box<OdataFilter>>,
    },
    /// `path/all(x: …)`. True for an empty collection.
    All {
        path: FieldPath,
        condition: Box<OdataFilter>,
    },
    /// `geo.distance(path, point) lt 10`, in kilometres.
    Distance {
        path: FieldPath,
        point: GeoPoint,
        operator: ComparisonOperator,
        kilometres: f64,
    },
    /// `geo.intersects(path, polygon)`. The ring is closed and counterclockwise. If it crosses the
    /// 180th meridian, its longitudes exceed 180. `geo::ring_contains` handles that.
    Within {
        path: FieldPath,
        ring: Vec<GeoPoint>,
    },
    /// `search.ismatch` and `search.ismatchscoring`.
    Match(TextMatch),
}

impl OdataFilter {
    /// Whether the filter contributes to the score: it contains a `search.ismatchscoring`.
    pub fn scores(&self) -> bool {
        match self {
            Self::And(parts) | Self::Or(parts) => parts.iter().any(Self::scores),
            Self::Not(inner) => inner.scores(),
            Self::Match(text) => text.scoring,
            _ => false,
        }
    }
}

/// The field that a condition reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    /// The path from the root of the document, through all lambdas: `rooms/tags`.
    pub field: String,
    /// The members to read, one after the other. They start at the element of the lambda given by `lambda`,
    /// or at the root of the document. Empty for the element itself (`t` in `tags/any(t: t eq 'a')`).
    pub members: Vec<String>,
    /// The lambda where `members` starts, counted outwards: 0 is the innermost one. `None` is the root
    /// of the document.
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
    /// For `Double` fields. May be infinite or NaN.
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
    /// If empty, all searchable fields.
    pub fields: Vec<String>,
    /// Whether `queryType` is full. Otherwise it is simple.
    pub full: bool,
    /// Whether `searchMode` is all. Otherwise it is any.
    pub all: bool,
    /// Whether the match adds to the score.
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
