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
use crate::ApiError;

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
        "AsciiFoldingTokenFilter" => match settings.boolean("preserveOriginal", false)? {
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
            let ignored = settings.choices("ignoreScripts", &scripts)?;
            TokenFilter::stage(CjkBigramTokenFilter::new(
                ignored,
                settings.boolean("outputUnigrams", false)?,
                false,
            ))
        }
        "CommonGramTokenFilter" => {
            let ignore_case = settings.boolean("ignoreCase", false)?;
            TokenFilter::stage(CommonGramTokenFilter {
                words: case(settings.required_strings("commonWords")?, ignore_case),
                ignore_case,
                query: settings.boolean("queryMode", false)?,
                last: None,
                paired: false,
            })
        }
        "DictionaryDecompounderTokenFilter" => {
            let min_part = settings.number("minSubwordSize", 2, 1, MOST)?;
            let max_part = settings.number("maxSubwordSize", 15, 1, MOST)?;
            check_order(settings, ("minSubwordSize", min_part), ("maxSubwordSize", max_part))?;
            TokenFilter::stage(DecompounderTokenFilter {
                words: case(settings.required_strings("wordList")?, true),
                min_word: settings.number("minWordSize", 5, 1, MOST)?,
                min_part,
                max_part,
                longest: settings.boolean("onlyLongestMatch", false)?,
            })
        }
        "EdgeNGramTokenFilter" | "EdgeNGramTokenFilterV2" => {
            let (min, max) = gram_sizes(settings)?;
            let back = settings.choice("side", false, &[("front", false), ("back", true)])?;
            TokenFilter::stage(EdgeNGramTokenFilter { min, max, back })
        }
        "ElisionTokenFilter" => match settings.strings("articles")? {
            None => elision(&FRENCH_ARTICLES),
            Some(articles) => TextTransform::Elision(case(articles, true)).into(),
        },
        "KeepTokenFilter" => {
            let lower = settings.boolean("keepWordsCase", false)?;
            FilterStep::Keep { words: case(settings.required_strings("keepWords")?, lower), lower }.into()
        }
        "KeywordMarkerTokenFilter" => {
            let ignore_case = settings.boolean("ignoreCase", false)?;
            let words = case(settings.required_strings("keywords")?, ignore_case);
            FilterStep::MarkKeywords { words, ignore_case }.into()
        }
        "LengthTokenFilter" => {
            let min = settings.number("min", 0, 0, MOST)?;
            let max = settings.number("max", MOST, 0, MOST)?;
            check_order(settings, ("min", min), ("max", max))?;
            FilterStep::Length { min, max }.into()
        }
        "LimitTokenFilter" => {
            // Reading the rest of the text does not change the tokens.
            settings.boolean("consumeAllTokens", false)?;
            TokenFilter::stage(LimitTokenFilter(settings.number("maxTokenCount", 1, 1, i32::MAX as usize)?))
        }
        "NGramTokenFilter" | "NGramTokenFilterV2" => {
            let (min, max) = gram_sizes(settings)?;
            TokenFilter::stage(NGramTokenFilter { min, max, current: None })
        }
        "PatternCaptureTokenFilter" => {
            let patterns = settings.required_strings("patterns")?;
            let patterns: Result<Vec<_>, _> =
                patterns.iter().map(|pattern| compile(pattern, "", &settings.place)).collect();
            let preserve = settings.boolean("preserveOriginal", true)?;
            TokenFilter::stage(PatternCaptureTokenFilter { patterns: patterns?.into(), preserve })
        }
        "PatternReplaceTokenFilter" => {
            let pattern = compile(settings.required_string("pattern")?, "", &settings.place)?;
            let replacement = PatternReplacement::parse(
                settings.required_string("replacement")?,
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
                settings.boolean("expand", true)?,
                settings.boolean("ignoreCase", false)?,
                &settings.place,
            )?;
            TokenFilter::stage(SynonymTokenFilter::new(rules))
        }
        "TruncateTokenFilter" => TextTransform::Truncate(settings.number("length", MOST, 1, MOST)?).into(),
        "UniqueTokenFilter" => {
            let at_position = settings.boolean("onlyOnSamePosition", false)?;
            TokenFilter::stage(UniqueTokenFilter { at_position, ..UniqueTokenFilter::default() })
        }
        "WordDelimiterTokenFilter" => {
            let options = WordDelimiterOptions {
                word_parts: settings.boolean("generateWordParts", true)?,
                number_parts: settings.boolean("generateNumberParts", true)?,
                catenate_words: settings.boolean("catenateWords", false)?,
                catenate_numbers: settings.boolean("catenateNumbers", false)?,
                catenate_all: settings.boolean("catenateAll", false)?,
                split_on_case: settings.boolean("splitOnCaseChange", true)?,
                split_on_numerics: settings.boolean("splitOnNumerics", true)?,
                preserve_original: settings.boolean("preserveOriginal", false)?,
                possessive: settings.boolean("stemEnglishPossessive", true)?,
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
    let replace = settings.boolean("replace", true)?;
    let encoder = settings.string("encoder")?.unwrap_or("metaphone");
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
    let min = settings.number("minShingleSize", 2, 2, MOST)?;
    let max = settings.number("maxShingleSize", 2, 2, MOST)?;
    check_order(settings, ("minShingleSize", min), ("maxShingleSize", max))?;
    let mut shingles = ShingleTokenFilter::new(min, max, settings.boolean("outputUnigrams", true)?);
    shingles.unigrams_if_alone = settings.boolean("outputUnigramsIfNoShingles", false)?;
    shingles.separator = settings.string("tokenSeparator")?.unwrap_or(" ").into();
    shingles.filler = settings.string("filterToken")?.unwrap_or("_").into();
    Ok(TokenFilter::stage(shingles))
}

fn stemmer(settings: &ComponentSettings<'_>, known: &[&'static str]) -> Result<TokenFilter, ApiError> {
    let choices: Vec<(&str, &'static str)> = known.iter().map(|&name| (name, name)).collect();
    let language = settings.choice("language", "", &choices)?;
    if language.is_empty() {
        return Err(settings.missing("language"));
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
    let ignore_case = settings.boolean("ignoreCase", false)?;
    let trailing = settings.boolean("removeTrailing", true)?;
    let list = settings.string("stopwordsList")?;
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
