//! Requests of web pages of other origins, as the `corsOptions` of an index allow them. Pages can only query, as in
//! Azure AI Search.

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::CorsOptions;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, VARY,
};
use http::request::Parts;
use http::{Method, StatusCode};

use crate::resources::ResourceRegistry;

use super::answer::HttpReply;
use super::guard;
use super::request::RequestHeaders;
use super::route::{self, Route};

/// The headers of responses that pages may read, besides those that every page may read.
const READABLE: &str =
    "request-id, client-request-id, x-ms-client-request-id, elapsed-time, odata-version, retry-after";

/// What a page may do with an index.
pub(super) struct CorsGrant {
    /// The value of `Access-Control-Allow-Origin`.
    origin: String,
    max_age_seconds: u64,
    listed: bool,
}

impl CorsGrant {
    /// Returns the grant for the page that sent a request. `None` if it is no request of a page, or not allowed.
    pub(super) fn find(parts: &Parts, resources: &ResourceRegistry) -> Option<Self> {
        let origin = RequestHeaders(&parts.headers).get("origin")?;
        let (route, _) = route::find(parts.uri.path()).ok()?;
        if !guard::is_query_route(&route) {
            return None;
        }
        let Route::Index(name, _) = route else { return None };
        let index = resources.find_index(&name).ok()?;
        let options = CorsOptions::of_index(&index.value)?;
        let listed = options.lists(origin);
        let origin = match (options.allows_all(), listed) {
            (true, _) => "*",
            (false, true) => origin,
            (false, false) => return None,
        };
        Some(Self { origin: origin.to_owned(), max_age_seconds: options.max_age_seconds, listed })
    }

    /// Returns whether the index names the origin of the page. `*` names none.
    pub(super) fn names_origin(&self) -> bool {
        self.listed
    }

    /// Adds the headers that let the page read a response.
    pub(super) fn apply(&self, reply: HttpReply) -> HttpReply {
        let reply = reply
            .with_header(ACCESS_CONTROL_ALLOW_ORIGIN, &self.origin)
            .with_header(ACCESS_CONTROL_EXPOSE_HEADERS, READABLE);
        if self.origin == "*" { reply } else { reply.with_header(VARY, "Origin") }
    }
}

/// Returns whether a browser asks if a page may send a request. Such a request has no key.
pub(super) fn is_preflight(parts: &Parts) -> bool {
    let headers = RequestHeaders(&parts.headers);
    parts.method == Method::OPTIONS
        && headers.get("origin").is_some()
        && headers.get("access-control-request-method").is_some()
}

/// Answers a browser. An index that does not exist is not distinguished from one that does not allow the page.
pub(super) fn preflight(parts: &Parts, grant: Option<&CorsGrant>) -> Result<HttpReply, ApiError> {
    let Some(grant) = grant else {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "CorsNotAllowed",
            "Web pages of this origin cannot send this request. An index allows them to query it with \
             'corsOptions' in its definition.",
        ));
    };
    let asked = RequestHeaders(&parts.headers).get("access-control-request-headers").unwrap_or_default();
    Ok(HttpReply::empty(StatusCode::NO_CONTENT)
        .with_header(ACCESS_CONTROL_ALLOW_METHODS, "GET, POST")
        .with_header(ACCESS_CONTROL_ALLOW_HEADERS, asked)
        .with_header(ACCESS_CONTROL_MAX_AGE, &grant.max_age_seconds.to_string()))
}
