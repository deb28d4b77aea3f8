//! A remote search service: its URL and the client for it.

use std::net::IpAddr;
use std::sync::Arc;

use bindpost_net_upstream::{Credential, Upstream, UpstreamError, UpstreamLimits};
use http::Uri;

use crate::service::client::SearchClient;

/// The resource of the access tokens of a service in Azure. The scope is `https://search.azure.com/.default`.
pub const TOKEN_RESOURCE: &str = "https://search.azure.com";

/// An invalid endpoint.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error(
        "--endpoint {0}: not the URL of a search service\n  fix: write it as https://NAME.search.windows.net"
    )]
    NotAnAddress(String),
    #[error(
        "--endpoint {0}: keys and tokens would be sent unencrypted\n  fix: write https:// (http:// is allowed for loopback addresses only)"
    )]
    NotSecure(String),
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

/// Returns a client of the service at a URL such as `https://NAME.search.windows.net`.
pub fn remote_client(
    endpoint: &str,
    credential: Credential,
    api_version: &str,
) -> Result<SearchClient, RemoteError> {
    let base = checked(endpoint)?;
    let upstream = Upstream::new(&base, credential, UpstreamLimits::default())?;
    Ok(SearchClient::new(Arc::new(upstream), api_version))
}

/// Returns whether a URL has a loopback address, for which plain HTTP is safe.
pub fn is_local(endpoint: &str) -> bool {
    let Ok(uri) = endpoint.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Validates the URL and normalizes it to scheme and authority.
fn checked(endpoint: &str) -> Result<String, RemoteError> {
    let wrong = || RemoteError::NotAnAddress(endpoint.to_owned());
    let uri: Uri = endpoint.parse().map_err(|_| wrong())?;
    let (scheme, authority) = uri.scheme_str().zip(uri.authority()).ok_or_else(wrong)?;
    if authority.as_str().contains('@') || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong());
    }
    match scheme {
        "https" => {}
        "http" if is_local(endpoint) => {}
        "http" => return Err(RemoteError::NotSecure(endpoint.to_owned())),
        _ => return Err(wrong()),
    }
    Ok(format!("{scheme}://{authority}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_safe_urls() {
        for (endpoint, base) in [
            ("https://a.search.windows.net", "https://a.search.windows.net"),
            ("https://a.search.windows.net/", "https://a.search.windows.net"),
            ("http://127.0.0.1:8181", "http://127.0.0.1:8181"),
            ("http://localhost:8181/", "http://localhost:8181"),
            ("http://[::1]:8181", "http://[::1]:8181"),
        ] {
            assert_eq!(checked(endpoint).unwrap(), base);
        }
    }

    #[test]
    fn rejects_other_urls_with_a_fix() {
        for endpoint in [
            "",
            "a.search.windows.net",
            "ftp://a",
            "https://",
            "https://key@a",
            "https://a/indexes",
            "https://a?x=1",
            "http://a.search.windows.net",
            "http://10.0.0.1",
        ] {
            let error = checked(endpoint).unwrap_err().to_string();
            assert!(error.contains("fix: write"), "{endpoint}: {error}");
        }
    }
}
