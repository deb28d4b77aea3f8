//! How a failed call of the service is told: the kind, what the service said, and how to go on.

pub use bindpost_mcp_openapi::FailureKind as Kind;
use bindpost_mcp_openapi::{CursorError, UpstreamError, UpstreamResponse};
use bindpost_mcp_server::ToolError;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use crate::tool::{into_members, shortened};

/// As much of a message of the service as is told, in characters.
const LONGEST_MESSAGE: usize = 2_000;
/// As many details of the service's error as are told.
const MOST_DETAILS: usize = 20;

/// A call of the service that failed.
#[derive(Clone, Debug)]
pub struct ServiceFailure {
    pub kind: Kind,
    /// The status, if there was an answer.
    pub status: Option<u16>,
    /// The service's own code; often empty.
    pub code: Option<String>,
    pub message: String,
    /// The service's id of the request (`request-id`).
    pub request_id: Option<String>,
    /// What else a client should know, such as `currentETag`, `differences` or `retryAfter`.
    pub more: Map<String, Value>,
}

impl ServiceFailure {
    /// A failure of our own, before or after the service was asked.
    pub fn new(kind: Kind, message: impl Into<String>) -> ServiceFailure {
        ServiceFailure {
            kind,
            status: None,
            code: None,
            message: message.into(),
            request_id: None,
            more: Default::default(),
        }
    }

    /// What an answer of the service says that is a failure; `body` is `None` if it is not JSON.
    pub(crate) fn from_response(incoming: &UpstreamResponse, body: Option<&Value>) -> ServiceFailure {
        let UpstreamResponse { status, headers, .. } = incoming;
        let status = *status;
        let error = body.and_then(|body| body.get("error"));
        let said = |name: &str| Some(error?.get(name)?.as_str()?.to_owned()).filter(|text| !text.is_empty());
        let message = said("message").unwrap_or_else(|| match body {
            Some(_) => format!("the service answered {status} and no reason"),
            None => format!("the service answered {status} and something that is not JSON"),
        });
        let mut failure =
            ServiceFailure::new(Kind::from_status(status), shortened(&message, LONGEST_MESSAGE));
        failure.status = Some(status.as_u16());
        failure.code = said("code").map(|code| shortened(&code, LONGEST_MESSAGE));
        failure.request_id = header_text(headers, "request-id");
        if let Some(target) = said("target") {
            failure = failure.with("target", shortened(&target, LONGEST_MESSAGE));
        }
        let details = error.and_then(|error| error.get("details")).and_then(Value::as_array);
        if let Some(details) = details.filter(|details| !details.is_empty()) {
            let details: Vec<Value> = details.iter().take(MOST_DETAILS).map(detail).collect();
            failure = failure.with("details", details);
        }
        if let Some(wait) = incoming.retry_after.filter(|_| matches!(status.as_u16(), 429 | 503)) {
            failure = failure.with("retryAfter", wait.as_secs());
        }
        match hint(status, body.is_some()) {
            Some(hint) => failure.with("hint", hint),
            None => failure,
        }
    }

    /// Adds something a client should know.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> ServiceFailure {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// As clients are told.
    pub fn to_json(&self) -> Value {
        let mut told = into_members(json!({"error": self.kind, "message": self.message}));
        let optional = [
            ("status", self.status.map(Value::from)),
            ("code", self.code.clone().map(Value::from)),
            ("requestId", self.request_id.clone().map(Value::from)),
        ];
        told.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        told.extend(self.more.clone());
        Value::Object(told)
    }
}

impl From<UpstreamError> for ServiceFailure {
    /// The texts are our own where an error carries a detail: it may name an address. The detail goes to the log.
    fn from(error: UpstreamError) -> ServiceFailure {
        tracing::warn!(%error, "the service did not answer");
        match error {
            UpstreamError::Address(_) => {
                ServiceFailure::new(Kind::ServerError, "the address of the service cannot be used")
                    .with("hint", "Whoever runs this server has to correct the address.")
            }
            UpstreamError::Unreachable(_) => ServiceFailure::new(
                Kind::ServerError,
                "the service cannot be reached",
            )
            .with(
                "hint",
                "Nothing was done. Try again later; if it stays so, whoever runs this server has to look.",
            ),
            UpstreamError::TimedOut(_) => ServiceFailure::new(Kind::ServerError, error.to_string())
                .with("hint", "What was asked may have been done all the same: look before you try again."),
            UpstreamError::TooLarge(_) => ServiceFailure::new(Kind::InvalidRequest, error.to_string())
                .with("hint", "Ask for less: a smaller `limit`, a `select` of fewer members."),
            UpstreamError::NoCredential(_) => {
                ServiceFailure::new(Kind::Unauthorized, "there is no credential for the service")
                    .with("hint", "Whoever runs this server has to give it a key or an identity.")
            }
            other => ServiceFailure::new(Kind::ServerError, other.to_string()),
        }
    }
}

impl From<CursorError> for ServiceFailure {
    fn from(error: CursorError) -> ServiceFailure {
        ServiceFailure::new(Kind::InvalidRequest, error.to_string())
    }
}

impl From<ServiceFailure> for ToolError {
    /// The JSON as text: structured content is left out of failures, because clients check it against the output schema.
    fn from(failure: ServiceFailure) -> ToolError {
        ToolError::new(format!("{:#}", failure.to_json()))
    }
}

/// One detail of the service's error: what a reader can use of it.
fn detail(detail: &Value) -> Value {
    let members = ["code", "message", "target"].into_iter();
    let said = members.filter_map(|name| {
        let text = detail.get(name)?.as_str().filter(|text| !text.is_empty())?;
        Some((name.to_owned(), Value::from(shortened(text, LONGEST_MESSAGE))))
    });
    Value::Object(said.collect())
}

/// How to go on, where the status alone says it.
fn hint(status: StatusCode, is_json: bool) -> Option<&'static str> {
    Some(match status.as_u16() {
        401 => {
            "The service wants a credential that this server does not have; whoever runs it has to give it one."
        }
        403 => {
            "The credential of this server does not allow this. A query key only searches, suggests, completes, looks up \
             and counts documents; everything else needs an admin key or a role, which whoever runs the server has to give it."
        }
        404 if !is_json => "Perhaps the address is not one of a search service.",
        429 => "The service has too much to do. Wait, then try again.",
        503 => "The service is busy or not ready. Wait, then try again.",
        _ => return None,
    })
}

/// A header as text.
pub(crate) fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}
