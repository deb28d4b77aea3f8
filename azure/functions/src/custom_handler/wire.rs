//! Encodes requests to a custom handler and parses its responses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bindpost_net_json::cut::elements;
use bindpost_net_json::text::push_string;
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::bindings::raw_json::{RawMembers, checked_members, compact, string};
use crate::datum::{Datum, HttpRequestData};
use crate::function::{DataType, Function};
use crate::invocation::{Invocation, InvocationOutcome};
use crate::worker::{InvocationError, LogOrigin, LogRecord, LogSeverity};

/// The parsed response of a handler.
#[derive(Debug)]
pub(super) struct HandlerResponse {
    pub(super) outcome: InvocationOutcome,
    pub(super) logs: Vec<LogRecord>,
}

/// Encodes the body of an invocation: `{"Data": {…}, "Metadata": {…}}`. JSON is copied as it is: numbers keep
/// their digits, and objects the order of their members.
pub(super) fn encode_request(invocation: &Invocation) -> Vec<u8> {
    let mut body = String::from("{\"Data\":");
    push_object(
        &mut body,
        invocation.inputs.iter().map(|(name, value)| (name.as_str(), encode_input(value))),
    );
    // Like the platform, this omits empty values and values whose name ends in `trigger`.
    let metadata = invocation
        .metadata
        .iter()
        .filter(|(name, value)| !value.is_nothing() && !name.to_ascii_lowercase().ends_with("trigger"));
    body.push_str(",\"Metadata\":");
    push_object(&mut body, metadata.map(|(name, value)| (name.as_str(), encode_value(value))));
    body.push('}');
    body.into_bytes()
}

/// Writes an object. Of equal names the last one is written.
fn push_object<'a>(out: &mut String, members: impl Iterator<Item = (&'a str, String)>) {
    let mut unique: Vec<(&str, String)> = Vec::new();
    for (name, value) in members {
        match unique.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => unique.push((name, value)),
        }
    }
    out.push('{');
    for (index, (name, value)) in unique.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_string(out, name);
        out.push(':');
        out.push_str(&value);
    }
    out.push('}');
}

/// Encodes an input. The platform encodes strings as JSON twice.
fn encode_input(value: &Datum) -> String {
    match value {
        Datum::Text(text) => json_string(&json_string(text)),
        other => encode_value(other),
    }
}

fn encode_value(value: &Datum) -> String {
    match value {
        Datum::Nothing | Datum::HttpResponse(_) => "null".to_owned(),
        Datum::HttpRequest(request) => http_request(request),
        Datum::Text(text) => json_string(text),
        Datum::Json(json) => match serde_json::from_str::<&RawValue>(json) {
            Ok(json) => json.get().to_owned(),
            Err(_) => json_string(json),
        },
        Datum::Bytes(bytes) => json_string(&STANDARD.encode(bytes)),
        Datum::Int(number) => number.to_string(),
        // JSON has no infinity and no NaN.
        Datum::Double(number) => serde_json::to_string(number).unwrap_or_else(|_| "null".to_owned()),
    }
}

/// Encodes the request of an HTTP trigger. A header has a list of values.
fn http_request(request: &HttpRequestData) -> String {
    let object = |members: &[(String, String)], value: fn(&str) -> String| {
        let mut out = String::new();
        push_object(&mut out, members.iter().map(|(name, text)| (name.as_str(), value(text))));
        out
    };
    let members = [
        ("Url", json_string(&request.url)),
        ("Method", json_string(&request.method)),
        ("Query", object(&request.query, json_string)),
        ("Headers", object(&request.headers, |value| format!("[{}]", json_string(value)))),
        ("Params", object(&request.params, json_string)),
        ("Identities", "[]".to_owned()),
        ("Body", encode_value(&request.body)),
    ];
    let mut out = String::new();
    push_object(&mut out, members.into_iter());
    out
}

fn json_string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    push_string(&mut json, text);
    json
}

/// Parses `{"Outputs": {…}, "ReturnValue": …, "Logs": […]}`. An empty body means an empty object.
pub(super) fn parse_response(body: &[u8], function: &Function) -> Result<HandlerResponse, InvocationError> {
    let wrong = |what: String| InvocationError::Failed {
        message: format!(
            "the custom handler's response {what}; it must be {{\"Outputs\": {{…}}, \"ReturnValue\": …, \"Logs\": […]}}"
        ),
        stack: String::new(),
    };
    let members = match body.trim_ascii() {
        [] => RawMembers::new(),
        body => match serde_json::from_slice::<&RawValue>(body) {
            Ok(json) => match checked_members(json.get()) {
                Some(members) => members,
                None => return Err(wrong("is not a JSON object".to_owned())),
            },
            Err(error) => return Err(wrong(format!("is not valid JSON: {error}"))),
        },
    };
    let mut outcome = InvocationOutcome::default();
    let mut logs = Vec::new();
    for (name, value) in members {
        if name.eq_ignore_ascii_case("Outputs") {
            let Some(outputs) = checked_members(value) else {
                if value == "null" {
                    continue;
                }
                return Err(wrong("has Outputs that are not an object".to_owned()));
            };
            outcome.outputs = outputs
                .into_iter()
                .map(|(name, value)| {
                    let value = parse_output(value, data_type(function, &name));
                    (name.into_owned(), value)
                })
                .collect();
        } else if name.eq_ignore_ascii_case("ReturnValue") {
            outcome.returned = match data_type(function, "$return") {
                // A return value with its own binding is parsed like an output.
                Some(data_type) => parse_output(value, Some(data_type)),
                None => parse_return_value(value),
            };
        } else if name.eq_ignore_ascii_case("Logs") {
            let lines = elements(value).into_iter().flatten();
            logs.extend(lines.map(|line| {
                log(match string(line) {
                    Some(line) => line.into_owned(),
                    None => compact(line),
                })
            }));
        }
    }
    Ok(HandlerResponse { outcome, logs })
}

fn data_type(function: &Function, output: &str) -> Option<DataType> {
    function.written_blobs().find(|binding| binding.name == output).map(|binding| binding.data_type)
}

/// Parses an output. Like the platform, it decodes a string that is valid base64, which is how a handler writes
/// bytes. With the data type `string` or `binary` a string is written as it is.
fn parse_output(json: &str, data_type: Option<DataType>) -> Datum {
    match parse_return_value(json) {
        Datum::Text(text) if matches!(data_type, None | Some(DataType::Undefined | DataType::Stream)) => {
            match STANDARD.decode(&text) {
                Ok(bytes) => Datum::Bytes(Bytes::from(bytes)),
                Err(_) => Datum::Text(text),
            }
        }
        other => other,
    }
}

fn parse_return_value(json: &str) -> Datum {
    match string(json) {
        Some(text) => Datum::Text(text.into_owned()),
        None if json == "null" => Datum::Nothing,
        None => Datum::Json(compact(json)),
    }
}

fn log(message: String) -> LogRecord {
    let (level, origin) = (LogSeverity::Information, LogOrigin::User);
    LogRecord { level, origin, category: "custom handler".to_owned(), message, exception: None }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::function::FunctionSource;

    /// A tool that writes three blobs: without a data type, and with the types `string` and `binary`.
    fn function() -> Function {
        let blob = |name: &str, more: serde_json::Value| {
            let mut binding = json!({"type": "blob", "direction": "out", "name": name, "path": "files/x"});
            binding.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            binding
        };
        let bindings = [
            json!({"type": "mcpToolTrigger", "direction": "in", "name": "c", "toolName": "t"}),
            blob("plain", json!({})),
            blob("text", json!({"dataType": "string"})),
            blob("bytes", json!({"dataType": "binary"})),
        ];
        Function::from_bindings("f", "f", FunctionSource::default(), &bindings, &|_| None).unwrap()
    }

    fn parse(body: &str) -> InvocationOutcome {
        parse_response(body.as_bytes(), &function()).unwrap().outcome
    }

    #[test]
    fn results_keep_the_order_of_members_and_every_digit() {
        let outcome = parse(
            r#"{"ReturnValue": {"b": 1.10, "a": [12345678901234567890123, 1e400], "é ": " x "},
                "Outputs": {"plain": {"z": 0.1000, "a": null}}}"#,
        );
        let returned = r#"{"b":1.10,"a":[12345678901234567890123,1e400],"é ":" x "}"#;
        assert_eq!(outcome.returned, Datum::Json(returned.to_owned()));
        let output = Datum::Json(r#"{"z":0.1000,"a":null}"#.to_owned());
        assert_eq!(outcome.outputs, [("plain".to_owned(), output)]);
    }

    #[test]
    fn requests_keep_the_order_of_members_and_every_digit() {
        let json = r#"{"b":1.10,"a":12345678901234567890123}"#;
        let invocation = Invocation {
            id: "i".into(),
            function: Arc::new(function()),
            inputs: vec![
                ("c".to_owned(), Datum::Text("\"x\"".to_owned())),
                ("blob".to_owned(), Datum::Json(json.to_owned())),
            ],
            metadata: vec![
                ("mcptoolargs".to_owned(), Datum::Json(json.to_owned())),
                ("b".to_owned(), Datum::Text("first".to_owned())),
                ("myTrigger".to_owned(), Datum::Text("left out".to_owned())),
                ("none".to_owned(), Datum::Nothing),
                ("b".to_owned(), Datum::Text("last".to_owned())),
            ],
            trace_parent: None,
            trace_state: None,
            stream: None,
        };
        let body = String::from_utf8(encode_request(&invocation)).unwrap();
        let data = format!(r#""c":"\"\\\"x\\\"\"","blob":{json}"#);
        assert_eq!(body, format!(r#"{{"Data":{{{data}}},"Metadata":{{"mcptoolargs":{json},"b":"last"}}}}"#));
    }

    #[test]
    fn a_string_that_is_base64_is_decoded_unless_the_binding_has_a_type() {
        let outcome = parse(r#"{"outputs": {"plain": "TWFu", "text": "TWFu", "bytes": "TWFu"}}"#);
        let text = |name: &str| (name.to_owned(), Datum::Text("TWFu".to_owned()));
        let plain = ("plain".to_owned(), Datum::Bytes(Bytes::from_static(b"Man")));
        assert_eq!(outcome.outputs, [plain, text("text"), text("bytes")]);
        let outcome = parse(r#"{"Outputs": {"plain": "no base64!"}, "ReturnValue": "TWFu"}"#);
        assert_eq!(outcome.outputs, [("plain".to_owned(), Datum::Text("no base64!".to_owned()))]);
        assert_eq!(outcome.returned, Datum::Text("TWFu".to_owned()));
    }

    #[test]
    fn half_of_a_surrogate_pair_is_replaced() {
        assert_eq!(
            parse(r#"{"ReturnValue": "a\ud800b"}"#).returned,
            Datum::Text("a\u{fffd}\u{fffd}\u{fffd}b".to_owned())
        );
    }

    #[test]
    fn absent_and_invalid_members_are_handled() {
        for body in ["", " ", "{}", r#"{"Outputs": null, "ReturnValue": null, "Logs": null, "More": 1}"#] {
            let response = parse_response(body.as_bytes(), &function()).unwrap();
            assert_eq!((response.outcome.outputs.len(), response.logs.len()), (0, 0), "{body}");
            assert_eq!(response.outcome.returned, Datum::Nothing);
        }
        let logs = parse_response(br#"{"logs": ["a", {"b" : 1}, null]}"#, &function()).unwrap().logs;
        let logs: Vec<String> = logs.into_iter().map(|log| log.message).collect();
        assert_eq!(logs, ["a", r#"{"b":1}"#, "null"]);
        for (body, says) in [
            ("[]", "response is not a JSON object"),
            ("{", "response is not valid JSON"),
            (r#"{"Outputs": 1}"#, "response has Outputs that are not an object"),
        ] {
            let error = parse_response(body.as_bytes(), &function()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(parse_response(b"\"\xff\"", &function()).is_err());
    }
}
