//! Tables of texts and tokens, for predefined analyzers and those that an index defines.

mod parts_one_by_one;

use proptest::prelude::*;
use serde_json::{Value, json};
use tantivy::tokenizer::{Token, TokenizerManager};

use super::language::NAMES;
use super::{AnalyzerRegistry, PAIRS_ANALYZER, SUGGEST_ANALYZER, analyze, filters, parts};

fn predefined() -> AnalyzerRegistry {
    AnalyzerRegistry::new(&json!({})).unwrap()
}

fn run(analyzers: &AnalyzerRegistry, name: &str, text: &str) -> Vec<Token> {
    let mut analyzer = analyzers.get(name).unwrap_or_else(|| panic!("{name}"));
    let mut tokens = Vec::new();
    analyzer.token_stream(text).process(&mut |token| tokens.push(token.clone()));
    tokens
}

fn texts(tokens: &[Token]) -> Vec<&str> {
    tokens.iter().map(|token| token.text.as_str()).collect()
}

fn kind(name: &str, mut settings: Value) -> Value {
    settings["@odata.type"] = json!(format!("#Microsoft.Azure.Search.{name}"));
    settings
}

#[test]
fn predefined_analyzers_produce_these_tokens() {
    let analyzers = predefined();
    for (name, text, expected) in [
        ("standard.lucene", "The 2 QUICK Brown-Foxes.", "the 2 quick brown foxes"),
        ("standard", "Wi-Fi", "wi fi"),
        ("standardasciifolding.lucene", "Café Ærø", "cafe aero"),
        ("keyword", "New York", "New York"),
        ("pattern", "Foo_bar, b@z 42", "foo_bar b z 42"),
        ("simple", "It's 5 o'Clock", "it s o clock"),
        ("stop", "The fox and the hen", "fox hen"),
        ("whitespace", "Hello, World  x", "Hello, World x"),
        ("en.lucene", "The fox's running jumps are not easily generalized", "fox run jump easili gener"),
        ("en.microsoft", "running", "run"),
        ("fr.lucene", "L'avion des chevaux", "avion cheval"),
        ("de.lucene", "Die Häuser und die Straßen", "haus strass"),
        ("es.lucene", "los gatos corriendo", "gat corr"),
        ("it.lucene", "dell'amico le case", "amic cas"),
        ("pt-BR.lucene", "os meninos", "menin"),
        ("nl.lucene", "de katten", "kat"),
        ("da.lucene", "husene og", "hus"),
        ("sv.lucene", "bilarna och", "bil"),
        ("no.lucene", "bilene og", "bil"),
        ("fi.lucene", "talossa", "talo"),
        ("hu.lucene", "házakat", "ház"),
        ("ro.lucene", "pisicile", "pisic"),
        ("ru.lucene", "Кошки и собаки", "кошк собак"),
        ("tr.lucene", "İstanbul'da KIZLAR ve", "istanbul kız"),
        ("el.lucene", "και οι Γάτες", "γατ"),
        ("pl.lucene", "się zamek", "zamek"),
        ("zh-Hans.lucene", "东京塔 abc", "东京 京塔 abc"),
        ("ja.lucene", "東京タワー", "東京 京タ タワ ワー"),
        ("ko.lucene", "한국어 Ｔｅｓｔ", "한국 국어 test"),
        ("ja.microsoft", "塔", "塔"),
        (SUGGEST_ANALYZER, "The Quick Foxes", "the quick foxes"),
    ] {
        assert_eq!(texts(&run(&analyzers, name, text)).join(" "), expected, "{name}: {text}");
    }
    let pairs = run(&analyzers, PAIRS_ANALYZER, "The quick, brown fox");
    assert_eq!(texts(&pairs), ["the quick", "quick brown", "brown fox"]);
}

#[test]
fn thai_is_found_by_pairs_of_syllables() {
    let analyzers = predefined();
    let text = run(&analyzers, "th.lucene", "ภาษาไทย");
    let query = run(&analyzers, "th.lucene", "ไทย");
    assert!(
        query.iter().all(|wanted| text.iter().any(|token| token.text == wanted.text)),
        "{text:?} {query:?}"
    );
}

#[test]
fn stop_words_leave_gaps_in_positions() {
    let tokens = run(&predefined(), "en.lucene", "the cat and the dog");
    let positions: Vec<usize> = tokens.iter().map(|token| token.position).collect();
    assert_eq!((texts(&tokens), positions), (vec!["cat", "dog"], vec![1, 4]));
}

#[test]
fn all_predefined_names_work_and_are_sorted() {
    let analyzers = predefined();
    for name in NAMES {
        analyzers.check(name).unwrap();
        let _ = run(&analyzers, name, "Some text, çok güzel. 東京タワー ภาษาไทย نص عربي");
    }
    assert!(NAMES.is_sorted());
    for (name, _) in parts::TOKENIZERS {
        parts::predefined_tokenizer(name).unwrap().unwrap();
    }
    for (name, _) in filters::TOKEN_FILTERS {
        // It needs words, which only a definition can provide.
        let made = filters::predefined(name).unwrap();
        assert_eq!(made.is_err(), name == "common_grams", "{name}");
    }
}

#[test]
fn long_words_are_split() {
    let tokens = run(&predefined(), "standard", &"é".repeat(600));
    let lengths: Vec<usize> = tokens.iter().map(|token| token.text.chars().count()).collect();
    assert_eq!(lengths, [255, 255, 90]);
}

#[test]
fn custom_analyzers_of_other_types_work() {
    let analyzers = AnalyzerRegistry::new(&json!({"analyzers": [
        {"@odata.type": "#Microsoft.Azure.Search.PatternAnalyzer", "name": "p", "pattern": "x", "flags": "CASE_INSENSITIVE", "lowercase": false, "stopwords": ["b"]},
        {"@odata.type": "#Microsoft.Azure.Search.StandardAnalyzer", "name": "s", "maxTokenLength": 2, "stopwords": ["cc"]},
        {"@odata.type": "#Microsoft.Azure.Search.StopAnalyzer", "name": "t", "stopwords": ["fox"]},
        {"@odata.type": "#Microsoft.Azure.Search.StopAnalyzer", "name": "u"},
    ]}))
    .unwrap();
    for (name, text, expected) in [
        ("p", "AXbxC", "A C"),
        ("s", "AAb cc", "aa b"),
        ("t", "the FOX 1 x", "the x"),
        ("u", "the FOX", "fox"),
    ] {
        assert_eq!(texts(&run(&analyzers, name, text)).join(" "), expected, "{name}");
    }
}

#[test]
fn offsets_refer_to_the_original_text() {
    let analyzers = AnalyzerRegistry::new(&json!({
        "charFilters": [
            {"@odata.type": "#Microsoft.Azure.Search.MappingCharFilter", "name": "m", "mappings": ["ü=>ue", "\\u002d=>"]},
            {"@odata.type": "#Microsoft.Azure.Search.PatternReplaceCharFilter", "name": "r", "pattern": "(\\d)\\s(\\d)", "replacement": "$1$2"},
        ],
        "analyzers": [{
            "@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer", "name": "a", "tokenizer": "standard_v2",
            "tokenFilters": ["lowercase"], "charFilters": ["html_strip", "m", "r"],
        }],
    }))
    .unwrap();
    let text = "<p title=\"é\">Grün<b>e</b> &Auml;pfel</p> E-Mail 1 2 日本";
    let tokens = run(&analyzers, "a", text);
    let found: Vec<(&str, &str)> =
        tokens.iter().map(|token| (token.text.as_str(), &text[token.offset_from..token.offset_to])).collect();
    assert_eq!(
        found,
        [
            ("gruene", "Grün<b>e"),
            ("äpfel", "&Auml;pfel"),
            ("email", "E-Mail"),
            ("12", "1 2"),
            ("日", "日"),
            ("本", "本"),
        ]
    );
}

#[test]
fn several_character_filters_do_not_multiply_the_size_limit() {
    let analyzers = AnalyzerRegistry::new(&json!({
        "charFilters": [kind("PatternReplaceCharFilter", json!({
            "name": "grow", "pattern": "a", "replacement": "a ".repeat(500),
        }))],
        "analyzers": [kind("CustomAnalyzer", json!({
            "name": "mine", "tokenizer": "whitespace", "charFilters": ["grow", "grow", "grow", "grow"],
        }))],
    }))
    .unwrap();
    let text = "é a";
    let tokens = run(&analyzers, "mine", text);
    let length: usize = tokens.iter().map(|token| token.text.len()).sum();
    assert!(length > 1 << 18 && length <= (1 << 20) + 4 * text.len(), "{length}");
    for token in &tokens {
        assert!(text.get(token.offset_from..token.offset_to).is_some(), "{token:?}");
    }
}

#[test]
fn parts_of_words_have_offsets_of_their_own() {
    let filter = json!({"@odata.type": "#Microsoft.Azure.Search.WordDelimiterTokenFilter", "name": "d"});
    let analyzers = AnalyzerRegistry::new(&json!({
        "tokenFilters": [filter],
        "analyzers": [{
            "@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer", "name": "a",
            "tokenizer": "whitespace", "tokenFilters": ["d", "lowercase"],
        }],
    }))
    .unwrap();
    let text = "Über-Maß x";
    let found: Vec<&str> =
        run(&analyzers, "a", text).iter().map(|token| &text[token.offset_from..token.offset_to]).collect();
    assert_eq!(found, ["Über", "Maß", "x"]);
}

#[test]
fn invalid_definitions_are_rejected_with_a_reason() {
    let analyzer = |settings| json!({"analyzers": [named("CustomAnalyzer", settings)]});
    let filter = |kind: &str, settings| json!({"tokenFilters": [named(kind, settings)]});
    fn named(type_name: &str, settings: Value) -> Value {
        let mut value = kind(type_name, settings);
        value["name"] = json!("mine");
        value
    }
    for (definition, part) in [
        (json!({"analyzers": {}}), "must be an array"),
        (json!({"analyzers": [1]}), "object"),
        (json!({"analyzers": [{"name": "x"}]}), "@odata.type"),
        (
            json!({"analyzers": [{"@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer"}]}),
            "'analyzers[0].name' is required",
        ),
        (
            json!({"analyzers": [{"@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer", "name": "-x"}]}),
            "not valid",
        ),
        (
            json!({"analyzers": [{"@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer", "name": "simple", "tokenizer": "letter"}]}),
            "another name",
        ),
        (
            json!({"analyzers": [named("CustomAnalyzer", json!({"tokenizer": "letter"})), named("CustomAnalyzer", json!({"tokenizer": "letter"}))]}),
            "more than once",
        ),
        (json!({"analyzers": [named("MagicAnalyzer", json!({}))]}), "not a type of analyzer"),
        (analyzer(json!({})), "'tokenizer' of analyzer 'mine' is required"),
        (analyzer(json!({"tokenizer": "standrad_v2"})), "'standard_v2'"),
        (analyzer(json!({"tokenizer": "letter", "tokenFilters": ["lowercas"]})), "'lowercase'"),
        (analyzer(json!({"tokenizer": "letter", "charFilters": ["html"]})), "html"),
        (
            analyzer(json!({"tokenizer": "letter", "tokenFilter": ["lowercase"]})),
            "'tokenFilter' of analyzer 'mine' does not exist",
        ),
        (
            analyzer(json!({"tokenizer": "letter", "tokenFilters": "lowercase"})),
            "must be an array, not a string",
        ),
        (analyzer(json!({"tokenizer": "letter", "tokenFilters": ["common_grams"]})), "commonWords"),
        (analyzer(json!({"tokenizer": "letter", "tokenFilters": vec!["trim"; 101]})), "more than 100"),
        (filter("EdgeNGramTokenFilterV2", json!({"maxGram": 301})), "from 1 to 300"),
        (filter("EdgeNGramTokenFilterV2", json!({"minGram": 5, "maxGram": 3})), "greater than"),
        (filter("EdgeNGramTokenFilterV2", json!({"side": "middle"})), "front, back"),
        (filter("PatternReplaceTokenFilter", json!({"pattern": "(", "replacement": ""})), "cannot be used"),
        (
            filter("PatternReplaceTokenFilter", json!({"pattern": "a"})),
            "'replacement' of token filter 'mine' is required",
        ),
        (filter("PhoneticTokenFilter", json!({"encoder": "nysiis"})), "not available"),
        (filter("StemmerTokenFilter", json!({"language": "klingon"})), "must be one of"),
        (filter("StemmerTokenFilter", json!({"language": "latvian"})), "no stemmer"),
        (filter("StemmerTokenFilter", json!({})), "'language' of token filter 'mine' is required"),
        (filter("StopwordsTokenFilter", json!({"stopwords": ["a"], "stopwordsList": "english"})), "both"),
        (filter("StopwordsTokenFilter", json!({"stopwordsList": "klingon"})), "klingon"),
        (filter("LengthTokenFilter", json!({"min": "1"})), "a whole number"),
        (filter("LengthTokenFilter", json!({"min": -1})), "a whole number"),
        (filter("AsciiFoldingTokenFilter", json!({"preserveOriginal": 1})), "true or false"),
        (filter("SynonymTokenFilter", json!({"synonyms": ["a => b => c"]})), "not a rule"),
        (filter("StemmerOverrideTokenFilter", json!({"rules": ["a"]})), "not a rule"),
        (json!({"charFilters": [named("MappingCharFilter", json!({"mappings": ["ab"]}))]}), "'=>'"),
        (
            json!({"charFilters": [named("MappingCharFilter", json!({"mappings": ["a=>b", "a=>c"]}))]}),
            "another mapping already maps",
        ),
        (
            json!({"charFilters": [named("MappingCharFilter", json!({"mappings": [format!("a=>{}", "b".repeat(1_001))]}))]}),
            "a mapping has more than 1000 characters",
        ),
        (
            json!({"charFilters": [named("PatternReplaceCharFilter", json!({"pattern": "a", "replacement": "b".repeat(1_001)}))]}),
            "longer than 1000 characters",
        ),
        (
            filter("SynonymTokenFilter", json!({"synonyms": [format!("a => {}", "b ".repeat(101))]})),
            "more than 100 words",
        ),
        (
            json!({"tokenizers": [named("PatternTokenizer", json!({"pattern": "a", "group": 1}))]}),
            "no group 1",
        ),
        (
            json!({"tokenizers": [named("PathHierarchyTokenizerV2", json!({"delimiter": "ab"}))]}),
            "one character",
        ),
        (
            json!({"normalizers": [named("CustomNormalizer", json!({"tokenFilters": ["shingle"]}))]}),
            "'shingle' cannot",
        ),
        (
            json!({"normalizers": [named("CustomNormalizer", json!({"charFilters": ["html_strip"]}))]}),
            "'html_strip' cannot",
        ),
    ] {
        let error =
            AnalyzerRegistry::new(&definition).err().unwrap_or_else(|| panic!("{definition} was accepted"));
        assert!(error.message.contains(part), "{definition}: {error}");
        assert_eq!(error.status, http::StatusCode::BAD_REQUEST);
    }
}

#[test]
fn unknown_analyzers_are_rejected_with_similar_names() {
    let error = predefined().check("en.lucen").unwrap_err();
    assert!(error.message.contains("'en.lucene'"), "{error}");
    assert!(predefined().check("wholly unlike anything").is_err());
    assert!(predefined().check_normalizer("lowercas").unwrap_err().message.contains("'lowercase'"));
}

#[test]
fn custom_normalizers_use_custom_parts() {
    let analyzers = AnalyzerRegistry::new(&json!({
        "charFilters": [{"@odata.type": "#Microsoft.Azure.Search.MappingCharFilter", "name": "m", "mappings": ["-=>_"]}],
        "normalizers": [{
            "@odata.type": "#Microsoft.Azure.Search.CustomNormalizer", "name": "n",
            "tokenFilters": ["asciifolding", "uppercase"], "charFilters": ["m"],
        }],
    }))
    .unwrap();
    assert_eq!(analyzers.normalizer("n").unwrap().apply("é-a"), "E_A");
    assert!(analyzers.normalizer("other").is_none());
}

#[test]
fn registered_analyzers_are_found_in_tantivy() {
    let manager = TokenizerManager::new();
    predefined().register_all(["en.lucene", "nothing"].into_iter(), &manager);
    assert!(manager.get("en.lucene").is_some());
    assert!(manager.get(SUGGEST_ANALYZER).is_some() && manager.get(PAIRS_ANALYZER).is_some());
    assert!(manager.get("nothing").is_none());
}

fn analyzed(request: &Value) -> Result<Value, bindpost_azure_search_model::ApiError> {
    let text = analyze(request, &predefined(), &crate::budget::Budget::unlimited())?;
    Ok(serde_json::from_slice(&text.bytes).unwrap())
}

#[test]
fn the_analyze_call_counts_utf16_units() {
    let answer = analyzed(&json!({"text": "😀 Grüße an 東京", "analyzer": "standard.lucene"})).unwrap();
    assert_eq!(
        answer,
        json!({"tokens": [
            {"token": "grüße", "startOffset": 3, "endOffset": 8, "position": 0},
            {"token": "an", "startOffset": 9, "endOffset": 11, "position": 1},
            {"token": "東", "startOffset": 12, "endOffset": 13, "position": 2},
            {"token": "京", "startOffset": 13, "endOffset": 14, "position": 3},
        ]})
    );
    let request = json!({"text": "<b>A-B</b>", "tokenizer": "keyword_v2", "tokenFilters": ["lowercase"], "charFilters": ["html_strip"]});
    assert_eq!(
        analyzed(&request).unwrap(),
        json!({"tokens": [{"token": "a-b", "startOffset": 3, "endOffset": 6, "position": 0}]})
    );
    let request = json!({"text": "É ", "normalizer": "standard", "analyzer": null});
    assert_eq!(
        analyzed(&request).unwrap(),
        json!({"tokens": [{"token": "e ", "startOffset": 0, "endOffset": 2, "position": 0}]})
    );
}

#[test]
fn the_analyze_call_rejects_ambiguous_requests() {
    for (request, part) in [
        (json!([]), "must be an object"),
        (json!({"analyzer": "simple"}), "'text' of the request is required"),
        (json!({"text": 1, "analyzer": "simple"}), "must be a string"),
        (json!({"text": "a"}), "Exactly one"),
        (json!({"text": "a", "analyzer": "simple", "tokenizer": "letter"}), "Exactly one"),
        (json!({"text": "a", "analyzer": "simple", "normalizer": "lowercase"}), "Exactly one"),
        (json!({"text": "a", "analyzer": "simple", "tokenFilters": ["trim"]}), "only together"),
        (json!({"text": "a", "analyzer": "en.lucen"}), "'en.lucene'"),
        (json!({"text": "a", "tokenizer": "leter"}), "'letter'"),
        (
            json!({"text": "a", "tokenizer": "letter", "tokenFilters": [1]}),
            "'tokenFilters[0]' of the request must be a string",
        ),
        (json!({"text": "a", "normalizer": "x"}), "no normalizer 'x'"),
        (json!({"text": "a", "analyser": "simple"}), "'analyser' of the request is unknown"),
    ] {
        let error = analyzed(&request).unwrap_err();
        assert!(error.message.contains(part), "{request}: {error}");
    }
}

/// All tokenizers and filters that need no words, each in its own analyzer.
fn everything() -> AnalyzerRegistry {
    let custom = |name: String, tokenizer: &str, filters: &[&str]| {
        json!({
            "@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer", "name": name, "tokenizer": tokenizer,
            "tokenFilters": filters, "charFilters": ["html_strip", "m"],
        })
    };
    let mut list: Vec<Value> = Vec::new();
    for (index, (tokenizer, _)) in parts::TOKENIZERS.iter().enumerate() {
        list.push(custom(format!("t{index}"), tokenizer, &["word_delimiter", "cjk_bigram"]));
    }
    for (index, (filter, _)) in filters::TOKEN_FILTERS.iter().enumerate() {
        if *filter != "common_grams" {
            list.push(custom(format!("f{index}"), "standard_v2", &[filter, "shingle"]));
        }
    }
    list.push(json!({
        "@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer", "name": "s", "tokenizer": "standard_v2",
        "tokenFilters": ["synonyms", "synonyms"],
    }));
    AnalyzerRegistry::new(&json!({
        "tokenFilters": [{
            "@odata.type": "#Microsoft.Azure.Search.SynonymTokenFilter", "name": "synonyms",
            "synonyms": ["b, a b a b, é", "a b => é é b a, b"],
        }],
        "charFilters": [{"@odata.type": "#Microsoft.Azure.Search.MappingCharFilter", "name": "m", "mappings": ["é=>ab", "a=>é", "b=>"]}],
        "analyzers": list,
    }))
    .unwrap()
}

fn check_tokens(analyzers: &AnalyzerRegistry, name: &str, text: &str) -> Result<(), TestCaseError> {
    let mut position = 0;
    for token in run(analyzers, name, text) {
        prop_assert!(!token.text.is_empty());
        prop_assert!(
            token.offset_from <= token.offset_to && token.offset_to <= text.len(),
            "{name}: {token:?}"
        );
        prop_assert!(
            text.is_char_boundary(token.offset_from) && text.is_char_boundary(token.offset_to),
            "{name}: {token:?}"
        );
        prop_assert!(token.position >= position, "{name}: {token:?}");
        position = token.position;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_text_breaks_an_analyzer(text in any::<String>()) {
        let analyzers = predefined();
        for name in NAMES {
            check_tokens(&analyzers, name, &text)?;
        }
    }

    #[test]
    fn no_text_breaks_a_part(text in "[aAbB1é'’.<>/&; \n東カｶﾞกา한_-]{0,30}") {
        let analyzers = everything();
        let mut names: Vec<String> = (0..parts::TOKENIZERS.len()).map(|index| format!("t{index}")).collect();
        names.push("s".to_owned());
        names.extend((0..filters::TOKEN_FILTERS.len()).map(|index| format!("f{index}")));
        for name in names.iter().filter(|name| analyzers.check(name).is_ok()) {
            check_tokens(&analyzers, name, &text)?;
        }
    }
}
