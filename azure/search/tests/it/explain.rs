//! `explainSearch` against the embedded service.

use serde_json::{Value, json};

use crate::stage::{Stage, documents, hotels};

fn variant<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let variants = answer["variants"].as_array().unwrap();
    variants.iter().find(|variant| variant["name"] == name).unwrap_or_else(|| panic!("{name}: {answer:#}"))
}

fn reasons(answer: &Value) -> String {
    let reasons = answer["reasons"].as_array().unwrap();
    reasons.iter().map(|reason| reason.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn variants_are_compared_with_ranks_and_tokens() {
    let mut stage = Stage::start().await;
    stage.definition("explainSearch").await;
    let answer = stage
        .call("explainSearch", json!({"indexName": "hotels", "search": "beach hotels", "vector": [1, 0, 0]}))
        .await;
    let names: Vec<&str> = answer["variants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variant| variant["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["any", "all", "full", "profile:titles", "semantic", "vector", "hybrid"]);
    assert_eq!(
        (&variant(&answer, "any")["count"], &variant(&answer, "all")["count"]),
        (&json!(3), &json!(2)),
        "{answer:#}"
    );
    let hits = variant(&answer, "any")["hits"].as_array().unwrap();
    let grand = hits.iter().find(|hit| hit["key"] == "1").unwrap();
    assert_eq!(
        grand["highlight"],
        json!({"field": "title", "text": "Grand <em>hotels</em> by the <em>beach</em>"})
    );
    assert!(grand["score"].as_f64().unwrap() > 0.0);
    assert_eq!(hits[0]["rank"], 1);
    assert!(
        variant(&answer, "semantic")["note"].as_str().unwrap().contains("Semantic ranking was not applied")
    );
    assert_eq!(variant(&answer, "vector")["hits"][1]["key"], "4");
    assert_eq!(variant(&answer, "hybrid")["parameters"]["vectorQueries"][0]["vector"], "3 numbers");
    let four = answer["sideBySide"].as_array().unwrap().iter().find(|row| row["key"] == "4").unwrap();
    assert_eq!((&four["ranks"]["all"], &four["ranks"]["vector"]), (&Value::Null, &json!(2)), "{four}");
    let tokens = answer["tokens"].as_array().unwrap();
    let of = |analyzer: &str| tokens.iter().find(|group| group["analyzer"] == analyzer).unwrap();
    assert_eq!(of("en.lucene")["tokens"], json!(["beach", "hotel"]));
    assert_eq!(of("standard.lucene")["tokens"], json!(["beach", "hotels"]));
    assert_eq!(of("keyword")["tokens"], json!(["beach hotels"]));
    assert!(reasons(&answer).contains("searchMode all finds 2 of the 3"), "{}", reasons(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_document_is_the_first_reason() {
    let mut stage = Stage::start().await;
    for key in ["nope", "a/b c"] {
        let answer =
            stage.call("explainSearch", json!({"indexName": "hotels", "search": "beach", "key": key})).await;
        assert_eq!(answer["document"]["exists"], false, "{answer:#}");
        assert!(answer["reasons"][0].as_str().unwrap().starts_with("No document with the key"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_excludes_a_document_is_reported_with_its_values() {
    let mut stage = Stage::start().await;
    let answer = stage
        .call(
            "explainSearch",
            json!({"indexName": "hotels", "search": "beach", "key": "2", "filter": "rating ge 4 and open eq false"}),
        )
        .await;
    assert_eq!(answer["document"]["passesFilter"], false, "{answer:#}");
    assert_eq!(answer["reasons"][0], "The filter excludes it: in the document rating is 2.");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_and_modes_explain_a_missing_document() {
    let mut stage = Stage::start().await;
    let arguments =
        json!({"indexName": "hotels", "search": "beach motle", "key": "3", "variants": ["any", "all"]});
    let answer = stage.call("explainSearch", arguments).await;
    let told = reasons(&answer);
    assert!(told.contains("any: it does not match: no searched field"), "{told}");
    assert!(told.contains("all: it does not match: searchMode all requires every word, but"), "{told}");
    assert!(told.contains("motl~") || told.contains("motle~"), "{told}");
    assert_eq!(answer["document"]["variants"]["any"], json!({"rank": null, "matches": false}));
    let answer = stage
        .call(
            "explainSearch",
            json!({"indexName": "hotels", "search": "pool beach", "key": "4", "variants": ["all"]}),
        )
        .await;
    assert_eq!(answer["document"]["variants"]["all"]["rank"], 1, "{answer:#}");
    let matches = answer["document"]["matches"].as_array().unwrap();
    assert!(
        matches.iter().any(|one| one["field"] == "title" && one["matched"] == json!(["beach"])),
        "{answer:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rank_below_the_hits_shown_is_found() {
    let mut stage = Stage::start().await;
    let arguments = json!({"indexName": "hotels", "search": "beach", "key": "1", "top": 1,
        "variants": ["any", {"name": "titles only", "searchFields": "title"}]});
    let answer = stage.call("explainSearch", arguments).await;
    let told = reasons(&answer);
    assert!(told.contains("any: it matches, but ranks 3 of 3, below the hits shown."), "{told}");
    let arguments = json!({"indexName": "hotels", "search": "beach", "key": "2",
        "variants": [{"name": "titles only", "searchFields": "title,tags"}]});
    let told = reasons(&stage.call("explainSearch", arguments).await);
    assert!(
        told.contains("titles only: it does not match: no searched field contains a word of the query."),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_is_evaluated_locally_if_the_key_is_not_filterable() {
    let mut stage = Stage::bare(false).await;
    let mut definition = hotels("plain");
    definition["fields"][0]["filterable"] = json!(false);
    stage.index(definition).await;
    stage.upload("plain", documents()).await;
    let arguments = json!({"indexName": "plain", "search": "beach", "key": "3", "filter": "rating ge 2", "variants": ["any"]});
    let answer = stage.call("explainSearch", arguments).await;
    assert_eq!(answer["document"]["passesFilter"], false, "{answer:#}");
    assert_eq!(answer["reasons"][0], "The filter excludes it: in the document rating is 1.");
    let arguments = json!({"indexName": "plain", "search": "beach", "key": "1", "top": 1, "filter": "rating ge 2", "variants": ["any"]});
    let answer = stage.call("explainSearch", arguments).await;
    assert!(reasons(&answer).contains("ranks 3 of 3"), "{}", reasons(&answer));
    let arguments = json!({"indexName": "plain", "search": "beach", "key": "5", "variants": ["any"]});
    let answer = stage.call("explainSearch", arguments).await;
    assert_eq!(answer["document"]["variants"]["any"]["matches"], false, "{answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_variant_is_reported_and_an_invalid_request_fails() {
    let mut stage = Stage::start().await;
    let arguments = json!({"indexName": "hotels", "search": "beach", "variants": ["any", {"name": "odd", "scoringProfile": "nope"}]});
    let answer = stage.call("explainSearch", arguments).await;
    assert_eq!(variant(&answer, "odd")["refused"]["error"], "invalid_request");
    assert!(reasons(&answer).contains("odd was rejected: "));
    for (arguments, words) in [
        (json!({"indexName": "hotels", "search": "x", "filter": "nope eq 1"}), "nope"),
        (json!({"indexName": "hotels", "search": "x", "searchFields": ["titel"]}), "write title"),
        (json!({"indexName": "hotels", "search": "x", "variants": ["profile:x"]}), "titles"),
        (json!({"indexName": "hotels", "search": "x", "variants": ["vector"]}), "give `vector`"),
        (
            json!({"indexName": "hotels", "search": "x", "variants": ["hybrid"], "vector": [1]}),
            "vector has 3",
        ),
        (json!({"indexName": "nope", "search": "x"}), "resource_not_found"),
    ] {
        let told = stage.client.call("explainSearch", arguments).await.unwrap_err();
        assert!(told.to_string().contains(words), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vectorizable_text_is_tried_and_a_rejection_is_no_failure() {
    let mut stage = Stage::bare(false).await;
    let mut definition = hotels("vectorized");
    definition["vectorSearch"]["vectorizers"] = json!([{"name": "web", "kind": "customWebApi",
        "customWebApiParameters": {"uri": "https://vectors.example", "httpMethod": "POST"}}]);
    definition["vectorSearch"]["profiles"][0]["vectorizer"] = json!("web");
    stage.index(definition).await;
    stage.upload("vectorized", documents()).await;
    let answer = stage.call("explainSearch", json!({"indexName": "vectorized", "search": "beach"})).await;
    let query = &variant(&answer, "hybrid")["parameters"]["vectorQueries"][0];
    assert_eq!((&query["kind"], &query["text"]), (&json!("text"), &json!("beach")));
    assert_eq!(variant(&answer, "vector")["refused"]["code"], "NotSupportedByEmbeddedService");
    assert!(reasons(&answer).contains("vector: not supported by the embedded service. "));
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_cannot_be_compared_are_reported() {
    let mut stage = Stage::bare(false).await;
    stage
        .service
        .post("synonymmaps", json!({"name": "syn", "format": "solr", "synonyms": "motel,inn"}))
        .send()
        .await
        .unwrap();
    let mut definition = hotels("hidden");
    definition["fields"][1]["synonymMaps"] = json!(["syn"]);
    definition["fields"][2]["retrievable"] = json!(false);
    stage.index(definition).await;
    stage.upload("hidden", documents()).await;
    let arguments = json!({"indexName": "hidden", "search": "inn", "key": "3", "variants": ["any"]});
    let answer = stage.call("explainSearch", arguments).await;
    let told = reasons(&answer);
    assert!(told.contains("any: found at rank 1 of 1."), "{told}");
    assert!(told.contains("Synonym maps (syn) may match further words"), "{told}");
    assert!(told.contains("Not compared: ") && told.contains("text"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_results_are_cut_between_hits() {
    let mut stage = Stage::bare(false).await;
    stage.index(json!({"name": "many", "fields": [
        {"name": "id", "type": "Edm.String", "key": true}, {"name": "text", "type": "Edm.String", "filterable": false,
            "sortable": false, "facetable": false}]})).await;
    let text = format!("word {}", "further ".repeat(30));
    let documents = (0..60).map(|number| {
        json!({"@search.action": "upload", "text": text,
        "id": format!("{}-{number}", "k".repeat(200))})
    });
    stage.upload("many", documents.collect()).await;
    let variants: Vec<Value> =
        (0..12).map(|number| json!({"name": number.to_string(), "searchMode": "any"})).collect();
    let arguments = json!({"indexName": "many", "search": "word", "top": 50, "variants": variants});
    let answer = stage.call("explainSearch", arguments).await;
    assert!(answer.to_string().len() <= 64 * 1024, "{}", answer.to_string().len());
    let first = variant(&answer, "0");
    let shown = first["hits"].as_array().unwrap().len();
    assert!(shown > 0);
    assert_eq!(first["hitsLeftOff"], 50 - shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_excludes_all_matches_is_not_reported_as_missing_words() {
    let mut stage = Stage::start().await;
    let arguments = json!({"indexName": "hotels", "search": "beach", "filter": "rating gt 100"});
    let told = reasons(&stage.call("explainSearch", arguments).await);
    assert!(told.contains("No document that matches the filter contains any of the words"), "{told}");
    assert!(told.contains("without the filter 3 documents do."), "{told}");
    let arguments = json!({"indexName": "hotels", "search": "zebra", "filter": "rating gt 100"});
    let told = reasons(&stage.call("explainSearch", arguments).await);
    assert!(told.contains("No document contains any of the words."), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_reported_as_written() {
    let mut stage = Stage::start().await;
    let arguments =
        json!({"indexName": "hotels", "search": "easy lake hotels", "key": "1", "variants": ["all"]});
    let told = reasons(&stage.call("explainSearch", arguments).await);
    assert!(told.contains("Words in no searched field: easy (easi), lake."), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_needs_a_missing_parameter_is_skipped() {
    let mut stage = Stage::bare(false).await;
    let mut definition = hotels("tagged");
    let profile = json!({"name": "mine", "functions": [
        {"type": "tag", "fieldName": "tags", "boost": 5, "tag": {"tagsParameter": "liked"}}]});
    definition["scoringProfiles"].as_array_mut().unwrap().push(profile);
    stage.index(definition).await;
    stage.upload("tagged", documents()).await;
    let answer = stage.call("explainSearch", json!({"indexName": "tagged", "search": "beach"})).await;
    let told = reasons(&answer);
    assert!(told.contains("need scoringParameters: mine (liked)."), "{told}");
    assert!(!told.contains("refused") && !answer.to_string().contains("profile:mine"), "{answer:#}");
    let arguments = json!({"indexName": "tagged", "search": "beach", "scoringParameters": ["liked-pool"]});
    let answer = stage.call("explainSearch", arguments).await;
    assert!(variant(&answer, "profile:mine")["count"].is_u64(), "{answer:#}");
}
