//! Why there is no answer.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use super::reserved::ReservedAddressError;

/// Why there is no answer. The texts are for the model: they name no address and no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The base address, or what was made of it, is no address.
    #[error("the address of the service cannot be used: {0}")]
    Address(String),
    /// Nobody answered.
    #[error("the service cannot be reached: {0}")]
    Unreachable(String),
    /// The answer took too long.
    #[error("the service did not answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The answer is too long.
    #[error("the answer of the service has more than {0} bytes; ask for less")]
    TooLarge(usize),
    /// The service sent us elsewhere.
    #[error(
        "the service redirects to another origin, which is not followed; if it has moved, the operator has to \
         change its base address"
    )]
    Redirected,
    /// The service sent us to something that may not be asked for.
    #[error("the service redirects to {to}, which is not followed: {reason}")]
    #[allow(missing_docs, reason = "the message says it")]
    RedirectRefused { to: String, reason: String },
    /// The service sent us around.
    #[error("the service redirects again and again, and gives no answer")]
    RedirectLoop,
    /// There is no credential.
    #[error("there is no credential for the service")]
    NoCredential(String),
}

impl UpstreamError {
    pub(super) fn reserved() -> UpstreamError {
        UpstreamError::Address(
            "it is a link-local address or one of a metadata service, which gives credentials to programs on this \
             machine, and a document may not lead there; if it is meant, the operator has to give it as the base address"
                .to_owned(),
        )
    }

    pub(super) fn exposed() -> UpstreamError {
        UpstreamError::Address(
            "credentials are not sent over plain http to another machine; write https, or allow it"
                .to_owned(),
        )
    }
}

/// A try that got no answer.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// There was no connection, so nothing was processed.
    Unconnected(String),
    /// There was one and it broke: whether the request was processed is not known.
    Cut(String),
    /// Another try would end the same way.
    Final(UpstreamError),
}

impl AttemptError {
    /// What the HTTP client says, in words that name no address: its own may, those about certificates do.
    pub(super) fn from_reqwest(error: reqwest::Error, connect: Duration) -> AttemptError {
        let (connecting, late, decoding) = (error.is_connect(), error.is_timeout(), error.is_decode());
        let unusable = error.is_builder();
        if has_cause::<ReservedAddressError>(&error) {
            return AttemptError::Final(UpstreamError::reserved());
        }
        let kind = io_kind(&error);
        let causes = causes(error);
        tracing::debug!(%causes, "no answer from the service");
        let text = match kind {
            _ if unusable => {
                return AttemptError::Final(UpstreamError::Address(
                    "the request cannot be sent there".to_owned(),
                ));
            }
            _ if connecting && late => format!("no connection within {} s", connect.as_secs_f32()),
            Some(io::ErrorKind::ConnectionRefused) => "the connection is refused".to_owned(),
            _ if connecting && causes.contains("dns") => "its name is not known".to_owned(),
            _ if connecting && causes.contains("certificate") => "its certificate is not valid".to_owned(),
            _ if connecting => "no connection can be made".to_owned(),
            Some(io::ErrorKind::InvalidData) if decoding => "its answer cannot be unpacked".to_owned(),
            _ => "the connection broke before the answer was complete".to_owned(),
        };
        if connecting { AttemptError::Unconnected(text) } else { AttemptError::Cut(text) }
    }

    /// Whether another try may go better, and does no harm.
    pub(super) fn is_retryable(&self, repeatable: bool) -> bool {
        match self {
            AttemptError::Unconnected(_) => true,
            AttemptError::Cut(_) => repeatable,
            AttemptError::Final(_) => false,
        }
    }
}

impl From<AttemptError> for UpstreamError {
    fn from(broken: AttemptError) -> UpstreamError {
        match broken {
            AttemptError::Unconnected(text) | AttemptError::Cut(text) => UpstreamError::Unreachable(text),
            AttemptError::Final(error) => error,
        }
    }
}

/// An error and what caused it, in one line, without the address: it may hold a key. For the log.
pub(super) fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Whether an error was caused by one of this type.
fn has_cause<E: std::error::Error + 'static>(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<E>() {
            return true;
        }
        source = cause.source();
    }
    false
}

/// What the operating system, or the unpacking, said.
fn io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        source = cause.source();
    }
    None
}
