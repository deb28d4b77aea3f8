//! Describes an HTTP request for a worker, and the values that path expressions and the trigger metadata take from it.

use bindpost_net_json::text::push_string;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use super::template::RouteValues;
use crate::bindings::header_names::spell_header_name;
use crate::bindings::raw_json::{dotnet_text, members};
use crate::bindings::trigger_event::TriggerEvent;
use crate::datum::{Datum, HttpRequestData};
use crate::worker::StreamSlot;

/// How a worker wants to receive requests, by its capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HttpForm {
    /// `RawHttpBodyBytes`: bodies are always bytes.
    pub(crate) takes_bytes: bool,
    /// `UseNullableValueDictionaryForHttp`: maps whose values may be null.
    pub(crate) uses_nullable_maps: bool,
    /// `IgnoreEmptyValuedRpcHttpHeaders`: headers without a value are left out.
    pub(crate) omits_empty_headers: bool,
    /// Header names are spelled as functions with MCP triggers see them. In the worker protocol they are in lower case.
    pub(crate) spells_headers: bool,
    /// `HttpUri`: the worker has a server, to which requests are forwarded.
    pub(crate) streams: bool,
}

/// The query parameter with a key. It is not a value of the request.
const KEY_PARAMETER: &str = crate::host::keys::PARAMETER;

/// Creates the event of a request. `reads_body` adds the members of a JSON body to the values.
pub(crate) fn event(
    parts: &Parts,
    is_secure: bool,
    values: RouteValues,
    body: Bytes,
    form: HttpForm,
    reads_body: bool,
) -> TriggerEvent<'static> {
    let headers = header_texts(parts, form);
    let query = query_values(parts.uri.query().unwrap_or_default());
    let content_type = text_of(&parts.headers, &CONTENT_TYPE);
    let members = reads_body.then(|| body_members(&content_type, &body)).flatten().unwrap_or_default();

    let text = |(name, value): &(String, String)| (name.clone(), Datum::from(value.as_str()));
    let mut named: Vec<(String, Datum)> = values.iter().map(text).collect();
    named.extend(query.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(KEY_PARAMETER)).map(text));
    named.extend(members);
    named.push(("Headers".to_owned(), Datum::Json(object(&headers))));
    named.push(("Query".to_owned(), Datum::Json(object(&query))));

    let request = HttpRequestData {
        method: parts.method.as_str().to_owned(),
        url: url(parts, is_secure),
        headers,
        query,
        params: values,
        body: body_value(&content_type, body, form.takes_bytes),
        uses_nullable_maps: form.uses_nullable_maps,
    };
    TriggerEvent::Named { value: Datum::HttpRequest(Box::new(request)), values: named, stream: None }
}

/// Creates the event of a request that is forwarded to the worker. The worker reads it from its own server, and takes only
/// the values of the route and the headers of the client from here.
pub(crate) fn stream_event(
    parts: &Parts,
    values: RouteValues,
    form: HttpForm,
    stream: StreamSlot,
) -> TriggerEvent<'static> {
    let text = |(name, value): &(String, String)| (name.clone(), Datum::from(value.as_str()));
    let mut named: Vec<(String, Datum)> = values.iter().map(text).collect();
    named.push(("Headers".to_owned(), Datum::Json(object(&header_texts(parts, form)))));
    let request = HttpRequestData {
        params: values,
        uses_nullable_maps: form.uses_nullable_maps,
        ..HttpRequestData::default()
    };
    TriggerEvent::Named { value: Datum::HttpRequest(Box::new(request)), values: named, stream: Some(stream) }
}

/// Returns the URL of a request as its client wrote it.
fn url(parts: &Parts, is_secure: bool) -> String {
    let scheme = if is_secure { "https" } else { "http" };
    let host = match parts.uri.authority() {
        Some(authority) => authority.as_str().to_owned(),
        None => text_of(&parts.headers, &HOST),
    };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    format!("{scheme}://{host}{path}")
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> String {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

/// Returns the headers. Several values of one name are joined.
fn header_texts(parts: &Parts, form: HttpForm) -> Vec<(String, String)> {
    let sent = parts.extensions.get();
    let mut position = 0;
    let mut spelled = |name: &HeaderName| {
        let mut spelled = String::with_capacity(name.as_str().len());
        match form.spells_headers {
            true => spell_header_name(&mut spelled, name, sent, &mut position),
            false => spelled.push_str(name.as_str()),
        }
        spelled
    };
    let mut texts = Vec::with_capacity(parts.headers.len() + 1);
    // A request of HTTP/2 names its host in the URI.
    if let Some(authority) = parts.uri.authority().filter(|_| !parts.headers.contains_key(HOST)) {
        texts.push((spelled(&HOST), authority.as_str().to_owned()));
    }
    for name in parts.headers.keys() {
        let separator = if *name == COOKIE { "; " } else { "," };
        let values = parts.headers.get_all(name).iter();
        let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        let text = values.join(separator);
        if !form.omits_empty_headers || !text.is_empty() {
            texts.push((spelled(name), text));
        }
    }
    texts
}

/// Returns the decoded parameters of a query. Several values of one name are joined with commas, as on the platform.
pub(super) fn query_values(query: &str) -> Vec<(String, String)> {
    let mut values: Vec<(String, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode_form(name), decode_form(value));
        match values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, earlier)) => {
                earlier.push(',');
                earlier.push_str(&value);
            }
            None => values.push((name, value)),
        }
    }
    values
}

/// Decodes a name or value of a query: `+` is a blank.
fn decode_form(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'+', ..) => decoded.push(b' '),
            (b'%', Some(high), Some(low)) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 2;
            }
            _ => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8(decoded).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the top-level members of a JSON body, or `None` if the body is not a JSON object.
fn body_members(content_type: &str, body: &Bytes) -> Option<Vec<(String, Datum)>> {
    if !content_type.to_ascii_lowercase().contains("json") {
        return None;
    }
    let members = members(std::str::from_utf8(body).ok()?.trim())?;
    let value = |json: &str| match json.starts_with(['{', '[']) {
        true => Datum::Json(json.to_owned()),
        false => Datum::Text(dotnet_text(json).into_owned()),
    };
    Some(members.into_iter().map(|(name, json)| (name.into_owned(), value(json))).collect())
}

/// Returns the body for a worker. Text that is not UTF-8 stays bytes, so that nothing is lost.
fn body_value(content_type: &str, body: Bytes, takes_bytes: bool) -> Datum {
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_binary = media_type == "application/octet-stream" || media_type.starts_with("multipart/");
    if body.is_empty() {
        return Datum::Nothing;
    }
    if takes_bytes || is_binary {
        return Datum::Bytes(body);
    }
    match String::from_utf8(body.clone().into()) {
        Ok(text) => Datum::Text(text),
        Err(_) => Datum::Bytes(body),
    }
}

fn object(pairs: &[(String, String)]) -> String {
    let mut json = String::from("{");
    for (at, (name, value)) in pairs.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        push_string(&mut json, name);
        json.push(':');
        push_string(&mut json, value);
    }
    json.push('}');
    json
}

#[cfg(test)]
mod tests {
    use bindpost_mcp_http::listener::SentHeaderNames;
    use http::Request;

    use super::*;

    fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method("POST").uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn described(parts: &Parts, body: &str, form: HttpForm) -> (HttpRequestData, Vec<(String, Datum)>) {
        let route = vec![("id".to_owned(), "7".to_owned())];
        let event = event(parts, false, route, Bytes::copy_from_slice(body.as_bytes()), form, true);
        match event {
            TriggerEvent::Named { value: Datum::HttpRequest(request), values, .. } => (*request, values),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_is_described_as_the_platform_does() {
        let headers =
            [("host", "a.example"), ("X-Two", "1"), ("x-two", "2"), ("cookie", "a=1"), ("x-empty", "")];
        let parts = parts("/api/orders/7?q=a+b%26&q=c&flag&code=key", &headers);
        let (request, values) =
            described(&parts, "text", HttpForm { omits_empty_headers: true, ..HttpForm::default() });
        assert_eq!(request.url, "http://a.example/api/orders/7?q=a+b%26&q=c&flag&code=key");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(request.headers, [pair("host", "a.example"), pair("x-two", "1,2"), pair("cookie", "a=1")]);
        assert_eq!(request.query, [pair("q", "a b&,c"), pair("flag", ""), pair("code", "key")]);
        assert_eq!(request.params, [pair("id", "7")]);
        assert_eq!(request.body, Datum::from("text"));
        let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["id", "q", "flag", "Headers", "Query"]);
    }

    #[test]
    fn a_custom_handler_gets_header_names_as_they_were_sent() {
        let mut parts = parts("/api/a", &[("host", "a.example"), ("x-two", "1")]);
        parts.extensions.insert(SentHeaderNames::from_iter(["HOST", "x-TWO"]));
        let form = HttpForm { spells_headers: true, ..HttpForm::default() };
        let (request, values) = described(&parts, "", form);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(request.headers, [pair("Host", "a.example"), pair("x-TWO", "1")]);
        let headers = Datum::Json(r#"{"Host":"a.example","x-TWO":"1"}"#.to_owned());
        assert!(values.contains(&("Headers".to_owned(), headers)), "{values:?}");
    }

    #[test]
    fn the_members_of_a_json_body_are_values() {
        let parts = parts("/api/a?name=query", &[("content-type", "application/json; charset=utf-8")]);
        let body = r#" {"name":"body","n":1.50,"list":[1],"id":"body"} "#;
        let (_, values) = described(&parts, body, HttpForm::default());
        let first = |name: &str| values.iter().find(|(known, _)| known == name).unwrap().1.clone();
        // The route is stronger than the query, and the query than the body.
        assert_eq!((first("id"), first("name")), (Datum::from("7"), Datum::from("query")));
        assert_eq!((first("n"), first("list")), (Datum::from("1.50"), Datum::Json("[1]".to_owned())));
    }

    #[test]
    fn bodies_are_text_or_bytes_as_the_worker_wants() {
        let bytes = |text: &'static str| Datum::Bytes(Bytes::from_static(text.as_bytes()));
        for (content_type, takes_bytes, body, expected) in [
            ("text/plain", false, "a", Datum::from("a")),
            ("text/plain", true, "a", bytes("a")),
            ("application/octet-stream", false, "a", bytes("a")),
            ("Multipart/Form-Data; boundary=x", false, "a", bytes("a")),
            ("text/plain", true, "", Datum::Nothing),
        ] {
            let body = Bytes::from_static(body.as_bytes());
            assert_eq!(body_value(content_type, body, takes_bytes), expected, "{content_type}");
        }
        let latin = Bytes::from_static(b"\xe4");
        assert_eq!(body_value("text/plain", latin.clone(), false), Datum::Bytes(latin));
    }
}
