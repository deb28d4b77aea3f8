//! `Server::is_watched` and `Server::watched_resources`.

use std::time::Duration;

use bindpost_mcp_server::testing::TestClient;
use bindpost_mcp_server::{ResourceEntry, Server};
use serde_json::{Value, json};

fn server() -> Server {
    let resource = |uri: &str| ResourceEntry::text(uri, "r", "x");
    Server::builder("s", "1").resource(resource("test://a")).resource(resource("test://b")).build().unwrap()
}

#[tokio::test]
async fn a_session_watches_its_subscribed_resources() {
    let server = server();
    let mut client = TestClient::connect(&server);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    client.request("initialize", hello).await.unwrap();
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    assert!(server.watched_resources().is_empty());
    client.request("resources/subscribe", json!({"uri": "test://a"})).await.unwrap();
    assert!(server.is_watched("test://a") && !server.is_watched("test://b"));
    client.request("resources/unsubscribe", json!({"uri": "test://a"})).await.unwrap();
    assert!(!server.is_watched("test://a"));
    client.request("resources/subscribe", json!({"uri": "test://b"})).await.unwrap();
    assert_eq!(server.watched_resources(), ["test://b".to_owned()].into());
    drop(client);
    assert!(!server.is_watched("test://b"));
}

#[tokio::test]
async fn a_listener_watches_its_resources_until_it_is_cancelled() {
    let server = server();
    let mut client = TestClient::connect(&server);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let wanted = json!({"resourceSubscriptions": ["test://a", "test://unknown"]});
    let listen = json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen",
        "params": {"_meta": meta, "notifications": wanted}});
    client.send(listen.to_string()).await;
    let first: Value = serde_json::from_slice(&client.next().await.unwrap()).unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    wait_until(|| server.is_watched("test://a")).await;
    assert!(!server.is_watched("test://unknown"));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "l"}});
    client.send(cancel.to_string()).await;
    wait_until(|| server.watched_resources().is_empty()).await;
}

async fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..500 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the condition was not met in time");
}
