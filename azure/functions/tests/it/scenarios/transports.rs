//! Handshakes, sessions, pings, and HTTP+SSE.

use http::{Method, StatusCode};
use serde_json::json;

use crate::client::{Client, PATH, Way, get, post, send};
use crate::served::Language;

for_all_apps! {
    sends_its_name_and_instructions,
    keeps_sessions_apart,
    answers_pings,
    serves_calls_without_a_handshake,
    serves_http_sse_at_the_path_it_names,
}

async fn sends_its_name_and_instructions(app: Language) {
    let host = app.shared();
    for client in host.clients_by(&Way::ACQUAINTED).await {
        let (way, greeting) = (client.way, &client.greeting);
        let server = match way {
            Way::Alone => &greeting["_meta"]["io.modelcontextprotocol/serverInfo"],
            _ => &greeting["serverInfo"],
        };
        assert_eq!(
            (&server["name"], &server["version"]),
            (&json!("Test project server"), &json!("2.1.0")),
            "{way:?}"
        );
        let instructions = "These instructions are only meant for testing and can be ignored.";
        assert_eq!(greeting["instructions"], instructions, "{way:?}");
        for capability in ["tools", "resources", "prompts", "logging"] {
            assert!(greeting["capabilities"][capability].is_object(), "{way:?} {capability}: {greeting}");
        }
    }
}

async fn keeps_sessions_apart(app: Language) {
    let host = app.shared();
    let mut one = host.client(Way::LATEST).await;
    let other = host.client(Way::LATEST).await;
    let id = one.session.clone().unwrap();
    assert!(!id.is_empty());
    assert_ne!(one.session, other.session);
    for _ in 0..2 {
        one.list("tools/list", "tools").await;
    }
    // Closing one session does not affect the other one.
    let headers = [("mcp-session-id", id)];
    let closed = send(host.address, Method::DELETE, PATH, &headers, String::new()).await;
    assert!(closed.status.is_success(), "{}", closed.status);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(post(host.address, PATH, &headers, list.clone()).await.status, StatusCode::NOT_FOUND);
    let headers = [("mcp-session-id", other.session.unwrap())];
    assert_eq!(post(host.address, PATH, &headers, list).await.status, StatusCode::OK);
}

async fn answers_pings(app: Language) {
    let host = app.shared();
    // 2026-07-28 has no ping.
    for mut client in host.clients_by(&[Way::LATEST, Way::Session("2025-06-18"), Way::Cold, Way::Sse]).await {
        assert_eq!(client.result("ping", json!({})).await, json!({}), "{:?}", client.way);
    }
}

/// The platform's own clients call tools without `initialize`.
async fn serves_calls_without_a_handshake(app: Language) {
    let host = app.shared();
    let mut client = host.client(Way::Cold).await;
    for message in ["hello-world", "again", "and again"] {
        assert_eq!(client.text("EchoTool", json!({"message": message})).await, message);
    }
    assert_eq!(client.session, None);
    // Even the revision is optional.
    let params = json!({"name": "EchoTool", "arguments": {"message": "hello-world"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    for path in [PATH, "/mcp", "/Runtime/Webhooks/MCP/"] {
        let response = post(host.address, path, &[], call.to_string()).await.message().await.unwrap();
        assert_eq!(response["result"]["content"], json!([{"type": "text", "text": "hello-world"}]), "{path}");
    }
    // Like on the platform, the response includes members that are newer than 2025-03-26.
    let params = json!({"name": "PocoOutputTool", "arguments": {"city": "Oslo"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let response = post(host.address, PATH, &[], call.to_string()).await.message().await.unwrap();
    assert_eq!(response["result"]["structuredContent"]["city"], "Oslo");
}

async fn serves_http_sse_at_the_path_it_names(app: Language) {
    let host = app.shared();
    for path in [format!("{PATH}/sse"), "/mcp/sse".to_owned(), format!("{PATH}/SSE/")] {
        let mut stream = get(host.address, &path, &[]).await;
        assert_eq!(stream.status, StatusCode::OK, "{path}");
        let (kind, endpoint) = stream.event().await.unwrap();
        assert_eq!(kind, "endpoint");
        // Relative, so that it also leads back through a proxy that adds a prefix to the path.
        assert!(endpoint.starts_with("message?"), "{endpoint}");
        let (folder, _) = path.rsplit_once('/').unwrap();
        let endpoint = format!("{folder}/{endpoint}");
        let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}).to_string();
        assert_eq!(post(host.address, &endpoint, &[], ping).await.status, StatusCode::ACCEPTED);
        assert_eq!(stream.message().await.unwrap(), json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
    }
    let refused = post(host.address, &format!("{PATH}/sse"), &[], "{}".to_owned()).await;
    assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn names_the_http_sse_endpoint_with_its_host_if_configured() {
    let setting = "AzureFunctionsJobHost__extensions__mcp__messageOptions__useAbsoluteUriForEndpoint";
    let host = Language::Node.launch().setting(setting, "true").serve();
    let (_, endpoint) = get(host.address, &format!("{PATH}/sse"), &[]).await.event().await.unwrap();
    let start = format!("http://{}/runtime/webhooks/mcp/message?", host.address);
    assert!(endpoint.starts_with(&start), "{endpoint}");
}

/// The platform pings every 25 seconds, because proxies would close a silent stream.
#[tokio::test]
async fn pings_clients_of_http_sse() {
    let host = Language::Node.shared();
    let mut stream = get(host.address, &format!("{PATH}/sse"), &[]).await;
    let (_, endpoint) = stream.event().await.unwrap();
    let endpoint = format!("{PATH}/{endpoint}");
    let params = json!({
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "patient", "version": "1"},
    });
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    post(host.address, &endpoint, &[], initialize.to_string()).await;
    assert_eq!(stream.message().await.unwrap()["id"], 1);
    let ping = stream.message().await.unwrap();
    assert_eq!(ping["method"], "ping");
    let pong = json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}}).to_string();
    assert_eq!(post(host.address, &endpoint, &[], pong).await.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn requires_a_key_if_configured() {
    let host = Language::Node.launch().with_keys().serve();
    let list = || json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(post(host.address, PATH, &[], list()).await.status, StatusCode::UNAUTHORIZED);
    let wrong = [("x-functions-key", "wrong".to_owned())];
    assert_eq!(post(host.address, PATH, &wrong, list()).await.status, StatusCode::UNAUTHORIZED);
    let keys = std::fs::read_to_string(host.file(".bindpost/keys")).unwrap();
    let key = keys.lines().find_map(|line| line.strip_prefix("mcp_extension")).unwrap();
    let key = key.trim_start_matches([' ', '=', ':']).trim().to_owned();
    let header = [("x-functions-key", key.clone())];
    assert_eq!(post(host.address, PATH, &header, list()).await.status, StatusCode::OK);
    let query = format!("{PATH}?code={key}");
    assert_eq!(post(host.address, &query, &[], list()).await.status, StatusCode::OK);
    let mut client = Client::connect_with(host.address, Way::Sse, &[("x-functions-key", &key)]).await;
    assert_eq!(client.text("EchoTool", json!({"message": "in"})).await, "in");
}
