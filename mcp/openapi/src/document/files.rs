//! Files in multipart bodies. JSON cannot contain bytes, so arguments contain them as base64, with a name.

use serde_json::{Value, json};

use crate::document::Document;
use crate::operation::BodyFormat;

/// The text that is added to the description of a file.
const HOW: &str = "Text, or bytes as {base64, filename, contentType}.";

/// Adds to every multipart body a description of how to pass files.
pub(super) fn describe_files(document: &mut Document) {
    let mut operations = std::mem::take(&mut document.operations);
    for body in operations.iter_mut().filter_map(|operation| operation.body.as_mut()) {
        if body.media == BodyFormat::Multipart
            && let Some(schema) = with_files(document, &body.schema)
        {
            body.schema = schema;
        }
    }
    document.operations = operations;
}

/// Returns the schema of a body with descriptions of its files, or `None` if it has no files.
fn with_files(document: &Document, schema: &Value) -> Option<Value> {
    let mut whole = document.resolved(schema).0.clone();
    let mut has_files = false;
    for property in whole.get_mut("properties")?.as_object_mut()?.values_mut() {
        let found = document.resolved(property).0;
        let items = found.get("items").map(|items| document.resolved(items).0);
        let described = match items.filter(|items| is_file(items)) {
            Some(items) => {
                let mut list = found.clone();
                list["items"] = file(items);
                list
            }
            None if is_file(found) => file(found),
            None => continue,
        };
        *property = described;
        has_files = true;
    }
    has_files.then_some(whole)
}

fn is_file(schema: &Value) -> bool {
    let has_type = |kind: &Value| {
        kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("string")))
    };
    let may_be_text = schema.get("type").is_none_or(has_type);
    let is_binary = schema.get("format").is_some_and(|format| format == "binary");
    // Encoded text is not a file.
    let is_media = schema.get("contentMediaType").is_some() && schema.get("contentEncoding").is_none();
    may_be_text && (is_binary || is_media)
}

fn file(schema: &Value) -> Value {
    let mut members = schema.as_object().cloned().unwrap_or_default();
    let words = members.get("description").and_then(Value::as_str).unwrap_or_default();
    let end = if words.is_empty() || words.ends_with(['.', '!', '?']) { "" } else { "." };
    let description = format!("{words}{end} {HOW}");
    members.insert("description".to_owned(), description.trim().into());
    members.insert("type".to_owned(), json!(["string", "object"]));
    let text = json!({"type": "string"});
    let parts = json!({"base64": {"type": "string", "contentEncoding": "base64"}, "filename": text, "contentType": text});
    members.insert("properties".to_owned(), parts);
    members.insert("required".to_owned(), json!(["base64"]));
    Value::Object(members)
}
