//! The program: the session of the specification, keys and tokens, every way to host it.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod container;
mod functions_host;
mod issuer;
mod program;
mod recipe;

use std::io::Write as _;
use std::process::{Command, Stdio};

use program::{Answer, Orders};
use serde_json::{Value, json};

const JSON: &str = "Content-Type: application/json\r\n";

/// The default headers of curl.
const CURL: &str = "User-Agent: curl/8.5.0\r\nAccept: */*\r\n";

/// "Manual Testing with curl", request by request. `None` sends the placeholder as written.
fn manual_session(orders: &Orders, session: Option<&str>) {
    let opened = orders.post(
        &format!("{CURL}{JSON}"),
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1.0"}}}"#,
    );
    assert_eq!(opened.status, 200);
    assert_eq!(opened.header("content-type"), Some("application/json"));
    assert_eq!(opened.json()["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(opened.json()["result"]["serverInfo"]["name"], "POS Server");
    let given = opened.header("mcp-session-id").expect("a session id").to_owned();
    assert!(given.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{given}");
    let id = session.unwrap_or(&given);

    let send = |headers: &str, body: &str| -> Value {
        let headers = format!("{CURL}{JSON}Mcp-Session-Id: {id}\r\n{headers}");
        let answer = orders.post(&headers, body);
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
        answer.json()["result"].clone()
    };
    let tools = send("", r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["get_order", "create_order", "cancel_order", "get_time"]);

    let called = send(
        "Authorization: Bearer <token>\r\n",
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_order","arguments":{"orderId":"123"}}}"#,
    );
    let order = order_in(&called);
    assert_eq!((&order["id"], &order["total"]), (&json!("123"), &json!(18.5)));

    let listed = send("", r#"{"jsonrpc":"2.0","id":4,"method":"resources/list"}"#);
    let appetizers = json!({
        "uri": "menu://categories/appetizers", "name": "Appetizers", "description": "Menu items in Appetizers",
        "mimeType": "application/json"
    });
    assert!(listed["resources"].as_array().unwrap().contains(&appetizers), "{listed}");

    let read = send(
        "",
        r#"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"menu://categories/appetizers"}}"#,
    );
    let contents = &read["contents"][0];
    assert_eq!(contents["uri"], "menu://categories/appetizers");
    assert_eq!(contents["mimeType"], "application/json");
    let items: Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
    assert_eq!(items[0]["id"], "soup");
}

/// Returns the order in the text of a result. A request without a revision is of 2025-03-26, which has
/// no structured content.
fn order_in(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("an order")
}

#[test]
fn the_session_of_the_specification_works_as_written() {
    let orders = Orders::start(&["--port", "0"]);
    manual_session(&orders, None);
    manual_session(&orders, Some("<session-id-from-init>"));
}

#[test]
fn the_session_works_as_a_custom_handler() {
    let port = program::free_port().to_string();
    let orders = Orders::start_with(&[], |command| {
        command.env("FUNCTIONS_CUSTOMHANDLER_PORT", &port).env("BINDPOST_OPEN_TO_ALL", "true");
    });
    assert!(orders.address.ends_with(&format!(":{port}")), "{}", orders.address);
    manual_session(&orders, None);
    manual_session(&orders, Some("<session-id>"));
    // The host polls until there is any response.
    assert_eq!(orders.request("GET", "/", "", "").status, 404);
    // GET of the endpoint is answered as the specification requires.
    let answer = orders.request("GET", "/mcp", "Accept: text/event-stream\r\n", "");
    assert_eq!(answer.status, 405);
    assert!(answer.header("allow").unwrap().starts_with("POST"));
}

/// Returns the error of the program when it does not start.
#[track_caller]
fn refusal(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_orders"))
        .args(arguments)
        .envs(variables.iter().copied())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = std::time::Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > std::time::Duration::from_secs(30) {
            let _ = child.kill();
            panic!("it started with {arguments:?} {variables:?}");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert!(!status.success());
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    said
}

/// The recipe without authentication is in `recipe.rs`.
#[test]
fn a_public_server_does_not_start_without_authentication() {
    let port = program::free_port().to_string();
    let handler = ("FUNCTIONS_CUSTOMHANDLER_PORT", port.as_str());
    let name = ("WEBSITE_HOSTNAME", "orders.azurewebsites.net");
    let local: Value =
        serde_json::from_str(include_str!("../../deploy/profile/local.settings.json")).unwrap();
    let mut locally: Vec<(&str, &str)> = local["Values"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (&**name, value.as_str().unwrap()))
        .collect();
    locally.extend([handler, ("WEBSITE_HOSTNAME", "localhost:7071")]);
    for (arguments, variables) in [
        (&[][..], &[handler][..]),
        (&[], &locally),
        (&["--port", "0"], &[name]),
        (&["--port", "0", "--allow-host", "orders.example.com"], &[]),
        (&["--port", "0", "--allow-host", "*"], &[]),
        (&["--port", "0"], &[("BINDPOST_ALLOWED_HOSTS", "orders.example.com")]),
    ] {
        let said = refusal(arguments, variables);
        let parts = ["without authentication", "fix:", "`auth`", "`open_to_all`"];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn platform_identity_is_rejected_where_platform_authentication_is_off() {
    let said =
        refusal(&["--port", "0", "--platform-identity"], &[("WEBSITE_HOSTNAME", "orders.azurewebsites.net")]);
    assert!(said.contains("WEBSITE_AUTH_ENABLED") && said.contains("fix:"), "{said}");
}

#[test]
fn an_invalid_port_of_the_host_is_explained() {
    let output = Command::new(env!("CARGO_BIN_EXE_orders"))
        .env("FUNCTIONS_CUSTOMHANDLER_PORT", "many")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("FUNCTIONS_CUSTOMHANDLER_PORT") && said.contains("many"), "{said}");
}

#[test]
fn the_definitions_are_those_of_the_specification() {
    let orders = Orders::start(&["--port", "0"]);
    let tools = orders.call_method("tools/list", json!({}), "").json();
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let get_order = &tools[0];
    assert_eq!(get_order["description"], "Retrieves order details");
    assert_eq!(
        get_order["inputSchema"],
        json!({
            "type": "object",
            "properties": {"orderId": {"type": "string", "description": "Order ID"}},
            "required": ["orderId"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        get_order["annotations"],
        json!({
            "title": "Get Order", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
            "openWorldHint": true
        })
    );
    let create_order: Value = serde_json::from_str(include_str!("create_order_schema.json")).unwrap();
    assert_eq!(tools[1]["inputSchema"], create_order);
    assert_eq!(tools[2]["annotations"]["destructiveHint"], true);
}

#[test]
fn configured_keys_are_required() {
    let keys = program::file("keys", "till = till-secret orders.write\nguest = guest-secret\n");
    let orders = Orders::start(&["--port", "0", "--keys", keys.to_str().unwrap()]);
    let get = |headers: &str| orders.call_tool("get_order", json!({"orderId": "123"}), headers);
    let refused = get("");
    assert_eq!(refused.status, 401);
    assert_eq!(refused.json()["error"]["code"], -32001);
    assert!(refused.header("www-authenticate").is_some());
    assert_eq!(get("X-API-Key: wrong\r\n").status, 401);
    assert_eq!(get("X-API-Key: till-secret\r\n").json()["result"]["structuredContent"]["id"], "123");
    // The time and a new session need no key.
    assert_eq!(orders.call_tool("get_time", json!({}), "").status, 200);
    assert_eq!(orders.call_method("ping", json!({}), "").status, 200);
    // Resources that are listed dynamically contain data, so they need a key.
    let list = |headers: &str| orders.call_method("resources/list", json!({}), headers).body;
    assert!(list("").contains("config://settings") && !list("").contains("menu://"), "{}", list(""));
    assert!(list("X-API-Key: guest-secret\r\n").contains("menu://categories/drinks"));
    // A key without the scope cannot cancel.
    let cancel = |headers: &str| orders.call_tool("cancel_order", json!({"orderId": "123"}), headers);
    let refused = cancel("X-API-Key: guest-secret\r\n");
    assert_eq!(refused.status, 403);
    assert!(refused.header("www-authenticate").unwrap().contains("orders.write"));
    assert_eq!(cancel("X-API-Key: till-secret\r\n").status, 200);
}

#[test]
fn a_configured_issuer_requires_tokens() {
    // The issuer is unreachable. It is needed neither for the start nor for a rejection.
    let issuer = format!("http://127.0.0.1:{}", program::free_port());
    let orders = Orders::start(&["--port", "0", "--issuer", &issuer, "--audience", "api://orders"]);
    let refused = orders.call_tool("get_order", json!({"orderId": "123"}), "");
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.contains("/.well-known/oauth-protected-resource"), "{challenge}");
    let metadata = orders.request("GET", "/.well-known/oauth-protected-resource/mcp", "", "");
    assert_eq!(metadata.json()["authorization_servers"], json!([issuer]));
    assert_eq!(metadata.json()["resource"], format!("http://{}/mcp", orders.address));
}

#[test]
fn variables_set_options_without_a_flag() {
    let orders = Orders::start_with(&["--port", "0"], |command| {
        command.env("BINDPOST_AUTH__API_KEYS", "till = till-secret").env("BINDPOST_PATH", "/pos");
    });
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "get_order", "arguments": {"orderId": "123"}}});
    assert_eq!(orders.request("POST", "/pos", JSON, &call.to_string()).status, 401);
    let known = format!("{JSON}X-API-Key: till-secret\r\n");
    assert_eq!(orders.request("POST", "/pos", &known, &call.to_string()).status, 200);

    let output =
        Command::new(env!("CARGO_BIN_EXE_orders")).env("BINDPOST_ALOWED_ORIGINS", "x").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("BINDPOST_ALLOWED_ORIGINS"), "{said}");
}

#[test]
fn a_server_without_authentication_serves_loopback_only() {
    let output = Command::new(env!("CARGO_BIN_EXE_orders"))
        .args(["--host", "0.0.0.0", "--port", "0"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("can be reached from other machines"), "{said}");
}

#[test]
fn a_client_can_start_it_over_stdio() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_orders"))
        .arg("--stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "get_order", "arguments": {"orderId": "124"}}});
    writeln!(child.stdin.take().unwrap(), "{call}").unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["status"], "delivered");
}

#[test]
fn the_call_in_the_readme_works() {
    let readme = include_str!("../../README.md");
    let (_, call) = readme.split_once("$ curl").unwrap();
    let body = call.split('\'').nth(1).unwrap();
    let orders = Orders::start(&["--port", "0"]);
    let answer: Answer = orders.post(&format!("{CURL}{JSON}"), body);
    assert_eq!(order_in(&answer.json()["result"])["id"], "123");
}
