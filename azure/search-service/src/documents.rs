//! Documents: batches of actions in, checked against the schema, kept as canonical JSON, and shown as selected.
//!
//! Canonical JSON has all members in the order of the schema, with `null` or `[]` where nothing was given. It is checked
//! once when it comes in; afterwards it is cut and copied as text, and never built up as a tree.

mod batch;
mod date;
mod merge;
mod read;
mod results;
mod scan;
mod select;
mod shape;
#[cfg(test)]
mod tests;
mod value;
mod walk;

pub use batch::{BatchEntry, DocumentAction, check_keys, parse_batch};
pub use date::{parse_date, write_date};
pub use merge::{DocumentPatch, merge};
pub use read::read_document;
pub use results::{IndexingResult, indexing_response};
pub use select::FieldSelection;
pub use shape::DocumentShape;

/// A whole document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub key: String,
    /// Canonical.
    pub json: Vec<u8>,
    /// What the engine indexes: the position of a field in [`crate::definition::IndexSchema::leaves_unchanged`], and one value of it.
    /// Collections have one entry per element, nulls have none, and neither have fields that can only be shown.
    pub values: Vec<(usize, FieldValue)>,
}

/// One value, as columns hold it.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    Text(String),
    Boolean(bool),
    Integer(i64),
    /// May be infinite or not a number: documents write these as `"INF"`, `"-INF"` and `"NaN"`.
    Double(f64),
    /// Milliseconds since 1970 in UTC.
    Date(i64),
    Point {
        lon: f64,
        lat: f64,
    },
    /// As many numbers as the field has dimensions; with packed bits, one number per byte of eight.
    Vector(Vec<f32>),
}
