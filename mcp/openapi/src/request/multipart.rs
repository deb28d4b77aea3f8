//! Encodes `multipart/form-data` bodies.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::RequestError;
use super::body::decode_base64;
use super::value::plain_value;

/// An encoded body and its boundary.
#[derive(Debug)]
pub(super) struct MultipartBody {
    pub(super) body: Vec<u8>,
    boundary: String,
}

impl MultipartBody {
    /// Returns the media type with the boundary.
    pub(super) fn content_type(&self, base: &str) -> String {
        let base = base.split(';').next().unwrap_or_default().trim();
        format!("{base}; boundary={}", self.boundary)
    }
}

/// One part before encoding.
struct MultipartPart {
    head: String,
    content: Vec<u8>,
}

/// Encodes the members of an object as parts: one per member, and one per item for lists.
pub(super) fn encode_multipart(
    argument: &str,
    members: &Map<String, Value>,
    schema: &Value,
) -> Result<MultipartBody, RequestError> {
    let mut parts = Vec::new();
    for (name, value) in members {
        let is_file = is_binary(schema, name);
        let items = match value {
            Value::Null => &[],
            Value::Array(items) => items.as_slice(),
            _ => std::slice::from_ref(value),
        };
        for item in items.iter().filter(|item| !item.is_null()) {
            parts.push(part(argument, name, item, is_file)?);
        }
    }
    let boundary = boundary(&parts)?;
    let mut body = Vec::new();
    for part in parts {
        body.extend_from_slice(format!("--{boundary}\r\n{}\r\n\r\n", part.head).as_bytes());
        body.extend_from_slice(&part.content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(MultipartBody { body, boundary })
}

fn part(argument: &str, name: &str, value: &Value, is_file: bool) -> Result<MultipartPart, RequestError> {
    let place = format!("{argument}.{name}");
    let mut head = format!("Content-Disposition: form-data; name=\"{}\"", escaped(name));
    let content = match value {
        Value::Object(file) if file.contains_key("base64") => {
            let text = |member: &str| file.get(member).and_then(Value::as_str);
            let content_type = text("contentType").unwrap_or("application/octet-stream");
            if !content_type.chars().all(|c| c == ' ' || c.is_ascii_graphic()) || !content_type.contains('/')
            {
                let problem = "has an invalid `contentType`; write it like image/png";
                return Err(RequestError::unusable(&place, problem));
            }
            let filename = escaped(text("filename").unwrap_or(name));
            let _ = write!(head, "; filename=\"{filename}\"\r\nContent-Type: {content_type}");
            decode_base64(&place, value)?
        }
        Value::Object(_) | Value::Array(_) => {
            head.push_str("\r\nContent-Type: application/json");
            value.to_string().into_bytes()
        }
        _ => {
            // Services recognise a file by its file name.
            if is_file {
                let _ = write!(
                    head,
                    "; filename=\"{}\"\r\nContent-Type: application/octet-stream",
                    escaped(name)
                );
            }
            plain_value(value).into_bytes()
        }
    };
    Ok(MultipartPart { head, content })
}

/// Returns whether the schema declares a member as binary, directly or in a list.
fn is_binary(schema: &Value, member: &str) -> bool {
    let Some(schema) = schema.get("properties").and_then(|members| members.get(member)) else { return false };
    let says = |schema: &Value| {
        schema.get("format").and_then(Value::as_str) == Some("binary")
            || schema.get("contentMediaType").is_some()
    };
    says(schema) || schema.get("items").is_some_and(says)
}

/// Escapes a quoted name as browsers do.
fn escaped(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' => escaped.push_str("%22"),
            '\r' => escaped.push_str("%0D"),
            '\n' => escaped.push_str("%0A"),
            c if c.is_control() => escaped.push('_'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns a boundary that occurs in none of the parts.
fn boundary(parts: &[MultipartPart]) -> Result<String, RequestError> {
    let none = || RequestError::Operation("the operating system returned no random numbers".to_owned());
    for _ in 0..4 {
        let (one, two) = (getrandom::u64().map_err(|_| none())?, getrandom::u64().map_err(|_| none())?);
        let boundary = format!("part-{one:016x}{two:016x}");
        let is_in =
            |content: &[u8]| content.windows(boundary.len()).any(|piece| piece == boundary.as_bytes());
        if !parts.iter().any(|part| is_in(&part.content) || is_in(part.head.as_bytes())) {
            return Ok(boundary);
        }
    }
    Err(none())
}
