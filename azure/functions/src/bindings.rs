//! What a function's bindings mean: its inputs from a request, its return value as a result.

pub mod arguments;
pub mod binding_data;
pub mod built_in;
pub mod context;
mod date_format;
pub mod mcp;
pub mod progress;
pub(crate) mod raw_json;
pub mod results;
pub mod template;
pub mod uri;
