//! `profileIndex` against the embedded service.

use serde_json::{Value, json};

use crate::stage::Stage;

fn field<'a>(profile: &'a Value, name: &str) -> &'a Value {
    profile["fields"].as_array().unwrap().iter().find(|field| field["name"] == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_have_fill_rates_values_ranges_and_vectors() {
    let mut stage = Stage::start().await;
    stage.definition("profileIndex").await;
    let profile = stage.call("profileIndex", json!({"indexName": "hotels"})).await;
    assert_eq!(
        (&profile["documents"], &profile["sampled"], &profile["key"]),
        (&json!(5), &json!(5), &json!("id"))
    );
    assert_eq!(profile["note"], "All documents were read.");
    assert_eq!(profile["scoringProfiles"], json!(["titles"]));
    assert_eq!(profile["suggesters"], json!(["sg"]));
    assert_eq!(profile["semanticConfigurations"], json!(["words"]));
    let category = field(&profile, "category");
    assert_eq!(
        (&category["distinct"], &category["distinctOf"]),
        (&json!("3"), &json!("index")),
        "{category:#}"
    );
    assert_eq!(category["topValues"].as_array().unwrap().len(), 3);
    let rating = field(&profile, "rating");
    assert_eq!((&rating["min"], &rating["max"], &rating["fillRate"]), (&json!(1), &json!(5), &json!(1.0)));
    let opened = field(&profile, "opened");
    assert!(opened["min"].as_str().unwrap().starts_with("2010-06-01"), "{opened}");
    assert_eq!(field(&profile, "tags")["fillRate"], 0.8);
    assert_eq!(field(&profile, "never")["fillRate"], 0.0);
    assert_eq!(field(&profile, "rooms/rate")["fillRate"], 1.0);
    let title = field(&profile, "title");
    assert_eq!((&title["analyzer"], &title["semantic"]), (&json!("en.lucene"), &json!(true)));
    assert_eq!(title["length"]["max"], "Grand hotels by the beach".len());
    let vector = field(&profile, "vector");
    assert_eq!((&vector["dimensions"], &vector["vectorsMissing"]), (&json!(3), &json!(1)), "{vector:#}");
    let hints = profile["hints"].to_string();
    for words in
        ["no description", "never: filterable", "1 of 5 documents have no vector", "vectors are retrievable"]
    {
        assert!(hints.contains(words), "{words}: {hints}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_is_marked_as_one_and_hints_need_enough_documents() {
    let mut stage = Stage::bare(false).await;
    stage
        .index(json!({"name": "many", "description": "Numbers.", "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "code", "type": "Edm.String"},
            {"name": "same", "type": "Edm.String"},
            {"name": "prose", "type": "Edm.String", "analyzer": "keyword", "filterable": false, "facetable": false,
                "sortable": false}
        ]}))
        .await;
    let documents = (0..150).map(|number| {
        json!({"@search.action": "upload", "id": number.to_string(), "code": format!("c{number}"), "same": "x",
            "prose": "eight words are enough to be prose here now"})
    });
    stage.upload("many", documents.collect()).await;
    let profile = stage
        .call("profileIndex", json!({"indexName": "many", "sample": 120, "clientRequestId": "me"}))
        .await;
    assert_eq!((&profile["documents"], &profile["sampled"]), (&json!(150), &json!(120)), "{profile:#}");
    assert!(profile["note"].as_str().unwrap().contains("A sample"));
    assert_eq!(profile["clientRequestId"], "me");
    let hints = profile["hints"].to_string();
    for words in
        ["code: facetable with 150 values", "same: the same value", "prose: prose with the analyzer keyword"]
    {
        assert!(hints.contains(words), "{words}: {hints}");
    }
    assert!(!hints.contains("no description"), "{hints}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profile_is_a_resource_too() {
    let mut stage = Stage::start().await;
    let read = stage
        .client
        .request("resources/read", json!({"uri": "search://indexes/hotels/profile"}))
        .await
        .unwrap();
    assert_eq!(read["contents"][0]["mimeType"], "application/json");
    let profile: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(profile["documents"], 5);
    let missing =
        stage.client.request("resources/read", json!({"uri": "search://indexes/nope/profile"})).await;
    assert!(missing.unwrap_err().to_string().contains("resource_not_found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_is_resolved_and_an_empty_index_is_no_failure() {
    let mut stage = Stage::bare(false).await;
    stage
        .index(json!({"name": "empty", "fields": [{"name": "id", "type": "Edm.String", "key": true}]}))
        .await;
    stage.service.post("aliases", json!({"name": "other", "indexes": ["empty"]})).send().await.unwrap();
    let profile = stage.call("profileIndex", json!({"indexName": "other"})).await;
    assert_eq!((&profile["index"], &profile["documents"]), (&json!("empty"), &json!(0)));
    assert!(profile["hints"].to_string().contains("empty"));
}
