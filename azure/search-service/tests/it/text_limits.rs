//! Tests of search texts that exceed the limits, in searches and in filters.

use serde_json::json;

use crate::engine::TestIndex;

#[test]
fn texts_within_a_filter_are_limited_as_search_texts_are() {
    let mut index = TestIndex::new(&json!({"name": "texts", "fields": [
        {"name": "id", "type": "Edm.String", "key": true, "searchable": false},
        {"name": "text", "type": "Edm.String"},
    ]}));
    index.upload([json!({"id": "1", "text": "run along the river"})]);
    let refused = |body| {
        let error = index.try_search(body).err().unwrap();
        assert_eq!(error.status, 400, "{error}");
        error.message
    };
    let long = format!("\"{}\"", "run ".repeat(1_025));
    assert!(refused(json!({ "search": long })).contains("1024"));
    assert!(refused(json!({"filter": format!("search.ismatch('{long}')")})).contains("1024"));
    // Each text is within the limits, but all of them together are not.
    let some = format!("search.ismatch('{}')", "run ".repeat(1_000));
    assert_eq!(index.search(json!({ "filter": some })).keys, ["1"]);
    let many = vec![some; 33].join(" or ");
    assert!(refused(json!({ "filter": many })).contains("32768 terms"));
}

#[test]
fn n_grams_of_a_long_word_are_rejected_in_searches() {
    let mut index = TestIndex::new(&json!({
        "name": "texts",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true, "searchable": false},
            {"name": "text", "type": "Edm.String", "analyzer": "grams"},
        ],
        "analyzers": [{
            "@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer", "name": "grams", "tokenizer": "keyword",
            "tokenFilters": ["all"],
        }],
        "tokenFilters": [{
            "@odata.type": "#Microsoft.Azure.Search.NGramTokenFilterV2", "name": "all", "minGram": 1,
            "maxGram": 300,
        }],
    }));
    index.upload([json!({"id": "1", "text": "river"})]);
    assert_eq!(index.search(json!({"search": "rive"})).keys, ["1"]);
    let error = index.try_search(json!({"search": "ab".repeat(50_000)})).err().unwrap();
    assert!(error.message.contains("32768 terms"), "{error}");
}
