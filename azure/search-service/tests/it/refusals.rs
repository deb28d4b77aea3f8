//! What is refused as a whole, so that nobody relies on what is not there.

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
fn a_synonym_map_that_does_not_exist_is_missed_where_it_counts() {
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
fn a_batch_with_a_document_without_a_proper_key_is_refused_and_nothing_of_it_is_kept() {
    let index = index();
    for (bad, hint) in [(json!({"text": "x"}), "key cannot be missing"), (json!({"id": "a/b"}), "'a/b'")] {
        let batch = json!({"value": [{"id": "2"}, bad, {"id": "3"}]}).to_string();
        let error = index.index().apply_batch(batch.as_bytes()).unwrap_err();
        assert!(error.status == 400 && error.message.contains("actions : 1:"), "{error}");
        assert!(error.message.contains(hint), "{error}");
        assert_eq!(index.snapshot().documents.count().unwrap(), 1);
        // An indexer cannot correct its source: it leaves out what does not fit.
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
fn a_list_is_no_batch() {
    let error = index().index().apply_batch(br#"[[{"id": "2"}]]"#).unwrap_err();
    assert!(error.status == 400 && error.message.contains("no JSON object"), "{error}");
}

#[test]
fn a_deleted_index_is_gone_for_batches_and_still_there_for_searches_under_way() {
    let index = index();
    let before = index.snapshot();
    index.index().apply_batch(br#"{"value": [{"id": "2"}]}"#).unwrap();
    index.index().close();
    assert_eq!(index.index().apply_batch(br#"{"value": [{"id": "3"}]}"#).unwrap_err().status, 404);
    assert_eq!(index.index().snapshot().map(|_| ()).unwrap_err().status, 404);
    assert_eq!(before.searcher.num_docs(), 1);
}
