//! What a client is told when something is wrong, in the shape that Azure AI Search gives it.

use std::io;

use http::StatusCode;

/// One refusal: `{"error":{"code":…,"message":…}}` with a status.
///
/// The message says what is wrong, where, and how to fix it. It never holds a path of this machine or a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
    /// Finer reasons, when there are several or when the place has a name.
    pub details: Vec<ErrorDetail>,
}

/// One reason among several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorDetail {
    pub code: &'static str,
    pub message: String,
}

impl ApiError {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: Vec::new() }
    }

    /// The request is wrong: 400.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidRequestParameter", message)
    }

    /// One argument of the request is wrong: 400 with its name, as `Invalid expression: …` and `parameter name`.
    pub fn parameter(name: &str, message: impl std::fmt::Display) -> Self {
        Self::invalid(format!("{message}\r\nParameter name: {name}"))
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "ResourceNotFound", message)
    }

    pub fn already_exists(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "ResourceNameAlreadyInUse", message)
    }

    /// If-Match or If-None-Match does not hold: 412.
    pub fn precondition_failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, "PreconditionFailed", message)
    }

    /// What Azure can do and this service cannot: 400, and the message says what to do instead.
    pub fn not_supported(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "NotSupportedByEmbeddedService", message)
    }

    /// Our own fault (a disk that is full, a store that is damaged). `source` goes to the log, not to the client.
    pub fn internal(doing: &'static str, source: impl std::fmt::Display) -> Self {
        tracing::error!(%source, "{doing} failed");
        let message = format!("The service failed while {doing}. Its log says why.");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
    }

    /// There is no room on the disk: 507.
    pub fn disk_full() -> Self {
        let message = "The disk of the service is full. Free some space and send the request again.";
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", message)
    }

    /// An error of a file: that of a full disk, or our own fault.
    pub fn storage(doing: &'static str, source: &io::Error) -> Self {
        if is_disk_full(source) { Self::disk_full() } else { Self::internal(doing, source) }
    }

    #[must_use]
    pub fn with_detail(mut self, code: &'static str, message: impl Into<String>) -> Self {
        self.details.push(ErrorDetail { code, message: message.into() });
        self
    }
}

/// Whether there was no room for something on the disk.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
