//! The tools for definitions.

use std::sync::Arc;

use bindpost_mcp_openapi::{BodyFormat, Document, Operation, RequestBody};
use bindpost_mcp_server::ToolHints;
use serde_json::{Value, json};

use crate::service::{Service, hotels, server, some_hotels};
use crate::talk::{ERAS, Era, Talk};

/// Returns one definition of every kind, in an order in which they can be created.
fn definitions() -> Vec<(&'static str, &'static str, Value)> {
    let mut index = hotels("hotels");
    index["semantic"] = json!({"configurations": [{"name": "s", "prioritizedFields": {"prioritizedContentFields": [{"fieldName": "title"}]}}]});
    vec![
        ("Index", "indexName", index),
        (
            "DataSource",
            "dataSourceName",
            json!({"name": "files", "type": "azureblob", "container": {"name": "c"},
                "credentials": {"connectionString": "UseDevelopmentStorage=true"}}),
        ),
        (
            "Indexer",
            "indexerName",
            json!({"name": "loader", "dataSourceName": "files", "targetIndexName": "hotels", "disabled": true}),
        ),
        (
            "SynonymMap",
            "synonymMapName",
            json!({"name": "words", "format": "solr", "synonyms": "usa, america"}),
        ),
        ("Alias", "aliasName", json!({"name": "inns", "indexes": ["hotels"]})),
        (
            "KnowledgeSource",
            "sourceName",
            json!({"name": "source", "kind": "searchIndex", "searchIndexParameters": {"searchIndexName": "hotels"}}),
        ),
        (
            "Agent",
            "agentName",
            json!({"name": "agent", "models": [], "knowledgeSources": [{"name": "source"}]}),
        ),
    ]
}

#[tokio::test]
async fn every_kind_is_created_read_changed_and_deleted() {
    for era in ERAS {
        let service = Service::start().await;
        let mut talk = Talk::start(&service.server(), era).await;
        for (kind, argument, body) in definitions() {
            let name = body["name"].as_str().unwrap();
            let put = format!("createOrUpdate{kind}");
            // A missing name is filled in.
            let mut nameless = body.clone();
            nameless.as_object_mut().unwrap().remove("name");
            let made =
                json!({argument: name, "body": nameless, "createOnly": true, "clientRequestId": "abc-1"});
            let made = talk.call(&put, made).await.unwrap_or_else(|error| panic!("{kind}: {error:#}"));
            assert_eq!((&made["name"], &made["clientRequestId"]), (&json!(name), &json!("abc-1")), "{kind}");
            assert!(made.get("@odata.context").is_none(), "{made}");
            let etag = made["@odata.etag"].as_str().unwrap();

            let shown = talk.call(&format!("get{kind}"), json!({argument: name})).await.unwrap();
            assert_eq!(shown["@odata.etag"], etag, "{kind}");
            // A definition from a result can be sent back, with its nulls and our id.
            let mut changed = made.clone();
            changed["description"] = json!("changed");
            let changed = json!({argument: name, "body": changed, "etag": etag});
            let changed = talk.call(&put, changed).await.unwrap_or_else(|error| panic!("{kind}: {error:#}"));
            assert_ne!(changed["@odata.etag"], etag, "{kind}");
            assert!(changed.get("clientRequestId").is_none(), "{changed}");

            let stale = json!({argument: name, "body": body, "etag": etag.trim_matches('"')});
            let conflict = talk.call(&put, stale).await.unwrap_err();
            assert_eq!(
                (&conflict["error"], &conflict["status"]),
                (&json!("conflict"), &json!(412)),
                "{conflict:#}"
            );
            assert_eq!(conflict["currentETag"], changed["@odata.etag"], "{conflict:#}");
            assert!(conflict["differences"].is_array() && conflict["hint"].is_string(), "{conflict:#}");
            let again = json!({argument: name, "body": body, "createOnly": true});
            assert_eq!(talk.call(&put, again).await.unwrap_err()["error"], "conflict", "{kind}");
        }
        for (kind, argument, body) in definitions().into_iter().rev() {
            let (name, delete) = (&body["name"], format!("delete{kind}"));
            let stale = talk.call(&delete, json!({argument: name, "etag": "\"0x0\""})).await.unwrap_err();
            assert_eq!(stale["error"], "conflict", "{kind}: {stale:#}");
            let gone = talk.call(&delete, json!({argument: name})).await.unwrap();
            assert_eq!(gone, json!({"name": name, "deleted": true, "existed": true}), "{kind}");
            let again = talk.call(&delete, json!({argument: name})).await.unwrap();
            assert_eq!(again, json!({"name": name, "deleted": false, "existed": false}), "{kind}");
            let missing = talk.call(&format!("get{kind}"), json!({argument: name})).await.unwrap_err();
            assert_eq!(missing["error"], "resource_not_found", "{kind}: {missing:#}");
            assert!(missing["requestId"].is_string(), "{missing:#}");
        }
    }
}

#[tokio::test]
async fn a_conflict_contains_the_differences() {
    let service = Service::start().await;
    let mut talk = Talk::start(&service.server(), Era::Session).await;
    let put = |body: Value, etag: Option<&str>| {
        let mut arguments = json!({"indexName": "hotels", "body": body});
        if let Some(etag) = etag {
            arguments["etag"] = etag.into();
        }
        arguments
    };
    let made = talk.call("createOrUpdateIndex", put(hotels("hotels"), None)).await.unwrap();
    let mut theirs = hotels("hotels");
    theirs["fields"].as_array_mut().unwrap().push(json!({"name": "stars", "type": "Edm.Int32"}));
    let theirs = talk.call("createOrUpdateIndex", put(theirs, None)).await.unwrap();
    let mut mine = hotels("hotels");
    mine["fields"].as_array_mut().unwrap().push(json!({"name": "city", "type": "Edm.String"}));
    let conflict =
        talk.call("createOrUpdateIndex", put(mine, made["@odata.etag"].as_str())).await.unwrap_err();
    assert_eq!(conflict["currentETag"], theirs["@odata.etag"]);
    let paths: Vec<&str> =
        conflict["differences"].as_array().unwrap().iter().filter_map(|one| one["path"].as_str()).collect();
    assert_eq!(paths, ["/fields/city", "/fields/stars"], "{conflict:#}");
}

#[tokio::test]
async fn conflicting_names_and_path_traversal_are_rejected() {
    let service = Service::start().await;
    let mut talk = Talk::start(&service.server(), Era::Alone).await;
    let other = json!({"indexName": "hotels", "body": hotels("motels")});
    let error = talk.call("createOrUpdateIndex", other).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("motels"), "{error:#}");
    for name in ["../../servicestats", "%2e%2e", "http://example.com/", "a/b", "..", ".", "x')/docs('y"] {
        let error = talk.call("getIndex", json!({"indexName": name})).await.unwrap_err();
        assert!(
            ["invalid_request", "resource_not_found"].contains(&error["error"].as_str().unwrap()),
            "{name}: {error:#}"
        );
        // Every name was requested as the name of an index, and no other path was reached.
        assert!(error.get("counters").is_none());
    }
    for name in ["", " ", "a\0b", "a\r\nb"] {
        let error = talk.call("getIndex", json!({"indexName": name})).await.unwrap_err();
        assert_eq!((&error["error"], error.get("status")), (&json!("invalid_request"), None), "{error:#}");
    }
    let broken = json!({"indexName": "hotels", "clientRequestId": "a\r\nx: y"});
    let error = talk.call("getIndex", broken).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("x-ms-client-request-id"), "{error:#}");
    let unknown = talk.call("getIndex", json!({"indexname": "hotels"})).await.unwrap_err();
    assert!(unknown.as_str().unwrap().contains("indexName"), "{unknown}");
}

#[tokio::test]
async fn deletions_need_confirmation() {
    for era in ERAS {
        let service = Service::start().await;
        let server = service.server();
        let mut setup = Talk::start(&server, Era::Session).await;
        setup
            .call("createOrUpdateIndex", json!({"indexName": "hotels", "body": hotels("hotels")}))
            .await
            .unwrap();
        setup
            .call("uploadDocuments", json!({"indexName": "hotels", "documents": some_hotels(12)}))
            .await
            .unwrap();

        let mut reluctant = Talk::with(&server, era, Some(false)).await;
        let refused = reluctant.call("deleteIndex", json!({"indexName": "hotels"})).await.unwrap_err();
        assert!(refused.as_str().unwrap().contains("did not agree"), "{refused}");
        assert!(reluctant.asked[0].contains("\"hotels\" with its 12 documents"), "{:?}", reluctant.asked);
        let offline = json!({"indexName": "hotels", "body": hotels("hotels"), "allowIndexDowntime": true});
        reluctant.call("createOrUpdateIndex", offline.clone()).await.unwrap_err();
        let batch = json!({"indexName": "hotels", "documents": [{"id": "h001", "@search.action": "delete"}, {"id": "h002", "rating": 1.0}], "action": "merge"});
        reluctant.call("uploadDocuments", batch.clone()).await.unwrap_err();
        assert_eq!(reluctant.asked.len(), 3, "{:?}", reluctant.asked);
        assert!(reluctant.asked[2].contains("1 document "), "{:?}", reluctant.asked);
        // Nothing is deleted, so no confirmation is needed.
        reluctant.call("deleteIndex", json!({"indexName": "nothing"})).await.unwrap();
        reluctant
            .call("createOrUpdateIndex", json!({"indexName": "hotels", "body": hotels("hotels")}))
            .await
            .unwrap();
        assert_eq!(reluctant.asked.len(), 3, "{:?}", reluctant.asked);
        assert_eq!(setup.call("countDocuments", json!({"indexName": "hotels"})).await.unwrap()["count"], 12);

        let mut willing = Talk::with(&server, era, Some(true)).await;
        willing.call("createOrUpdateIndex", offline).await.unwrap();
        willing.call("uploadDocuments", batch).await.unwrap();
        assert_eq!(setup.call("countDocuments", json!({"indexName": "hotels"})).await.unwrap()["count"], 11);
        willing.call("deleteIndex", json!({"indexName": "hotels"})).await.unwrap();
        assert_eq!(willing.asked.len(), 3);
        setup.call("getIndex", json!({"indexName": "hotels"})).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_body_is_validated_by_the_schema_of_the_document_before_it_is_sent() {
    let service = Service::start().await;
    let mut shared = service.shared();
    let schema = json!({
        "type": "object",
        "required": ["name", "synonyms"],
        "properties": {"format": {"enum": ["solr"]}, "synonyms": {"type": "string"}},
    });
    let hints = ToolHints::default();
    let operation = Operation {
        id: "SynonymMaps_CreateOrUpdate".to_owned(),
        method: http::Method::PUT,
        other_methods: Vec::new(),
        path: "/synonymmaps('{synonymMapName}')".to_owned(),
        tags: Vec::new(),
        summary: None,
        description: None,
        deprecated: false,
        parameters: Vec::new(),
        body: Some(RequestBody {
            required: true,
            description: None,
            media: BodyFormat::Json,
            content_type: "application/json".to_owned(),
            schema,
        }),
        responses: Vec::new(),
        scopes: Vec::new(),
        hints,
        items: None,
        next_link: None,
    };
    shared.document = Arc::new(Document { operations: vec![operation], ..Document::default() });
    let mut talk = Talk::start(&server(shared), Era::Session).await;
    let wrong = json!({"synonymMapName": "words", "body": {"format": "wordnet", "synonyms": null}});
    let error = talk.call("createOrUpdateSynonymMap", wrong).await.unwrap_err();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("/format") && message.contains("\"synonyms\" is a required"), "{error:#}");
    assert_eq!(error.get("status"), None);
    let right = json!({"synonymMapName": "words", "body": {"format": "solr", "synonyms": "a, b", "encryptionKey": null}});
    talk.call("createOrUpdateSynonymMap", right).await.unwrap();
}

#[tokio::test]
async fn tools_have_the_correct_hints() {
    let service = Service::start().await;
    let mut talk = Talk::start(&service.server(), Era::Session).await;
    let listed = talk.request("tools/list", json!({})).await.unwrap();
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 45);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        let hints = &tool["annotations"];
        let (reads, destroys) = match name {
            "createOrUpdateIndex" | "createOrUpdateSynonymMap" | "uploadDocuments" => (false, true),
            _ if name.starts_with("createOrUpdate") => (false, false),
            _ if name.starts_with("delete") => (false, true),
            // These tools have their own tests.
            "runIndexer" | "planIndexChange" | "diagnoseIndexer" => continue,
            _ => (true, false),
        };
        let said = (&hints["readOnlyHint"], &hints["destructiveHint"], &hints["idempotentHint"]);
        assert_eq!(said, (&json!(reads), &json!(destroys), &json!(true)), "{name}");
        assert!(tool["description"].as_str().unwrap().len() < 400, "{name}");
    }
    let bytes = listed.to_string().len();
    // Three more tools serve the other operations. Together they stay below 40 KiB.
    assert!(bytes <= 32 * 1024, "{bytes}");
}

#[tokio::test]
async fn a_read_only_server_has_no_tools_that_write() {
    let service = Service::start().await;
    let mut shared = service.shared();
    shared.read_only = true;
    let mut talk = Talk::start(&server(shared), Era::Alone).await;
    let listed = talk.request("tools/list", json!({})).await.unwrap();
    let writers: Vec<&Value> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| tool["annotations"]["readOnlyHint"] != true)
        .collect();
    assert!(writers.is_empty(), "{writers:?}");
    let error = talk.call("deleteIndex", json!({"indexName": "x"})).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("unknown tool"), "{error}");
}

#[tokio::test]
async fn connection_strings_are_never_returned_and_are_kept_when_sent_back() {
    let service = Service::start().await;
    let mut talk = Talk::start(&service.server(), Era::Session).await;
    let body = json!({"type": "azureblob", "container": {"name": "c"},
        "credentials": {"connectionString": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=c2VjcmV0"}});
    let put = "createOrUpdateDataSource";
    let made = talk.call(put, json!({"dataSourceName": "files", "body": body})).await.unwrap();
    let shown = talk.call("getDataSource", json!({"dataSourceName": "files"})).await.unwrap();
    let listed = talk.call("listDataSources", json!({})).await.unwrap();
    let conflict = json!({"dataSourceName": "files", "body": body, "etag": "\"0x0\""});
    let conflict = talk.call(put, conflict).await.unwrap_err();
    for told in [&made, &shown, &listed, &conflict] {
        assert!(!told.to_string().contains("c2VjcmV0"), "{told:#}");
    }
    talk.call(put, json!({"dataSourceName": "files", "body": shown})).await.unwrap();
}

#[tokio::test]
async fn the_most_used_tools_are_listed_first() {
    let service = Service::start().await;
    let mut talk = Talk::start(&service.server(), Era::Session).await;
    let list = talk.request("tools/list", json!({})).await.unwrap();
    let names: Vec<&str> =
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let expected = "searchDocuments profileIndex buildFilter explainSearch getDocument suggest autocomplete countDocuments \
        uploadDocuments retrieve evaluateRelevance analyzeText getIndexStats planIndexChange runIndexer getIndexerStatus \
        diagnoseIndexer listIndexes getIndex createOrUpdateIndex deleteIndex listIndexers";
    let expected: Vec<&str> = expected.split_whitespace().collect();
    assert_eq!(names[..expected.len()], expected);
}

#[tokio::test]
async fn failures_contain_similar_names_and_the_request_id() {
    let service = Service::start().await;
    let mut talk = Talk::start(&service.server(), Era::Session).await;
    service.done("POST", "indexes", crate::service::hotels("hotels")).await;
    for tool in ["searchDocuments", "getIndex", "profileIndex", "countDocuments"] {
        let arguments = json!({"indexName": "hotel", "clientRequestId": "mine"});
        let told = talk.call(tool, arguments).await.unwrap_err();
        assert_eq!(
            (&told["didYouMean"], &told["clientRequestId"]),
            (&json!("hotels"), &json!("mine")),
            "{told}"
        );
        let told = talk.call(tool, json!({"indexName": "h".repeat(9_000)})).await.unwrap_err();
        assert!(told["message"].as_str().unwrap().contains("longer than 128"), "{tool}: {told}");
    }
    let told = talk.call("getDocument", json!({"indexName": "hotels", "key": "nope"})).await.unwrap_err();
    assert!(told.get("didYouMean").is_none(), "the index exists: {told}");
    let both = json!({"indexName": "hotels", "limit": 2, "top": 3});
    let told = talk.call("searchDocuments", both).await.unwrap_err();
    assert!(told["message"].as_str().unwrap().contains("set only one of them"), "{told}");
    let again = json!({"indexName": "hotels", "body": crate::service::hotels("hotels"), "createOnly": true});
    let told = talk.call("createOrUpdateIndex", again).await.unwrap_err();
    assert!(told["hint"].as_str().unwrap().contains("A definition with this name exists"), "{told}");
}

#[tokio::test]
async fn a_synonym_map_is_replaced_when_the_user_agrees() {
    let service = Service::start().await;
    for era in crate::talk::ERAS {
        let mut talk = Talk::with(&service.server(), era, Some(false)).await;
        let map = |rules: &str| json!({"synonymMapName": format!("map-{era:?}").to_lowercase(), "body": {"format": "solr", "synonyms": rules}});
        talk.call("createOrUpdateSynonymMap", map("a, b")).await.unwrap();
        assert!(talk.asked.is_empty(), "a new one needs no confirmation");
        talk.call("createOrUpdateSynonymMap", map("c, d")).await.unwrap_err();
        assert_eq!(talk.asked.len(), 1);
    }
}
