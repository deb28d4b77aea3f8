//! Tokenizers and character filters, predefined and from definitions.

use std::sync::Arc;

use bindpost_azure_search_model::ApiError;
use serde_json::Map;

use super::char_filter::{CharFilter, CharMappings};
use super::language::LONGEST_WORD;
use super::pattern::{LONGEST_REPLACEMENT, PatternReplacement, compile};
use super::settings::ComponentSettings;
use super::tokenizer::pieces::{NGramTokenizer, PathHierarchyTokenizer, TokenCharacterKind};
use super::tokenizer::{TokenRunKind, Tokenizer, address_pattern, classic_pattern};

/// Azure's maximum for token and n-gram lengths.
pub(super) const MOST: usize = 300;

pub(super) const TOKENIZERS: [(&str, &str); 15] = [
    ("classic", "ClassicTokenizer"),
    ("edgeNGram", "EdgeNGramTokenizer"),
    ("keyword", "KeywordTokenizer"),
    ("keyword_v2", "KeywordTokenizerV2"),
    ("letter", ""),
    ("lowercase", ""),
    ("microsoft_language_stemming_tokenizer", "MicrosoftLanguageStemmingTokenizer"),
    ("microsoft_language_tokenizer", "MicrosoftLanguageTokenizer"),
    ("nGram", "NGramTokenizer"),
    ("path_hierarchy_v2", "PathHierarchyTokenizerV2"),
    ("pattern", "PatternTokenizer"),
    ("standard", "StandardTokenizer"),
    ("standard_v2", "StandardTokenizerV2"),
    ("uax_url_email", "UaxUrlEmailTokenizer"),
    ("whitespace", ""),
];

pub(super) fn predefined_tokenizer(name: &str) -> Option<Result<Tokenizer, ApiError>> {
    let runs = |of, lower| Some(Ok(Tokenizer::Runs { of, lower, max: LONGEST_WORD }));
    match name {
        "letter" => return runs(TokenRunKind::Letters, false),
        "lowercase" => return runs(TokenRunKind::Letters, true),
        "whitespace" => return runs(TokenRunKind::NotSpace, false),
        _ => {}
    }
    let (name, kind) = TOKENIZERS.iter().find(|(known, _)| *known == name)?;
    let nothing = Map::new();
    Some(tokenizer(&ComponentSettings::defaults(format!("Tokenizer '{name}'"), name, kind, &nothing)))
}

pub(super) fn tokenizer(settings: &ComponentSettings<'_>) -> Result<Tokenizer, ApiError> {
    let max = |default| {
        Ok::<_, ApiError>(settings.given.integer_in("maxTokenLength", 1..=MOST)?.unwrap_or(default))
    };
    let tokenizer = match settings.kind {
        "ClassicTokenizer" => Tokenizer::Classic { pattern: classic_pattern()?, max: max(LONGEST_WORD)? },
        "EdgeNGramTokenizer" => Tokenizer::Grams(grams(settings, true)?),
        "NGramTokenizer" => Tokenizer::Grams(grams(settings, false)?),
        "KeywordTokenizer" => {
            // The buffer size does not change the result.
            settings.given.integer_in("bufferSize", 1..=i32::MAX as usize)?;
            Tokenizer::Whole { max: usize::MAX }
        }
        "KeywordTokenizerV2" => Tokenizer::Whole { max: max(256)? },
        "MicrosoftLanguageTokenizer" | "MicrosoftLanguageStemmingTokenizer" => {
            settings.given.boolean("isSearchTokenizer")?;
            let languages: Vec<(&str, ())> = MICROSOFT_LANGUAGES.iter().map(|&name| (name, ())).collect();
            settings.given.choice("language", &languages)?;
            Tokenizer::Standard { max: max(LONGEST_WORD)?, join_runs: true }
        }
        "PathHierarchyTokenizerV2" => {
            let delimiter = settings.character("delimiter", '/')?;
            Tokenizer::Path(PathHierarchyTokenizer {
                delimiter,
                replacement: settings.character("replacement", delimiter)?,
                max: max(MOST)?,
                reverse: settings.given.boolean("reverse")?.unwrap_or(false),
                skip: settings.given.integer_in("skip", 0..=(i32::MAX as usize))?.unwrap_or(0),
            })
        }
        "PatternTokenizer" => {
            let pattern = pattern(settings)?;
            match settings.number_or_none("group", i32::MAX as usize)? {
                None => Tokenizer::Split(pattern),
                Some(group) if group < pattern.captures_len() => Tokenizer::Group { pattern, group },
                Some(group) => {
                    return Err(ApiError::invalid(format!(
                        "{}: the pattern has no group {group}. Use -1 to split at the pattern.",
                        settings.place
                    )));
                }
            }
        }
        "StandardTokenizer" | "StandardTokenizerV2" => {
            Tokenizer::Standard { max: max(LONGEST_WORD)?, join_runs: true }
        }
        "UaxUrlEmailTokenizer" => {
            Tokenizer::UrlEmail { pattern: address_pattern()?, max: max(LONGEST_WORD)? }
        }
        _ => return Err(unknown_kind(settings, "tokenizer")),
    };
    settings.finish()?;
    Ok(tokenizer)
}

pub(super) fn unknown_kind(settings: &ComponentSettings<'_>, what: &str) -> ApiError {
    ApiError::invalid(format!(
        "{}: '#Microsoft.Azure.Search.{}' is not a type of {what}.",
        settings.place, settings.kind
    ))
}

/// Compiles the pattern of an analyzer or tokenizer. The default matches non-word characters.
pub(super) fn pattern(settings: &ComponentSettings<'_>) -> Result<regex::Regex, ApiError> {
    let pattern = settings.given.text("pattern")?.unwrap_or(r"\W+");
    compile(pattern, settings.given.text("flags")?.unwrap_or_default(), &settings.place)
}

/// Returns the tokenizer of the predefined analyzer `pattern`.
pub(super) fn default_split() -> Option<Tokenizer> {
    predefined_tokenizer("pattern").and_then(Result::ok)
}

/// Reads `minGram` and `maxGram`.
pub(super) fn gram_sizes(settings: &ComponentSettings<'_>) -> Result<(usize, usize), ApiError> {
    let min = settings.given.integer_in("minGram", 1..=MOST)?.unwrap_or(1);
    let max = settings.given.integer_in("maxGram", 1..=MOST)?.unwrap_or(2);
    check_order(settings, ("minGram", min), ("maxGram", max))?;
    Ok((min, max))
}

pub(super) fn check_order(
    settings: &ComponentSettings<'_>,
    (min_name, min): (&str, usize),
    (max_name, max): (&str, usize),
) -> Result<(), ApiError> {
    if min <= max {
        return Ok(());
    }
    Err(ApiError::invalid(format!(
        "{}: '{min_name}' ({min}) is greater than '{max_name}' ({max}).",
        settings.place
    )))
}

fn grams(settings: &ComponentSettings<'_>, edge: bool) -> Result<NGramTokenizer, ApiError> {
    let (min, max) = gram_sizes(settings)?;
    let kinds = settings.given.choices(
        "tokenChars",
        &[
            ("letter", TokenCharacterKind::Letter),
            ("digit", TokenCharacterKind::Digit),
            ("whitespace", TokenCharacterKind::Whitespace),
            ("punctuation", TokenCharacterKind::Punctuation),
            ("symbol", TokenCharacterKind::Symbol),
        ],
    )?;
    Ok(NGramTokenizer { min, max, edge, kinds })
}

pub(super) const CHAR_FILTERS: [&str; 1] = ["html_strip"];

pub(super) fn char_filter(settings: &ComponentSettings<'_>) -> Result<CharFilter, ApiError> {
    let filter = match settings.kind {
        "MappingCharFilter" => {
            let mut mappings = CharMappings::default();
            for mapping in settings.required_strings("mappings")? {
                let wrong = |what: &str| {
                    ApiError::invalid(format!(
                        "{}: the mapping '{mapping}' {what}. Write 'a=>b'.",
                        settings.place
                    ))
                };
                let (from, to) = mapping.split_once("=>").ok_or_else(|| wrong("has no '=>'"))?;
                let from = unescape(from.trim()).ok_or_else(|| wrong("has an incomplete escape"))?;
                let to = unescape(to.trim()).ok_or_else(|| wrong("has an incomplete escape"))?;
                if from.is_empty() {
                    return Err(wrong("has no text before '=>'"));
                }
                if to.chars().count() > LONGEST_REPLACEMENT {
                    return Err(ApiError::invalid(format!(
                        "{}: a mapping has more than {LONGEST_REPLACEMENT} characters after '=>'.",
                        settings.place
                    )));
                }
                if !mappings.add(from, to) {
                    return Err(wrong("maps a text that another mapping already maps"));
                }
            }
            CharFilter::Mapping(Arc::new(mappings))
        }
        "PatternReplaceCharFilter" => {
            let pattern = compile(settings.given.required_text_or_empty("pattern")?, "", &settings.place)?;
            let replacement = PatternReplacement::parse(
                settings.given.required_text_or_empty("replacement")?,
                &pattern,
                &settings.place,
            )?;
            CharFilter::Pattern { pattern, replacement }
        }
        _ => return Err(unknown_kind(settings, "character filter")),
    };
    settings.finish()?;
    Ok(filter)
}

/// Resolves `\n`, `\t` and `\u0020`. Any other character after a backslash stands for itself.
fn unescape(text: &str) -> Option<String> {
    let mut output = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            output.push(c);
            continue;
        }
        output.push(match chars.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4)?;
                char::from_u32(code)?
            }
            other => other,
        });
    }
    Some(output)
}

/// The languages of both Microsoft tokenizers.
const MICROSOFT_LANGUAGES: [&str; 51] = [
    "arabic",
    "bangla",
    "bulgarian",
    "catalan",
    "chineseSimplified",
    "chineseTraditional",
    "croatian",
    "czech",
    "danish",
    "dutch",
    "english",
    "estonian",
    "finnish",
    "french",
    "german",
    "greek",
    "gujarati",
    "hebrew",
    "hindi",
    "hungarian",
    "icelandic",
    "indonesian",
    "italian",
    "japanese",
    "kannada",
    "korean",
    "latvian",
    "lithuanian",
    "malay",
    "malayalam",
    "marathi",
    "norwegianBokmaal",
    "polish",
    "portuguese",
    "portugueseBrazilian",
    "punjabi",
    "romanian",
    "russian",
    "serbianCyrillic",
    "serbianLatin",
    "slovak",
    "slovenian",
    "spanish",
    "swedish",
    "tamil",
    "telugu",
    "thai",
    "turkish",
    "ukrainian",
    "urdu",
    "vietnamese",
];
