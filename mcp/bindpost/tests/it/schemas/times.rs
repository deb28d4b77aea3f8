//! Times without a zone, for which JSON Schema has no format of its own.

use super::*;
use chrono::{NaiveDateTime, NaiveTime};

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Alarm {
    at: NaiveTime,
    from: Option<NaiveDate>,
    next: Option<NaiveDateTime>,
    #[serde(default)]
    others: Vec<NaiveTime>,
    set: Option<DateTime<Utc>>,
}

fn entry() -> ToolEntry {
    ToolEntry::new("tried", async |Args(alarm): Args<Alarm>| json!(alarm).to_string())
}

#[test]
fn a_time_is_a_string_with_a_format() {
    assert_eq!(member!(NaiveTime).0, json!({"type": "string", "format": "time"}));
    assert_eq!(member!(NaiveDateTime).0, json!({"type": "string", "format": "date-time"}));
}

#[tokio::test]
async fn serialized_values_are_accepted() {
    for (hour, nano) in [(0, 0), (10, 250_000_000), (23, 999_999_999)] {
        let at = NaiveTime::from_hms_nano_opt(hour, 30, 59, nano).unwrap();
        let date = NaiveDate::from_ymd_opt(2028, 2, 29).unwrap();
        let alarm = Alarm {
            at,
            from: Some(date),
            next: Some(date.and_time(at)),
            others: vec![at],
            set: Some(date.and_time(at).and_utc()),
        };
        let sent = json!(alarm);
        assert_eq!(refusals(entry(), sent.clone()).await, format!("ok: {sent}"));
    }
}

/// The format `time` requires a zone, so clients that follow it send one.
#[tokio::test]
async fn utc_is_accepted_as_no_zone() {
    let sent = json!({"at": "10:30:00Z", "next": "2028-02-29T10:30:00z", "others": ["01:02:03.5Z"]});
    let expected = json!({"at": "10:30:00", "from": null, "next": "2028-02-29T10:30:00", "others": ["01:02:03.500"],
            "set": null});
    assert_eq!(refusals(entry(), sent).await, format!("ok: {expected}"));
}

#[tokio::test]
async fn other_values_are_rejected_with_the_form_that_is_expected() {
    for (sent, expected) in [
        (json!({"at": "noon"}), r#"- /at: "noon" is not a time without a zone, like "10:30:00""#),
        (
            json!({"at": "10:30:00+02:00"}),
            r#"- /at: "10:30:00+02:00" is not a time without a zone, like "10:30:00""#,
        ),
        (json!({"at": "24:00:00"}), r#"- /at: "24:00:00" is not a time without a zone, like "10:30:00""#),
        (
            json!({"at": "10:30:00", "next": "2027-02-29T10:30:00"}),
            r#"- /next: "2027-02-29T10:30:00" is not a date and time without a zone, like "2026-11-15T10:30:00""#,
        ),
        (json!({"at": "10:30:00", "from": "2027-02-29"}), r#"- /from: "2027-02-29" is not a "date""#),
        (
            json!({"at": "10:30:00", "set": "2027-02-28T10:30:00"}),
            r#"- /set: "2027-02-28T10:30:00" is not a "date-time""#,
        ),
    ] {
        assert_eq!(refusals(entry(), sent).await, expected);
    }
}

/// Clients validate results with their formats, and a value without a zone is not a `time`.
#[tokio::test]
async fn a_result_has_no_format_that_its_values_violate() {
    async fn never() -> Result<bindpost::Json<Alarm>, String> {
        Err("no alarm".to_owned())
    }
    let entry = ToolEntry::new("tried", never);
    let server = Server::builder("results", "1.0.0").tool(entry).build().unwrap();
    let listed = TestClient::connect(&server).request("tools/list", json!({})).await.unwrap();
    let members = &listed["tools"][0]["outputSchema"]["properties"];
    assert_eq!(members["at"], json!({"type": "string"}));
    assert_eq!(members["next"], json!({"type": ["string", "null"]}));
    assert_eq!(members["from"], json!({"type": ["string", "null"], "format": "date"}));
}
