//! Cases in which the reference servers are wrong or lax: one test for each row of the measured matrix,
//! with the correct response.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use bindpost_mcp_http::Settings;
use serde_json::{Value, json};

use crate::client::{Ask, LATEST, MODERN, TestServer};

async fn server() -> TestServer {
    TestServer::start(Settings::default()).await
}

#[tokio::test]
async fn an_unknown_revision_is_negotiated_and_never_echoed() {
    let server = server().await;
    for asked in ["1999-01-01", "2026-07-28", "2030-01-01", "", "latest"] {
        let reply = server.send(&Ask::initialize(asked)).await;
        assert_eq!(reply.result()["protocolVersion"], LATEST, "{asked}");
        assert_eq!(reply.json()["id"], "open");
    }
    for asked in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(server.send(&Ask::initialize(asked)).await.result()["protocolVersion"], asked);
    }
}

#[tokio::test]
async fn rejects_a_foreign_origin_even_with_an_allowed_host() {
    let server = server().await;
    for ask in [Ask::initialize(LATEST), Ask::modern("tools/list", json!({}))] {
        server.send(&ask.clone().header("origin", "http://evil.example.com")).await.refused(403, -32600);
        server.send(&ask).await.result();
    }
}

#[tokio::test]
async fn rejects_a_foreign_host_unless_it_is_listed() {
    let server = server().await;
    for host in ["evil.example.com", "evil.example.com:80", "localhost.evil.example.com", "", "0.0.0.0"] {
        let ask = Ask::modern("tools/list", json!({})).with("host", host);
        server.send(&ask).await.refused(403, -32600);
    }
    let allowed_hosts = vec!["api.example.com".to_owned(), "one.example.com:8443".to_owned()];
    let server =
        TestServer::start(Settings { allowed_hosts, open_to_all: true, ..Settings::default() }).await;
    for (host, status) in [
        ("api.example.com", 200),
        ("API.example.com:443", 200),
        ("one.example.com:8443", 200),
        ("one.example.com:80", 403),
        ("two.example.com", 403),
        ("localhost:3000", 200),
        ("[::1]:3000", 200),
    ] {
        let ask = Ask::modern("tools/list", json!({})).with("host", host);
        assert_eq!(server.send(&ask).await.status, status, "{host}");
    }
}

#[tokio::test]
async fn invalid_json_is_a_json_rpc_parse_error() {
    let server = server().await;
    let message = server.send(&Ask::post("{\"jsonrpc\":")).await.refused(400, -32700);
    assert!(message.get("id").is_none(), "{message}");
}

#[tokio::test]
async fn a_batch_with_a_modern_claim_is_an_invalid_request() {
    let server = server().await;
    let one = Ask::modern("tools/list", json!({}));
    let batch = one.clone().edit(|message| *message = json!([message.clone()]));
    server.send(&batch).await.refused(400, -32600);
    server.send(&batch.without("mcp-protocol-version").without("mcp-method")).await.refused(400, -32600);
}

#[tokio::test]
async fn a_null_id_is_an_invalid_request_and_not_a_notification() {
    let server = server().await;
    let ask = Ask::modern("tools/list", json!({})).edit(|message| message["id"] = Value::Null);
    let message = server.send(&ask).await.refused(400, -32600);
    assert!(message.get("id").is_none(), "{message}");
}

#[tokio::test]
async fn rejects_an_unknown_log_level() {
    let server = server().await;
    let level = |level: Value| {
        let meta = json!({"io.modelcontextprotocol/logLevel": level});
        Ask::modern("tools/call", json!({"name": "echo", "_meta": meta}))
    };
    for bad in [json!("loud"), json!("INFO"), json!(7), json!(null)] {
        server.send(&level(bad)).await.refused(400, -32602);
    }
    server.send(&level(json!("info"))).await.result();
}

#[tokio::test]
async fn rejects_an_unknown_cursor() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        for cursor in [json!("nonsense"), json!(""), json!(7), json!("AAAAAAAAAAAAAAAAAAAA")] {
            let params = json!({"cursor": cursor});
            server.send(&Ask::modern(method, params.clone())).await.refused(200, -32602);
            server.send(&session.request(1, method, params)).await.refused(200, -32602);
        }
    }
}

#[tokio::test]
async fn every_accept_header_is_accepted() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for accept in [Some("*/*"), Some("application/json"), Some("text/html"), Some(""), None] {
        for ask in [Ask::modern("tools/list", json!({})), session.ping(), Ask::initialize(LATEST)] {
            let ask = ask.without("accept");
            let ask = accept.map_or(ask.clone(), |accept| ask.header("accept", accept));
            server.send(&ask).await.result();
        }
    }
    // A client that names streams alone or first gets a stream.
    let ask = Ask::modern("tools/list", json!({})).with("accept", "text/event-stream");
    let answers = server.open(&ask).await.rest().await;
    assert_eq!((answers.len(), &answers[0]["id"]), (1, &json!(1)));
}

#[tokio::test]
async fn a_modern_notification_needs_no_headers() {
    let server = server().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"requestId": 1, "_meta": meta});
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    server.send(&Ask::post(notification.to_string())).await.accepted();

    let notification =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let ask = Ask::post(notification.to_string()).header("mcp-protocol-version", MODERN);
    server.send(&ask).await.accepted();
}

#[tokio::test]
async fn deleting_an_unknown_session_is_404() {
    let server = server().await;
    let mut session = server.session(LATEST).await;
    session.id = "AAAAAAAAAAAAAAAAAAAAAA".to_owned();
    server.send(&session.delete()).await.refused(404, -32001);
}

#[tokio::test]
async fn options_is_answered() {
    let server = server().await;
    for path in ["/mcp", "/mcp/", "/sse", "/message"] {
        let reply = server.send(&Ask::new("OPTIONS", path)).await;
        assert_eq!((reply.status, reply.text().as_str()), (204, ""), "{path}");
        assert!(reply.header("allow").unwrap().contains("OPTIONS"), "{path}");
    }
}

#[tokio::test]
async fn put_is_405_with_allow() {
    let server = server().await;
    for method in ["PUT", "PATCH", "TRACE", "BREW"] {
        let reply = server.send(&Ask::new(method, "/mcp").body("{}")).await;
        reply.refused(405, -32600);
        assert_eq!(reply.header("allow"), Some("GET, POST, DELETE, OPTIONS"), "{method}");
    }
}

#[tokio::test]
async fn get_and_delete_with_a_modern_version_are_405() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for method in ["GET", "DELETE"] {
        let ask = Ask::new(method, "/mcp")
            .header("accept", "text/event-stream")
            .header("mcp-protocol-version", MODERN);
        // A session id makes no difference.
        for ask in [ask.clone(), ask.header("mcp-session-id", &session.id)] {
            let reply = server.send(&ask).await;
            reply.refused(405, -32600);
            assert!(reply.header("allow").unwrap().contains("POST"));
        }
    }
    server.send(&session.ping()).await.result();
}

#[tokio::test]
async fn a_missing_or_unknown_session_is_a_json_rpc_error() {
    let server = server().await;
    let mut session = server.session(LATEST).await;
    let missing = session.ping().without("mcp-session-id");
    assert_eq!(server.send(&missing).await.refused(400, -32600)["id"], "ping");
    session.id = "AAAAAAAAAAAAAAAAAAAAAA".to_owned();
    let unknown = server.send(&session.ping()).await.refused(404, -32001);
    assert_eq!(unknown["id"], "ping", "every error echoes the request's id");
}

#[tokio::test]
async fn tasks_need_the_extension() {
    let server = server().await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let ask = Ask::modern(method, json!({"taskId": "x"}));
        let message = server.send(&ask).await.refused(400, -32021);
        let required = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        assert_eq!(message["error"]["data"]["requiredCapabilities"], required);
        assert_eq!(message["id"], 1);
    }
}

#[tokio::test]
async fn every_modern_result_names_the_server() {
    let server = server().await;
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "echo"})),
        ("tools/call", json!({"name": "typed", "arguments": {}})),
        ("tools/call", json!({"name": "count", "arguments": {"messages": 0}})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "greet"})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "test://one"})),
    ] {
        let result = server.send(&Ask::modern(method, params)).await.result();
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test", "{method}");
    }
    let ask = Ask::enveloped("tools/call", json!({"name": "ask_name"}), json!({"elicitation": {}}));
    let result = server.send(&ask).await.result();
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test");
}

#[tokio::test]
async fn discover_is_answered_in_json_with_the_id_of_the_request() {
    let server = server().await;
    for id in [json!(0), json!("server-discover-probe-1"), json!("")] {
        let ask = Ask::modern("server/discover", json!({})).edit(|message| message["id"] = id.clone());
        let reply = server.send(&ask).await;
        let result = reply.result();
        assert_eq!(reply.json()["id"], id);
        assert_eq!(result["supportedVersions"], json!([MODERN]));
        assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string(), "{result}");
        assert!(result["capabilities"]["tools"].is_object(), "{result}");
        assert!(result.get("serverInfo").is_none(), "{result}");
        assert_eq!(reply.header("mcp-session-id"), None);
    }
}

#[tokio::test]
async fn a_modern_call_without_messages_is_answered_with_json() {
    let server = server().await;
    // The first call ends immediately, the second after some time.
    assert_eq!(server.send(&Ask::modern_call("echo", json!({}))).await.tool_text(), "{}");
    let wait = server.send_in_background(Ask::modern_call("wait", json!({})));
    server.watch.has_begun(1).await;
    server.watch.go_on.add_permits(1);
    let reply = wait.await.unwrap();
    assert_eq!(reply.tool_text(), "waited");
    assert_eq!(reply.header("mcp-session-id"), None);
}
