//! Tests of retrieve requests: what grounds an answer, what is source data, and the formats of the API versions.

use serde_json::{Value, json};

use crate::whole::WholeService;

const BASES: &str = "2026-04-01";
const AGENTS: &str = "2025-08-01-preview";
const TARGETS: &str = "2025-05-01-preview";

/// A service with an index of hotels, whose semantic configuration has a title, keywords and two content fields.
async fn hotels(semantic: Value) -> WholeService {
    let service = WholeService::start().await;
    let index = json!({
        "name": "hotels",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "name", "type": "Edm.String"},
            {"name": "about", "type": "Edm.String"},
            {"name": "tags", "type": "Collection(Edm.String)"},
            {"name": "address", "type": "Edm.ComplexType", "fields": [{"name": "city", "type": "Edm.String"}]},
            {"name": "secret", "type": "Edm.String", "retrievable": false},
            {"name": "category", "type": "Edm.String"},
        ],
        "semantic": semantic,
    });
    service.ask("POST", "/indexes", BASES, Some(index), 201).await;
    let batch = json!({"value": [
        {"id": "1", "name": "Roach Motel", "about": "Cheap and quiet.", "tags": ["wifi", "parking"],
         "address": {"city": "Berlin"}, "secret": "bugs", "category": "Budget"},
        {"id": "2", "name": "Grand Hotel", "about": "A palace.", "tags": [], "category": "Luxury"},
    ]});
    service.ask("POST", "/indexes/hotels/docs/index", BASES, Some(batch), 200).await;
    service
}

fn semantic() -> Value {
    let field = |path: &str| json!({"fieldName": path});
    json!({"defaultConfiguration": "main", "configurations": [
        {"name": "main", "prioritizedFields": {
            "titleField": field("name"),
            "prioritizedContentFields": [field("about"), field("address/city"), field("secret")],
            "prioritizedKeywordsFields": [field("tags")]}},
        {"name": "other", "prioritizedFields": {"titleField": field("category")}},
    ]})
}

/// Creates a knowledge source and a base with it.
async fn base(service: &WholeService, parameters: Value) {
    let mut search_index = json!({"searchIndexName": "hotels"});
    search_index.as_object_mut().unwrap().extend(parameters.as_object().unwrap().clone());
    let source = json!({"name": "places", "kind": "searchIndex", "searchIndexParameters": search_index});
    service.ask("PUT", "/knowledgesources/places", BASES, Some(source), 201).await;
    let base = json!({"name": "guide", "knowledgeSources": [{"name": "places"}]});
    service.ask("PUT", "/knowledgebases/guide", BASES, Some(base), 201).await;
}

fn intent(search: &str) -> Value {
    json!({"intents": [{"type": "semantic", "search": search}]})
}

async fn retrieve(service: &WholeService, request: Value) -> Value {
    service.ask("POST", "/knowledgebases/guide/retrieve", BASES, Some(request), 200).await.json()
}

/// Returns the passages in the text of a response.
fn passages(response: &Value) -> Value {
    serde_json::from_str(response["response"][0]["content"][0]["text"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn an_answer_has_the_title_the_terms_and_the_content_of_the_semantic_configuration() {
    let service = hotels(semantic()).await;
    base(&service, json!({"sourceDataFields": [{"name": "id"}, {"name": "category"}]})).await;
    let response = retrieve(&service, intent("motel")).await;
    assert_eq!(
        passages(&response),
        json!([{"ref_id": 0, "title": "Roach Motel", "terms": "wifi, parking", "content": "Cheap and quiet.\nBerlin"}])
    );
    let reference = &response["references"][0];
    assert_eq!(reference["sourceData"], json!({"id": "1", "category": "Budget"}), "{response}");
    assert_eq!(reference["docKey"], "1");
    assert_eq!(response["response"][0].get("role"), None);
    service.end().await;
}

#[tokio::test]
async fn a_source_can_name_its_semantic_configuration_and_its_search_fields() {
    let service = hotels(semantic()).await;
    let fields = json!({"semanticConfigurationName": "other", "searchFields": [{"name": "about"}]});
    base(&service, fields).await;
    assert_eq!(passages(&retrieve(&service, intent("motel")).await), json!([]));
    let response = retrieve(&service, intent("palace")).await;
    assert_eq!(passages(&response), json!([{"ref_id": 0, "title": "Luxury", "content": ""}]));
    // Without fields, the source data are all fields that can be returned.
    assert_eq!(response["references"][0]["sourceData"]["name"], "Grand Hotel");
    assert_eq!(response["references"][0]["sourceData"].get("secret"), None);
    service.end().await;
}

#[tokio::test]
async fn a_request_can_leave_out_references_source_data_and_activity() {
    let service = hotels(semantic()).await;
    base(&service, json!({})).await;
    let with = |parameters: Value| {
        let mut own = json!({"knowledgeSourceName": "places", "kind": "searchIndex"});
        own.as_object_mut().unwrap().extend(parameters.as_object().unwrap().clone());
        json!({"intents": [{"type": "semantic", "search": "motel hotel"}], "knowledgeSourceParams": [own]})
    };
    let plain = retrieve(&service, with(json!({"includeReferenceSourceData": false}))).await;
    assert_eq!(
        (&plain["references"][1]["docKey"], &plain["references"][1]["sourceData"]),
        (&json!("2"), &Value::Null)
    );
    let bare = retrieve(&service, with(json!({"includeReferences": false}))).await;
    assert_eq!((&bare["references"], passages(&bare).as_array().unwrap().len()), (&json!([]), 2));
    let filtered = retrieve(&service, with(json!({"filterAddOn": "category eq 'Luxury'"}))).await;
    assert_eq!(passages(&filtered)[0]["title"], "Grand Hotel");
    assert_eq!(filtered["activity"][0]["searchIndexArguments"]["filter"], "category eq 'Luxury'");
    let mut silent = intent("motel");
    silent["includeActivity"] = json!(false);
    assert_eq!(retrieve(&service, silent).await["activity"], json!([]));
    service.end().await;
}

#[tokio::test]
async fn without_a_semantic_configuration_the_content_has_all_texts() {
    let service = hotels(Value::Null).await;
    base(&service, json!({})).await;
    let found = passages(&retrieve(&service, intent("motel")).await);
    assert_eq!(found[0]["content"], "1\nRoach Motel\nCheap and quiet.\nwifi\nparking\nBerlin\nBudget");
    assert_eq!(found[0].get("title"), None);
    service.end().await;
}

#[tokio::test]
async fn a_base_without_sources_finds_nothing() {
    let service = hotels(semantic()).await;
    let base = json!({"name": "empty", "knowledgeSources": []});
    service.ask("POST", "/knowledgebases", BASES, Some(base), 201).await;
    let answer =
        service.ask("POST", "/knowledgebases/empty/retrieve", BASES, Some(intent("motel")), 200).await;
    assert_eq!(passages(&answer.json()), json!([]));
    service.end().await;
}

#[tokio::test]
async fn every_version_has_its_format() {
    let service = hotels(semantic()).await;
    base(&service, json!({})).await;
    let question = json!({"messages": [
        {"role": "assistant", "content": [{"type": "text", "text": "You answer questions about hotels."}]},
        {"role": "user", "content": [{"type": "text", "text": "Where is the motel?"}]},
    ]});
    let agent =
        service.ask("POST", "/agents/guide/retrieve", AGENTS, Some(question.clone()), 200).await.json();
    assert_eq!(
        (&agent["response"][0]["role"], &agent["activity"][0]["type"]),
        (&json!("assistant"), &json!("searchIndex"))
    );
    assert_eq!(passages(&agent)[0]["title"], "Roach Motel");

    let old = json!({"name": "old", "models": [], "targetIndexes":
        [{"indexName": "hotels", "defaultIncludeReferenceSourceData": false}]});
    service.ask("PUT", "/agents('old')", TARGETS, Some(old), 201).await;
    let mut asked = question;
    asked["targetIndexParams"] = json!([{"indexName": "hotels", "filterAddOn": "category eq 'Budget'"}]);
    let found = service.ask("POST", "/agents('old')/retrieve", TARGETS, Some(asked), 200).await.json();
    assert_eq!(
        found["references"],
        json!([{"type": "AzureSearchDoc", "id": "0", "activitySource": 0, "docKey": "1", "sourceData": null}])
    );
    let step = &found["activity"][0];
    assert_eq!(
        (&step["type"], &step["targetIndex"]),
        (&json!("AzureSearchQuery"), &json!("hotels")),
        "{found}"
    );
    assert_eq!(step["query"], json!({"search": "Where is the motel?", "filter": "category eq 'Budget'"}));
    service.end().await;
}
