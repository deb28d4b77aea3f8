//! Responses of the service and the tool results they become.

use bindpost_mcp_openapi::{Bridge, Credential, Upstream, UpstreamLimits};
use serde_json::{Value, json};

use crate::bridge_pets::{Reply, Shop, call, connect, document, failing};

async fn result_of(reply: Reply, tool: &str) -> Value {
    let shop = Shop::open(move |_| reply.clone()).await;
    let bridge = shop.bridge(document()).answer_budget(2000).build().unwrap();
    call(&mut connect(&bridge).await, tool, json!({})).await
}

fn reply(status: u16, media: &str, body: impl Into<Vec<u8>>) -> Reply {
    let headers = if media.is_empty() { vec![] } else { vec![("content-type", media.to_owned())] };
    (status, headers, body.into())
}

#[tokio::test]
async fn json_of_any_type_becomes_an_object() {
    for (media, body, expected) in [
        ("application/json", r#"{"a":1}"#, json!({"a": 1})),
        ("application/json", "[1,2]", json!({"items": [1, 2]})),
        ("application/json", "5", json!({"value": 5})),
        ("application/json", "null", json!({"value": null})),
        ("application/problem+json; charset=utf-8", r#""x""#, json!({"value": "x"})),
        ("application/json", "\u{feff}{\"a\":1}", json!({"a": 1})),
        ("", r#"{"a":1}"#, json!({"a": 1})),
        ("text/plain", r#"{"a":1}"#, json!({"a": 1})),
        ("application/octet-stream", r#"{"a":1}"#, json!({"a": 1})),
        ("application/json", "", json!({"status": 200})),
        ("", " \n", json!({"status": 200})),
    ] {
        let result = result_of(reply(200, media, body), "getStatus").await;
        assert_eq!(result["structuredContent"], expected, "{media} {body}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected);
    }
    let none = result_of(reply(204, "", ""), "getStatus").await;
    assert_eq!(none["structuredContent"], json!({"status": 204}));
}

#[tokio::test]
async fn content_other_than_json_is_unchanged() {
    let text = result_of(reply(200, "text/csv", "a,b\n1,2"), "getStatus").await;
    assert_eq!(text["content"][0]["text"], "a,b\n1,2");
    // A tool with an output schema returns structured content.
    assert_eq!(text["structuredContent"], json!({"status": 200, "contentType": "text/csv", "bytes": 7}));
    let latin =
        result_of(reply(200, "text/plain; charset=ISO-8859-1", b"caf\xe9".to_vec()), "getStatus").await;
    assert_eq!(latin["content"][0]["text"], "café");
    let image = result_of(reply(200, "image/png", b"\x89PNG".to_vec()), "getStatus").await;
    assert_eq!(
        (&image["content"][0]["type"], &image["content"][0]["data"]),
        (&json!("image"), &json!("iVBORw=="))
    );
    let sound = result_of(reply(200, "audio/ogg", b"\x00\x01".to_vec()), "getStatus").await;
    assert_eq!(sound["content"][0]["type"], "audio");
    let bytes = result_of(reply(200, "application/zip", b"PK\x00\xff".to_vec()), "getStatus").await;
    let resource = &bytes["content"][0]["resource"];
    assert_eq!((&resource["blob"], &resource["mimeType"]), (&json!("UEsA/w=="), &json!("application/zip")));
    assert_eq!(resource["uri"], "openapi:///status");
}

#[tokio::test]
async fn a_response_with_a_wrong_media_type_is_reported() {
    for (media, body, says) in [
        ("application/json", "{\"a\":", "not valid JSON (EOF while parsing"),
        ("application/json", "<html><b>login</b></html>", "an HTML page instead of JSON: \\\"login\\\""),
        ("text/html", "<title>Sign in</title>", "an HTML page instead of JSON: \\\"Sign in\\\""),
        ("text/plain", "<!DOCTYPE html><title>Sign in</title>", "instead of JSON: \\\"Sign in\\\""),
    ] {
        let result = result_of(reply(200, media, body), "getStatus").await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(result["isError"] == true && text.contains(says), "{media} {body}: {text}");
        assert!(text.contains(r#""status":200"#) && text.contains("server_error"), "{text}");
    }
}

#[tokio::test]
async fn an_error_status_is_an_error_with_advice() {
    let mut refused = reply(429, "application/json", r#"{"error":{"code":"Slow","message":"Too fast."}}"#);
    refused.1.extend([("retry-after", "0".to_owned()), ("x-request-id", "r-1".to_owned())]);
    let result = result_of(refused, "getStatus").await;
    assert_eq!(result["isError"], true);
    let said: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        said,
        json!({"error": "rate_limited", "status": 429, "code": "Slow", "message": "Too fast.",
            "requestId": "r-1", "retryAfter": 0})
    );
    let page = result_of(reply(404, "text/html", "<h1>Not <i>here</i></h1>"), "getStatus").await;
    let said: Value = serde_json::from_str(page["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(said, json!({"error": "resource_not_found", "status": 404, "message": "Not here"}));
}

#[tokio::test]
async fn a_response_that_cannot_be_cut_reports_its_size_and_how_to_narrow_it() {
    for body in [json!({"text": "x".repeat(3000)}).to_string(), json!([1, "x".repeat(3000)]).to_string()] {
        let shop = Shop::open(move |_| reply(200, "application/json", body.clone())).await;
        let bridge = shop.bridge(document()).answer_budget(2000).fixed("api-version", "1").build().unwrap();
        let mut client = connect(&bridge).await;
        let first = call(&mut client, "listPets", json!({})).await;
        let said = match first["structuredContent"]["nextCursor"].as_str() {
            Some(cursor) => failing(&mut client, "listPets", json!({"cursor": cursor})).await,
            None => serde_json::from_str(first["content"][0]["text"].as_str().unwrap()).unwrap(),
        };
        let message = said["message"].as_str().unwrap();
        assert!(message.contains("has 30") && message.contains("`kind`"), "{message}");
        assert!(!message.contains("api"), "{message}");
    }
    let text = result_of(reply(200, "text/plain", "x".repeat(3000)), "getStatus").await;
    assert!(text["isError"] == true && text.to_string().contains("3000 bytes"), "{text}");
}

#[tokio::test]
async fn an_unreachable_service_is_an_error() {
    let gone = Upstream::new(
        "http://127.0.0.1:9/",
        Credential::None,
        UpstreamLimits { tries: 1, ..Default::default() },
    );
    let bridge = Bridge::builder(document(), gone.unwrap()).build().unwrap();
    let said = failing(&mut connect(&bridge).await, "getStatus", json!({})).await;
    assert_eq!(said["error"], "server_error");
    assert!(!said.to_string().contains("127.0.0.1"), "{said}");
}

#[tokio::test]
async fn a_number_in_plain_text_is_a_value() {
    let shop = Shop::open(|_| reply(200, "text/plain", "40")).await;
    let mut document = document();
    for response in document.operations.iter_mut().flat_map(|operation| &mut operation.responses) {
        response.content_type = Some("text/plain".to_owned());
        response.schema = Some(json!({"type": "integer"}));
    }
    let mut client = connect(&shop.bridge(document).build().unwrap()).await;
    let result = call(&mut client, "getStatus", json!({})).await;
    assert_eq!(result["structuredContent"], json!({"value": 40}));
    let listed = client.request("tools/list", json!({})).await.unwrap();
    let schemas = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["outputSchema"]);
    assert!(schemas.into_iter().all(|schema| schema["properties"]["value"].is_object()), "{listed}");
}

#[tokio::test]
async fn hidden_members_are_removed_and_their_links_are_still_followed() {
    let shop = Shop::open(|seen| {
        let pet = json!({"id": 1, "@context": "http://inside/p", "deep": {"@context": "kept"}});
        let mut page = json!({"value": [pet], "@context": "http://inside"});
        if !seen.path.contains("page=2") {
            page["@odata.nextLink"] = json!("/v1/pets?page=2");
        }
        crate::bridge_pets::answer(page)
    })
    .await;
    let hides = ["@context", "@odata.nextLink"];
    let mut client = connect(&shop.bridge(document()).hides(hides).build().unwrap()).await;
    let first = call(&mut client, "listPets", json!({})).await["structuredContent"].clone();
    assert_eq!(first["value"], json!([{"id": 1, "deep": {"@context": "kept"}}]));
    assert!(first.get("@context").is_none() && first.get("@odata.nextLink").is_none(), "{first}");
    call(&mut client, "listPets", json!({"cursor": first["nextCursor"]})).await;
    assert_eq!(shop.paths(), ["GET /v1/pets", "GET /v1/pets?page=2"]);
    let read = client.request("resources/read", json!({"uri": "openapi:///pets"})).await.unwrap();
    assert!(!read.to_string().contains("inside"), "{read}");
}

#[tokio::test]
async fn a_response_above_the_limit_is_reported_in_whole_sentences() {
    use bindpost_mcp_openapi::{Bridge, Credential, Upstream, UpstreamLimits};
    let shop = Shop::saying(json!({"text": "x".repeat(3000)})).await;
    let limits = UpstreamLimits { body: 1000, ..UpstreamLimits::default() };
    let upstream = Upstream::new(&shop.base, Credential::None, limits).unwrap();
    let mut client = connect(&Bridge::builder(document(), upstream).build().unwrap()).await;
    let said = crate::bridge_pets::failing(&mut client, "getStatus", json!({})).await;
    assert!(said["message"].as_str().unwrap().contains("request less. The operation has no"), "{said}");
}
