//! Reads the three MCP triggers from JSON.
//!
//! Members with JSON values are texts that hold JSON, as the extension requires. `annotations` and `icons`,
//! which the extension does not have on every trigger, may also be plain JSON. Mistakes are reported with the
//! extension's messages where it has some.

mod additions;
mod prompt;
mod resource;
mod schema;
mod tool;

use bindpost_mcp_protocol::Meta;
use serde_json::{Map, Value};

use crate::json::{self, ConfigReader};

pub(crate) use prompt::read_prompt_trigger;
pub(crate) use resource::read_resource_trigger;
pub(crate) use schema::property_names;
pub(crate) use tool::read_tool_trigger;

/// The maximum nesting depth of `metadata`.
const METADATA_DEPTH: usize = 32;

/// Reads `metadata` as `_meta`. It is a text that holds a JSON object. Blank texts and empty objects give
/// `None`.
fn metadata(members: &ConfigReader<'_>) -> Option<Meta> {
    let value = json_text(members, "metadata", "object")?;
    if depth_exceeds(&value, METADATA_DEPTH) {
        let message = format!("is nested deeper than {METADATA_DEPTH} levels");
        members.report_problem("metadata", message, Some("make it flatter"));
        return None;
    }
    match value {
        Value::Object(meta) => Some(meta).filter(|meta| !meta.is_empty()),
        other => {
            let message =
                format!("Metadata root must be a JSON object; received {}.", json::dotnet_kind(&other));
            members.report_problem(
                "metadata",
                message,
                Some(r#"write it as a text like "{\"key\": \"value\"}""#),
            );
            None
        }
    }
}

/// Reads a member that is a text holding JSON. A blank text gives `None`.
fn json_text(members: &ConfigReader<'_>, name: &str, wanted: &str) -> Option<Value> {
    let text = match members.value(name)? {
        Value::String(text) if text.trim().is_empty() => return None,
        Value::String(text) => text,
        // The extension accepts no plain JSON here, so the app would fail in Azure.
        other => {
            let expected = format!("a text that holds a JSON {wanted}");
            let fix = "put the JSON into a text with escaped quotes";
            return members.report_wrong_type(name, other, &expected, Some(fix));
        }
    };
    parse(members, name, text, wanted)
}

/// Reads a member that is JSON or a text holding JSON.
fn json_or_text(members: &ConfigReader<'_>, name: &str, wanted: &str) -> Option<Value> {
    match members.value(name)? {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => parse(members, name, text, wanted),
        other => Some(other.clone()),
    }
}

fn parse(members: &ConfigReader<'_>, name: &str, text: &str, wanted: &str) -> Option<Value> {
    let not_json = |error| members.report_problem(name, format!("holds no JSON {wanted}: {error}"), None);
    json::parse_strictly(text).map_err(not_json).ok()
}

/// Returns the objects of an array. Anything else is reported.
fn objects(members: &ConfigReader<'_>, name: &str, value: Value) -> Option<Vec<Map<String, Value>>> {
    let Value::Array(items) = value else {
        let message = format!("must contain a JSON array, but has {}", json::dotnet_kind(&value));
        members.report_problem(name, message, Some("write an array of objects"));
        return None;
    };
    let mut objects = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        match item {
            Value::Object(object) => objects.push(object),
            other => {
                members.report_wrong_type::<()>(&format!("{name}[{index}]"), &other, "an object", None);
            }
        }
    }
    Some(objects)
}

/// Returns whether a value is nested deeper than a number of levels. One object is one level.
fn depth_exceeds(value: &Value, levels: usize) -> bool {
    let below = |value: &Value| levels == 0 || depth_exceeds(value, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(below),
        Value::Object(object) => levels == 0 || object.values().any(below),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
