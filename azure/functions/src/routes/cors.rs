//! [`RouteCors`]: the CORS headers of HTTP functions, for the origins that `local.settings.json` names.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};

/// The origins whose web pages may call HTTP functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RouteCors {
    origins: Vec<String>,
    any_origin: bool,
    allows_credentials: bool,
}

impl RouteCors {
    pub(crate) fn new(origins: impl IntoIterator<Item = String>, allows_credentials: bool) -> RouteCors {
        let origins: Vec<String> =
            origins.into_iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect();
        let any_origin = origins.iter().any(|origin| origin == "*");
        RouteCors { origins, any_origin, allows_credentials }
    }

    /// Returns whether pages of this origin may read responses.
    pub(crate) fn allows(&self, origin: &HeaderValue) -> bool {
        self.any_origin || self.lists(origin)
    }

    fn lists(&self, origin: &HeaderValue) -> bool {
        self.origins.iter().any(|known| origin.as_bytes().eq_ignore_ascii_case(known.as_bytes()))
    }

    /// Answers a preflight request of a browser. Without configured origins, the function gets it.
    pub(crate) fn preflight(&self, request: &Parts) -> Option<Response<()>> {
        let method = request.headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
        if request.method != Method::OPTIONS || self.origins.is_empty() {
            return None;
        }
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        self.add_headers(&request.headers, headers);
        if headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, method.clone());
            if let Some(names) = request.headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
            }
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        }
        Some(response)
    }

    /// Adds the headers without which a browser withholds the response. A function that sets them itself decides.
    pub(crate) fn add_headers(&self, request: &HeaderMap, response: &mut HeaderMap) {
        if self.origins.is_empty() || response.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            return;
        }
        response.append(VARY, HeaderValue::from_static("Origin"));
        let Some(origin) = request.get(ORIGIN) else { return };
        if self.allows(origin) {
            response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            // Browsers send no credentials to servers that allow every origin, and this host does not ask for it.
            if self.allows_credentials && self.lists(origin) {
                response.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn parts(method: Method, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri("/api/a");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn cors(origins: &[&str], allows_credentials: bool) -> RouteCors {
        RouteCors::new(origins.iter().map(|origin| (*origin).to_owned()), allows_credentials)
    }

    #[test]
    fn a_listed_origin_is_allowed_with_what_it_asks_for() {
        let asked = [
            ("origin", "https://app.example"),
            ("access-control-request-method", "PUT"),
            ("access-control-request-headers", "x-a, content-type"),
        ];
        let reply: Response<()> =
            cors(&["https://App.example/"], true).preflight(&parts(Method::OPTIONS, &asked)).unwrap();
        let header = |name: &str| reply.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(reply.status(), StatusCode::NO_CONTENT);
        assert_eq!(header("access-control-allow-origin"), Some("https://app.example"));
        assert_eq!(header("access-control-allow-methods"), Some("PUT"));
        assert_eq!(header("access-control-allow-headers"), Some("x-a, content-type"));
        assert_eq!(header("access-control-allow-credentials"), Some("true"));
    }

    #[test]
    fn other_origins_get_no_headers_and_every_origin_gets_no_credentials() {
        let asked = [("origin", "https://evil.example"), ("access-control-request-method", "PUT")];
        let refused: Response<()> =
            cors(&["https://app.example"], true).preflight(&parts(Method::OPTIONS, &asked)).unwrap();
        assert!(!refused.headers().contains_key("access-control-allow-origin"));
        let any: Response<()> = cors(&["*"], true).preflight(&parts(Method::OPTIONS, &asked)).unwrap();
        assert_eq!(any.headers()["access-control-allow-origin"], "https://evil.example");
        assert!(!any.headers().contains_key("access-control-allow-credentials"));
    }

    #[test]
    fn functions_answer_options_if_no_origin_is_configured() {
        let asked = [("origin", "https://app.example"), ("access-control-request-method", "PUT")];
        assert!(cors(&[], false).preflight(&parts(Method::OPTIONS, &asked)).is_none());
        assert!(cors(&["*"], false).preflight(&parts(Method::OPTIONS, &asked[..1])).is_none());
    }

    #[test]
    fn the_headers_of_a_function_are_kept() {
        let request = parts(Method::GET, &[("origin", "https://app.example")]);
        let mut headers = HeaderMap::new();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("https://other.example"));
        cors(&["https://app.example"], false).add_headers(&request.headers, &mut headers);
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "https://other.example");
    }
}
