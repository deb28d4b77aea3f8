//! Decodes bytes with [`decode`] and compares the result and every accessor of a message with `serde_json`.

#![cfg_attr(fuzzing, no_main)]

mod reference;

use bindpost_mcp_protocol::jsonrpc::{self, INVALID_REQUEST, PARSE_ERROR};
use bindpost_mcp_protocol::{DecodeError, DecodedBody, ErrorObject, Message, Params, RequestId, decode};
use bytes::Bytes;
use serde_json::{Value, json};

use reference::{Kind, Node, Text};

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    let decoded = decode(Bytes::copy_from_slice(data));
    if let Err(refusal) = &decoded {
        check_refusal(refusal);
    }
    let Some(text) = Text::read(data) else {
        let refusal = decoded.expect_err("this is no JSON");
        let code = refusal.error.code;
        // A duplicate member may precede the position of the syntax error.
        assert!(
            code == PARSE_ERROR || code == INVALID_REQUEST && says(&refusal, "ambiguous JSON"),
            "{refusal}"
        );
        return;
    };
    check_reference(data, &text);
    if text.ambiguous || text.too_deep {
        let refusal = decoded.expect_err("this is ambiguous or too deep");
        let ambiguous = refusal.error.code == INVALID_REQUEST && says(&refusal, "ambiguous JSON");
        let too_deep = refusal.error.code == PARSE_ERROR && says(&refusal, "invalid JSON: nested deeper");
        assert!(text.ambiguous && ambiguous || text.too_deep && too_deep, "{refusal}");
        return;
    }
    match (&text.root.kind, decoded) {
        (Kind::Array(elements), Ok(DecodedBody::Batch(batch))) => {
            assert!(!elements.is_empty());
            assert_eq!(elements.len(), batch.len());
            for (element, message) in elements.iter().zip(batch) {
                check_message(element, message);
            }
        }
        (Kind::Array(elements), Err(refusal)) => {
            assert!(elements.is_empty(), "{refusal}");
            assert_eq!(refusal.error.code, INVALID_REQUEST);
        }
        (_, Ok(DecodedBody::One(message))) => check_message(&text.root, Ok(message)),
        (_, Err(refusal)) => check_message(&text.root, Err(refusal)),
        (_, Ok(DecodedBody::Batch(_))) => panic!("a batch is an array"),
    }
}

fn says(refusal: &DecodeError, start: &str) -> bool {
    refusal.error.message.starts_with(start)
}

/// Checks the reference too: `Value` accepts the same texts, except for numbers that it cannot represent.
fn check_reference(data: &[u8], text: &Text<'_>) {
    match serde_json::from_slice::<Value>(data) {
        Ok(_) => assert!(!text.too_deep),
        Err(error) => {
            assert!(text.too_deep || error.to_string().starts_with("number out of range"), "{error}")
        }
    }
}

/// Checks that a rejection can be encoded as a response with the right code.
fn check_refusal(refusal: &DecodeError) {
    let sent = jsonrpc::encode_error(refusal.id.as_ref(), &refusal.error);
    let sent = Text::read(&sent).expect("an error is JSON").root;
    let error: Value =
        sent.member("error").and_then(|error| serde_json::from_str(error.raw).ok()).expect("an error");
    assert_eq!(error, json!({"code": refusal.error.code, "message": refusal.error.message}));
    match (&refusal.id, sent.member("id")) {
        (None, None) => {}
        (Some(id), Some(node)) => check_id(node, id),
        (id, _) => panic!("the id is {id:?}"),
    }
}

/// The expected classification of a value.
enum Expected<'a> {
    /// Not a message. A valid id is repeated in the error.
    Refused(Option<&'a Node<'a>>),
    Request(&'a Node<'a>, &'a str, Option<&'a Node<'a>>),
    Notification(&'a str, Option<&'a Node<'a>>),
    Response(&'a Node<'a>, Result<&'a Node<'a>, ErrorObject>),
}

fn expected<'a>(node: &'a Node<'a>) -> Expected<'a> {
    let id = node.member("id");
    if !node.is_object() || id.is_some_and(|id| id.as_str().is_none() && !id.is_integer()) {
        return Expected::Refused(None);
    }
    if node.member("jsonrpc").and_then(Node::as_str) != Some("2.0") {
        return Expected::Refused(id);
    }
    if let Some(method) = node.member("method") {
        let params = node.member("params");
        return match (method.as_str(), id) {
            (None, _) => Expected::Refused(id),
            _ if params.is_some_and(|params| !params.is_object()) => Expected::Refused(id),
            (Some(method), Some(id)) => Expected::Request(id, method, params),
            (Some(method), None) => Expected::Notification(method, params),
        };
    }
    let Some(answered) = id else { return Expected::Refused(None) };
    // The id of a response is our own, and is not repeated in an error.
    match (node.member("result"), node.member("error")) {
        (Some(result), None) => Expected::Response(answered, Ok(result)),
        (None, Some(error)) => match error_object(error) {
            Some(error) => Expected::Response(answered, Err(error)),
            None => Expected::Refused(None),
        },
        _ => Expected::Refused(None),
    }
}

fn error_object(node: &Node<'_>) -> Option<ErrorObject> {
    let code = serde_json::from_str(node.member("code")?.raw).ok()?;
    let message = node.member("message")?.as_str()?.to_owned();
    let data: Option<Value> =
        node.member("data").map(|data| serde_json::from_str(data.raw)).transpose().ok()?;
    Some(ErrorObject { code, message, data: data.filter(|data| !data.is_null()) })
}

fn check_message(node: &Node<'_>, message: Result<Message, DecodeError>) {
    if message.is_err() && is_written_oddly(node) {
        return;
    }
    match (expected(node), message) {
        (Expected::Refused(id), Err(refusal)) => {
            assert_eq!(refusal.error.code, INVALID_REQUEST, "{refusal}");
            assert!(says(&refusal, "invalid request: "), "{refusal}");
            assert_eq!(id.is_some(), refusal.id.is_some(), "{refusal}");
            if let (Some(node), Some(id)) = (id, &refusal.id) {
                check_id(node, id);
            }
        }
        (Expected::Request(id, method, params), Ok(Message::Request(request))) => {
            check_id(id, &request.id);
            assert_eq!(request.method(), method);
            check_params(params, request.params());
            let params: Option<Value> = request.params().decode().ok();
            let sent = jsonrpc::encode_request(&request.id, method, &params.unwrap_or_else(|| json!({})));
            let Ok(DecodedBody::One(Message::Request(again))) = decode(sent.into()) else { panic!("ours") };
            assert_eq!((&again.id, again.method()), (&request.id, method));
        }
        (Expected::Notification(method, params), Ok(Message::Notification(notification))) => {
            assert_eq!(notification.method(), method);
            check_params(params, notification.params());
            let sent = jsonrpc::encode_notification(method, None::<&Value>);
            let Ok(DecodedBody::One(Message::Notification(again))) = decode(sent.into()) else {
                panic!("ours")
            };
            assert_eq!(again.method(), method);
        }
        (Expected::Response(id, outcome), Ok(Message::Response(response))) => {
            check_id(id, &response.id);
            match (outcome, response.outcome) {
                (Ok(result), Ok(bytes)) => assert_eq!(result.raw.as_bytes(), bytes),
                (Err(expected), Err(error)) => {
                    assert_eq!(expected, error);
                    check_error(&response.id, &error);
                }
                (expected, other) => {
                    panic!("{} but {other:?}", if expected.is_ok() { "result" } else { "error" })
                }
            }
        }
        (expected, message) => {
            let expected = match expected {
                Expected::Refused(_) => "no message",
                Expected::Request(..) => "a request",
                Expected::Notification(..) => "a notification",
                Expected::Response(..) => "a response",
            };
            panic!("{} is {expected} but {message:?}", node.raw);
        }
    }
}

/// Returns whether `"2.0"`, the name of a member of the message, or `_meta` is written with escapes. Such a
/// message may be rejected or understood, but the member must not be ignored.
fn is_written_oddly(node: &Node<'_>) -> bool {
    let names = ["jsonrpc", "id", "method", "params", "result", "error"];
    let odd_name = |node: &Node<'_>, names: &[&str]| {
        node.members().iter().any(|member| names.contains(&&*member.name) && member.raw_name.contains('\\'))
    };
    odd_name(node, &names)
        || node.member("jsonrpc").is_some_and(|version| version.raw.contains('\\'))
        || node.member("params").is_some_and(|params| odd_name(params, &["_meta"]))
}

fn check_id(node: &Node<'_>, id: &RequestId) {
    let mut written = Vec::new();
    id.write_json(&mut written);
    match node.as_str() {
        Some(text) => {
            assert_eq!(serde_json::from_slice::<String>(&written).expect("a string"), text);
            assert_eq!(*id, RequestId::from(text));
            assert_eq!(id.to_string(), text);
        }
        // -0 and 0 are the same integer.
        None if node.raw == "-0" => assert_eq!(written, b"0"),
        None => {
            assert_eq!(String::from_utf8_lossy(&written), node.raw);
            assert_eq!(id.to_string(), node.raw);
        }
    }
    assert_eq!(serde_json::from_str::<RequestId>(node.raw).expect("an id"), *id);
    check_encoding(id);
}

fn check_encoding(id: &RequestId) {
    let mut written = Vec::new();
    id.write_json(&mut written);
    assert_eq!(serde_json::to_vec(id).expect("an id can be written"), written);
    // `json!` panics if this fails.
    let value = serde_json::to_value(id);
    assert!(value.is_ok() || !id.is_ordinary(), "{id} as a value: {value:?}");

    let answer = jsonrpc::encode_result(id, b"{}");
    let Ok(DecodedBody::One(Message::Response(response))) = decode(answer.into()) else {
        panic!("an answer of ours")
    };
    assert_eq!(response.id, *id);
    assert_eq!(response.outcome, Ok(Bytes::from_static(b"{}")));
    check_error(id, &ErrorObject::new(-1, "\"\u{1}\u{2028}é"));
}

fn check_error(id: &RequestId, error: &ErrorObject) {
    let answer = jsonrpc::encode_error(Some(id), error);
    let Ok(DecodedBody::One(Message::Response(response))) = decode(answer.into()) else {
        panic!("an error of ours")
    };
    assert_eq!(response.id, *id);
    let Err(again) = response.outcome else { panic!("an error of ours") };
    // The data is not compared, because `serde_json` may read a float with an error of one bit.
    assert_eq!(
        (again.code, again.message, again.data.is_some()),
        (error.code, error.message.clone(), error.data.is_some())
    );
}

fn check_params(node: Option<&Node<'_>>, params: &Params) {
    let empty = Node { raw: "{}", kind: Kind::Object(Vec::new()) };
    let node = node.unwrap_or(&empty);
    assert_eq!(params.as_json(), node.raw);
    assert_eq!(params.decode::<Value>().ok(), serde_json::from_str(node.raw).ok());

    let names: Vec<_> = params.members().map(|(name, raw)| (name.into_owned(), raw.as_json())).collect();
    let expected: Vec<_> =
        node.members().iter().map(|member| (member.name.clone(), member.value.raw)).collect();
    assert_eq!(names, expected);

    let meta = node.member("_meta").unwrap_or(&empty);
    for member in node.members().iter().chain(meta.members()) {
        let name = &member.name;
        check_raw(node.member(name), params.get(name));
        check_raw(meta.member(name), params.meta(name));
        assert_eq!(params.text(name).as_deref(), node.member(name).and_then(Node::as_str));
        let shared = params.get_bytes(name);
        assert_eq!(shared.as_deref(), node.member(name).map(|value| value.raw.as_bytes()));
    }
    for unknown in ["", "\\", "no such member"] {
        check_raw(node.member(unknown), params.get(unknown));
        check_raw(meta.member(unknown), params.meta(unknown));
    }
}

fn check_raw(node: Option<&Node<'_>>, raw: Option<jsonrpc::RawJson<'_>>) {
    let (Some(node), Some(raw)) = (node, raw) else {
        return assert_eq!(node.map(|node| node.raw), raw.map(jsonrpc::RawJson::as_json));
    };
    assert_eq!(raw.as_json(), node.raw);
    assert_eq!(raw.as_text().as_deref(), node.as_str());
    assert_eq!(raw.is_object(), node.is_object());
    assert_eq!(raw.is_null(), node.raw == "null");
    assert_eq!(raw.decode::<Value>().ok(), serde_json::from_str(node.raw).ok());
}
