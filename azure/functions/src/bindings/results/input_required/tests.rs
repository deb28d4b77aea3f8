use bindpost_mcp_protocol::CallToolResult;
use serde_json::json;

use super::super::{prompt_result, resource_result, tool_result};
use super::*;
use crate::datum::Datum;

fn asking() -> Value {
    json!({"name": {"method": "elicitation/create", "params": {"message": "Which?"}}, "roots": {"method": "roots/list"}})
}

fn content() -> Value {
    json!({"inputRequests": asking(), "state": {"step": 2}})
}

/// Returns an envelope as libraries write it, with JSON inside text.
fn returned() -> String {
    json!({"type": "input_required", "content": content().to_string()}).to_string()
}

fn expected<T>() -> Result<FunctionReply<T>, ReturnValueError> {
    let Value::Object(requests) = asking() else { panic!() };
    Ok(FunctionReply::InputRequired { requests, state: Some(json!({"step": 2})) })
}

fn tool(text: &str, uses_result_schema: bool) -> Result<FunctionReply<CallToolResult>, ReturnValueError> {
    tool_result(Datum::from(text), uses_result_schema)
}

#[test]
fn is_found_in_plain_text_of_every_kind_of_trigger() {
    assert_eq!(tool(&returned(), false), expected());
    assert_eq!(tool(&format!("\n {}", returned()), false), expected());
    assert_eq!(resource_result(Datum::Text(returned()), "a://b", None), expected());
    assert_eq!(prompt_result(Datum::Text(returned()), false, true), expected());
    assert_eq!(prompt_result(Datum::Text(returned()), false, false), expected());
}

#[test]
fn is_found_as_an_envelope() {
    assert_eq!(tool(&returned(), true), expected());
    assert_eq!(prompt_result(Datum::Text(returned()), true, false), expected());
}

#[test]
fn is_found_as_json() {
    let nested = json!({"type": "input_required", "content": content()}).to_string();
    for returned in [returned(), nested] {
        assert_eq!(tool_result(Datum::Json(returned.clone()), false), expected());
        assert_eq!(tool_result(Datum::Json(returned.clone()), true), expected());
        assert_eq!(resource_result(Datum::Json(returned.clone()), "a://b", None), expected());
        assert_eq!(prompt_result(Datum::Json(returned), false, false), expected());
    }
}

#[test]
fn content_may_be_the_object_itself() {
    let nested = json!({"type": "input_required", "content": content()}).to_string();
    assert_eq!(tool(&nested, false), expected());
    assert_eq!(tool(&nested, true), expected());
}

#[test]
fn is_found_inside_the_only_text_block_of_an_envelope() {
    let block = json!({"type": "text", "text": returned()});
    let single = json!({"type": "text", "content": block.to_string()});
    assert_eq!(tool(&single.to_string(), true), expected());
    let whole = json!({"content": [block]}).to_string();
    assert_eq!(tool(&json!({"type": "call_tool_result", "content": whole}).to_string(), true), expected());
    let two = json!([block, block]).to_string();
    let result = tool(&json!({"type": "multi_content_result", "content": two}).to_string(), true);
    assert!(matches!(result, Ok(FunctionReply::Done(_))), "two blocks are content: {result:?}");
    let error = json!({"content": [block], "isError": true}).to_string();
    let result = tool(&json!({"type": "call_tool_result", "content": error}).to_string(), true);
    assert!(matches!(result, Ok(FunctionReply::Done(_))), "an error is content: {result:?}");
}

#[test]
fn other_texts_stay_texts() {
    for text in [
        "input_required",
        r#"["input_required"]"#,
        r#"{"type":"input_required""#,
        r#"{"type":"other","content":"input_required"}"#,
        r#"{"type":"Input_Required","content":"input_required"}"#,
        r#"{"note":"input_required"}"#,
    ] {
        assert_eq!(tool(text, false), Ok(FunctionReply::Done(CallToolResult::text(text))));
    }
}

#[test]
fn state_may_be_absent_or_null() {
    for content in [json!({"inputRequests": asking()}), json!({"inputRequests": asking(), "state": null})] {
        let text = json!({"type": "input_required", "content": content}).to_string();
        let Value::Object(requests) = asking() else { panic!() };
        assert_eq!(tool(&text, false), Ok(FunctionReply::InputRequired { requests, state: None }));
    }
}

#[test]
fn mistakes_are_explained() {
    let rows = [
        (json!(null), "its 'content' is not a JSON object"),
        (json!("words"), "its 'content' is not a JSON object"),
        (json!([]), "its 'content' is not a JSON object"),
        (json!({}), "'inputRequests' is not an object with at least one request"),
        (json!({"inputRequests": {}}), "'inputRequests' is not an object with at least one request"),
        (json!({"inputRequests": []}), "'inputRequests' is not an object with at least one request"),
        (json!({"inputRequests": {"k": 1}}), "the request 'k' is not an object"),
        (json!({"inputRequests": {"k": {"params": {}}}}), "the request 'k' has no 'method'"),
        (json!({"inputRequests": {"k": {"method": 1}}}), "the request 'k' has no 'method'"),
        (
            json!({"inputRequests": {"k": {"method": "roots/list", "params": []}}}),
            "the request 'k' has 'params' that are not an object",
        ),
    ];
    for (content, reason) in rows {
        let text = json!({"type": "input_required", "content": content}).to_string();
        let shown = format!(
            "The function asks for input, but {reason}. Return {{\"type\":\"input_required\",\"content\":\"<JSON>\"}} \
             with the JSON {{\"inputRequests\":{{\"<key>\":{{\"method\":\"elicitation/create\",\"params\":{{…}}}}}},\
             \"state\":<anything>}}; 'state' is optional."
        );
        assert_eq!(tool(&text, false).unwrap_err().to_string(), shown);
        assert_eq!(tool(&text, true).unwrap_err().to_string(), shown);
    }
}
