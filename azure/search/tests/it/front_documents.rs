//! The tools for documents: search, lookup, batches, retrieval.

use bindpost_azure_search::SearchClient;
use serde_json::{Value, json};

use crate::service::{Service, hotels, server, some_hotels};
use crate::talk::{ERAS, Era, Talk};

/// Returns a client of a server over an index with this many hotels.
async fn with_hotels(service: &Service, era: Era, count: usize, budget: usize) -> Talk {
    let mut shared = service.shared();
    shared.answer_bytes = budget;
    let mut talk = Talk::start(&server(shared), era).await;
    talk.call("createOrUpdateIndex", json!({"indexName": "hotels", "body": hotels("hotels")})).await.unwrap();
    let batch = json!({"indexName": "hotels", "documents": some_hotels(count)});
    let done = talk.call("uploadDocuments", batch).await.unwrap();
    assert_eq!((&done["succeeded"], &done["failed"]), (&json!(count), &json!(0)));
    talk
}

fn keys(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_search_supports_the_complete_query_language() {
    for era in ERAS {
        let service = Service::start().await;
        let mut talk = with_hotels(&service, era, 30, 65_536).await;
        let query = json!({
            "indexName": "hotels", "search": "title:motels", "queryType": "full", "searchMode": "all",
            "searchFields": ["title"], "filter": "rating ge 1 and category eq 'Luxury'", "orderby": ["rating desc"],
            "select": ["id", "rating"], "limit": 3, "count": true, "facets": ["category"], "highlight": "title",
            "highlightPreTag": "<b>", "highlightPostTag": "</b>", "minimumCoverage": 50, "clientRequestId": "q-1",
        });
        let found = talk.call("searchDocuments", query).await.unwrap();
        assert_eq!(keys(&found), ["h028", "h026", "h024"]);
        assert_eq!((&found["count"], &found["hasMore"]), (&json!(10), &json!(true)));
        assert_eq!(found["@search.facets"]["category"][0], json!({"count": 10, "value": "Luxury"}));
        assert_eq!(found["@search.coverage"], 100.0);
        assert_eq!(found["clientRequestId"], "q-1");
        let first = &found["items"][0];
        assert!(first["@search.score"].is_number() && first.get("title").is_none(), "{first}");
        assert_eq!(first["@search.highlights"]["title"][0], "<b>Motel</b> number 28");
        for address in ["@odata.nextLink", "@odata.context", "@search.nextPageParameters"] {
            assert!(found.get(address).is_none(), "{found}");
        }
        let counted = json!({"indexName": "hotels", "top": 0, "count": true});
        let counted = talk.call("searchDocuments", counted).await.unwrap();
        assert_eq!(counted, json!({"items": [], "count": 30, "hasMore": false}));
    }
}

#[tokio::test]
async fn pages_of_a_search_contain_every_hit_once() {
    let service = Service::start().await;
    let mut talk = with_hotels(&service, Era::Alone, 57, 2_000).await;
    let query = json!({"indexName": "hotels", "orderby": "rating", "limit": 25, "facets": ["category"]});
    let mut page = talk.call("searchDocuments", query).await.unwrap();
    let (mut seen, mut pages) = (Vec::new(), 1);
    assert!(page["@search.facets"].is_object());
    loop {
        assert!(page.to_string().len() <= 2_000, "{}", page.to_string().len());
        seen.extend(keys(&page));
        if page["hasMore"] == false {
            break;
        }
        pages += 1;
        let next = json!({"indexName": "hotels", "cursor": page["nextCursor"]});
        page = talk.call("searchDocuments", next).await.unwrap();
        assert!(page.get("@search.facets").is_none());
    }
    assert_eq!(seen, (0..57).map(|at| format!("h{at:03}")).collect::<Vec<_>>());
    assert!(pages > 3, "{pages}");
}

#[tokio::test]
async fn a_cursor_belongs_to_its_search() {
    let service = Service::start().await;
    let mut talk = with_hotels(&service, Era::Session, 5, 65_536).await;
    let page = talk.call("searchDocuments", json!({"indexName": "hotels", "limit": 2})).await.unwrap();
    let elsewhere = json!({"indexName": "motels", "cursor": page["nextCursor"]});
    for arguments in [elsewhere, json!({"indexName": "hotels", "cursor": "MTA"})] {
        let error = talk.call("searchDocuments", arguments).await.unwrap_err();
        assert_eq!(error["error"], "invalid_request", "{error:#}");
    }
    // A request that is too long for a cursor is repeated together with it.
    let long = format!("motel {}", "x".repeat(20_000));
    let query = json!({"indexName": "hotels", "search": long, "limit": 2});
    let page = talk.call("searchDocuments", query.clone()).await.unwrap();
    assert!(page["note"].as_str().unwrap().contains("repeat"), "{page}");
    let mut next = query;
    next["cursor"] = page["nextCursor"].clone();
    let second = talk.call("searchDocuments", next.clone()).await.unwrap();
    assert!(keys(&page).iter().all(|key| !keys(&second).contains(key)));
    next["search"] = json!("other");
    talk.call("searchDocuments", next).await.unwrap_err();
}

#[tokio::test]
async fn the_next_request_of_a_service_that_stops_early_is_used() {
    let body = r#"{"@odata.nextLink": "http://secret/", "value": [{"@search.score": 1.0, "id": "1", "v": [1, 2, 3]}],
        "@search.nextPageParameters": {"search": "x", "skip": 1, "top": 20, "facets": ["a"]}}"#;
    let url = crate::failures::answering("200 OK", "", body).await;
    let limits = bindpost_mcp_openapi::UpstreamLimits::default();
    let mut talk = Talk::start(&server(crate::service::shared(&url, None, limits)), Era::Session).await;
    let mut page = talk.call("searchDocuments", json!({"indexName": "hotels", "search": "x"})).await.unwrap();
    // Its definition cannot be read, so only values that look like vectors are removed.
    assert_eq!(page["items"], json!([{"@search.score": 1.0, "id": "1", "v": [1, 2, 3]}]));
    for _ in 0..2 {
        assert_eq!(page["hasMore"], true);
        assert!(!page.to_string().contains("secret"), "{page}");
        let next = json!({"indexName": "hotels", "cursor": page["nextCursor"]});
        page = talk.call("searchDocuments", next).await.unwrap();
    }
}

#[tokio::test]
async fn vectors_are_omitted_unless_they_are_selected() {
    let service = Service::start().await;
    let mut talk = with_hotels(&service, Era::Alone, 5, 65_536).await;
    let vector = json!([{"kind": "vector", "vector": [3.0, 1.0, 0.5], "fields": "embedding", "k": 2}]);
    let found = json!({"indexName": "hotels", "vectorQueries": vector});
    let found = talk.call("searchDocuments", found).await.unwrap();
    assert_eq!(found["items"].as_array().unwrap().len(), 2);
    assert_eq!(found["omittedVectorFields"], json!(["embedding"]));
    assert!(found["items"][0].get("embedding").is_none());
    let named = json!({"indexName": "hotels", "vectorQueries": vector, "select": "id, embedding"});
    let named = talk.call("searchDocuments", named).await.unwrap();
    assert_eq!(named["items"][0]["embedding"].as_array().unwrap().len(), 3);
    assert!(named.get("omittedVectorFields").is_none());
    let one = talk.call("getDocument", json!({"indexName": "hotels", "key": "h001"})).await.unwrap();
    assert!(one.get("embedding").is_none() && one["omittedVectorFields"] == json!(["embedding"]), "{one}");
    let one = json!({"indexName": "hotels", "key": "h001", "select": ["embedding"]});
    let one = talk.call("getDocument", one).await.unwrap();
    assert_eq!(one, json!({"embedding": [1.0, 1.0, 0.5]}));
}

#[tokio::test]
async fn a_partial_response_is_reported() {
    let service = Service::start().await;
    let mut talk = with_hotels(&service, Era::Session, 5, 65_536).await;
    let query = json!({"indexName": "hotels", "search": "motel", "queryType": "semantic", "semanticConfiguration": "s"});
    let found = talk.call("searchDocuments", query).await;
    // The index has no semantic configuration, so the query is rejected.
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            assert_eq!(error["error"], "invalid_request", "{error:#}");
            let mut index = talk.call("getIndex", json!({"indexName": "hotels"})).await.unwrap();
            index["semantic"] = json!({"configurations": [{"name": "s", "prioritizedFields": {"prioritizedContentFields": [{"fieldName": "title"}]}}]});
            talk.call("createOrUpdateIndex", json!({"indexName": "hotels", "body": index})).await.unwrap();
            let query = json!({"indexName": "hotels", "search": "motel", "queryType": "semantic", "semanticConfiguration": "s"});
            talk.call("searchDocuments", query).await.unwrap()
        }
    };
    assert_eq!(found["partial"]["reason"], "capacityOverloaded", "{found}");
    assert_eq!(found["partial"]["results"], "baseResults");
    assert_eq!(found["items"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn documents_are_looked_up_counted_and_completed() {
    for era in ERAS {
        let service = Service::start().await;
        let mut talk = with_hotels(&service, era, 5, 65_536).await;
        let one = json!({"indexName": "hotels", "key": "h003", "select": "id,title"});
        let one = talk.call("getDocument", one).await.unwrap();
        assert_eq!(one, json!({"id": "h003", "title": "Motel number 3"}));
        let none = talk.call("getDocument", json!({"indexName": "hotels", "key": "no"})).await.unwrap_err();
        assert_eq!((&none["error"], &none["status"]), (&json!("resource_not_found"), &json!(404)));
        let count = talk.call("countDocuments", json!({"indexName": "hotels"})).await.unwrap();
        assert_eq!(count, json!({"count": 5}));
        let stats = talk.call("getIndexStats", json!({"indexName": "hotels"})).await.unwrap();
        assert_eq!(stats["documentCount"], 5);
        let suggested = json!({"indexName": "hotels", "search": "mot", "top": 2, "select": ["id"]});
        let suggested = talk.call("suggest", suggested).await.unwrap();
        assert_eq!(suggested["items"].as_array().unwrap().len(), 2);
        assert!(suggested["items"][0]["@search.text"].as_str().unwrap().starts_with("Motel"));
        let completed = json!({"indexName": "hotels", "search": "num", "suggesterName": "sg", "autocompleteMode": "oneTerm"});
        let completed = talk.call("autocomplete", completed).await.unwrap();
        assert_eq!(completed["items"][0]["text"], "number");
        let tokens = json!({"indexName": "hotels", "text": "The Motels", "analyzer": "en.lucene"});
        let tokens = talk.call("analyzeText", tokens).await.unwrap();
        assert_eq!(tokens["tokens"][0]["token"], "motel");
        let plain =
            talk.call("analyzeText", json!({"indexName": "hotels", "text": "The Motels"})).await.unwrap();
        assert_eq!(plain["tokens"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn agents_are_knowledge_bases_in_newer_versions() {
    let service = Service::start().await;
    let mut shared = service.shared();
    shared.client = SearchClient::new(shared.client.upstream().clone(), "2026-04-01");
    let mut talk = Talk::start(&server(shared), Era::Alone).await;
    let mut index = hotels("hotels");
    index["semantic"] = json!({"configurations": [{"name": "s", "prioritizedFields": {"prioritizedContentFields": [{"fieldName": "title"}]}}]});
    talk.call("createOrUpdateIndex", json!({"indexName": "hotels", "body": index})).await.unwrap();
    talk.call("uploadDocuments", json!({"indexName": "hotels", "documents": some_hotels(3)})).await.unwrap();
    let source = json!({"kind": "searchIndex", "searchIndexParameters": {"searchIndexName": "hotels"}});
    talk.call("createOrUpdateKnowledgeSource", json!({"sourceName": "source", "body": source}))
        .await
        .unwrap();
    let agent = json!({"knowledgeSources": [{"name": "source"}]});
    talk.call("createOrUpdateAgent", json!({"agentName": "agent", "body": agent})).await.unwrap();
    assert_eq!(talk.call("listAgents", json!({})).await.unwrap()["total"], 1);
    let answer =
        talk.call("retrieve", json!({"agentName": "agent", "query": "motel number 2"})).await.unwrap();
    assert!(answer["references"].is_array(), "{answer}");
}

#[tokio::test]
async fn a_missing_suggester_is_reported_with_a_fix() {
    let service = Service::start().await;
    let mut talk = Talk::start(&service.server(), Era::Session).await;
    let mut index = hotels("plain");
    index.as_object_mut().unwrap().remove("suggesters");
    talk.call("createOrUpdateIndex", json!({"indexName": "plain", "body": index})).await.unwrap();
    let error = talk.call("suggest", json!({"indexName": "plain", "search": "mo"})).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("no suggester"), "{error:#}");
}

#[tokio::test]
async fn the_result_of_a_batch_lists_each_document() {
    let service = Service::start().await;
    let mut talk = with_hotels(&service, Era::Alone, 2, 65_536).await;
    let batch = json!({"indexName": "hotels", "documents": [
        {"id": "h000", "rating": 5.0, "@search.action": "merge"},
        {"id": "missing", "rating": 5.0, "@search.action": "merge"},
        {"id": "new", "title": "A new one"},
    ]});
    let done = talk.call("uploadDocuments", batch).await.unwrap();
    assert_eq!((&done["succeeded"], &done["failed"]), (&json!(2), &json!(1)));
    let first = &done["items"][0];
    assert_eq!((&first["key"], &first["statusCode"]), (&json!("missing"), &json!(404)), "{done}");
    assert!(first["errorMessage"].is_string());
    let failed =
        json!({"indexName": "hotels", "action": "merge", "documents": [{"id": "missing", "rating": 1.0}]});
    let failed = talk.call("uploadDocuments", failed).await.unwrap_err();
    assert_eq!(failed["items"][0]["statusCode"], 404, "{failed:#}");
    let many = json!({"indexName": "hotels", "documents": vec![json!({"id": "x"}); 1001]});
    let many = talk.call("uploadDocuments", many).await.unwrap_err();
    assert!(many.as_str().unwrap().contains("/documents"), "{many}");
}

#[tokio::test]
async fn an_agent_answers_from_its_sources() {
    let service = Service::start().await;
    let mut talk = with_hotels(&service, Era::Session, 5, 65_536).await;
    let mut index = talk.call("getIndex", json!({"indexName": "hotels"})).await.unwrap();
    index["semantic"] = json!({"configurations": [{"name": "s", "prioritizedFields": {"prioritizedContentFields": [{"fieldName": "title"}]}}]});
    talk.call("createOrUpdateIndex", json!({"indexName": "hotels", "body": index})).await.unwrap();
    let source = json!({"kind": "searchIndex", "searchIndexParameters": {"searchIndexName": "hotels"}});
    talk.call("createOrUpdateKnowledgeSource", json!({"sourceName": "source", "body": source}))
        .await
        .unwrap();
    let agent = json!({"models": [], "knowledgeSources": [{"name": "source"}]});
    talk.call("createOrUpdateAgent", json!({"agentName": "agent", "body": agent})).await.unwrap();
    let answers = [
        json!({"agentName": "agent", "query": "motel number 3"}),
        json!({"agentName": "agent", "messages": [{"role": "user", "content": "motel number 3"}]}),
    ];
    for arguments in answers {
        let answer = talk.call("retrieve", arguments).await.unwrap();
        assert!(answer["response"].is_array() && answer["references"].is_array(), "{answer}");
    }
    let error = talk.call("retrieve", json!({"agentName": "agent"})).await.unwrap_err();
    assert_eq!(error["error"], "invalid_request");
}
