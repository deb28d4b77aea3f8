//! The schemas of tools: generated from `toolProperties`, or given as JSON schemas.

use bindpost_mcp_protocol::ToolSchema;
use bindpost_mcp_server::nearest;
use bindpost_net_json::text::push_string;
use serde_json::{Map, Value};

use crate::bindings::raw_json::{checked_members, without_duplicates};
use crate::json::{self, ConfigReader, ProblemCollector, member};

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// One element of `toolProperties`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolProperty {
    name: String,
    /// The type, if it is one of JSON Schema. The extension does not check it.
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
    let Some(value) = super::json_or_text(members, "toolProperties", "array") else { return Vec::new() };
    let items = super::objects(members, "toolProperties", value).unwrap_or_default();
    let property = |(index, item): (usize, &Map<String, Value>)| property(members, index, item);
    items.iter().enumerate().map(property).filter(|property| !property.name.trim().is_empty()).collect()
}

fn property(members: &ConfigReader<'_>, index: usize, item: &Map<String, Value>) -> ToolProperty {
    let notes = ProblemCollector::default();
    let read = ConfigReader::new(item, format!("toolProperties[{index}]"), &notes);
    let property = ToolProperty {
        name: read.text("propertyName").unwrap_or_default(),
        kind: kind(&read),
        description: read.text("description").unwrap_or_default(),
        // Early versions of the Java library write `required`.
        required: read.flag("isRequired").or_else(|| read.flag("required")).unwrap_or(false),
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

/// Reads `propertyType`. An unknown type is reported and left out: clients reject a list with an invalid schema.
fn kind(property: &ConfigReader<'_>) -> Option<String> {
    let name = "propertyType";
    let text = property.text(name)?;
    // The Python library has a type that JSON Schema does not have.
    let kind = if text == "float" { "number" } else { text.as_str() };
    if TYPES.contains(&kind) {
        return Some(kind.to_owned());
    }
    let short = text.trim().to_ascii_lowercase();
    let begins_alike = |known: &&&str| short.len() >= 3 && known.starts_with(&short);
    let near = TYPES.iter().find(begins_alike).copied().or_else(|| nearest::nearest(&short, &TYPES));
    let fix = match near {
        Some(near) => format!("write {near:?}"),
        None => "write string, number, integer, boolean or object; isArray makes a list".to_owned(),
    };
    property.report_warning(name, format!("{text:?} is not a type, so the property has no type"), fix);
    None
}

/// Returns the input schema of properties, in order of declaration, and the names of the required ones.
pub(super) fn generated(properties: &[ToolProperty]) -> (ToolSchema, Vec<String>) {
    let mut required: Vec<String> = Vec::new();
    for property in properties.iter().filter(|property| property.required) {
        if !required.contains(&property.name) {
            required.push(property.name.clone());
        }
    }
    // Of equal names the last one is used.
    let is_last =
        |index: usize, name: &str| !properties.iter().skip(index + 1).any(|other| other.name == name);
    let mut text = String::from("{\"type\":\"object\",\"properties\":{");
    let mut separator = "";
    for (index, property) in properties.iter().enumerate() {
        if is_last(index, &property.name) {
            text.push_str(separator);
            push_string(&mut text, &property.name);
            text.push(':');
            property.push_schema(&mut text);
            separator = ",";
        }
    }
    text.push_str("},\"required\":");
    push_texts(&mut text, &required);
    text.push('}');
    (schema_of(&text), required)
}

impl ToolProperty {
    fn push_schema(&self, out: &mut String) {
        out.push('{');
        if self.array {
            out.push_str("\"type\":\"array\",\"items\":{");
            self.push_type(out);
            out.push('}');
        } else {
            self.push_type(out);
        }
        if !out.ends_with('{') {
            out.push(',');
        }
        out.push_str("\"description\":");
        push_string(out, &self.description);
        out.push('}');
    }

    fn push_type(&self, out: &mut String) {
        // `null` would be an invalid type for clients, so a missing type is omitted.
        if let Some(kind) = &self.kind {
            out.push_str("\"type\":");
            push_string(out, kind);
        }
        if !self.choices.is_empty() {
            out.push_str(if self.kind.is_some() { ",\"enum\":" } else { "\"enum\":" });
            push_texts(out, &self.choices);
        }
    }
}

fn push_texts(out: &mut String, texts: &[String]) {
    out.push('[');
    for (index, text) in texts.iter().enumerate() {
        out.push_str(if index == 0 { "" } else { "," });
        push_string(out, text);
    }
    out.push(']');
}

/// Returns the schema with this text, which is valid JSON without repeated names.
fn schema_of(text: &str) -> ToolSchema {
    // If the text were invalid, the schema would be null, and the tool would be rejected.
    ToolSchema::from_text(text).unwrap_or_default()
}

/// Returns the names of the properties of a schema, in the order in which clients receive them.
pub(crate) fn property_names(schema: &ToolSchema) -> Vec<String> {
    let declared = schema.text().and_then(checked_members).unwrap_or_default();
    let declared = declared.iter().find(|(name, _)| name == "properties");
    match declared.and_then(|(_, properties)| checked_members(properties)) {
        Some(properties) => properties.into_iter().map(|(name, _)| name.into_owned()).collect(),
        None => {
            let properties = schema.get("properties").and_then(Value::as_object);
            properties.into_iter().flatten().map(|(name, _)| name.clone()).collect()
        }
    }
}

/// Reads a schema that was given as JSON in a text. `side` is `Input` or `Output`.
pub(super) fn given(
    members: &ConfigReader<'_>,
    member: &str,
    side: &str,
    tool: &str,
    text: &str,
) -> Option<ToolSchema> {
    let Ok(schema) = json::parse_strictly(text) else {
        let message = format!("Failed to parse {side}Schema for tool '{tool}'. Schema must be valid JSON.");
        members.report_problem(member, message, Some("comments and trailing commas are not valid here"));
        return None;
    };
    if is_object_schema(&schema) {
        return Some(schema_of(&without_duplicates(text.trim_ascii())));
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
