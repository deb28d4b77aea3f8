//! HTTP client of the search service's REST API.

use std::fmt::Write as _;
use std::sync::Arc;

use bindpost_net_upstream::{Upstream, UpstreamRequest, UpstreamResponse};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::Value;

use crate::service::failure::{Kind, ServiceFailure, header_text};

/// A client of one search service: its URL, its credential and the API version.
#[derive(Clone, Debug)]
pub struct SearchClient {
    upstream: Arc<Upstream>,
    api_version: String,
}

impl SearchClient {
    pub fn new(upstream: Arc<Upstream>, api_version: impl Into<String>) -> SearchClient {
        SearchClient { upstream, api_version: api_version.into() }
    }

    pub fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }

    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Returns whether knowledge agents are called knowledge bases in this API version: since 2025-11-01.
    pub fn has_knowledge_bases(&self) -> bool {
        // Versions begin with a date, so they can be compared as text.
        self.api_version.get(..10).is_some_and(|date| date >= "2025-11-01")
    }

    /// Starts a GET request for a path such as `indexes('hotels')/search.stats`. Names in a path must
    /// go through [`odata_key`].
    pub fn get(&self, path: impl Into<String>) -> ServiceRequest<'_> {
        self.call(Method::GET, path)
    }

    pub fn post(&self, path: impl Into<String>, body: Value) -> ServiceRequest<'_> {
        self.call(Method::POST, path).body(body)
    }

    pub fn put(&self, path: impl Into<String>, body: Value) -> ServiceRequest<'_> {
        self.call(Method::PUT, path).body(body)
    }

    pub fn delete(&self, path: impl Into<String>) -> ServiceRequest<'_> {
        self.call(Method::DELETE, path)
    }

    pub fn call(&self, method: Method, path: impl Into<String>) -> ServiceRequest<'_> {
        let repeatable = method != Method::POST;
        ServiceRequest {
            client: self,
            method,
            path: path.into(),
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: None,
            repeatable,
            unsendable: None,
        }
    }
}

/// A request that has not been sent.
#[derive(Debug)]
pub struct ServiceRequest<'a> {
    client: &'a SearchClient,
    method: Method,
    path: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Option<Value>,
    repeatable: bool,
    /// The name of a header whose value is invalid.
    unsendable: Option<&'static str>,
}

impl ServiceRequest<'_> {
    /// Adds a query parameter.
    pub fn query(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a header. An invalid value fails the request before it is sent.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => drop(self.headers.insert(HeaderName::from_static(name), value)),
            Err(_) => self.unsendable = Some(name),
        }
        self
    }

    /// Sets the caller's id of the request, if there is one.
    pub fn request_id(self, id: Option<&str>) -> Self {
        match id {
            Some(id) => self.header("x-ms-client-request-id", id),
            None => self,
        }
    }

    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Marks a POST that only reads. It may be retried.
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Sends the request. Every status below 300 is a success, including 206 and 207, which report
    /// failed parts.
    pub async fn send(self) -> Result<ServiceResponse, ServiceFailure> {
        let ServiceRequest { client, method, path, query, mut headers, body, repeatable, unsendable } = self;
        if let Some(name) = unsendable {
            let message = format!("invalid value for the header {name}; use visible ASCII characters");
            return Err(ServiceFailure::new(Kind::InvalidRequest, message));
        }
        let mut path = format!("/{path}?api-version={}", percent_encoded(&client.api_version));
        for (name, value) in &query {
            let _ = write!(path, "&{}={}", percent_encoded(name), percent_encoded(value));
        }
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let body = match body {
            Some(body) => {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Some(body.to_string().into())
            }
            None => None,
        };
        let (verb, place) = (method.clone(), path_without_query(&path).to_owned());
        let redirects = |method: &Method, to: &str| match *method == verb && path_without_query(to) == place {
            true => Ok(to.to_owned()),
            false => Err(
                "a call of the search service stays at its path; if the service has moved, the operator has \
                          to change its endpoint"
                    .to_owned(),
            ),
        };
        let request = UpstreamRequest {
            method,
            path,
            headers,
            body,
            repeatable,
            extensions: http::Extensions::default(),
        };
        ServiceResponse::read(client.upstream.send_within(request, &redirects).await?)
    }
}

/// A successful response of the service.
#[derive(Clone, Debug)]
pub struct ServiceResponse {
    pub status: u16,
    pub headers: HeaderMap,
    /// The body, or `null` if there is none.
    pub body: Value,
}

impl ServiceResponse {
    fn read(incoming: UpstreamResponse) -> Result<ServiceResponse, ServiceFailure> {
        let text = incoming.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&incoming.body);
        let body = match text.is_empty() {
            true => Ok(Value::Null),
            false => serde_json::from_slice::<Value>(text),
        };
        if incoming.status.as_u16() >= 300 {
            return Err(ServiceFailure::from_response(&incoming, body.as_ref().ok()));
        }
        let Ok(mut body) = body else {
            return Err(ServiceFailure {
                kind: Kind::ServerError,
                ..ServiceFailure::from_response(&incoming, None)
            });
        };
        // Both contain the URL of the service, which clients must not see. Paging does not need them.
        if let Some(members) = body.as_object_mut() {
            members.remove("@odata.context");
            members.remove("@odata.nextLink");
        }
        Ok(ServiceResponse { status: incoming.status.as_u16(), headers: incoming.headers, body })
    }

    /// Returns the ETag: the header, or the member of the body.
    pub fn etag(&self) -> Option<String> {
        let member = || self.body.get("@odata.etag").and_then(Value::as_str).map(str::to_owned);
        header_text(&self.headers, "etag").or_else(member)
    }
}

/// Returns the path without its query and without a trailing slash.
fn path_without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or_default().trim_end_matches('/')
}

/// Returns a name as the key of a path: `('name')`, encoded so that it cannot change the path.
pub fn odata_key(name: &str) -> String {
    format!("('{}')", percent_encoded(&name.replace('\'', "''")))
}

/// Percent-encodes everything except letters, digits, `-`, `_` and `~`. Dots are encoded too, so that
/// no segment is `..`.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}
