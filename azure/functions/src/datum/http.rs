//! The request of an HTTP trigger and the response of its function, as workers exchange them.

use super::Datum;

/// The request of an HTTP trigger.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpRequestData {
    pub method: String,
    /// The whole URL, as the client sent it.
    pub url: String,
    /// The headers, with lower-case names. Several values of one name are joined.
    pub headers: Vec<(String, String)>,
    /// The parameters of the query, decoded.
    pub query: Vec<(String, String)>,
    /// The values of the route template, decoded.
    pub params: Vec<(String, String)>,
    /// Text, bytes, or nothing.
    pub body: Datum,
    /// The worker has asked for maps whose values may be null.
    pub uses_nullable_maps: bool,
}

/// The response of a function with an HTTP trigger. Its parts are not checked yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpResponseData {
    /// The status code as text. Empty means 200.
    pub status: String,
    pub headers: Vec<(String, String)>,
    pub cookies: Vec<ResponseCookie>,
    pub body: Datum,
}

/// A cookie that a response sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseCookie {
    pub name: String,
    pub value: String,
    pub domain: Option<String>,
    pub path: Option<String>,
    /// Seconds since 1970.
    pub expires: Option<i64>,
    pub max_age: Option<f64>,
    pub secure: bool,
    pub http_only: bool,
    /// The value of `SameSite`.
    pub same_site: Option<&'static str>,
}
