//! Parses headers and a body separately, and sends them as one HTTP request to an endpoint.
//!
//! The input looks like HTTP: `METHOD /path`, a line for each header, an empty line, the body. Lines end
//! with a line feed.

#![cfg_attr(fuzzing, no_main)]

mod exchange;

use bindpost_mcp_http::McpHeaders;
use bindpost_mcp_protocol::header::{
    HeaderArgument, PARAM_PREFIX, SCHEMA_MEMBER, decode_value, encode_value,
};
use bindpost_mcp_server::transport::HeaderValues as _;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// The maximum number of headers that are used. hyper rejects a request with more than a hundred.
const MAX_HEADERS: usize = 40;

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    let input = Input::read(data);
    check_map(&input.headers);
    let values: Vec<&str> = input.headers.values().filter_map(|value| value.to_str().ok()).collect();
    for value in &values {
        if let Some(text) = decode_value(value) {
            check_value(&text);
        }
    }
    if let Ok(text) = std::str::from_utf8(input.body) {
        check_value(text);
        let _ = decode_value(text);
    }
    if let Ok(body) = serde_json::from_slice::<Value>(input.body) {
        let schema = body.get("schema").unwrap_or(&body);
        let arguments = body.get("arguments").unwrap_or(&body);
        if let Ok(found) = HeaderArgument::find_all(schema) {
            check_found(schema, &found);
            for argument in &found {
                check_agreement(argument, arguments, &values);
            }
        }
    }
    exchange::check(&input);
}

pub struct Input<'a> {
    pub first_line: &'a [u8],
    pub headers: HeaderMap,
    pub body: &'a [u8],
}

impl<'a> Input<'a> {
    fn read(data: &'a [u8]) -> Input<'a> {
        let (first_line, mut rest) = split_line(data);
        let mut headers = HeaderMap::new();
        while !rest.is_empty() {
            let (line, after) = split_line(rest);
            rest = after;
            if line.is_empty() {
                break;
            }
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let name = HeaderName::from_bytes(line[..colon].trim_ascii());
            let value = HeaderValue::from_bytes(trim(&line[colon + 1..]));
            if let (Ok(name), Ok(value)) = (name, value)
                && headers.len() < MAX_HEADERS
            {
                headers.append(name, value);
            }
        }
        Input { first_line, headers, body: rest }
    }
}

fn split_line(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[]),
    }
}

/// Trims white space, as HTTP libraries do when they store values.
fn trim(value: &[u8]) -> &[u8] {
    let space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().position(|byte| !space(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !space(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}

fn check_map(headers: &HeaderMap) {
    let read = McpHeaders::new(headers);
    assert!(read.has_headers());
    for name in headers.keys() {
        assert_eq!(read.header(name.as_str()), headers.get(name).and_then(|value| value.to_str().ok()));
    }
    assert_eq!(read.header("no-such-header").is_some(), headers.contains_key("no-such-header"));
}

/// Any text can be encoded in a header, and is decoded unchanged.
fn check_value(text: &str) {
    let encoded = encode_value(text);
    assert_eq!(decode_value(&encoded).as_deref(), Some(text), "{encoded:?}");
    let value = HeaderValue::from_str(&encoded).expect("a header value");
    assert_eq!(value.to_str().ok(), Some(&*encoded));
    assert_eq!(trim(encoded.as_bytes()), encoded.as_bytes());
}

/// Every extracted header exists in the request, and none was missed.
fn check_found(schema: &Value, found: &[HeaderArgument]) {
    for (index, argument) in found.iter().enumerate() {
        let name = argument.header.strip_prefix(PARAM_PREFIX).expect("the prefix");
        assert_eq!(
            HeaderName::from_bytes(argument.header.as_bytes()).expect("a header name").as_str(),
            argument.header
        );
        assert!(found[..index].iter().all(|other| other.header != argument.header));
        assert!(!argument.path.is_empty());
        let property = argument.path.iter().fold(schema, |schema, name| &schema["properties"][name]);
        assert!(property[SCHEMA_MEMBER].as_str().expect("the mark").eq_ignore_ascii_case(name));
        assert!(["string", "integer", "boolean"].contains(&property["type"].as_str().expect("a type")));
    }
    assert_eq!(count_marks(schema), found.len());
}

fn count_marks(schema: &Value) -> usize {
    let below = schema.get("properties").and_then(Value::as_object);
    let below: usize = below.into_iter().flat_map(|properties| properties.values()).map(count_marks).sum();
    below + usize::from(schema.get(SCHEMA_MEMBER).is_some())
}

fn check_agreement(argument: &HeaderArgument, arguments: &Value, values: &[&str]) {
    let given = argument.path.iter().fold(arguments, |value, name| value.get(name).unwrap_or(&Value::Null));
    assert_eq!(argument.agrees(arguments, None), given.is_null());
    for value in values {
        let agrees = argument.agrees(arguments, Some(value));
        assert!(!agrees || agrees_exactly(given, value), "{given} agrees with {value:?}");
    }
    let written = match given {
        Value::String(text) => text.clone(),
        Value::Null | Value::Array(_) | Value::Object(_) => return,
        scalar => scalar.to_string(),
    };
    assert!(argument.agrees(arguments, Some(&encode_value(&written))), "{given} does not agree with itself");
}

/// Returns whether a header matches an argument. Numbers have several notations. Integers are compared
/// digit by digit, because a proxy may read more digits than a float represents.
pub fn agrees_exactly(argument: &Value, header: &str) -> bool {
    let Some(text) = decode_value(header) else { return false };
    match argument {
        Value::String(argument) => *argument == text,
        Value::Bool(argument) => argument.to_string() == text,
        Value::Number(number) => match (number.to_string().parse::<i128>(), text.parse::<i128>()) {
            (Ok(argument), Ok(header)) => argument == header,
            _ => text.parse().is_ok_and(|header: f64| number.as_f64() == Some(header)),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}
