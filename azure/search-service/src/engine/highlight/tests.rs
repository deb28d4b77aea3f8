use bindpost_azure_search_model::definition::{FieldType, IndexField};
use serde_json::json;

use super::*;
use crate::engine::testing::{field, words};

fn schema() -> IndexSchema {
    IndexSchema::new(vec![
        IndexField { key: true, ..IndexField::new("id", FieldType::One(PrimitiveType::String)) },
        field("title", FieldType::One(PrimitiveType::String)),
        field("rating", FieldType::One(PrimitiveType::Int32)),
        IndexField {
            fields: vec![field("note", FieldType::One(PrimitiveType::String))],
            ..IndexField::new("rooms", FieldType::ManyComplex)
        },
    ])
    .unwrap()
}

fn marked(values: &[&str], found: &[&str], phrases: &[Phrase], limit: usize) -> Vec<String> {
    let word = |token: &str| found.contains(&token);
    fragments(
        values,
        &mut words(),
        HighlightMatcher { word: &word, phrases },
        limit,
        &HighlightTags::default(),
        &crate::budget::Budget::unlimited(),
    )
}

#[test]
fn a_short_text_is_not_split() {
    assert_eq!(
        marked(&["Best Hotel in town, a hotel!"], &["hotel"], &[], 5),
        ["Best <em>Hotel</em> in town, a <em>hotel</em>!"]
    );
    assert!(marked(&["Best Hotel"], &["motel"], &[], 5).is_empty());
    assert!(marked(&[], &["motel"], &[], 5).is_empty());
}

#[test]
fn a_long_text_gives_its_best_sentences_first() {
    let text = "The hotel lies by the sea. ".to_owned()
        + &"Nothing is said here about anything of interest to you. ".repeat(4)
        + "The pool of the hotel is warm. "
        + &"Again there is nothing to be found in this sentence. ".repeat(4);
    let found = marked(&[&text], &["hotel", "pool"], &[], 5);
    assert_eq!(found.len(), 2);
    assert!(found[0].contains("The <em>pool</em> of the <em>hotel</em> is warm."), "{found:?}");
    assert!(found[1].starts_with("The <em>hotel</em> lies by the sea."), "{found:?}");
    assert!(found.iter().all(|fragment| fragment.len() < 150), "{found:?}");
    assert_eq!(marked(&[&text], &["hotel", "pool"], &[], 1), found[..1]);
}

#[test]
fn a_long_sentence_is_split_between_words() {
    let text = "word ".repeat(100) + "needle " + &"other ".repeat(100);
    let found = marked(&[&text], &["needle"], &[], 5);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("<em>needle</em>") && found[0].len() < 130, "{found:?}");
    let inside = found[0].replace("<em>", "").replace("</em>", "");
    assert!(inside.split(' ').all(|word| ["word", "needle", "other"].contains(&word)), "{inside}");
}

#[test]
fn phrases_are_marked_only_as_a_whole() {
    let phrase = vec![(0, "big".to_owned()), (1, "hotel".to_owned())];
    assert_eq!(
        marked(&["a big house, a big hotel, a hotel"], &[], &[phrase], 5),
        ["a big house, a <em>big</em> <em>hotel</em>, a hotel"]
    );
    let gap = vec![(3, "house".to_owned()), (5, "hill".to_owned())];
    assert_eq!(
        marked(&["house the hill, house hill"], &[], &[gap], 5),
        ["<em>house</em> the <em>hill</em>, house hill"]
    );
}

#[test]
fn values_of_a_collection_are_fragments_of_their_own() {
    assert_eq!(
        marked(&["pool", "bar", "Pool bar"], &["pool"], &[], 5),
        ["<em>pool</em>", "<em>Pool</em> bar"]
    );
}

#[test]
fn multi_byte_characters_are_not_split() {
    let text = "Größe Straße ".repeat(30) + "Öl";
    let found = marked(&[&text], &["straße", "öl"], &[], 2);
    assert!(found[0].contains("<em>Straße</em>"), "{found:?}");
}

#[test]
fn overlapping_tokens_are_marked_once() {
    let span = |range| HighlightSpan { range, token: String::new() };
    let joined = merge_spans("hotels", vec![span(2..6), span(0..5), span(0..99), span(3..3)]);
    assert_eq!(joined, [span(0..6)]);
}

#[test]
fn parses_the_parameter() {
    let parsed = parse_fields("title-3, rooms/note", &schema()).unwrap();
    assert_eq!(
        parsed,
        [
            HighlightField { path: "title".to_owned(), fragments: 3 },
            HighlightField { path: "rooms/note".to_owned(), fragments: 5 }
        ]
    );
    for (parameter, part) in [
        ("nothing", "'nothing' does not exist"),
        ("rating", "'rating' is not searchable"),
        ("rooms", "'rooms' is not searchable"),
        ("title-0", "'title-0' must end"),
        ("title-x", "'title-x' must end"),
    ] {
        let message = parse_fields(parameter, &schema()).unwrap_err().message;
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(HighlightTags::parse(None, None).unwrap(), None);
    assert!(HighlightTags::parse(Some("<b>"), None).is_err());
}

#[test]
fn finds_texts_below_lists() {
    let document =
        json!({"rooms": [{"note": "a"}, {"note": null}, {"note": "b"}], "title": "t", "tags": ["x", "y"]});
    assert_eq!(texts(&document, "rooms/note"), ["a", "b"]);
    assert_eq!(texts(&document, "title"), ["t"]);
    assert_eq!(texts(&document, "tags"), ["x", "y"]);
    assert!(texts(&document, "none/at/all").is_empty());
}
