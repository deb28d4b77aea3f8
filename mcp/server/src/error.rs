//! The two kinds of failure: the tool ran and failed ([`ToolError`]), or the request
//! was invalid ([`ProtocolError`]).

pub(crate) mod conversion;

use std::error::Error;
use std::fmt;

use bindpost_mcp_protocol::jsonrpc::{
    HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
};
use bindpost_mcp_protocol::{ErrorObject, Revision};
use serde_json::{Value, json};

use crate::call::answer::RejectionKind;
use crate::handler::schema::shorten;

/// The code of "try again later", outside the range that JSON-RPC and MCP reserve.
const BUSY: i64 = 429;
const UNAVAILABLE: i64 = 503;

/// The tool ran and failed. The model reads the message and may try again. The source goes to the log only.
#[derive(Debug)]
pub struct ToolError(ToolFailure);

#[derive(Debug)]
pub(crate) enum ToolFailure {
    /// A failure that the model reads as a result with `isError`.
    Shown { shown: String, source: Option<Box<dyn Error + Send + Sync>> },
    /// A failure that is sent as a JSON-RPC error.
    Protocol(ProtocolError),
}

impl ToolError {
    /// Returns a failure with a message for the model. The message must not contain secrets or paths.
    pub fn new(shown: impl Into<String>) -> ToolError {
        ToolError(ToolFailure::Shown { shown: shown.into(), source: None })
    }

    /// Returns a failure with a message for the model and a cause, which goes to the log only.
    pub fn with_source(
        shown: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> ToolError {
        ToolError(ToolFailure::Shown { shown: shown.into(), source: Some(source.into()) })
    }

    pub(crate) fn into_failure(self) -> ToolFailure {
        self.0
    }
}

/// Returns the text of an error and of its causes. A cause whose text its error has already is left out.
pub(crate) fn describe_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ToolFailure::Shown { shown, .. } => f.write_str(shown),
            ToolFailure::Protocol(error) => error.fmt(f),
        }
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            ToolFailure::Shown { source, .. } => source.as_deref().map(|source| source as _),
            ToolFailure::Protocol(error) => Some(error),
        }
    }
}

/// The request was invalid or cannot be served. The client gets a JSON-RPC error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The revision has no such method, or the server does not offer its capability.
    #[error("method not found: {0}")]
    UnknownMethod(String),
    /// No tool has that name.
    #[error("unknown tool: {0}")]
    UnknownTool(String),
    /// No prompt has that name.
    #[error("unknown prompt: {0}")]
    UnknownPrompt(String),
    /// No resource or template matches that URI.
    #[error("resource not found: {0}")]
    UnknownResource(String),
    /// A parameter is missing or invalid.
    #[error("invalid params for {method}: {reason}")]
    InvalidParams {
        /// The method of the request.
        method: String,
        /// The parameter and what is wrong with it.
        reason: String,
    },
    /// A stateless request lacks required members of `_meta`.
    #[error("invalid params: {0}")]
    BrokenEnvelope(String),
    /// The requested revision is not supported, or not in this way.
    #[error("unsupported protocol version: {requested}; supported: {}", join_revisions(.supported))]
    UnsupportedVersion {
        /// The revision that the client named.
        requested: String,
        /// The revisions that it can use instead.
        supported: Vec<Revision>,
    },
    /// The request needs a capability that the client did not declare.
    #[error("this request needs a client capability that was not declared: {0}")]
    MissingCapability(Value),
    /// A header and the body disagree.
    #[error("header mismatch: {0}")]
    HeaderMismatch(String),
    /// Too many calls, tasks or listeners are active. The client should retry later.
    #[error("the server is busy; try again in {retry_after_seconds} s")]
    Busy {
        /// The number of seconds after which the client should retry.
        retry_after_seconds: u32,
    },
    /// The byte budget for clients is exhausted. The client should retry later.
    #[error("the memory budget of the server is exhausted; try again in {retry_after_seconds} s")]
    Overloaded {
        /// The number of seconds after which the client should retry.
        retry_after_seconds: u32,
    },
    /// The server failed. The reason is in the log.
    #[error("internal error: {0}")]
    Internal(String),
    /// An error with a code of its own.
    #[error("{0}")]
    Other(ErrorObject),
}

impl ProtocolError {
    /// Returns the error for an invalid parameter of a method.
    pub fn invalid_params(method: &str, reason: impl Into<String>) -> ProtocolError {
        ProtocolError::InvalidParams { method: method.to_owned(), reason: reason.into() }
    }

    /// Returns the error for a revision that a server with these revisions does not support. It names the
    /// modern ones, which `server/discover` lists too, or the legacy ones if the server has no others.
    pub(crate) fn unsupported_version(requested: impl Into<String>, served: &[Revision]) -> ProtocolError {
        let modern = || served.iter().copied().filter(|revision| !revision.has_handshake());
        let supported = if modern().next().is_some() { modern().collect() } else { served.to_vec() };
        ProtocolError::UnsupportedVersion { requested: requested.into(), supported }
    }

    /// Returns the JSON-RPC error object for a client of this revision.
    pub fn to_object(&self, revision: Revision) -> ErrorObject {
        let message = shorten(&self.to_string());
        match self {
            ProtocolError::UnknownMethod(method) => {
                ErrorObject::new(METHOD_NOT_FOUND, message).with_data(json!({"method": shorten(method)}))
            }
            ProtocolError::UnknownResource(uri) => {
                ErrorObject::new(revision.resource_not_found_code(), message).with_data(json!({"uri": uri}))
            }
            ProtocolError::UnknownTool(_)
            | ProtocolError::UnknownPrompt(_)
            | ProtocolError::InvalidParams { .. }
            | ProtocolError::BrokenEnvelope(_) => ErrorObject::new(INVALID_PARAMS, message),
            ProtocolError::UnsupportedVersion { requested, supported } => {
                let supported: Vec<&str> = supported.iter().map(|revision| revision.as_str()).collect();
                ErrorObject::new(UNSUPPORTED_PROTOCOL_VERSION, message)
                    .with_data(json!({"supported": supported, "requested": shorten(requested)}))
            }
            ProtocolError::MissingCapability(required) => {
                ErrorObject::new(MISSING_CLIENT_CAPABILITY, message)
                    .with_data(json!({"requiredCapabilities": required}))
            }
            ProtocolError::HeaderMismatch(_) => ErrorObject::new(HEADER_MISMATCH, message),
            ProtocolError::Busy { retry_after_seconds } => ErrorObject::new(BUSY, message)
                .with_data(json!({"retryAfterMs": u64::from(*retry_after_seconds) * 1000})),
            ProtocolError::Overloaded { retry_after_seconds } => ErrorObject::new(UNAVAILABLE, message)
                .with_data(json!({"retryAfterMs": u64::from(*retry_after_seconds) * 1000})),
            ProtocolError::Internal(_) => ErrorObject::new(INTERNAL_ERROR, message),
            // Codes that 2026-07-28 removed.
            ProtocolError::Other(object)
                if !revision.has_handshake() && [-32002, -32042].contains(&object.code) =>
            {
                ErrorObject { code: INVALID_PARAMS, ..object.clone() }
            }
            ProtocolError::Other(object) => object.clone(),
        }
    }

    /// Returns the kind of rejection, for transports with their own status codes.
    pub(crate) fn rejection_kind(&self) -> RejectionKind {
        match self {
            ProtocolError::UnknownMethod(_) => RejectionKind::UnknownMethod,
            ProtocolError::BrokenEnvelope(_)
            | ProtocolError::UnsupportedVersion { .. }
            | ProtocolError::MissingCapability(_)
            | ProtocolError::HeaderMismatch(_) => RejectionKind::BadRequest,
            ProtocolError::Busy { retry_after_seconds } => {
                RejectionKind::Busy { retry_after_seconds: *retry_after_seconds }
            }
            ProtocolError::Overloaded { retry_after_seconds } => {
                RejectionKind::Overloaded { retry_after_seconds: *retry_after_seconds }
            }
            _ => RejectionKind::InBand,
        }
    }
}

fn join_revisions(revisions: &[Revision]) -> String {
    let revisions: Vec<&str> = revisions.iter().map(|revision| revision.as_str()).collect();
    revisions.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum LoanError {
        #[error("the database")]
        Database(#[from] std::io::Error),
        #[error("not found: {0}")]
        Repeated(#[source] std::io::Error),
    }

    #[test]
    fn a_chain_has_every_cause_once() {
        let refused = || std::io::Error::other("10.0.0.7 refused the connection");
        let error = LoanError::Database(refused());
        assert_eq!(describe_chain(&error), "the database: 10.0.0.7 refused the connection");
        let error = LoanError::Repeated(refused());
        assert_eq!(describe_chain(&error), "not found: 10.0.0.7 refused the connection");
        assert_eq!(describe_chain(&refused()), "10.0.0.7 refused the connection");
    }
}
