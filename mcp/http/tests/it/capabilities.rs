//! A server offers what its endpoint can deliver: the capabilities for each session mode, with and without
//! streams.

#![allow(clippy::unwrap_used, reason = "a test may fail wherever it likes")]

use bindpost_mcp_http::{SessionMode, Settings};
use bindpost_mcp_server::{PromptEntry, ResourceEntry, Server, ToolEntry};
use serde_json::{Value, json};

use crate::client::{Ask, LATEST, TestServer};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST];

async fn server(sessions: SessionMode, json_only: bool) -> TestServer {
    let greet = PromptEntry::new("greet", async || "Say hello").argument("name", "Whom to greet", false);
    let server = Server::builder("capable", "1.0.0")
        .tool(ToolEntry::new("nothing", async || ""))
        .resource(ResourceEntry::text("test://one", "one", "the first"))
        .prompt(greet.complete("name", |_| vec!["Alice".to_owned()]))
        .build()
        .unwrap();
    TestServer::of(server, Settings { sessions, json_only, ..Settings::default() }).await
}

/// Builds a request of a legacy revision, in the session that `initialize` opened, if it opened one.
async fn legacy_request(server: &TestServer, method: &str, params: Value) -> Ask {
    let opened = server.send(&Ask::initialize(LATEST)).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let ask = Ask::post(message.to_string()).header("mcp-protocol-version", LATEST);
    match opened.header("mcp-session-id") {
        Some(id) => ask.header("mcp-session-id", id),
        None => ask,
    }
}

fn assert_offered(capabilities: &Value, offers: bool, case: &str) {
    let (list, resources) = match offers {
        true => (json!({"listChanged": true}), json!({"listChanged": true, "subscribe": true})),
        false => (json!({}), json!({})),
    };
    assert_eq!(capabilities["tools"], list, "{case}");
    assert_eq!(capabilities["prompts"], list, "{case}");
    assert_eq!(capabilities["resources"], resources, "{case}");
    assert_eq!(capabilities.get("logging").is_some(), offers, "{case}");
}

/// The settings, and whether notifications reach clients of legacy and of modern revisions.
const COMBINATIONS: [(SessionMode, bool, bool, bool); 8] = [
    (SessionMode::Required, false, true, true),
    (SessionMode::Optional, false, true, true),
    (SessionMode::Stateless, false, false, true),
    (SessionMode::Off, false, false, true),
    (SessionMode::Required, true, false, false),
    (SessionMode::Optional, true, false, false),
    (SessionMode::Stateless, true, false, false),
    (SessionMode::Off, true, false, false),
];

#[tokio::test]
async fn only_what_the_endpoint_can_deliver_is_declared() {
    for (sessions, json_only, legacy, modern) in COMBINATIONS {
        let server = server(sessions, json_only).await;
        for revision in LEGACY {
            let opened = server.send(&Ask::initialize(revision)).await.result();
            let case = format!("{sessions:?}, json_only = {json_only}, {revision}");
            assert_offered(&opened["capabilities"], legacy, &case);
        }
        let found = server.send(&Ask::modern("server/discover", json!({}))).await.result();
        let case = format!("{sessions:?}, json_only = {json_only}, server/discover");
        assert_offered(&found["capabilities"], modern, &case);
        // A completion is a response, which every combination delivers.
        assert_eq!(found["capabilities"]["completions"], json!({}), "{case}");
    }
}

#[tokio::test]
async fn a_method_that_is_not_declared_is_unknown() {
    for (sessions, json_only, legacy, modern) in COMBINATIONS {
        let server = server(sessions, json_only).await;
        for (method, params) in [
            ("resources/subscribe", json!({"uri": "test://one"})),
            ("resources/unsubscribe", json!({"uri": "test://one"})),
            ("logging/setLevel", json!({"level": "info"})),
        ] {
            let reply = server.send(&legacy_request(&server, method, params).await).await;
            match legacy {
                true => assert_eq!(reply.result(), json!({}), "{sessions:?}, {json_only}, {method}"),
                false => {
                    let refused = reply.refused(200, -32601);
                    assert_eq!(refused["error"]["data"]["method"], method, "{sessions:?}, {json_only}");
                }
            }
        }
        let listen =
            Ask::modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
        if modern {
            let acknowledged = server.open(&listen).await.message().await.unwrap();
            assert_eq!(acknowledged["params"]["notifications"], json!({"toolsListChanged": true}));
        } else {
            server.send(&listen).await.refused(404, -32601);
        }
    }
}

/// HTTP+SSE has a stream of its own, whatever the settings of the other transport are.
#[tokio::test]
async fn a_pipe_delivers_everything() {
    let server = server(SessionMode::Stateless, true).await;
    let mut pipe = server.open(&Ask::new("GET", "/sse").header("accept", "text/event-stream")).await;
    let address = format!("/{}", pipe.event().await.unwrap().data.unwrap());
    server.send(&Ask::initialize("2024-11-05").at(&address)).await.accepted();
    let opened = pipe.message().await.unwrap();
    assert_offered(&opened["result"]["capabilities"], true, "HTTP+SSE");
}
