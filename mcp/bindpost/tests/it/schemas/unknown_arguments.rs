//! The listed schema says whether unknown arguments are rejected.

use super::*;
use bindpost::{Context, RawArguments};
use std::collections::BTreeMap;

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only checked")]
struct Letter {
    text: String,
    #[serde(default)]
    stamps: Vec<Stamp>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[allow(dead_code, reason = "only checked")]
struct Stamp {
    cents: u8,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only checked")]
struct OpenLetter {
    text: String,
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only checked")]
struct SealedLetter {
    text: String,
}

/// Sends a letter.
#[tool(name = "tried")]
fn strict(text: String, stamp: Option<Stamp>) -> String {
    let _ = stamp;
    text
}

/// Sends a letter, whatever the model adds.
#[tool(name = "tried", allow_unknown_arguments)]
fn lenient(text: String, stamp: Option<Stamp>) -> String {
    let _ = stamp;
    text
}

/// Takes nothing.
#[tool(name = "tried")]
fn nothing() -> &'static str {
    "taken"
}

fn tried<T>() -> ToolEntry
where
    T: JsonSchema + serde::de::DeserializeOwned + Send + 'static,
{
    ToolEntry::new("tried", async |_: Args<T>| "taken")
}

async fn listed(entry: ToolEntry) -> Value {
    let server = Server::builder("unknown", "1.0.0").tool(entry).build().unwrap();
    let listed = TestClient::connect(&server).request("tools/list", json!({})).await.unwrap();
    listed["tools"][0]["inputSchema"].clone()
}

#[tokio::test]
async fn rejected_ones_show_in_the_schema_at_every_depth() {
    let schema = listed(tried::<Letter>()).await;
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["stamps"]["items"]["additionalProperties"], false);
    let schema = listed(strict_entry()).await;
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["stamp"]["additionalProperties"], false);
    let schema = listed(nothing_entry()).await;
    assert_eq!(schema, json!({"type": "object", "properties": {}, "additionalProperties": false}));
    // Members of a recursive type, and members beside alternatives.
    let schema = listed(tried::<Branch>()).await;
    assert_eq!(schema["additionalProperties"], false);
    let schema = listed(tried::<Book>()).await;
    assert_eq!(schema["unevaluatedProperties"], false);
    for place in schema["properties"]["at"]["oneOf"].as_array().unwrap() {
        assert_eq!(place["additionalProperties"], false, "{place}");
    }
}

#[tokio::test]
async fn allowed_ones_leave_the_schema_open_and_are_ignored() {
    let unknown = json!({"text": "hello", "colour": "red", "stamp": {"cents": 80, "year": 1847}});
    let schema = listed(lenient_entry()).await;
    assert!(!schema.to_string().contains("additionalProperties"), "{schema}");
    assert_eq!(refusals(lenient_entry(), unknown.clone()).await, "ok: hello");
    // Everything else is validated as before.
    let wrong = json!({"text": "hello", "stamp": {"cents": 300}});
    let refused = "- /stamp/cents: 300 is greater than the maximum of 255";
    assert_eq!(refusals(lenient_entry(), wrong).await, refused);

    let letter = || tried::<Letter>().allow_unknown_arguments();
    let schema = listed(letter()).await;
    assert!(!schema.to_string().contains("additionalProperties"), "{schema}");
    assert_eq!(refusals(letter(), unknown).await, "ok: taken");
}

#[tokio::test]
async fn handlers_that_read_them_allow_them() {
    let unknown = json!({"text": "hello", "colour": "red"});
    for entry in [
        || tried::<OpenLetter>(),
        || tried::<Value>(),
        || ToolEntry::new("tried", async |_: RawArguments| "taken"),
        || ToolEntry::new("tried", async |_: Context| "taken"),
    ] {
        let schema = listed(entry()).await;
        assert_ne!(schema["additionalProperties"], false, "{schema}");
        assert_eq!(refusals(entry(), unknown.clone()).await, "ok: taken");
    }
}

#[tokio::test]
async fn a_type_that_denies_them_rejects_them_in_any_case() {
    let sealed = || tried::<SealedLetter>().allow_unknown_arguments();
    assert_eq!(listed(sealed()).await["additionalProperties"], false);
    let refused = refusals(sealed(), json!({"text": "hello", "colour": "red"})).await;
    assert_eq!(refused, "- \"colour\" is unknown; known: text");
}

#[tokio::test]
async fn a_tool_that_does_not_reject_them_does_not_say_so() {
    let unknown = json!({"text": "hello", "colour": "red"});
    let unchecked = || tried::<Letter>().without_validation();
    assert_eq!(listed(unchecked()).await.get("additionalProperties"), None);
    assert_eq!(refusals(unchecked(), unknown.clone()).await, "ok: taken");
    let elsewhere = || tried::<Letter>().checked_by(json!({"required": ["text"]}));
    assert_eq!(listed(elsewhere()).await.get("additionalProperties"), None);
    assert_eq!(refusals(elsewhere(), unknown).await, "ok: taken");
    // A schema that was written by hand is listed as it was written.
    let written = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    assert_eq!(listed(tried::<Letter>().input_schema(written.clone())).await, written);
}
