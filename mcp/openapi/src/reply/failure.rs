//! Failures for the model: kind, message, request id and retry delay.

use bindpost_mcp_protocol::jsonrpc::INTERNAL_ERROR;
use bindpost_mcp_protocol::{CallToolResult, ErrorObject};
use bindpost_mcp_server::ProtocolError;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::body::{self, decode, page_text};
use super::without_nulls;
use crate::bridge::text::{plain_text, sentences};
use bindpost_net_upstream::{UpstreamResponse, retry_after};

/// The maximum length of a message, in characters.
const LONGEST: usize = 1000;

/// The kind of a failure, as reported to callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are self-explanatory")]
pub enum FailureKind {
    InvalidRequest,
    Unauthorized,
    ResourceNotFound,
    Conflict,
    RateLimited,
    ServerError,
    #[default]
    UnknownError,
}

impl FailureKind {
    /// Returns the kind for an error status. Error codes of services are not standardised,
    /// so they are ignored.
    pub fn from_status(status: StatusCode) -> FailureKind {
        match status.as_u16() {
            400 | 402 | 405 | 406 | 411 | 413..=417 | 422 | 428 | 431 => FailureKind::InvalidRequest,
            401 | 403 | 407 => FailureKind::Unauthorized,
            404 | 410 => FailureKind::ResourceNotFound,
            409 | 412 | 423 => FailureKind::Conflict,
            429 => FailureKind::RateLimited,
            500..=599 => FailureKind::ServerError,
            _ => FailureKind::UnknownError,
        }
    }
}

/// A failed call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallFailure {
    pub(crate) kind: FailureKind,
    pub(crate) status: Option<u16>,
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    pub(crate) request_id: Option<String>,
    pub(crate) retry_after: Option<u64>,
    /// The cursor after the part that failed.
    pub(crate) next_cursor: Option<Box<str>>,
    /// The body of the response, instead of the message in it.
    pub(crate) body: Option<Box<Value>>,
}

/// Headers that contain a request id.
const REQUEST_IDS: [&str; 7] = [
    "x-request-id",
    "request-id",
    "x-ms-request-id",
    "x-amzn-requestid",
    "x-amz-request-id",
    "x-correlation-id",
    "x-trace-id",
];

impl CallFailure {
    /// Creates a failure caused by the caller. Nothing was sent.
    pub(crate) fn invalid(message: String) -> CallFailure {
        CallFailure { kind: FailureKind::InvalidRequest, message, ..CallFailure::default() }
    }

    /// Returns a failure if an argument differs from the call that returned the cursor. Repeating the
    /// same arguments is allowed.
    pub(crate) fn changed_arguments(
        given: &Map<String, Value>,
        before: &Map<String, Value>,
    ) -> Option<CallFailure> {
        let (name, _) = given.iter().find(|(name, value)| before.get(*name) != Some(value))?;
        Some(CallFailure::invalid(format!(
            "argument {name:?} differs from the call that returned this cursor; omit the argument, or omit the \
             cursor to start again"
        )))
    }

    /// Creates a failure from a response with an error status.
    pub(crate) fn from_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> CallFailure {
        let media = body::media_type(headers);
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        let read: Option<Value> =
            serde_json::from_slice(body).ok().filter(|value: &Value| !value.is_number());
        let mut message = match &read {
            Some(value) => message_in(value),
            None if media.contains("html") || body.trim_ascii_start().starts_with(b"<") => {
                Some(page_text(&decode(headers, body)))
            }
            None if body::is_text(&media) || std::str::from_utf8(body).is_ok() => {
                Some(sentences(&plain_text(&decode(headers, body)), 300))
            }
            None => None,
        };
        message = message.filter(|message| !message.is_empty());
        let text = |headers: &HeaderMap, name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(|value| sentences(&plain_text(value), 200))
        };
        let in_body = || {
            let read = read.as_ref()?;
            let inner = read.get("error").unwrap_or(read);
            let names = ["requestId", "request_id", "traceId", "correlationId"];
            let found = names.iter().find_map(|name| inner.get(name).or_else(|| read.get(name))?.as_str());
            found.map(|id| sentences(&plain_text(id), 200))
        };
        let reason = status.canonical_reason().unwrap_or("no reason given");
        CallFailure {
            kind: FailureKind::from_status(status),
            status: Some(status.as_u16()),
            code: read.as_ref().and_then(code_in),
            message: message.unwrap_or_else(|| format!("{} {reason}", status.as_u16())),
            request_id: REQUEST_IDS.iter().find_map(|name| text(headers, name)).or_else(in_body),
            retry_after: retry_after(headers).map(|wait| wait.as_secs()),
            next_cursor: None,
            body: None,
        }
    }

    /// Adds the body of the response, if it is JSON or text: at most this many bytes of it.
    pub(crate) fn with_body(self, headers: &HeaderMap, body: &[u8], most: usize) -> CallFailure {
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        if most == 0 || body.trim_ascii().is_empty() {
            return self;
        }
        let whole = (body.len() <= most).then(|| serde_json::from_slice(body).ok()).flatten();
        let is_text = || body::is_text(&body::media_type(headers)) || std::str::from_utf8(body).is_ok();
        let body =
            whole.or_else(|| is_text().then(|| Value::String(beginning(&decode(headers, body), most))));
        CallFailure { body: body.map(Box::new), ..self }
    }

    /// Masks our credential again, because conversion to plain text may have joined its parts.
    pub(crate) fn masked(self, incoming: &UpstreamResponse) -> CallFailure {
        CallFailure {
            code: self.code.map(|code| incoming.masked(code)),
            message: incoming.masked(self.message),
            request_id: self.request_id.map(|id| incoming.masked(id)),
            ..self
        }
    }

    /// Creates a failure for a response that has a success status but cannot be decoded.
    pub(crate) fn unreadable(message: String, status: StatusCode, headers: &HeaderMap) -> CallFailure {
        CallFailure {
            kind: FailureKind::ServerError,
            message,
            ..CallFailure::from_response(status, headers, &[])
        }
    }

    /// Returns the failure as JSON. `message` is `None` if the message is reported separately.
    fn to_json(&self, message: Option<String>) -> Value {
        without_nulls([
            ("error", json!(self.kind)),
            ("status", self.status.into()),
            ("code", self.code.clone().into()),
            ("message", message.filter(|_| self.body.is_none()).into()),
            ("body", self.body.as_deref().cloned().into()),
            ("requestId", self.request_id.clone().into()),
            ("retryAfter", self.retry_after.into()),
            ("nextCursor", self.next_cursor.as_deref().into()),
        ])
    }

    /// Converts the failure to a JSON-RPC error, with the message as text and the rest as data.
    pub(crate) fn into_protocol_error(self) -> ProtocolError {
        let error = ErrorObject::new(INTERNAL_ERROR, sentences(&self.message, LONGEST));
        ProtocolError::Other(error.with_data(self.to_json(None)))
    }

    fn text(&self) -> String {
        self.to_json(Some(sentences(&self.message, LONGEST))).to_string()
    }

    /// Converts the failure to a tool result.
    pub(crate) fn into_result(self) -> CallToolResult {
        CallToolResult::error(self.text())
    }
}

/// Returns the beginning of a text, at most this many bytes.
fn beginning(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let longest = most.saturating_sub("…".len());
    let end = (0..=longest).rev().find(|end| text.is_char_boundary(*end));
    format!("{}…", text.get(..end.unwrap_or_default()).unwrap_or_default())
}

/// Returns the error message in a response, in the formats that services use.
fn message_in(value: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().map(plain_text).filter(|text| !text.is_empty());
    let named = |value: &Value| {
        let names = ["message", "detail", "error_description", "description", "title", "msg", "reason"];
        names.iter().find_map(|name| value.get(name).and_then(text))
    };
    let several = |value: &Value| {
        let said: Vec<String> = match value {
            Value::Array(errors) => {
                errors.iter().take(5).filter_map(|error| text(error).or_else(|| named(error))).collect()
            }
            // Errors of fields: {"name": ["is too long"]}
            Value::Object(fields) => fields
                .iter()
                .take(5)
                .map(|(name, value)| {
                    let value = value.get(0).unwrap_or(value);
                    format!(
                        "{}: {}",
                        plain_text(name),
                        text(value).unwrap_or_else(|| plain_text(&value.to_string()))
                    )
                })
                .collect(),
            _ => Vec::new(),
        };
        Some(said.join("; ")).filter(|said| !said.is_empty())
    };
    if let Value::String(said) = value {
        return Some(sentences(&plain_text(said), LONGEST));
    }
    let error = value.get("error").or_else(|| value.get("Error")).or_else(|| value.get("odata.error"));
    let inner = error.and_then(|error| match error {
        Value::String(_) => None,
        // OData 3 uses {"message": {"value": …}}.
        error => named(error).or_else(|| error.pointer("/message/value").and_then(text)),
    });
    // In problem documents, the title names the problem and the detail explains it.
    let main = inner.or_else(|| named(value)).or_else(|| error.and_then(text));
    let errors = value.get("errors").or_else(|| value.get("details")).and_then(several);
    let said = match (main, errors) {
        (Some(main), Some(errors)) if !main.contains(&errors) => format!("{main} ({errors})"),
        (Some(main), _) => main,
        (None, Some(errors)) => errors,
        (None, None) => several(value).or_else(|| Some(plain_text(&value.to_string())))?,
    };
    Some(sentences(&said, LONGEST))
}

/// Returns the error code of the service.
fn code_in(value: &Value) -> Option<String> {
    let error = value.get("error").or_else(|| value.get("odata.error")).unwrap_or(value);
    let names = ["code", "errorCode", "error_code", "type"];
    let found = names.iter().find_map(|name| match error.get(name).or_else(|| value.get(name))? {
        Value::String(text) if !text.is_empty() && text != "about:blank" => Some(plain_text(text)),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    let plain_error = || value.get("error").and_then(Value::as_str).map(plain_text);
    found.or_else(plain_error).map(|code| sentences(&code, 120))
}

#[cfg(test)]
mod tests;
