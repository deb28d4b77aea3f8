//! Parses requests of a function for input from the client. Azure's extension does not have this.

use serde_json::{Map, Value};

use super::envelope::ResultEnvelope;
use super::{FunctionReply, ReturnValueError};
use crate::bindings::raw_json::same_in_any_case;

/// The type of an envelope that asks for input.
pub(super) const INPUT_REQUIRED: &str = "input_required";

/// Returns the requests if a returned text is such an envelope, or `None` for any other text.
pub(super) fn in_text<T>(text: &str) -> Result<Option<FunctionReply<T>>, ReturnValueError> {
    // The first letter is enough to skip nearly every other text without parsing it.
    if !text.trim_ascii_start().starts_with('{') || !text.contains(INPUT_REQUIRED) {
        return Ok(None);
    }
    match ResultEnvelope::open(text, false) {
        // Users' own documents may have a `type` in another case, so this match is exact.
        Some(envelope) if envelope.kind == INPUT_REQUIRED => in_envelope(&envelope).map(Some),
        _ => Ok(None),
    }
}

/// Returns the requests in an envelope of this type.
pub(super) fn in_envelope<T>(envelope: &ResultEnvelope<'_>) -> Result<FunctionReply<T>, ReturnValueError> {
    let wrong = |what: &str| ReturnValueError::InputRequired(what.to_owned());
    let content = envelope.content().and_then(|json| serde_json::from_str(&json).ok());
    let Some(Value::Object(content)) = content else {
        return Err(wrong("its 'content' is not a JSON object"));
    };
    let (mut requests, mut state) = (None, None);
    for (name, value) in content {
        if same_in_any_case(&name, "inputRequests") {
            requests = Some(value);
        } else if same_in_any_case(&name, "state") {
            state = Some(value).filter(|state| !state.is_null());
        }
    }
    match requests {
        Some(Value::Object(requests)) if !requests.is_empty() => {
            check(&requests)?;
            Ok(FunctionReply::InputRequired { requests, state })
        }
        _ => Err(wrong("'inputRequests' is not an object with at least one request")),
    }
}

fn check(requests: &Map<String, Value>) -> Result<(), ReturnValueError> {
    for (key, request) in requests {
        let wrong = |what: &str| Err(ReturnValueError::InputRequired(format!("the request '{key}' {what}")));
        let Value::Object(request) = request else { return wrong("is not an object") };
        if !matches!(request.get("method"), Some(Value::String(_))) {
            return wrong("has no 'method'");
        }
        if !matches!(request.get("params"), None | Some(Value::Object(_))) {
            return wrong("has 'params' that are not an object");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
