//! JSON texts and objects, for every crate that reads JSON from outside.
//!
//! - [`cut`]: members and elements of a text, without a tree.
//! - [`text`]: strings in a text: decoding and writing.
//! - [`ObjectReader`] (`object.rs`): members of an object, with errors that name the place.

pub mod cut;
mod object;
pub mod text;

pub use object::{JsonPlace, ObjectReader, PlaceError};
