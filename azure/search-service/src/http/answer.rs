//! Responses: the status, the body, and the headers of every response of Azure AI Search.

use std::time::Instant;

use bindpost_azure_search_model::ApiError;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde_json::json;

/// The amount of OData metadata in response bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataLevel {
    None,
    Minimal,
    Full,
}

/// A response before its common headers are added.
#[derive(Debug, Clone)]
pub struct HttpReply {
    status: StatusCode,
    body: ReplyBody,
    headers: Vec<(HeaderName, HeaderValue)>,
}

#[derive(Debug, Clone)]
enum ReplyBody {
    Empty,
    Json(Bytes),
    Error(Bytes),
    Text(String),
}

impl HttpReply {
    /// Creates a response from serialized JSON.
    pub fn raw(status: StatusCode, json: impl Into<Bytes>) -> Self {
        Self { status, body: ReplyBody::Json(json.into()), headers: Vec::new() }
    }

    pub fn json(status: StatusCode, value: &impl Serialize) -> Result<Self, ApiError> {
        let bytes =
            serde_json::to_vec(value).map_err(|error| ApiError::internal("writing a response", error))?;
        Ok(Self::raw(status, bytes))
    }

    pub fn empty(status: StatusCode) -> Self {
        Self { status, body: ReplyBody::Empty, headers: Vec::new() }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self { status: StatusCode::OK, body: ReplyBody::Text(text.into()), headers: Vec::new() }
    }

    /// Creates the response for an error.
    pub fn from_error(error: &ApiError) -> Self {
        let details: Vec<_> = error
            .details
            .iter()
            .map(|detail| json!({"code": detail.code, "message": detail.message}))
            .collect();
        let mut body = json!({"error": {"code": error.code, "message": error.message}});
        if let (false, Some(body)) = (details.is_empty(), body.get_mut("error")) {
            body["details"] = details.into();
        }
        let bytes = Bytes::from(body.to_string());
        let reply = Self { status: error.status, body: ReplyBody::Error(bytes), headers: Vec::new() };
        match error.status {
            StatusCode::UNAUTHORIZED => reply.with_header(WWW_AUTHENTICATE, "ApiKey"),
            // A retry does not help after a timeout, or if an index cannot be opened.
            StatusCode::SERVICE_UNAVAILABLE if error.code == "ServiceUnavailable" => {
                reply.with_header(RETRY_AFTER, "1")
            }
            _ => reply,
        }
    }

    /// Adds a header. An invalid value is ignored.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }
}

/// The parts of a request that its response needs.
pub(super) struct ReplyContext {
    pub(super) started: Instant,
    pub(super) client_request_id: Option<String>,
    pub(super) metadata: MetadataLevel,
}

impl ReplyContext {
    pub(super) fn response(&self, reply: HttpReply) -> Response<Full<Bytes>> {
        let (content_type, bytes) = match reply.body {
            ReplyBody::Empty => (None, Bytes::new()),
            ReplyBody::Json(bytes) => (Some(self.metadata.content_type()), bytes),
            ReplyBody::Error(bytes) => (Some("application/json; charset=utf-8"), bytes),
            ReplyBody::Text(text) => (Some("text/plain; charset=utf-8"), Bytes::from(text)),
        };
        let mut response = Response::new(Full::new(bytes));
        *response.status_mut() = reply.status;
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert("odata-version", HeaderValue::from_static("4.0"));
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            let applied = HeaderValue::from_static("odata.include-annotations=\"*\"");
            headers.insert("preference-applied", applied);
        }
        headers.insert("elapsed-time", HeaderValue::from(self.elapsed_millis()));
        // Azure uses the client's id as its own, and returns it in three headers.
        let id = self.client_request_id.clone().unwrap_or_else(new_id);
        if let Ok(id) = HeaderValue::from_str(&id) {
            if self.client_request_id.is_some() {
                headers.insert("client-request-id", id.clone());
                headers.insert("x-ms-client-request-id", id.clone());
            }
            headers.insert("request-id", id);
        }
        for (name, value) in reply.headers {
            headers.insert(name, value);
        }
        response
    }

    pub(super) fn elapsed_millis(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl MetadataLevel {
    fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json; odata.metadata=none; charset=utf-8",
            Self::Minimal => "application/json; odata.metadata=minimal; charset=utf-8",
            Self::Full => "application/json; odata.metadata=full; charset=utf-8",
        }
    }
}

/// Returns a random UUID.
fn new_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness the id is all zeros. It is only used to find a request in a log.
    let _ = getrandom::fill(&mut bytes);
    let random = u128::from_be_bytes(bytes) & !(0xF << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{random:032x}");
    let mut id = String::with_capacity(36);
    for (position, digit) in hex.chars().enumerate() {
        if matches!(position, 8 | 12 | 16 | 20) {
            id.push('-');
        }
        id.push(digit);
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_random_uuid() {
        let id = new_id();
        let dashes: Vec<_> = id.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((id.len(), dashes), (36, vec![8, 13, 18, 23]), "{id}");
        assert_eq!(id.as_bytes()[14], b'4', "{id}");
        assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
        assert_ne!(id, new_id());
    }

    #[test]
    fn an_error_has_code_message_and_details() {
        let error = ApiError::invalid("no").with_detail("Finer", "because");
        let ReplyBody::Error(bytes) = HttpReply::from_error(&error).body else { panic!("not an error") };
        let expected = r#"{"error":{"code":"InvalidRequestParameter","details":[{"code":"Finer","message":"because"}],"message":"no"}}"#;
        assert_eq!(bytes, expected);
    }
}
