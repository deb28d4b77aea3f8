//! Writes the JSON of an invocation and reads the JSON of its response, without serde. This is the hottest
//! path of the host. Most of it is JSON inside of JSON strings, which serde processes byte by byte. `net/json` reads and
//! writes such strings.

use bindpost_net_json::text::{decode, write_string};

use super::proto::status_result::Status;
use super::proto::typed_data::Data;
use super::proto::{InvocationResponse, StatusResult, TypedData};
use super::typed_data;
use crate::datum::{Datum, HttpRequestData};
use crate::invocation::Invocation;

/// Writes the request message of an invocation. The result equals that of `message.rs`, but texts are
/// copied only once.
pub(crate) fn push_request(out: &mut Vec<u8>, invocation: &Invocation) {
    out.extend_from_slice(b"{\"invocationRequest\":{\"invocationId\":");
    write_string(out, &invocation.id);
    out.extend_from_slice(b",\"functionId\":");
    write_string(out, &invocation.function.id);
    out.extend_from_slice(b",\"inputData\":[");
    for (at, (name, datum)) in invocation.inputs.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"name\":");
        write_string(out, name);
        out.extend_from_slice(b",\"data\":");
        push_datum(out, datum, typed_data::encode_input);
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"triggerMetadata\":{");
    for (at, (name, datum)) in invocation.metadata.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(out, name);
        out.push(b':');
        push_datum(out, datum, typed_data::encode_metadata);
    }
    out.push(b'}');
    if let Some(trace_parent) = &invocation.trace_parent {
        out.extend_from_slice(b",\"traceContext\":{\"traceParent\":");
        write_string(out, trace_parent);
        out.extend_from_slice(b",\"traceState\":");
        write_string(out, invocation.trace_state.as_deref().unwrap_or_default());
        out.extend_from_slice(b",\"attributes\":{}}");
    }
    out.extend_from_slice(b"}}");
}

/// Estimates the size of the request, to allocate its buffer once. The estimate is the texts, a quarter more
/// for escapes, and the names of members.
pub(crate) fn likely_size(invocation: &Invocation) -> usize {
    let values = invocation.inputs.iter().chain(&invocation.metadata).map(|(_, datum)| match datum {
        Datum::Text(text) | Datum::Json(text) => text.len() + text.len() / 4 + 64,
        // Bytes are encoded as base64.
        Datum::Bytes(bytes) => bytes.len() / 3 * 4 + 64,
        Datum::HttpRequest(request) => likely_http_size(request),
        Datum::Nothing | Datum::Int(_) | Datum::Double(_) | Datum::HttpResponse(_) => 64,
    });
    values.sum::<usize>() + 384
}

fn likely_http_size(request: &HttpRequestData) -> usize {
    let pairs = request.headers.iter().chain(&request.query).chain(&request.params);
    let body = match &request.body {
        Datum::Text(text) => text.len() + text.len() / 4,
        Datum::Bytes(bytes) => bytes.len() / 3 * 4,
        _ => 0,
    };
    pairs.map(|(name, value)| name.len() + value.len() + 8).sum::<usize>() + request.url.len() + body + 192
}

/// Writes a value. `wire` converts values that are neither text nor JSON.
fn push_datum(out: &mut Vec<u8>, datum: &Datum, wire: fn(Datum) -> TypedData) {
    let (kind, text) = match datum {
        Datum::Text(text) => ("{\"string\":", text),
        Datum::Json(text) => ("{\"json\":", text),
        rare => {
            // Bytes and numbers always have a JSON form, and writing to a Vec does not fail.
            let _ = serde_json::to_writer(out, &wire(rare.clone()));
            return;
        }
    };
    out.extend_from_slice(kind.as_bytes());
    write_string(out, text);
    out.push(b'}');
}

/// Reads the usual response of our workers: the function succeeded and returned a text. Returns `None` for
/// all other responses. Serde reads those.
pub(crate) fn read_answer(frame: &[u8]) -> Option<InvocationResponse> {
    let message = std::str::from_utf8(frame).ok()?;
    let answer = message.strip_prefix("{\"invocationResponse\":{\"invocationId\":\"")?.strip_suffix("}}")?;
    let (id, members) = answer.split_once('"')?;
    if id.contains('\\') {
        return None;
    }
    // Node's worker writes the result last, Python's writes it first.
    let returned = match members.strip_suffix(",\"result\":{\"status\":1}") {
        Some(members) => members.strip_prefix(",\"outputData\":[]").unwrap_or(members),
        None => members.strip_prefix(",\"result\":{\"status\":1}")?,
    };
    let text = decode(returned.strip_prefix(",\"returnValue\":{\"string\":")?.strip_suffix('}')?)?;
    Some(InvocationResponse {
        invocation_id: id.to_owned(),
        output_data: Vec::new(),
        result: Some(StatusResult { status: Status::Success.into(), ..StatusResult::default() }),
        return_value: Some(TypedData { data: Some(Data::String(text.into_owned())) }),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bindpost_mcp_protocol::Tool;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::function::{Function, FunctionSource, ToolTrigger, Trigger};
    use crate::worker::channel::invoke::wire_request;
    use crate::worker::wire::proto::StreamingMessage;
    use crate::worker::wire::proto::streaming_message::Content;

    const TEXT: &str = "[\\PC\"\\\\\n\u{1}]{0,20}";

    fn datum() -> impl Strategy<Value = Datum> {
        prop_oneof![
            TEXT.prop_map(Datum::Text),
            TEXT.prop_map(Datum::Json),
            prop::collection::vec(any::<u8>(), 0..8).prop_map(|bytes| Datum::Bytes(bytes.into())),
            any::<i64>().prop_map(Datum::Int),
            Just(Datum::Double(0.5)),
            Just(Datum::Nothing),
        ]
    }

    fn function(id: String) -> Arc<Function> {
        let (parameter, tool, required) = (String::new(), Tool::default(), Vec::new());
        let (uses_result_schema, task_support) = (false, None);
        Arc::new(Function {
            name: String::new(),
            id,
            trigger: Trigger::Tool(ToolTrigger {
                parameter,
                tool,
                required,
                uses_result_schema,
                task_support,
            }),
            inputs: Vec::new(),
            outputs: Vec::new(),
            source: FunctionSource::default(),
            warnings: Vec::new(),
        })
    }

    fn by_serde(frame: &str) -> Option<InvocationResponse> {
        match serde_json::from_str::<StreamingMessage>(frame).ok()?.content? {
            Content::InvocationResponse(response) => Some(response),
            _ => None,
        }
    }

    #[test]
    fn reads_the_answers_of_both_workers() {
        let returned = r#""returnValue":{"string":"{\"a\":\"\\\\ü\\n\"}"}"#;
        for members in [
            format!(r#""outputData":[],{returned},"result":{{"status":1}}"#),
            format!(r#"{returned},"result":{{"status":1}}"#),
            format!(r#""result":{{"status":1}},{returned}"#),
        ] {
            let frame = format!(r#"{{"invocationResponse":{{"invocationId":"7",{members}}}}}"#);
            let response = read_answer(frame.as_bytes());
            assert!(response.is_some(), "{frame}");
            assert_eq!(response, by_serde(&frame));
        }
    }

    #[test]
    fn leaves_other_answers_to_serde() {
        for members in [
            r#""invocationId":"7","outputData":[{"name":"o","data":{}}],"returnValue":{"string":"x"},"result":{"status":1}"#,
            r#""invocationId":"7","returnValue":{"string":"x"},"result":{"status":0}"#,
            r#""invocationId":"7","returnValue":{"json":"x"},"result":{"status":1}"#,
            r#""invocationId":"7","returnValue":{"string":"\ud800"},"result":{"status":1}"#,
            r#""invocationId":"7","returnValue":{"string":"a"b"},"result":{"status":1}"#,
            r#""invocationId":"\u0037","returnValue":{"string":"x"},"result":{"status":1}"#,
            r#""invocationId":"7","result":{"status":1}"#,
        ] {
            let frame = format!(r#"{{"invocationResponse":{{{members}}}}}"#);
            assert_eq!(read_answer(frame.as_bytes()), None, "{frame}");
        }
    }

    proptest! {
        #[test]
        fn writes_the_same_as_the_derived_form(
            texts in (TEXT, TEXT, TEXT),
            inputs in prop::collection::vec((TEXT, datum()), 0..3),
            metadata in prop::collection::hash_map(TEXT, datum(), 0..3),
            traced in any::<bool>(),
        ) {
            let invocation = Invocation {
                id: texts.0.into(),
                function: function(texts.1),
                inputs,
                metadata: metadata.into_iter().collect(),
                trace_parent: traced.then(|| texts.2.clone()),
                trace_state: traced.then_some(texts.2),
                stream: None,
            };
            let mut written = Vec::new();
            push_request(&mut written, &invocation);
            let written: Value = serde_json::from_slice(&written).unwrap();
            let content = Content::InvocationRequest(wire_request(invocation));
            let message = StreamingMessage { request_id: String::new(), content: Some(content) };
            prop_assert_eq!(written, serde_json::to_value(&message).unwrap());
        }

        #[test]
        fn reads_the_same_as_serde(text in TEXT) {
            let text = serde_json::to_string(&text).unwrap();
            let members = format!(r#""invocationId":"7","returnValue":{{"string":{text}}},"result":{{"status":1}}"#);
            let frame = format!(r#"{{"invocationResponse":{{{members}}}}}"#);
            if let Some(response) = read_answer(frame.as_bytes()) {
                prop_assert_eq!(Some(response), by_serde(&frame));
            }
        }
    }
}
