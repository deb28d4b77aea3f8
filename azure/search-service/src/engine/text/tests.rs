use bindpost_azure_search_model::syntax::synonyms::SynonymRules;
use bindpost_azure_search_model::syntax::{parse_full, parse_simple};
use proptest::prelude::*;
use tantivy::collector::{DocSetCollector, TopDocs};
use tantivy::schema::{Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{
    AlphaNumOnlyFilter, Language, LowerCaser, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer, Token,
    TokenStream, Tokenizer,
};
use tantivy::{Index, Searcher, TantivyDocument};

use super::*;

/// A few hotels with a plain title and a text that is stemmed and has no stop words.
struct Hotels {
    searcher: Searcher,
    title: Column,
    text: Column,
    synonyms: CompiledSynonyms,
}

const HOTELS: [(&str, &str); 7] = [
    ("Roach Motel", "Cheap rooms with wi-fi and a pool"),
    ("Ocean View", "A luxury hotel at the beach, the view is of the ocean"),
    ("Grand Hotel", "Luxury rooms, wifi and a spa"),
    ("Mountain Lodge", "Skiing and hiking in the United States of America"),
    ("City Rooms", "Free wifi"),
    ("Puppy Inn", "Dogs and cats live here"),
    ("Hotel Motel", "View without an ocean"),
];

fn plain() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default()).filter(LowerCaser).build()
}

fn stemmed() -> TextAnalyzer {
    let stop = StopWordFilter::remove(["the", "a", "and", "of", "is"].map(str::to_owned));
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(LowerCaser)
        .filter(AlphaNumOnlyFilter)
        .filter(stop)
        .filter(Stemmer::new(Language::English))
        .build()
}

fn terms(analyzer: &mut TextAnalyzer, text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    analyzer.token_stream(text).process(&mut |token| terms.push(token.text.clone()));
    terms
}

impl Hotels {
    fn new() -> Self {
        let mut schema = Schema::builder();
        let options = |analyzer: &str| {
            let indexing = TextFieldIndexing::default()
                .set_tokenizer(analyzer)
                .set_index_option(IndexRecordOption::WithFreqsAndPositions);
            TextOptions::default().set_indexing_options(indexing)
        };
        let title = schema.add_text_field("title", options("plain"));
        let text = schema.add_text_field("text", options("stemmed"));
        let index = Index::create_in_ram(schema.build());
        index.tokenizers().register("plain", plain());
        index.tokenizers().register("stemmed", stemmed());
        let mut writer = index.writer_with_num_threads(1, 15_000_000).unwrap();
        for (name, description) in HOTELS {
            let mut hotel = TantivyDocument::default();
            hotel.add_text(title, name);
            hotel.add_text(text, description);
            writer.add_document(hotel).unwrap();
        }
        writer.commit().unwrap();
        let rules = "USA, United States, United States of America\nhound => dog, puppies\nsea, ocean";
        let mut analyzer = stemmed();
        let synonyms = SynonymRules::parse(rules).unwrap().compile(&mut |text| terms(&mut analyzer, text));
        Self { searcher: index.reader().unwrap().searcher(), title, text, synonyms }
    }

    fn field(&self, path: &str) -> Option<SearchField<'_>> {
        let (path, column, analyzer, synonyms) = match path {
            "title" => ("title", self.title, plain(), None),
            "text" => ("text", self.text, stemmed(), Some(&self.synonyms)),
            _ => return None,
        };
        Some(SearchField { path, column, weight: 1.0, analyzer, synonyms })
    }

    fn build(&self, node: &QueryNode, paths: &[&str], all: bool) -> Result<BuiltText, ApiError> {
        let fields = paths.iter().filter_map(|path| self.field(path)).collect();
        let budget = &crate::budget::Budget::unlimited();
        TextSearch { node, fields, others: &|path| self.field(path), all, budget }.build()
    }

    fn found(&self, node: &QueryNode, all: bool) -> Vec<u32> {
        let built = self.build(node, &["title", "text"], all).unwrap();
        let mut found: Vec<_> = self
            .searcher
            .search(&built.query, &DocSetCollector)
            .unwrap()
            .iter()
            .map(|hit| hit.doc_id)
            .collect();
        found.sort_unstable();
        // A scored search uses other code paths of tantivy and must have the same result.
        let top = self.searcher.search(&built.query, &TopDocs::with_limit(20).order_by_score()).unwrap();
        assert_eq!(top.len(), found.len(), "{node:?}");
        found
    }

    fn simple(&self, text: &str, all: bool) -> Vec<u32> {
        self.found(&parse_simple(text).unwrap(), all)
    }

    fn full(&self, text: &str, all: bool) -> Vec<u32> {
        self.found(&parse_full(text, &|path| self.field(path).is_some()).unwrap(), all)
    }

    fn scores(&self, text: &str) -> Vec<(f32, u32)> {
        let node = parse_full(text, &|path| self.field(path).is_some()).unwrap();
        let built = self.build(&node, &["title", "text"], false).unwrap();
        let top = self.searcher.search(&built.query, &TopDocs::with_limit(20).order_by_score()).unwrap();
        top.into_iter().map(|(score, hit)| (score, hit.doc_id)).collect()
    }
}

const EVERY: [u32; 7] = [0, 1, 2, 3, 4, 5, 6];

#[test]
fn finds_words_in_any_field() {
    let hotels = Hotels::new();
    assert_eq!(hotels.simple("*", false), EVERY);
    assert_eq!(hotels.simple("motel wifi", false), [0, 2, 4, 6]);
    assert_eq!(hotels.simple("rooms wifi", true), [2, 4]);
    // One word is in the title, the other in the text.
    assert_eq!(hotels.simple("roach pool", true), [0]);
    assert_eq!(hotels.simple("grand pool", true), [0_u32; 0]);
    assert_eq!(hotels.simple("motel+(pool|ocean)", false), [0, 6]);
    assert_eq!(hotels.simple("roach grand +luxury", false), [2]);
}

#[test]
fn excludes_by_mode() {
    let hotels = Hotels::new();
    assert_eq!(hotels.simple("wifi -luxury", false), [0, 2, 3, 4, 5, 6]);
    assert_eq!(hotels.simple("wifi -luxury", true), [4]);
    assert_eq!(hotels.simple("wifi + -luxury", false), [4]);
    assert_eq!(hotels.simple("-luxury", false), [0, 3, 4, 5, 6]);
    assert_eq!(hotels.simple("-luxury -pool", true), [3, 4, 5, 6]);
    assert_eq!(hotels.simple("-luxury -pool", false), EVERY);
    assert_eq!(hotels.simple("-(luxury|pool)", false), [3, 4, 5, 6]);
    assert_eq!(hotels.full("wifi NOT luxury", false), [0, 2, 3, 4, 5, 6]);
    assert_eq!(hotels.full("wifi NOT luxury", true), [4]);
    assert_eq!(hotels.full("wifi AND NOT luxury", false), [4]);
    assert_eq!(hotels.full("+wifi -luxury", false), [4]);
    assert_eq!(hotels.full("NOT luxury", true), [0, 3, 4, 5, 6]);
}

#[test]
fn joins_as_lucene_does() {
    let hotels = Hotels::new();
    assert_eq!(hotels.full("wifi AND luxury", false), [2]);
    assert_eq!(hotels.full("wifi OR luxury", true), [1, 2, 4]);
    assert_eq!(hotels.full("pool OR wifi AND luxury", false), [2]);
    assert_eq!(hotels.full("pool OR (wifi AND luxury)", false), [0, 2]);
    assert_eq!(hotels.full("title:hotel", false), [2, 6]);
    assert_eq!(hotels.full("title:(hotel motel)", true), [6]);
    assert_eq!(hotels.full("title:hotel AND text:ocean", false), [6]);
}

#[test]
fn one_word_of_several_terms_joins_them_by_mode() {
    let hotels = Hotels::new();
    assert_eq!(hotels.simple("wi-view", false), [0, 1, 6]);
    assert_eq!(hotels.simple("wi-view", true), [0_u32; 0]);
    assert_eq!(hotels.simple("wi-fi", true), [0]);
}

#[test]
fn stop_words_are_ignored() {
    let hotels = Hotels::new();
    let node = parse_simple("the beach").unwrap();
    let built = hotels.build(&node, &["text"], true).unwrap();
    assert_eq!(hotels.searcher.search(&built.query, &DocSetCollector).unwrap().len(), 1);
    let nowhere = hotels.build(&parse_simple("pool roo*").unwrap(), &[], false).unwrap();
    assert!(hotels.searcher.search(&nowhere.query, &DocSetCollector).unwrap().is_empty());
    let node = parse_simple("the").unwrap();
    let built = hotels.build(&node, &["text"], true).unwrap();
    assert!(hotels.searcher.search(&built.query, &DocSetCollector).unwrap().is_empty());
}

#[test]
fn phrases_keep_order_and_gaps() {
    let hotels = Hotels::new();
    assert_eq!(hotels.simple("\"ocean view\"", false), [1]);
    assert_eq!(hotels.simple("\"view ocean\"", false), [0_u32; 0]);
    assert_eq!(hotels.full("text:\"view ocean\"~2", false), [6]);
    assert_eq!(hotels.full("text:\"view ocean\"~4", false), [1, 6]);
    assert_eq!(hotels.full("text:\"view ocean\"~4000000000", false), [1, 6]);
    // A stop word keeps its position, whichever word it is.
    assert_eq!(hotels.full("text:\"view is of the ocean\"", false), [1]);
    assert_eq!(hotels.full("text:\"view the a and ocean\"", false), [1]);
    assert_eq!(hotels.full("text:\"view the ocean\"", false), [0_u32; 0]);
    assert_eq!(hotels.simple("\"pool\"", false), [0]);
    assert_eq!(hotels.simple("\"the\" pool", true), [0_u32; 0], "no title contains the word");
    assert_eq!(hotels.full("text:\"the\" text:pool", true), [0]);
}

#[test]
fn patterns_are_not_analyzed_but_lower_cased() {
    let hotels = Hotels::new();
    assert_eq!(hotels.simple("MO*", false), [0, 3, 6]);
    assert_eq!(hotels.simple("wi-f*", false), [0_u32; 0], "no term contains a dash");
    assert_eq!(hotels.full("mo?el", false), [0, 6]);
    assert_eq!(hotels.full("h*l", false), [1, 2, 6]);
    assert_eq!(hotels.full("/[MH]otel/", false), [0, 1, 2, 6]);
    assert_eq!(hotels.full("title:/.*nt.*/", false), [3]);
    assert_eq!(hotels.full("moutain~1", false), [3]);
    assert_eq!(hotels.full("Haotl~", false), [1, 2, 6]);
    assert_eq!(hotels.full("hotle~1", false), [1, 2, 6], "two swapped letters are one mistake");
    assert_eq!(hotels.full("hotel~0", false), [1, 2, 6]);
    assert_eq!(hotels.full("mo* AND NOT ocea*", false), [0, 3]);
}

#[test]
fn synonyms_stand_for_words_in_their_field() {
    let hotels = Hotels::new();
    assert_eq!(hotels.simple("usa", false), [3]);
    assert_eq!(hotels.simple("\"united states\"", false), [3]);
    assert_eq!(hotels.simple("hound", false), [5]);
    assert_eq!(hotels.full("title:sea", false), [0_u32; 0]);
    assert_eq!(hotels.simple("sea", false), [1, 6]);
    assert_eq!(hotels.simple("\"without sea\"", false), [0_u32; 0]);
    assert_eq!(hotels.simple("\"without an sea\"", false), [6]);
    assert_eq!(hotels.simple("\"hiking in the USA\"", false), [3]);
    assert_eq!(hotels.simple("se*", false), [0_u32; 0], "patterns have no synonyms");
}

#[test]
fn boosts_and_exact_words_rank_higher() {
    let hotels = Hotels::new();
    assert_eq!(hotels.scores("pool^10 spa").first().unwrap().1, 0);
    assert_eq!(hotels.scores("pool spa^10").first().unwrap().1, 2);
    let plain = hotels.scores("pool").first().unwrap().0;
    let boosted = hotels.scores("(pool)^3").first().unwrap().0;
    assert!((boosted - 3.0 * plain).abs() < 1e-4);
    let huge = hotels.scores("((pool^99999999999999999999)^99999999999999999999 rooms^0)^0");
    assert!(huge.iter().all(|hit| hit.0.is_finite()));
    let fuzzy = hotels.scores("title:motel~1");
    assert!(fuzzy.iter().take(2).all(|hit| [0, 6].contains(&hit.1)), "{fuzzy:?}");
}

#[test]
fn returns_the_terms_to_highlight() {
    let hotels = Hotels::new();
    let node = parse_full("text:dogs mo* AND \"ocean view\" NOT spa", &|_| true).unwrap();
    let built = hotels.build(&node, &["title"], false).unwrap();
    let hit =
        |path: &str, token: &str| built.highlight.iter().any(|term| term.path == path && term.matches(token));
    assert!(hit("text", "dog"));
    assert!(!hit("title", "dog"));
    assert!(hit("title", "motel"));
    assert!(hit("title", "ocean"));
    assert!(!hit("title", "spa"));
    assert!(
        built
            .highlight
            .iter()
            .any(|term| matches!(&term.kind, HighlightKind::Phrase { words, .. } if words.len() == 2))
    );
}

#[test]
fn rejects_invalid_and_too_large_patterns() {
    let hotels = Hotels::new();
    for (text, reason) in [
        ("/a(/".to_owned(), "not closed"),
        ("/a~b/".to_owned(), "operator is not supported"),
        (format!("/{}/", ".".repeat(40)), "too large"),
        (format!("/{}/", "(a|b)*a(a|b){10}(a|b){10}"), "too complex"),
        ("a*b*c? ".repeat(100), "too large"),
        (format!("{}~", "a".repeat(101)), "at most 100 letters"),
        ("abcdefghijkl~ ".repeat(100), "together 1000"),
    ] {
        let node = parse_full(&text, &|_| true).unwrap();
        let error = hotels.build(&node, &["title", "text"], false).unwrap_err();
        assert!(error.message.contains(reason), "{text}: {error}");
        assert_eq!(error.status, 400);
    }
    let node = QueryNode::Field { path: "nowhere".into(), node: Box::new(QueryNode::Term("a".into())) };
    assert!(hotels.build(&node, &["title"], false).unwrap_err().message.contains("`nowhere`"));
}

/// Produces an endless stream of terms, at one position or at consecutive positions.
#[derive(Clone)]
struct Endless {
    step: usize,
    token: Token,
}

impl Tokenizer for Endless {
    type TokenStream<'a> = Self;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self {
        let token = Token { position: 0, text: text.to_owned(), ..Token::default() };
        Self { step: self.step, token }
    }
}

impl TokenStream for Endless {
    fn advance(&mut self) -> bool {
        self.token.position += self.step;
        self.token.text.push('a');
        self.token.text.truncate(200);
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[test]
fn analysis_stops_at_the_maximum_number_of_terms() {
    let hotels = Hotels::new();
    for step in [0, 1] {
        for text in ["x", "\"x y\""] {
            let analyzer = TextAnalyzer::from(Endless { step, token: Token::default() });
            let field = SearchField { analyzer, ..hotels.field("text").unwrap() };
            let node = parse_simple(text).unwrap();
            let search = TextSearch {
                node: &node,
                fields: vec![field],
                others: &|_| None,
                all: false,
                budget: &crate::budget::Budget::unlimited(),
            };
            let error = search.build().unwrap_err();
            assert_eq!(error.status, 400);
            assert!(error.message.contains("32768 terms"), "{error}");
        }
    }
}

#[test]
fn a_few_giant_terms_exceed_the_limit() {
    let hotels = Hotels::new();
    let field = hotels.field("title").unwrap();
    // No search text has such a long word, but a character filter may create it from a short one.
    let node = QueryNode::Term("a".repeat(17 << 20));
    let search = TextSearch {
        node: &node,
        fields: vec![field],
        others: &|_| None,
        all: false,
        budget: &crate::budget::Budget::unlimited(),
    };
    assert!(search.build().unwrap_err().message.contains("16 MiB"));
}

#[test]
fn synonyms_of_a_long_phrase_are_limited() {
    let hotels = Hotels::new();
    let built = |words: usize| {
        let node = parse_simple(&format!("\"{}\"", "sea ".repeat(words))).unwrap();
        hotels.build(&node, &["text"], false).unwrap()
    };
    let (short, long) = (built(5), built(1_024));
    assert_eq!(short.highlight.len(), 32);
    assert_eq!(long.highlight.len(), 4);
    assert!(long.terms < 8_192, "{}", long.terms);
    // A parsed phrase is never this long, but an analyzer that splits by letters can create it.
    let node = QueryNode::Phrase { text: "sea ".repeat(8_000), slop: 0 };
    assert_eq!(hotels.build(&node, &["text"], false).unwrap().highlight.len(), 1);
    // The terms of all fields are counted. The third field exceeds the limit.
    let error = hotels.build(&node, &["text", "text", "text"], false).unwrap_err();
    assert!(error.message.contains("32768 terms"), "{error}");
}

#[test]
fn the_deepest_tree_fits_a_small_stack() {
    let nested = format!("{}a{}", "(b AND -".repeat(100), ")".repeat(100));
    let changing = "a+b|".repeat(49);
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let search = move || {
        let hotels = Hotels::new();
        hotels.full(&nested, false);
        hotels.simple(&changing, true);
    };
    small.spawn(search).unwrap().join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_text_can_be_searched(text in r#"([ab]|hotel|rooms|wi-fi|usa|the| |\+|\||-|"|\(|\)|\*){0,24}"#, all: bool) {
        let hotels = Hotels::new();
        hotels.simple(&text, all);
        if let Ok(node) = parse_full(&text, &|_| false) {
            hotels.found(&node, all);
        }
    }
}
