//! Converts the arguments of a call to a request to the service.
//!
//! Arguments cannot escape their location in the request. A value stays in its path segment, its query
//! parameter or its header.

mod body;
mod multipart;
mod path;
mod value;

use bindpost_mcp_server::nearest::nearest;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Map, Value};

use crate::operation::{Operation, Parameter, ParameterLocation, ParameterStyle, ResponseStatus};
use bindpost_net_upstream::UpstreamRequest;
use value::{ValueEncoding, encode_value, pairs};

/// Headers that callers cannot set: those of the connection, those with credentials, and those that make
/// some services override the HTTP method.
const OURS: [&str; 17] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

/// The reason why arguments cannot be converted to a request. The messages are for the model. They name
/// the argument and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A required argument is missing.
    #[error("`{0}` is required and missing")]
    Missing(String),
    /// The operation has no such argument.
    #[error("unknown argument `{argument}`; {instead}")]
    #[allow(missing_docs, reason = "the message says it")]
    Unknown { argument: String, instead: String },
    /// The argument cannot be sent.
    #[error("`{argument}` {problem}")]
    #[allow(missing_docs, reason = "the message says it")]
    Unusable { argument: String, problem: String },
    /// The document describes an operation that cannot be called.
    #[error("this operation cannot be called: {0}")]
    Operation(String),
}

impl RequestError {
    fn unusable(argument: &str, problem: impl Into<String>) -> RequestError {
        RequestError::Unusable { argument: argument.to_owned(), problem: problem.into() }
    }
}

/// Returns the name of the argument for the body: `body`, unless a parameter has that name.
pub fn body_argument(operation: &Operation) -> &'static str {
    let free = |name: &&&str| operation.parameters.iter().all(|parameter| parameter.argument != **name);
    ["body", "requestBody"].iter().find(free).copied().unwrap_or("bodyOfRequest")
}

/// Returns the name of the argument for the method, if calls of the operation choose one: `method`, unless a parameter has
/// that name.
pub(crate) fn method_argument(operation: &Operation) -> Option<&'static str> {
    if operation.other_methods.is_empty() {
        return None;
    }
    let free = |name: &&&str| operation.parameters.iter().all(|parameter| parameter.argument != **name);
    Some(["method", "httpMethod"].iter().find(free).copied().unwrap_or("methodOfRequest"))
}

/// Returns the method of a call with these arguments.
fn method_of(operation: &Operation, arguments: &Map<String, Value>) -> Result<Method, RequestError> {
    let Some(argument) = method_argument(operation) else { return Ok(operation.method.clone()) };
    let given = match arguments.get(argument) {
        None | Some(Value::Null) => return Err(RequestError::Missing(argument.to_owned())),
        Some(given) => given.as_str().unwrap_or_default(),
    };
    let method = operation.methods().find(|method| method.as_str() == given).cloned().ok_or_else(|| {
        let known: Vec<&str> = operation.methods().map(Method::as_str).collect();
        RequestError::unusable(argument, format!("must be one of {}", known.join(", ")))
    })?;
    let body = body_argument(operation);
    let has_body = arguments.get(body).is_some_and(|body| !body.is_null());
    if has_body && !matches!(method, Method::POST | Method::PUT | Method::PATCH) {
        return Err(RequestError::unusable(
            body,
            format!("cannot be sent with the method {method}; remove it"),
        ));
    }
    Ok(method)
}

/// Returns the query string for these arguments.
pub(crate) fn query(operation: &Operation, arguments: &Map<String, Value>) -> String {
    let parameters =
        operation.parameters.iter().filter(|parameter| parameter.place == ParameterLocation::Query);
    let given = parameters.filter_map(|parameter| Some((parameter, arguments.get(&parameter.argument)?)));
    given.flat_map(|(parameter, value)| pairs(parameter, value)).collect::<Vec<_>>().join("&")
}

/// Builds the request for a call with these arguments.
///
/// Arguments that are `null` are treated as missing. Values are not checked against schemas here.
pub fn build_request(
    operation: &Operation,
    arguments: &Map<String, Value>,
) -> Result<UpstreamRequest, RequestError> {
    check_names(operation, arguments)?;
    let method = method_of(operation, arguments)?;
    let given = |parameter: &Parameter| arguments.get(&parameter.argument).filter(|value| !value.is_null());
    let mut query = Vec::new();
    let mut cookies = Vec::new();
    let mut headers = HeaderMap::new();
    for parameter in &operation.parameters {
        let ours = parameter.place == ParameterLocation::Header && is_reserved_header(&parameter.name);
        let Some(value) = given(parameter) else {
            if parameter.required && !ours {
                return Err(RequestError::Missing(parameter.argument.clone()));
            }
            continue;
        };
        if let Some(name) = colliding_member(operation, parameter, value) {
            let problem = format!("has a member `{name}`, which is the name of another parameter; remove it");
            return Err(RequestError::unusable(&parameter.argument, problem));
        }
        match parameter.place {
            ParameterLocation::Path => {}
            ParameterLocation::Query => query.extend(pairs(parameter, value)),
            ParameterLocation::Cookie => cookies.extend(pairs(parameter, value)),
            ParameterLocation::Header if ours => {
                let problem = "is a header that this server sets itself; omit it";
                return Err(RequestError::unusable(&parameter.argument, problem));
            }
            ParameterLocation::Header => {
                let (name, value) = header(parameter, value)?;
                headers.insert(name, value);
            }
        }
    }
    let mut path = path::fill_path(operation, given)?;
    if !query.is_empty() {
        path.push(if path.contains('?') { '&' } else { '?' });
        path.push_str(&query.join("&"));
    }
    if !cookies.is_empty() {
        let value = HeaderValue::from_str(&cookies.join("; "));
        headers.insert(header::COOKIE, value.map_err(|error| RequestError::Operation(error.to_string()))?);
    }
    if !headers.contains_key(header::ACCEPT) {
        headers.insert(header::ACCEPT, accept_header(operation));
    }
    let body = match &operation.body {
        Some(body) => body::encode_body(body, body_argument(operation), arguments, &mut headers)?,
        None => None,
    };
    let repeatable = operation.hints.read_only || operation.hints.idempotent;
    Ok(UpstreamRequest { method, path, headers, body, repeatable, extensions: Extensions::new() })
}

/// Returns the member of an object that would be serialised like another parameter.
fn colliding_member<'a>(operation: &Operation, parameter: &Parameter, value: &'a Value) -> Option<&'a str> {
    if !matches!(parameter.place, ParameterLocation::Query | ParameterLocation::Cookie)
        || !parameter.explode
        || matches!(parameter.style, ParameterStyle::DeepObject | ParameterStyle::Json)
    {
        return None;
    }
    let is_other = |name: &str| {
        operation.parameters.iter().any(|other| {
            // Many services compare names case-insensitively.
            other.place == parameter.place
                && other.name.eq_ignore_ascii_case(name)
                && other.argument != parameter.argument
        })
    };
    value.as_object()?.keys().map(String::as_str).find(|name| is_other(name))
}

/// Returns whether a header cannot be set by arguments or by the caller's request.
pub(crate) fn is_reserved_header(name: &str) -> bool {
    OURS.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

fn check_names(operation: &Operation, arguments: &Map<String, Value>) -> Result<(), RequestError> {
    let body = operation.body.is_some().then(|| body_argument(operation));
    let mut known: Vec<&str> =
        operation.parameters.iter().map(|parameter| parameter.argument.as_str()).collect();
    known.extend(body);
    known.extend(method_argument(operation));
    let Some(unknown) = arguments.keys().find(|name| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let instead = match nearest(unknown, &known) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "this operation has no arguments".to_owned(),
        None => format!("known: {}", known.join(", ")),
    };
    Err(RequestError::Unknown { argument: unknown.chars().take(100).collect(), instead })
}

fn header(parameter: &Parameter, value: &Value) -> Result<(HeaderName, HeaderValue), RequestError> {
    let name = HeaderName::from_bytes(parameter.name.as_bytes()).map_err(|_| {
        RequestError::Operation(format!("its parameter `{}` is not a valid header name", parameter.name))
    })?;
    let text = encode_value(parameter, value, ValueEncoding::Plain);
    if text.chars().any(|c| c.is_control() && c != '\t') {
        let problem = "is sent in a header and contains a line break or another control character; remove it";
        return Err(RequestError::unusable(&parameter.argument, problem));
    }
    let value = HeaderValue::from_str(&text)
        .map_err(|_| RequestError::unusable(&parameter.argument, "cannot be sent in a header"))?;
    Ok((name, value))
}

/// Returns the media types of the operation's responses, those of the success response first.
fn accept_header(operation: &Operation) -> HeaderValue {
    let of = |good: bool| {
        let is_good = |status| match status {
            ResponseStatus::Exactly(status) => (200..300).contains(&status),
            ResponseStatus::Class(class) => class == 2,
            ResponseStatus::Default => false,
        };
        operation.responses.iter().filter(move |response| is_good(response.status) == good)
    };
    let mut types: Vec<&str> = Vec::new();
    for found in of(true).chain(of(false)).filter_map(|response| response.content_type.as_deref()) {
        if !types.contains(&found) && types.len() < 8 {
            types.push(found);
        }
    }
    let some = if types.is_empty() { "application/json, */*;q=0.5".to_owned() } else { types.join(", ") };
    HeaderValue::from_str(&some).unwrap_or_else(|_| HeaderValue::from_static("*/*"))
}
