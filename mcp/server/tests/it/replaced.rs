//! Replacement of all entries at once.

use bindpost_mcp_server::testing::TestClient;
use bindpost_mcp_server::{Entry, PromptEntry, Server, ToolEntry};
use serde_json::{Value, json};

#[tokio::test]
async fn all_entries_can_be_replaced_at_once() {
    let tool = |name: &str| Entry::from(ToolEntry::new(name, async || "x"));
    let prompt = || Entry::from(PromptEntry::new("p", async || "x"));
    let server = Server::builder("s", "1").add(vec![tool("old"), prompt()]).build().unwrap();
    let mut client = TestClient::connect(&server);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    client.request("initialize", params).await.unwrap();
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;

    // A list that does not change is not announced. An invalid entry changes nothing.
    server.catalog().replace(vec![tool("old"), prompt()]).unwrap();
    let error = server.catalog().replace(vec![tool("new"), tool("new"), tool("no name")]).unwrap_err();
    assert_eq!(error.0.len(), 2, "{error}");
    assert_eq!(names(&mut client).await, ["old"]);

    server.catalog().replace(vec![tool("new"), prompt()]).unwrap();
    let announced: Value = serde_json::from_slice(client.next().await.unwrap().as_ref()).unwrap();
    assert_eq!(announced["method"], "notifications/tools/list_changed");
    assert_eq!(names(&mut client).await, ["new"]);
    client.call("old", json!({})).await.unwrap_err();
}

async fn names(client: &mut TestClient) -> Vec<String> {
    let listed = client.request("tools/list", json!({})).await.unwrap();
    let tools = listed["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}
