//! Documents. Batches of actions are checked against the schema, stored as canonical JSON, and
//! returned as selected.
//!
//! Canonical JSON has all members in the order of the schema, with `null` or `[]` for missing values. It is
//! checked once on input. Afterwards it is only sliced and copied as text, and never parsed into a tree.

mod batch;
mod date;
mod merge;
mod read;
mod results;
mod select;
mod shape;
#[cfg(test)]
mod tests;
mod value;
mod walk;

pub(crate) use batch::{BatchEntry, check_keys};
pub use batch::{DocumentAction, parse_batch};
pub use date::{parse_date, write_date};
pub use merge::merge;
pub use read::read_document;
pub(crate) use results::{IndexingResult, indexing_response};
pub(crate) use select::FieldSelection;
pub use shape::DocumentShape;

/// A whole document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub key: String,
    /// The canonical JSON.
    pub json: Vec<u8>,
    /// The values that the engine indexes. The number is the position of the field in
    /// [`bindpost_azure_search_model::definition::IndexSchema::leaves`]. Collections have one entry per element. Nulls and
    /// fields that are only retrievable have none.
    pub values: Vec<(usize, FieldValue)>,
}

/// One value, as columns store it.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    Text(String),
    Boolean(bool),
    Integer(i64),
    /// May be infinite or NaN. Documents write these as `"INF"`, `"-INF"` and `"NaN"`.
    Double(f64),
    /// Milliseconds since 1970 in UTC.
    Date(i64),
    Point {
        lon: f64,
        lat: f64,
    },
    /// One number per dimension of the field. With packed bits, one number per byte of eight dimensions.
    Vector(Vec<f32>),
}
