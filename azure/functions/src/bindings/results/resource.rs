//! Converts the return value of a resource's function to a `ReadResourceResult`.

use bindpost_mcp_protocol::{Meta, ReadResourceResult, ResourceContents};
use serde::Deserialize;

use super::blocks::parse_object;
use super::envelope::ResultEnvelope;
use super::{FunctionReply, ReturnValueError, input_required, unwrap_json};
use crate::bindings::raw_json::{member_in_any_case, members, string};
use crate::datum::Datum;

/// Converts a return value to the result of a read. `uri` is the requested URI, `mime_type` the trigger's
/// media type.
///
/// Text may hold an envelope `{"content":"<JSON of one item>"}`. Text that is not a valid envelope stays
/// text. An unknown media type is omitted, where Azure's host writes `null`.
pub fn resource_result(
    returned: Datum,
    uri: &str,
    mime_type: Option<&str>,
) -> Result<FunctionReply<ReadResourceResult>, ReturnValueError> {
    let done = |contents| ReadResourceResult { contents, ..ReadResourceResult::default() };
    let mut item = match unwrap_json(returned) {
        Datum::Nothing | Datum::HttpRequest(_) | Datum::HttpResponse(_) => {
            return Ok(FunctionReply::Done(done(Vec::new())));
        }
        Datum::Bytes(bytes) => ResourceContents::blob(uri, bytes),
        Datum::Text(text) => {
            if let Some(asks) = input_required::in_text(&text)? {
                return Ok(asks);
            }
            match enveloped(&text, false)? {
                Some(item) => item,
                None => ResourceContents::text(uri, text),
            }
        }
        Datum::Json(json) => {
            if let Some(envelope) =
                ResultEnvelope::open(&json, true).filter(ResultEnvelope::is_input_required)
            {
                return input_required::in_envelope(&envelope);
            }
            // An extension of bindpost: Azure's host accepts no JSON, not even an envelope.
            enveloped(&json, true)?
                .ok_or_else(|| ReturnValueError::UnsupportedReturnType(dotnet_type(&json)))?
        }
        Datum::Int(_) => return Err(ReturnValueError::UnsupportedReturnType("Int64")),
        Datum::Double(_) => return Err(ReturnValueError::UnsupportedReturnType("Double")),
    };
    if item.uri.is_empty() {
        uri.clone_into(&mut item.uri);
    }
    if item.mime_type.as_ref().is_none_or(String::is_empty) {
        item.mime_type = mime_type.map(str::to_owned);
    }
    Ok(FunctionReply::Done(done(vec![item])))
}

/// The resource in an envelope.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReturnedResource {
    uri: Option<String>,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

/// Returns the resource of an envelope, or `None` if the text is not an envelope. Members besides `content`
/// are ignored.
fn enveloped(json: &str, is_json: bool) -> Result<Option<ResourceContents>, ReturnValueError> {
    let members = members(json).unwrap_or_default();
    let Some(content) = member_in_any_case(&members, "content") else { return Ok(None) };
    let content = match (content, string(content)) {
        ("null", _) => return Err(ReturnValueError::NullResource),
        (_, Some(text)) => text,
        (json, None) if is_json => json.into(),
        (_, None) => return Ok(None),
    };
    if content.trim_ascii() == "null" {
        return Err(ReturnValueError::NullResource);
    }
    match parse_object::<ReturnedResource>(&content) {
        None => Ok(None),
        Some(ReturnedResource { text: None, blob: None, .. }) => Err(ReturnValueError::NeitherTextNorBlob),
        Some(item) => Ok(Some(ResourceContents {
            uri: item.uri.unwrap_or_default(),
            mime_type: item.mime_type,
            // A resource has either text or a blob.
            text: item.text.filter(|_| item.blob.is_none()),
            blob: item.blob,
            meta: item.meta,
            ..ResourceContents::default()
        })),
    }
}

/// Returns the .NET type name that Azure's host has for this JSON.
fn dotnet_type(json: &str) -> &'static str {
    match json.trim_ascii().as_bytes() {
        [b'{', ..] => "JObject",
        [b'[', ..] => "JArray",
        [b't' | b'f', ..] => "Boolean",
        number if number.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => "Double",
        _ => "Int64",
    }
}

#[cfg(test)]
mod tests;
