//! The bindings of a function: builds its inputs from a request, and a result from its return value.

pub mod arguments;
pub mod binding_data;
pub mod built_in;
pub mod context;
mod date_format;
pub(crate) mod header_names;
pub mod mcp;
pub mod progress;
pub(crate) mod raw_json;
pub mod results;
pub mod template;
pub mod trigger_event;
pub mod uri;
