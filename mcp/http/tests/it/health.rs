//! Health probes: what they answer, to whom, and during a drain.

use std::time::Duration;

use bindpost_mcp_http::{ApiKeys, Auth, Settings};
use serde_json::json;

use crate::client::{Ask, TestServer, attentive};

fn probed() -> Settings {
    Settings { health: true, ..attentive() }
}

#[tokio::test]
async fn probes_are_answered_without_credentials_and_for_any_host() {
    let settings = Settings {
        auth: Some(Auth::new(ApiKeys::new().key("ops", "secret"))),
        require_origin: true,
        ..probed()
    };
    let server = TestServer::start(settings).await;
    for path in ["/_/healthz", "/_/readyz", "/_/healthz/", "/_/readyz?verbose"] {
        // An orchestrator probes by the address of the container.
        let probe =
            Ask::new("GET", path).with("host", "10.1.2.3:7071").header("origin", "https://evil.example");
        for probe in [probe.clone(), probe.without("host"), Ask::new("GET", path)] {
            let reply = server.send(&probe).await;
            assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"status":"ok"}"#), "{path}");
            assert_eq!(reply.header("cache-control"), Some("no-store"));
            assert_eq!(reply.header("access-control-allow-origin"), None);
        }
        assert_eq!(
            server.send(&Ask::new("POST", path).header("origin", "http://localhost")).await.status,
            405
        );
    }
    // Everything else still requires a known host and credentials.
    let foreign = Ask::modern_call("echo", json!({})).with("host", "10.1.2.3:7071");
    assert_eq!(server.send(&foreign).await.status, 403);
    let call = Ask::modern_call("echo", json!({})).header("origin", "http://localhost");
    assert_eq!(server.send(&call).await.status, 401);
}

#[tokio::test]
async fn probes_are_off_by_default() {
    let server = TestServer::start(attentive()).await;
    for path in ["/_/healthz", "/_/readyz"] {
        assert_eq!(server.send(&Ask::new("GET", path)).await.status, 404);
    }
}

#[tokio::test]
async fn the_server_is_not_ready_during_a_drain_but_alive() {
    let mut settings = probed();
    settings.connections.drain = Duration::from_secs(3600);
    settings.connections.drain_idle = Duration::from_secs(2);
    let server = TestServer::start(settings).await;
    let mut clients = [server.connect().await, server.connect().await];
    for client in &mut clients {
        assert_eq!(client.send(&Ask::new("GET", "/_/readyz")).await.status, 200);
    }
    server.trigger.pull();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let [mut ready, mut alive] = clients;
    let reply = ready.send(&Ask::new("GET", "/_/readyz")).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.text(), r#"{"reason":"the server is shutting down","status":"unavailable"}"#);
    assert_eq!(alive.send(&Ask::new("GET", "/_/healthz")).await.status, 200);
    server.ended().await;
}
