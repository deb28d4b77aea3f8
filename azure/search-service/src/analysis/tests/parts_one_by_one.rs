//! Tokenizers and token filters, one by one.

use std::slice::from_ref;

use serde_json::{Value, json};

use super::super::AnalyzerRegistry;
use super::{kind, run};

/// Returns the tokens of a text, each as `text@position`, after this tokenizer and these filters.
fn through(tokenizer: &Value, filters: &[Value], text: &str) -> Vec<String> {
    let mut definition = json!({"tokenizers": [], "tokenFilters": [], "analyzers": []});
    let tokenizer_name = match tokenizer {
        Value::String(name) => name.clone(),
        other => {
            let mut other = other.clone();
            other["name"] = json!("t");
            definition["tokenizers"] = json!([other]);
            "t".to_owned()
        }
    };
    let mut names = Vec::new();
    let mut custom = Vec::new();
    for (index, filter) in filters.iter().enumerate() {
        match filter {
            Value::String(name) => names.push(name.clone()),
            other => {
                let mut other = other.clone();
                other["name"] = json!(format!("f{index}"));
                custom.push(other);
                names.push(format!("f{index}"));
            }
        }
    }
    definition["tokenFilters"] = json!(custom);
    definition["analyzers"] = json!([{
        "@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer", "name": "a",
        "tokenizer": tokenizer_name, "tokenFilters": names,
    }]);
    let analyzers = AnalyzerRegistry::new(&definition).unwrap();
    run(&analyzers, "a", text).iter().map(|token| format!("{}@{}", token.text, token.position)).collect()
}

#[test]
fn tokenizers_produce_these_tokens() {
    for (tokenizer, text, expected) in [
        (json!("letter"), "a1b Über", "a@0 b@1 Über@2"),
        (json!("lowercase"), "A1b ÜBER", "a@0 b@1 über@2"),
        (json!("keyword_v2"), "a b", "a b@0"),
        (json!("edgeNGram"), "abc d", "a@0 ab@1"),
        (json!("nGram"), "abc", "a@0 ab@1 b@2 bc@3 c@4"),
        (
            kind("NGramTokenizer", json!({"minGram": 2, "maxGram": 3, "tokenChars": ["letter", "digit"]})),
            "añb, x y9",
            "añ@0 añb@1 ñb@2 y9@3",
        ),
        (
            kind("EdgeNGramTokenizer", json!({"minGram": 2, "maxGram": 4, "tokenChars": ["letter"]})),
            "hello wo",
            "he@0 hel@1 hell@2 wo@3",
        ),
        (json!("path_hierarchy_v2"), "/a/b/c", "/a@0 /a/b@0 /a/b/c@0"),
        (kind("PathHierarchyTokenizerV2", json!({"skip": 1})), "a/b/c", "/b@0 /b/c@0"),
        (kind("PathHierarchyTokenizerV2", json!({"reverse": true})), "a/b/c", "a/b/c@0 b/c@0 c@0"),
        (kind("PathHierarchyTokenizerV2", json!({"delimiter": "-", "replacement": "/"})), "a-b", "a@0 a/b@0"),
        (kind("PatternTokenizer", json!({"pattern": ","})), "a,b,,c d", "a@0 b@1 c d@2"),
        (kind("PatternTokenizer", json!({"pattern": ""})), "aé", "a@0 é@1"),
        (kind("PatternTokenizer", json!({"pattern": "'([^']*)'", "group": 1})), "x 'a b' y 'c'", "a b@0 c@1"),
        (kind("StandardTokenizerV2", json!({"maxTokenLength": 3})), "abcdefg h", "abc@0 def@1 g@2 h@3"),
        (
            json!("uax_url_email"),
            "Mail a.b@example.org, see https://example.com/x?y=1. Or example.com/z!",
            "Mail@0 a.b@example.org@1 see@2 https://example.com/x?y=1@3 Or@4 example.com/z@5",
        ),
        (
            json!("classic"),
            "I.B.M. AT&T a.b@c.de O'Neil wi-fi XL-500 example.com 東京",
            "I.B.M.@0 AT&T@1 a.b@c.de@2 O'Neil@3 wi@4 fi@5 XL-500@6 example.com@7 東@8 京@9",
        ),
        (kind("MicrosoftLanguageTokenizer", json!({"language": "german"})), "Ein Haus", "Ein@0 Haus@1"),
    ] {
        assert_eq!(through(&tokenizer, &[], text).join(" "), expected, "{tokenizer}");
    }
}

#[test]
fn token_filters_produce_these_tokens() {
    for (filters, text, expected) in [
        (vec![kind("AsciiFoldingTokenFilter", json!({"preserveOriginal": true}))], "é a", "e@0 é@0 a@1"),
        (vec![kind("EdgeNGramTokenFilterV2", json!({"minGram": 2, "maxGram": 3}))], "hello a", "he@0 hel@0"),
        (
            vec![kind("EdgeNGramTokenFilterV2", json!({"minGram": 1, "maxGram": 2, "side": "back"}))],
            "añ",
            "ñ@0 añ@0",
        ),
        (
            vec![kind("NGramTokenFilterV2", json!({"minGram": 2, "maxGram": 3}))],
            "abcd x",
            "ab@0 abc@0 bc@0 bcd@0 cd@0",
        ),
        (vec![json!("shingle")], "a b c", "a@0 a b@0 b@1 b c@1 c@2"),
        (
            vec![json!("stopwords"), kind("ShingleTokenFilter", json!({"outputUnigrams": false}))],
            "fox and hen",
            "fox _@0 _ hen@1",
        ),
        (
            vec![kind(
                "ShingleTokenFilter",
                json!({"outputUnigrams": false, "outputUnigramsIfNoShingles": true}),
            )],
            "a",
            "a@0",
        ),
        (
            vec![kind("ShingleTokenFilter", json!({"maxShingleSize": 3, "tokenSeparator": "-"}))],
            "a b c",
            "a@0 a-b@0 a-b-c@0 b@1 b-c@1 c@2",
        ),
        (
            vec![kind("CommonGramTokenFilter", json!({"commonWords": ["the"]}))],
            "see the fox",
            "see@0 see_the@0 the@1 the_fox@1 fox@2",
        ),
        (
            vec![kind("CommonGramTokenFilter", json!({"commonWords": ["the"], "queryMode": true}))],
            "see the fox run",
            "see_the@0 the_fox@1 fox@2 run@3",
        ),
        (
            vec![kind(
                "DictionaryDecompounderTokenFilter",
                json!({"wordList": ["Donau", "dampf", "schiff"]}),
            )],
            "Donaudampfschiff",
            "Donaudampfschiff@0 Donau@0 dampf@0 schiff@0",
        ),
        (vec![kind("KeepTokenFilter", json!({"keepWords": ["b"]}))], "a b c", "b@1"),
        (vec![kind("LengthTokenFilter", json!({"min": 2, "max": 3}))], "a bb ccc dddd", "bb@1 ccc@2"),
        (vec![kind("LimitTokenFilter", json!({"maxTokenCount": 2}))], "a b c", "a@0 b@1"),
        (vec![json!("limit")], "a b c", "a@0"),
        (vec![json!("unique")], "a b a c", "a@0 b@1 c@3"),
        (vec![json!("keyword_repeat"), json!("porter_stem")], "running", "running@0 run@0"),
        (
            vec![
                json!("keyword_repeat"),
                json!("porter_stem"),
                kind("UniqueTokenFilter", json!({"onlyOnSamePosition": true})),
            ],
            "run run",
            "run@0 run@1",
        ),
        (
            vec![
                kind("KeywordMarkerTokenFilter", json!({"keywords": ["Jumping"], "ignoreCase": true})),
                json!("porter_stem"),
            ],
            "jumping running",
            "jumping@0 run@1",
        ),
        (
            vec![
                kind("StemmerOverrideTokenFilter", json!({"rules": ["mice => mouse"]})),
                json!("porter_stem"),
            ],
            "mice cats",
            "mouse@0 cat@1",
        ),
        (vec![kind("StemmerTokenFilter", json!({"language": "lightGerman"}))], "häuser", "haus@0"),
        (vec![kind("SnowballTokenFilter", json!({"language": "english"}))], "generously", "generous@0"),
        (vec![json!("porter_stem")], "generously", "gener@0"),
        (vec![kind("StopwordsTokenFilter", json!({"stopwords": ["X"], "ignoreCase": true}))], "x y", "y@1"),
        (
            vec![kind("StopwordsTokenFilter", json!({"stopwordsList": "german", "removeTrailing": false}))],
            "und ein",
            "ein@1",
        ),
        (
            vec![kind(
                "PatternCaptureTokenFilter",
                json!({"patterns": ["(\\d+)", "([a-z]+)"], "preserveOriginal": true}),
            )],
            "ab12cd",
            "ab12cd@0 ab@0 12@0 cd@0",
        ),
        (
            vec![kind("PatternReplaceTokenFilter", json!({"pattern": "(a)(b)", "replacement": "$2$1"}))],
            "xab",
            "xba@0",
        ),
        (vec![kind("PhoneticTokenFilter", json!({"encoder": "soundex"}))], "Robert Rupert", "R163@0 R163@1"),
        (
            vec![kind("PhoneticTokenFilter", json!({"encoder": "soundex", "replace": false}))],
            "Robert",
            "R163@0 Robert@0",
        ),
        (
            vec![kind(
                "SynonymTokenFilter",
                json!({"synonyms": ["usa, united states => america", "car, auto"]}),
            )],
            "the united states car",
            "the@0 america@1 car@3 auto@3",
        ),
        (
            vec![kind("SynonymTokenFilter", json!({"synonyms": ["usa => usa, united states of america"]}))],
            "usa of x",
            "usa@0 united@0 states@1 of@1 of@2 x@2 america@3",
        ),
        (
            vec![kind(
                "SynonymTokenFilter",
                json!({"synonyms": ["car, auto"], "expand": false, "ignoreCase": true}),
            )],
            "AUTO x",
            "car@0 x@1",
        ),
        (vec![kind("TruncateTokenFilter", json!({"length": 2}))], "abc", "ab@0"),
        (vec![json!("reverse"), json!("uppercase")], "abc", "CBA@0"),
        (vec![kind("ElisionTokenFilter", json!({"articles": ["l"]}))], "l'eau d'or", "eau@0 d'or@1"),
        (
            vec![kind("CjkBigramTokenFilter", json!({"outputUnigrams": true}))],
            "東京 x",
            "東@0 東京@0 京@1 x@2",
        ),
        (vec![kind("CjkBigramTokenFilter", json!({"ignoreScripts": ["han"]}))], "東京", "東@0 京@1"),
        (vec![json!("german_normalization")], "Fuer", "Fur@0"),
    ] {
        assert_eq!(through(&json!("standard_v2"), &filters, text).join(" "), expected, "{filters:?}");
    }
}

#[test]
fn words_are_delimited() {
    for (settings, text, expected) in [
        (json!({}), "PowerShot SD500 x", "Power@0 Shot@1 SD@2 500@3 x@4"),
        (json!({}), "Wi-Fi's O'Neil's --", "Wi@0 Fi@1 O@2 Neil@3"),
        (json!({"catenateWords": true}), "Wi-Fi x", "Wi@0 WiFi@0 Fi@1 x@2"),
        (json!({"catenateNumbers": true, "generateNumberParts": false}), "1-2", "12@0"),
        (json!({"catenateAll": true}), "a-1", "a@0 a1@0 1@1"),
        (
            json!({"catenateAll": true, "generateWordParts": false, "generateNumberParts": false}),
            "a-1 b",
            "a1@0 b@1",
        ),
        (json!({"preserveOriginal": true}), "a-b c", "a-b@0 a@0 b@1 c@2"),
        (json!({"splitOnCaseChange": false}), "aB-c", "aB@0 c@1"),
        (json!({"splitOnNumerics": false}), "j2se-x", "j2se@0 x@1"),
        (json!({"protectedWords": ["a-b"]}), "a-b c-d", "a-b@0 c@1 d@2"),
    ] {
        let filter = kind("WordDelimiterTokenFilter", settings.clone());
        assert_eq!(through(&json!("whitespace"), &[filter], text).join(" "), expected, "{settings} {text}");
    }
}

#[test]
fn shingles_longer_than_the_maximum_term_are_dropped() {
    let shingle = kind(
        "ShingleTokenFilter",
        json!({"minShingleSize": 2, "maxShingleSize": 300, "outputUnigrams": true}),
    );
    let split = kind("PatternTokenizer", json!({"pattern": " "}));
    let word = "x".repeat(15_000);
    let tokens = through(&split, from_ref(&shingle), &[word.as_str(); 5].join(" "));
    let lengths: Vec<usize> = tokens.iter().map(|token| token.len() - 2).collect();
    assert_eq!(lengths, [15_000, 30_001, 15_000, 30_001, 15_000, 30_001, 15_000, 30_001, 15_000]);
    // A window larger than the text emits everything.
    let tokens = through(&split, &[shingle], "a b c");
    assert_eq!(tokens, ["a@0", "a b@0", "a b c@0", "b@1", "b c@1", "c@2"]);
}

#[test]
fn captures_and_parts_of_a_huge_word_are_bounded() {
    let nested = format!("{}.*{}", "(".repeat(50), ")".repeat(50));
    let capture = kind("PatternCaptureTokenFilter", json!({"patterns": [nested], "preserveOriginal": false}));
    let word = "x".repeat(200_000);
    let given = through(&json!("keyword"), &[capture], &word).len();
    // The limit is one MiB plus four times the length of the word.
    assert_eq!(given, 9);

    let decompound = kind("DictionaryDecompounderTokenFilter", json!({"wordList": ["xx", "xxx"]}));
    assert_eq!(through(&json!("keyword"), from_ref(&decompound), &word).len(), 1);
    assert_eq!(through(&json!("keyword"), &[decompound], "xxxxx").len(), 8);
}
