//! The heads of forwarded requests and responses: which headers are removed, and which are added.

use bindpost_mcp_http::listener::ConnectedClient;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, FORWARDED, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Response, Uri, Version};
use hyper::body::Body;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// The beginning of the names of headers that proxies set.
const FORWARDED_PREFIX: &str = "x-forwarded-";

/// Headers of one connection, besides those that `Connection` names.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Rewrites the head of a request for the server `authority`.
pub(super) fn rewrite_request(
    parts: &mut Parts,
    authority: &HeaderValue,
    client: &ConnectedClient,
    trusts_forwarded: bool,
) {
    let host = match parts.uri.authority() {
        // The request uses HTTP/2 or has an absolute URI.
        Some(authority) => HeaderValue::try_from(authority.as_str()).ok(),
        None => parts.headers.get(HOST).cloned(),
    };
    let path = parts.uri.path_and_query().cloned();
    parts.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    parts.version = Version::HTTP_11;
    let headers = &mut parts.headers;
    remove_hop_by_hop(headers);
    // The body is sent without waiting, so nothing is left to expect.
    headers.remove(EXPECT);
    if !trusts_forwarded {
        remove_forwarded(headers);
    }
    if let Some(address) = client.address() {
        let address = address.ip().to_canonical().to_string();
        let before = headers.get(FORWARDED_FOR).and_then(|before| before.to_str().ok());
        let all = before.map_or_else(|| address.clone(), |before| format!("{before}, {address}"));
        if let Ok(all) = HeaderValue::try_from(all) {
            headers.insert(FORWARDED_FOR, all);
        }
    }
    if let Some(host) = host.filter(|_| !headers.contains_key(FORWARDED_HOST)) {
        headers.insert(FORWARDED_HOST, host);
    }
    if !headers.contains_key(FORWARDED_PROTO) {
        let scheme = if client.is_secure() { "https" } else { "http" };
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static(scheme));
    }
    headers.insert(HOST, authority.clone());
}

/// Sets the length that was parsed, so that both connections agree on where the body ends.
pub(super) fn set_length(headers: &mut HeaderMap, body: &impl Body) {
    let declared = headers.remove(CONTENT_LENGTH).is_some();
    if let Some(length) = body.size_hint().exact().filter(|length| declared || *length > 0) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
}

/// Rewrites the head of a response for the client.
pub(super) fn rewrite_response<B>(response: &mut Response<B>) {
    // A server of HTTP/1.0 does not limit what the client can use.
    *response.version_mut() = Version::HTTP_11;
    remove_hop_by_hop(response.headers_mut());
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok())
        // They describe the message, not the connection.
        .filter(|name| *name != HOST && *name != CONTENT_LENGTH)
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

fn remove_forwarded(headers: &mut HeaderMap) {
    let is_forged = |name: &&HeaderName| name.as_str().starts_with(FORWARDED_PREFIX) || **name == FORWARDED;
    let forged: Vec<HeaderName> = headers.keys().filter(is_forged).cloned().collect();
    for name in forged {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_are_removed() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Private , content-length"),
            ("connection", "another"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("proxy-authorization", "Basic abc"),
            ("x-private", "1"),
            ("another", "2"),
            ("content-length", "5"),
            ("authorization", "Bearer abc"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        remove_hop_by_hop(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["authorization", "content-length", "set-cookie"]);
        assert_eq!(headers.get_all("set-cookie").iter().count(), 2);
    }
}
