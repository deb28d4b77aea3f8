//! `rust_decimal::Decimal`, as a number or as text.

use super::*;
use rust_decimal::Decimal;

#[derive(Deserialize, Serialize, JsonSchema)]
struct Prices {
    either: Decimal,
    #[schemars(with = "String")]
    text: Decimal,
    #[serde(default, with = "rust_decimal::serde::float_option")]
    #[schemars(with = "Option<f64>", range(min = 0))]
    number: Option<Decimal>,
}

fn entry() -> ToolEntry {
    ToolEntry::new("tried", async |Args(prices): Args<Prices>| json!(prices).to_string())
}

#[tokio::test]
async fn a_decimal_is_text_or_a_number_as_chosen() {
    let server = Server::builder("prices", "1.0.0").tool(entry()).build().unwrap();
    let listed = TestClient::connect(&server).request("tools/list", json!({})).await.unwrap();
    let schema = &listed["tools"][0]["inputSchema"];
    let properties = &schema["properties"];
    assert_eq!(properties["either"]["type"], json!(["string", "number"]));
    assert_eq!(properties["text"], json!({"type": "string"}));
    assert_eq!(properties["number"], json!({"type": "number", "minimum": 0}));

    let sent = json!({"either": "0.10", "text": "12.3456789012345678901", "number": 2.5});
    assert_eq!(refusals(entry(), sent.clone()).await, format!("ok: {sent}"));
    let sent = json!({"either": 0.1, "text": "1", "number": 3});
    let expected = json!({"either": "0.1", "text": "1", "number": 3.0});
    assert_eq!(refusals(entry(), sent).await, format!("ok: {expected}"));
    for (sent, expected) in [
        (json!({"either": "a lot", "text": "1"}), "- /either: \"a lot\" does not match"),
        (json!({"either": true, "text": "1"}), "- /either: true is not of types"),
        (json!({"either": 1, "text": 1}), "- /text: 1 is not of type \"string\""),
        (json!({"either": 1, "text": "1", "number": "1"}), "- /number: \"1\" is not of type"),
        (json!({"either": 1, "text": "1", "number": -1}), "- /number: -1 is less than the minimum of 0"),
    ] {
        let refused = refusals(entry(), sent).await;
        assert!(refused.starts_with(expected), "{refused}");
    }
}
