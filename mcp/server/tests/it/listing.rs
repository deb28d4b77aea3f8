//! The lists of a server for its own process.

use bindpost_mcp_server::protocol::{Resource, Revision};
use bindpost_mcp_server::{
    Caller, Identity, ListKind, PromptEntry, ResourceEntry, ResourceListEntry, Server, ToolEntry, ToolError,
};
use serde_json::Value;

const REVISION: Revision = Revision::V2025_11_25;

fn names(definitions: &[Value], member: &str) -> Vec<String> {
    definitions.iter().map(|definition| definition[member].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn all_pages_are_listed_as_a_client_receives_them() {
    let tools = (0..5).map(|number| ToolEntry::new(format!("t{number}"), async || "x").title("A tool"));
    let server = tools.fold(Server::builder("s", "1").page_size(2), |server, tool| server.tool(tool));
    let server = server.build().unwrap();
    for revision in Revision::ALL {
        let tools = server.list_definitions(ListKind::Tools, revision, None).await.unwrap();
        assert_eq!(names(&tools, "name"), ["t0", "t1", "t2", "t3", "t4"], "{revision:?}");
        // `title` came with 2025-06-18.
        assert_eq!(tools[0].get("title").is_some(), revision >= Revision::V2025_06_18, "{revision:?}");
    }
    let error = server.list_definitions(ListKind::Prompts, REVISION, None).await.unwrap_err();
    assert_eq!(error.code, -32601, "{error}");
}

#[tokio::test]
async fn a_caller_sees_only_the_entries_it_may_use() {
    let server = Server::builder("s", "1")
        .tool(ToolEntry::new("open", async || "x").anonymous())
        .tool(ToolEntry::new("write", async || "x").scopes(["write"]))
        .prompt(PromptEntry::new("signed_in", async || "x"))
        .build()
        .unwrap();
    let writer = Caller::from(Identity::new("w").user().scope("write"));
    for (caller, tools, prompts) in [
        (None, vec!["open", "write"], vec!["signed_in"]),
        (Some(&Caller::ANONYMOUS), vec!["open"], vec![]),
        (Some(&Caller::new("c")), vec!["open"], vec!["signed_in"]),
        (Some(&writer), vec!["open", "write"], vec!["signed_in"]),
    ] {
        for (kind, expected) in [(ListKind::Tools, tools), (ListKind::Prompts, prompts)] {
            let listed = server.list_definitions(kind, REVISION, caller).await.unwrap();
            assert_eq!(names(&listed, "name"), expected, "{caller:?}");
        }
    }
}

#[tokio::test]
async fn lists_of_resources_are_computed() {
    let menu = ResourceListEntry::new("menu", async || {
        vec![Resource { uri: "menu://soup".into(), name: "soup".into(), ..Resource::default() }]
    });
    let server = Server::builder("s", "1").page_size(1);
    let server = server.resource(ResourceEntry::text("menu://card", "card", "x")).resource_list(menu);
    let server = server.build().unwrap();
    let resources = server.list_definitions(ListKind::Resources, REVISION, None).await.unwrap();
    assert_eq!(names(&resources, "uri"), ["menu://card", "menu://soup"]);

    let closed =
        ResourceListEntry::new("menu", async || Err::<Vec<Resource>, _>(ToolError::new("closed today")));
    let server = Server::builder("s", "1").resource_list(closed).build().unwrap();
    let error = server.list_definitions(ListKind::Resources, REVISION, None).await.unwrap_err();
    assert!(error.message.ends_with("closed today"), "{error}");
}
