//! Encodes requests to a custom handler and parses its responses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::datum::Datum;
use crate::function::{DataType, Function, OutputBinding};
use crate::invocation::{Invocation, InvocationOutcome};
use crate::worker::{InvocationError, LogOrigin, LogRecord, LogSeverity};

/// The parsed response of a handler.
#[derive(Debug)]
pub(super) struct HandlerResponse {
    pub(super) outcome: InvocationOutcome,
    pub(super) logs: Vec<LogRecord>,
}

/// Encodes the body of an invocation: `{"Data": {…}, "Metadata": {…}}`.
pub(super) fn encode_request(invocation: &Invocation) -> Vec<u8> {
    let data = invocation.inputs.iter().map(|(name, value)| (name.clone(), encode_input(value)));
    // Like the platform, this omits empty values and values whose name ends in `trigger`.
    let metadata = invocation
        .metadata
        .iter()
        .filter(|(name, value)| !value.is_nothing() && !name.to_ascii_lowercase().ends_with("trigger"));
    let metadata = metadata.map(|(name, value)| (name.clone(), encode_value(value)));
    let body = Value::Object(Map::from_iter([
        ("Data".to_owned(), Value::Object(data.collect())),
        ("Metadata".to_owned(), Value::Object(metadata.collect())),
    ]));
    serde_json::to_vec(&body).unwrap_or_default()
}

/// Encodes an input. The platform encodes strings as JSON twice.
fn encode_input(value: &Datum) -> Value {
    match value {
        Datum::Text(text) => Value::String(Value::from(text.as_str()).to_string()),
        other => encode_value(other),
    }
}

fn encode_value(value: &Datum) -> Value {
    match value {
        Datum::Nothing => Value::Null,
        Datum::Text(text) => Value::from(text.as_str()),
        Datum::Json(json) => serde_json::from_str(json).unwrap_or_else(|_| Value::from(json.as_str())),
        Datum::Bytes(bytes) => Value::String(STANDARD.encode(bytes)),
        Datum::Int(number) => Value::from(*number),
        Datum::Double(number) => Value::from(*number),
    }
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
        [] => Map::new(),
        body => match serde_json::from_slice(body) {
            Ok(Value::Object(members)) => members,
            Ok(_) => return Err(wrong("is not a JSON object".to_owned())),
            Err(error) => return Err(wrong(format!("is not valid JSON: {error}"))),
        },
    };
    let mut outcome = InvocationOutcome::default();
    let mut logs = Vec::new();
    for (name, value) in members {
        if name.eq_ignore_ascii_case("Outputs") {
            let Value::Object(outputs) = value else {
                if value.is_null() {
                    continue;
                }
                return Err(wrong("has Outputs that are not an object".to_owned()));
            };
            outcome.outputs = outputs
                .into_iter()
                .map(|(name, value)| {
                    let value = parse_output(value, data_type(function, &name));
                    (name, value)
                })
                .collect();
        } else if name.eq_ignore_ascii_case("ReturnValue") {
            outcome.returned = match data_type(function, "$return") {
                // A return value with its own binding is parsed like an output.
                Some(data_type) => parse_output(value, Some(data_type)),
                None => parse_return_value(value),
            };
        } else if name.eq_ignore_ascii_case("Logs") {
            let Value::Array(lines) = value else { continue };
            logs.extend(lines.into_iter().map(|line| {
                log(match line {
                    Value::String(line) => line,
                    other => other.to_string(),
                })
            }));
        }
    }
    Ok(HandlerResponse { outcome, logs })
}

fn data_type(function: &Function, output: &str) -> Option<DataType> {
    let same = |OutputBinding::Blob(binding): &&OutputBinding| binding.name == output;
    function.outputs.iter().find(same).map(|OutputBinding::Blob(binding)| binding.data_type)
}

/// Parses an output. Like the platform, it decodes a string that is valid base64 unless the data type is
/// `string` or `binary`.
fn parse_output(value: Value, data_type: Option<DataType>) -> Datum {
    match value {
        Value::String(text) if matches!(data_type, None | Some(DataType::Undefined | DataType::Stream)) => {
            match STANDARD.decode(&text) {
                Ok(bytes) => Datum::Bytes(Bytes::from(bytes)),
                Err(_) => Datum::Text(text),
            }
        }
        other => parse_return_value(other),
    }
}

fn parse_return_value(value: Value) -> Datum {
    match value {
        Value::Null => Datum::Nothing,
        Value::String(text) => Datum::Text(text),
        other => Datum::Json(other.to_string()),
    }
}

fn log(message: String) -> LogRecord {
    let (level, origin) = (LogSeverity::Information, LogOrigin::User);
    LogRecord { level, origin, category: "custom handler".to_owned(), message, exception: None }
}
