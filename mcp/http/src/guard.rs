//! [`Guard`]: checks the `Host` and `Origin` headers before anything is parsed, and adds CORS headers
//! for the allowed origins.
//!
//! A page of any web site can make a browser send requests to a server on this machine. A host name that
//! resolves to this machine makes these requests same-origin (DNS rebinding). The two checks prevent both.

use bindpost_mcp_protocol::jsonrpc::INVALID_REQUEST;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HOST, ORIGIN,
    VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};

use crate::auth::Authorizer as _;
use crate::endpoint::Route;
use crate::endpoint::reply::{BoxedReply, refuse};
use crate::headers::McpHeaders;
use crate::settings::Settings;

/// The header in which a proxy names the host of the client's request.
const FORWARDED_HOST: &str = "x-forwarded-host";

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The request headers a web page may send, besides those an authorizer reads.
const ALLOWED_HEADERS: &str = "content-type, accept, authorization, mcp-protocol-version, mcp-method, mcp-name, \
                               mcp-session-id, last-event-id";

/// The hosts and origins from which requests are accepted.
#[derive(Debug)]
pub(crate) struct Guard {
    any_host: bool,
    hosts: Vec<String>,
    origins: Vec<String>,
    require_origin: bool,
    is_tls: bool,
    behind_proxy: bool,
    /// The request headers a web page may send.
    headers: String,
}

/// The host of a request, if it is a listed host or one of the loopback interface.
pub(crate) struct NamedHost<'a> {
    /// The host as the request spells it, with its port.
    pub(crate) text: &'a str,
    /// Whether clients reach this host over HTTPS. Without TLS of our own, a proxy has it for every host but
    /// those of the loopback interface.
    pub(crate) uses_https: bool,
}

impl Guard {
    pub(crate) fn new(settings: &Settings) -> Guard {
        let mut headers = ALLOWED_HEADERS.to_owned();
        for header in settings.auth.iter().flat_map(|auth| auth.authorizer.headers()) {
            headers = format!("{headers}, {}", header.to_ascii_lowercase());
        }
        let listed = settings.allowed_hosts.iter().filter(|host| *host != "*");
        let origin = |origin: &String| origin.trim_end_matches('/').to_ascii_lowercase();
        Guard {
            any_host: settings.allowed_hosts.iter().any(|host| host == "*"),
            hosts: listed.map(|host| host.to_ascii_lowercase()).collect(),
            origins: settings.allowed_origins.iter().map(origin).collect(),
            require_origin: settings.require_origin,
            is_tls: settings.tls.is_some(),
            behind_proxy: settings.behind_proxy,
            headers,
        }
    }

    /// Rejects a request because of its head, independent of its sender.
    pub(crate) fn check(&self, route: Route, uri: &Uri, headers: &McpHeaders<'_>) -> Result<(), BoxedReply> {
        let reason = match route {
            Route::Metadata => self.host_refusal_reason(uri, headers),
            _ => self.refusal_reason(uri, headers),
        };
        if let Some(reason) = reason.filter(|_| !route.is_probe()) {
            return Err(Box::new(refuse(StatusCode::FORBIDDEN, None, INVALID_REQUEST, reason)));
        }
        match headers.repeated {
            None => Ok(()),
            Some(name) => {
                let reason = format!("header {name} occurs more than once");
                Err(Box::new(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason)))
            }
        }
    }

    /// Returns why this request is rejected, or `None` if it is accepted.
    pub(crate) fn refusal_reason(&self, uri: &Uri, headers: &McpHeaders<'_>) -> Option<&'static str> {
        self.host_refusal_reason(uri, headers).or_else(|| match headers.origin {
            Some(origin) if !self.allows_origin(origin.as_bytes()) => {
                Some("the Origin header names an origin that is not allowed; add it to `allowed_origins` (--allow-origin)")
            }
            None if self.require_origin => Some("the Origin header is missing"),
            _ => None,
        })
    }

    /// The same, without the check of the origin, for resources that every web page may read.
    fn host_refusal_reason(&self, uri: &Uri, headers: &McpHeaders<'_>) -> Option<&'static str> {
        let host = match uri.authority() {
            // The request uses HTTP/2 or has an absolute URI.
            Some(authority) => Some(authority.as_str().as_bytes()),
            None => headers.host.map(HeaderValue::as_bytes),
        };
        let Some(host) = host else { return Some("the Host header is missing") };
        if !self.any_host && !is_loopback(host) && !self.lists_host(host) {
            return Some(
                "the Host header names a host that is not allowed; add it to `allowed_hosts` (--allow-host)",
            );
        }
        None
    }

    /// Returns why a request is rejected because of its `Host` header, or because it has several.
    pub(crate) fn host_problem(&self, parts: &Parts) -> Option<&'static str> {
        let is_repeated = parts.headers.get_all(HOST).iter().count() > 1;
        let headers = McpHeaders::new(&parts.headers);
        let repeated = is_repeated.then_some("header Host occurs more than once");
        repeated.or_else(|| self.host_refusal_reason(&parts.uri, &headers))
    }

    /// Returns the host of a request if it is listed or of the loopback interface. A host that is only
    /// accepted because of `*` is not returned.
    ///
    /// A proxy that sends its own name of this server, `Host: 127.0.0.1:8080`, repeats the client's host in
    /// `X-Forwarded-Host`.
    pub(crate) fn named_host<'a>(&self, parts: &'a Parts) -> Option<NamedHost<'a>> {
        let mut text = match parts.uri.authority() {
            Some(authority) => authority.as_str(),
            None => parts.headers.get(HOST)?.to_str().ok()?,
        };
        if self.behind_proxy
            && is_loopback(text.as_bytes())
            && let Some(forwarded) = parts.headers.get(FORWARDED_HOST)
        {
            // Each proxy appends its own. The first one is that of the client.
            text = forwarded.to_str().ok()?.split(',').next()?.trim();
        }
        let is_loopback = is_loopback(text.as_bytes());
        let uses_https = self.is_tls || !is_loopback;
        (is_loopback || self.lists_host(text.as_bytes())).then_some(NamedHost { text, uses_https })
    }

    /// Returns the first of these host names that is not one of the loopback interface. If there is
    /// one, other machines are expected to send requests.
    pub(crate) fn first_public_host(hosts: &[String]) -> Option<&str> {
        hosts.iter().map(String::as_str).find(|host| !is_loopback(host.as_bytes()))
    }

    /// Returns whether all hosts are allowed (`*`).
    pub(crate) fn serves_any_host(&self) -> bool {
        self.any_host
    }

    fn lists_host(&self, host: &[u8]) -> bool {
        let name = without_port(host);
        self.hosts.iter().any(|known| {
            host.eq_ignore_ascii_case(known.as_bytes()) || name.eq_ignore_ascii_case(known.as_bytes())
        })
    }

    fn allows_origin(&self, origin: &[u8]) -> bool {
        if self.lists_origin(origin) {
            return true;
        }
        let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        host.is_some_and(is_loopback)
    }

    fn lists_origin(&self, origin: &[u8]) -> bool {
        self.origins.iter().any(|known| origin.eq_ignore_ascii_case(known.as_bytes()))
    }

    /// Adds the CORS headers without which a browser withholds the response from a page of a listed origin.
    pub(crate) fn add_cors(&self, request: &HeaderMap, answer: &mut HeaderMap) {
        if self.origins.is_empty() {
            return;
        }
        answer.insert(VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = request.get(ORIGIN).filter(|origin| self.lists_origin(origin.as_bytes())) {
            answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            let exposed = HeaderValue::from_static("mcp-session-id, www-authenticate");
            answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }

    /// Adds the headers that answer a browser's preflight request.
    pub(crate) fn add_preflight(&self, request: &HeaderMap, answer: &mut HeaderMap) {
        if !answer.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            return;
        }
        let mut allowed = self.headers.clone();
        // CORS has no wildcard for a prefix, so each requested `Mcp-Param-…` header is named.
        let asked = request.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|value| value.to_str().ok());
        for name in asked.unwrap_or_default().split(',').map(|name| name.trim().to_ascii_lowercase()) {
            let is_param = name.starts_with(bindpost_mcp_protocol::header::PARAM_PREFIX);
            if is_param && http::HeaderName::try_from(name.as_str()).is_ok() {
                allowed = format!("{allowed}, {name}");
            }
        }
        if let Ok(allowed) = HeaderValue::try_from(allowed) {
            answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        }
        let methods = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
        answer.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
}

fn is_loopback(host: &[u8]) -> bool {
    let name = without_port(host);
    LOOPBACK.iter().any(|loopback| name.eq_ignore_ascii_case(loopback.as_bytes()))
}

/// Returns a host without its port. An IPv6 address keeps its brackets.
fn without_port(host: &[u8]) -> &[u8] {
    let end = match host.iter().rposition(|&byte| byte == b':') {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => colon,
        _ => host.len(),
    };
    &host[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(guard: &Guard, host: &str, origin: Option<&str>) -> Option<&'static str> {
        let mut request = http::Request::builder().uri("/mcp").header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        guard.refusal_reason(&parts.uri, &McpHeaders::new(&parts.headers))
    }

    fn refuses(guard: &Guard, host: &str, origin: Option<&str>) -> bool {
        reason(guard, host, origin).is_some()
    }

    #[test]
    fn a_rejection_names_the_option_that_allows_it() {
        let guard = Guard::new(&Settings::default());
        let host = reason(&guard, "evil.example.com", None).unwrap();
        assert!(host.contains("`allowed_hosts` (--allow-host)"), "{host}");
        let origin = reason(&guard, "localhost", Some("https://app.example.com")).unwrap();
        assert!(origin.contains("`allowed_origins` (--allow-origin)"), "{origin}");
    }

    #[test]
    fn only_loopback_and_listed_hosts_and_origins_are_accepted() {
        let guard = Guard::new(&Settings {
            allowed_hosts: vec!["api.example.com".into()],
            allowed_origins: vec!["https://app.example.com/".into()],
            ..Settings::default()
        });
        for (host, origin, refused) in [
            ("localhost:7071", None, false),
            ("127.0.0.1", None, false),
            ("[::1]:80", None, false),
            ("LOCALHOST", None, false),
            ("api.example.com:8443", None, false),
            ("evil.example.com", None, true),
            ("localhost.evil.example.com", None, true),
            ("127.0.0.1.evil.example.com", None, true),
            ("", None, true),
            ("localhost", Some("http://localhost:3000"), false),
            ("localhost", Some("http://[::1]:3000"), false),
            ("localhost", Some("https://app.example.com"), false),
            ("localhost", Some("https://app.example.com.evil.com"), true),
            ("localhost", Some("http://evil.example.com"), true),
            ("localhost", Some("null"), true),
            ("localhost", Some(""), true),
            ("localhost", Some("file://localhost"), true),
        ] {
            assert_eq!(refuses(&guard, host, origin), refused, "{host} {origin:?}");
        }
    }

    #[test]
    fn a_named_host_is_listed_or_of_the_loopback() {
        let hosts = ["api.example.com", "a.example:8443", "*"];
        let allowed_hosts = hosts.map(str::to_owned).to_vec();
        let guard = Guard::new(&Settings { allowed_hosts, ..Settings::default() });
        for (host, named) in [
            ("api.example.com", Some(false)),
            ("API.example.com:1", Some(false)),
            ("a.example:8443", Some(false)),
            ("a.example:1", None),
            ("localhost:7071", Some(true)),
            ("evil.example.com", None),
            ("*", None),
        ] {
            let request = http::Request::builder().uri("/mcp").header("host", host);
            let parts = request.body(()).unwrap().into_parts().0;
            assert_eq!(guard.named_host(&parts).map(|host| !host.uses_https), named, "{host}");
        }
    }

    #[test]
    fn behind_a_proxy_the_forwarded_host_is_the_named_one() {
        let of = |behind_proxy: bool, host: &str, forwarded: Option<&str>| {
            let allowed_hosts = vec!["api.example.com".to_owned(), "*".to_owned()];
            let guard = Guard::new(&Settings { allowed_hosts, behind_proxy, ..Settings::default() });
            let mut request = http::Request::builder().uri("/mcp").header("host", host);
            if let Some(forwarded) = forwarded {
                request = request.header("x-forwarded-host", forwarded);
            }
            let parts = request.body(()).unwrap().into_parts().0;
            let named = guard.named_host(&parts);
            named.map(|host| (host.text.to_owned(), host.uses_https))
        };
        let named = |text: &str, uses_https: bool| Some((text.to_owned(), uses_https));
        let local = "127.0.0.1:8080";
        for (behind_proxy, host, forwarded, expected) in [
            (true, local, Some("api.example.com"), named("api.example.com", true)),
            (true, local, Some("api.example.com, inner.example"), named("api.example.com", true)),
            (true, local, Some("localhost:7071"), named("localhost:7071", false)),
            (true, local, None, named(local, false)),
            // A client can send the header too, so only listed hosts are used.
            (true, local, Some("evil.example"), None),
            (true, local, Some(""), None),
            // The host that the proxy did not replace.
            (true, "api.example.com", Some("evil.example"), named("api.example.com", true)),
            (false, local, Some("api.example.com"), named(local, false)),
        ] {
            assert_eq!(of(behind_proxy, host, forwarded), expected, "{behind_proxy} {host} {forwarded:?}");
        }
    }

    #[test]
    fn an_origin_can_be_required() {
        let guard = Guard::new(&Settings { require_origin: true, ..Settings::default() });
        assert!(refuses(&guard, "localhost", None));
        assert!(!refuses(&guard, "localhost", Some("http://localhost")));
    }

    #[test]
    fn rejects_a_request_without_a_host_header() {
        let parts = http::Request::builder().uri("/mcp").body(()).unwrap().into_parts().0;
        let guard = Guard::new(&Settings::default());
        assert!(guard.refusal_reason(&parts.uri, &McpHeaders::new(&parts.headers)).is_some());
    }
}
