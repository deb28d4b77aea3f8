//! Asynchronous completers.

use std::time::Duration;

use bindpost_mcp_server::testing::TestClient;
use bindpost_mcp_server::{PromptEntry, Server, State, TemplateEntry, ToolError};
use serde_json::{Value, json};

async fn slowly(typed: String) -> Result<Vec<String>, ToolError> {
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok((0..150).map(|number| format!("{typed}{number}")).collect())
}

fn server() -> Server {
    Server::builder("s", "1")
        .template(TemplateEntry::new("test://{name}", "t", async || "x").complete_with("name", slowly))
        .template(
            TemplateEntry::new("late://{name}", "t", async || "x")
                .timeout(Duration::from_millis(20))
                .complete_with("name", async |_| std::future::pending().await),
        )
        .prompt(
            PromptEntry::new("p", async || "x")
                .argument("good", "", false)
                .argument("bad", "", false)
                .complete_with("good", slowly)
                .complete_with("bad", async |_| Err(ToolError::new("out of order"))),
        )
        .build()
        .unwrap()
}

/// Returns the suggestions, which must be the same in a session and without one.
async fn suggested(reference: Value, argument: &str) -> Value {
    let server = server();
    let params = json!({"ref": reference, "argument": {"name": argument, "value": "a"}});
    let mut session = TestClient::connect(&server);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    session.request("initialize", hello).await.unwrap();
    session.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let with = session.request("completion/complete", params.clone()).await.unwrap();
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let without = TestClient::connect(&server).request("completion/complete", params).await.unwrap();
    assert_eq!(with["completion"], without["completion"]);
    with["completion"].clone()
}

#[tokio::test]
async fn the_state_of_a_completer_is_checked_at_start() {
    let prompt = || {
        PromptEntry::new("p", async || "x").argument("name", "", false).completer(
            "name",
            |typed: &str, State(known): State<Vec<&'static str>>| {
                known.into_iter().filter(|name| name.starts_with(typed)).collect::<Vec<_>>()
            },
        )
    };
    let missing = Server::builder("s", "1").prompt(prompt()).build().unwrap_err().to_string();
    assert!(missing.contains("needs State<alloc::vec::Vec<&str>>"), "{missing}");
    let server = Server::builder("s", "1").state(vec!["ada", "bob", "amy"]).prompt(prompt()).build().unwrap();
    let params = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "name", "value": "a"},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}});
    let completed = TestClient::connect(&server).request("completion/complete", params).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["ada", "amy"]));
}

#[tokio::test]
async fn a_completer_may_be_asynchronous() {
    for (reference, argument) in [
        (json!({"type": "ref/resource", "uri": "test://{name}"}), "name"),
        (json!({"type": "ref/prompt", "name": "p"}), "good"),
    ] {
        let completion = suggested(reference, argument).await;
        assert_eq!(completion["values"].as_array().unwrap().len(), 100);
        assert_eq!(completion["values"][7], "a7");
        assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(150), &json!(true)));
    }
}

#[tokio::test]
async fn a_completer_that_fails_or_times_out_suggests_nothing() {
    for (reference, argument) in [
        (json!({"type": "ref/resource", "uri": "late://{name}"}), "name"),
        (json!({"type": "ref/prompt", "name": "p"}), "bad"),
    ] {
        assert_eq!(suggested(reference, argument).await, json!({"values": []}));
    }
}
