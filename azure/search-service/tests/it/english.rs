//! Tests of the English analyzer in an index: all forms of a word match, and stop words are ignored.

use serde_json::json;

use crate::engine::{Found, TestIndex};

fn index(analyzer: &str) -> TestIndex {
    let mut index = TestIndex::new(&json!({"name": "texts", "fields": [
        {"name": "id", "type": "Edm.String", "key": true, "searchable": false},
        {"name": "text", "type": "Edm.String", "analyzer": analyzer},
    ]}));
    index.upload([
        json!({"id": "running", "text": "She was running along the river"}),
        json!({"id": "runs", "text": "He runs a bakery with his daughters"}),
        json!({"id": "rabbit", "text": "A rabbit's burrow, and the rabbits in it"}),
        json!({"id": "the", "text": "The the the"}),
    ]);
    index
}

fn keys(found: Found) -> Vec<String> {
    let mut keys = found.keys;
    keys.sort();
    keys
}

#[test]
fn english_finds_all_forms_of_a_word() {
    for analyzer in ["en.lucene", "en.microsoft"] {
        let index = index(analyzer);
        for search in ["run", "runs", "running", "RUNNING", "\"running\""] {
            assert_eq!(
                keys(index.search(json!({"search": search}))),
                ["running", "runs"],
                "{analyzer}: {search}"
            );
        }
        for search in ["rabbit", "rabbits", "rabbit's", "burrows"] {
            assert_eq!(keys(index.search(json!({"search": search}))), ["rabbit"], "{analyzer}: {search}");
        }
    }
    let plain = index("standard.lucene");
    assert_eq!(keys(plain.search(json!({"search": "runs"}))), ["runs"]);
    assert_eq!(keys(plain.search(json!({"search": "run"}))), [""; 0]);
}

#[test]
fn english_ignores_stop_words() {
    let english = index("en.lucene");
    assert_eq!(keys(english.search(json!({"search": "the"}))), [""; 0]);
    // With searchMode all, an ignored word need not match.
    let all = json!({"search": "the rabbit and a burrow", "searchMode": "all"});
    assert_eq!(keys(english.search(all)), ["rabbit"]);
    let scores = |search: &str| english.search(json!({ "search": search })).scores;
    assert_eq!(scores("the running of the"), scores("running"));
    // Stop words keep their positions in a phrase.
    assert_eq!(keys(english.search(json!({"search": "\"along the river\""}))), ["running"]);
    assert_eq!(keys(english.search(json!({"search": "\"along river\""}))), [""; 0]);

    let plain = index("standard.lucene");
    assert_eq!(keys(plain.search(json!({"search": "the"}))), ["rabbit", "running", "the"]);
}

#[test]
fn a_word_within_a_filter_is_analyzed_as_the_field_is() {
    let english = index("en.lucene");
    let found =
        english.search(json!({"filter": "search.ismatch('the daughter runs', 'text', 'simple', 'all')"}));
    assert_eq!(keys(found), ["runs"]);
    // Whole values are compared unchanged.
    assert_eq!(keys(english.search(json!({"filter": "text eq 'the the the'"}))), [""; 0]);
    assert_eq!(keys(english.search(json!({"filter": "text eq 'The the the'"}))), ["the"]);
}
