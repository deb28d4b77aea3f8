//! Whether unauthenticated callers may connect, and which requests are rejected.

use bindpost_mcp_http::{AnonymousAccess, Auth};
use serde_json::json;

use super::*;
use crate::client::{Ask, Client, LATEST, TestServer};

/// Requests that require only permission to connect.
fn openings() -> Vec<Ask> {
    let message = |message: Value| Ask::post(message.to_string());
    let mut all: Vec<Ask> =
        ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"].map(Ask::initialize).to_vec();
    all.extend(["server/discover", "tools/list", "no/such"].map(|method| Ask::modern(method, json!({}))));
    all.extend([
        message(request("ping", json!({}))),
        message(request("tools/list", json!({}))),
        message(request("logging/setLevel", json!({"level": "info"}))),
        message(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})),
        message(json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
        message(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}})),
        message(json!([request("ping", json!({}))])),
        message(json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}])),
        Ask::post("{"),
        Ask::post("[]"),
        Ask::new("GET", "/mcp").header("accept", "text/event-stream"),
        Ask::new("GET", "/mcp").header("accept", "text/event-stream").header("last-event-id", "1::1"),
        Ask::new("DELETE", "/mcp"),
        Ask::new("GET", "/sse").header("accept", "text/event-stream"),
        Ask::post(request("ping", json!({})).to_string()).at("/message"),
    ]);
    all
}

async fn status_of(server: &TestServer, ask: &Ask) -> u16 {
    let mut client = server.connect().await;
    client.write(&ask.bytes()).await;
    client.status().await
}

#[tokio::test]
async fn anonymous_access_can_be_closed_open_or_depend_on_the_entries() {
    for (entries, opening, is_open) in [
        (mixed(), AnonymousAccess::Auto, true),
        (protected(), AnonymousAccess::Auto, false),
        (mixed(), AnonymousAccess::Closed, false),
        (protected(), AnonymousAccess::Open, true),
        (mixed(), AnonymousAccess::Open, true),
        (protected(), AnonymousAccess::Closed, false),
    ] {
        let server = TestServer::of(entries, with(Auth::new(keys()).opening(opening))).await;
        for ask in openings() {
            for credentials in [NO_KEY, WRONG] {
                let status = status_of(&server, &carrying(ask.clone(), credentials)).await;
                assert_eq!(status != 401, is_open, "{opening:?} {ask:?}: {status}");
            }
            assert_ne!(status_of(&server, &carrying(ask.clone(), ALICE)).await, 401, "{ask:?}");
        }
    }
}

#[tokio::test]
async fn a_rejected_initialize_has_the_request_id() {
    let server = TestServer::of(protected(), with_keys()).await;
    let refused = server.send(&carrying(Ask::initialize(LATEST), WRONG)).await;
    // The body was not read.
    assert_eq!(refused.refused(401, -32001)["id"], Value::Null);
    let parameters = challenge(&refused.headers).1;
    assert_eq!(parameters["error"], "invalid_token");
    assert_eq!(parameters.get("scope"), None);

    let server = TestServer::of(mixed(), with(Auth::new(keys()).opening(AnonymousAccess::Closed))).await;
    assert_eq!(server.send(&Ask::initialize(LATEST)).await.refused(401, -32001)["id"], "open");
    // Anonymous entries can still be called in revisions without a handshake.
    assert_eq!(server.send(&Ask::modern_call("time", json!({}))).await.tool_text(), "noon");
}

#[tokio::test]
async fn anonymous_access_follows_changes_of_the_entries() {
    let server = TestServer::of(protected(), with_keys()).await;
    let discover = Ask::modern("server/discover", json!({}));
    server.send(&discover).await.refused(401, -32001);
    server.server.catalog().add_tool(ToolEntry::new("time", async || "noon").anonymous()).unwrap();
    server.send(&discover).await.result();
    assert_eq!(server.send(&Ask::modern_call("time", json!({}))).await.tool_text(), "noon");
}

#[tokio::test]
async fn a_closed_server_does_not_read_bodies_of_unauthenticated_callers() {
    let server = TestServer::of(protected(), with_keys()).await;
    for path in ["/mcp", "/message?sessionId=x"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: 1000000000\r\n\r\n{{"
        );
        let mut client = Client::connect(server.address).await;
        client.write(head.as_bytes()).await;
        let reply = client.reply(false).await;
        reply.refused(401, -32001);
    }
    // An authenticated caller gets the error about the size.
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-api-key: alice's key\r\n\
                content-type: application/json\r\ncontent-length: 1000000000\r\n\r\n{";
    let mut client = Client::connect(server.address).await;
    client.write(head.as_bytes()).await;
    client.reply(false).await.refused(413, -32600);
}

#[tokio::test]
async fn a_rejected_client_can_reuse_its_connection() {
    let server = TestServer::of(protected(), with_keys()).await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        client.send(&Ask::initialize(LATEST)).await.refused(401, -32001);
        client.send(&carrying(Ask::initialize(LATEST), ALICE)).await.result();
    }
}

#[tokio::test]
async fn a_web_page_can_read_the_challenge() {
    let allowed_origins = vec!["https://app.example.com".to_owned()];
    let settings = Settings { allowed_origins, ..with_keys() };
    let server = TestServer::of(protected(), settings).await;
    let from_page = |ask: Ask| ask.header("origin", "https://app.example.com");
    let refused = server.send(&from_page(Ask::initialize(LATEST))).await;
    refused.refused(401, -32001);
    assert_eq!(refused.header("access-control-allow-origin"), Some("https://app.example.com"));
    assert!(refused.header("access-control-expose-headers").unwrap().contains("www-authenticate"));
    let preflight = server.send(&from_page(Ask::new("OPTIONS", "/mcp"))).await;
    let allowed = preflight.header("access-control-allow-headers").unwrap();
    assert!(allowed.contains("authorization") && allowed.contains("x-api-key"), "{allowed}");
}

#[tokio::test]
async fn host_and_origin_come_before_authentication_and_the_body_after() {
    let server = TestServer::of(protected(), with_keys()).await;
    // A foreign origin or host is rejected before authentication.
    let foreign = Ask::initialize(LATEST).header("origin", "https://evil.example.com");
    server.send(&foreign).await.refused(403, -32600);
    server
        .send(&carrying(Ask::initialize(LATEST), ALICE).with("host", "evil.example.com"))
        .await
        .refused(403, -32600);
    // The body is checked after authentication.
    server.send(&Ask::initialize(LATEST).with("content-type", "text/plain")).await.refused(401, -32001);
    server
        .send(&carrying(Ask::initialize(LATEST).with("content-type", "text/plain"), ALICE))
        .await
        .refused(415, -32600);
}
