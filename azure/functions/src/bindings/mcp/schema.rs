//! The schemas of tools: generated from `toolProperties`, or given as JSON schemas.

use serde_json::{Map, Value, json};

use crate::json::{self, ConfigReader, ProblemCollector, member};

/// One element of `toolProperties`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolProperty {
    name: String,
    /// The type as written. The extension does not check it.
    kind: Option<String>,
    description: String,
    required: bool,
    array: bool,
    choices: Vec<String>,
}

/// Reads `toolProperties`. Properties with blank names are skipped.
pub(super) fn properties(members: &ConfigReader<'_>) -> Vec<ToolProperty> {
    // An absent member means no properties. An empty text is not a JSON array.
    if members.value("toolProperties").and_then(Value::as_str).is_some_and(|text| text.trim().is_empty()) {
        members.report_problem(
            "toolProperties",
            "is empty, but must contain a JSON array",
            Some("write \"[]\", or remove it"),
        );
        return Vec::new();
    }
    let Some(value) = super::json_text(members, "toolProperties", "array") else { return Vec::new() };
    let items = super::objects(members, "toolProperties", value).unwrap_or_default();
    let property = |(index, item): (usize, &Map<String, Value>)| property(members, index, item);
    items.iter().enumerate().map(property).filter(|property| !property.name.trim().is_empty()).collect()
}

fn property(members: &ConfigReader<'_>, index: usize, item: &Map<String, Value>) -> ToolProperty {
    let notes = ProblemCollector::default();
    let read = ConfigReader::new(item, format!("toolProperties[{index}]"), &notes);
    let property = ToolProperty {
        name: read.text("propertyName").unwrap_or_default(),
        kind: read.text("propertyType"),
        description: read.text("description").unwrap_or_default(),
        required: read.flag("isRequired").unwrap_or(false),
        array: read.flag("isArray").unwrap_or(false),
        choices: match member(item, "enumValues") {
            None => Vec::new(),
            Some(Value::Array(values)) if values.iter().all(Value::is_string) => read.texts("enumValues"),
            Some(_) => {
                read.report_problem(
                    "enumValues",
                    "must be an array of texts",
                    Some(r#"write it like ["red", "green"]"#),
                );
                Vec::new()
            }
        },
    };
    members.adopt(notes);
    property
}

/// Returns the input schema of properties, and the names of the required ones in order of declaration.
pub(super) fn generated(properties: &[ToolProperty]) -> (Value, Vec<String>) {
    let mut required: Vec<String> = Vec::new();
    let mut schemas = Map::new();
    for property in properties {
        if property.required && !required.contains(&property.name) {
            required.push(property.name.clone());
        }
        let mut schema = Map::new();
        // `null` would be an invalid type for clients, so a missing type is omitted.
        if let Some(kind) = &property.kind {
            // The Python library has a type that JSON Schema does not have.
            let kind = if kind == "float" { "number" } else { kind };
            schema.insert("type".to_owned(), kind.into());
        }
        if !property.choices.is_empty() {
            schema.insert("enum".to_owned(), property.choices.clone().into());
        }
        if property.array {
            schema =
                Map::from_iter([("type".to_owned(), "array".into()), ("items".to_owned(), schema.into())]);
        }
        schema.insert("description".to_owned(), property.description.clone().into());
        schemas.insert(property.name.clone(), schema.into());
    }
    (json!({"type": "object", "properties": schemas, "required": required}), required)
}

/// Reads a schema that was given as JSON in a text. `side` is `Input` or `Output`.
pub(super) fn given(
    members: &ConfigReader<'_>,
    member: &str,
    side: &str,
    tool: &str,
    text: &str,
) -> Option<Value> {
    let Ok(schema) = json::parse_strictly(text) else {
        let message = format!("Failed to parse {side}Schema for tool '{tool}'. Schema must be valid JSON.");
        members.report_problem(member, message, Some("comments and trailing commas are not valid here"));
        return None;
    };
    if is_object_schema(&schema) {
        return Some(schema);
    }
    let side = side.to_ascii_lowercase();
    let message = format!("The specified document is not a valid MCP tool {side} JSON schema.");
    let fix = "its root needs \"type\": \"object\"; properties must be an object, required an array";
    members.report_problem(member, message, Some(fix));
    None
}

/// Returns the names in `required` of a schema.
pub(super) fn required_names(schema: &Value) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn is_object_schema(schema: &Value) -> bool {
    let Some(root) = schema.as_object() else { return false };
    root.get("type").and_then(Value::as_str) == Some("object")
        && root.get("properties").is_none_or(Value::is_object)
        && root.get("required").is_none_or(Value::is_array)
}
