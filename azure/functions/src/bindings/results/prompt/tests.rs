use bytes::Bytes;
use serde_json::{Value, json};

use super::*;

fn done(result: Result<FunctionReply<GetPromptResult>, ReturnValueError>) -> Value {
    match result {
        Ok(FunctionReply::Done(result)) => serde_json::to_value(result).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn plain(returned: Datum) -> Value {
    done(prompt_result(returned, false, false))
}

fn detected(text: &str) -> Value {
    done(prompt_result(Datum::from(text), false, true))
}

fn opened(returned: Datum) -> Value {
    done(prompt_result(returned, true, false))
}

fn failure(returned: Datum) -> String {
    prompt_result(returned, true, true).unwrap_err().to_string()
}

fn envelope(kind: &str, content: &Value) -> Datum {
    Datum::Text(json!({"type": kind, "content": content.to_string()}).to_string())
}

fn said(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
}

const NO_RESULT: &str = "The function return value could not be deserialized to a valid McpPromptResult.";

#[test]
fn plain_nothing_is_no_messages() {
    assert_eq!(plain(Datum::Nothing), json!({"messages": []}));
    assert_eq!(plain(Datum::Json("null".to_owned())), json!({"messages": []}));
}

#[test]
fn plain_anything_is_said_by_the_user() {
    assert_eq!(plain(Datum::from("review this")), said("review this"));
    assert_eq!(plain(Datum::Bytes(Bytes::from_static(b"bytes"))), said("bytes"));
    assert_eq!(plain(Datum::Int(1)), said("1"));
    assert_eq!(plain(Datum::Json(r#""x""#.to_owned())), said("x"));
}

#[test]
fn json_is_literal_text_unless_it_is_looked_for() {
    let result = json!({"description": "d", "messages": [
        {"role": "assistant", "content": {"type": "text", "text": "x"}}]});
    assert_eq!(plain(Datum::Text(result.to_string())), said(&result.to_string()));
    assert_eq!(detected(&result.to_string()), result);
}

#[test]
fn a_detected_result_has_messages_or_a_description() {
    let messages = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]});
    assert_eq!(detected(&messages.to_string()), messages);
    assert_eq!(detected(r#"{"description":"d"}"#), json!({"description": "d", "messages": []}));
    for text in ["{}", r#"{"messages":[]}"#, r#"{"description":null}"#, r#"{"a":1}"#, "[]", "text"] {
        assert_eq!(detected(text), said(text));
    }
}

#[test]
fn json_that_is_not_quite_a_result_is_literal_text() {
    for text in [
        r#"{"messages":[{"role":"user"}]}"#,
        r#"{"messages":[{"role":"system","content":{"type":"text","text":"x"}}]}"#,
        r#"{"messages":[{"role":"user","content":{"type":"odd","text":"x"}}]}"#,
        r#"{"messages":"x"}"#,
        r#"{"description":1}"#,
    ] {
        assert_eq!(detected(text), said(text));
    }
}

#[test]
fn a_result_as_json_is_detected_too() {
    let returned = Datum::Json(r#"{"description":"d"}"#.to_owned());
    let expected = json!({"description": "d", "messages": []});
    assert_eq!(done(prompt_result(returned, false, true)), expected);
}

#[test]
fn enveloped_nothing_is_no_messages() {
    assert_eq!(opened(Datum::Nothing), json!({"messages": []}));
}

#[test]
fn a_get_prompt_result_is_used_as_it_is() {
    let result = json!({"description": "d", "_meta": {"k": 1}, "messages": [
        {"role": "user", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}}]});
    assert_eq!(opened(envelope("get_prompt_result", &result)), result);
}

#[test]
fn prompt_messages_are_a_list() {
    let messages = json!([
        {"role": "user", "content": {"type": "text", "text": "a"}},
        {"role": "assistant", "content": {"type": "text", "text": "b"}},
    ]);
    assert_eq!(opened(envelope("prompt_messages", &messages)), json!({"messages": messages}));
    assert_eq!(opened(envelope("Prompt_Messages", &json!([]))), json!({"messages": []}), "in any case");
}

#[test]
fn an_invalid_envelope_is_a_failure() {
    let others = [
        Datum::from("hello"),
        Datum::from("{}"),
        Datum::from(r#"{"content":"[]"}"#),
        Datum::from(r#"{"type":"prompt_messages","content":[]}"#),
        Datum::Int(1),
        Datum::Bytes(Bytes::from_static(b"{}")),
        Datum::Json("[]".to_owned()),
    ];
    for returned in others {
        assert_eq!(failure(returned.clone()), NO_RESULT, "{returned:?}");
    }
}

#[test]
fn an_envelope_without_content_is_a_failure() {
    let expected = "McpPromptResult.Content was null; cannot process prompt result.";
    assert_eq!(failure(Datum::from(r#"{"type":"get_prompt_result"}"#)), expected);
    assert_eq!(failure(Datum::from(r#"{"type":"prompt_messages","content":null}"#)), expected);
}

#[test]
fn an_unknown_type_is_a_failure() {
    let expected = "Unknown McpPromptResult type: 'Text'.";
    assert_eq!(failure(envelope("Text", &json!({"type": "text", "text": "x"}))), expected);
}

#[test]
fn content_that_does_not_match_the_type_is_a_failure() {
    let expected = "Failed to deserialize content for type 'prompt_messages'.";
    assert_eq!(failure(envelope("prompt_messages", &json!({"messages": []}))), expected);
    assert_eq!(failure(envelope("prompt_messages", &json!([{"role": "user"}]))), expected);
    let expected = "Failed to deserialize content for type 'get_prompt_result'.";
    assert_eq!(failure(envelope("get_prompt_result", &json!([]))), expected);
    assert_eq!(failure(envelope("get_prompt_result", &json!(null))), expected);
    let odd = json!({"messages": [{"role": "user", "content": {"type": "odd"}}]});
    assert_eq!(failure(envelope("get_prompt_result", &odd)), expected);
}

#[test]
fn an_envelope_may_come_as_json_and_hold_json() {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "a"}}]);
    let returned = Datum::Json(json!({"type": "prompt_messages", "content": messages}).to_string());
    assert_eq!(opened(returned), json!({"messages": messages}));
}
