//! The JSON of an invocation's request, written by hand: a host does little else than this, and most of it is the escaping
//! of JSON in JSON, which serde does byte by byte.

use super::proto::typed_data::Data;
use super::proto::{InvocationRequest, TypedData};
use crate::bindings::raw_json::push_string;

/// Writes the message with this request, as `message.rs` would.
pub(super) fn push_message(out: &mut String, request_id: &str, request: &InvocationRequest) {
    out.push('{');
    if !request_id.is_empty() {
        out.push_str("\"requestId\":");
        push_string(out, request_id);
        out.push(',');
    }
    out.push_str("\"invocationRequest\":{\"invocationId\":");
    push_string(out, &request.invocation_id);
    out.push_str(",\"functionId\":");
    push_string(out, &request.function_id);
    out.push_str(",\"inputData\":[");
    for (at, input) in request.input_data.iter().enumerate() {
        out.push_str(if at == 0 { "{\"name\":" } else { ",{\"name\":" });
        push_string(out, &input.name);
        if let Some(data) = &input.data {
            out.push_str(",\"data\":");
            push_data(out, data);
        }
        out.push('}');
    }
    out.push_str("],\"triggerMetadata\":{");
    for (at, (name, data)) in request.trigger_metadata.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_string(out, name);
        out.push(':');
        push_data(out, data);
    }
    out.push('}');
    if let Some(trace) = &request.trace_context {
        out.push_str(",\"traceContext\":");
        push_json(out, trace);
    }
    out.push_str("}}");
}

fn push_data(out: &mut String, value: &TypedData) {
    let (kind, text) = match &value.data {
        Some(Data::String(text)) => ("{\"string\":", text),
        Some(Data::Json(text)) => ("{\"json\":", text),
        _ => return push_json(out, value),
    };
    out.push_str(kind);
    push_string(out, text);
    out.push('}');
}

fn push_json(out: &mut String, value: &impl serde::Serialize) {
    // Strings, numbers and lists always have a JSON form.
    out.push_str(&serde_json::to_string(value).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::worker::proto::streaming_message::Content;
    use crate::worker::proto::{ParameterBinding, RpcTraceContext, StreamingMessage};

    fn data() -> impl Strategy<Value = TypedData> {
        let text = "[\\PC\"\\\\\n\u{1}]{0,20}";
        prop_oneof![
            text.prop_map(|text| Some(Data::String(text))),
            text.prop_map(|text| Some(Data::Json(text))),
            prop::collection::vec(any::<u8>(), 0..8).prop_map(|bytes| Some(Data::Bytes(bytes.into()))),
            any::<i64>().prop_map(|number| Some(Data::Int(number))),
            Just(None),
        ]
        .prop_map(|data| TypedData { data })
    }

    proptest! {
        #[test]
        fn says_what_the_derived_form_says(
            request_id in "[a-z\"]{0,4}",
            texts in ("\\PC{0,8}", "\\PC{0,8}"),
            inputs in prop::collection::vec(("\\PC{0,4}", prop::option::of(data())), 0..3),
            metadata in prop::collection::hash_map("\\PC{0,4}", data(), 0..3),
            trace in prop::option::of("\\PC{0,4}"),
        ) {
            let request = InvocationRequest {
                invocation_id: texts.0,
                function_id: texts.1,
                input_data: inputs.into_iter().map(|(name, data)| ParameterBinding { name, data }).collect(),
                trigger_metadata: metadata,
                trace_context: trace.map(|trace_parent| RpcTraceContext { trace_parent, ..Default::default() }),
            };
            let mut written = String::new();
            push_message(&mut written, &request_id, &request);
            let message = StreamingMessage { request_id, content: Some(Content::InvocationRequest(request)) };
            let written: Value = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(written, serde_json::to_value(&message).unwrap());
        }
    }
}
