use super::*;
use http::HeaderValue;
use serde_json::json;

fn failure(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Value {
    let map = headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
    let status = StatusCode::from_u16(status).unwrap();
    serde_json::from_str(&CallFailure::from_response(status, &map.collect(), body.as_bytes()).text()).unwrap()
}

#[test]
fn messages_are_found_in_the_formats_that_services_use() {
    for (body, code, message) in [
        (r#"{"error":{"code":"NotThere","message":"No such pet."}}"#, json!("NotThere"), "No such pet."),
        (r#"{"message":"Bad credentials","documentation_url":"x"}"#, json!(null), "Bad credentials"),
        (r#"{"type":"about:blank","title":"Bad Request","detail":"id is 0"}"#, json!(null), "id is 0"),
        (
            r#"{"title":"One or more errors","errors":{"Name":["too long"]}}"#,
            json!(null),
            "One or more errors (Name: too long)",
        ),
        (r#"{"errors":[{"message":"first","code":7},{"detail":"second"}]}"#, json!(null), "first; second"),
        (r#"{"errors":["a","b"]}"#, json!(null), "a; b"),
        (r#"{"error":"invalid_grant","error_description":"expired"}"#, json!("invalid_grant"), "expired"),
        (r#"{"error":"nope"}"#, json!("nope"), "nope"),
        (r#"{"odata.error":{"code":"X","message":{"lang":"en","value":"old"}}}"#, json!("X"), "old"),
        (r#""just text""#, json!(null), "just text"),
        ("plain words", json!(null), "plain words"),
        ("", json!(null), "400 Bad Request"),
        ("{}", json!(null), "{}"),
    ] {
        let said = failure(400, &[], body);
        assert_eq!((&said["code"], said["message"].as_str().unwrap()), (&code, message), "{body}");
    }
}

#[test]
fn a_web_page_becomes_its_title() {
    let page =
        "<html><head><title>502 Bad\nGateway</title><script>x()</script></head><body>nginx</body></html>";
    let said = failure(502, &[("content-type", "text/html")], page);
    assert_eq!(said, json!({"error": "server_error", "status": 502, "message": "502 Bad Gateway"}));
    let said = failure(500, &[("content-type", "text/html")], &format!("<p>{}</p>", "word ".repeat(500)));
    assert!(said["message"].as_str().unwrap().chars().count() <= 300);
    assert!(!said["message"].as_str().unwrap().contains('<'));
}

#[test]
fn each_status_has_a_kind() {
    for (status, kind) in [
        (400, "invalid_request"),
        (401, "unauthorized"),
        (403, "unauthorized"),
        (404, "resource_not_found"),
        (410, "resource_not_found"),
        (409, "conflict"),
        (412, "conflict"),
        (422, "invalid_request"),
        (429, "rate_limited"),
        (500, "server_error"),
        (503, "server_error"),
        (418, "unknown_error"),
        (302, "unknown_error"),
    ] {
        assert_eq!(failure(status, &[], "")["error"], kind, "{status}");
    }
}

#[test]
fn the_request_id_and_the_retry_delay_are_reported() {
    let said = failure(429, &[("retry-after", "7"), ("x-request-id", "abc")], "");
    assert_eq!((&said["retryAfter"], &said["requestId"]), (&json!(7), &json!("abc")));
    assert_eq!(failure(500, &[], r#"{"error":{"message":"m","requestId":"r1"}}"#)["requestId"], "r1");
}
