//! Operations without their own tool, through `callOperation`. They have the same safeguards as the
//! other tools.

use bindpost_azure_search::{SearchClient, SearchServer, SearchServerBuilder};
use bindpost_mcp_openapi::UpstreamLimits;
use serde_json::{Value, json};

use crate::service::{Scripted, Service, hotels, server, shared, some_hotels};
use crate::talk::{ERAS, Era, Talk};

fn whole(client: SearchClient) -> SearchServerBuilder {
    SearchServer::builder(client)
}

async fn call(talk: &mut Talk, operation: &str, arguments: Value) -> Result<Value, Value> {
    talk.call("callOperation", json!({"operation": operation, "arguments": arguments})).await
}

async fn with_hotels() -> Service {
    let service = Service::start().await;
    service.done("POST", "indexes", hotels("hotels")).await;
    service.done("POST", "indexes('hotels')/docs/search.index", json!({"value": some_hotels(3)})).await;
    service
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_need_confirmation_in_every_tool() {
    let service = with_hotels().await;
    let server = whole(service.shared().client).build().unwrap();
    for era in ERAS {
        let mut talk = Talk::with(server.server(), era, Some(false)).await;
        for action in ["delete", "Delete", " DELETE "] {
            let document = json!({"@search.action": action, "id": "h001"});
            let batch = json!({"indexName": "hotels", "body": {"value": [document]}});
            call(&mut talk, "Documents_Index", batch).await.unwrap_err();
            let batch = json!({"indexName": "hotels", "documents": [document]});
            talk.call("uploadDocuments", batch).await.unwrap_err();
        }
        // A null action is missing, so the action of the batch applies.
        let document = json!({"@search.action": null, "id": "h001"});
        let batch = json!({"indexName": "hotels", "action": "delete", "documents": [document]});
        talk.call("uploadDocuments", batch).await.unwrap_err();
        let downtime = json!({"indexName": "hotels", "allowIndexDowntime": true, "body": hotels("hotels"), "Prefer": null});
        call(&mut talk, "Indexes_CreateOrUpdate", downtime).await.unwrap_err();
        for (operation, arguments) in [
            ("Indexers_ResetDocs", json!({"indexerName": "x", "body": {"documentKeys": ["1"]}})),
            (
                "SynonymMaps_CreateOrUpdate",
                json!({"synonymMapName": "m",
                "body": {"name": "m", "format": "solr", "synonyms": "a, b"}}),
            ),
        ] {
            let asked = talk.asked.len();
            call(&mut talk, operation, arguments).await.unwrap_err();
            assert_eq!(talk.asked.split_off(asked).len(), 1, "{operation}");
        }
        // The schema of the operation allows only one spelling.
        assert_eq!(talk.asked.len(), 6, "{:?}", talk.asked);
        let batch = json!({"indexName": "hotels", "body": {"value": some_hotels(1)}});
        call(&mut talk, "Documents_Index", batch).await.unwrap();
        assert_eq!(talk.asked.len(), 6, "an upload needs no confirmation");
    }
    assert_eq!(service.done("GET", "indexes('hotels')/docs/$count", Value::Null).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_server_has_no_operation_that_writes() {
    let service = with_hotels().await;
    let server = whole(service.shared().client).read_only(true).confirms(false).build().unwrap();
    let mut talk = Talk::start(server.server(), Era::Session).await;
    let batch =
        json!({"indexName": "hotels", "body": {"value": [{"@search.action": "delete", "id": "h001"}]}});
    for (operation, arguments) in [
        ("Documents_Index", batch),
        ("Indexes_Delete", json!({"indexName": "hotels"})),
        ("Indexers_Run", json!({"indexerName": "x"})),
        ("Indexes_CreateOrUpdate", json!({"indexName": "hotels", "body": hotels("hotels")})),
    ] {
        let told = call(&mut talk, operation, arguments).await.unwrap_err();
        assert!(told.as_str().unwrap().contains("this server is read-only"), "{told}");
    }
    let listed = call(&mut talk, "Indexes_List", json!({})).await.unwrap();
    assert!(listed.get("@odata.context").is_none(), "it contains the URL of the service: {listed}");
    // The name of an index does not lead to one either.
    let name = "hotels')/docs/search.index";
    let told = call(&mut talk, "Indexes_Analyze", json!({"indexName": name, "body": {"text": "a"}})).await;
    assert_eq!(told.unwrap_err()["status"], 404);
    let found =
        call(&mut talk, "Documents_SearchPost", json!({"indexName": "hotels", "body": {"search": "*"}}));
    assert_eq!(found.await.unwrap()["value"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_definitions_are_hidden_and_documents_are_not_changed() {
    let service = Scripted::start(|_, path, _| {
        let source = json!({"name": "s", "credentials": {"connectionString": "AccountKey=abc"}});
        let skills = json!({"name": "k", "cognitiveServices":
            {"@odata.type": "#Microsoft.Azure.Search.CognitiveServicesByKey", "key": "abc"}});
        (
            200,
            match path {
                "/datasources" => json!({"value": [source]}),
                path if path.starts_with("/datasources") => source,
                path if path.starts_with("/skillsets") => skills,
                _ => json!({"id": "1", "apiKey": "abc"}),
            },
        )
    })
    .await;
    let client = shared(&service.url(), None, UpstreamLimits::default()).client;
    let server = whole(client).build().unwrap();
    let mut talk = Talk::start(server.server(), Era::Alone).await;
    for (operation, arguments) in [
        ("DataSources_Get", json!({"dataSourceName": "s"})),
        ("DataSources_List", json!({})),
        ("Skillsets_Get", json!({"skillsetName": "k"})),
    ] {
        let told = call(&mut talk, operation, arguments).await.unwrap().to_string();
        assert!(told.contains("<redacted>") && !told.contains("abc"), "{told}");
    }
    let document = call(&mut talk, "Documents_Get", json!({"indexName": "i", "key": "1"})).await.unwrap();
    assert_eq!(document["apiKey"], "abc");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_valid_for_its_own_search_only() {
    let service = with_hotels().await;
    let mut talk = Talk::start(&service.server(), Era::Session).await;
    let asked = json!({"indexName": "hotels", "search": "motel", "limit": 1});
    let cursor = talk.call("searchDocuments", asked).await.unwrap()["nextCursor"].clone();
    for same in [json!({}), json!({"search": "motel"}), json!({"search": "motel", "limit": 2})] {
        let mut again = json!({"indexName": "hotels", "cursor": cursor});
        again.as_object_mut().unwrap().extend(same.as_object().unwrap().clone());
        talk.call("searchDocuments", again).await.unwrap();
    }
    for other in [json!({"search": "number"}), json!({"filter": "rating gt 1"})] {
        let mut again = json!({"indexName": "hotels", "cursor": cursor});
        again.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        let told = talk.call("searchDocuments", again).await.unwrap_err();
        assert!(told["message"].as_str().unwrap().contains("another search"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_too_long_is_returned_without_its_longest_fields() {
    let service = with_hotels().await;
    let long = json!({"id": "long", "title": "word ".repeat(1000), "category": "Luxury"});
    service.done("POST", "indexes('hotels')/docs/search.index", json!({"value": [long]})).await;
    let shared = bindpost_azure_search::SearchServerState { answer_bytes: 2000, ..service.shared() };
    let mut talk = Talk::start(&server(shared), Era::Session).await;
    let told = talk.call("getDocument", json!({"indexName": "hotels", "key": "long"})).await.unwrap();
    assert_eq!((&told["category"], &told["omittedFields"][0]["field"]), (&json!("Luxury"), &json!("title")));
    let named = json!({"indexName": "hotels", "key": "long", "select": "title"});
    assert!(talk.call("getDocument", named).await.unwrap()["title"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_can_be_used_like_its_index() {
    let service = with_hotels().await;
    service.done("POST", "aliases", json!({"name": "live", "indexes": ["hotels"]})).await;
    let mut talk = Talk::start(&service.server(), Era::Session).await;
    let found = talk.call("searchDocuments", json!({"indexName": "live", "limit": 1.0})).await.unwrap();
    assert_eq!(found["omittedVectorFields"], json!(["embedding"]), "{found}");
    let told = talk.call("suggest", json!({"indexName": "live", "search": "mot"})).await.unwrap();
    assert_eq!(told["items"].as_array().unwrap().len(), 3, "{told}");
    let told = talk.call("profileIndex", json!({"indexName": "live", "sample": 2.0})).await.unwrap();
    assert_eq!(told["index"], "hotels", "{told}");
}
