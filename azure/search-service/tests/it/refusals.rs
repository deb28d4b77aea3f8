//! Tests of requests that are rejected as a whole, so that clients do not rely on missing features.

use serde_json::json;

use crate::engine::TestIndex;

fn index() -> TestIndex {
    let mut index = TestIndex::new(&json!({
        "name": "things",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "text", "type": "Edm.String", "synonymMaps": ["words"]},
            {"name": "plain", "type": "Edm.String"},
        ],
        "semantic": {
            "configurations": [
                {"name": "known", "prioritizedFields": {"prioritizedContentFields": [{"fieldName": "text"}]}},
            ],
        },
    }));
    index.upload([json!({"id": "1", "text": "car", "plain": "car"})]);
    index
}

#[test]
fn a_missing_synonym_map_is_an_error_in_fields_that_use_it() {
    let index = index();
    let error = index.try_search(json!({"search": "car"})).unwrap_err();
    assert!(error.status == 400 && error.message.contains("'words'"), "{error}");
    assert_eq!(index.search(json!({"search": "car", "searchFields": "plain"})).keys, ["1"]);
    assert_eq!(index.search(json!({"search": "*"})).keys, ["1"]);
}

#[test]
fn a_semantic_configuration_must_exist() {
    let index = index();
    let search = |name: &str| {
        index.try_search(json!({"search": "*", "queryType": "semantic", "semanticConfiguration": name}))
    };
    assert!(search("known").is_ok());
    let error = search("unknown").unwrap_err();
    assert!(error.status == 400 && error.message.contains("'unknown'"), "{error}");
}

#[test]
fn answers_captions_and_hybrid_search_are_checked() {
    let index = index();
    for (member, value) in [
        ("answers", json!("none")),
        ("answers", json!("extractive|count-3,threshold-0.9")),
        ("answers", json!("extractive")),
        ("captions", json!("extractive|highlight-false")),
        ("captions", json!("none")),
        ("hybridSearch", json!({"maxTextRecallSize": 100, "countAndFacetMode": "countAllResults"})),
    ] {
        index.search(json!({"search": "*", member: value}));
    }
    for (member, value, hint) in [
        ("answers", json!("generative"), "'answers' must be none, extractive or"),
        ("answers", json!("extractive|top-3"), "not 'extractive|top-3'"),
        ("answers", json!("extractive|count-many"), "'answers' must be"),
        ("answers", json!(3), "'answers' of the request must be"),
        ("captions", json!("extractive|highlight-yes"), "'captions' must be none, extractive or"),
        ("captions", json!("extractive|count-3"), "'captions' must be"),
        (
            "hybridSearch",
            json!({"maxTextRecallSize": 0}),
            "'hybridSearch.maxTextRecallSize' of the request must be",
        ),
        ("hybridSearch", json!({"maxRecall": 5}), "'hybridSearch.maxRecall' of the request is unknown"),
        (
            "hybridSearch",
            json!({"countAndFacetMode": "all"}),
            "'hybridSearch.countAndFacetMode' of the request must be one of",
        ),
        ("hybridSearch", json!(true), "'hybridSearch' of the request must be an object"),
    ] {
        let error = index.try_search(json!({"search": "*", member: value})).unwrap_err();
        assert!(error.status == 400 && error.message.contains(hint), "{member}: {error}");
    }
}

#[test]
fn a_batch_with_an_invalid_key_is_rejected_as_a_whole() {
    let index = index();
    for (bad, hint) in [(json!({"text": "x"}), "key cannot be missing"), (json!({"id": "a/b"}), "'a/b'")] {
        let batch = json!({"value": [{"id": "2"}, bad, {"id": "3"}]}).to_string();
        let error = index.index().apply_batch(batch.as_bytes()).unwrap_err();
        assert!(error.status == 400 && error.message.contains("actions : 1:"), "{error}");
        assert!(error.message.contains(hint), "{error}");
        assert_eq!(index.snapshot().documents.count().unwrap(), 1);
        // An indexer cannot correct its source, so invalid documents are rejected one by one.
        let outcomes = index.index().apply_valid_items(batch.as_bytes()).unwrap();
        assert_eq!(
            outcomes.iter().map(|outcome| outcome.status.as_u16()).collect::<Vec<_>>(),
            [201, 400, 201]
        );
        let batch = json!({"value": [{"@search.action": "delete", "id": "2"}, {"@search.action": "delete", "id": "3"}]});
        index.index().apply_batch(batch.to_string().as_bytes()).unwrap();
    }
}

#[test]
fn a_list_is_not_a_batch() {
    let error = index().index().apply_batch(br#"[[{"id": "2"}]]"#).unwrap_err();
    assert!(error.status == 400 && error.message.contains("not a JSON object"), "{error}");
}

#[test]
fn a_deleted_index_rejects_batches_and_serves_running_searches() {
    let index = index();
    let before = index.snapshot();
    index.index().apply_batch(br#"{"value": [{"id": "2"}]}"#).unwrap();
    index.index().close();
    assert_eq!(index.index().apply_batch(br#"{"value": [{"id": "3"}]}"#).unwrap_err().status, 404);
    assert_eq!(index.index().snapshot().map(|_| ()).unwrap_err().status, 404);
    assert_eq!(before.searcher.num_docs(), 1);
}
