//! What a prompt's function returned, as a `GetPromptResult`.

use bindpost_mcp_protocol::{GetPromptResult, Meta, PromptMessage};
use serde::Deserialize;

use super::blocks::{Message, object};
use super::envelope::Envelope;
use super::{ResultError, Returned, input_required, plain_text, unwrap_json};
use crate::datum::Datum;

/// The result of a get. Without a result schema anything becomes one message of the user; with one, the value
/// must be an envelope.
///
/// `detect_json` takes text for a whole result if it is the JSON of one, with messages or a description. The
/// extension did so up to 1.5, and the libraries of Python, Node and Java still count on it.
pub fn prompt_result(
    returned: Datum,
    uses_result_schema: bool,
    detect_json: bool,
) -> Result<Returned<GetPromptResult>, ResultError> {
    if uses_result_schema {
        return enveloped(&unwrap_json(returned));
    }
    let Some(text) = plain_text(returned) else { return Ok(Returned::Done(GetPromptResult::default())) };
    if let Some(asks) = input_required::in_text(&text)? {
        return Ok(asks);
    }
    let detected = if detect_json { detect(&text) } else { None };
    Ok(Returned::Done(detected.unwrap_or_else(|| GetPromptResult {
        messages: vec![PromptMessage::user(text)],
        ..GetPromptResult::default()
    })))
}

/// A whole result: what the contract keeps of it.
#[derive(Deserialize)]
struct Whole {
    description: Option<String>,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

impl From<Whole> for GetPromptResult {
    fn from(whole: Whole) -> GetPromptResult {
        GetPromptResult {
            description: whole.description,
            messages: whole.messages.into_iter().map(Into::into).collect(),
            meta: whole.meta,
            ..GetPromptResult::default()
        }
    }
}

fn detect(text: &str) -> Option<GetPromptResult> {
    let whole: Whole = object(text)?;
    (!whole.messages.is_empty() || whole.description.is_some()).then(|| whole.into())
}

fn enveloped(returned: &Datum) -> Result<Returned<GetPromptResult>, ResultError> {
    if returned.is_nothing() {
        return Ok(Returned::Done(GetPromptResult::default()));
    }
    let envelope = Envelope::of(returned).ok_or(ResultError::NoPromptResult)?;
    if envelope.is_input_required() {
        return input_required::in_envelope(&envelope);
    }
    let kind = || envelope.kind.clone().into_owned();
    let content = envelope.content().ok_or(ResultError::NullPrompt)?;
    let whole = if envelope.is("get_prompt_result") {
        object(&content)
    } else if envelope.is("prompt_messages") {
        let messages = serde_json::from_str(&content).ok();
        messages.map(|messages| Whole { description: None, messages, meta: None })
    } else {
        return Err(ResultError::UnknownPromptType(kind()));
    };
    Ok(Returned::Done(whole.ok_or_else(|| ResultError::Content(kind()))?.into()))
}

#[cfg(test)]
mod tests;
