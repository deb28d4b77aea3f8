//! Bodies of requests and responses: selects the media type and returns its schema.

use serde_json::{Map, Value, json};

use super::paths::{DocumentNode, swagger_parameter_schema};
use super::read::OpenApiVersion;
use crate::operation::{BodyFormat, OperationResponse, RequestBody, ResponseStatus};
use crate::schema::normalise::{SchemaNormaliser, SchemaPath};

/// Returns the body of an OpenAPI 3 operation.
pub(super) fn request_body(schemas: &mut SchemaNormaliser, at: &DocumentNode) -> Option<RequestBody> {
    at.get("requestBody")?;
    let spot = at.below(&["requestBody"]);
    let found = match DocumentNode::resolve(schemas, spot.clone()) {
        Ok(found) => found,
        Err(reason) => {
            schemas.warn(&spot, &format!("the body accepts any value: {reason}"));
            return Some(open_body());
        }
    };
    let names: Vec<&str> = found.get("content")?.as_object()?.keys().map(String::as_str).collect();
    let (name, media) = preferred(&names)?;
    let schema = match DocumentNode::resolve(schemas, found.below(&["content", name])) {
        Ok(content) => content.schema(schemas, "schema"),
        Err(_) => None,
    };
    let content_type = sent_media_type(name, media);
    Some(RequestBody {
        required: found.is_true("required"),
        description: found.text("description"),
        schema: body_schema(schema, media, &content_type),
        media,
        content_type,
    })
}

/// Returns the body of a Swagger operation: one parameter, or the fields of a form.
pub(super) fn swagger_body(
    schemas: &mut SchemaNormaliser,
    at: &DocumentNode,
    root: &Value,
    body: Option<&DocumentNode>,
    forms: &[DocumentNode],
) -> Option<RequestBody> {
    let consumes = media_types(at, root, "consumes");
    if let Some(body) = body {
        let names: Vec<&str> = consumes.iter().map(String::as_str).collect();
        let (name, media) = preferred(&names).unwrap_or(("application/json", BodyFormat::Json));
        let content_type = sent_media_type(name, media);
        let schema = body.schema(schemas, "schema");
        return Some(RequestBody {
            required: body.is_true("required"),
            description: body.text("description"),
            schema: body_schema(schema, media, &content_type),
            media,
            content_type,
        });
    }
    if forms.is_empty() {
        return None;
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut has_file = false;
    for form in forms {
        let Some(name) = form.text("name") else { continue };
        has_file |= form.get("type").is_some_and(|kind| kind == "file");
        let mut schema =
            schemas.normalise(&swagger_parameter_schema(form.value()), &SchemaPath::new(&form.spot));
        if let (Some(members), Some(text)) = (schema.as_object_mut(), form.text("description")) {
            members.insert("description".to_owned(), json!(text));
        }
        if form.is_true("required") {
            required.push(name.clone());
        }
        properties.insert(name, schema);
    }
    let is_multipart = has_file || consumes.iter().any(|name| name.starts_with("multipart/"));
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    Some(RequestBody {
        required: !required.is_empty(),
        description: None,
        media: if is_multipart { BodyFormat::Multipart } else { BodyFormat::Form },
        content_type: if is_multipart { "multipart/form-data" } else { "application/x-www-form-urlencoded" }
            .to_owned(),
        schema,
    })
}

/// Returns the responses of an operation, exact statuses first.
pub(super) fn responses(
    schemas: &mut SchemaNormaliser,
    at: &DocumentNode,
    root: &Value,
    version: OpenApiVersion,
) -> Vec<OperationResponse> {
    let Some(members) = at.get("responses").and_then(Value::as_object) else { return Vec::new() };
    let mut responses = Vec::new();
    for key in members.keys() {
        let Some(status) = status(key) else { continue };
        let spot = at.below(&["responses", key]);
        let found = match DocumentNode::resolve(schemas, spot.clone()) {
            Ok(found) => found,
            Err(reason) => {
                schemas.warn(&spot, &format!("the response accepts any value: {reason}"));
                responses.push(OperationResponse {
                    status,
                    description: None,
                    content_type: None,
                    schema: None,
                });
                continue;
            }
        };
        let (content_type, schema) = match version {
            OpenApiVersion::Swagger2 => swagger_content(schemas, at, root, &found),
            OpenApiVersion::OpenApi3 => content(schemas, &found),
        };
        responses.push(OperationResponse {
            status,
            description: found.text("description"),
            content_type,
            schema,
        });
    }
    responses.sort_by_key(|response| match response.status {
        ResponseStatus::Exactly(status) => (0, status),
        ResponseStatus::Class(class) => (1, u16::from(class)),
        ResponseStatus::Default => (2, 0),
    });
    responses
}

fn content(schemas: &mut SchemaNormaliser, found: &DocumentNode) -> (Option<String>, Option<Value>) {
    let Some(content) = found.get("content").and_then(Value::as_object) else { return (None, None) };
    let names: Vec<&str> = content.keys().map(String::as_str).collect();
    let Some((name, _)) = preferred(&names) else { return (None, None) };
    let schema = match DocumentNode::resolve(schemas, found.below(&["content", name])) {
        Ok(media) => media.schema(schemas, "schema"),
        Err(_) => None,
    };
    (Some(name.to_owned()), schema)
}

fn swagger_content(
    schemas: &mut SchemaNormaliser,
    at: &DocumentNode,
    root: &Value,
    found: &DocumentNode,
) -> (Option<String>, Option<Value>) {
    let Some(schema) = found.schema(schemas, "schema") else { return (None, None) };
    let produces = media_types(at, root, "produces");
    let names: Vec<&str> = produces.iter().map(String::as_str).collect();
    let is_file =
        found.get("schema").and_then(|schema| schema.get("type")).is_some_and(|kind| kind == "file");
    let name = match preferred(&names) {
        Some((name, media)) if !is_file || media != BodyFormat::Json => name,
        _ if is_file => names
            .iter()
            .copied()
            .find(|name| body_format(name) != BodyFormat::Json)
            .unwrap_or("application/octet-stream"),
        _ => "application/json",
    };
    (Some(name.to_owned()), Some(schema))
}

fn media_types(at: &DocumentNode, root: &Value, member: &str) -> Vec<String> {
    let list = at.get(member).or_else(|| root.get(member));
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn status(key: &str) -> Option<ResponseStatus> {
    if key == "default" {
        return Some(ResponseStatus::Default);
    }
    if let Some(class) = key.to_ascii_uppercase().strip_suffix("XX") {
        return class.parse().ok().filter(|class| (1..=5).contains(class)).map(ResponseStatus::Class);
    }
    key.parse().ok().filter(|status| (100..600).contains(status)).map(ResponseStatus::Exactly)
}

/// Returns the media type that is closest to JSON.
fn preferred<'a>(names: &[&'a str]) -> Option<(&'a str, BodyFormat)> {
    let rank = |name: &str| match body_format(name) {
        BodyFormat::Json if without_media_parameters(name) == "application/json" => 0,
        BodyFormat::Json if !name.contains('*') => 1,
        BodyFormat::Json => 2,
        BodyFormat::Form => 3,
        BodyFormat::Multipart => 4,
        BodyFormat::Text if without_media_parameters(name) == "text/plain" => 5,
        BodyFormat::Text => 6,
        BodyFormat::Binary => 7,
    };
    let best = names.iter().copied().min_by_key(|name| rank(name))?;
    Some((best, body_format(best)))
}

/// Returns a media type without its parameters.
fn without_media_parameters(name: &str) -> String {
    name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn body_format(name: &str) -> BodyFormat {
    let name = without_media_parameters(name);
    match name.as_str() {
        "*/*" | "application/*" | "" => BodyFormat::Json,
        "application/x-www-form-urlencoded" => BodyFormat::Form,
        "application/x-ndjson" | "application/jsonl" | "application/json-seq" | "application/json-l" => {
            BodyFormat::Text
        }
        _ if name.starts_with("multipart/") => BodyFormat::Multipart,
        _ if name == "application/json"
            || name == "text/json"
            || name.ends_with("+json")
            || name.contains("json") =>
        {
            BodyFormat::Json
        }
        _ if name.starts_with("text/")
            || name.ends_with("xml")
            || name.ends_with("yaml")
            || name.contains("javascript") =>
        {
            BodyFormat::Text
        }
        _ => BodyFormat::Binary,
    }
}

/// Returns the media type to send. A range is replaced by a concrete type.
fn sent_media_type(name: &str, media: BodyFormat) -> String {
    match media {
        BodyFormat::Json if name.contains('*') || name.is_empty() => "application/json".to_owned(),
        BodyFormat::Multipart => without_media_parameters(name).replace("multipart/*", "multipart/form-data"),
        BodyFormat::Binary if name.contains('*') => "application/octet-stream".to_owned(),
        BodyFormat::Text if name.contains('*') => "text/plain".to_owned(),
        _ => name.to_owned(),
    }
}

/// Returns the schema of the argument for such a body.
fn body_schema(schema: Option<Value>, media: BodyFormat, content_type: &str) -> Value {
    let is_text =
        schema.as_ref().is_some_and(|schema| schema.get("type").is_some_and(|kind| kind == "string"));
    match media {
        BodyFormat::Json | BodyFormat::Form | BodyFormat::Multipart => schema.unwrap_or_else(|| json!({})),
        BodyFormat::Text if is_text => schema.unwrap_or_default(),
        BodyFormat::Text => json!({"type": "string", "description": format!("Text, as {content_type}.")}),
        BodyFormat::Binary => {
            json!({"type": "string", "contentEncoding": "base64", "description": format!("Bytes in base64, sent as {content_type}.")})
        }
    }
}

fn open_body() -> RequestBody {
    RequestBody {
        required: false,
        description: None,
        media: BodyFormat::Json,
        content_type: "application/json".to_owned(),
        schema: json!({}),
    }
}
