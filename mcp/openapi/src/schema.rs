//! Schemas of a document: whole, and short enough for a model's context.

mod cycles;
mod keywords;
mod merge;
mod names;
pub(crate) mod normalise;
mod project;
mod short;
mod subtypes;

pub use subtypes::Subtype;

use serde_json::{Map, Value};

/// What a schema is for. What a service writes itself is left out of what it is given, and the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaPurpose {
    /// Arguments of a call.
    Input,
    /// Content of an answer; open, so that it accepts what services really answer.
    Output,
}

/// How a schema refers to a definition.
const DEFINITIONS: &str = "#/$defs/";

/// A schema that is a reference to a definition.
fn reference_to(name: &str) -> Value {
    let mut members = Map::new();
    members.insert("$ref".to_owned(), Value::String(format!("{DEFINITIONS}{name}")));
    Value::Object(members)
}

/// The definition that a schema refers to.
fn referenced_definition(schema: &Value) -> Option<&str> {
    schema.as_object()?.get("$ref")?.as_str()?.strip_prefix(DEFINITIONS)
}

/// Members that say something about a value and demand nothing of it.
const ANNOTATIONS: [&str; 8] =
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"];

/// Whether a schema is a reference and, at most, words about it.
fn is_alias(schema: &Value) -> bool {
    referenced_definition(schema).is_some()
        && schema.as_object().is_some_and(|members| {
            members.keys().all(|key| key == "$ref" || ANNOTATIONS.contains(&key.as_str()))
        })
}
