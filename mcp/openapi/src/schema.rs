//! Schemas of a document, whole or short enough for a model's context.

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

/// The purpose of a schema. Read-only members are removed from inputs, write-only members from outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaPurpose {
    /// The arguments of a call.
    Input,
    /// The content of a response. The schema is loose, so that it accepts what services actually return.
    Output,
}

/// The prefix of references to definitions.
const DEFINITIONS: &str = "#/$defs/";

/// Returns a schema that references a definition.
fn reference_to(name: &str) -> Value {
    let mut members = Map::new();
    members.insert("$ref".to_owned(), Value::String(format!("{DEFINITIONS}{name}")));
    Value::Object(members)
}

/// Returns the definition that a schema references.
fn referenced_definition(schema: &Value) -> Option<&str> {
    schema.as_object()?.get("$ref")?.as_str()?.strip_prefix(DEFINITIONS)
}

/// Keywords that describe a value without restricting it.
const ANNOTATIONS: [&str; 8] =
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"];

/// Returns whether a schema is only a reference, with or without annotations.
fn is_alias(schema: &Value) -> bool {
    referenced_definition(schema).is_some()
        && schema.as_object().is_some_and(|members| {
            members.keys().all(|key| key == "$ref" || ANNOTATIONS.contains(&key.as_str()))
        })
}
