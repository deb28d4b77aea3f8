use bindpost_azure_search_model::definition::{FieldType, PrimitiveType};
use serde_json::json;
use tantivy::collector::TopDocs;

use super::*;
use crate::engine::testing::{TestIndex, field, words};

fn index() -> TestIndex {
    let fields = vec![
        field("name", FieldType::One(PrimitiveType::String)),
        field("tags", FieldType::Many(PrimitiveType::String)),
    ];
    let documents = [
        json!({"id": "0", "name": "Best hotel in town", "tags": ["big pool"]}),
        json!({"id": "1", "name": "Hostel on the hill", "tags": ["hot tub", "bar"]}),
        json!({"id": "2", "name": "The Motel", "tags": []}),
    ];
    TestIndex::new(fields, &["name", "tags"], &documents, 10)
}

fn typed(search: &str, fuzzy: bool) -> TypedWords {
    TypedWords::parse(search, &mut words(), fuzzy).unwrap()
}

/// Returns the matching documents, the best first.
fn found(search: &str, fuzzy: bool) -> Vec<u32> {
    let index = index();
    let columns: Vec<Column> =
        ["name", "tags"].iter().filter_map(|path| index.columns.for_field(path).suggest).collect();
    let query = suggest_query(&typed(search, fuzzy), &columns, &crate::budget::Budget::unlimited());
    let top = index.searcher().search(&query, &TopDocs::with_limit(10).order_by_score()).unwrap();
    top.into_iter().map(|(_, address)| address.doc_id).collect()
}

fn sorted(mut docs: Vec<u32>) -> Vec<u32> {
    docs.sort_unstable();
    docs
}

#[test]
fn the_last_word_is_a_prefix_and_the_others_are_whole() {
    assert_eq!(sorted(found("ho", false)), [0, 1]);
    assert_eq!(found("best ho", false), [0]);
    assert_eq!(found("BEST tow", false), [0]);
    assert!(found("bes hotel", false).is_empty());
}

#[test]
fn all_words_must_be_in_one_field() {
    assert!(found("hotel pool", false).is_empty());
    assert_eq!(found("hot tu", false), [1]);
}

#[test]
fn mistakes_are_allowed_when_fuzzy_and_rank_below() {
    assert!(found("hitel", false).is_empty());
    assert_eq!(found("hitel", true), [0]);
    let all = found("hotel", true);
    assert_eq!((all[0], sorted(all)), (0, vec![0, 1, 2]));
    assert!(found("xo", true).is_empty());
}

#[test]
fn punctuation_alone_finds_nothing() {
    assert!(found("!?", false).is_empty());
    assert!(TypedWords::parse("", &mut words(), false).is_err());
    assert!(TypedWords::parse(&"x".repeat(101), &mut words(), false).is_err());
}

#[test]
fn shows_the_first_value_that_has_all_words() {
    let tags = HighlightTags { before: "<b>".to_owned(), after: "</b>".to_owned() };
    let show = |search, fuzzy, values: &[&str]| {
        typed(search, fuzzy).display_text(values.iter().copied(), &mut words(), Some(&tags))
    };
    assert_eq!(show("best ho", false, &["Best hotel in town"]).unwrap(), "<b>Best</b> <b>ho</b>tel in town");
    assert_eq!(show("hitel", true, &["Best Hotel in town"]).unwrap(), "Best <b>Hotel</b> in town");
    assert_eq!(show("hot tu", false, &["hot", "Hot tub"]).unwrap(), "<b>Hot</b> <b>tu</b>b");
    assert_eq!(show("hot tu", false, &["hot", "a tub"]).unwrap(), "<b>hot</b>");
    assert_eq!(show("xyz", false, &["hot"]), None);
    assert_eq!(typed("to", false).display_text(["A town "], &mut words(), None).unwrap(), "A town ");
}

#[test]
fn one_mistake_is_accepted_and_two_are_not() {
    let near = |typed, token| closeness(typed, token, false, true) == Closeness::Near;
    for token in ["hotel", "hotl", "hotell", "hitel", "ohtel", "hoetl", "otel"] {
        assert!(near("hotel", token), "{token}");
    }
    for token in ["hot", "hitell", "othel", "hostels", ""] {
        assert!(!near("hotel", token), "{token}");
    }
    assert_eq!(closeness("mod", "motel", true, true), Closeness::Near);
    assert_eq!(closeness("mod", "modern", true, true), Closeness::Start);
    assert_eq!(closeness("mod", "xxdern", true, true), Closeness::Far);
}

#[test]
fn fields_and_top_are_checked() {
    let sources = ["name".to_owned(), "tags".to_owned()];
    assert_eq!(source_fields(None, &sources).unwrap(), sources);
    assert_eq!(source_fields(Some("tags, tags"), &sources).unwrap(), ["tags"]);
    assert!(source_fields(Some("id"), &sources).unwrap_err().message.contains("'id'"));
    assert_eq!(result_limit("top", None).unwrap(), 5);
    assert!(result_limit("top", Some(0)).is_err() && result_limit("top", Some(101)).is_err());
}
