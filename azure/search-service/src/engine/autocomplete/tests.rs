use bindpost_azure_search_model::definition::{FieldType, PrimitiveType};
use serde_json::json;
use tantivy::IndexWriter;
use tantivy::query::TermQuery;

use super::*;
use crate::engine::testing::{TestIndex, field, words};

fn index(per_segment: usize) -> TestIndex {
    let fields = vec![
        field("name", FieldType::One(PrimitiveType::String)),
        field("tags", FieldType::Many(PrimitiveType::String)),
    ];
    let documents = [
        json!({"id": "0", "name": "Very popular hotel", "tags": ["pool", "modern stay"]}),
        json!({"id": "1", "name": "Very polite staff", "tags": ["pool"]}),
        json!({"id": "2", "name": "Small motel", "tags": ["pool", "police station"]}),
    ];
    TestIndex::new(fields, &["name", "tags"], &documents, per_segment)
}

struct Request<'a> {
    mode: AutocompleteMode,
    fuzzy: bool,
    filter: Option<&'a dyn Query>,
    top: usize,
    tags: Option<HighlightTags>,
}

const PLAIN: Request<'static> =
    Request { mode: AutocompleteMode::OneTerm, fuzzy: false, filter: None, top: 5, tags: None };

fn ask(index: &TestIndex, search: &str, request: &Request<'_>) -> Vec<Completion> {
    let fields: Vec<FieldColumns> =
        ["name", "tags"].iter().map(|path| index.columns.for_field(path)).collect();
    let words = TypedWords::parse(search, &mut words(), request.fuzzy).unwrap();
    let Request { mode, filter, top, tags, .. } = request;
    let budget = crate::budget::Budget::unlimited();
    autocomplete(&index.searcher(), &fields, &words, *mode, *filter, *top, tags.as_ref(), &budget).unwrap()
}

fn texts(search: &str, request: &Request<'_>) -> Vec<String> {
    let one = ask(&index(10), search, request);
    assert_eq!(one, ask(&index(1), search, request), "the number of segments must not change the result");
    one.into_iter().map(|completion| completion.text).collect()
}

#[test]
fn completes_the_last_word_the_most_frequent_first() {
    assert_eq!(texts("po", &PLAIN), ["pool", "police", "polite", "popular"]);
    assert_eq!(texts("po", &Request { top: 2, ..PLAIN }), ["pool", "police"]);
    assert!(texts("xyz", &PLAIN).is_empty() && texts("?", &PLAIN).is_empty());
}

#[test]
fn earlier_words_stay_as_typed() {
    let found = ask(&index(2), "A  BIG ho", &PLAIN);
    assert_eq!(found, [Completion { text: "hotel".to_owned(), query_plus_text: "A  BIG hotel".to_owned() }]);
    assert_eq!(
        serde_json::to_value(&found[0]).unwrap(),
        json!({"text": "hotel", "queryPlusText": "A  BIG hotel"})
    );
}

#[test]
fn two_terms_are_adjacent_and_last_words_are_completed_alone() {
    let two = Request { mode: AutocompleteMode::TwoTerms, ..PLAIN };
    assert_eq!(texts("po", &two), ["police station", "polite staff", "popular hotel", "pool"]);
    assert_eq!(texts("po", &Request { top: 3, ..two }), ["police station", "polite staff", "popular hotel"]);
}

#[test]
fn context_is_the_word_before() {
    let context = Request { mode: AutocompleteMode::OneTermWithContext, ..PLAIN };
    let found = ask(&index(2), "looking for Very po", &context);
    let pair =
        |text: &str, query: &str| Completion { text: text.to_owned(), query_plus_text: query.to_owned() };
    assert_eq!(
        found,
        [pair("very polite", "looking for Very polite"), pair("very popular", "looking for Very popular")]
    );
    assert_eq!(texts("po", &context), texts("po", &PLAIN));
}

#[test]
fn mistakes_rank_below_exact_beginnings() {
    assert!(texts("mpd", &PLAIN).is_empty());
    assert_eq!(texts("mod", &Request { fuzzy: true, ..PLAIN }), ["modern", "motel"]);
    let context = Request { mode: AutocompleteMode::OneTermWithContext, fuzzy: true, ..PLAIN };
    assert_eq!(texts("vary polit", &context), ["very polite"]);
}

#[test]
fn tags_surround_the_completion() {
    let tags = Some(HighlightTags { before: "<b>".to_owned(), after: "</b>".to_owned() });
    let found = ask(&index(2), "big ho", &Request { tags, ..PLAIN });
    assert_eq!(
        found,
        [Completion { text: "hotel".to_owned(), query_plus_text: "big <b>hotel</b>".to_owned() }]
    );
}

#[test]
fn counts_only_live_documents_that_match_the_filter() {
    let index = index(2);
    let only = |id| TermQuery::new(Term::from_field_text(index.value("id"), id), IndexRecordOption::Basic);
    let found = |filter: Option<&dyn Query>| -> Vec<String> {
        let found = ask(&index, "po", &Request { filter, ..PLAIN });
        found.into_iter().map(|completion| completion.text).collect()
    };
    assert_eq!(found(Some(&only("2"))), ["police", "pool"]);
    let mut writer: IndexWriter = index.index.writer_with_num_threads(1, 15_000_000).unwrap();
    writer.delete_term(Term::from_field_text(index.value("id"), "0"));
    writer.commit().unwrap();
    assert_eq!(found(None), ["pool", "police", "polite"]);
    assert!(found(Some(&only("0"))).is_empty());
}

#[test]
fn modes_are_parsed() {
    assert_eq!(AutocompleteMode::parse(None).unwrap(), AutocompleteMode::OneTerm);
    assert_eq!(AutocompleteMode::parse(Some("twoTerms")).unwrap(), AutocompleteMode::TwoTerms);
    assert!(AutocompleteMode::parse(Some("threeTerms")).unwrap_err().message.contains("threeTerms"));
}
