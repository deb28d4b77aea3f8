//! The tools of a folder, with an MCP client.

use bindpost_azure_search::{SearchServer, ServedFolder};
use bindpost_mcp_server::testing::TestClient;
use serde_json::{Value, json};

use super::{Folder, client, count, hotels, names, upload, variables};
use crate::service::Service;

/// A server with the tools of a folder, and a client of it.
struct ToolStage {
    _server: SearchServer,
    client: TestClient,
}

impl ToolStage {
    fn start(service: &Service, folder: &Folder, read_only: bool) -> ToolStage {
        let served = ServedFolder {
            root: folder.path().to_owned(),
            secrets: variables(&[]),
            service: "here".to_owned(),
        };
        let server =
            SearchServer::builder(client(service)).read_only(read_only).confirms(false).folder(served);
        let server = server.build().unwrap();
        let client = TestClient::connect(server.server());
        ToolStage { _server: server, client }
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.client.request("tools/call", json!({"name": tool, "arguments": arguments})).await.unwrap()
    }

    /// Calls a tool, which must succeed. Returns its result.
    async fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments).await;
        assert_ne!(answer["isError"], true, "{answer:#}");
        answer["structuredContent"].clone()
    }

    /// Returns the names of the tools of the folder.
    async fn tools(&mut self) -> Vec<String> {
        let listed = self.client.request("tools/list", json!({})).await.unwrap();
        let tools = listed["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .filter(|name| name.ends_with("SearchFolder"))
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_planned_tested_and_pushed_by_tools() {
    let service = Service::start().await;
    let client = client(&service);
    let folder = Folder::with(&[("indexes/hotels.json", hotels())]);
    folder.write_text("documents/hotels.jsonl", "{\"id\": \"1\", \"title\": \"Hotels by the beach\"}\n");
    folder.write_text("judgements/hotels.jsonl", "{\"search\": \"hotel\", \"expect\": [\"1\"]}\n");
    let mut stage = ToolStage::start(&service, &folder, false);
    assert_eq!(
        stage.tools().await,
        ["planSearchFolder", "testSearchFolder", "pullSearchFolder", "pushSearchFolder"]
    );

    let tested = stage.done("testSearchFolder", json!({})).await;
    assert_eq!(tested["passed"], true, "{tested:#}");
    let plan = stage.done("planSearchFolder", json!({})).await;
    assert_eq!(plan["plan"]["summary"]["create"], 1, "{plan:#}");
    let refused = stage.call("pushSearchFolder", json!({})).await;
    assert!(refused.to_string().contains("call planSearchFolder"), "{refused}");
    let refused = stage.call("pushSearchFolder", json!({"fingerprint": "0000"})).await;
    assert!(refused.to_string().contains("not the reviewed 0000"), "{refused}");
    assert!(names(&client, "indexes").await.is_empty());
    let pushed = stage.done("pushSearchFolder", json!({"fingerprint": plan["plan"]["fingerprint"]})).await;
    assert_eq!(pushed["state"], "applied", "{pushed:#}");
    upload(&client, "hotels", 0..10).await;

    folder.edit("indexes/hotels.json", |index| index["fields"][1]["analyzer"] = "standard.lucene".into());
    let tested = stage.done("testSearchFolder", json!({"names": ["hotels"]})).await;
    assert_eq!((&tested["passed"], &tested["failed"]), (&json!(false), &json!(1)), "{tested:#}");
    let tested = stage.done("testSearchFolder", json!({"onService": true})).await;
    assert_eq!(tested["passed"], false, "the service has no document 1: {tested:#}");
    let plan = stage.done("planSearchFolder", json!({})).await;
    assert!(plan["text"].as_str().unwrap().contains("rebuild as hotels-v2"), "{plan:#}");
    stage.done("pushSearchFolder", json!({"fingerprint": plan["plan"]["fingerprint"]})).await;
    assert_eq!((count(&client, "hotels").await, names(&client, "indexes").await.len()), (10, 2));
    let undone = stage.done("pushSearchFolder", json!({"rollBack": true})).await;
    assert_eq!(undone["state"], "rolledBack", "{undone:#}");
    let pulled = stage.done("pullSearchFolder", json!({"documents": 3})).await;
    assert!(pulled["files"].to_string().contains("indexes/hotels.json"), "{pulled:#}");
    assert_eq!(folder.json("indexes/hotels.json")["fields"][1]["analyzer"], "en.lucene");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_server_does_not_write_and_paths_stay_on_the_server() {
    let service = Service::start().await;
    let folder = Folder::new();
    let mut stage = ToolStage::start(&service, &folder, true);
    assert_eq!(stage.tools().await, ["planSearchFolder", "testSearchFolder"]);
    for tool in ["planSearchFolder", "testSearchFolder"] {
        let refused = stage.call(tool, json!({})).await;
        assert_eq!(refused["isError"], true);
        let refused = refused.to_string();
        assert!(refused.contains("the folder: not a folder of definitions"), "{refused}");
        assert!(!refused.contains(&folder.path().display().to_string()), "{refused}");
    }
}
