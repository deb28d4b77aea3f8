//! The app over real connections: REST and MCP on one port, and one shutdown for both.

#![allow(clippy::unwrap_used, reason = "a test may fail wherever it likes")]

use std::time::Duration;

use axum_app::{Notes, router, serve, server, settings};
use bindpost::http::Endpoint;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const MODERN: &str = "2026-07-28";

struct RunningApp {
    base: String,
    client: Client,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<std::io::Result<()>>,
}

impl RunningApp {
    async fn start() -> RunningApp {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let notes = Notes::default();
        let endpoint = Endpoint::new(server(notes.clone()).unwrap(), settings());
        let app = router(notes, endpoint.clone());
        let (stop, stopped) = oneshot::channel();
        let stopped = async move { stopped.await.unwrap_or_default() };
        let ended = tokio::spawn(serve(listener, app, endpoint, stopped));
        let client = bindpost_net_upstream::client_builder().no_proxy().build().unwrap();
        RunningApp { base, client, stop, ended }
    }

    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        let request = self.client.post(format!("{}{path}", self.base));
        request.header("content-type", "application/json").body(body.to_string())
    }

    /// Calls a tool in the modern revision and returns the result.
    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {}});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = self.post("/mcp", &message);
        let request = request.header("mcp-protocol-version", MODERN).header("mcp-method", "tools/call");
        let reply = request.header("mcp-name", tool).send().await.unwrap();
        assert_eq!(reply.status(), 200);
        let answer: Value = serde_json::from_str(&reply.text().await.unwrap()).unwrap();
        answer["result"].clone()
    }
}

#[tokio::test]
async fn rest_and_mcp_share_one_port_and_one_state() {
    let app = RunningApp::start().await;
    let added = app.post("/notes", &json!({"title": "milk", "text": "two litres"})).send().await.unwrap();
    assert_eq!(added.status(), 201);
    let note = app.call("get_note", json!({"title": "milk"})).await;
    assert_eq!(note["structuredContent"], json!({"title": "milk", "text": "two litres"}));
    app.call("add_note", json!({"title": "tea", "text": "green"})).await;
    let all = app.client.get(format!("{}/notes", app.base)).send().await.unwrap().text().await.unwrap();
    let all: Vec<Value> = serde_json::from_str(&all).unwrap();
    assert_eq!(all.iter().map(|note| &note["title"]).collect::<Vec<_>>(), ["milk", "tea"]);
}

#[tokio::test]
async fn layers_and_the_guard_of_the_endpoint_both_apply() {
    let app = RunningApp::start().await;
    let page = "https://notes.example.com";
    let listed = app.client.get(format!("{}/notes", app.base)).header("origin", page).send().await.unwrap();
    assert_eq!(listed.headers()["access-control-allow-origin"], page);
    let foreign = app.post("/mcp", &json!({})).header("origin", "https://evil.example").send().await.unwrap();
    assert_eq!(foreign.status(), 403);
    let rebound = app.post("/mcp", &json!({})).header("host", "evil.example").send().await.unwrap();
    assert_eq!(rebound.status(), 403);
}

#[tokio::test]
async fn one_shutdown_ends_streams_and_the_server() {
    let app = RunningApp::start().await;
    let opening = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let opened = app.post("/mcp", &opening).header("accept", "application/json, text/event-stream");
    let opened = opened.send().await.unwrap();
    let id = opened.headers()["mcp-session-id"].clone();
    let stream = app.client.get(format!("{}/mcp", app.base)).header("accept", "text/event-stream");
    let stream = stream.header("mcp-session-id", id).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    app.stop.send(()).unwrap();
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, stream.bytes()).await.unwrap().unwrap();
    drop(app.client);
    tokio::time::timeout(limit, app.ended).await.unwrap().unwrap().unwrap();
}

#[test]
fn a_public_address_is_not_served_without_authentication() {
    let run = |address: &str, variables: &[(&str, &str)]| {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_axum-app"));
        let output = program.arg(address).envs(variables.iter().copied()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for said in [run("0.0.0.0:0", &[]), run("127.0.0.1:0", &[("FUNCTIONS_CUSTOMHANDLER_PORT", "8080")])] {
        assert!(said.contains("Settings::auth") && said.contains("open_to_all"), "{said}");
    }
}
