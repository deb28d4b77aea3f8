//! Credentials for the upstream service.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use reqwest::Url;

use crate::address::without_parameter;
use crate::failure::{AttemptError, UpstreamError};
use crate::secret::Secret;

/// The credential for the service. It is sent only to the origin of the base address.
#[derive(Clone, Debug, Default)]
pub enum Credential {
    /// No credential.
    #[default]
    None,
    /// An API key in a header.
    Header(HeaderName, Secret),
    /// An API key in a query parameter.
    Query(String, Secret),
    /// `Authorization: Bearer …`
    Bearer(Secret),
    /// `Authorization: Basic …`
    Basic(String, Secret),
    /// A credential from a source that may change it.
    Source(Arc<dyn CredentialSource>),
}

/// A source of credentials that change, such as access tokens.
pub trait CredentialSource: Send + Sync + fmt::Debug {
    /// Returns the current value of `Authorization`, or the reason why none is available. The reason is
    /// only logged.
    fn authorization(&self) -> Pin<Box<dyn Future<Output = Result<Secret, String>> + Send + '_>>;
    /// Reports that the service rejected this value with 401. The source should not return it again.
    fn refused(&self, authorization: &Secret);
}

pub(crate) async fn request_authorization(source: &dyn CredentialSource) -> Result<Secret, AttemptError> {
    source.authorization().await.map_err(|reason| {
        tracing::warn!(%reason, "no credential for the upstream service");
        AttemptError::Final(UpstreamError::NoCredential(reason))
    })
}

impl Credential {
    /// Adds the credential to a request. It replaces what the request has in its place.
    pub(crate) fn sign(
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
        // A trailing line break comes from a file or a pipe and is not part of the key.
        let mut value = HeaderValue::from_str(text.trim_end()).map_err(|_| {
            let reason =
                "it contains characters that are invalid in a header, such as line breaks".to_owned();
            tracing::warn!(%reason, "the credential for the upstream service cannot be sent");
            AttemptError::Final(UpstreamError::NoCredential(reason))
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(url)
    }

    /// Returns the parts of the credential that a service could repeat, without the scheme.
    pub(crate) fn sent_secrets(&self, authorization: Option<&Secret>) -> Vec<String> {
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
                // The scheme, such as `Bearer`, is not secret.
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
    fn each_kind_is_sent_in_its_place() {
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
    fn a_secret_that_is_invalid_in_a_header_is_an_error_and_is_not_shown() {
        let credential = Credential::Bearer(Secret::new("hush\r\nhost: evil"));
        let mut headers = HeaderMap::new();
        let error = credential.sign(Url::parse("http://h/").unwrap(), &mut headers, None).unwrap_err();
        let error = UpstreamError::from(error);
        assert!(matches!(error, UpstreamError::NoCredential(_)));
        assert!(!format!("{error} {error:?} {credential:?}").contains("hush"));
    }
}
