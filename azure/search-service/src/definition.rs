//! Definitions of indexes: parsed once, checked once, then only read.

pub mod field;

pub use field::{Field, FieldType, Primitive, Schema, VectorField};
