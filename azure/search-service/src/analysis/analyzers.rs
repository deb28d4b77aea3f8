//! The analyzers of an index: the predefined ones of Azure AI Search, and those in the index definition.

use std::collections::HashMap;

use bindpost_azure_search_model::ApiError;
use bindpost_net_json::{JsonPlace, ObjectReader};
use serde_json::Value;
use tantivy::tokenizer::{TextAnalyzer, TokenizerManager};

use super::analyzer::{Analyzer, TokenFilter};
use super::char_filter::CharFilter;
use super::filters::grams::ShingleTokenFilter;
use super::filters::step::{FilterStep, TextTransform};
use super::filters::stop_words::StopWords;
use super::language::{self, LONGEST_WORD, STANDARD};
use super::normalizer::{self, Normalizer};
use super::settings::ComponentSettings;
use super::tokenizer::{TokenRunKind, Tokenizer};
use super::{filters, parts};

/// The analyzer of suggester columns. It is registered together with the analyzers of the index.
pub(crate) const SUGGEST_ANALYZER: &str = "bindpost.suggest";
/// The analyzer of suggester columns for pairs of words.
pub(crate) const PAIRS_ANALYZER: &str = "bindpost.pairs";
/// The maximum number of filters in one analyzer.
const MOST_FILTERS: usize = 100;

/// The analyzers and normalizers that an index can use, and the components they are built from.
#[derive(Clone, Default)]
pub struct AnalyzerRegistry {
    analyzers: HashMap<String, Analyzer>,
    tokenizers: HashMap<String, Tokenizer>,
    filters: HashMap<String, TokenFilter>,
    char_filters: HashMap<String, CharFilter>,
    normalizers: HashMap<String, Normalizer>,
}

impl AnalyzerRegistry {
    /// Parses and checks `analyzers`, `tokenizers`, `tokenFilters`, `charFilters` and
    /// `normalizers` of an index.
    pub fn new(definition: &Value) -> Result<Self, ApiError> {
        let mut all = Self::default();
        for settings in definitions(definition, "charFilters", "Character filter")? {
            let filter = parts::char_filter(&settings)?;
            let known = parts::CHAR_FILTERS.contains(&settings.name);
            add(&mut all.char_filters, &settings, known, filter)?;
        }
        for settings in definitions(definition, "tokenizers", "Tokenizer")? {
            let tokenizer = parts::tokenizer(&settings)?;
            let known = parts::TOKENIZERS.iter().any(|(known, _)| *known == settings.name);
            add(&mut all.tokenizers, &settings, known, tokenizer)?;
        }
        for settings in definitions(definition, "tokenFilters", "Token filter")? {
            let filter = filters::custom(&settings)?;
            let known = filters::TOKEN_FILTERS.iter().any(|(known, _)| *known == settings.name);
            add(&mut all.filters, &settings, known, filter)?;
        }
        for settings in definitions(definition, "analyzers", "Analyzer")? {
            let analyzer = all.custom(&settings)?;
            let known = language::NAMES.contains(&settings.name);
            add(&mut all.analyzers, &settings, known, analyzer)?;
        }
        for name in normalizer::NAMES {
            all.normalizers.extend(Normalizer::named(name).map(|normalizer| (name.to_owned(), normalizer)));
        }
        for settings in definitions(definition, "normalizers", "Normalizer")? {
            let normalizer = all.custom_normalizer(&settings)?;
            let known = normalizer::NAMES.contains(&settings.name);
            add(&mut all.normalizers, &settings, known, normalizer)?;
        }
        Ok(all)
    }

    /// Returns the analyzer with this name. It is defined by the index, predefined, or one of the
    /// internal analyzers for suggesters.
    pub fn get(&self, name: &str) -> Option<TextAnalyzer> {
        self.find(name).map(TextAnalyzer::from)
    }

    fn find(&self, name: &str) -> Option<Analyzer> {
        if let Some(custom) = self.analyzers.get(name) {
            return Some(custom.clone());
        }
        match name {
            SUGGEST_ANALYZER => Some(Analyzer::new(vec![], STANDARD, vec![TextTransform::Lower.into()])),
            PAIRS_ANALYZER => {
                let pairs = TokenFilter::stage(ShingleTokenFilter::new(2, 2, false));
                Some(Analyzer::new(vec![], STANDARD, vec![TextTransform::Lower.into(), pairs]))
            }
            _ => language::named(name),
        }
    }

    /// Checks that an analyzer with this name exists. Otherwise the error suggests similar names.
    pub fn check(&self, name: &str) -> Result<(), ApiError> {
        if self.analyzers.contains_key(name) || language::NAMES.contains(&name) {
            return Ok(());
        }
        let known = self.analyzers.keys().map(String::as_str).chain(language::NAMES);
        Err(unknown("analyzer", name, known, "analyzers"))
    }

    pub fn normalizer(&self, name: &str) -> Option<&Normalizer> {
        self.normalizers.get(name)
    }

    /// Like [`AnalyzerRegistry::check`], for normalizers.
    pub fn check_normalizer(&self, name: &str) -> Result<(), ApiError> {
        if self.normalizers.contains_key(name) {
            return Ok(());
        }
        Err(unknown("normalizer", name, self.normalizers.keys().map(String::as_str), "normalizers"))
    }

    /// Registers these analyzers, and the internal ones for suggesters, under their names. Unknown
    /// names are skipped, because they were checked when the index was created.
    pub fn register_all<'n>(&self, names: impl Iterator<Item = &'n str>, manager: &TokenizerManager) {
        for name in names.chain([SUGGEST_ANALYZER, PAIRS_ANALYZER]) {
            if let Some(analyzer) = self.find(name) {
                manager.register(name, analyzer);
            }
        }
    }

    /// Builds an analyzer from named components. `place` names the definition or request in error messages.
    pub(super) fn assemble(
        &self,
        place: &str,
        tokenizer: &str,
        filters: &[&str],
        char_filters: &[&str],
    ) -> Result<Analyzer, ApiError> {
        let tokenizer = match self.tokenizers.get(tokenizer) {
            Some(tokenizer) => tokenizer.clone(),
            None => match parts::predefined_tokenizer(tokenizer) {
                Some(tokenizer) => tokenizer?,
                None => {
                    let known = parts::TOKENIZERS.iter().map(|(name, _)| *name);
                    let known = self.tokenizers.keys().map(String::as_str).chain(known);
                    return Err(with_place(place, unknown("tokenizer", tokenizer, known, "tokenizers")));
                }
            },
        };
        let filters = self.token_filters(place, filters)?.into_iter().map(|(_, filter)| filter).collect();
        let char_filters = self.char_filters(place, char_filters)?;
        Ok(Analyzer::new(char_filters.into_iter().map(|(_, filter)| filter).collect(), tokenizer, filters))
    }

    fn token_filters(&self, place: &str, names: &[&str]) -> Result<Vec<(String, TokenFilter)>, ApiError> {
        check_filter_count(place, "tokenFilters", names)?;
        let found = names.iter().map(|&name| {
            let filter = match self.filters.get(name) {
                Some(filter) => filter.clone(),
                None => match filters::predefined(name) {
                    Some(filter) => filter?,
                    None => {
                        let known = filters::TOKEN_FILTERS.iter().map(|(name, _)| *name);
                        let known = self.filters.keys().map(String::as_str).chain(known);
                        return Err(with_place(place, unknown("token filter", name, known, "tokenFilters")));
                    }
                },
            };
            Ok((name.to_owned(), filter))
        });
        found.collect()
    }

    fn char_filters(&self, place: &str, names: &[&str]) -> Result<Vec<(String, CharFilter)>, ApiError> {
        check_filter_count(place, "charFilters", names)?;
        let found = names.iter().map(|&name| match self.char_filters.get(name) {
            Some(filter) => Ok((name.to_owned(), filter.clone())),
            None if name == "html_strip" => Ok((name.to_owned(), CharFilter::HtmlStrip)),
            None => {
                let known = self.char_filters.keys().map(String::as_str).chain(parts::CHAR_FILTERS);
                Err(with_place(place, unknown("character filter", name, known, "charFilters")))
            }
        });
        found.collect()
    }

    fn custom(&self, settings: &ComponentSettings<'_>) -> Result<Analyzer, ApiError> {
        let stop = |mut filters: Vec<TokenFilter>, words: Option<Vec<String>>| {
            if let Some(words) = words.filter(|words| !words.is_empty()) {
                filters.push(
                    FilterStep::Stop { words: StopWords::from_words(words), ignore_case: false }.into(),
                );
            }
            filters
        };
        let analyzer = match settings.kind {
            "CustomAnalyzer" => self.assemble(
                &settings.place,
                settings.given.required_text_or_empty("tokenizer")?,
                &settings.given.texts("tokenFilters")?,
                &settings.given.texts("charFilters")?,
            )?,
            "PatternAnalyzer" => {
                let lower =
                    settings.given.boolean("lowercase")?.unwrap_or(true).then(|| TextTransform::Lower.into());
                let filters = stop(lower.into_iter().collect(), settings.strings("stopwords")?);
                Analyzer::new(vec![], Tokenizer::Split(parts::pattern(settings)?), filters)
            }
            "StandardAnalyzer" => {
                let max =
                    settings.given.integer_in("maxTokenLength", 1..=parts::MOST)?.unwrap_or(LONGEST_WORD);
                let filters = stop(vec![TextTransform::Lower.into()], settings.strings("stopwords")?);
                Analyzer::new(vec![], Tokenizer::Standard { max, join_runs: true }, filters)
            }
            "StopAnalyzer" => {
                let filters = match settings.strings("stopwords")? {
                    Some(words) => stop(vec![], Some(words)),
                    None => language::stop("english").into_iter().collect(),
                };
                let letters = Tokenizer::Runs { of: TokenRunKind::Letters, lower: true, max: LONGEST_WORD };
                Analyzer::new(vec![], letters, filters)
            }
            _ => return Err(parts::unknown_kind(settings, "analyzer")),
        };
        settings.finish()?;
        Ok(analyzer)
    }

    fn custom_normalizer(&self, settings: &ComponentSettings<'_>) -> Result<Normalizer, ApiError> {
        if settings.kind != "CustomNormalizer" {
            return Err(parts::unknown_kind(settings, "normalizer"));
        }
        let place = &settings.place;
        let filters = self.token_filters(place, &settings.given.texts("tokenFilters")?)?;
        let char_filters = self.char_filters(place, &settings.given.texts("charFilters")?)?;
        settings.finish()?;
        Normalizer::from_parts(char_filters, filters).map_err(|name| {
            ApiError::invalid(format!(
                "{place}: '{name}' cannot be used in a normalizer. Use mapping or pattern replacement character filters, or the token filters asciifolding, cjk_width, elision, lowercase, uppercase, and the normalization and folding filters of scripts."
            ))
        })
    }
}

impl std::fmt::Debug for AnalyzerRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Analyzers")
            .field("analyzers", &self.analyzers.keys())
            .field("normalizers", &self.normalizers.keys())
            .finish_non_exhaustive()
    }
}

fn definitions<'a>(
    index: &'a Value,
    property: &str,
    what: &'static str,
) -> Result<Vec<ComponentSettings<'a>>, ApiError> {
    let index = ObjectReader::new(index, JsonPlace::default())?;
    index.objects(property)?.iter().map(|given| ComponentSettings::new(what, given)).collect()
}

fn add<T>(
    all: &mut HashMap<String, T>,
    settings: &ComponentSettings<'_>,
    predefined: bool,
    value: T,
) -> Result<(), ApiError> {
    if predefined {
        return Err(ApiError::invalid(format!(
            "{}: the name is predefined. Choose another name.",
            settings.place
        )));
    }
    if all.insert(settings.name.to_owned(), value).is_some() {
        return Err(ApiError::invalid(format!("{} is defined more than once.", settings.place)));
    }
    Ok(())
}

fn check_filter_count(place: &str, property: &str, names: &[&str]) -> Result<(), ApiError> {
    if names.len() <= MOST_FILTERS {
        return Ok(());
    }
    Err(ApiError::invalid(format!("{place}: '{property}' has more than {MOST_FILTERS} names.")))
}

fn with_place(place: &str, mut error: ApiError) -> ApiError {
    error.message = format!("{place}: {}", error.message);
    error
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>, property: &str) -> ApiError {
    let mut near: Vec<(usize, &str)> = known
        .map(|known| (distance(&name.to_lowercase(), &known.to_lowercase()), known))
        .filter(|(distance, known)| *distance <= 2 + known.len() / 4)
        .collect();
    near.sort_unstable();
    let near: Vec<String> = near.into_iter().take(5).map(|(_, known)| format!("'{known}'")).collect();
    let hint = if near.is_empty() {
        format!("Define it in '{property}' of the index, or use a predefined one.")
    } else {
        format!("Similar names: {}.", near.join(", "))
    };
    ApiError::invalid(format!("There is no {what} '{name}'. {hint}"))
}

/// Returns the Levenshtein distance of two names. Only short names are compared.
fn distance(one: &str, other: &str) -> usize {
    if one.len() > 128 {
        return usize::MAX;
    }
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, c) in one.chars().enumerate() {
        let mut above_left = index;
        let mut left = index + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, known) in row.iter_mut().skip(1).zip(&other) {
            let replaced = above_left + usize::from(c != *known);
            above_left = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}
