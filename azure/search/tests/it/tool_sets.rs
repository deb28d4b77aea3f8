//! The sets of tools that a server offers.

use bindpost_azure_search::{SearchServer, ServerOverview, ToolSet};
use serde_json::json;

use crate::service::Service;
use crate::talk::{ERAS, Talk};

fn serve(service: &Service, tools: ToolSet) -> SearchServer {
    SearchServer::builder(service.shared().client).tools(tools).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_set_contains_the_smaller_ones() {
    let service = Service::start().await;
    let mut smaller: Vec<String> = Vec::new();
    for (set, tools, prompts) in
        [(ToolSet::Query, 11, 1), (ToolSet::Read, 29, 4), (ToolSet::Manage, 45, 6), (ToolSet::All, 48, 6)]
    {
        let server = serve(&service, set);
        let overview = ServerOverview::from_server(server.server()).await;
        let names: Vec<String> =
            overview.tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!((names.len(), overview.prompts.len()), (tools, prompts), "{set:?}: {names:?}");
        assert!(smaller.iter().all(|name| names.contains(name)), "{set:?}");
        for tool in &overview.tools {
            let reads = tool["annotations"]["readOnlyHint"] == true;
            assert!(reads || set > ToolSet::Read, "{set:?}: {}", tool["name"]);
        }
        smaller = names;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_other_sets_are_unknown_and_not_mentioned() {
    let service = Service::start().await;
    let server = serve(&service, ToolSet::Query);
    for era in ERAS {
        let mut talk = Talk::start(server.server(), era).await;
        let told = talk.request("tools/call", json!({"name": "deleteIndex", "arguments": {}})).await;
        assert_eq!(told.unwrap_err()["message"], "unknown tool: deleteIndex");
        let indexes = talk.call("listIndexes", json!({})).await.unwrap();
        assert_eq!(indexes["items"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_has_a_title() {
    let service = Service::start().await;
    let server = serve(&service, ToolSet::All);
    for tool in ServerOverview::from_server(server.server()).await.tools {
        let title = tool["title"].as_str().unwrap_or_default();
        assert!(title.starts_with(|first: char| first.is_ascii_uppercase()), "{}", tool["name"]);
    }
}
