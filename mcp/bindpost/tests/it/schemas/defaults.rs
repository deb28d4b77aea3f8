//! Defaults of members, with and without `Serialize`.

use super::*;

// A type without `Serialize`, so its default has no JSON.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is used")]
enum Speed {
    Slow,
    #[default]
    Fast,
}

#[derive(Deserialize, JsonSchema)]
#[serde(default)]
#[allow(dead_code, reason = "only checked")]
struct Trip {
    speed: Speed,
    priority: Priority,
    days: u8,
    names: Vec<String>,
}

impl Default for Trip {
    fn default() -> Trip {
        Trip { speed: Speed::Slow, priority: Priority::High, days: 3, names: vec!["Alice".to_owned()] }
    }
}

#[test]
fn a_member_with_a_default_is_not_required_even_without_serialize() {
    let (schema, required) = member!(
        #[serde(default)]
        Speed
    );
    assert_eq!(schema, json!({"type": "string", "enum": ["slow", "fast"]}));
    assert!(!required);
    let (schema, required) = member!(
        #[serde(default)]
        Vec<Speed>
    );
    assert_eq!((schema.get("default"), required), (None, false));
}

#[test]
fn a_default_without_serialize_can_be_written_down() {
    let (schema, required) = member!(
        #[serde(default)]
        #[schemars(extend("default" = "fast"))]
        Speed
    );
    assert_eq!(schema, json!({"type": "string", "enum": ["slow", "fast"], "default": "fast"}));
    assert!(!required);
}

#[test]
fn a_member_shows_its_default_even_if_its_struct_has_no_serialize() {
    let (schema, required) = member!(
        #[serde(default)]
        Priority
    );
    assert_eq!((&schema["default"], required), (&json!("normal"), false));
    let (schema, required) = member!(
        #[serde(default)]
        u8
    );
    assert_eq!((&schema["default"], required), (&json!(0), false));
}

#[tokio::test]
async fn the_default_of_a_struct_gives_each_member_its_default() {
    let entry = || ToolEntry::new("tried", async |Args(trip): Args<Trip>| trip.days);
    let server = Server::builder("trips", "1.0.0").tool(entry()).build().unwrap();
    let listed = TestClient::connect(&server).request("tools/list", json!({})).await.unwrap();
    let schema = &listed["tools"][0]["inputSchema"];
    assert_eq!(schema.get("required"), None);
    let default = |name: &str| schema["properties"][name].get("default").cloned();
    assert_eq!(default("speed"), None);
    assert_eq!(default("priority"), Some(json!("high")));
    assert_eq!(default("days"), Some(json!(3)));
    assert_eq!(default("names"), Some(json!(["Alice"])));
    assert_eq!(refusals(entry(), json!({})).await, "ok: 3");
}

/// Travels.
#[tool(name = "tried")]
fn travel(#[arg(default = "fast")] speed: Speed) -> &'static str {
    match speed {
        Speed::Slow => "slow",
        Speed::Fast => "fast",
    }
}

#[tokio::test]
async fn a_parameter_without_serialize_has_the_default_that_is_written() {
    assert_eq!(refusals(travel_entry(), json!({})).await, "ok: fast");
}
