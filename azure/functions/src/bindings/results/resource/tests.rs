use bytes::Bytes;
use serde_json::{Value, json};

use super::*;

fn read(returned: Datum, mime_type: Option<&str>) -> Value {
    match resource_result(returned, "a://b", mime_type) {
        Ok(FunctionReply::Done(result)) => serde_json::to_value(result).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn failure(returned: Datum) -> String {
    resource_result(returned, "a://b", None).unwrap_err().to_string()
}

fn envelope(content: &Value) -> Datum {
    Datum::Text(json!({"content": content.to_string()}).to_string())
}

#[test]
fn nothing_is_no_contents() {
    assert_eq!(read(Datum::Nothing, Some("text/plain")), json!({"contents": []}));
    assert_eq!(read(Datum::Json("null".to_owned()), None), json!({"contents": []}));
}

#[test]
fn bytes_are_a_blob() {
    let expected = json!({"contents": [{"uri": "a://b", "mimeType": "image/png", "blob": "aGk="}]});
    assert_eq!(read(Datum::Bytes(Bytes::from_static(b"hi")), Some("image/png")), expected);
}

#[test]
fn text_is_text_with_the_requested_uri() {
    let expected = json!({"contents": [{"uri": "a://b", "mimeType": "text/plain", "text": "hi"}]});
    assert_eq!(read(Datum::from("hi"), Some("text/plain")), expected);
}

#[test]
fn an_unknown_media_type_is_omitted() {
    assert_eq!(read(Datum::from("hi"), None), json!({"contents": [{"uri": "a://b", "text": "hi"}]}));
}

#[test]
fn large_text_is_moved() {
    let text = "x".repeat(100);
    let at = text.as_ptr();
    let Ok(FunctionReply::Done(result)) = resource_result(Datum::Text(text), "a://b", None) else { panic!() };
    assert_eq!(result.contents.first().unwrap().text.as_ref().unwrap().as_ptr(), at);
}

#[test]
fn an_envelope_brings_its_own_item() {
    let item = json!({"uri": "c://d", "mimeType": "x/y", "text": "t", "_meta": {"k": 1}});
    assert_eq!(read(envelope(&item), Some("text/plain")), json!({"contents": [item]}));
    let blob = json!({"uri": "c://d", "mimeType": "x/y", "blob": "AA=="});
    assert_eq!(read(envelope(&blob), None), json!({"contents": [blob]}));
}

#[test]
fn an_item_without_uri_or_media_type_gets_those_of_the_request() {
    let expected = json!({"contents": [{"uri": "a://b", "mimeType": "text/plain", "text": "t"}]});
    assert_eq!(read(envelope(&json!({"text": "t"})), Some("text/plain")), expected);
    let empty = json!({"text": "t", "uri": "", "mimeType": ""});
    assert_eq!(read(envelope(&empty), Some("text/plain")), expected);
    let unknown = json!({"contents": [{"uri": "a://b", "text": "t"}]});
    assert_eq!(read(envelope(&empty), None), unknown);
}

#[test]
fn names_match_in_any_case_and_other_members_are_ignored() {
    let returned = json!({"TYPE": "x", "Content": json!({"text": "t"}).to_string()});
    let expected = json!({"contents": [{"uri": "a://b", "text": "t"}]});
    assert_eq!(read(Datum::Text(returned.to_string()), None), expected);
}

#[test]
fn an_invalid_envelope_is_text() {
    for text in [
        "{",
        "{}",
        r#"{"name":"server","version":1}"#,
        r#"{"content":1}"#,
        r#"{"content":{"text":"t"}}"#,
        r#"{"content":"plain words"}"#,
        r#"{"content":"[1]"}"#,
        r#"{"content":"42"}"#,
        r#"{"content":"{\"text\":1}"}"#,
        r#"[{"content":"{\"text\":\"t\"}"}]"#,
    ] {
        assert_eq!(read(Datum::from(text), None), json!({"contents": [{"uri": "a://b", "text": text}]}));
    }
}

#[test]
fn an_empty_envelope_is_a_failure() {
    let null = "The resource's content was null; cannot process resource result.";
    assert_eq!(failure(Datum::from(r#"{"content":null}"#)), null);
    assert_eq!(failure(envelope(&json!(null))), null);
    let neither = "The resource's content has neither 'text' nor 'blob'.";
    assert_eq!(failure(envelope(&json!({"uri": "c://d"}))), neither);
    assert_eq!(failure(envelope(&json!({}))), neither);
}

#[test]
fn an_item_is_a_blob_or_text_and_not_both() {
    let both = json!({"text": "t", "blob": "AA=="});
    assert_eq!(read(envelope(&both), None), json!({"contents": [{"uri": "a://b", "blob": "AA=="}]}));
}

#[test]
fn other_kinds_are_a_failure() {
    let rows = [
        (Datum::Int(1), "Int64"),
        (Datum::Double(1.0), "Double"),
        (Datum::Json("1".to_owned()), "Int64"),
        (Datum::Json("1e3".to_owned()), "Double"),
        (Datum::Json("true".to_owned()), "Boolean"),
        (Datum::Json("[]".to_owned()), "JArray"),
        (Datum::Json(r#"{"a":1}"#.to_owned()), "JObject"),
    ];
    for (returned, kind) in rows {
        let expected =
            format!("Unsupported return type for resource read: {kind}. Expected string or byte[].");
        assert_eq!(failure(returned), expected);
    }
}

#[test]
fn json_may_be_a_text_or_an_envelope() {
    let expected = json!({"contents": [{"uri": "a://b", "text": "t"}]});
    assert_eq!(read(Datum::Json(r#""t""#.to_owned()), None), expected);
    assert_eq!(read(Datum::Json(r#"{"content":{"text":"t"}}"#.to_owned()), None), expected);
    assert_eq!(read(Datum::Json(r#"{"content":"{\"text\":\"t\"}"}"#.to_owned()), None), expected);
}
