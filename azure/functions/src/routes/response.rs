//! Converts what a function returned to an HTTP response.

use std::fmt::Write as _;

use bytes::Bytes;
use chrono::DateTime;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{Response, StatusCode};

use crate::bindings::raw_json::{checked_members, dotnet_text, member_in_any_case, members, string};
use crate::datum::{Datum, HttpResponseData, ResponseCookie};
use crate::function::{Function, OutputBinding};
use crate::invocation::InvocationOutcome;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Headers of the connection. The host sets them by itself.
const CONNECTION_HEADERS: [HeaderName; 8] = [
    CONNECTION,
    CONTENT_LENGTH,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Why a returned value is not a response.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResponseError {
    #[error("the function returned the status {0:?}, which is not a status code from 200 to 599")]
    Status(String),
    #[error("the function returned the header {0:?}, whose name or value is not allowed in a header")]
    Header(String),
}

/// Returns the response of a function. Without a value it is 204.
pub(crate) fn response(
    outcome: InvocationOutcome,
    function: &Function,
) -> Result<Response<Bytes>, ResponseError> {
    let InvocationOutcome { mut outputs, returned } = outcome;
    let binding = function.outputs.iter().find_map(|output| match output {
        OutputBinding::Http { name } => Some(name.as_str()),
        OutputBinding::Blob(_) => None,
    });
    let Some(name) = binding else { return Ok(empty()) };
    let value = match outputs.iter().position(|(output, _)| output == name) {
        Some(at) => outputs.swap_remove(at).1,
        None => returned,
    };
    match value {
        value if value.is_nothing() => Ok(empty()),
        Datum::HttpResponse(response) => build(*response),
        Datum::Text(text) | Datum::Json(text) => match described_response(&text) {
            Some(response) => build(response),
            None => build(HttpResponseData { body: Datum::Text(text), ..HttpResponseData::default() }),
        },
        other => build(HttpResponseData { body: other, ..HttpResponseData::default() }),
    }
}

fn empty() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Reads a response object, as custom handlers and some workers return it: an object with a member `body`.
fn described_response(text: &str) -> Option<HttpResponseData> {
    let members = members(text.trim())?;
    let body = member_in_any_case(&members, "body")?;
    let status =
        member_in_any_case(&members, "statusCode").or_else(|| member_in_any_case(&members, "status"));
    let headers = member_in_any_case(&members, "headers");
    Some(HttpResponseData {
        status: status
            .filter(|status| *status != "null")
            .map(|status| dotnet_text(status).into_owned())
            .unwrap_or_default(),
        headers: headers.map(described_headers).unwrap_or_default(),
        cookies: Vec::new(),
        body: match string(body) {
            Some(text) => Datum::Text(text.into_owned()),
            None => Datum::Json(body.to_owned()),
        },
    })
}

/// Reads headers. A header may have a list of values.
fn described_headers(json: &str) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, value) in checked_members(json).unwrap_or_default() {
        match value.strip_prefix('[') {
            Some(_) => {
                let values: Vec<String> = serde_json::from_str(value).unwrap_or_default();
                headers.extend(values.into_iter().map(|value| (name.clone().into_owned(), value)));
            }
            None => headers.push((name.into_owned(), dotnet_text(value).into_owned())),
        }
    }
    headers
}

/// Builds the response from its parts.
fn build(data: HttpResponseData) -> Result<Response<Bytes>, ResponseError> {
    let HttpResponseData { status, headers, cookies, body } = data;
    let (body, default_type) = match body {
        Datum::Text(text) => (Bytes::from(text), TEXT),
        Datum::Json(json) if json.trim() == "null" => (Bytes::new(), TEXT),
        Datum::Json(json) => (Bytes::from(json), JSON),
        Datum::Bytes(bytes) => (bytes, BYTES),
        Datum::Int(number) => (Bytes::from(number.to_string()), TEXT),
        Datum::Double(number) => (Bytes::from(number.to_string()), TEXT),
        Datum::Nothing | Datum::HttpRequest(_) | Datum::HttpResponse(_) => (Bytes::new(), TEXT),
    };
    let is_empty = body.is_empty();
    let mut response = Response::new(body);
    *response.status_mut() = parse_status(&status)?;
    let map = response.headers_mut();
    for (name, value) in headers {
        add_header(map, name, value)?;
    }
    for cookie in cookies {
        add_header(map, SET_COOKIE.as_str().to_owned(), cookie_text(&cookie))?;
    }
    if !is_empty && !map.contains_key(CONTENT_TYPE) {
        map.insert(CONTENT_TYPE, default_type);
    }
    Ok(response)
}

/// Parses a status code. Codes below 200 do not end a response, so a function cannot return them.
fn parse_status(text: &str) -> Result<StatusCode, ResponseError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(StatusCode::OK);
    }
    let code = text.parse::<u16>().ok().filter(|code| (200..600).contains(code));
    let status = code.and_then(|code| StatusCode::from_u16(code).ok());
    status.ok_or_else(|| ResponseError::Status(text.to_owned()))
}

fn add_header(headers: &mut HeaderMap, name: String, value: String) -> Result<(), ResponseError> {
    let parsed = HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::try_from(value).ok());
    let (header, value) = parsed.ok_or(ResponseError::Header(name))?;
    if !CONNECTION_HEADERS.contains(&header) {
        headers.append(header, value);
    }
    Ok(())
}

/// Formats a cookie for `Set-Cookie`.
fn cookie_text(cookie: &ResponseCookie) -> String {
    let ResponseCookie { name, value, domain, path, expires, max_age, secure, http_only, same_site } = cookie;
    let mut text = format!("{name}={value}");
    let mut attribute = |name: &str, value: &dyn std::fmt::Display| {
        let _ = write!(text, "; {name}={value}");
    };
    if let Some(expires) = expires.and_then(|seconds| DateTime::from_timestamp(seconds, 0)) {
        attribute("Expires", &expires.format("%a, %d %b %Y %H:%M:%S GMT"));
    }
    if let Some(seconds) = max_age.filter(|seconds| seconds.is_finite()) {
        attribute("Max-Age", &seconds.trunc());
    }
    if let Some(domain) = domain {
        attribute("Domain", domain);
    }
    if let Some(path) = path {
        attribute("Path", path);
    }
    if let Some(same_site) = same_site {
        attribute("SameSite", same_site);
    }
    if *secure {
        text.push_str("; Secure");
    }
    if *http_only {
        text.push_str("; HttpOnly");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returned(value: Datum) -> Result<Response<Bytes>, ResponseError> {
        described(value, "$return")
    }

    fn described(returned: Datum, binding: &str) -> Result<Response<Bytes>, ResponseError> {
        let bindings = [
            serde_json::json!({"type": "httpTrigger", "direction": "in", "name": "req"}),
            serde_json::json!({"type": "http", "direction": "out", "name": binding}),
        ];
        let function = Function::from_bindings("f", "1", Default::default(), &bindings, &|_| None).unwrap();
        response(InvocationOutcome { outputs: Vec::new(), returned }, &function)
    }

    fn shown(response: Result<Response<Bytes>, ResponseError>) -> (u16, String, String) {
        let response = response.unwrap();
        let mut headers: Vec<String> = response
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        headers.sort();
        (
            response.status().as_u16(),
            headers.join("\n"),
            String::from_utf8_lossy(response.body()).into_owned(),
        )
    }

    #[test]
    fn values_become_responses_as_on_the_platform() {
        let text = "content-type: text/plain; charset=utf-8";
        for (value, expected) in [
            (Datum::Nothing, (204, "", "")),
            (Datum::Json("null".to_owned()), (204, "", "")),
            (Datum::from("hello"), (200, text, "hello")),
            // Text keeps its digits, its blanks and its quotes.
            (Datum::Json("{\"a\": 1.50}".to_owned()), (200, text, "{\"a\": 1.50}")),
            (Datum::Json("\"x\"".to_owned()), (200, text, "\"x\"")),
            (Datum::Int(7), (200, text, "7")),
            (Datum::Bytes(Bytes::from_static(b"ab")), (200, "content-type: application/octet-stream", "ab")),
            (
                Datum::from(
                    r#"{"Body": {"n": 1.0}, "statusCode": 201, "headers": {"X-A": "1", "x-b": ["2", "3"]}}"#,
                ),
                (
                    201,
                    "content-type: application/json; charset=utf-8\nx-a: 1\nx-b: 2\nx-b: 3",
                    "{\"n\": 1.0}",
                ),
            ),
            (Datum::from(r#"{"status": "404", "body": "none"}"#), (404, text, "none")),
        ] {
            let (status, headers, body) = expected;
            let expected = (status, headers.to_owned(), body.to_owned());
            assert_eq!(shown(returned(value.clone())), expected, "{value:?}");
        }
    }

    #[test]
    fn cookies_and_headers_of_a_response_are_sent() {
        let cookie = ResponseCookie {
            name: "a".to_owned(),
            value: "b".to_owned(),
            path: Some("/".to_owned()),
            expires: Some(0),
            max_age: Some(60.0),
            secure: true,
            http_only: true,
            same_site: Some("Lax"),
            ..ResponseCookie::default()
        };
        let headers = [("Content-Type", "a/b"), ("transfer-encoding", "chunked"), ("content-length", "99")];
        let data = HttpResponseData {
            status: "302".to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            cookies: vec![cookie],
            body: Datum::from("x"),
        };
        let cookie = "set-cookie: a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60; Path=/; SameSite=Lax; Secure; HttpOnly";
        let (status, headers, _) = shown(returned(Datum::HttpResponse(Box::new(data))));
        assert_eq!((status, headers), (302, format!("content-type: a/b\n{cookie}")));
    }

    #[test]
    fn what_cannot_be_sent_is_an_error() {
        let with = |status: &str, header: (&str, &str)| {
            let headers = vec![(header.0.to_owned(), header.1.to_owned())];
            let data = HttpResponseData { status: status.to_owned(), headers, ..HttpResponseData::default() };
            returned(Datum::HttpResponse(Box::new(data))).unwrap_err()
        };
        for status in ["abc", "101", "99", "600", "-1"] {
            assert_eq!(with(status, ("a", "b")), ResponseError::Status(status.to_owned()));
        }
        assert_eq!(with("200", ("a b", "c")), ResponseError::Header("a b".to_owned()));
        assert_eq!(with("200", ("a", "b\r\nc: d")), ResponseError::Header("a".to_owned()));
    }
}
