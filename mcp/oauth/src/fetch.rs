//! [`HttpKeySource`]: fetches the keys of an issuer. The metadata is fetched first, unless the URL of
//! the keys is configured.

use bindpost_net_upstream::{client_builder, is_loopback};
use reqwest::{Client, ClientBuilder, StatusCode, Url, header, redirect};
use serde_json::Value;

use crate::issuer::Issuer;
use crate::jwks::KeySource;
use crate::key::KeySet;
use crate::limits::OAuthLimits;

/// Fetches the keys of one issuer over HTTP.
#[derive(Debug)]
pub(crate) struct HttpKeySource {
    client: Client,
    issuer: Issuer,
    url: Url,
    jwks_uri: Option<Url>,
    max_answer: usize,
    max_keys: usize,
}

/// Why the keys could not be fetched. For logs only.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("{url}: {causes}")]
    Transport { url: Url, causes: String },
    #[error("{url} answered {status}")]
    Status { url: Url, status: StatusCode },
    #[error("the response of {0} is too long")]
    TooLong(Url),
    #[error("the metadata at {0} is invalid: {1}")]
    Metadata(Url, &'static str),
    #[error("the metadata at {url} is of the issuer {found:?}")]
    OtherIssuer { url: Url, found: String },
    #[error("the response of {0} is not a key set: {1}")]
    Keys(Url, &'static str),
    #[error("the key set has no key that can verify a token")]
    NoKeys,
    #[error("the fetch timed out")]
    TimedOut,
}

impl HttpKeySource {
    pub(crate) fn new(
        client: Client,
        issuer: Issuer,
        url: Url,
        jwks_uri: Option<Url>,
        limits: &OAuthLimits,
    ) -> HttpKeySource {
        HttpKeySource {
            client,
            issuer,
            url,
            jwks_uri,
            max_answer: limits.max_answer,
            max_keys: limits.max_keys,
        }
    }

    /// Reads the URL of the keys from the metadata.
    async fn discover(&self) -> Result<Url, FetchError> {
        let [openid, oauth] = metadata_urls(&self.url);
        let (url, document) = match self.get(&openid).await {
            Ok(document) => (openid, document),
            // The server responds but does not have this document, so the other URL is tried.
            Err(FetchError::Status { .. }) => {
                let document = self.get(&oauth).await?;
                (oauth, document)
            }
            Err(error) => return Err(error),
        };
        let Ok(metadata) = serde_json::from_slice::<Value>(&document) else {
            return Err(FetchError::Metadata(url, "it is not JSON"));
        };
        // RFC 8414, 3.3: the metadata must name this issuer.
        match metadata.get("issuer").and_then(Value::as_str) {
            Some(name) if self.issuer.is_named(name) => {}
            Some(name) => {
                return Err(FetchError::OtherIssuer { url, found: name.chars().take(200).collect() });
            }
            None => return Err(FetchError::Metadata(url, "it names no issuer")),
        }
        let keys = metadata.get("jwks_uri").and_then(Value::as_str).and_then(|keys| Url::parse(keys).ok());
        match keys {
            Some(keys) if may_lead_to(&self.url, &keys) => Ok(keys),
            Some(_) => Err(FetchError::Metadata(url, "its jwks_uri is not https")),
            None => Err(FetchError::Metadata(url, "it has no jwks_uri")),
        }
    }

    /// Reads a response up to the size limit.
    async fn get(&self, url: &Url) -> Result<Vec<u8>, FetchError> {
        let broken = |error: reqwest::Error| FetchError::Transport {
            url: url.clone(),
            causes: causes(&error.without_url()),
        };
        let request = self.client.get(url.clone()).header(header::ACCEPT, "application/json");
        let mut response = request.send().await.map_err(broken)?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status { url: url.clone(), status: response.status() });
        }
        let mut document = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(broken)? {
            if document.len() + piece.len() > self.max_answer {
                return Err(FetchError::TooLong(url.clone()));
            }
            document.extend_from_slice(&piece);
        }
        Ok(document)
    }
}

impl KeySource for HttpKeySource {
    async fn fetch(&self) -> Result<KeySet, FetchError> {
        let url = match &self.jwks_uri {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let document = self.get(&url).await?;
        KeySet::parse(&document, self.max_keys).map_err(|reason| FetchError::Keys(url, reason))
    }

    fn name(&self) -> &str {
        &self.issuer.url
    }
}

/// Creates an HTTP client for issuers. `plain` is for issuers on the loopback interface, which need no
/// proxy and usually no certificates.
pub(crate) fn client(plain: bool) -> Result<Client, reqwest::Error> {
    if plain {
        let builder = || builder().no_proxy();
        builder().build().or_else(|_| builder().tls_certs_only([]).build())
    } else {
        builder().build()
    }
}

fn builder() -> ClientBuilder {
    let redirects = redirect::Policy::custom(|attempt| {
        let same = attempt.previous().iter().all(|url| url.origin() == attempt.url().origin());
        if same && attempt.previous().len() <= 3 {
            attempt.follow()
        } else {
            // The redirect becomes the response. It is rejected because its status is not 200.
            attempt.stop()
        }
    });
    let name = concat!("bindpost/", env!("CARGO_PKG_VERSION"));
    client_builder().user_agent(name).redirect(redirects).referer(false).pool_max_idle_per_host(1)
}

/// Returns whether keys may be fetched from this URL: over TLS, or from the loopback interface.
pub(crate) fn is_permitted(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.has_host(),
        "http" => is_loopback(url),
        _ => false,
    }
}

/// Returns whether metadata from one URL may name keys at another. A remote issuer must not cause
/// requests to ports of this machine.
fn may_lead_to(metadata: &Url, keys: &Url) -> bool {
    is_permitted(keys) && (keys.scheme() == "https" || metadata.scheme() == "http")
}

/// Returns the URLs of the metadata. OpenID Connect Discovery appends to the path, RFC 8414 inserts
/// before it.
fn metadata_urls(issuer: &Url) -> [Url; 2] {
    let path = issuer.path().trim_end_matches('/');
    [
        format!("{path}/.well-known/openid-configuration"),
        format!("/.well-known/oauth-authorization-server{path}"),
    ]
    .map(|path| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url
    })
}

/// Formats an error and its causes in one line.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn metadata_urls_follow_both_standards() {
        for (issuer, openid, oauth) in [
            (
                "https://a.example",
                "/.well-known/openid-configuration",
                "/.well-known/oauth-authorization-server",
            ),
            (
                "https://a.example/",
                "/.well-known/openid-configuration",
                "/.well-known/oauth-authorization-server",
            ),
            (
                "https://a.example/b/c/",
                "/b/c/.well-known/openid-configuration",
                "/.well-known/oauth-authorization-server/b/c",
            ),
        ] {
            let urls = metadata_urls(&url(issuer));
            assert_eq!(urls, [openid, oauth].map(|path| url(&format!("https://a.example{path}"))));
        }
    }

    #[test]
    fn keys_are_fetched_over_tls_or_from_this_machine() {
        for (address, permitted) in [
            ("https://a.example/keys", true),
            ("http://a.example/keys", false),
            ("http://127.0.0.1:1/", true),
            ("http://127.8.9.1/", true),
            ("http://[::1]/", true),
            ("http://localhost/", true),
            ("http://localhost.evil.example/", false),
            ("http://10.0.0.1/", false),
            ("http://[::ffff:10.0.0.1]/", false),
            ("file:///etc/passwd", false),
            ("data:application/json,%7B%7D", false),
        ] {
            assert_eq!(is_permitted(&url(address)), permitted, "{address}");
        }
        let [far, near] = [url("https://a.example/"), url("http://127.0.0.1:9/")];
        assert!(may_lead_to(&far, &url("https://keys.example/")));
        assert!(may_lead_to(&near, &url("http://127.0.0.1:8/")));
        assert!(!may_lead_to(&near, &url("http://keys.example/")));
        assert!(!may_lead_to(&far, &near), "a remote issuer must not cause requests to this machine");
    }
}
