//! Converts the return value of a tool's function to a `CallToolResult`.

use bindpost_mcp_protocol::{CallToolResult, Content, Meta};
use serde::Deserialize;
use serde_json::Value;

use super::blocks::{ContentBlock, parse_block, parse_object};
use super::envelope::ResultEnvelope;
use super::{FunctionReply, ReturnValueError, input_required, plain_text, unwrap_json};
use crate::datum::Datum;

/// Converts a return value to the result of a call. Without a result schema any value becomes one text. With
/// one, the value must be an envelope.
pub fn tool_result(
    returned: Datum,
    uses_result_schema: bool,
) -> Result<FunctionReply<CallToolResult>, ReturnValueError> {
    if uses_result_schema {
        return enveloped(&unwrap_json(returned));
    }
    let Some(text) = plain_text(returned) else { return Ok(FunctionReply::Done(CallToolResult::default())) };
    match input_required::in_text(&text)? {
        Some(asks) => Ok(asks),
        None => Ok(FunctionReply::Done(CallToolResult::text(text))),
    }
}

/// Returns whether a value is the envelope of a tool's result. The Node library from 4.13 on returns
/// envelopes also for tools that do not declare it (`app.generic`).
pub fn is_envelope(returned: &Datum) -> bool {
    const KINDS: [&str; 6] = ["text", "image", "audio", "resource", "resource_link", "call_tool_result"];
    let Datum::Text(text) = returned else { return false };
    text.starts_with("{\"type\":\"")
        && ResultEnvelope::from_returned(returned).is_some_and(|envelope| {
            (has_several_blocks(&envelope) || KINDS.iter().any(|kind| envelope.has_kind(kind)))
                && envelope.content().is_some()
        })
}

/// Returns whether the content of an envelope is a list. Early descriptions of the extension called it `multiContent`.
fn has_several_blocks(envelope: &ResultEnvelope<'_>) -> bool {
    envelope.has_kind("multi_content_result") || envelope.has_kind("multiContent")
}

fn enveloped(returned: &Datum) -> Result<FunctionReply<CallToolResult>, ReturnValueError> {
    match returned {
        Datum::Nothing => return Ok(FunctionReply::Done(CallToolResult::default())),
        // An extension of bindpost: Python workers return an empty text for `None`.
        Datum::Text(text) if text.is_empty() => return Ok(FunctionReply::Done(CallToolResult::default())),
        Datum::Text(_) => {}
        // An extension of bindpost: Azure's host accepts only text.
        Datum::Json(json) if json.trim_ascii_start().starts_with('{') => {}
        _ => return Err(ReturnValueError::ExpectedJsonString),
    }
    let envelope = ResultEnvelope::from_returned(returned).ok_or(ReturnValueError::NoToolResult)?;
    if envelope.is_input_required() {
        return input_required::in_envelope(&envelope);
    }
    let result = envelope_result(&envelope)?;
    // The Node library wraps every value, so a request for input is an envelope inside a text block.
    if let ([Content::Text(text)], false) = (result.content.as_slice(), result.is_error)
        && let Some(asks) = input_required::in_text(&text.text)?
    {
        return Ok(asks);
    }
    Ok(FunctionReply::Done(result))
}

/// A whole result, with the members that the contract keeps.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReturnedToolResult {
    #[serde(default)]
    content: Vec<ContentBlock>,
    structured_content: Option<Value>,
    is_error: Option<bool>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

fn envelope_result(envelope: &ResultEnvelope<'_>) -> Result<CallToolResult, ReturnValueError> {
    let wrong = || ReturnValueError::Content(envelope.kind.clone().into_owned());
    let content = envelope.content().ok_or_else(wrong)?;
    if envelope.has_kind("call_tool_result") {
        let whole: ReturnedToolResult = parse_object(&content).ok_or_else(wrong)?;
        return Ok(CallToolResult {
            content: contents(whole.content),
            structured_content: whole.structured_content,
            is_error: whole.is_error.unwrap_or_default(),
            meta: whole.meta,
            ..CallToolResult::default()
        });
    }
    let blocks = if has_several_blocks(envelope) {
        serde_json::from_str(&content).map_err(|_| wrong())?
    } else {
        // The type of the block is used, not the type of the envelope.
        vec![parse_block(&content).ok_or_else(wrong)?]
    };
    if blocks.is_empty() {
        return Err(ReturnValueError::NoContentItems);
    }
    let structured_content = match envelope.structured_content() {
        Some(json) => Some(serde_json::from_str(&json).map_err(|_| ReturnValueError::StructuredContent)?),
        None => None,
    };
    Ok(CallToolResult { content: contents(blocks), structured_content, ..CallToolResult::default() })
}

fn contents(blocks: Vec<ContentBlock>) -> Vec<Content> {
    blocks.into_iter().map(|ContentBlock(content)| content).collect()
}

#[cfg(test)]
mod tests;
