//! Failures of the service. Each is reported clearly, without a URL, a key or a path.

use std::time::Duration;

use bindpost_mcp_openapi::UpstreamLimits;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::service::{Service, server, shared};
use crate::talk::{Era, Talk};

const KEY: &str = "a-key-that-must-stay-secret";

/// Starts a service that answers every request with this response, and returns its URL.
pub(crate) async fn answering(status: &str, headers: &str, body: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/some/path", listener.local_addr().unwrap());
    let answer = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = socket.read(&mut request).await;
                let _ = socket.write_all(answer.as_bytes()).await;
            });
        }
    });
    url
}

fn limits() -> UpstreamLimits {
    UpstreamLimits { total: Duration::from_millis(500), tries: 1, body: 10_000, ..UpstreamLimits::default() }
}

/// Returns the failure of a tool for the service at this URL.
async fn told(url: &str) -> Value {
    let mut talk = Talk::start(&server(shared(url, Some(KEY), limits())), Era::Session).await;
    let told = talk.call("getIndex", json!({"indexName": "hotels"})).await.unwrap_err();
    let text = told.to_string();
    for secret in [KEY, "127.0.0.1", "some/path"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    told
}

#[tokio::test]
async fn each_status_has_its_kind() {
    for (status, kind) in [
        ("400 Bad Request", "invalid_request"),
        ("401 Unauthorized", "unauthorized"),
        ("403 Forbidden", "unauthorized"),
        ("404 Not Found", "resource_not_found"),
        ("409 Conflict", "conflict"),
        ("412 Precondition Failed", "conflict"),
        ("429 Too Many Requests", "rate_limited"),
        ("500 Internal Server Error", "server_error"),
        ("503 Service Unavailable", "server_error"),
        ("418 I'm a teapot", "unknown_error"),
    ] {
        let body = r#"{"error": {"code": "", "message": "Said so.", "target": "x", "details": [{"code": "c", "message": "m", "extra": 1}]}}"#;
        let told = told(&answering(status, "request-id: abc\r\nretry-after: 7\r\n", body).await).await;
        assert_eq!(told["error"], kind, "{told:#}");
        assert_eq!(told["message"], "Said so.", "{told:#}");
        assert_eq!(told["status"].to_string(), status[..3], "{told:#}");
        assert_eq!((&told["requestId"], told.get("code")), (&json!("abc"), None), "{told:#}");
        assert_eq!(
            (&told["target"], &told["details"]),
            (&json!("x"), &json!([{"code": "c", "message": "m"}]))
        );
        let waits = ["429", "503"].contains(&&status[..3]);
        assert_eq!(told.get("retryAfter"), waits.then(|| json!(7)).as_ref(), "{told:#}");
    }
}

#[tokio::test]
async fn retry_after_may_be_a_date() {
    let past = "retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
    assert_eq!(told(&answering("429 Too Many Requests", past, "{}").await).await["retryAfter"], 0);
    let future = "retry-after: Fri, 31 Dec 2100 23:59:59 GMT\r\n";
    let future = told(&answering("503 Service Unavailable", future, "{}").await).await;
    assert!(future["retryAfter"].as_u64().unwrap() > 1_000_000, "{future:#}");
    let nothing = told(&answering("429 Too Many Requests", "retry-after: soon\r\n", "{}").await).await;
    assert!(nothing.get("retryAfter").is_none() && nothing["hint"].is_string(), "{nothing:#}");
}

#[tokio::test]
async fn responses_that_are_not_from_a_search_service_are_reported() {
    let html = "<html><body>Bad gateway at http://127.0.0.1/some/path</body></html>";
    let told_html = told(&answering("502 Bad Gateway", "content-type: text/html\r\n", html).await).await;
    assert_eq!(told_html["error"], "server_error");
    assert!(told_html["message"].as_str().unwrap().contains("not JSON"), "{told_html:#}");
    let fine = told(&answering("200 OK", "content-type: text/html\r\n", html).await).await;
    assert_eq!(fine["error"], "server_error", "{fine:#}");
    let broken = told(&answering("200 OK", "content-type: application/json\r\n", "{\"name\": ").await).await;
    assert!(broken["message"].as_str().unwrap().contains("not JSON"), "{broken:#}");
    let large = told(&answering("200 OK", "", &format!("\"{}\"", "x".repeat(20_000))).await).await;
    assert!(large["message"].as_str().unwrap().contains("10000 bytes"), "{large:#}");
    let elsewhere = answering("302 Found", "location: http://example.com/\r\n", "").await;
    assert!(told(&elsewhere).await["error"].is_string());
}

#[tokio::test]
async fn an_unreachable_service_and_a_timeout_are_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let asleep = format!("http://{}/some/path", listener.local_addr().unwrap());
    let slow = told(&asleep).await;
    assert!(slow["message"].as_str().unwrap().contains("did not answer within"), "{slow:#}");
    drop(listener);
    let away = told(&asleep).await;
    assert_eq!((&away["error"], away.get("status")), (&json!("server_error"), None));
    assert!(away["message"].as_str().unwrap().contains("cannot be reached"), "{away:#}");
}

#[tokio::test]
async fn a_query_key_can_search_and_gets_a_hint_for_other_calls() {
    let service = Service::with(true).await;
    let mut admin = Talk::start(&service.server(), Era::Session).await;
    let index = json!({"indexName": "hotels", "body": crate::service::hotels("hotels")});
    admin.call("createOrUpdateIndex", index.clone()).await.unwrap();
    let documents = crate::service::some_hotels(2);
    admin.call("uploadDocuments", json!({"indexName": "hotels", "documents": documents})).await.unwrap();

    let limits = UpstreamLimits::default();
    let key = service.query_key.as_deref();
    let mut talk = Talk::start(&server(shared(&service.url, key, limits)), Era::Alone).await;
    let found =
        talk.call("searchDocuments", json!({"indexName": "hotels", "search": "motel"})).await.unwrap();
    assert_eq!(found["items"].as_array().unwrap().len(), 2);
    let refused = talk.call("createOrUpdateIndex", index).await.unwrap_err();
    assert_eq!((&refused["error"], &refused["status"]), (&json!("unauthorized"), &json!(403)));
    assert!(refused["hint"].as_str().unwrap().contains("query key"), "{refused:#}");
    // Kinds that the key cannot list are skipped.
    let listed = talk.request("resources/list", json!({})).await.unwrap();
    assert_eq!(listed["resources"].as_array().unwrap().len(), 5);

    let mut stranger = Talk::start(&server(shared(&service.url, None, limits)), Era::Alone).await;
    let refused = stranger.call("listIndexes", json!({})).await.unwrap_err();
    assert_eq!((&refused["error"], &refused["status"]), (&json!("unauthorized"), &json!(401)));
}
