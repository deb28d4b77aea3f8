//! Bodies of requests and answers: which of several media types, and its schema.

use serde_json::{Map, Value, json};

use super::paths::{At, without_own_words};
use super::read::Version;
use crate::operation::{Body, Media, Response, Status};
use crate::schema::normalise::{Schemas, Trail};

/// The body of an OpenAPI 3 operation.
pub(super) fn request_body(schemas: &mut Schemas, at: &At) -> Option<Body> {
    at.get("requestBody")?;
    let spot = at.below(&["requestBody"]);
    let found = match At::resolve(schemas, spot.clone()) {
        Ok(found) => found,
        Err(reason) => {
            schemas.warn(&spot, &format!("the body is left open: {reason}"));
            return Some(open_body());
        }
    };
    let names: Vec<&str> = found.get("content")?.as_object()?.keys().map(String::as_str).collect();
    let (name, media) = preferred(&names)?;
    let schema = match At::resolve(schemas, found.below(&["content", name])) {
        Ok(content) => content.schema(schemas, "schema"),
        Err(_) => None,
    };
    let content_type = sent_as(name, media);
    Some(Body {
        required: found.is("required"),
        description: found.text("description"),
        schema: body_schema(schema, media, &content_type),
        media,
        content_type,
    })
}

/// The body of a Swagger operation: one parameter, or the fields of a form.
pub(super) fn swagger_body(
    schemas: &mut Schemas,
    at: &At,
    root: &Value,
    body: Option<&At>,
    forms: &[At],
) -> Option<Body> {
    let consumes = media_types(at, root, "consumes");
    if let Some(body) = body {
        let names: Vec<&str> = consumes.iter().map(String::as_str).collect();
        let (name, media) = preferred(&names).unwrap_or(("application/json", Media::Json));
        let content_type = sent_as(name, media);
        let schema = body.schema(schemas, "schema");
        return Some(Body {
            required: body.is("required"),
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
        let mut schema = schemas.normalise(&without_own_words(form.value()), &Trail::new(&form.spot));
        if let (Some(members), Some(text)) = (schema.as_object_mut(), form.text("description")) {
            members.insert("description".to_owned(), json!(text));
        }
        if form.is("required") {
            required.push(name.clone());
        }
        properties.insert(name, schema);
    }
    let is_multipart = has_file || consumes.iter().any(|name| name.starts_with("multipart/"));
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    Some(Body {
        required: !required.is_empty(),
        description: None,
        media: if is_multipart { Media::Multipart } else { Media::Form },
        content_type: if is_multipart { "multipart/form-data" } else { "application/x-www-form-urlencoded" }
            .to_owned(),
        schema,
    })
}

/// What an operation answers, exact statuses first.
pub(super) fn responses(schemas: &mut Schemas, at: &At, root: &Value, version: Version) -> Vec<Response> {
    let Some(members) = at.get("responses").and_then(Value::as_object) else { return Vec::new() };
    let mut responses = Vec::new();
    for key in members.keys() {
        let Some(status) = status(key) else { continue };
        let spot = at.below(&["responses", key]);
        let found = match At::resolve(schemas, spot.clone()) {
            Ok(found) => found,
            Err(reason) => {
                schemas.warn(&spot, &format!("the answer is left open: {reason}"));
                responses.push(Response { status, description: None, content_type: None, schema: None });
                continue;
            }
        };
        let (content_type, schema) = match version {
            Version::Swagger2 => swagger_content(schemas, at, root, &found),
            Version::OpenApi3 => content(schemas, &found),
        };
        responses.push(Response { status, description: found.text("description"), content_type, schema });
    }
    responses.sort_by_key(|response| match response.status {
        Status::Exactly(status) => (0, status),
        Status::Class(class) => (1, u16::from(class)),
        Status::Default => (2, 0),
    });
    responses
}

fn content(schemas: &mut Schemas, found: &At) -> (Option<String>, Option<Value>) {
    let Some(content) = found.get("content").and_then(Value::as_object) else { return (None, None) };
    let names: Vec<&str> = content.keys().map(String::as_str).collect();
    let Some((name, _)) = preferred(&names) else { return (None, None) };
    let schema = match At::resolve(schemas, found.below(&["content", name])) {
        Ok(media) => media.schema(schemas, "schema"),
        Err(_) => None,
    };
    (Some(name.to_owned()), schema)
}

fn swagger_content(
    schemas: &mut Schemas,
    at: &At,
    root: &Value,
    found: &At,
) -> (Option<String>, Option<Value>) {
    let Some(schema) = found.schema(schemas, "schema") else { return (None, None) };
    let produces = media_types(at, root, "produces");
    let names: Vec<&str> = produces.iter().map(String::as_str).collect();
    let is_file =
        found.get("schema").and_then(|schema| schema.get("type")).is_some_and(|kind| kind == "file");
    let name = match preferred(&names) {
        Some((name, media)) if !is_file || media != Media::Json => name,
        _ if is_file => names
            .iter()
            .copied()
            .find(|name| media_of(name) != Media::Json)
            .unwrap_or("application/octet-stream"),
        _ => "application/json",
    };
    (Some(name.to_owned()), Some(schema))
}

fn media_types(at: &At, root: &Value, member: &str) -> Vec<String> {
    let list = at.get(member).or_else(|| root.get(member));
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn status(key: &str) -> Option<Status> {
    if key == "default" {
        return Some(Status::Default);
    }
    if let Some(class) = key.to_ascii_uppercase().strip_suffix("XX") {
        return class.parse().ok().filter(|class| (1..=5).contains(class)).map(Status::Class);
    }
    key.parse().ok().filter(|status| (100..600).contains(status)).map(Status::Exactly)
}

/// The media type that fits JSON best.
fn preferred<'a>(names: &[&'a str]) -> Option<(&'a str, Media)> {
    let rank = |name: &str| match media_of(name) {
        Media::Json if bare(name) == "application/json" => 0,
        Media::Json if !name.contains('*') => 1,
        Media::Json => 2,
        Media::Form => 3,
        Media::Multipart => 4,
        Media::Text if bare(name) == "text/plain" => 5,
        Media::Text => 6,
        Media::Binary => 7,
    };
    let best = names.iter().copied().min_by_key(|name| rank(name))?;
    Some((best, media_of(best)))
}

/// A media type without its parameters.
fn bare(name: &str) -> String {
    name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn media_of(name: &str) -> Media {
    let name = bare(name);
    match name.as_str() {
        "*/*" | "application/*" | "" => Media::Json,
        "application/x-www-form-urlencoded" => Media::Form,
        "application/x-ndjson" | "application/jsonl" | "application/json-seq" | "application/json-l" => {
            Media::Text
        }
        _ if name.starts_with("multipart/") => Media::Multipart,
        _ if name == "application/json"
            || name == "text/json"
            || name.ends_with("+json")
            || name.contains("json") =>
        {
            Media::Json
        }
        _ if name.starts_with("text/")
            || name.ends_with("xml")
            || name.ends_with("yaml")
            || name.contains("javascript") =>
        {
            Media::Text
        }
        _ => Media::Binary,
    }
}

/// The media type as it is sent: a range is none.
fn sent_as(name: &str, media: Media) -> String {
    match media {
        Media::Json if name.contains('*') || name.is_empty() => "application/json".to_owned(),
        Media::Multipart => bare(name).replace("multipart/*", "multipart/form-data"),
        Media::Binary if name.contains('*') => "application/octet-stream".to_owned(),
        Media::Text if name.contains('*') => "text/plain".to_owned(),
        _ => name.to_owned(),
    }
}

/// What an argument for such a body looks like.
fn body_schema(schema: Option<Value>, media: Media, content_type: &str) -> Value {
    let is_text =
        schema.as_ref().is_some_and(|schema| schema.get("type").is_some_and(|kind| kind == "string"));
    match media {
        Media::Json | Media::Form | Media::Multipart => schema.unwrap_or_else(|| json!({})),
        Media::Text if is_text => schema.unwrap_or_default(),
        Media::Text => json!({"type": "string", "description": format!("Text, as {content_type}.")}),
        Media::Binary => {
            json!({"type": "string", "contentEncoding": "base64", "description": format!("Bytes in base64, sent as {content_type}.")})
        }
    }
}

fn open_body() -> Body {
    Body {
        required: false,
        description: None,
        media: Media::Json,
        content_type: "application/json".to_owned(),
        schema: json!({}),
    }
}
