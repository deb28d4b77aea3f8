//! Definitions of indexes: parsed once, checked once, then only read.

mod attributes;
mod change;
pub mod field;
mod fields;
mod index;
mod json;
pub mod scoring;
mod settings;

pub use change::{Change, changes};
pub use field::{Field, FieldType, Primitive, Schema, VectorField};
pub(crate) use fields::type_name;
pub use index::{IndexDefinition, Suggester};
pub use scoring::{Aggregation, FunctionKind, Interpolation, ScoringFunction, ScoringProfile};
