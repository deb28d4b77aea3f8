use bytes::Bytes;
use serde_json::{Value, json};

use super::*;

fn plain(returned: Datum) -> Value {
    done(tool_result(returned, false))
}

fn done(result: Result<FunctionReply<CallToolResult>, ReturnValueError>) -> Value {
    match result {
        Ok(FunctionReply::Done(result)) => serde_json::to_value(result).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Returns an envelope as libraries write it, with JSON inside text.
fn envelope(kind: &str, content: &Value) -> Datum {
    Datum::Text(json!({"type": kind, "content": content.to_string()}).to_string())
}

fn opened(returned: Datum) -> Value {
    done(tool_result(returned, true))
}

fn failure(returned: Datum) -> String {
    tool_result(returned, true).unwrap_err().to_string()
}

const NO_RESULT: &str = "The function return value could not be deserialized to a valid McpToolResult.";

#[test]
fn plain_nothing_is_no_content() {
    assert_eq!(plain(Datum::Nothing), json!({"content": []}));
    assert_eq!(plain(Datum::Json("null".to_owned())), json!({"content": []}));
}

#[test]
fn plain_anything_is_one_text() {
    let rows = [
        (Datum::from("hello"), "hello"),
        (Datum::from(""), ""),
        (Datum::from(r#"{"type":"text","content":"{}"}"#), r#"{"type":"text","content":"{}"}"#),
        (Datum::Bytes(Bytes::from_static(b"bytes")), "bytes"),
        (Datum::Bytes(Bytes::from_static(b"\xff")), "/w=="),
        (Datum::Int(7), "7"),
        (Datum::Double(0.5), "0.5"),
        (Datum::Json(r#""quoted""#.to_owned()), "quoted"),
        (Datum::Json(r#"{"a":1}"#.to_owned()), "{\n  \"a\": 1\n}"),
    ];
    for (returned, text) in rows {
        assert_eq!(plain(returned), json!({"content": [{"type": "text", "text": text}]}));
    }
}

#[test]
fn enveloped_nothing_is_no_content() {
    assert_eq!(opened(Datum::Nothing), json!({"content": []}));
    assert_eq!(opened(Datum::Json("null".to_owned())), json!({"content": []}));
}

#[test]
fn a_call_tool_result_is_used_as_it_is() {
    let result = json!({
        "content": [{"type": "text", "text": "no", "annotations": {"priority": 1.0}, "_meta": {"k": 1}}],
        "structuredContent": {"why": "no"},
        "isError": true,
        "_meta": {"m": 1},
    });
    assert_eq!(opened(envelope("call_tool_result", &result)), result);
    assert_eq!(opened(envelope("call_tool_result", &json!({}))), json!({"content": []}));
}

#[test]
fn structured_content_beside_a_call_tool_result_is_ignored() {
    let content = json!({"content": []}).to_string();
    let returned = json!({"type": "call_tool_result", "content": content, "structuredContent": "no json"});
    assert_eq!(opened(Datum::Text(returned.to_string())), json!({"content": []}));
}

#[test]
fn multi_content_is_a_list_of_blocks() {
    let blocks = json!([
        {"type": "text", "text": "a"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
    ]);
    for kind in ["multi_content_result", "multiContent"] {
        assert_eq!(opened(envelope(kind, &blocks)), json!({"content": blocks}), "{kind}");
    }
}

#[test]
fn multi_content_without_a_block_is_a_failure() {
    let expected = "No content items were produced from the McpToolResult.";
    assert_eq!(failure(envelope("multi_content_result", &json!([]))), expected);
}

#[test]
fn each_kind_of_block_passes_with_what_it_requires() {
    let blocks = [
        json!({"type": "text", "text": ""}),
        json!({"type": "image", "data": "AA==", "mimeType": "image/png", "annotations": {"audience": ["user"]}}),
        json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav", "_meta": {"k": 1}}),
        json!({"type": "resource", "resource": {"uri": "a://b", "text": "t"}}),
        json!({"type": "resource", "resource": {"uri": "a://b", "blob": "AA==", "mimeType": "x/y"}}),
        json!({"type": "resource_link", "uri": "a://b", "name": "n", "title": "t"}),
    ];
    for block in blocks {
        let kind = block.get("type").and_then(Value::as_str).unwrap();
        assert_eq!(opened(envelope(kind, &block)), json!({"content": [block]}));
    }
}

#[test]
fn a_block_without_what_it_requires_is_a_failure() {
    let blocks = [
        json!({"type": "text"}),
        json!({"type": "text", "text": null}),
        json!({"type": "text", "text": 1}),
        json!({"type": "image", "data": "AA=="}),
        json!({"type": "image", "mimeType": "image/png"}),
        json!({"type": "audio", "data": "AA=="}),
        json!({"type": "audio", "mimeType": "audio/wav"}),
        json!({"type": "resource"}),
        json!({"type": "resource", "resource": {"uri": "a://b"}}),
        json!({"type": "resource_link", "uri": "a://b"}),
        json!({"type": "resource_link", "name": "n"}),
        json!({"type": "hologram", "text": "x"}),
        json!({"text": "no type"}),
        json!([{"type": "text", "text": "x"}]),
        json!("text"),
        json!(null),
    ];
    for block in blocks {
        assert_eq!(
            failure(envelope("Text", &block)),
            "Failed to deserialize content for type 'Text'.",
            "{block}"
        );
        let list = json!([{"type": "text", "text": "good"}, block]);
        let expected = "Failed to deserialize content for type 'multi_content_result'.";
        assert_eq!(failure(envelope("multi_content_result", &list)), expected, "{block}");
        let expected = "Failed to deserialize content for type 'call_tool_result'.";
        assert_eq!(failure(envelope("call_tool_result", &json!({"content": [block]}))), expected);
    }
}

#[test]
fn the_blocks_own_type_decides() {
    let block = json!({"type": "text", "text": "x"});
    assert_eq!(opened(envelope("image", &block)), json!({"content": [block]}));
    assert_eq!(opened(envelope("whatever", &block)), json!({"content": [block]}));
}

#[test]
fn types_and_names_match_in_any_case() {
    let blocks = json!([{"type": "text", "text": "x"}]);
    let returned =
        json!({"TYPE": "Multi_Content_RESULT", "Content": blocks.to_string(), "STRUCTUREDcontent": "1"});
    let expected = json!({"content": blocks, "structuredContent": 1});
    assert_eq!(opened(Datum::Text(returned.to_string())), expected);
}

#[test]
fn structured_content_of_any_kind_is_attached() {
    let block = json!({"type": "text", "text": "x"});
    for structured in [json!({"a": 1}), json!([1]), json!("s"), json!(2.5)] {
        let returned = json!({"type": "text", "content": block.to_string(), "structuredContent": structured.to_string()});
        let expected = json!({"content": [block], "structuredContent": structured});
        assert_eq!(opened(Datum::Text(returned.to_string())), expected);
    }
    for none in [json!(""), json!(null)] {
        let returned = json!({"type": "text", "content": block.to_string(), "structuredContent": none});
        assert_eq!(opened(Datum::Text(returned.to_string())), json!({"content": [block]}));
    }
}

#[test]
fn structured_content_that_is_not_json_is_a_failure() {
    let block = json!({"type": "text", "text": "x"}).to_string();
    let returned = json!({"type": "text", "content": block, "structuredContent": "{"});
    assert_eq!(failure(Datum::Text(returned.to_string())), "Failed to deserialize structured content.");
}

#[test]
fn an_envelope_must_be_text() {
    let others = [
        Datum::Int(1),
        Datum::Double(1.0),
        Datum::Bytes(Bytes::from_static(b"{}")),
        Datum::Json("[]".to_owned()),
        Datum::Json("1".to_owned()),
    ];
    for returned in others {
        assert_eq!(failure(returned.clone()), "Expected JSON string.", "{returned:?}");
    }
}

#[test]
fn an_invalid_envelope_is_a_failure() {
    for text in [
        "hello",
        "[]",
        "1",
        "{}",
        r#"{"content":"{}"}"#,
        r#"{"type":null,"content":"{}"}"#,
        r#"{"type":1,"content":"{}"}"#,
        r#"{"type":"text","content":{"type":"text","text":"not a string"}}"#,
        r#"{"type":"text","content":"{}","structuredContent":{}}"#,
    ] {
        assert_eq!(failure(Datum::from(text)), NO_RESULT, "{text}");
    }
}

#[test]
fn an_envelope_without_content_is_a_failure() {
    for text in [r#"{"type":"text"}"#, r#"{"type":"text","content":null}"#, r#"{"type":"text","content":""}"#]
    {
        assert_eq!(failure(Datum::from(text)), "Failed to deserialize content for type 'text'.", "{text}");
    }
    let whole = r#"{"type":"call_tool_result"}"#;
    assert_eq!(failure(Datum::from(whole)), "Failed to deserialize content for type 'call_tool_result'.");
}

#[test]
fn an_envelope_may_come_as_json_and_hold_json() {
    let block = json!({"type": "text", "text": "x"});
    let nested = json!({"type": "text", "content": block, "structuredContent": {"a": 1}});
    let expected = json!({"content": [block], "structuredContent": {"a": 1}});
    assert_eq!(opened(Datum::Json(nested.to_string())), expected);
    let Datum::Text(text) = envelope("text", &block) else { panic!() };
    assert_eq!(opened(Datum::Json(text.clone())), json!({"content": [block]}));
    assert_eq!(
        opened(Datum::Json(Value::from(text).to_string())),
        json!({"content": [block]}),
        "a JSON string"
    );
}

#[test]
fn an_array_is_not_accepted_as_a_whole_result() {
    let returned = envelope("call_tool_result", &json!([[], null, null, null]));
    assert_eq!(failure(returned), "Failed to deserialize content for type 'call_tool_result'.");
}

#[test]
fn an_empty_text_from_python_means_none() {
    assert_eq!(opened(Datum::from("")), json!({"content": []}));
}

#[test]
fn an_undeclared_envelope_is_recognised() {
    let library = r#"{"type":"text","content":"{\"type\":\"text\",\"text\":\"x\"}"}"#;
    assert!(is_envelope(&Datum::from(library)));
    for other in [
        "text",
        "{}",
        r#"{"type":"text"}"#,
        r#"{"type":"note","content":"{}"}"#,
        r#"{"type":"text","text":"x"}"#,
    ] {
        assert!(!is_envelope(&Datum::from(other)), "{other}");
    }
}
