//! Failed calls of the search service: the kind, the message of the service, and a hint.

use bindpost_mcp_openapi::CursorError;
pub use bindpost_mcp_openapi::FailureKind as Kind;
use bindpost_mcp_server::ToolError;
use bindpost_net_upstream::{UpstreamError, UpstreamResponse};
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use crate::tools::builder::{into_members, shortened};

/// Maximum length of a message of the service, in characters.
const LONGEST_MESSAGE: usize = 2_000;
/// Maximum number of details of the service's error.
const MAX_DETAILS: usize = 20;

/// A failed call of the service.
#[derive(Clone, Debug)]
pub struct ServiceFailure {
    pub kind: Kind,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The error code of the service, often empty.
    pub code: Option<String>,
    pub message: String,
    /// The service's id of the request (`request-id`).
    pub request_id: Option<String>,
    /// Further members for the client, such as `currentETag`, `differences` or `retryAfter`.
    pub more: Map<String, Value>,
}

impl ServiceFailure {
    /// Creates a failure of this server, without a response of the service.
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

    /// Creates the failure from an error response. `body` is `None` if it is not JSON.
    pub(crate) fn from_response(incoming: &UpstreamResponse, body: Option<&Value>) -> ServiceFailure {
        let UpstreamResponse { status, headers, .. } = incoming;
        let status = *status;
        let error = body.and_then(|body| body.get("error"));
        let said = |name: &str| Some(error?.get(name)?.as_str()?.to_owned()).filter(|text| !text.is_empty());
        let message = said("message").unwrap_or_else(|| match body {
            Some(_) => format!("the service answered {status} without a reason"),
            None => format!("the service answered {status} with a body that is not JSON"),
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
            let details: Vec<Value> = details.iter().take(MAX_DETAILS).map(detail).collect();
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

    /// Adds a member for the client.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> ServiceFailure {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the failure as clients receive it.
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
    /// Uses a text of our own if an error contains a detail, because the detail may contain a URL. The
    /// detail is logged.
    fn from(error: UpstreamError) -> ServiceFailure {
        tracing::warn!(%error, "the call of the search service failed");
        match error {
            UpstreamError::Address(_) => {
                ServiceFailure::new(Kind::ServerError, "the URL of the service is invalid")
                    .with("hint", "The operator of this server must correct the URL.")
            }
            UpstreamError::Unreachable(_) => ServiceFailure::new(
                Kind::ServerError,
                "the service cannot be reached",
            )
            .with(
                "hint",
                "Nothing was changed. Try again later. If it still fails, the operator of this server must check the connection.",
            ),
            UpstreamError::TimedOut(_) => ServiceFailure::new(Kind::ServerError, error.to_string())
                .with("hint", "The request may have been executed. Check the current state before you retry."),
            UpstreamError::TooLarge(_) => ServiceFailure::new(Kind::InvalidRequest, error.to_string())
                .with("hint", "Request less: a smaller `limit`, or fewer members in `select`."),
            UpstreamError::NoCredential(_) => {
                ServiceFailure::new(Kind::Unauthorized, "no credential for the service")
                    .with("hint", "The operator of this server must configure a key or an identity.")
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
    /// Returns the JSON as text. Failures have no structured content, because clients validate it
    /// against the output schema.
    fn from(failure: ServiceFailure) -> ToolError {
        ToolError::new(format!("{:#}", failure.to_json()))
    }
}

/// Returns the useful members of one detail of the service's error.
fn detail(detail: &Value) -> Value {
    let members = ["code", "message", "target"].into_iter();
    let said = members.filter_map(|name| {
        let text = detail.get(name)?.as_str().filter(|text| !text.is_empty())?;
        Some((name.to_owned(), Value::from(shortened(text, LONGEST_MESSAGE))))
    });
    Value::Object(said.collect())
}

/// Returns a hint for this status, if there is one.
fn hint(status: StatusCode, is_json: bool) -> Option<&'static str> {
    Some(match status.as_u16() {
        401 => {
            "The service requires a credential that this server does not have. The operator of this server must configure one."
        }
        403 => {
            "The credential of this server does not allow this. A query key can only search, suggest, complete, look up \
             and count documents. Everything else needs an admin key or a role, which the operator of this server must configure."
        }
        404 if !is_json => "The URL may not be that of a search service.",
        429 => "The service throttles requests. Wait, then retry.",
        503 => "The service is busy or not ready. Wait, then retry.",
        _ => return None,
    })
}

/// Returns a header as text.
pub(crate) fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}
