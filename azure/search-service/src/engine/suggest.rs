//! Suggestions: documents whose source fields match the typed text.
//!
//! The last typed word may be incomplete. All others are whole words. This module does not handle
//! filters, order or documents.

mod closeness;
#[cfg(test)]
mod tests;

use bindpost_azure_search_model::ApiError;
use tantivy::Term;
use tantivy::query::{
    BooleanQuery, BoostQuery, DisjunctionMaxQuery, EmptyQuery, FuzzyTermQuery, Query, TermQuery,
};
use tantivy::schema::{Field as Column, IndexRecordOption};
use tantivy::tokenizer::{TextAnalyzer, TokenStream};

use self::closeness::{Closeness, closeness};
use super::highlight::{HighlightSpan, HighlightTags, insert_tags, merge_spans};
use super::text::{PatternQuery, TermPattern};
use super::watch::BudgetedQuery;
use crate::budget::Budget;

/// The typed text, split into words of suggester columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedWords {
    /// The text as the client sent it.
    pub(super) typed: String,
    pub(super) words: Vec<TypedWord>,
    pub(super) fuzzy: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypedWord {
    pub(super) text: String,
    /// The start of the word in the typed text.
    pub(super) start: usize,
}

const LONGEST: usize = 100;
const DEFAULT_TOP: usize = 5;
/// Words with fewer letters must match exactly. With a mistake they would match almost any word.
const SHORTEST_FUZZY: usize = 3;

impl TypedWords {
    /// Parses the typed text. `analyzer` is the analyzer registered as `SUGGEST_ANALYZER`.
    pub(crate) fn parse(search: &str, analyzer: &mut TextAnalyzer, fuzzy: bool) -> Result<Self, ApiError> {
        let length = search.chars().count();
        if length == 0 || length > LONGEST {
            let what = format!("The search text must have 1 to {LONGEST} characters; it has {length}.");
            return Err(ApiError::parameter("search", what));
        }
        let mut words = Vec::new();
        analyzer.token_stream(search).process(&mut |token| {
            words.push(TypedWord { text: token.text.clone(), start: token.offset_from });
        });
        Ok(Self { typed: search.to_owned(), words, fuzzy })
    }

    /// Returns the text to show for a hit: the first value, in the order of the source fields, that
    /// contains all words. If the words are spread over the values of a collection, it is the value with
    /// the most words.
    ///
    /// With tags, the typed text is marked in it.
    pub(crate) fn display_text<'a>(
        &self,
        values: impl IntoIterator<Item = &'a str>,
        analyzer: &mut TextAnalyzer,
        tags: Option<&HighlightTags>,
    ) -> Option<String> {
        let mut best: Option<(usize, &str, Vec<HighlightSpan>)> = None;
        for value in values {
            let (matched, spans) = self.find(value, analyzer);
            if matched > best.as_ref().map_or(0, |(matched, ..)| *matched) {
                let all = matched == self.words.len();
                best = Some((matched, value, spans));
                if all {
                    break;
                }
            }
        }
        let (_, value, spans) = best?;
        Some(match tags {
            Some(tags) => insert_tags(value, 0..value.len(), &merge_spans(value, spans), tags),
            None => value.to_owned(),
        })
    }

    /// Returns how many of the words a value contains, and their ranges.
    fn find(&self, value: &str, analyzer: &mut TextAnalyzer) -> (usize, Vec<HighlightSpan>) {
        let mut spans = Vec::new();
        let mut met = vec![false; self.words.len()];
        analyzer.token_stream(value).process(&mut |token| {
            for (at, word) in self.words.iter().enumerate() {
                let last = at + 1 == self.words.len();
                let close = closeness(&word.text, &token.text, last, self.allows_mistakes(word));
                if close == Closeness::Far {
                    continue;
                }
                if let Some(met) = met.get_mut(at) {
                    *met = true;
                }
                let mut span = HighlightSpan::new(token);
                if close == Closeness::Start {
                    shorten(&mut span, value, &word.text);
                }
                spans.push(span);
            }
        });
        (met.into_iter().filter(|met| *met).count(), spans)
    }

    pub(super) fn allows_mistakes(&self, word: &TypedWord) -> bool {
        self.fuzzy && word.text.chars().count() >= SHORTEST_FUZZY
    }
}

/// Limits the span to the typed letters, unless the analyzer changed the number of letters.
fn shorten(span: &mut HighlightSpan, value: &str, typed: &str) {
    let written = value.get(span.range.clone()).unwrap_or_default();
    if written.chars().count() == span.token.chars().count()
        && let Some((end, _)) = written.char_indices().nth(typed.chars().count())
    {
        span.range.end = span.range.start + end;
    }
}

/// Builds a query for documents with all words in one of the `suggest` columns. Exact matches score above
/// matches with mistakes, and whole words above prefixes.
pub(crate) fn suggest_query(words: &TypedWords, columns: &[Column], budget: &Budget) -> Box<dyn Query> {
    if words.words.is_empty() || columns.is_empty() {
        return Box::new(EmptyQuery);
    }
    let field = |column: &Column| -> Box<dyn Query> {
        let word = |(at, word): (usize, &TypedWord)| {
            let last = at + 1 == words.words.len();
            word_query(*column, &word.text, last, words.allows_mistakes(word), budget)
        };
        Box::new(BooleanQuery::intersection(words.words.iter().enumerate().map(word).collect()))
    };
    Box::new(DisjunctionMaxQuery::with_tie_breaker(columns.iter().map(field).collect(), 0.1))
}

fn word_query(column: Column, text: &str, last: bool, mistakes: bool, budget: &Budget) -> Box<dyn Query> {
    let term = Term::from_field_text(column, text);
    let whole = TermQuery::new(term.clone(), IndexRecordOption::WithFreqs);
    let mut ways: Vec<Box<dyn Query>> = Vec::new();
    if mistakes {
        let fuzzy = if last { FuzzyTermQuery::new_prefix } else { FuzzyTermQuery::new };
        // The fuzzy part adds a small constant score. Exact matches get it in addition to their own score.
        let fuzzy = BudgetedQuery::new(fuzzy(term, 1, true), budget);
        ways.push(Box::new(BoostQuery::new(Box::new(fuzzy), 0.1)));
    }
    if last {
        ways.push(Box::new(PatternQuery::new(column, TermPattern::exact_prefix(text), budget)));
    }
    if ways.is_empty() {
        return Box::new(whole);
    }
    ways.push(Box::new(whole));
    Box::new(DisjunctionMaxQuery::with_tie_breaker(ways, 1.0))
}

/// Returns the fields to search: those of `searchFields`, which must be sources of the suggester, or
/// all sources.
pub(crate) fn source_fields(
    search_fields: Option<&str>,
    sources: &[String],
) -> Result<Vec<String>, ApiError> {
    let asked = search_fields.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let mut chosen: Vec<String> = Vec::new();
    for name in asked {
        if !sources.iter().any(|source| source == name) {
            let what = format!(
                "The field '{name}' is not a source of the suggester. Its sources are {}.",
                sources.join(", ")
            );
            return Err(ApiError::parameter("searchFields", what));
        }
        if !chosen.iter().any(|known| known == name) {
            chosen.push(name.to_owned());
        }
    }
    Ok(if chosen.is_empty() { sources.to_vec() } else { chosen })
}

/// Returns the maximum number of results, from 1 to 100. Default: 5.
pub(crate) fn result_limit(name: &str, top: Option<i64>) -> Result<usize, ApiError> {
    match top.map(usize::try_from) {
        None => Ok(DEFAULT_TOP),
        Some(Ok(top)) if (1..=100).contains(&top) => Ok(top),
        Some(_) => Err(ApiError::parameter(name, format!("'{name}' must be a number from 1 to 100."))),
    }
}
