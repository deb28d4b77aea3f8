//! Errors of upstream requests.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use crate::reserved::ReservedAddressError;

/// The reason why a request got no response. The messages contain no addresses and no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The base address, or an address derived from it, is invalid.
    #[error("the address of the service cannot be used: {0}")]
    Address(String),
    /// No connection to the service could be made, or it broke.
    #[error("the service cannot be reached: {0}")]
    Unreachable(String),
    /// The response took too long.
    #[error("the service did not answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The response is too large.
    #[error("the response of the service has more than {0} bytes; request less")]
    TooLarge(usize),
    /// The service redirected to another origin.
    #[error(
        "the service redirects to another origin, which is not followed; if it has moved, the operator has to \
         change its base address"
    )]
    Redirected,
    /// The service redirected to a target that is not allowed.
    #[error("the service redirects to {to}, which is not followed: {reason}")]
    #[allow(missing_docs, reason = "the message says it")]
    RedirectRefused { to: String, reason: String },
    /// The service redirected too often.
    #[error("the service redirects too many times")]
    RedirectLoop,
    /// The handler in this process rejected the request.
    #[error("{0}")]
    Rejected(String),
    /// No credential is available.
    #[error("there is no credential for the service")]
    NoCredential(String),
}

impl UpstreamError {
    pub(crate) fn reserved() -> UpstreamError {
        UpstreamError::Address(
            "it is a link-local address or that of a metadata service, which may hand out credentials of this \
             machine, and a document may not use it; if it is intended, the operator has to configure it as the \
             base address"
                .to_owned(),
        )
    }

    pub(crate) fn exposed() -> UpstreamError {
        UpstreamError::Address(
            "credentials are not sent over plain http to another machine; use https, or allow plain http"
                .to_owned(),
        )
    }
}

/// An attempt without a response.
#[derive(Debug)]
pub(crate) enum AttemptError {
    /// The connection failed, so the request was not processed.
    Unconnected(String),
    /// The connection broke, so the request may have been processed.
    Cut(String),
    /// Another attempt would fail in the same way.
    Final(UpstreamError),
}

impl AttemptError {
    /// Converts an error of the HTTP client. The message contains no address, unlike some of the client's
    /// own messages.
    pub(crate) fn from_reqwest(error: reqwest::Error, connect: Duration) -> AttemptError {
        let (connecting, late, decoding) = (error.is_connect(), error.is_timeout(), error.is_decode());
        let unusable = error.is_builder();
        if causes(&error).any(|cause| cause.is::<ReservedAddressError>()) {
            return AttemptError::Final(UpstreamError::reserved());
        }
        let kind = io_kind(&error);
        let causes = error_chain(error);
        tracing::debug!(%causes, "no response from the upstream service");
        let text = match kind {
            _ if unusable => {
                return AttemptError::Final(UpstreamError::Address("the request cannot be sent".to_owned()));
            }
            _ if connecting && late => format!("no connection within {} s", connect.as_secs_f32()),
            Some(io::ErrorKind::ConnectionRefused) => "the connection is refused".to_owned(),
            _ if connecting && causes.contains("dns") => "its host name cannot be resolved".to_owned(),
            _ if connecting && causes.contains("certificate") => "its certificate is not valid".to_owned(),
            _ if connecting => "the connection failed".to_owned(),
            Some(io::ErrorKind::InvalidData) if decoding => "its response cannot be decompressed".to_owned(),
            _ => "the connection broke before the response was complete".to_owned(),
        };
        if connecting { AttemptError::Unconnected(text) } else { AttemptError::Cut(text) }
    }

    /// Returns whether another attempt may succeed and does no harm.
    pub(crate) fn is_retryable(&self, repeatable: bool) -> bool {
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

/// Returns an error of the HTTP client and its causes in one line for the log, without the address, because
/// that may contain a key.
pub fn error_chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    for cause in causes(&error) {
        text.push_str(": ");
        text.push_str(&cause.to_string());
    }
    text
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

/// Returns the error kind of the operating system or of the decompression.
fn io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}
