//! Converts return values of functions to MCP results. There is one file per kind of trigger.
//!
//! The plain rules convert any value to text. The envelope rules (`useResultSchema`) read
//! `{"type":…,"content":"<JSON>","structuredContent":"<JSON>"}`, which language libraries write.

mod blocks;
mod envelope;
mod input_required;
mod prompt;
mod resource;
mod tool;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

pub use prompt::prompt_result;
pub use resource::resource_result;
pub use tool::{is_envelope, tool_result};

use super::raw_json::{dotnet_text, indented, string};
use crate::datum::Datum;

/// The meaning of a function's return value.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionReply<T> {
    /// The function is finished.
    Done(T),
    /// The function asks the client for input and will run again with the answers.
    InputRequired {
        /// The requests `{method, params?}` by key. There is at least one.
        requests: Map<String, Value>,
        /// The state to pass to the function when it runs again.
        state: Option<Value>,
    },
}

/// A return value that is not a valid result. The texts are for logs. Clients only see that the function
/// failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReturnValueError {
    /// The return value of a tool with an envelope is not a string.
    #[error("Expected JSON string.")]
    ExpectedJsonString,
    /// The return value of a tool is not a valid envelope.
    #[error("The function return value could not be deserialized to a valid McpToolResult.")]
    NoToolResult,
    /// A tool's list of content is empty.
    #[error("No content items were produced from the McpToolResult.")]
    NoContentItems,
    /// The content of an envelope does not match its type.
    #[error("Failed to deserialize content for type '{0}'.")]
    Content(String),
    /// The structured content of an envelope is not valid JSON.
    #[error("Failed to deserialize structured content.")]
    StructuredContent,
    /// The return value of a resource is neither text nor bytes.
    #[error("Unsupported return type for resource read: {0}. Expected string or byte[].")]
    UnsupportedReturnType(&'static str),
    /// The content of a resource's envelope is null.
    #[error("The resource's content was null; cannot process resource result.")]
    NullResource,
    /// A resource's envelope has neither text nor a blob.
    #[error("The resource's content has neither 'text' nor 'blob'.")]
    NeitherTextNorBlob,
    /// The return value of a prompt is not a valid envelope.
    #[error("The function return value could not be deserialized to a valid McpPromptResult.")]
    NoPromptResult,
    /// The content of a prompt's envelope is null.
    #[error("McpPromptResult.Content was null; cannot process prompt result.")]
    NullPrompt,
    /// A prompt's envelope has an unknown type.
    #[error("Unknown McpPromptResult type: '{0}'.")]
    UnknownPromptType(String),
    /// The function's request for input is invalid.
    #[error(
        "The function asks for input, but {0}. Return {{\"type\":\"input_required\",\"content\":\"<JSON>\"}} \
         with the JSON {{\"inputRequests\":{{\"<key>\":{{\"method\":\"elicitation/create\",\
         \"params\":{{…}}}}}},\"state\":<anything>}}; 'state' is optional."
    )]
    InputRequired(String),
}

/// Unwraps a JSON value as Azure's host does, which decodes JSON first: a JSON string becomes text and `null`
/// becomes no value. An HTTP response becomes its body.
fn unwrap_json(returned: Datum) -> Datum {
    match returned {
        Datum::Json(json) if json.trim_ascii() == "null" => Datum::Nothing,
        Datum::Json(json) => match string(&json) {
            Some(text) => Datum::Text(text.into_owned()),
            None => Datum::Json(json),
        },
        Datum::HttpResponse(response) => unwrap_json(response.body),
        other => other,
    }
}

/// Converts a value to text by the plain rules. Returns `None` for no value. Text is moved, not copied.
fn plain_text(returned: Datum) -> Option<String> {
    Some(match unwrap_json(returned) {
        Datum::Nothing | Datum::HttpRequest(_) | Datum::HttpResponse(_) => return None,
        Datum::Text(text) => text,
        // Old Node libraries and custom handlers return JSON. Azure's host indents it.
        Datum::Json(json) => match json.trim_ascii() {
            nested if nested.starts_with(['{', '[']) => match indented(nested) {
                Some(indented) => indented,
                None => json,
            },
            scalar => dotnet_text(scalar).into_owned(),
        },
        // `Vec::from` reuses the buffer if it is not shared.
        Datum::Bytes(bytes) => match String::from_utf8(Vec::from(bytes)) {
            Ok(text) => text,
            Err(error) => STANDARD.encode(error.as_bytes()),
        },
        Datum::Int(number) => number.to_string(),
        Datum::Double(number) if number.is_infinite() => {
            if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
        }
        Datum::Double(number) => number.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> Datum {
        Datum::Json(text.to_owned())
    }

    #[test]
    fn text_stays_the_same_text() {
        let text = String::from("a long text");
        let at = text.as_ptr();
        let shown = plain_text(Datum::Text(text)).unwrap();
        assert_eq!((shown.as_str(), shown.as_ptr()), ("a long text", at), "moved, not copied");
    }

    #[test]
    fn bytes_are_text_or_else_base64() {
        let shown = |bytes: &'static [u8]| plain_text(Datum::Bytes(Bytes::from_static(bytes)));
        assert_eq!(shown("gr\u{fc}n".as_bytes()).as_deref(), Some("grün"));
        assert_eq!(shown(b"\xff\xfe").as_deref(), Some("//4="));
        assert_eq!(shown(b"").as_deref(), Some(""));
    }

    #[test]
    fn numbers_are_their_digits() {
        assert_eq!(plain_text(Datum::Int(-42)).as_deref(), Some("-42"));
        assert_eq!(plain_text(Datum::Double(1.5)).as_deref(), Some("1.5"));
        assert_eq!(plain_text(Datum::Double(3.0)).as_deref(), Some("3"));
        assert_eq!(plain_text(Datum::Double(f64::NAN)).as_deref(), Some("NaN"));
        assert_eq!(plain_text(Datum::Double(f64::INFINITY)).as_deref(), Some("Infinity"));
        assert_eq!(plain_text(Datum::Double(f64::NEG_INFINITY)).as_deref(), Some("-Infinity"));
    }

    #[test]
    fn json_is_formatted_as_in_azures_host() {
        let rows = [
            (r#"{"b":1,"a":[]}"#, "{\n  \"b\": 1,\n  \"a\": []\n}"),
            ("[1]", "[\n  1\n]"),
            (r#" "a\nb" "#, "a\nb"),
            (" 1.50 ", "1.50"),
            ("true", "True"),
            ("false", "False"),
        ];
        for (given, shown) in rows {
            assert_eq!(plain_text(json(given)).as_deref(), Some(shown), "{given}");
        }
        assert_eq!(plain_text(json(" null ")), None);
        assert_eq!(plain_text(Datum::Nothing), None);
        let deep = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
        assert_eq!(plain_text(json(&deep)), Some(deep));
    }

    proptest! {
        #[test]
        fn never_panics(text in r#"(\{|\[|"(type|content|text|messages|input_required|structuredContent)"|[:,1é\\" ]|\}|\]){0,24}"#) {
            for datum in [Datum::from(text.as_str()), Datum::Json(text)] {
                for flag in [false, true] {
                    _ = tool_result(datum.clone(), flag);
                    _ = prompt_result(datum.clone(), flag, !flag);
                    _ = prompt_result(datum.clone(), false, flag);
                }
                _ = resource_result(datum, "a://b", None);
            }
        }

        #[test]
        fn plain_text_is_shown_as_it_is(text in any::<String>()) {
            let result = tool_result(Datum::Text(text.clone()), false).unwrap();
            prop_assert_eq!(result, FunctionReply::Done(bindpost_mcp_protocol::CallToolResult::text(text)));
        }
    }
}
