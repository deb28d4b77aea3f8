//! Converts the return value of a prompt's function to a `GetPromptResult`.

use bindpost_mcp_protocol::{GetPromptResult, Meta, PromptMessage};
use serde::Deserialize;

use super::blocks::{StrictMessage, parse_object};
use super::envelope::ResultEnvelope;
use super::{FunctionReply, ReturnValueError, input_required, plain_text, unwrap_json};
use crate::datum::Datum;

/// Converts a return value to the result of a get. Without a result schema any value becomes one message of
/// the user. With one, the value must be an envelope.
///
/// With `detect_json`, text is a whole result if it is the JSON of one, with messages or a description. The
/// extension did so up to 1.5, and the libraries of Python, Node and Java still rely on it.
pub fn prompt_result(
    returned: Datum,
    uses_result_schema: bool,
    detect_json: bool,
) -> Result<FunctionReply<GetPromptResult>, ReturnValueError> {
    if uses_result_schema {
        return enveloped(&unwrap_json(returned));
    }
    let Some(text) = plain_text(returned) else { return Ok(FunctionReply::Done(GetPromptResult::default())) };
    if let Some(asks) = input_required::in_text(&text)? {
        return Ok(asks);
    }
    let detected = if detect_json { detect(&text) } else { None };
    Ok(FunctionReply::Done(detected.unwrap_or_else(|| GetPromptResult {
        messages: vec![PromptMessage::user(text)],
        ..GetPromptResult::default()
    })))
}

/// A whole result, with the members that the contract keeps.
#[derive(Deserialize)]
struct ReturnedPromptResult {
    description: Option<String>,
    #[serde(default)]
    messages: Vec<StrictMessage>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

impl From<ReturnedPromptResult> for GetPromptResult {
    fn from(whole: ReturnedPromptResult) -> GetPromptResult {
        GetPromptResult {
            description: whole.description,
            messages: whole.messages.into_iter().map(Into::into).collect(),
            meta: whole.meta,
            ..GetPromptResult::default()
        }
    }
}

fn detect(text: &str) -> Option<GetPromptResult> {
    let whole: ReturnedPromptResult = parse_object(text)?;
    (!whole.messages.is_empty() || whole.description.is_some()).then(|| whole.into())
}

fn enveloped(returned: &Datum) -> Result<FunctionReply<GetPromptResult>, ReturnValueError> {
    if returned.is_nothing() {
        return Ok(FunctionReply::Done(GetPromptResult::default()));
    }
    let envelope = ResultEnvelope::from_returned(returned).ok_or(ReturnValueError::NoPromptResult)?;
    if envelope.is_input_required() {
        return input_required::in_envelope(&envelope);
    }
    let kind = || envelope.kind.clone().into_owned();
    let content = envelope.content().ok_or(ReturnValueError::NullPrompt)?;
    let whole = if envelope.has_kind("get_prompt_result") {
        parse_object(&content)
    } else if envelope.has_kind("prompt_messages") {
        let messages = serde_json::from_str(&content).ok();
        messages.map(|messages| ReturnedPromptResult { description: None, messages, meta: None })
    } else {
        return Err(ReturnValueError::UnknownPromptType(kind()));
    };
    Ok(FunctionReply::Done(whole.ok_or_else(|| ReturnValueError::Content(kind()))?.into()))
}

#[cfg(test)]
mod tests;
