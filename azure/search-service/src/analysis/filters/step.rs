//! Token filters that change or drop one token. Most analyzers only have such filters.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use frostem::Stemmer;
use regex::Regex;
use tantivy::tokenizer::Token;

use super::folding::{self, ScriptNormalization};
use super::phonetic::PhoneticEncoder;
use super::stop_words::StopWords;
use crate::analysis::pattern::PatternReplacement;

/// A token that passes through the filters.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnalysisToken {
    pub(crate) token: Token,
    /// Stemmers do not change it.
    pub(crate) keyword: bool,
}

/// A change of the text alone. Normalizers consist of these.
#[derive(Debug, Clone)]
pub(crate) enum TextTransform {
    Lower,
    LowerIrish,
    LowerTurkish,
    Upper,
    /// Applies ASCII folding.
    Fold,
    /// Removes an article before an apostrophe: `l'avion`.
    Elision(Arc<HashSet<String>>),
    Script(ScriptNormalization),
    Pattern {
        pattern: Regex,
        replacement: PatternReplacement,
    },
    Phonetic(PhoneticEncoder),
    /// Removes `'s`.
    Possessive,
    /// Removes an apostrophe and everything after it.
    Apostrophe,
    /// Removes `'s`, and the dots of acronyms.
    Classic,
    Reverse,
    Trim,
    Truncate(usize),
}

#[derive(Clone)]
pub(crate) enum FilterStep {
    Shape(TextTransform),
    Stop {
        words: StopWords,
        ignore_case: bool,
    },
    Stem(Stemmer),
    Keep {
        words: Arc<HashSet<String>>,
        lower: bool,
    },
    Length {
        min: usize,
        max: usize,
    },
    MarkKeywords {
        words: Arc<HashSet<String>>,
        ignore_case: bool,
    },
    /// Stems by a dictionary. Stemmers do not change the result.
    Override(Arc<HashMap<String, String>>),
}

impl TextTransform {
    pub(crate) fn apply(&self, text: &mut String) {
        match self {
            Self::Lower => folding::lower(text),
            Self::LowerIrish => folding::lower_irish(text),
            Self::LowerTurkish => folding::lower_turkish(text),
            Self::Upper => folding::upper(text),
            Self::Fold => _ = folding::fold(text),
            Self::Elision(articles) => {
                if let Some((at, mark)) = text.char_indices().find(|(_, c)| is_apostrophe(*c)) {
                    let article = text.get(..at).unwrap_or_default();
                    if articles.contains(article) || articles.contains(&lowered(article)) {
                        text.drain(..at + mark.len_utf8());
                    }
                }
            }
            Self::Script(script) => script.apply(text),
            Self::Pattern { pattern, replacement } => replacement.replace_all(pattern, text),
            Self::Phonetic(encoder) => {
                let code = encoder.encode(text);
                if !code.is_empty() {
                    *text = code;
                }
            }
            Self::Possessive => {
                let mut end = text.char_indices().rev();
                if let (Some((_, 's' | 'S')), Some((at, '\'' | '\u{2019}' | '\u{ff07}'))) =
                    (end.next(), end.next())
                {
                    text.truncate(at);
                }
            }
            Self::Apostrophe => {
                if let Some(at) = text.find(['\'', '\u{2019}']) {
                    text.truncate(at);
                }
            }
            Self::Classic => {
                Self::Possessive.apply(text);
                if is_acronym(text) {
                    text.retain(|c| c != '.');
                }
            }
            Self::Reverse => *text = text.chars().rev().collect(),
            Self::Trim => {
                let trimmed = text.trim();
                if trimmed.len() != text.len() {
                    *text = trimmed.to_owned();
                }
            }
            Self::Truncate(length) => {
                if let Some((at, _)) = text.char_indices().nth(*length) {
                    text.truncate(at);
                }
            }
        }
    }
}

impl FilterStep {
    /// Applies the filter. Returns whether the token is kept.
    pub(crate) fn apply(&mut self, term: &mut AnalysisToken) -> bool {
        let text = &mut term.token.text;
        match self {
            Self::Shape(shape) => shape.apply(text),
            Self::Stop { words, ignore_case: false } => return !words.contains(text),
            Self::Stop { words, ignore_case: true } => return !words.contains(&mut lowered(text)),
            Self::Stem(stemmer) => {
                if !term.keyword {
                    stem(*stemmer, text);
                }
            }
            Self::Keep { words, lower } => {
                return words.contains(text.as_str()) || (*lower && words.contains(&lowered(text)));
            }
            Self::Length { min, max } => {
                let length = text.chars().count();
                return (*min..=*max).contains(&length);
            }
            Self::MarkKeywords { words, ignore_case } => {
                term.keyword |=
                    words.contains(text.as_str()) || (*ignore_case && words.contains(&lowered(text)));
            }
            Self::Override(stems) => {
                if let (false, Some(stem)) = (term.keyword, stems.get(text.as_str())) {
                    text.clone_from(stem);
                    term.keyword = true;
                }
            }
        }
        true
    }
}

/// Longer texts are not stemmed. They are not words, and stemming them only costs time.
pub(crate) const LONGEST_STEMMED: usize = 1000;

fn stem(stemmer: Stemmer, text: &mut String) {
    if text.len() > LONGEST_STEMMED {
        return;
    }
    let stemmed = match stemmer.stem(text) {
        Cow::Borrowed(same) if same.len() == text.len() => return,
        other => other.into_owned(),
    };
    *text = stemmed;
}

pub(crate) fn lowered(text: &str) -> String {
    let mut text = text.to_owned();
    folding::lower(&mut text);
    text
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}')
}

/// Whether the text consists of single letters with a dot after each, such as `I.B.M.`.
fn is_acronym(text: &str) -> bool {
    let mut chars = text.chars();
    let mut letters = 0;
    while let Some(letter) = chars.next() {
        if !letter.is_alphabetic() || chars.next() != Some('.') {
            return false;
        }
        letters += 1;
    }
    letters > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(shape: &TextTransform, text: &str) -> String {
        let mut text = text.to_owned();
        shape.apply(&mut text);
        text
    }

    #[test]
    fn transforms_change_the_text() {
        let articles = TextTransform::Elision(Arc::new(["l", "d", "qu"].map(str::to_owned).into()));
        for (shape, text, expected) in [
            (&articles, "l'avion", "avion"),
            (&articles, "L\u{2019}avion", "avion"),
            (&articles, "o'neil", "o'neil"),
            (&TextTransform::Possessive, "fox's", "fox"),
            (&TextTransform::Possessive, "FOX\u{2019}S", "FOX"),
            (&TextTransform::Possessive, "s", "s"),
            (&TextTransform::Apostrophe, "Ankara'da", "Ankara"),
            (&TextTransform::Classic, "I.B.M.", "IBM"),
            (&TextTransform::Classic, "cat's", "cat"),
            (&TextTransform::Classic, "a.com", "a.com"),
            (&TextTransform::Reverse, "añb", "bña"),
            (&TextTransform::Trim, " a b ", "a b"),
            (&TextTransform::Truncate(2), "äöü", "äö"),
            (&TextTransform::Truncate(2), "a", "a"),
        ] {
            assert_eq!(shaped(shape, text), expected, "{shape:?}");
        }
    }

    #[test]
    fn keywords_are_not_stemmed() {
        let mut mark =
            FilterStep::MarkKeywords { words: Arc::new(["running".to_owned()].into()), ignore_case: false };
        let mut stem = FilterStep::Stem(Stemmer::new(frostem::Algorithm::Porter));
        for (word, expected) in [("running", "running"), ("jumping", "jump")] {
            let mut term = AnalysisToken::default();
            term.token.text = word.to_owned();
            assert!(mark.apply(&mut term) && stem.apply(&mut term));
            assert_eq!(term.token.text, expected);
        }
    }
}
