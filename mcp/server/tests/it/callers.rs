//! States, tasks and listeners belong to their caller.

use bindpost_mcp_server::testing::TestClient;
use bindpost_mcp_server::{Caller, Server};
use serde_json::{Value, json};

use crate::fixture;

/// Sends a stateless request and returns the first message of the server.
async fn ask(server: &Server, caller: Caller, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":
            {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    // The states, not the access rules, are the subject.
    let mut client = TestClient::builder(server).caller(caller).without_auth().connect_lazily();
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()).await;
    serde_json::from_slice(&client.next().await.unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_state_is_valid_for_its_caller_only() {
    let server = fixture::server("");
    let call = json!({"name": "ask_name"});
    let asked = ask(&server, Caller::new("ada"), "tools/call", call).await;
    let retry = json!({"name": "ask_name", "requestState": asked["result"]["requestState"],
        "inputResponses": {"user_name": {"action": "accept", "content": {"name": "Ada"}}}});
    for other in [Caller::new("eve"), Caller::ANONYMOUS, Caller::new("")] {
        let refused = ask(&server, other, "tools/call", retry.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let answer = ask(&server, Caller::new("ada"), "tools/call", retry).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test(start_paused = true)]
async fn a_task_exists_for_its_caller_only() {
    let server = fixture::server("");
    let made = ask(&server, Caller::new("ada"), "tools/call", json!({"name": "job_forever"})).await;
    let task = json!({"taskId": made["result"]["taskId"], "inputResponses": {}});
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = ask(&server, Caller::new("eve"), method, task.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let found = ask(&server, Caller::new("ada"), "tasks/get", task).await;
    assert_eq!(found["result"]["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn a_listener_is_notified_of_its_own_callers_tasks_only() {
    let server = fixture::server("");
    let made = ask(&server, Caller::new("ada"), "tools/call", json!({"name": "job_forever"})).await;
    let wish = json!({"notifications": {"taskIds": [made["result"]["taskId"]]}});
    let heard = ask(&server, Caller::new("eve"), "subscriptions/listen", wish.clone()).await;
    assert_eq!(heard["params"]["notifications"], json!({}));
    let heard = ask(&server, Caller::new("ada"), "subscriptions/listen", wish.clone()).await;
    assert_eq!(heard["params"]["notifications"], wish["notifications"]);
}
