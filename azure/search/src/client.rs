//! Calls of the service's REST interface.

use std::fmt::Write as _;
use std::sync::Arc;

use bindpost_mcp_openapi::{Incoming, Outgoing, Upstream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::Value;

use crate::failure::{Failure, Kind};

/// The service: where it is, who we are there, which version of its interface we speak.
#[derive(Clone, Debug)]
pub struct Client {
    upstream: Arc<Upstream>,
    api_version: String,
}

impl Client {
    pub fn new(upstream: Arc<Upstream>, api_version: impl Into<String>) -> Client {
        Client { upstream, api_version: api_version.into() }
    }

    pub fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }

    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// A call of a path such as `indexes('hotels')/search.stats`. Names in it go through [`quoted`].
    pub fn get(&self, path: impl Into<String>) -> Call<'_> {
        self.call(Method::GET, path)
    }

    pub fn post(&self, path: impl Into<String>, body: Value) -> Call<'_> {
        self.call(Method::POST, path).body(body)
    }

    pub fn put(&self, path: impl Into<String>, body: Value) -> Call<'_> {
        self.call(Method::PUT, path).body(body)
    }

    pub fn delete(&self, path: impl Into<String>) -> Call<'_> {
        self.call(Method::DELETE, path)
    }

    pub fn call(&self, method: Method, path: impl Into<String>) -> Call<'_> {
        let repeatable = method != Method::POST;
        Call {
            client: self,
            method,
            path: path.into(),
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: None,
            repeatable,
        }
    }
}

/// One call, not sent yet.
#[derive(Debug)]
pub struct Call<'a> {
    client: &'a Client,
    method: Method,
    path: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Option<Value>,
    repeatable: bool,
}

impl Call<'_> {
    /// A parameter of the query.
    pub fn query(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    /// A header; one that no header can hold is left out.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// A POST that only reads, and may be sent again when it fails.
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Sends it. Every status below 400 is an answer; so are 206 and 207, which tell of parts that failed.
    pub async fn send(self) -> Result<Answer, Failure> {
        let Call { client, method, path, query, mut headers, body, repeatable } = self;
        let mut path = format!("/{path}?api-version={}", encoded(&client.api_version));
        for (name, value) in &query {
            let _ = write!(path, "&{}={}", encoded(name), encoded(value));
        }
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let body = match body {
            Some(body) => {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Some(body.to_string().into())
            }
            None => None,
        };
        let incoming = client.upstream.send(Outgoing { method, path, headers, body, repeatable }).await?;
        Answer::read(incoming)
    }
}

/// What the service answered to a call that went well.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// The body; `null` if there is none.
    pub body: Value,
}

impl Answer {
    fn read(incoming: Incoming) -> Result<Answer, Failure> {
        let Incoming { status, headers, body } = incoming;
        let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&body);
        let body = match text.is_empty() {
            true => Ok(Value::Null),
            false => serde_json::from_slice(text),
        };
        let request_id = text_of(&headers, "request-id");
        if status.as_u16() >= 400 {
            let error = body.as_ref().ok().and_then(|body| body.get("error"));
            let member = |name: &str| Some(error?.get(name)?.as_str()?.to_owned());
            return Err(Failure {
                kind: Kind::of(status),
                status: Some(status.as_u16()),
                code: member("code").filter(|code| !code.is_empty()),
                message: member("message").unwrap_or_else(|| format!("the service answered {status}")),
                request_id,
                more: Default::default(),
            });
        }
        match body {
            Ok(body) => Ok(Answer { status: status.as_u16(), headers, body }),
            Err(_) => {
                let mut failure =
                    Failure::new(Kind::ServerError, "the service answered something that is not JSON");
                failure.status = Some(status.as_u16());
                failure.request_id = request_id;
                Err(failure)
            }
        }
    }

    /// The ETag of what was answered: its header, or the member of the body.
    pub fn etag(&self) -> Option<String> {
        let member = || self.body.get("@odata.etag").and_then(Value::as_str).map(str::to_owned);
        text_of(&self.headers, "etag").or_else(member)
    }

    /// The service's id of the request.
    pub fn request_id(&self) -> Option<String> {
        text_of(&self.headers, "request-id")
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// A name as a key of a path: `('name')`, encoded so that it cannot leave its place.
pub fn quoted(name: &str) -> String {
    format!("('{}')", encoded(&name.replace('\'', "''")))
}

/// Percent-encoded but for letters, digits, `-`, `_` and `~`; dots too, so that no segment means "up".
fn encoded(text: &str) -> String {
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
