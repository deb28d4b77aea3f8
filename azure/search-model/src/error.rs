//! Errors for clients, in the format of Azure AI Search.

use std::io;

use bindpost_net_json::{ObjectReader, PlaceError};
use http::StatusCode;

/// An error response: a status and `{"error":{"code":…,"message":…}}`.
///
/// The message explains what is wrong, where, and how to fix it. It never contains a local path or a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
    /// More specific errors, if there are several or if the place has a name.
    pub details: Vec<ErrorDetail>,
}

/// One of several errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorDetail {
    pub code: &'static str,
    pub message: String,
}

impl ApiError {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: Vec::new() }
    }

    /// Creates an error for an invalid request, with status 400.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidRequestParameter", message)
    }

    /// Creates an error for an invalid parameter, with status 400. The message ends with
    /// `Parameter name: …`.
    pub fn parameter(name: &str, message: impl std::fmt::Display) -> Self {
        Self::invalid(format!("{message}\r\nParameter name: {name}"))
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "ResourceNotFound", message)
    }

    pub fn already_exists(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "ResourceNameAlreadyInUse", message)
    }

    /// Creates an error for a failed If-Match or If-None-Match condition, with status 412.
    pub fn precondition_failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, "PreconditionFailed", message)
    }

    /// Creates an error for a feature of Azure that this service does not support, with status 400. The
    /// message suggests an alternative.
    pub fn not_supported(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "NotSupportedByEmbeddedService", message)
    }

    /// Creates an error for a failure of this service, such as a damaged store. `source` is logged and
    /// not sent to the client.
    pub fn internal(doing: &'static str, source: impl std::fmt::Display) -> Self {
        tracing::error!(%source, "{doing} failed");
        let message = format!("The service failed while {doing}. See its log for the cause.");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
    }

    /// Creates an error for a full disk, with status 507.
    pub fn disk_full() -> Self {
        let message = "The disk of the service is full. Free some space and send the request again.";
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", message)
    }

    /// Creates an error for a failed file operation: a full disk, or an internal error.
    pub fn storage(doing: &'static str, source: &io::Error) -> Self {
        if is_disk_full(source) { Self::disk_full() } else { Self::internal(doing, source) }
    }

    #[must_use]
    pub fn with_detail(mut self, code: &'static str, message: impl Into<String>) -> Self {
        self.details.push(ErrorDetail { code, message: message.into() });
        self
    }
}

impl From<PlaceError> for ApiError {
    fn from(error: PlaceError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// The body of a request, or its query parameters with the names of the body.
pub type RequestObject<'a> = ObjectReader<'a, ParameterError>;

/// An error of [`RequestObject`], which becomes an error about the parameter.
#[derive(Debug)]
pub struct ParameterError(PlaceError);

impl From<PlaceError> for ParameterError {
    fn from(error: PlaceError) -> Self {
        Self(error)
    }
}

impl From<ParameterError> for ApiError {
    fn from(ParameterError(error): ParameterError) -> Self {
        match error.place.path.as_str() {
            "" => error.into(),
            path => Self::parameter(path, &error),
        }
    }
}

/// Returns whether the error means that the disk is full.
pub fn is_disk_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
