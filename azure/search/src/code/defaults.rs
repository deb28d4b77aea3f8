//! Members that a service fills in if a definition of an index does not have them.
//!
//! The defaults of custom analysis are those of the API description. `fields.rs` has those of fields.

use serde_json::{Map, Value, json};

/// The defaults of one type.
type TypeDefaults = (&'static str, &'static [(&'static str, &'static str)]);

/// The defaults of custom analysis: each type without its prefix, and its members as JSON.
const ANALYSIS: &[TypeDefaults] = &[
    ("PatternAnalyzer", &[("lowercase", "true"), ("pattern", r#""\\W+""#)]),
    ("StandardAnalyzer", &[("maxTokenLength", "255")]),
    ("ClassicTokenizer", &[("maxTokenLength", "255")]),
    ("EdgeNGramTokenizer", &[("minGram", "1"), ("maxGram", "2")]),
    ("KeywordTokenizer", &[("bufferSize", "256")]),
    ("KeywordTokenizerV2", &[("maxTokenLength", "256")]),
    ("MicrosoftLanguageTokenizer", &[("maxTokenLength", "255"), ("isSearchTokenizer", "false")]),
    ("MicrosoftLanguageStemmingTokenizer", &[("maxTokenLength", "255"), ("isSearchTokenizer", "false")]),
    ("NGramTokenizer", &[("minGram", "1"), ("maxGram", "2")]),
    (
        "PathHierarchyTokenizerV2",
        &[
            ("delimiter", r#""/""#),
            ("replacement", r#""/""#),
            ("maxTokenLength", "300"),
            ("reverse", "false"),
            ("skip", "0"),
        ],
    ),
    ("PatternTokenizer", &[("pattern", r#""\\W+""#), ("group", "-1")]),
    ("StandardTokenizer", &[("maxTokenLength", "255")]),
    ("StandardTokenizerV2", &[("maxTokenLength", "255")]),
    ("UaxUrlEmailTokenizer", &[("maxTokenLength", "255")]),
    ("AsciiFoldingTokenFilter", &[("preserveOriginal", "false")]),
    ("CjkBigramTokenFilter", &[("outputUnigrams", "false")]),
    ("CommonGramTokenFilter", &[("ignoreCase", "false"), ("queryMode", "false")]),
    (
        "DictionaryDecompounderTokenFilter",
        &[
            ("minWordSize", "5"),
            ("minSubwordSize", "2"),
            ("maxSubwordSize", "15"),
            ("onlyLongestMatch", "false"),
        ],
    ),
    ("EdgeNGramTokenFilter", &[("minGram", "1"), ("maxGram", "2"), ("side", r#""front""#)]),
    ("EdgeNGramTokenFilterV2", &[("minGram", "1"), ("maxGram", "2"), ("side", r#""front""#)]),
    ("KeepTokenFilter", &[("keepWordsCase", "false")]),
    ("KeywordMarkerTokenFilter", &[("ignoreCase", "false")]),
    ("LengthTokenFilter", &[("min", "0"), ("max", "300")]),
    ("LimitTokenFilter", &[("maxTokenCount", "1"), ("consumeAllTokens", "false")]),
    ("NGramTokenFilter", &[("minGram", "1"), ("maxGram", "2")]),
    ("NGramTokenFilterV2", &[("minGram", "1"), ("maxGram", "2")]),
    ("PatternCaptureTokenFilter", &[("preserveOriginal", "true")]),
    ("PhoneticTokenFilter", &[("encoder", r#""metaphone""#), ("replace", "true")]),
    (
        "ShingleTokenFilter",
        &[
            ("maxShingleSize", "2"),
            ("minShingleSize", "2"),
            ("outputUnigrams", "true"),
            ("outputUnigramsIfNoShingles", "false"),
            ("tokenSeparator", r#"" ""#),
            ("filterToken", r#""_""#),
        ],
    ),
    (
        "StopwordsTokenFilter",
        &[("stopwordsList", r#""english""#), ("ignoreCase", "false"), ("removeTrailing", "true")],
    ),
    ("SynonymTokenFilter", &[("ignoreCase", "false"), ("expand", "true")]),
    ("TruncateTokenFilter", &[("length", "300")]),
    ("UniqueTokenFilter", &[("onlyOnSamePosition", "false")]),
    (
        "WordDelimiterTokenFilter",
        &[
            ("generateWordParts", "true"),
            ("generateNumberParts", "true"),
            ("catenateWords", "false"),
            ("catenateNumbers", "false"),
            ("catenateAll", "false"),
            ("splitOnCaseChange", "true"),
            ("preserveOriginal", "false"),
            ("splitOnNumerics", "true"),
            ("stemEnglishPossessive", "true"),
        ],
    ),
];

/// Adds the defaults to the definition of an index.
pub(crate) fn fill_in(index: &mut Value) {
    for part in ["analyzers", "tokenizers", "tokenFilters"] {
        for element in elements(index, part) {
            let kind = element.get("@odata.type").and_then(Value::as_str).unwrap_or_default();
            let kind = kind.strip_prefix("#Microsoft.Azure.Search.").unwrap_or(kind).to_owned();
            let defaults = ANALYSIS.iter().find(|(name, _)| *name == kind);
            for (member, json) in defaults.into_iter().flat_map(|(_, members)| *members) {
                fill(element, member, serde_json::from_str(json).unwrap_or_default());
            }
        }
    }
    for profile in elements(index, "scoringProfiles") {
        fill(profile, "functionAggregation", "sum".into());
        let functions = profile.get_mut("functions").and_then(Value::as_array_mut).into_iter().flatten();
        for function in functions.filter_map(Value::as_object_mut) {
            fill(function, "interpolation", "linear".into());
        }
    }
    for suggester in elements(index, "suggesters") {
        fill(suggester, "searchMode", "analyzingInfixMatching".into());
    }
    let Some(vectors) = index.get_mut("vectorSearch") else { return };
    for algorithm in elements(vectors, "algorithms") {
        let (parameters, defaults) = match algorithm.get("kind").and_then(Value::as_str) {
            Some("hnsw") => (
                "hnswParameters",
                json!({"m": 4, "efConstruction": 400, "efSearch": 500, "metric": "cosine"}),
            ),
            Some("exhaustiveKnn") => ("exhaustiveKnnParameters", json!({"metric": "cosine"})),
            _ => continue,
        };
        fill(algorithm, parameters, json!({}));
        if let (Some(Value::Object(members)), Value::Object(defaults)) =
            (algorithm.get_mut(parameters), defaults)
        {
            defaults.into_iter().for_each(|(member, value)| fill(members, &member, value));
        }
    }
}

/// Returns the objects of a list.
fn elements<'a>(value: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let elements = value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    elements.filter_map(Value::as_object_mut)
}

/// Sets a member that is missing or null.
fn fill(members: &mut Map<String, Value>, member: &str, default: Value) {
    let value = members.entry(member).or_insert(Value::Null);
    if value.is_null() {
        *value = default;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_json() {
        for (kind, members) in ANALYSIS {
            for (member, json) in *members {
                assert!(serde_json::from_str::<Value>(json).is_ok(), "{kind} {member}");
            }
        }
    }

    #[test]
    fn a_short_definition_equals_what_the_service_returns() {
        let mut short = json!({
            "analyzers": [{"@odata.type": "#Microsoft.Azure.Search.PatternAnalyzer", "name": "p"}],
            "scoringProfiles": [{"name": "s", "functions": [{"type": "tag"}]}],
            "vectorSearch": {"algorithms": [{"name": "a", "kind": "hnsw", "hnswParameters": {"m": 8}}]},
        });
        let mut full = json!({
            "analyzers": [{"@odata.type": "#Microsoft.Azure.Search.PatternAnalyzer", "name": "p",
                "lowercase": true, "pattern": "\\W+"}],
            "scoringProfiles": [{"name": "s", "functionAggregation": "sum",
                "functions": [{"type": "tag", "interpolation": "linear"}]}],
            "vectorSearch": {"algorithms": [{"name": "a", "kind": "hnsw",
                "hnswParameters": {"m": 8, "efConstruction": 400, "efSearch": 500, "metric": "cosine"}}]},
        });
        fill_in(&mut short);
        fill_in(&mut full);
        assert_eq!(short, full);
    }
}
