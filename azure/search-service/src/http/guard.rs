//! Authentication with API keys. Without keys, requests from foreign web pages are rejected.

use std::net::IpAddr;

use bindpost_azure_search_model::ApiError;
use http::header::HOST;
use http::request::Parts;
use http::{Method, StatusCode, Uri, Version};

use crate::keys::{ApiKeys, KeyRole};

use super::request::{QueryOptions, RequestHeaders};
use super::route::{IndexOperation, Route};

/// Rejects a request with a missing, repeated or contradictory host. A proxy may have read another host
/// from it.
pub(super) fn check_host(parts: &Parts) -> Result<(), ApiError> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let clear = match (hosts.next(), hosts.next(), parts.uri.authority()) {
        (_, Some(_), _) => false,
        (None, None, _) => parts.version < Version::HTTP_11,
        (Some(host), None, Some(asked)) => host.as_bytes().eq_ignore_ascii_case(asked.as_str().as_bytes()),
        (Some(_), None, None) => true,
    };
    if clear {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::BAD_REQUEST,
        "InvalidHost",
        "The request must have exactly one 'Host' header, and its target must not name another host.",
    ))
}

/// Rejects a request whose key does not authorize this route.
pub(super) fn check_key(
    keys: &ApiKeys,
    headers: &RequestHeaders<'_>,
    options: &QueryOptions,
    route: &Route,
) -> Result<(), ApiError> {
    let presented = match headers.get("api-key") {
        Some(key) => Some(key),
        None => options.one("api-key")?,
    };
    let Some(presented) = presented.filter(|key| !key.is_empty()) else {
        if headers.get("authorization").is_some() {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "AuthenticationFailed",
                "This service supports no tokens, only API keys. Send one of its keys in the 'api-key' header.",
            ));
        }
        return Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "AuthenticationRequired",
            "The request has no API key. Send one of the service's keys in the 'api-key' header.",
        ));
    };
    match keys.role(presented) {
        Some(KeyRole::Admin) => Ok(()),
        Some(KeyRole::Query) if is_query_route(route) => Ok(()),
        Some(KeyRole::Query) => Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "AuthorizationFailed",
            "A query key can only search, suggest, complete, look up and count documents. Use an admin key.",
        )),
        None => Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "AuthenticationFailed",
            "The API key in the 'api-key' header is not valid for this service.",
        )),
    }
}

/// Rejects requests of foreign web pages. Without keys, all programs on this machine are trusted, but web
/// pages in a browser are not.
///
/// The Origin header identifies a page of another origin. In a DNS rebinding attack, the Host header has
/// the attacker's domain. Only names that cannot be public domains are accepted.
pub(super) fn check_origin(headers: &RequestHeaders<'_>, method: &Method) -> Result<(), ApiError> {
    if let Some(origin) = headers.get("origin") {
        let host = origin.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
        if !host.is_some_and(|host| is_loopback(&host)) {
            return Err(foreign(&format!("a web page of the origin '{origin}' sent this {method} request")));
        }
    }
    check_target(headers)
}

/// Rejects requests to names that can be public domains.
pub(super) fn check_target(headers: &RequestHeaders<'_>) -> Result<(), ApiError> {
    let Some(authority) = headers.get("host") else { return Ok(()) };
    let host = host_of(authority);
    let private = is_loopback(host) || host.parse::<IpAddr>().is_ok() || !host.contains('.');
    if private { Ok(()) } else { Err(foreign(&format!("the request was sent to the host '{host}'"))) }
}

/// Returns `localhost:8080` or `[::1]:8080` without the port.
fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let named = bare.eq_ignore_ascii_case("localhost") || bare.to_ascii_lowercase().ends_with(".localhost");
    named || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn foreign(why: &str) -> ApiError {
    ApiError::new(
        StatusCode::FORBIDDEN,
        "ForeignOrigin",
        format!("The service runs without API keys, and {why}. Run it with API keys to allow this."),
    )
}

pub(super) fn is_query_route(route: &Route) -> bool {
    use IndexOperation::{Autocomplete, Count, Lookup, Search, Suggest};
    matches!(route, Route::Index(_, Search | Suggest | Autocomplete | Lookup(_) | Count))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    fn page(name: HeaderName, value: &'static str) -> Result<(), ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        check_origin(&RequestHeaders(&headers), &Method::POST)
    }

    #[test]
    fn rejects_foreign_origins_without_keys() {
        for origin in ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"] {
            assert!(page(http::header::ORIGIN, origin).is_ok(), "{origin}");
        }
        for origin in ["https://example.com", "null", "http://localhost.example.com"] {
            assert!(page(http::header::ORIGIN, origin).is_err(), "{origin}");
        }
    }

    #[test]
    fn rejects_public_host_names_without_keys() {
        for host in
            ["localhost:8080", "127.0.0.1:80", "[::1]:80", "192.168.1.5", "search:8080", "a.localhost"]
        {
            assert!(page(http::header::HOST, host).is_ok(), "{host}");
        }
        for host in ["example.com", "rebound.example.com:8080"] {
            assert!(page(http::header::HOST, host).is_err(), "{host}");
        }
    }
}
