//! Encodes the body of a request.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Map, Value};

use super::value::{ValueEncoding, encode_text, plain_value};
use super::{RequestError, multipart};
use crate::operation::{BodyFormat, RequestBody};

/// Base64 with or without padding.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Returns the body as bytes and adds its media type to the headers.
pub(super) fn encode_body(
    body: &RequestBody,
    argument: &str,
    arguments: &Map<String, Value>,
    headers: &mut HeaderMap,
) -> Result<Option<Bytes>, RequestError> {
    let value = match arguments.get(argument) {
        // A required JSON body may be `null`.
        Some(Value::Null) if body.required && body.media == BodyFormat::Json => &Value::Null,
        Some(Value::Null) | None if body.required => return Err(RequestError::Missing(argument.to_owned())),
        Some(Value::Null) | None => return Ok(None),
        Some(value) => value,
    };
    let mut content_type = body.content_type.clone();
    let written: Vec<u8> = match body.media {
        BodyFormat::Json => value.to_string().into_bytes(),
        BodyFormat::Form => form(members(argument, value)?).into_bytes(),
        BodyFormat::Multipart => {
            let written = multipart::encode_multipart(argument, members(argument, value)?, &body.schema)?;
            content_type = written.content_type(&content_type);
            written.body
        }
        BodyFormat::Text => match value {
            Value::Array(_) | Value::Object(_) => {
                return Err(RequestError::unusable(argument, "must be a string"));
            }
            _ => plain_value(value).into_bytes(),
        },
        BodyFormat::Binary => decode_base64(argument, value)?,
    };
    let content_type = HeaderValue::from_str(&content_type).map_err(|_| {
        RequestError::Operation("the media type of its body is not a valid header value".to_owned())
    })?;
    headers.insert(header::CONTENT_TYPE, content_type);
    Ok(Some(written.into()))
}

/// Decodes bytes from base64: a string, or an object with a member `base64`.
pub(super) fn decode_base64(argument: &str, value: &Value) -> Result<Vec<u8>, RequestError> {
    let text = value.as_str().or_else(|| value.get("base64")?.as_str());
    let text =
        text.ok_or_else(|| RequestError::unusable(argument, "must be a string with bytes in base64"))?;
    let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD
        .decode(&text)
        .or_else(|_| URL_SAFE.decode(&text))
        .map_err(|_| RequestError::unusable(argument, "is not valid base64"))
}

fn members<'a>(argument: &str, value: &'a Value) -> Result<&'a Map<String, Value>, RequestError> {
    value
        .as_object()
        .ok_or_else(|| RequestError::unusable(argument, "must be an object with one member per field"))
}

/// Encodes fields as `a=b&c=d`: one field per item for lists, JSON for objects.
fn form(members: &Map<String, Value>) -> String {
    let mut pieces = Vec::new();
    for (name, value) in members {
        let mut field = |value: &Value| {
            let (name, value) = (
                encode_text(name, ValueEncoding::Strict),
                encode_text(&plain_value(value), ValueEncoding::Strict),
            );
            pieces.push(format!("{name}={value}"));
        };
        match value {
            Value::Null => {}
            Value::Array(items) => items.iter().filter(|item| !item.is_null()).for_each(field),
            _ => field(value),
        }
    }
    pieces.join("&")
}
