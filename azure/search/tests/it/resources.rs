//! Resources: reading, listing, completion and subscriptions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bindpost_azure_search::{own_entries, watch_indexers};
use bindpost_mcp_openapi::Document;
use bindpost_mcp_server::Server;
use serde_json::{Value, json};

use crate::service::{Service, hotels, server, some_hotels};
use crate::talk::{ERAS, Era, Talk};

async fn read(talk: &mut Talk, uri: &str) -> Value {
    let result = talk.request("resources/read", json!({"uri": uri})).await.unwrap();
    let contents = &result["contents"][0];
    assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!("application/json")));
    serde_json::from_str(contents["text"].as_str().unwrap()).unwrap()
}

async fn fill(talk: &mut Talk) {
    let mut index = hotels("hotels");
    index["semantic"] = json!({"configurations": [{"name": "s", "prioritizedFields": {"prioritizedContentFields": [{"fieldName": "title"}]}}]});
    talk.call("createOrUpdateIndex", json!({"indexName": "hotels", "body": index})).await.unwrap();
    talk.call("createOrUpdateIndex", json!({"indexName": "motels", "body": hotels("motels")})).await.unwrap();
    talk.call("uploadDocuments", json!({"indexName": "hotels", "documents": some_hotels(3)})).await.unwrap();
    let files = json!({"type": "azureblob", "container": {"name": "c"}, "credentials": {"connectionString": "UseDevelopmentStorage=true"}});
    talk.call("createOrUpdateDataSource", json!({"dataSourceName": "files", "body": files})).await.unwrap();
    let loader = json!({"dataSourceName": "files", "targetIndexName": "motels", "disabled": true,
        "parameters": {"configuration": {"parsingMode": "json"}}});
    talk.call("createOrUpdateIndexer", json!({"indexerName": "loader", "body": loader})).await.unwrap();
    let source = json!({"kind": "searchIndex", "searchIndexParameters": {"searchIndexName": "hotels"}});
    talk.call("createOrUpdateKnowledgeSource", json!({"sourceName": "source", "body": source}))
        .await
        .unwrap();
    let agent = json!({"models": [], "knowledgeSources": [{"name": "source"}]});
    talk.call("createOrUpdateAgent", json!({"agentName": "agent", "body": agent})).await.unwrap();
}

#[tokio::test]
async fn definitions_states_and_statistics_are_listed_and_read() {
    for era in ERAS {
        let service = Service::start().await;
        let mut talk = Talk::start(&service.server(), era).await;
        fill(&mut talk).await;
        let listed = talk.request("resources/list", json!({})).await.unwrap();
        let listed = listed["resources"].as_array().unwrap();
        let uris: BTreeSet<&str> = listed.iter().map(|resource| resource["uri"].as_str().unwrap()).collect();
        let expected = [
            "search://agents",
            "search://agents/agent",
            "search://indexers/loader/status",
            "search://indexes",
            "search://indexes/hotels",
            "search://indexes/motels",
            "search://indexstats",
            "search://knowledgesources",
            "search://knowledgesources/source",
            "search://servicestats",
        ];
        assert_eq!(uris, expected.into());
        for uri in expected {
            let read = read(&mut talk, uri).await;
            assert!(read.get("@odata.context").is_none(), "{uri}: {read}");
        }
        let indexes = read(&mut talk, "search://indexes").await;
        assert_eq!(indexes["items"].as_array().unwrap().len(), 2);
        assert_eq!(indexes["items"][0]["uri"], "search://indexes/hotels");
        assert_eq!(indexes["items"][0]["fields"][0], "id", "names only: {indexes}");
        assert_eq!(read(&mut talk, "search://indexes/hotels").await["name"], "hotels");
        assert_eq!(read(&mut talk, "search://indexers/loader/status").await["name"], "loader");
        assert!(read(&mut talk, "search://servicestats").await["counters"].is_object());
        assert_eq!(read(&mut talk, "search://indexstats").await["value"][0]["documentCount"], 3);
        let templates = talk.request("resources/templates/list", json!({})).await.unwrap();
        assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 6);
        for uri in
            ["search://indexes/nothing", "search://indexes/..%2Fservicestats", "search://indexers/x/status"]
        {
            let error = talk.request("resources/read", json!({"uri": uri})).await.unwrap_err();
            let code = if era == Era::Session { -32002 } else { -32602 };
            assert_eq!(error["code"], code, "{uri}: {error}");
        }
    }
}

#[tokio::test]
async fn a_list_that_is_too_long_contains_names_only() {
    let service = Service::start().await;
    let mut shared = service.shared();
    shared.answer_bytes = 200;
    let mut talk = Talk::start(&server(shared), Era::Session).await;
    fill(&mut talk).await;
    let read = read(&mut talk, "search://indexes").await;
    assert_eq!(read["items"][1]["uri"], "search://indexes/motels");
    assert!(read["items"][1].get("fields").is_none());
}

#[tokio::test]
async fn names_are_completed_from_the_service() {
    for era in ERAS {
        let service = Service::start().await;
        let mut talk = Talk::start(&service.server(), era).await;
        fill(&mut talk).await;
        for (uri, typed, expected) in [
            ("search://indexes/{name}", "", json!(["hotels", "motels"])),
            ("search://indexes/{name}", "MO", json!(["motels"])),
            ("search://agents/{name}", "a", json!(["agent"])),
            ("search://knowledgesources/{name}", "x", json!([])),
            ("search://indexers/{name}/status", "lo", json!(["loader"])),
        ] {
            let params = json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "name", "value": typed}});
            let completed = talk.request("completion/complete", params).await.unwrap();
            assert_eq!(completed["completion"]["values"], expected, "{uri}");
        }
    }
}

#[tokio::test]
async fn schemas_are_read_and_completed() {
    let service = Service::start().await;
    let mut shared = service.shared();
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let definitions = [("SearchAlias", schema.clone()), ("SearchIndex", schema.clone())];
    let definitions = definitions.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    shared.document = Arc::new(Document { definitions, ..Document::default() });
    let mut talk = Talk::start(&server(shared), Era::Alone).await;
    let uri = "search-schema://SearchIndex";
    let result = talk.request("resources/read", json!({"uri": uri})).await.unwrap();
    assert_eq!(result["contents"][0]["mimeType"], "application/schema+json");
    let text = result["contents"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap()["type"], "object");
    talk.request("resources/read", json!({"uri": "search-schema://Nothing"})).await.unwrap_err();
    let reference = json!({"type": "ref/resource", "uri": "search-schema://{definition}"});
    let params = json!({"ref": reference, "argument": {"name": "definition", "value": "searchi"}});
    let completed = talk.request("completion/complete", params).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["SearchIndex"]));
}

#[tokio::test]
async fn a_run_right_after_the_subscription_is_notified() {
    let service = Service::start().await;
    service.put_file("rows", "a.jsonl", "{\"id\": \"1\", \"n\": 1}\n");
    service.with_indexer(json!({})).await;
    let shared = Arc::new(service.shared());
    let server = Server::builder("search", "1").add(own_entries(&shared)).build().unwrap();
    let _watch = watch_indexers(&server, &shared);
    let mut talk = Talk::start(&server, Era::Session).await;
    let status = "search://indexers/loader/status";
    talk.request("resources/subscribe", json!({"uri": status})).await.unwrap();
    shared.client.post("indexers('loader')/search.run", json!({})).send().await.unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(20), talk.next()).await.expect("no notification");
    assert_eq!(heard["params"]["uri"], status, "{heard}");
}

#[tokio::test]
async fn subscribers_are_notified_of_changes() {
    for era in ERAS {
        let service = Service::start().await;
        service.put_file("c", "one.json", r#"{"id": "1", "title": "One"}"#);
        let shared = Arc::new(service.shared());
        let server = Server::builder("search", "1").add(own_entries(&shared)).build().unwrap();
        let _watch = watch_indexers(&server, &shared);
        let mut other = Talk::start(&server, Era::Session).await;
        fill(&mut other).await;
        let status = "search://indexers/loader/status";
        let mut talk = Talk::start(&server, era).await;
        match era {
            Era::Session => {
                for uri in [status, "search://indexes/hotels"] {
                    talk.request("resources/subscribe", json!({"uri": uri})).await.unwrap();
                }
            }
            Era::Alone => {
                let wanted = json!({"resourceSubscriptions": [status, "search://indexes/hotels"]});
                talk.send("subscriptions/listen", json!({"notifications": wanted})).await;
                assert_eq!(talk.next().await["method"], "notifications/subscriptions/acknowledged");
            }
        }
        while !server.is_watched(status) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Long enough for the first poll.
        tokio::time::sleep(Duration::from_secs(1)).await;
        // A tool that changes a definition notifies subscribers at once.
        other.call("deleteIndex", json!({"indexName": "nothing"})).await.unwrap();
        let mut index = other.call("getIndex", json!({"indexName": "hotels"})).await.unwrap();
        index["description"] = json!("changed");
        other.call("createOrUpdateIndex", json!({"indexName": "hotels", "body": index})).await.unwrap();
        let heard = talk.next().await;
        assert_eq!(heard["params"]["uri"], "search://indexes/hotels", "{heard}");
        // An enabled indexer runs, and its subscribers are notified.
        let loader = json!({"dataSourceName": "files", "targetIndexName": "motels",
            "parameters": {"configuration": {"parsingMode": "json"}}});
        other.call("createOrUpdateIndexer", json!({"indexerName": "loader", "body": loader})).await.unwrap();
        shared.client.post("indexers('loader')/search.run", json!({})).send().await.unwrap();
        let heard = talk.next().await;
        assert_eq!(heard["method"], "notifications/resources/updated");
        assert_eq!(heard["params"]["uri"], status, "{heard}");
        let read = read(&mut talk, status).await;
        assert!(read["lastResult"].is_object(), "{read}");
    }
}
