//! [`BlobError`]: why a blob could not be read or written.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bindpost_azure_hosting::identity::IdentityError;
use reqwest::StatusCode;

use super::path::BlobPath;

/// A failed read or write of a blob.
///
/// Its text is for the operator: it names the blob, the service and the service's error code. Clients get
/// [`client_message`](BlobError::client_message).
#[derive(Debug)]
pub struct BlobError {
    doing: BlobOperation,
    failure: BlobFailure,
    tries: u32,
}

/// The operation that failed.
#[derive(Debug, Clone)]
pub(crate) enum BlobOperation {
    Open,
    Read(BlobPath),
    Write(BlobPath),
}

/// The cause of a failure, independent of the operation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BlobFailure {
    #[error("{service} cannot be reached: {causes}")]
    Unreachable { service: String, causes: String },
    #[error("the connection to {service} broke: {causes}")]
    Broken { service: String, causes: String },
    #[error(
        "{service} does not send the length of the blob, so a truncated blob could not be detected; check the \
         endpoint and proxies in front of it"
    )]
    NoLength { service: String },
    #[error("the storage service answered {}{}", status.as_u16(), explained(*status, code.as_deref()))]
    Answer { status: StatusCode, code: Option<String>, retry_after: Option<Duration> },
    #[error("its container does not exist, and creating it failed: {0}")]
    Container(Box<BlobFailure>),
    #[error("it took longer than {}", seconds(*.0))]
    TimedOut(Duration),
    #[error("the blob is larger than the limit of {0} bytes")]
    TooLarge(usize),
    #[error("no access token: {0}")]
    Identity(#[from] IdentityError),
    #[error("the HTTP client cannot start: {0}")]
    Client(String),
    #[error("{}: {}", path.display(), disk_error_text(source))]
    Disk { path: PathBuf, source: io::Error },
    #[error("{} is a link or a special file; remove it, the store allows only plain files and folders", .0.display())]
    Planted(PathBuf),
    #[error("the program is stopping")]
    Stopping,
}

impl BlobError {
    pub(crate) fn new(doing: BlobOperation, failure: BlobFailure) -> BlobError {
        BlobError { doing, failure, tries: 1 }
    }

    pub(crate) fn with_tries(self, tries: u32) -> BlobError {
        BlobError { tries, ..self }
    }

    /// Returns the message for clients. It contains no account, address, path on disk or secret.
    pub fn client_message(&self) -> String {
        let what = match self.doing {
            BlobOperation::Open => "The blob storage cannot be used",
            BlobOperation::Read(_) => "The blob could not be read",
            BlobOperation::Write(_) => "The blob could not be written",
        };
        format!("{what}: {}.", self.failure.client_message())
    }

    /// Returns whether the operation exceeded the time limit.
    pub fn is_timeout(&self) -> bool {
        matches!(self.failure, BlobFailure::TimedOut(_))
    }
}

impl fmt::Display for BlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.doing {
            BlobOperation::Open => write!(f, "cannot open the blob store: {}", self.failure)?,
            BlobOperation::Read(path) => write!(f, "cannot read the blob {path}: {}", self.failure)?,
            BlobOperation::Write(path) => write!(f, "cannot write the blob {path}: {}", self.failure)?,
        }
        if self.tries > 1 {
            write!(f, " (after {} tries)", self.tries)?;
        }
        Ok(())
    }
}

impl std::error::Error for BlobError {}

impl BlobFailure {
    /// Returns whether a retry of the same request may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            BlobFailure::Unreachable { .. } | BlobFailure::Broken { .. } => true,
            BlobFailure::Answer { status, code, .. } => {
                matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
                    || code.as_deref() == Some("ContainerBeingDeleted")
            }
            BlobFailure::Identity(error) => error.is_transient(),
            BlobFailure::Container(inner) => inner.is_transient(),
            _ => false,
        }
    }

    /// Returns how long the service asks us to wait.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            BlobFailure::Answer { retry_after, .. } => *retry_after,
            BlobFailure::Container(inner) => inner.retry_after(),
            _ => None,
        }
    }

    fn client_message(&self) -> &'static str {
        match self {
            BlobFailure::Unreachable { .. } => "the storage service cannot be reached",
            BlobFailure::Broken { .. } => "the connection to the storage service broke",
            BlobFailure::Answer { status, .. } => match status.as_u16() {
                401 | 403 => "the storage service refused access",
                408 | 429 | 500..=599 => "the storage service is not available at the moment",
                _ => "the storage service refused the request",
            },
            BlobFailure::NoLength { .. } => "the response of the storage service is not complete",
            BlobFailure::Container(inner) => inner.client_message(),
            BlobFailure::TimedOut(_) => "it took too long",
            BlobFailure::TooLarge(_) => "it is too large",
            BlobFailure::Identity(_) => "the server could not sign in to the storage service",
            BlobFailure::Client(_) => "the server cannot make requests",
            BlobFailure::Disk { source, .. } if is_full(source) => "the server's disk is full",
            BlobFailure::Disk { .. } | BlobFailure::Planted(_) => "the server's disk rejected it",
            BlobFailure::Stopping => "the server is stopping",
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

fn disk_error_text(error: &io::Error) -> String {
    match error.kind() {
        _ if is_full(error) => format!("the disk is full or the quota is used up ({error}); make room"),
        io::ErrorKind::PermissionDenied => {
            format!("permission denied ({error}); give this user read and write access to the folder")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            format!("the file system is read-only ({error}); set a storage connection instead")
        }
        _ => error.to_string(),
    }
}

/// Returns the service's error code and its most likely cause.
fn explained(status: StatusCode, code: Option<&str>) -> String {
    let named = code.map(|code| format!(" ({code})")).unwrap_or_default();
    let meaning = match (status.as_u16(), code) {
        (403, Some("AuthenticationFailed")) => {
            "; the account key or the SAS token is wrong or has expired, or this machine's clock is off"
        }
        (403, Some("AuthorizationPermissionMismatch" | "AuthorizationFailure")) => {
            "; the identity needs the role Storage Blob Data Contributor, a SAS token its permissions, and a \
             firewall of the account must allow this machine"
        }
        (401, _) => "; the service does not accept this kind of credential",
        (404, None) => "; that does not look like a blob service, check the endpoint",
        (300..=399, _) => "; redirects are not followed, check the endpoint",
        _ => "",
    };
    format!("{named}{meaning}")
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_error_names_a_fix_and_clients_see_no_path() {
        for (kind, told, shown) in [
            (io::ErrorKind::StorageFull, "make room", "disk is full"),
            (io::ErrorKind::QuotaExceeded, "make room", "disk is full"),
            (io::ErrorKind::PermissionDenied, "read and write access", "disk rejected it"),
            (io::ErrorKind::ReadOnlyFilesystem, "set a storage connection", "disk rejected it"),
        ] {
            let failure = BlobFailure::Disk { path: "/some/app/abc".into(), source: kind.into() };
            assert!(!failure.is_transient());
            let error = BlobError::new(BlobOperation::Write(BlobPath::parse("abc/a").unwrap()), failure);
            assert!(error.to_string().contains("/some/app/abc"), "{error}");
            assert!(error.to_string().contains("abc/a") && error.to_string().contains(told), "{error}");
            assert!(
                error.client_message().contains(shown) && !error.client_message().contains("/some"),
                "{}",
                error.client_message()
            );
        }
    }
}
