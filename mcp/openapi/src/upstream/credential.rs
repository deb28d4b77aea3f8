//! Who we are at the service.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use reqwest::Url;

use super::address::without_parameter;
use super::failure::{AttemptError, UpstreamError};

/// Text that must not appear in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself, to be sent and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Who we are at the service. It is sent to the base address's origin and nowhere else.
#[derive(Clone, Debug, Default)]
pub enum Credential {
    /// Nobody.
    #[default]
    None,
    /// A header with a key in it.
    Header(HeaderName, Secret),
    /// A parameter of the query with a key in it.
    Query(String, Secret),
    /// `Authorization: Bearer …`
    Bearer(Secret),
    /// `Authorization: Basic …`
    Basic(String, Secret),
    /// Whatever the source says at the time.
    Source(Arc<dyn CredentialSource>),
}

/// Gives credentials that change, such as access tokens.
pub trait CredentialSource: Send + Sync + fmt::Debug {
    /// The value of `Authorization` now, or why there is none (for the log; clients are told less).
    fn authorization(&self) -> Pin<Box<dyn Future<Output = Result<Secret, String>> + Send + '_>>;
    /// The service refused this one with 401: it should not be given again.
    fn refused(&self, authorization: &Secret);
}

pub(super) async fn request_authorization(source: &dyn CredentialSource) -> Result<Secret, AttemptError> {
    source.authorization().await.map_err(|reason| {
        tracing::warn!(%reason, "no credential for the service");
        AttemptError::Final(UpstreamError::NoCredential(reason))
    })
}

impl Credential {
    /// Puts the credential into a request, over whatever the request has in its place.
    pub(super) fn sign(
        &self,
        url: Url,
        headers: &mut HeaderMap,
        authorization: Option<&Secret>,
    ) -> Result<Url, AttemptError> {
        let (name, text) = match self {
            Credential::None => return Ok(url),
            Credential::Query(name, secret) => {
                let mut url = without_parameter(url, name);
                url.query_pairs_mut().append_pair(name, secret.reveal());
                return Ok(url);
            }
            Credential::Header(name, secret) => (name.clone(), secret.reveal().to_owned()),
            Credential::Bearer(secret) => (header::AUTHORIZATION, format!("Bearer {}", secret.reveal())),
            Credential::Basic(user, secret) => {
                let pair = STANDARD.encode(format!("{user}:{}", secret.reveal()));
                (header::AUTHORIZATION, format!("Basic {pair}"))
            }
            Credential::Source(_) => {
                let text = authorization.map(Secret::reveal).unwrap_or_default();
                (header::AUTHORIZATION, text.to_owned())
            }
        };
        // A line break at the end comes from a file or a pipe, and is no part of any key.
        let mut value = HeaderValue::from_str(text.trim_end()).map_err(|_| {
            let reason = "it has characters that no header can hold, such as line breaks".to_owned();
            tracing::warn!(%reason, "the credential for the service cannot be sent");
            AttemptError::Final(UpstreamError::NoCredential(reason))
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(url)
    }

    /// What of it a service could repeat, without the words around it.
    pub(super) fn sent_secrets(&self, authorization: Option<&Secret>) -> Vec<String> {
        match self {
            Credential::None => Vec::new(),
            Credential::Header(_, secret) | Credential::Query(_, secret) | Credential::Bearer(secret) => {
                vec![secret.reveal().trim().to_owned()]
            }
            Credential::Basic(user, secret) => {
                let pair = STANDARD.encode(format!("{user}:{}", secret.reveal()));
                vec![secret.reveal().trim().to_owned(), pair.trim_end_matches('=').to_owned()]
            }
            Credential::Source(_) => {
                let text = authorization.map(Secret::reveal).unwrap_or_default().trim();
                // `Bearer` and the like are no secret.
                vec![text.split_once(' ').map_or(text, |(_, token)| token.trim()).to_owned()]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(credential: &Credential, url: &str) -> (String, HeaderMap) {
        let mut headers = HeaderMap::new();
        let url = credential.sign(Url::parse(url).unwrap(), &mut headers, None).unwrap();
        (url.to_string(), headers)
    }

    #[test]
    fn each_kind_has_its_place() {
        let key = || Secret::new("k&y");
        let (url, headers) = signed(&Credential::Query("key".into(), key()), "http://h/a?b=c%20d");
        assert_eq!(url, "http://h/a?b=c%20d&key=k%26y");
        assert!(headers.is_empty());
        let (url, _) = signed(&Credential::Query("key".into(), key()), "http://h/a?k%65y=theirs&b");
        assert_eq!(url, "http://h/a?b&key=k%26y", "a caller's own is replaced");
        let (_, headers) = signed(&Credential::Basic("me".into(), Secret::new("pass")), "http://h/");
        assert_eq!(headers["authorization"], "Basic bWU6cGFzcw==");
        let (_, headers) = signed(&Credential::Bearer(Secret::new("token\n")), "http://h/");
        assert_eq!(headers["authorization"], "Bearer token");
        assert!(headers["authorization"].is_sensitive());
        let name = HeaderName::from_static("api-key");
        let (_, headers) = signed(&Credential::Header(name, key()), "http://h/");
        assert_eq!(headers["api-key"], "k&y");
    }

    #[test]
    fn a_secret_that_no_header_can_hold_is_an_error_and_is_not_shown() {
        let credential = Credential::Bearer(Secret::new("hush\r\nhost: evil"));
        let mut headers = HeaderMap::new();
        let error = credential.sign(Url::parse("http://h/").unwrap(), &mut headers, None).unwrap_err();
        let error = UpstreamError::from(error);
        assert!(matches!(error, UpstreamError::NoCredential(_)));
        assert!(!format!("{error} {error:?} {credential:?}").contains("hush"));
    }
}
