//! Index definitions. They are parsed and checked once.

mod attributes;
mod change;
pub mod field;
mod fields;
mod index;
mod problem;
pub mod scoring;
mod semantic;
mod settings;

pub use change::{IndexUpdateKind, compare_definitions};
pub use field::{FieldType, IndexField, IndexSchema, PrimitiveType, VectorAttributes};
pub use fields::type_name;
pub use index::{IndexDefinition, Suggester};
pub use scoring::{
    ScoringAggregation, ScoringFunction, ScoringFunctionKind, ScoringInterpolation, ScoringProfile,
};
pub use semantic::{SemanticConfiguration, SemanticSettings};
pub use settings::CorsOptions;
