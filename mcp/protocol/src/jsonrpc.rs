//! The JSON-RPC 2.0 codec: bytes to [`Message`] and back.
//!
//! A message keeps the bytes of the body it was decoded from. Its members are decoded on demand.
//! Members that are not decoded can be passed on unchanged.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::json::{
    self, ByteSpan, JsonError, JsonErrorKind, JsonMember, MemberLevel, MessageOutline, RootKind,
};

/// Parse error: the body is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// Invalid request: the JSON is not a JSON-RPC message.
pub const INVALID_REQUEST: i64 = -32600;
/// Method not found: the method does not exist in this revision.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Invalid params: the parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// Internal error: the server failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// Session not found. Only legacy revisions, up to 2025-11-25, have sessions.
pub const SESSION_NOT_FOUND: i64 = -32001;
/// Header mismatch: a header and the body disagree (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The client lacks a capability that this request requires (2026-07-28).
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The requested revision is not supported (2026-07-28).
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// The id of a request: a string or an integer. The response repeats it with the same type and value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(IdKind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum IdKind {
    Integer(i64),
    /// The digits of an integer that does not fit 64 bits.
    Large(Box<str>),
    Text(Box<str>),
}

impl RequestId {
    /// Parses an id from JSON text. Returns `None` unless it is a string or an integer.
    fn from_json(json: &[u8]) -> Option<RequestId> {
        if json.first() == Some(&b'"') {
            let text = RawJson(json).as_text()?;
            return Some(RequestId(IdKind::Text(text.into())));
        }
        let (negative, digits) = match json.split_first() {
            Some((b'-', digits)) => (true, digits),
            _ => (false, json),
        };
        let mut integer: Option<i64> = Some(0);
        for digit in digits {
            if !digit.is_ascii_digit() {
                return None;
            }
            let digit = i64::from(digit - b'0');
            integer = integer.and_then(|sum| sum.checked_mul(10)?.checked_add(digit));
        }
        Some(RequestId(match integer {
            Some(integer) => IdKind::Integer(if negative { -integer } else { integer }),
            None => IdKind::Large(text(json).into()),
        }))
    }

    /// Returns whether the id is a string or fits 64 bits. Any other integer would lose
    /// digits in a `serde_json::Value`.
    pub fn is_ordinary(&self) -> bool {
        !matches!(self.0, IdKind::Large(_))
    }

    /// Appends the id as JSON.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.0 {
            IdKind::Integer(integer) => write_integer(out, *integer),
            IdKind::Large(digits) => out.extend_from_slice(digits.as_bytes()),
            IdKind::Text(text) => write_string(out, text),
        }
    }
}

impl From<i64> for RequestId {
    fn from(integer: i64) -> RequestId {
        RequestId(IdKind::Integer(integer))
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> RequestId {
        RequestId(IdKind::Text(text.into()))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            IdKind::Integer(integer) => integer.fmt(f),
            IdKind::Large(text) | IdKind::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            IdKind::Integer(integer) => serializer.serialize_i64(*integer),
            IdKind::Text(text) => serializer.serialize_str(text),
            IdKind::Large(digits) => {
                let raw = serde_json::value::RawValue::from_string(digits.to_string());
                raw.map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RequestId, D::Error> {
        let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
        RequestId::from_json(raw.get().as_bytes())
            .ok_or_else(|| serde::de::Error::custom("an id must be a string or an integer"))
    }
}

/// The decoded content of a body.
#[derive(Debug)]
pub enum DecodedBody {
    /// A single message.
    One(Message),
    /// A batch (2025-03-26 only). Each element is decoded on its own and may fail on its own.
    Batch(Vec<Result<Message, DecodeError>>),
}

/// One JSON-RPC message.
#[derive(Debug)]
pub enum Message {
    /// A message that expects a response.
    Request(Request),
    /// A message that expects no response.
    Notification(Notification),
    /// The response to a request that this side sent.
    Response(Response),
}

/// A request: an id, a method and parameters.
#[derive(Debug)]
pub struct Request {
    /// The id, repeated in the response.
    pub id: RequestId,
    method: MethodName,
    params: Params,
}

/// A notification: a method and parameters.
#[derive(Debug)]
pub struct Notification {
    method: MethodName,
    params: Params,
}

/// The response to a request that this side sent.
#[derive(Debug)]
pub struct Response {
    /// The id of the request.
    pub id: RequestId,
    /// The result as JSON text, or the error.
    pub outcome: Result<Bytes, ErrorObject>,
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// The error code: a constant of this module, or an application code outside -32768…-32000.
    pub code: i64,
    /// A short description of the error, in one sentence.
    pub message: String,
    /// Additional information about the error, for use by programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ErrorObject {
    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> ErrorObject {
        ErrorObject { code, message: message.into(), data: None }
    }

    /// Sets the data.
    pub fn with_data(mut self, data: Value) -> ErrorObject {
        self.data = Some(data);
        self
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}

/// The error for a body that is not a valid message.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeError {
    /// The id of the request, if it could be parsed.
    pub id: Option<RequestId>,
    /// The error to send in the response.
    pub error: ErrorObject,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for DecodeError {}

/// The name of a method: a constant for methods of the protocol, a string for all others.
#[derive(Debug)]
enum MethodName {
    Known(&'static str),
    Other(Box<str>),
}

impl MethodName {
    fn read(raw: RawJson<'_>) -> Option<MethodName> {
        if let Some(known) = METHODS.iter().find(|known| raw.is_text(known)) {
            return Some(MethodName::Known(known));
        }
        raw.as_text().map(|name| MethodName::Other(name.into()))
    }

    fn as_str(&self) -> &str {
        match self {
            MethodName::Known(name) => name,
            MethodName::Other(name) => name,
        }
    }
}

/// The methods of the protocol that a client may send, the most frequent first.
const METHODS: [&str; 23] = [
    "tools/call",
    "tools/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "prompts/list",
    "completion/complete",
    "server/discover",
    "initialize",
    "ping",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
];

/// Decodes a body that holds a message or a batch.
pub fn decode(body: Bytes) -> Result<DecodedBody, DecodeError> {
    match json::outline(&body) {
        Err(fault) => Err(to_decode_error(&body, &fault)),
        Ok(outline) if outline.root == RootKind::Array => {
            if outline.elements.is_empty() {
                return Err(invalid(None, "a batch must not be empty"));
            }
            let one = |span: &ByteSpan| decode_one(body.slice(span.start as usize..span.end as usize));
            Ok(DecodedBody::Batch(outline.elements.iter().map(one).collect()))
        }
        Ok(outline) => decode_message(body, outline).map(DecodedBody::One),
    }
}

/// Decodes a body that must hold exactly one message.
pub fn decode_one(body: Bytes) -> Result<Message, DecodeError> {
    let outline = json::outline(&body).map_err(|fault| to_decode_error(&body, &fault))?;
    decode_message(body, outline)
}

fn to_decode_error(body: &Bytes, fault: &JsonError) -> DecodeError {
    let id = fault.id.is_present().then(|| RequestId::from_json(slice(body, fault.id))).flatten();
    let code = match fault.what {
        JsonErrorKind::Duplicate(_) => INVALID_REQUEST,
        _ => PARSE_ERROR,
    };
    let kind = if code == PARSE_ERROR { "invalid JSON" } else { "ambiguous JSON" };
    DecodeError { id, error: ErrorObject::new(code, format!("{kind}: {}", fault.explain(body))) }
}

fn invalid(id: Option<RequestId>, reason: &str) -> DecodeError {
    DecodeError { id, error: ErrorObject::new(INVALID_REQUEST, format!("invalid request: {reason}")) }
}

fn decode_message(body: Bytes, outline: MessageOutline) -> Result<Message, DecodeError> {
    if outline.root != RootKind::Object {
        return Err(invalid(None, "a message must be a JSON object"));
    }
    let id = match outline.id.is_present() {
        false => None,
        true => Some(
            RequestId::from_json(slice(&body, outline.id))
                .ok_or_else(|| invalid(None, "`id` must be a string or an integer"))?,
        ),
    };
    if slice(&body, outline.jsonrpc) != b"\"2.0\"" {
        return Err(invalid(id, "`jsonrpc` must be \"2.0\""));
    }
    if outline.method.is_present() {
        let Some(method) = MethodName::read(RawJson(slice(&body, outline.method))) else {
            return Err(invalid(id, "`method` must be a string"));
        };
        if outline.params.is_present() && !slice(&body, outline.params).starts_with(b"{") {
            return Err(invalid(id, "`params` must be an object"));
        }
        let params = Params { body, whole: outline.params, members: outline.members };
        return Ok(match id {
            Some(id) => Message::Request(Request { id, method, params }),
            None => Message::Notification(Notification { method, params }),
        });
    }
    let Some(id) = id else {
        return Err(invalid(None, "`method` and `id` are both missing"));
    };
    // A response carries an id of this side. An error that repeats it would look like a response to it.
    let outcome = match (outline.result.is_present(), outline.error.is_present()) {
        (true, false) => Ok(body.slice(outline.result.start as usize..outline.result.end as usize)),
        (false, true) => {
            let raw = RawJson(slice(&body, outline.error));
            match raw.is_object().then(|| raw.decode().ok()).flatten() {
                Some(error) => Err(error),
                None => return Err(invalid(None, "`error` must be an object with a code and a message")),
            }
        }
        _ => return Err(invalid(None, "a response must have either `result` or `error`")),
    };
    Ok(Message::Response(Response { id, outcome }))
}

/// Returns a part of the body. Spans come from the pass over the same body. That pass checked that the
/// body is UTF-8, and spans begin and end at ASCII bytes.
fn slice(body: &Bytes, span: ByteSpan) -> &[u8] {
    body.get(span.start as usize..span.end as usize).unwrap_or_default()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

impl Request {
    /// Returns the name of the method.
    pub fn method(&self) -> &str {
        self.method.as_str()
    }
    /// Returns the parameters. They are empty if the message has none.
    pub fn params(&self) -> &Params {
        &self.params
    }
    /// Releases the parameters and the body that holds them.
    pub fn forget_params(&mut self) {
        self.params = Params { body: Bytes::new(), whole: ByteSpan::default(), members: Vec::new() };
    }

    /// Splits the request into its id and its parameters.
    pub fn into_parts(self) -> (RequestId, Params) {
        (self.id, self.params)
    }
}

impl Notification {
    /// Returns the name of the method.
    pub fn method(&self) -> &str {
        self.method.as_str()
    }
    /// Returns the parameters. They are empty if the message has none.
    pub fn params(&self) -> &Params {
        &self.params
    }
}

/// The parameters of a request or notification. Each member is decoded on demand.
#[derive(Debug)]
pub struct Params {
    body: Bytes,
    whole: ByteSpan,
    members: Vec<JsonMember>,
}

impl Params {
    /// Returns one member.
    pub fn get(&self, name: &str) -> Option<RawJson<'_>> {
        self.find(MemberLevel::Params, name)
    }

    /// Returns one member of `_meta`.
    pub fn meta(&self, name: &str) -> Option<RawJson<'_>> {
        self.find(MemberLevel::Meta, name)
    }

    /// Returns a member that is a string. Returns `None` if it is missing or has another type.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name)?.as_text()
    }

    /// Returns the JSON text of a member. It shares the memory of the body.
    pub fn get_bytes(&self, name: &str) -> Option<Bytes> {
        let member = self.member(MemberLevel::Params, name)?;
        Some(self.body.slice(member.value.start as usize..member.value.end as usize))
    }

    /// Decodes all parameters as one value. Missing parameters decode like an empty object.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.as_bytes())
    }

    /// Returns the number of bytes that these parameters keep in memory, which is the size
    /// of the whole body.
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// Returns all parameters as JSON text.
    pub fn as_json(&self) -> &str {
        text(self.as_bytes())
    }

    fn as_bytes(&self) -> &[u8] {
        if self.whole.is_present() { slice(&self.body, self.whole) } else { b"{}" }
    }

    /// Returns the name and the JSON text of every member, in order.
    pub fn members(&self) -> impl Iterator<Item = (Cow<'_, str>, RawJson<'_>)> {
        self.members
            .iter()
            .filter(|member| member.level == MemberLevel::Params)
            .map(|member| (self.key(member), RawJson(slice(&self.body, member.value))))
    }

    fn key(&self, member: &JsonMember) -> Cow<'_, str> {
        if member.key_escaped {
            let quoted = ByteSpan { start: member.key.start - 1, end: member.key.end + 1 };
            RawJson(slice(&self.body, quoted)).as_text().unwrap_or_default()
        } else {
            Cow::Borrowed(text(slice(&self.body, member.key)))
        }
    }

    fn member(&self, level: MemberLevel, name: &str) -> Option<&JsonMember> {
        self.members.iter().find(|member| {
            member.level == level
                && if member.key_escaped {
                    self.key(member) == name
                } else {
                    slice(&self.body, member.key) == name.as_bytes()
                }
        })
    }

    fn find(&self, level: MemberLevel, name: &str) -> Option<RawJson<'_>> {
        self.member(level, name).map(|member| RawJson(slice(&self.body, member.value)))
    }
}

/// A JSON value that is validated but not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawJson<'a>(&'a [u8]);

impl<'a> RawJson<'a> {
    /// Returns the JSON text.
    pub fn as_json(self) -> &'a str {
        text(self.0)
    }

    /// Returns the string, if the value is a string.
    pub fn as_text(self) -> Option<Cow<'a, str>> {
        let inside = self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        // The text has been checked, so only escapes are left to look for.
        if inside.contains(&b'\\') {
            bindpost_net_json::text::decode(self.as_json())
        } else {
            Some(Cow::Borrowed(text(inside)))
        }
    }

    /// Returns whether the value is this string, written without escapes.
    fn is_text(self, text: &str) -> bool {
        self.0.len() == text.len() + 2 && self.0[1..].starts_with(text.as_bytes()) && self.0[0] == b'"'
    }

    /// Returns whether the value is an object.
    pub fn is_object(self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// Returns whether the value is `null`.
    pub fn is_null(self) -> bool {
        self.0 == b"null"
    }

    /// Decodes the value.
    pub fn decode<T: serde::de::Deserialize<'a>>(self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.0)
    }
}

/// Writes the start of a success response, up to the result. [`RESULT_END`] closes it.
pub fn write_result_start(out: &mut Vec<u8>, id: &RequestId) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write_json(out);
    out.extend_from_slice(b",\"result\":");
}

/// The byte that closes a success response.
pub const RESULT_END: u8 = b'}';

/// Encodes a success response. `result` is JSON text.
pub fn encode_result(id: &RequestId, result: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(result.len() + 64);
    write_result_start(&mut out, id);
    out.extend_from_slice(result);
    out.push(RESULT_END);
    out
}

/// Encodes an error response. Without an id the `id` member is omitted, because the schemas do not
/// allow `null`.
pub fn encode_error(id: Option<&RequestId>, error: &ErrorObject) -> Vec<u8> {
    let mut out = Vec::with_capacity(error.message.len() + 96);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
    if let Some(id) = id {
        out.extend_from_slice(b"\"id\":");
        id.write_json(&mut out);
        out.push(b',');
    }
    out.extend_from_slice(b"\"error\":");
    write_json(&mut out, error);
    out.push(b'}');
    out
}

/// Encodes a notification. `params` must serialise to an object.
pub fn encode_notification(method: &str, params: Option<&impl Serialize>) -> Vec<u8> {
    let mut out = Vec::with_capacity(160);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    write_string(&mut out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        write_json(&mut out, params);
    }
    out.push(b'}');
    out
}

/// Encodes a request from this side.
pub fn encode_request(id: &RequestId, method: &str, params: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write_json(&mut out);
    out.extend_from_slice(b",\"method\":");
    write_string(&mut out, method);
    out.extend_from_slice(b",\"params\":");
    write_json(&mut out, params);
    out.push(b'}');
    out
}

/// Appends a value as JSON. A value that JSON cannot represent, such as a map whose keys are not
/// strings, becomes `null`.
pub fn write_json(out: &mut Vec<u8>, value: &impl Serialize) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    write_json(out, &text);
}

fn write_integer(out: &mut Vec<u8>, integer: i64) {
    write_json(out, &integer);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &'static str) -> Request {
        match decode_one(Bytes::from_static(body.as_bytes())) {
            Ok(Message::Request(request)) => request,
            other => panic!("{body}: {other:?}"),
        }
    }

    fn refusal(body: &'static str) -> String {
        let error = decode(Bytes::from_static(body.as_bytes())).expect_err(body);
        String::from_utf8(encode_error(error.id.as_ref(), &error.error)).unwrap()
    }

    #[test]
    fn ids_keep_type_and_value() {
        for id in ["0", "-7", "\"\"", "\"listen:0\"", "\"é\\n\"", "123456789012345678901234567890"] {
            let body = format!(r#"{{"id":{id},"method":"ping","jsonrpc":"2.0"}}"#);
            let Ok(Message::Request(request)) = decode_one(body.into()) else { panic!("{id}") };
            let answer = String::from_utf8(encode_result(&request.id, b"{}")).unwrap();
            assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        }
    }

    #[test]
    fn rejects_invalid_messages() {
        for (body, code) in [
            ("", PARSE_ERROR),
            ("{", PARSE_ERROR),
            ("[]", INVALID_REQUEST),
            ("7", INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1e2,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"id":1,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, INVALID_REQUEST),
        ] {
            assert!(refusal(body).contains(&format!("\"code\":{code}")), "{body}: {}", refusal(body));
        }
    }

    #[test]
    fn an_error_repeats_a_valid_id() {
        assert!(
            refusal(r#"{"jsonrpc":"2.0","id":"x","method":7}"#)
                .starts_with(r#"{"jsonrpc":"2.0","id":"x","error""#)
        );
        assert!(refusal(r#"{"id":3,"jsonrpc":"2.0","a":1,"a":2}"#).contains(r#""id":3,"#));
        assert!(!refusal(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#).contains("\"id\""));
    }

    #[test]
    fn params_are_found_in_place() {
        let request = request(
            r#"{"params":{"name":"a\u0062","arguments":{"x":[1.0, 2]},"_meta":{"progressToken":0,"x/y":{}}},
                "jsonrpc":"2.0","method":"tools/call","id":1}"#,
        );
        assert_eq!(request.params().text("name").as_deref(), Some("ab"));
        assert_eq!(request.params().get("arguments").map(RawJson::as_json), Some(r#"{"x":[1.0, 2]}"#));
        assert_eq!(request.params().get_bytes("arguments").as_deref(), Some(&br#"{"x":[1.0, 2]}"#[..]));
        assert_eq!(request.params().meta("progressToken").map(RawJson::as_json), Some("0"));
        assert!(request.params().get("progressToken").is_none());
        assert_eq!(request.params().members().count(), 3);
    }

    #[test]
    fn each_element_of_a_batch_is_decoded_on_its_own() {
        let body = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, 1, {"jsonrpc":"2.0","method":"x"}]"#;
        let Ok(DecodedBody::Batch(batch)) = decode(body.into()) else { panic!() };
        assert!(matches!(batch[0], Ok(Message::Request(_))));
        assert!(batch[1].is_err());
        assert!(matches!(batch[2], Ok(Message::Notification(_))));
    }
}
