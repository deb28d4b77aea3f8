//! Token filters, predefined and from definitions.

pub(crate) mod cjk;
pub(crate) mod delimiter;
pub(crate) mod folding;
pub(crate) mod grams;
pub(crate) mod phonetic;
pub(crate) mod stage;
pub(crate) mod stem;
pub(crate) mod step;
pub(crate) mod stop_words;
pub(crate) mod synonym;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bindpost_azure_search_model::ApiError;
use serde_json::Map;

use self::cjk::{CjkBigramTokenFilter, CjkScript};
use self::delimiter::{WordDelimiterOptions, WordDelimiterTokenFilter};
use self::folding::ScriptNormalization;
use self::grams::{CommonGramTokenFilter, EdgeNGramTokenFilter, NGramTokenFilter, ShingleTokenFilter};
use self::phonetic::PhoneticEncoder;
use self::stage::{
    DecompounderTokenFilter, FoldPreservingOriginal, KeywordRepeatTokenFilter, LimitTokenFilter,
    PatternCaptureTokenFilter, PhoneticPreservingOriginal, StopExceptTrailing, TokenPositions,
    UniqueTokenFilter,
};
use self::step::{FilterStep, TextTransform, lowered};
use self::stop_words::StopWords;
use self::synonym::{SynonymTable, SynonymTokenFilter};
use super::analyzer::TokenFilter;
use super::language::{FRENCH_ARTICLES, elision};
use super::parts::{MOST, check_order, gram_sizes, unknown_kind};
use super::pattern::{PatternReplacement, compile};
use super::settings::ComponentSettings;

/// The predefined filter names, and the type whose defaults each one uses.
pub(super) const TOKEN_FILTERS: [(&str, &str); 36] = [
    ("apostrophe", ""),
    ("arabic_normalization", ""),
    ("asciifolding", "AsciiFoldingTokenFilter"),
    ("cjk_bigram", "CjkBigramTokenFilter"),
    ("cjk_width", ""),
    ("classic", ""),
    ("common_grams", "CommonGramTokenFilter"),
    ("edgeNGram", "EdgeNGramTokenFilter"),
    ("edgeNGram_v2", "EdgeNGramTokenFilterV2"),
    ("elision", "ElisionTokenFilter"),
    ("german_normalization", ""),
    ("hindi_normalization", ""),
    ("indic_normalization", ""),
    ("keyword_repeat", ""),
    ("kstem", ""),
    ("length", "LengthTokenFilter"),
    ("limit", "LimitTokenFilter"),
    ("lowercase", ""),
    ("nGram", "NGramTokenFilter"),
    ("nGram_v2", "NGramTokenFilterV2"),
    ("persian_normalization", ""),
    ("phonetic", "PhoneticTokenFilter"),
    ("porter_stem", ""),
    ("reverse", ""),
    ("scandinavian_folding", ""),
    ("scandinavian_normalization", ""),
    ("shingle", "ShingleTokenFilter"),
    ("snowball", "SnowballTokenFilter"),
    ("sorani_normalization", ""),
    ("stemmer", "StemmerTokenFilter"),
    ("stopwords", "StopwordsTokenFilter"),
    ("trim", ""),
    ("truncate", "TruncateTokenFilter"),
    ("unique", "UniqueTokenFilter"),
    ("uppercase", ""),
    ("word_delimiter", "WordDelimiterTokenFilter"),
];

pub(super) fn predefined(name: &str) -> Option<Result<TokenFilter, ApiError>> {
    let script = |script| TextTransform::Script(script).into();
    let filter: TokenFilter = match name {
        "apostrophe" => TextTransform::Apostrophe.into(),
        "arabic_normalization" => script(ScriptNormalization::Arabic),
        "cjk_width" => script(ScriptNormalization::CjkWidth),
        "classic" => TextTransform::Classic.into(),
        "german_normalization" => script(ScriptNormalization::German),
        "hindi_normalization" => script(ScriptNormalization::Hindi),
        "indic_normalization" => script(ScriptNormalization::Indic),
        "keyword_repeat" => TokenFilter::stage(KeywordRepeatTokenFilter),
        "kstem" | "porter_stem" => stem::stem_filter(frostem::Algorithm::Porter),
        "lowercase" => TextTransform::Lower.into(),
        "persian_normalization" => script(ScriptNormalization::Persian),
        "reverse" => TextTransform::Reverse.into(),
        "scandinavian_folding" => script(ScriptNormalization::ScandinavianFolding),
        "scandinavian_normalization" => script(ScriptNormalization::ScandinavianNormal),
        "snowball" | "stemmer" => stem::stem_filter(frostem::Algorithm::English),
        "sorani_normalization" => script(ScriptNormalization::Sorani),
        "trim" => TextTransform::Trim.into(),
        "uppercase" => TextTransform::Upper.into(),
        _ => {
            let (name, kind) = TOKEN_FILTERS.iter().find(|(known, _)| *known == name)?;
            let nothing = Map::new();
            let place = format!("Token filter '{name}'");
            return Some(custom(&ComponentSettings::defaults(place, name, kind, &nothing)));
        }
    };
    Some(Ok(filter))
}

/// Builds the token filter of a definition.
pub(super) fn custom(settings: &ComponentSettings<'_>) -> Result<TokenFilter, ApiError> {
    let set = |words: Vec<String>| -> Arc<HashSet<String>> { Arc::new(words.into_iter().collect()) };
    let case = |words: Vec<String>, ignore: bool| {
        set(if ignore { words.iter().map(|word| lowered(word)).collect() } else { words })
    };
    let filter = match settings.kind {
        "AsciiFoldingTokenFilter" => match settings.given.boolean("preserveOriginal")?.unwrap_or(false) {
            true => TokenFilter::stage(FoldPreservingOriginal),
            false => TextTransform::Fold.into(),
        },
        "CjkBigramTokenFilter" => {
            let scripts = [
                ("han", CjkScript::Han),
                ("hiragana", CjkScript::Hiragana),
                ("katakana", CjkScript::Katakana),
                ("hangul", CjkScript::Hangul),
            ];
            let ignored = settings.given.choices("ignoreScripts", &scripts)?;
            TokenFilter::stage(CjkBigramTokenFilter::new(
                ignored,
                settings.given.boolean("outputUnigrams")?.unwrap_or(false),
                false,
            ))
        }
        "CommonGramTokenFilter" => {
            let ignore_case = settings.given.boolean("ignoreCase")?.unwrap_or(false);
            TokenFilter::stage(CommonGramTokenFilter {
                words: case(settings.required_strings("commonWords")?, ignore_case),
                ignore_case,
                query: settings.given.boolean("queryMode")?.unwrap_or(false),
                last: None,
                paired: false,
            })
        }
        "DictionaryDecompounderTokenFilter" => {
            let min_part = settings.given.integer_in("minSubwordSize", 1..=MOST)?.unwrap_or(2);
            let max_part = settings.given.integer_in("maxSubwordSize", 1..=MOST)?.unwrap_or(15);
            check_order(settings, ("minSubwordSize", min_part), ("maxSubwordSize", max_part))?;
            TokenFilter::stage(DecompounderTokenFilter {
                words: case(settings.required_strings("wordList")?, true),
                min_word: settings.given.integer_in("minWordSize", 1..=MOST)?.unwrap_or(5),
                min_part,
                max_part,
                longest: settings.given.boolean("onlyLongestMatch")?.unwrap_or(false),
            })
        }
        "EdgeNGramTokenFilter" | "EdgeNGramTokenFilterV2" => {
            let (min, max) = gram_sizes(settings)?;
            let back = settings.given.choice("side", &[("front", false), ("back", true)])?.unwrap_or(false);
            TokenFilter::stage(EdgeNGramTokenFilter { min, max, back })
        }
        "ElisionTokenFilter" => match settings.strings("articles")? {
            None => elision(&FRENCH_ARTICLES),
            Some(articles) => TextTransform::Elision(case(articles, true)).into(),
        },
        "KeepTokenFilter" => {
            let lower = settings.given.boolean("keepWordsCase")?.unwrap_or(false);
            FilterStep::Keep { words: case(settings.required_strings("keepWords")?, lower), lower }.into()
        }
        "KeywordMarkerTokenFilter" => {
            let ignore_case = settings.given.boolean("ignoreCase")?.unwrap_or(false);
            let words = case(settings.required_strings("keywords")?, ignore_case);
            FilterStep::MarkKeywords { words, ignore_case }.into()
        }
        "LengthTokenFilter" => {
            let min = settings.given.integer_in("min", 0..=MOST)?.unwrap_or(0);
            let max = settings.given.integer_in("max", 0..=MOST)?.unwrap_or(MOST);
            check_order(settings, ("min", min), ("max", max))?;
            FilterStep::Length { min, max }.into()
        }
        "LimitTokenFilter" => {
            // Reading the rest of the text does not change the tokens.
            settings.given.boolean("consumeAllTokens")?;
            TokenFilter::stage(LimitTokenFilter(
                settings.given.integer_in("maxTokenCount", 1..=(i32::MAX as usize))?.unwrap_or(1),
            ))
        }
        "NGramTokenFilter" | "NGramTokenFilterV2" => {
            let (min, max) = gram_sizes(settings)?;
            TokenFilter::stage(NGramTokenFilter { min, max, current: None })
        }
        "PatternCaptureTokenFilter" => {
            let patterns = settings.required_strings("patterns")?;
            let patterns: Result<Vec<_>, _> =
                patterns.iter().map(|pattern| compile(pattern, "", &settings.place)).collect();
            let preserve = settings.given.boolean("preserveOriginal")?.unwrap_or(true);
            TokenFilter::stage(PatternCaptureTokenFilter { patterns: patterns?.into(), preserve })
        }
        "PatternReplaceTokenFilter" => {
            let pattern = compile(settings.given.required_text_or_empty("pattern")?, "", &settings.place)?;
            let replacement = PatternReplacement::parse(
                settings.given.required_text_or_empty("replacement")?,
                &pattern,
                &settings.place,
            )?;
            TextTransform::Pattern { pattern, replacement }.into()
        }
        "PhoneticTokenFilter" => phonetic(settings)?,
        "ShingleTokenFilter" => shingle(settings)?,
        "SnowballTokenFilter" => stemmer(settings, &stem::SNOWBALL)?,
        "StemmerTokenFilter" => stemmer(settings, &stem::STEMMER)?,
        "StemmerOverrideTokenFilter" => {
            let mut stems = HashMap::new();
            for rule in settings.required_strings("rules")? {
                let parted = rule.split_once("=>").map(|(word, stem)| (word.trim(), stem.trim()));
                match parted {
                    Some((word, stem)) if !word.is_empty() && !stem.is_empty() => {
                        stems.insert(word.to_owned(), stem.to_owned());
                    }
                    _ => {
                        return Err(ApiError::invalid(format!(
                            "{}: '{rule}' is not a rule. Write 'word => stem'.",
                            settings.place
                        )));
                    }
                }
            }
            FilterStep::Override(Arc::new(stems)).into()
        }
        "StopwordsTokenFilter" => stopwords(settings)?,
        "SynonymTokenFilter" => {
            let rules = SynonymTable::parse(
                &settings.required_strings("synonyms")?,
                settings.given.boolean("expand")?.unwrap_or(true),
                settings.given.boolean("ignoreCase")?.unwrap_or(false),
                &settings.place,
            )?;
            TokenFilter::stage(SynonymTokenFilter::new(rules))
        }
        "TruncateTokenFilter" => {
            TextTransform::Truncate(settings.given.integer_in("length", 1..=MOST)?.unwrap_or(MOST)).into()
        }
        "UniqueTokenFilter" => {
            let at_position = settings.given.boolean("onlyOnSamePosition")?.unwrap_or(false);
            TokenFilter::stage(UniqueTokenFilter { at_position, ..UniqueTokenFilter::default() })
        }
        "WordDelimiterTokenFilter" => {
            let options = WordDelimiterOptions {
                word_parts: settings.given.boolean("generateWordParts")?.unwrap_or(true),
                number_parts: settings.given.boolean("generateNumberParts")?.unwrap_or(true),
                catenate_words: settings.given.boolean("catenateWords")?.unwrap_or(false),
                catenate_numbers: settings.given.boolean("catenateNumbers")?.unwrap_or(false),
                catenate_all: settings.given.boolean("catenateAll")?.unwrap_or(false),
                split_on_case: settings.given.boolean("splitOnCaseChange")?.unwrap_or(true),
                split_on_numerics: settings.given.boolean("splitOnNumerics")?.unwrap_or(true),
                preserve_original: settings.given.boolean("preserveOriginal")?.unwrap_or(false),
                possessive: settings.given.boolean("stemEnglishPossessive")?.unwrap_or(true),
                protected: settings.strings("protectedWords")?.unwrap_or_default().into_iter().collect(),
            };
            TokenFilter::stage(WordDelimiterTokenFilter {
                options: Arc::new(options),
                positions: TokenPositions::default(),
            })
        }
        _ => return Err(unknown_kind(settings, "token filter")),
    };
    settings.finish()?;
    Ok(filter)
}

fn phonetic(settings: &ComponentSettings<'_>) -> Result<TokenFilter, ApiError> {
    let replace = settings.given.boolean("replace")?.unwrap_or(true);
    let encoder = settings.given.text("encoder")?.unwrap_or("metaphone");
    let encoder = match encoder {
        "metaphone" => PhoneticEncoder::Metaphone,
        "soundex" => PhoneticEncoder::Soundex,
        "refinedSoundex" => PhoneticEncoder::RefinedSoundex,
        "doubleMetaphone" | "caverphone1" | "caverphone2" | "cologne" | "nysiis" | "koelnerPhonetik"
        | "haasePhonetik" | "beiderMorse" => {
            return Err(ApiError::not_supported(format!(
                "{}: the encoder '{encoder}' is not available in this service. Define a phonetic filter with 'metaphone', 'soundex' or 'refinedSoundex'.",
                settings.place
            )));
        }
        _ => {
            return Err(ApiError::invalid(format!("{}: '{encoder}' is not an encoder.", settings.place)));
        }
    };
    Ok(if replace {
        TextTransform::Phonetic(encoder).into()
    } else {
        TokenFilter::stage(PhoneticPreservingOriginal(encoder))
    })
}

fn shingle(settings: &ComponentSettings<'_>) -> Result<TokenFilter, ApiError> {
    let min = settings.given.integer_in("minShingleSize", 2..=MOST)?.unwrap_or(2);
    let max = settings.given.integer_in("maxShingleSize", 2..=MOST)?.unwrap_or(2);
    check_order(settings, ("minShingleSize", min), ("maxShingleSize", max))?;
    let mut shingles =
        ShingleTokenFilter::new(min, max, settings.given.boolean("outputUnigrams")?.unwrap_or(true));
    shingles.unigrams_if_alone = settings.given.boolean("outputUnigramsIfNoShingles")?.unwrap_or(false);
    shingles.separator = settings.given.text("tokenSeparator")?.unwrap_or(" ").into();
    shingles.filler = settings.given.text("filterToken")?.unwrap_or("_").into();
    Ok(TokenFilter::stage(shingles))
}

fn stemmer(settings: &ComponentSettings<'_>, known: &[&'static str]) -> Result<TokenFilter, ApiError> {
    let choices: Vec<(&str, &'static str)> = known.iter().map(|&name| (name, name)).collect();
    let language = settings.given.choice("language", &choices)?.unwrap_or("");
    if language.is_empty() {
        return Err(settings.given.missing("language"));
    }
    // In `snowball`, "english" is the newer of Porter's two stemmers.
    let name =
        if language == "english" && settings.kind == "SnowballTokenFilter" { "porter2" } else { language };
    stem::named(name).ok_or_else(|| {
        ApiError::not_supported(format!(
            "{}: no stemmer for '{language}' is available in this service. Remove the filter, or use another language.",
            settings.place
        ))
    })
}

fn stopwords(settings: &ComponentSettings<'_>) -> Result<TokenFilter, ApiError> {
    let ignore_case = settings.given.boolean("ignoreCase")?.unwrap_or(false);
    let trailing = settings.given.boolean("removeTrailing")?.unwrap_or(true);
    let list = settings.given.text("stopwordsList")?;
    let words = match settings.strings("stopwords")? {
        Some(_) if list.is_some() => {
            return Err(ApiError::invalid(format!(
                "{}: 'stopwords' and 'stopwordsList' cannot both be set.",
                settings.place
            )));
        }
        Some(words) if ignore_case => StopWords::from_words(words.iter().map(|word| lowered(word))),
        Some(words) => StopWords::from_words(words),
        None => {
            let list = list.unwrap_or("english");
            StopWords::named(list).ok_or_else(|| {
                ApiError::invalid(format!("{}: '{list}' is not a list of stop words.", settings.place))
            })?
        }
    };
    Ok(if trailing {
        FilterStep::Stop { words, ignore_case }.into()
    } else {
        TokenFilter::stage(StopExceptTrailing { words, ignore_case, held: None })
    })
}
