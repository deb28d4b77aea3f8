//! Servers with a reduced offer: fewer revisions, no tools, lists that fail.

use bindpost_mcp_server::protocol::{Resource, Revision};
use bindpost_mcp_server::testing::TestClient;
use bindpost_mcp_server::{
    Context, Entry, PromptEntry, ResourceEntry, ResourceListEntry, Server, ToolEntry, ToolError,
};
use serde_json::{Value, json};

fn initialize(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
}

fn envelope() -> Value {
    json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    }})
}

#[tokio::test]
async fn only_the_named_revisions_are_supported() {
    let builder = || Server::builder("narrow", "1.0.0").tool(ToolEntry::new("t", async || "x"));
    let server = builder().revisions([Revision::V2025_11_25, Revision::V2025_03_26]).build().unwrap();
    for (asked, given) in
        [("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-11-25"), ("2026-07-28", "2025-11-25")]
    {
        let result = TestClient::connect(&server).request("initialize", initialize(asked)).await.unwrap();
        assert_eq!(result["protocolVersion"], given, "{asked}");
    }
    for method in ["server/discover", "tools/list"] {
        let error = TestClient::connect(&server).request(method, envelope()).await.unwrap_err();
        let data = error.data.clone().unwrap_or_default();
        assert_eq!(data["supported"], json!(["2025-03-26", "2025-11-25"]), "{error}");
        assert_eq!(data["requested"], "2026-07-28");
    }

    let server = builder().revisions([Revision::V2026_07_28]).build().unwrap();
    let error =
        TestClient::connect(&server).request("initialize", initialize("2025-11-25")).await.unwrap_err();
    assert!(error.message.contains("supported: 2026-07-28"), "{error}");
    assert!(TestClient::connect(&server).request("tools/list", envelope()).await.is_ok());

    let error = builder().revisions([]).build().unwrap_err().to_string();
    assert!(error.contains("it supports no protocol revision"), "{error}");
}

#[tokio::test]
async fn whole_kinds_of_entries_can_be_removed() {
    let entries = || {
        Server::builder("narrow", "1.0.0").add([
            Entry::from(ToolEntry::new("t", async || "x")),
            ResourceEntry::text("test://r", "r", "x").into(),
            ResourceListEntry::new("test", async || Vec::<Resource>::new()).into(),
            PromptEntry::new("p", async || "x").into(),
        ])
    };
    for (server, kind, removed) in [
        (entries().without_tools(), "tools", "tools/list"),
        (entries().without_resources(), "resources", "resources/list"),
        (entries().without_prompts(), "prompts", "prompts/list"),
    ] {
        let server = server.build().unwrap();
        let mut client = TestClient::connect(&server);
        let result = client.request("initialize", initialize("2025-11-25")).await.unwrap();
        let capabilities = result["capabilities"].as_object().unwrap();
        assert!(!capabilities.contains_key(kind), "{capabilities:?}");
        assert_eq!(client.request(removed, json!({})).await.unwrap_err().code, -32601);
    }
}

#[tokio::test]
async fn a_failed_list_is_an_error_without_its_internal_reason() {
    for (list, shown) in [
        (
            ResourceListEntry::new("menu", async || Err::<Vec<Resource>, _>(ToolError::new("closed today"))),
            "closed today",
        ),
        (
            ResourceListEntry::new("menu", async |_: Context| {
                vec![Resource { uri: "other://x".into(), name: "x".into(), ..Resource::default() }]
            }),
            "the list of resources is invalid",
        ),
    ] {
        let server = Server::builder("narrow", "1.0.0").resource_list(list).build().unwrap();
        let error = TestClient::connect(&server).request("resources/list", json!({})).await.unwrap_err();
        assert_eq!(error.code, -32603);
        assert!(error.message.ends_with(shown), "{error}");
    }
}
