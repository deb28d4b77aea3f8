//! The base address and the addresses below it.

use std::net::IpAddr;

use http::{HeaderMap, StatusCode, header};
use percent_encoding::percent_decode_str;
use reqwest::Url;

use crate::failure::UpstreamError;
use crate::reserved::is_reserved;

/// The address below which all requests go.
#[derive(Clone, Debug)]
pub(crate) struct BaseUrl(Url);

impl BaseUrl {
    /// Parses an `http` or `https` address without user, query and fragment.
    pub(crate) fn parse(text: &str) -> Result<BaseUrl, UpstreamError> {
        let refused = |problem: &str| {
            let fix = "write it like https://api.example.com/v1";
            Err(UpstreamError::Address(format!("{problem}; {fix}")))
        };
        let text = text.trim();
        let Ok(url) = Url::parse(text) else {
            return refused("it is not a URL");
        };
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return refused("it is neither an http nor an https address");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused("it contains a user or a password; configure them as the credential");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refused("it has a query or a fragment, to which no path can be appended");
        }
        Ok(BaseUrl(url))
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub(crate) fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// Returns whether requests can be read in transit.
    pub(crate) fn is_exposed(&self) -> bool {
        self.0.scheme() == "http" && !self.is_loopback()
    }

    /// Returns whether the address is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    /// Returns whether documents may not use this address.
    pub(crate) fn is_reserved(&self) -> bool {
        is_reserved(&self.0)
    }

    pub(crate) fn is_same_origin(&self, url: &Url) -> bool {
        // A user in an address would be sent as a credential.
        url.origin() == self.0.origin() && url.username().is_empty() && url.password().is_none()
    }

    /// Returns the address of a path and query below the base address.
    ///
    /// Paths are already encoded and are checked again here. A path that the URL parser could interpret
    /// differently, or that leaves the base address, is always rejected.
    pub(crate) fn join(&self, path: &str) -> Result<Url, UpstreamError> {
        let refused = |problem: &str| UpstreamError::Address(format!("the path of the request {problem}"));
        if !path.starts_with('/') {
            return Err(refused("does not begin with a slash"));
        }
        let (segments, _) = path.split_once('?').unwrap_or((path, ""));
        if path.bytes().any(|byte| byte <= b' ' || byte >= 0x7f || byte == b'#') || segments.contains('\\') {
            return Err(refused("is not encoded"));
        }
        if segments.split('/').any(is_dot_segment) {
            return Err(refused("has a dot segment"));
        }
        let base = self.0.as_str().trim_end_matches('/');
        let url = Url::parse(&format!("{base}{path}")).map_err(|_| refused("cannot be part of a URL"))?;
        match self.path_below(&url) {
            Some(_) => Ok(url),
            None => Err(refused("leaves the base address")),
        }
    }

    /// Returns the path and query of an address below the base address.
    pub(crate) fn path_below(&self, url: &Url) -> Option<String> {
        if !self.is_same_origin(url) {
            return None;
        }
        let below = url.path().strip_prefix(self.0.path().trim_end_matches('/'))?;
        if !below.starts_with('/') {
            return None;
        }
        Some(match url.query() {
            Some(query) => format!("{below}?{query}"),
            None => below.to_owned(),
        })
    }

    /// Like `path_below`, for an address from a response. A service may decode what the URL parser keeps,
    /// so path traversal is rejected in every spelling.
    pub(crate) fn safe_path_below(&self, url: &Url) -> Option<String> {
        self.path_below(url).filter(|path| {
            let path = path.split('?').next().unwrap_or_default();
            let decoded = percent_decode_str(path).decode_utf8_lossy();
            !is_path_traversal(path) && !decoded.chars().any(char::is_control)
        })
    }
}

/// Returns whether an address is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns whether a path segment is `.` or `..`, plain or encoded.
pub fn is_dot_segment(segment: &str) -> bool {
    let mut segment = segment.to_owned();
    // Some services decode twice.
    for _ in 0..3 {
        if matches!(segment.as_str(), "." | "..") {
            return true;
        }
        let decoded = percent_decode_str(&segment).decode_utf8_lossy().into_owned();
        if decoded == segment {
            break;
        }
        segment = decoded;
    }
    matches!(segment.as_str(), "." | "..")
}

/// Returns whether a text contains path traversal.
pub fn is_path_traversal(text: &str) -> bool {
    // Some services drop segment parameters before they check dots, so `..;x/` goes up too.
    let is_up = |piece: &str| piece.split(';').next().unwrap_or_default().trim() == "..";
    let goes_up = |text: &str| text.split(['/', '\\']).any(is_up);
    let mut text = text.to_owned();
    for _ in 0..3 {
        if goes_up(&text) {
            return true;
        }
        let decoded = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if decoded == text {
            return false;
        }
        text = decoded;
    }
    goes_up(&text)
}

/// Returns the target of a redirect response.
pub(crate) fn redirect_target(status: StatusCode, headers: &HeaderMap, url: &Url) -> Option<Url> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = headers.get(header::LOCATION)?.to_str().ok()?;
    let mut target = url.join(location).ok()?;
    target.set_fragment(None);
    Some(target)
}

/// Removes a query parameter from an address. The others stay unchanged.
pub(crate) fn without_parameter(mut url: Url, name: &str) -> Url {
    let is_it = |piece: &str| {
        let written = piece.split('=').next().unwrap_or_default().replace('+', " ");
        percent_decode_str(&written).decode_utf8_lossy() == name
    };
    let Some(query) = url.query() else { return url };
    if query.split('&').any(is_it) {
        let kept: Vec<_> = query.split('&').filter(|piece| !is_it(piece)).collect();
        let kept = kept.join("&");
        url.set_query((!kept.is_empty()).then_some(kept.as_str()));
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_base_addresses_are_rejected_with_a_fix() {
        for (address, problem) in [
            ("", "not a URL"),
            ("api.example.com", "not a URL"),
            ("ftp://h/", "neither an http"),
            ("file:///etc/passwd", "neither an http"),
            ("https://u:p@h/", "user or a password"),
            ("https://h/?a=b", "query or a fragment"),
            ("https://h/#a", "query or a fragment"),
        ] {
            let error = BaseUrl::parse(address).unwrap_err().to_string();
            assert!(
                error.contains(problem) && error.contains("https://api.example.com"),
                "{address}: {error}"
            );
        }
    }

    #[test]
    fn paths_go_below_the_base_address() {
        for (base, path, url) in [
            ("https://h", "/a?b=c", "https://h/a?b=c"),
            ("https://h/", "/a", "https://h/a"),
            ("https://h/v1", "/a", "https://h/v1/a"),
            ("https://h/v1/", "/a", "https://h/v1/a"),
            ("https://h/v1/", "/", "https://h/v1/"),
            ("https://h/v1", "/a//b", "https://h/v1/a//b"),
            ("https://h/v1", "//evil.example/b", "https://h/v1//evil.example/b"),
            ("https://h", "/a%2F..%2Fb", "https://h/a%2F..%2Fb"),
            ("https://h", "/@evil.example/", "https://h/@evil.example/"),
        ] {
            let base = BaseUrl::parse(base).unwrap();
            let joined = base.join(path).unwrap();
            assert_eq!(joined.as_str(), url);
            assert_eq!(base.path_below(&joined).unwrap(), path);
        }
    }

    #[test]
    fn paths_that_leave_the_base_address_are_rejected() {
        let base = BaseUrl::parse("https://h/v1").unwrap();
        for path in [
            "",
            "a",
            "@evil",
            ":80/",
            ".evil.example/",
            "/../v2",
            "/a/../../v2",
            "/%2e%2e/v2",
            "/.%2E/v2",
            "/%252e%252e/v2",
            "/a/./b",
            "/..",
            "/a\\..\\b",
            "/a b",
            "/a\n",
            "/a\t",
            "/a#b",
            "/a\0",
            "/ä",
        ] {
            assert!(matches!(base.join(path), Err(UpstreamError::Address(_))), "{path:?}");
        }
        let below = |url: &str| base.path_below(&Url::parse(url).unwrap());
        assert_eq!(below("https://h/v1/a?b").as_deref(), Some("/a?b"));
        for url in
            ["https://h/v2/a", "https://h/v10", "http://h/v1/a", "https://h:444/v1/a", "https://u@h/v1/a"]
        {
            assert_eq!(below(url), None, "{url}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let is = |address: &str| BaseUrl::parse(address).unwrap().is_loopback();
        assert!(
            is("http://localhost:1")
                && is("http://127.0.0.1")
                && is("http://127.9.9.9")
                && is("http://[::1]:2")
        );
        assert!(!is("http://localhost.evil.example") && !is("http://10.0.0.1") && !is("http://0.0.0.0"));
    }
}
