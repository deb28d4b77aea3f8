//! The order of checks: the protocol mode (legacy up to 2025-11-25, modern from 2026-07-28),
//! validation, the headers that repeat the body, CORS, paths and methods.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use bindpost_mcp_http::{SessionMode, Settings};
use bindpost_mcp_protocol::Revision;
use bindpost_mcp_server::Server;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};

use crate::client::{Ask, LATEST, MODERN, TestServer, within};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

async fn server() -> TestServer {
    TestServer::start(Settings::default()).await
}

fn list() -> Ask {
    Ask::modern("tools/list", json!({}))
}

fn echo() -> Ask {
    Ask::modern_call("echo", json!({}))
}

fn meta(ask: Ask, change: impl FnOnce(&mut Value)) -> Ask {
    ask.edit(|message| change(&mut message["params"]["_meta"]))
}

fn is_modern(result: &Value) -> bool {
    result["resultType"] == "complete"
}

// The protocol mode.

#[tokio::test]
async fn a_request_with_an_envelope_is_modern() {
    let result = server().await.send(&list()).await.result();
    assert!(is_modern(&result) && result["ttlMs"].is_u64() && result["cacheScope"].is_string(), "{result}");
}

#[tokio::test]
async fn a_modern_version_header_without_an_envelope_is_an_invalid_modern_request() {
    let server = server().await;
    for version in [MODERN, "2027-01-01", "1999-01-01", "nonsense"] {
        let body = r#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#;
        let ask = Ask::post(body).header("mcp-protocol-version", version).header("mcp-method", "tools/list");
        let message = server.send(&ask).await.refused(400, -32602);
        assert_eq!(message["id"], "x", "{version}");
        if version != MODERN {
            names_all_versions(&message, version);
        }
    }
}

/// Checks that an error names the requested version and those that the server supports.
fn names_all_versions(message: &Value, requested: &str) {
    let all = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST, MODERN];
    let text = message["error"]["message"].as_str().unwrap();
    assert!(text.ends_with(&format!("{requested:?}; supported: {}", all.join(", "))), "{text}");
    assert_eq!(message["error"]["data"], json!({"supported": all, "requested": requested}));
}

#[tokio::test]
async fn initialize_is_legacy_with_any_version_header() {
    let server = server().await;
    for version in [MODERN, "2025-03-26", "1999-01-01", "nonsense"] {
        let reply = server.send(&Ask::initialize(LATEST).header("mcp-protocol-version", version)).await;
        assert_eq!(reply.result()["protocolVersion"], LATEST, "{version}");
        assert!(reply.header("mcp-session-id").is_some(), "{version}");
    }
}

#[tokio::test]
async fn legacy_methods_with_an_envelope_are_unknown() {
    let server = server().await;
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        assert_eq!(server.send(&Ask::modern(method, json!({}))).await.refused(404, -32601)["id"], 1);
    }
}

#[tokio::test]
async fn a_request_in_a_session_without_an_envelope_is_legacy() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for ask in [
        session.request(1, "tools/list", json!({})),
        session.request(1, "tools/list", json!({})).without("mcp-protocol-version"),
        session.request(1, "tools/list", json!({})).with("mcp-protocol-version", "2025-06-18"),
        session.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
    ] {
        let result = server.send(&ask).await.result();
        assert!(!is_modern(&result) && result.get("ttlMs").is_none() && result.get("_meta").is_none());
    }
    assert_eq!(server.send(&session.ping()).await.result(), json!({}));
    server.send(&session.request(1, "server/nonsense", json!({}))).await.refused(200, -32601);
}

#[tokio::test]
async fn without_sessions_a_legacy_request_is_served_without_a_session() {
    let settings = Settings { sessions: SessionMode::Off, ..Settings::default() };
    let server = TestServer::start(settings).await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for version in [None, Some("2025-03-26"), Some("2025-06-18"), Some(LATEST)] {
        let ask = Ask::post(body);
        let ask = version.map_or(ask.clone(), |version| ask.header("mcp-protocol-version", version));
        assert!(!is_modern(&server.send(&ask).await.result()), "{version:?}");
    }
}

#[tokio::test]
async fn a_modern_request_ignores_its_session_id() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for id in [session.id.as_str(), "AAAAAAAAAAAAAAAAAAAAAA", "nonsense"] {
        let reply = server.send(&list().header("mcp-session-id", id).header("last-event-id", "1::1")).await;
        assert!(is_modern(&reply.result()), "{id}");
        assert_eq!(reply.header("mcp-session-id"), None);
    }
}

#[tokio::test]
async fn initialize_may_follow_discover_on_the_same_connection() {
    let server = server().await;
    let mut client = server.connect().await;
    assert!(is_modern(&client.send(&Ask::modern("server/discover", json!({}))).await.result()));
    assert_eq!(client.send(&Ask::initialize(LATEST)).await.result()["protocolVersion"], LATEST);
}

#[tokio::test]
async fn an_unsupported_version_header_in_a_session_is_400() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for version in ["1999-01-01", "2027-01-01", "nonsense", ""] {
        let notice = session.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let batch = session.post(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#);
        for ask in [session.ping(), session.get(), session.delete(), notice, batch] {
            let ask = ask.with("mcp-protocol-version", version);
            names_all_versions(&server.send(&ask).await.refused(400, -32600), version);
        }
    }
    server.send(&session.ping()).await.result();
}

#[tokio::test]
async fn an_unsupported_version_header_without_sessions_is_400() {
    let settings = Settings { sessions: SessionMode::Off, ..Settings::default() };
    let server = TestServer::start(settings).await;
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#,
    ] {
        // The session id makes it a legacy request, which the header alone would not be.
        let ask = Ask::post(body).header("mcp-session-id", "x").header("mcp-protocol-version", "1999-01-01");
        names_all_versions(&server.send(&ask).await.refused(400, -32600), "1999-01-01");
    }
}

#[tokio::test]
async fn a_version_that_the_server_does_not_support_is_400() {
    let only = |revision| Server::builder("narrow", "1").revisions([revision]).build().unwrap();
    let server = TestServer::of(only(Revision::V2026_07_28), Settings::default()).await;
    let message = server.send(&Ask::initialize(LATEST)).await.refused(400, -32022);
    assert_eq!(message["error"]["data"], json!({"supported": [MODERN], "requested": LATEST}));

    let server = TestServer::of(only(Revision::V2025_11_25), Settings::default()).await;
    for version in [MODERN, "2099-01-01"] {
        let ask = meta(list(), |meta| meta[VERSION] = json!(version)).with("mcp-protocol-version", version);
        let message = server.send(&ask).await.refused(400, -32022);
        assert_eq!(message["error"]["data"], json!({"supported": [LATEST], "requested": version}));
        let text = message["error"]["message"].as_str().unwrap();
        assert_eq!(text, format!("unsupported protocol version: {version}; supported: {LATEST}"));
    }
}

// The validation steps in order. Each request breaks two rules. The error of the earlier step is reported.

#[tokio::test]
async fn step_1_host_and_origin_come_first() {
    let server = server().await;
    for ask in [
        list().with("host", "evil.example.com"),
        list().header("origin", "null"),
        Ask::new("PUT", "/mcp").header("origin", "https://evil.example.com"),
        Ask::new("GET", "/nothing").header("origin", "https://evil.example.com"),
        Ask::post("{").with("content-type", "text/plain").header("origin", "https://evil.example.com"),
    ] {
        server.send(&ask).await.refused(403, -32600);
    }
}

#[tokio::test]
async fn step_2_the_method_comes_before_the_body() {
    let server = server().await;
    let ask = Ask::new("PUT", "/mcp").header("content-type", "text/plain").body("{");
    server.send(&ask).await.refused(405, -32600);
}

#[tokio::test]
async fn step_4_the_content_type_comes_before_the_body() {
    let server = server().await;
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
        server.send(&Ask::post("{").with("content-type", content_type)).await.refused(415, -32600);
    }
    server.send(&Ask::post("{").without("content-type")).await.refused(415, -32600);
    for content_type in ["Application/JSON; charset=utf-8", "application/json;charset=UTF-8"] {
        server.send(&list().with("content-type", content_type)).await.result();
    }
}

#[tokio::test]
async fn step_5_the_body_comes_before_the_protocol_mode() {
    let server = server().await;
    server.send(&Ask::post("{").header("mcp-protocol-version", "nonsense")).await.refused(400, -32700);
    for id in [json!(null), json!(1.5), json!(true), json!([1]), json!({})] {
        let ask = list().without("mcp-method").edit(|message| message["id"] = id.clone());
        let message = server.send(&ask).await.refused(400, -32600);
        assert!(message.get("id").is_none(), "{message}");
    }
    // The id is readable, so it is echoed.
    let ask = list().edit(|message| message["method"] = json!(7));
    assert_eq!(server.send(&ask).await.refused(400, -32600)["id"], 1);
}

#[tokio::test]
async fn step_7_the_version_header_comes_before_the_envelope() {
    let server = server().await;
    let broken = || meta(list(), |meta| drop(meta.as_object_mut().unwrap().remove(CAPABILITIES)));
    for ask in [
        broken().without("mcp-protocol-version"),
        broken().with("mcp-protocol-version", LATEST),
        broken().with("mcp-protocol-version", "nonsense"),
        list().without("mcp-protocol-version"),
        list().with("mcp-protocol-version", LATEST),
        list().with("mcp-protocol-version", "2026-07-28x"),
        list().header("mcp-protocol-version", MODERN),
        list().header("mcp-protocol-version", LATEST),
    ] {
        assert_eq!(server.send(&ask).await.refused(400, -32020)["id"], 1);
    }
}

#[tokio::test]
async fn step_8_the_envelope_comes_before_the_version() {
    let server = server().await;
    let unsupported = || {
        let ask = meta(list(), |meta| meta[VERSION] = json!("2027-01-01"));
        ask.with("mcp-protocol-version", "2027-01-01")
    };
    for ask in [
        meta(unsupported(), |meta| drop(meta.as_object_mut().unwrap().remove(CAPABILITIES))),
        meta(unsupported(), |meta| meta[CAPABILITIES] = json!([])),
        meta(unsupported(), |meta| meta[CAPABILITIES] = json!(null)),
        meta(list(), |meta| meta[VERSION] = json!(20260728)),
        meta(list(), |meta| meta[VERSION] = json!(null)),
    ] {
        assert_eq!(server.send(&ask).await.refused(400, -32602)["id"], 1);
    }
    // The client info is optional.
    server
        .send(&meta(list(), |meta| meta[CLIENT_INFO] = json!({"name": "x", "version": "1"})))
        .await
        .result();
}

#[tokio::test]
async fn step_9_the_version_comes_before_the_method() {
    let server = server().await;
    let discovered = server.send(&Ask::modern("server/discover", json!({}))).await.result();
    for version in ["2027-01-01", LATEST, "2024-11-05", "nonsense"] {
        let ask = meta(list(), |meta| meta[VERSION] = json!(version));
        let ask = ask.with("mcp-protocol-version", version).without("mcp-method");
        let message = server.send(&ask).await.refused(400, -32022);
        assert_eq!(message["id"], 1);
        assert_eq!(message["error"]["data"]["requested"], version);
        assert_eq!(message["error"]["data"]["supported"], discovered["supportedVersions"]);
    }
}

#[tokio::test]
async fn step_10_the_repeating_headers_come_before_the_method() {
    let server = server().await;
    let unknown = || Ask::modern("no/such", json!({}));
    for ask in [
        unknown().without("mcp-method"),
        unknown().with("mcp-method", "tools/list"),
        list().without("mcp-method"),
        list().with("mcp-method", "Tools/List"),
        list().with("mcp-method", ""),
        list().header("mcp-method", "tools/list"),
        echo().without("mcp-name"),
        echo().with("mcp-name", "Echo"),
        echo().with("mcp-name", ""),
        echo().header("mcp-name", "echo"),
        echo().header("mcp-name", "other"),
        Ask::modern("prompts/get", json!({"name": "greet"})).without("mcp-name"),
        Ask::modern("resources/read", json!({"uri": "test://one"})).without("mcp-name"),
        Ask::modern("resources/read", json!({"uri": "test://one"})).with("mcp-name", "test://two"),
        Ask::modern("tasks/get", json!({"taskId": "x"})).without("mcp-name"),
        Ask::modern("tasks/update", json!({"taskId": "x"})).without("mcp-name"),
        Ask::modern("tasks/cancel", json!({"taskId": "x"})).with("mcp-name", "y"),
    ] {
        assert_eq!(server.send(&ask).await.refused(400, -32020)["id"], 1);
    }
}

#[tokio::test]
async fn step_11_an_unknown_method_is_404_before_capabilities_and_parameters() {
    let server = server().await;
    for method in ["no/such", "tools/Call", "tasks/list", "tasks/result", "", "roots/list"] {
        assert_eq!(
            server.send(&Ask::modern(method, json!({"cursor": 7}))).await.refused(404, -32601)["id"],
            1
        );
    }
}

#[tokio::test]
async fn step_12_a_missing_capability_comes_before_the_parameters() {
    let server = server().await;
    let message =
        server.send(&Ask::modern("tasks/get", json!({"taskId": "no such"}))).await.refused(400, -32021);
    assert!(message["error"]["data"]["requiredCapabilities"].is_object(), "{message}");
    // A missing capability that only the handler finds is 400 too.
    let message = server.send(&Ask::modern_call("ask_model", json!({}))).await.refused(400, -32021);
    assert_eq!(message["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}));
    let message = server.send(&Ask::modern_call("ask_name", json!({}))).await.refused(400, -32021);
    assert_eq!(message["error"]["data"]["requiredCapabilities"], json!({"elicitation": {}}));
}

#[tokio::test]
async fn step_13_invalid_parameters_are_json_rpc_errors_with_status_200() {
    let server = server().await;
    for (method, params) in [
        ("tools/call", json!({"name": "no such", "arguments": {"region": "x"}})),
        ("tools/call", json!({"name": "echo", "arguments": []})),
        ("tools/call", json!({"name": "echo", "arguments": "x"})),
        ("prompts/get", json!({"name": "no such"})),
        ("resources/read", json!({"uri": "test://no-such"})),
        ("tools/list", json!({"cursor": "no such"})),
        ("subscriptions/listen", json!({})),
        ("subscriptions/listen", json!({"notifications": 7})),
    ] {
        let message = server.send(&Ask::modern(method, params.clone())).await.refused(200, -32602);
        assert_eq!(message["id"], 1);
        if method == "resources/read" {
            assert_eq!(message["error"]["data"]["uri"], params["uri"]);
        }
    }
    for (method, params) in [("tools/call", json!({"name": 7})), ("prompts/get", json!({}))] {
        let ask = Ask::modern(method, params).with("mcp-name", "7");
        server.send(&ask).await.refused(200, -32602);
    }
}

#[tokio::test]
async fn parameters_must_be_an_object() {
    let server = server().await;
    // serde would deserialize a struct from an array too.
    let ask = Ask::modern("subscriptions/listen", json!({"notifications": []}));
    server.send(&ask).await.refused(200, -32602);
    let ask = Ask::initialize(LATEST).edit(|message| message["params"]["clientInfo"] = json!(["x", "1"]));
    server.send(&ask).await.refused(200, -32602);
}

#[tokio::test]
async fn step_14_argument_headers_come_before_the_schema() {
    let server = server().await;
    // 7 is not a string, but the missing header is reported first.
    let ask = Ask::modern_call("region", json!({"region": 7}));
    assert_eq!(server.send(&ask).await.refused(400, -32020)["id"], 1);
}

#[tokio::test]
async fn step_15_arguments_against_the_schema_are_the_tools_own_error() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for arguments in [json!({}), json!({"text": 7}), json!({"text": null})] {
        for ask in [Ask::modern_call("typed", arguments.clone()), session.call(1, "typed", arguments)] {
            let result = server.send(&ask).await.result();
            assert_eq!(result["isError"], true);
            assert!(result["content"][0]["text"].as_str().unwrap().contains("text"), "{result}");
        }
    }
}

#[tokio::test]
async fn an_unknown_resource_has_the_error_code_of_the_revision() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let params = json!({"uri": "test://no-such"});
    server.send(&session.request(1, "resources/read", params.clone())).await.refused(200, -32002);
    server.send(&Ask::modern("resources/read", params)).await.refused(200, -32602);
}

#[tokio::test]
async fn ids_come_back_with_type_and_value() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for id in [json!(0), json!(-1), json!(""), json!("0"), json!("é\n"), json!(9_007_199_254_740_993_i64)] {
        let ask = list().edit(|message| message["id"] = id.clone());
        assert_eq!(server.send(&ask).await.json()["id"], id);
        assert_eq!(server.send(&session.request(id.clone(), "ping", json!({}))).await.json()["id"], id);
    }
}

#[tokio::test]
async fn a_panic_in_a_handler_ends_only_its_call() {
    let server = server().await;
    let session = server.session(LATEST).await;
    server.send(&Ask::modern_call("panic", json!({}))).await.refused(200, -32603);
    server.send(&session.call(1, "panic", json!({}))).await.refused(200, -32603);
    server.is_well().await;
}

// Headers that repeat the body.

#[tokio::test]
async fn header_names_are_case_insensitive_and_values_are_not() {
    let server = server().await;
    let ask = echo().without("mcp-method").without("mcp-name").without("mcp-protocol-version");
    let ask = ask.header("MCP-PROTOCOL-VERSION", MODERN).header("Mcp-Method", "tools/call");
    server.send(&ask.clone().header("MCP-Name", "echo")).await.result();
    server.send(&ask.header("MCP-Name", "ECHO")).await.refused(400, -32020);
}

#[tokio::test]
async fn a_name_may_be_padded_or_in_base64() {
    let server = server().await;
    for name in ["  echo  ", "\techo\t", "=?base64?ZWNobw==?=", " =?base64?ZWNobw==?= "] {
        server.send(&echo().with("mcp-name", name)).await.result();
    }
    for name in [
        "=?base64?ZWNobw?=",
        "=?base64?ZWNobw=?=",
        "=?base64?ZWNo bw==?=",
        "=?base64?Z$Nobw==?=",
        "=?base64?/w==?=",
        "=?base64?b3RoZXI=?=",
        "=?BASE64?ZWNobw==?=",
        "=?base64?ZWNobw==",
        "ZWNobw==?=",
        "=?base64??=",
        "\u{e9}cho",
    ] {
        assert_eq!(server.send(&echo().with("mcp-name", name)).await.refused(400, -32020)["id"], 1, "{name}");
    }
    // A name that is not ASCII must be in base64.
    let ask =
        Ask::modern("tools/call", json!({"name": "héllo x"})).with("mcp-name", "=?base64?aMOpbGxvIHg=?=");
    server.send(&ask).await.refused(200, -32602);
}

#[tokio::test]
async fn argument_headers_must_match_the_arguments() {
    let server = server().await;
    let region = |arguments: Value| Ask::modern_call("region", arguments);
    for (arguments, headers) in [
        (json!({}), vec![]),
        (json!({"region": null}), vec![]),
        (json!({"region": "eu"}), vec![("Mcp-Param-Region", "eu")]),
        (json!({"region": "eu"}), vec![("mcp-param-region", "  eu ")]),
        (json!({"region": "eu"}), vec![("Mcp-Param-Region", "=?base64?ZXU=?=")]),
        (json!({"region": "é"}), vec![("Mcp-Param-Region", "=?base64?w6k=?=")]),
        (json!({"region": ""}), vec![("Mcp-Param-Region", "=?base64??=")]),
        (json!({"region": " eu"}), vec![("Mcp-Param-Region", "=?base64?IGV1?=")]),
        (json!({"count": 42}), vec![("Mcp-Param-Count", "42")]),
        (json!({"count": 42}), vec![("Mcp-Param-Count", "42.0")]),
        (json!({"count": 42.0}), vec![("Mcp-Param-Count", "42")]),
        (json!({"count": -7}), vec![("Mcp-Param-Count", "-7")]),
        (json!({"dry": true}), vec![("Mcp-Param-Dry", "true")]),
        (json!({"dry": false}), vec![("Mcp-Param-Dry", "false")]),
        (json!({"region": "eu"}), vec![("Mcp-Param-Region", "eu"), ("Mcp-Param-Other", "x")]),
    ] {
        let ask =
            headers.iter().fold(region(arguments.clone()), |ask, (name, value)| ask.header(name, value));
        let reply = server.send(&ask).await;
        let result = reply.result();
        let fits =
            result["isError"] != true || arguments["region"].is_null() && arguments.get("region").is_some();
        assert!(fits, "{arguments} {headers:?}: {result}");
    }
    for (arguments, headers) in [
        (json!({"region": "eu"}), vec![]),
        (json!({"region": "eu"}), vec![("Mcp-Param-Region", "us")]),
        (json!({"region": "eu"}), vec![("Mcp-Param-Region", "EU")]),
        (json!({"region": "eu"}), vec![("Mcp-Param-Region", "=?base64?ZXU?=")]),
        (json!({"region": "eu"}), vec![("Mcp-Param-Region", "=?base64?dXM=?=")]),
        (json!({"region": "eu", "count": 1}), vec![("Mcp-Param-Region", "eu")]),
        (json!({"count": 42}), vec![("Mcp-Param-Count", "43")]),
        (json!({"count": 42}), vec![("Mcp-Param-Count", "forty-two")]),
        (json!({"dry": true}), vec![("Mcp-Param-Dry", "True")]),
        (json!({"dry": true}), vec![("Mcp-Param-Dry", "1")]),
    ] {
        let ask =
            headers.iter().fold(region(arguments.clone()), |ask, (name, value)| ask.header(name, value));
        assert_eq!(server.send(&ask).await.refused(400, -32020)["id"], 1, "{arguments} {headers:?}");
    }
}

#[tokio::test]
async fn rejects_a_repeated_argument_header() {
    let server = server().await;
    let ask = Ask::modern_call("region", json!({"region": "eu"})).header("mcp-param-region", "eu");
    server.send(&ask.header("mcp-param-region", "us")).await.refused(400, -32020);
}

#[tokio::test]
async fn integers_in_headers_are_compared_exactly() {
    let server = server().await;
    // Two integers that are equal as floating-point numbers.
    let ask = Ask::modern_call("region", json!({"count": 9_007_199_254_740_993_i64}));
    server.send(&ask.header("mcp-param-count", "9007199254740992")).await.refused(400, -32020);
}

#[tokio::test]
async fn sessions_need_no_argument_headers() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let text = server.send(&session.call(1, "region", json!({"region": "eu"}))).await.tool_text();
    assert_eq!(text, r#"{"region":"eu"}"#);
}

// CORS, Host and Origin.

async fn cors_server() -> TestServer {
    let allowed_origins = vec!["https://app.example.com".to_owned()];
    TestServer::start(Settings { allowed_origins, ..Settings::default() }).await
}

#[tokio::test]
async fn a_listed_origin_gets_cors_headers_on_every_answer() {
    let server = cors_server().await;
    let session = server.session(LATEST).await;
    for ask in [
        list(),
        Ask::initialize(LATEST),
        Ask::post("{"),
        session.ping(),
        session.notify("notifications/initialized", json!({})),
        session.delete(),
        session.ping(),
        Ask::new("PUT", "/mcp"),
        Ask::new("GET", "/nothing"),
    ] {
        let reply = server.send(&ask.header("origin", "https://app.example.com")).await;
        assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example.com"));
        let exposed = reply.header("access-control-expose-headers").unwrap().to_ascii_lowercase();
        assert!(exposed.contains("mcp-session-id") && exposed.contains("www-authenticate"), "{exposed}");
        assert!(reply.header("vary").unwrap().eq_ignore_ascii_case("origin"));
        assert_eq!(reply.header("access-control-allow-credentials"), None);
    }
}

#[tokio::test]
async fn a_preflight_names_the_headers_of_the_protocol_and_the_arguments_asked_for() {
    let server = cors_server().await;
    let ask = Ask::new("OPTIONS", "/mcp")
        .header("origin", "https://app.example.com")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type,mcp-param-region, Mcp-Param-Count,x-evil");
    let reply = server.send(&ask).await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example.com"));
    let methods = reply.header("access-control-allow-methods").unwrap();
    for method in ["GET", "POST", "DELETE"] {
        assert!(methods.contains(method), "{methods}");
    }
    let allowed = reply.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
    let allowed: Vec<&str> = allowed.split(',').map(str::trim).collect();
    for name in [
        "content-type",
        "accept",
        "authorization",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-session-id",
        "last-event-id",
        "mcp-param-region",
        "mcp-param-count",
    ] {
        assert!(allowed.contains(&name), "{name} is not in {allowed:?}");
    }
    assert!(!allowed.contains(&"x-evil"), "{allowed:?}");
}

#[tokio::test]
async fn a_loopback_origin_is_accepted_without_cors_headers() {
    for server in [server().await, cors_server().await] {
        for origin in ["http://localhost:6274", "http://127.0.0.1", "https://localhost", "http://[::1]:80"] {
            let reply = server.send(&list().header("origin", origin)).await;
            reply.result();
            assert_eq!(reply.header("access-control-allow-origin"), None, "{origin}");
        }
    }
}

#[tokio::test]
async fn rejects_null_and_foreign_origins_for_every_request() {
    let server = cors_server().await;
    let session = server.session(LATEST).await;
    for origin in [
        "null",
        "http://evil.example.com",
        "http://app.example.com",
        "https://app.example.com.evil.com",
        "https://app.example.com:8443",
        "http://localhost.evil.com",
        "http://localhost:80.evil.com",
        "file://",
        "",
    ] {
        for ask in
            [list(), session.get(), session.delete(), Ask::new("OPTIONS", "/mcp"), Ask::new("GET", "/sse")]
        {
            let reply = server.send(&ask.header("origin", origin)).await;
            reply.refused(403, -32600);
            assert_eq!(reply.header("access-control-allow-origin"), None, "{origin}");
        }
    }
    server.send(&session.ping()).await.result();
}

#[tokio::test]
async fn rejects_a_repeated_header() {
    let server = server().await;
    let session = server.session(LATEST).await;
    // A proxy in front of the server may have checked the other value.
    for (what, ask) in [
        ("host", list().header("host", "evil.example.com")),
        ("origin", list().header("origin", "http://localhost").header("origin", "http://evil.example.com")),
        ("content-type", list().header("content-type", "text/plain")),
        ("encoding", list().header("content-encoding", "identity").header("content-encoding", "gzip")),
        ("session", session.ping().header("mcp-session-id", "AAAAAAAAAAAAAAAAAAAAAA")),
    ] {
        let status = server.send(&ask).await.status;
        assert!((400..500).contains(&status), "two of {what}: {status}");
    }
}

#[tokio::test]
async fn the_host_of_an_absolute_uri_is_checked() {
    let server = server().await;
    server.send(&list().at("http://evil.example.com/mcp")).await.refused(403, -32600);
    server.send(&list().at("http://localhost:7071/mcp")).await.result();
    let mut client = server.connect().await;
    client.write(b"GET /mcp HTTP/1.0\r\n\r\n").await;
    client.reply(false).await.refused(403, -32600);
}

#[tokio::test]
async fn http2_requests_get_the_same_checks() {
    let server = server().await;
    let stream = TokioIo::new(server.connect().await.stream);
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream);
    let (mut client, connection) = within(handshake).await.unwrap();
    tokio::spawn(connection);
    let params = json!({"_meta": {VERSION: MODERN, CAPABILITIES: {}}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).to_string();
    for (host, status) in [("localhost", 200), ("evil.example.com", 403)] {
        let request = http::Request::post(format!("http://{host}/mcp"))
            .header("content-type", "application/json")
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", "tools/list")
            .body(Full::<bytes::Bytes>::from(body.clone()))
            .unwrap();
        let (head, body) = within(client.send_request(request)).await.unwrap().into_parts();
        assert_eq!(head.status, status);
        let message: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
    }
}

// Paths and methods.

#[tokio::test]
async fn the_path_works_with_and_without_a_slash_and_never_redirects() {
    let server = server().await;
    for path in ["/mcp", "/mcp/", "/mcp?x=y", "/mcp/?x=y"] {
        server.send(&list().at(path)).await.result();
        let opened = server.send(&Ask::initialize(LATEST).at(path)).await;
        assert!(opened.header("mcp-session-id").is_some());
    }
    for path in ["/mcp//", "/MCP", "/mcp/x", "/mcpx", "//mcp"] {
        server.send(&list().at(path)).await.refused(404, -32600);
    }
    let settings = Settings { path: "/a/b".to_owned(), ..Settings::default() };
    let server = TestServer::start(settings).await;
    server.send(&list().at("/a/b")).await.result();
    server.send(&list().at("/a/b/")).await.result();
    server.send(&list().at("/mcp")).await.refused(404, -32600);
    // Both spellings work for every spelling in the settings.
    for path in ["/a/", "a"] {
        let server = TestServer::start(Settings { path: path.to_owned(), ..Settings::default() }).await;
        server.send(&list().at("/a")).await.result();
        server.send(&list().at("/a/")).await.result();
    }
}

#[tokio::test]
async fn other_paths_are_404() {
    let server = server().await;
    for path in [
        "/",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/mcp",
        "/mcp/.well-known/openid-configuration",
        "/register",
        "/favicon.ico",
    ] {
        for method in ["GET", "POST"] {
            let ask = Ask::new(method, path).header("accept", "application/json, text/event-stream");
            let reply = server.send(&ask).await;
            reply.refused(404, -32600);
            assert!(reply.header("content-length").is_some(), "{path}");
        }
    }
}

#[tokio::test]
async fn a_method_that_is_not_allowed_is_405_with_the_allowed_ones() {
    let server = server().await;
    for (path, method, allow) in [
        ("/mcp", "PUT", "GET, POST, DELETE, OPTIONS"),
        ("/mcp/", "PATCH", "GET, POST, DELETE, OPTIONS"),
        ("/sse", "POST", "GET, OPTIONS"),
        ("/sse", "DELETE", "GET, OPTIONS"),
        ("/message", "GET", "POST, OPTIONS"),
    ] {
        let reply = server.send(&Ask::new(method, path)).await;
        reply.refused(405, -32600);
        assert_eq!(reply.header("allow"), Some(allow), "{method} {path}");
    }
}

#[tokio::test]
async fn head_is_answered_without_a_body_and_keeps_the_connection_open() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut client = server.connect().await;
    for (path, status) in [("/mcp", 405), ("/sse", 405), ("/nothing", 404)] {
        let ask = Ask::new("HEAD", path).header("mcp-session-id", &session.id);
        assert_eq!(client.send(&ask).await.status, status);
    }
    client.send(&session.ping()).await.result();
}

#[tokio::test]
async fn http_and_sse_can_be_off() {
    let server = TestServer::start(Settings { sse_paths: None, ..Settings::default() }).await;
    server.send(&Ask::new("GET", "/sse").header("accept", "text/event-stream")).await.refused(404, -32600);
    server.send(&list().at("/message?sessionId=x")).await.refused(404, -32600);
}
