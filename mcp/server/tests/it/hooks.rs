//! Hooks around tool calls, resource reads and prompts.

use std::sync::{Arc, Mutex};

use bindpost_mcp_server::protocol::CallToolResult;
use bindpost_mcp_server::testing::TestClient;
use bindpost_mcp_server::{
    Caller, NextHandler, Operation, OperationResult, PromptEntry, ResourceEntry, Server, ServerBuilder,
    TemplateEntry, ToolEntry, ToolError,
};
use serde_json::json;

type HookLog = Arc<Mutex<Vec<String>>>;

/// Adds a hook that records its start and its end.
fn record(builder: ServerBuilder, log: &HookLog, label: &'static str) -> ServerBuilder {
    let log = log.clone();
    builder.around(move |operation: Operation, next: NextHandler| {
        let log = log.clone();
        async move {
            let caller = operation.caller().id().unwrap_or("anonymous").to_owned();
            let (kind, entry) = (operation.entry().kind(), operation.entry().name().to_owned());
            let line = format!("{label} {caller} {kind} {entry} {}", operation.name());
            log.lock().unwrap().push(format!("{line} starts"));
            let result = next.run(operation).await;
            log.lock().unwrap().push(format!("{label} {}", if result.is_ok() { "ok" } else { "error" }));
            result
        }
    })
}

fn builder() -> ServerBuilder {
    Server::builder("s", "1")
        .tool(ToolEntry::new("t", async || "tool"))
        .tool(ToolEntry::new("fails", async || Err::<String, _>(ToolError::new("no luck"))))
        .resource(ResourceEntry::text("test://fixed", "r", "fixed"))
        .template(TemplateEntry::new("test://{id}/x", "r", async || "templated"))
        .prompt(PromptEntry::new("p", async || "prompt"))
}

#[tokio::test]
async fn hooks_nest_in_the_order_of_their_registration() {
    let log = HookLog::default();
    let server = record(record(builder(), &log, "outer"), &log, "inner").build().unwrap();
    let mut client = TestClient::connect_as(&server, Caller::new("ada"));
    let mut seen = async |method: &str, params| {
        client.request(method, params).await.unwrap();
        std::mem::take(&mut *log.lock().unwrap())
    };
    for (method, params, line, end) in [
        ("tools/call", json!({"name": "t"}), "ada tool t t", "ok"),
        ("tools/call", json!({"name": "fails"}), "ada tool fails fails", "error"),
        ("resources/read", json!({"uri": "test://fixed"}), "ada resource test://fixed test://fixed", "ok"),
        (
            "resources/read",
            json!({"uri": "test://1/x"}),
            "ada resource template test://{id}/x test://1/x",
            "ok",
        ),
        ("prompts/get", json!({"name": "p"}), "ada prompt p p", "ok"),
    ] {
        let expected = [
            format!("outer {line} starts"),
            format!("inner {line} starts"),
            format!("inner {end}"),
            format!("outer {end}"),
        ];
        assert_eq!(seen(method, params).await, expected);
    }
    // An unknown tool and a list are not operations.
    client.request("tools/call", json!({"name": "unknown"})).await.unwrap_err();
    client.request("tools/list", json!({})).await.unwrap();
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_hook_can_replace_or_change_the_result() {
    let server = builder().around(async |operation: Operation, next: NextHandler| match operation.name() {
        "t" => Ok(CallToolResult::text("replaced").into()),
        "p" => Ok(CallToolResult::text("of another kind").into()),
        "test://fixed" => Err(ToolError::new("closed")),
        _ => match next.run(operation).await {
            Err(error) => Ok(CallToolResult::text(format!("saved from {error}")).into()),
            Ok(OperationResult::Resource(mut result)) => {
                result.contents.clear();
                Ok(result.into())
            }
            other => other,
        },
    });
    let server = server.build().unwrap();
    let mut client = TestClient::connect(&server);
    assert_eq!(client.call("t", json!({})).await.unwrap(), "replaced");
    assert_eq!(client.call("fails", json!({})).await.unwrap(), "saved from no luck");
    let read = client.request("resources/read", json!({"uri": "test://1/x"})).await.unwrap();
    assert_eq!(read["contents"], json!([]));
    let error = client.request("resources/read", json!({"uri": "test://fixed"})).await.unwrap_err();
    assert!(error.message.ends_with("closed"), "{error}");
    let error = client.request("prompts/get", json!({"name": "p"})).await.unwrap_err();
    assert!(error.message.ends_with("the result has the wrong kind"), "{error}");
}

#[tokio::test]
async fn a_panic_in_a_hook_ends_one_call() {
    let server = builder().around(async |operation: Operation, next: NextHandler| {
        assert_ne!(operation.name(), "t", "a hook that panics");
        next.run(operation).await
    });
    let server = server.build().unwrap();
    let mut client = TestClient::connect(&server);
    let error = client.request("tools/call", json!({"name": "t"})).await.unwrap_err();
    assert_eq!(error.code, -32603, "{error}");
    client.request("prompts/get", json!({"name": "p"})).await.unwrap();
}
