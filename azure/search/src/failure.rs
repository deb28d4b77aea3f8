//! How a failed call of the service is told: the kind, what the service said, and how to go on.

use bindpost_mcp_openapi::UpstreamError;
use bindpost_mcp_server::ToolError;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

/// A call of the service that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: Kind,
    /// The status, if there was an answer.
    pub status: Option<u16>,
    /// The service's own code; often empty.
    pub code: Option<String>,
    pub message: String,
    /// The service's id of the request (`request-id`).
    pub request_id: Option<String>,
    /// What else a client should know, such as `currentETag`, `differences` or `retryAfter`.
    pub more: serde_json::Map<String, Value>,
}

/// What kind of failure it is: the words that clients are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    InvalidRequest,
    Unauthorized,
    ResourceNotFound,
    Conflict,
    RateLimited,
    ServerError,
    UnknownError,
}

impl Kind {
    /// The kind of a status. The service's code is often empty, so the status decides.
    pub fn of(status: StatusCode) -> Kind {
        match status.as_u16() {
            400 | 405 | 413 | 415 | 422 => Kind::InvalidRequest,
            401 | 403 => Kind::Unauthorized,
            404 => Kind::ResourceNotFound,
            409 | 412 => Kind::Conflict,
            429 => Kind::RateLimited,
            500.. => Kind::ServerError,
            _ => Kind::UnknownError,
        }
    }
}

impl Failure {
    /// A failure of our own, before or after the service was asked.
    pub fn new(kind: Kind, message: impl Into<String>) -> Failure {
        Failure {
            kind,
            status: None,
            code: None,
            message: message.into(),
            request_id: None,
            more: Default::default(),
        }
    }

    /// Adds something a client should know.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Failure {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// As clients are told.
    pub fn to_json(&self) -> Value {
        let mut told = json!({"error": self.kind, "message": self.message});
        if let Some(object) = told.as_object_mut() {
            let optional = [
                ("status", self.status.map(Value::from)),
                ("code", self.code.clone().map(Value::from)),
                ("requestId", self.request_id.clone().map(Value::from)),
            ];
            object.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
            object.extend(self.more.clone());
        }
        told
    }
}

impl From<UpstreamError> for Failure {
    fn from(error: UpstreamError) -> Failure {
        Failure::new(Kind::ServerError, error.to_string())
    }
}

impl From<Failure> for ToolError {
    /// The JSON as text: structured content is left out of failures, because clients check it against the output schema.
    fn from(failure: Failure) -> ToolError {
        ToolError::new(format!("{:#}", failure.to_json()))
    }
}
