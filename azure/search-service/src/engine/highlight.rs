//! Highlights: the parts of a text that match the query, with tags around the words.
//!
//! Offsets are those of the tokens, in bytes of the stored text.

mod passages;
#[cfg(test)]
mod tests;

use std::ops::Range;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::{IndexSchema, PrimitiveType};
use serde_json::Value;
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream};

use self::passages::passages;
use crate::budget::{Budget, MemoryReservation};

/// One field of the `highlight` parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HighlightField {
    pub path: String,
    /// The maximum number of fragments.
    pub fragments: usize,
}

/// The tags around a matching word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HighlightTags {
    pub before: String,
    pub after: String,
}

/// Consecutive tokens, each with its distance from the first.
pub(crate) type Phrase = Vec<(usize, String)>;

/// The matches to highlight in one field.
#[derive(Clone, Copy)]
pub(crate) struct HighlightMatcher<'a> {
    pub word: &'a dyn Fn(&str) -> bool,
    /// Phrases. Their tokens are marked only where the whole phrase matches.
    pub phrases: &'a [Phrase],
}

const DEFAULT_FRAGMENTS: usize = 5;
const MAXIMUM_FRAGMENTS: usize = 1000;
const LONGEST_TAG: usize = 1000;

impl Default for HighlightTags {
    fn default() -> Self {
        Self { before: "<em>".to_owned(), after: "</em>".to_owned() }
    }
}

impl HighlightTags {
    /// Parses the tags of a request. A request has both tags or none.
    pub(crate) fn parse(before: Option<&str>, after: Option<&str>) -> Result<Option<Self>, ApiError> {
        match (before, after) {
            (None, None) => Ok(None),
            (Some(before), Some(after)) => {
                if before.len().max(after.len()) > LONGEST_TAG {
                    let what = format!("A tag has at most {LONGEST_TAG} bytes.");
                    return Err(ApiError::parameter("highlightPreTag", what));
                }
                Ok(Some(Self { before: before.to_owned(), after: after.to_owned() }))
            }
            (Some(_), None) => Err(ApiError::parameter("highlightPostTag", ONE_TAG)),
            (None, Some(_)) => Err(ApiError::parameter("highlightPreTag", ONE_TAG)),
        }
    }
}

const ONE_TAG: &str = "highlightPreTag and highlightPostTag must be given together.";

/// Parses `title-3,description`. If a field is named twice, its last entry is used.
pub(crate) fn parse_fields(parameter: &str, schema: &IndexSchema) -> Result<Vec<HighlightField>, ApiError> {
    let mut fields: Vec<HighlightField> = Vec::new();
    for part in parameter.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        // Field names contain no dashes.
        let (path, fragments) = match part.rsplit_once('-') {
            None => (part, DEFAULT_FRAGMENTS),
            Some((path, number)) => match number.parse() {
                Ok(number) if (1..=MAXIMUM_FRAGMENTS).contains(&number) => (path, number),
                _ => {
                    let what = format!(
                        "'{part}' must end in a number from 1 to {MAXIMUM_FRAGMENTS}, like '{path}-3'."
                    );
                    return Err(ApiError::parameter("highlight", what));
                }
            },
        };
        let refused = |reason| ApiError::parameter("highlight", format!("The field '{path}' {reason}."));
        let field = schema.find(path).ok_or_else(|| refused("does not exist"))?;
        let text = field.kind.primitive() == Some(PrimitiveType::String);
        if !(text && field.searchable && field.vector.is_none()) {
            return Err(refused("is not searchable text, so it cannot be highlighted"));
        }
        fields.retain(|known| known.path != path);
        fields.push(HighlightField { path: path.to_owned(), fragments });
    }
    Ok(fields)
}

/// Returns the strings of a document at a path such as `rooms/description`, including those in objects
/// and lists.
pub(crate) fn texts<'a>(document: &'a Value, path: &str) -> Vec<&'a str> {
    let mut values = vec![document];
    for name in path.split('/') {
        values = values.into_iter().flat_map(elements).filter_map(|value| value.get(name)).collect();
    }
    values.into_iter().flat_map(elements).filter_map(Value::as_str).collect()
}

/// Returns the elements of a list, or the value itself.
fn elements(value: &Value) -> std::slice::Iter<'_, Value> {
    match value {
        Value::Array(list) => list.iter(),
        one => std::slice::from_ref(one).iter(),
    }
}

/// Returns up to `limit` fragments of a field's values, the best first. Returns none without a match.
pub(crate) fn fragments(
    values: &[&str],
    analyzer: &mut TextAnalyzer,
    found: HighlightMatcher<'_>,
    limit: usize,
    tags: &HighlightTags,
    budget: &Budget,
) -> Vec<String> {
    let mut all = Vec::new();
    let mut memory = budget.reserve_memory(0);
    for value in values {
        let spans = spans(value, analyzer, found, budget, &mut memory);
        if !spans.is_empty() {
            all.extend(passages(value, spans).into_iter().map(|passage| (*value, passage)));
        }
    }
    // The sort is stable: equally good passages keep the order of the text.
    all.sort_by_key(|(_, passage)| std::cmp::Reverse(passage.worth));
    all.truncate(limit);
    let marked = all.into_iter().map(|(value, passage)| {
        // Each fragment is held here and in the response.
        let with_tags = passage.spans.len() * (tags.before.len() + tags.after.len());
        memory.grow(2 * (passage.range.len() + with_tags));
        insert_tags(value, passage.range, &passage.spans, tags)
    });
    marked.collect()
}

/// A matching word: its range and its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HighlightSpan {
    pub(super) range: Range<usize>,
    pub(super) token: String,
}

/// Returns the ranges of the matching words, in ascending order without overlaps.
fn spans(
    value: &str,
    analyzer: &mut TextAnalyzer,
    found: HighlightMatcher<'_>,
    budget: &Budget,
    memory: &mut MemoryReservation,
) -> Vec<HighlightSpan> {
    let mut spans = Vec::new();
    // Only phrases need the adjacent tokens.
    let mut tokens: Vec<Token> = Vec::new();
    // N-grams can turn one letter into hundreds of tokens.
    let mut of_tokens = budget.reserve_memory(0);
    analyzer.token_stream(value).process(&mut |token| {
        if (found.word)(&token.text) {
            memory.grow(2 * size_of::<HighlightSpan>() + token.text.len());
            spans.push(HighlightSpan::new(token));
        }
        if !found.phrases.is_empty() {
            of_tokens.grow(2 * size_of::<Token>() + token.text.len());
            tokens.push(token.clone());
        }
    });
    for phrase in found.phrases {
        find_phrase(&tokens, phrase, &mut spans, budget, memory);
    }
    merge_spans(value, spans)
}

impl HighlightSpan {
    pub(super) fn new(token: &Token) -> Self {
        Self { range: token.offset_from..token.offset_to, token: token.text.clone() }
    }
}

fn find_phrase(
    tokens: &[Token],
    phrase: &[(usize, String)],
    spans: &mut Vec<HighlightSpan>,
    budget: &Budget,
    memory: &mut MemoryReservation,
) {
    let Some(((base, first), rest)) = phrase.split_first() else { return };
    budget.check();
    for (at, start) in tokens.iter().enumerate().filter(|(_, token)| token.text == *first) {
        budget.check();
        let after = tokens.get(at..).unwrap_or_default();
        let member = |(offset, word): &(usize, String)| {
            let position = start.position + offset.saturating_sub(*base);
            let near = after.iter().take_while(|token| token.position <= position);
            near.filter(|token| token.position == position).find(|token| token.text == *word)
        };
        if let Some(members) = rest.iter().map(member).collect::<Option<Vec<_>>>() {
            let letters: usize = members.iter().map(|token| token.text.len()).sum();
            memory.grow((members.len() + 1) * 2 * size_of::<HighlightSpan>() + letters);
            spans.push(HighlightSpan::new(start));
            spans.extend(members.into_iter().map(HighlightSpan::new));
        }
    }
}

/// Sorts the spans and merges overlapping ones, such as parts of words or synonyms at one position. Spans
/// outside the text are removed.
pub(super) fn merge_spans(value: &str, mut spans: Vec<HighlightSpan>) -> Vec<HighlightSpan> {
    spans.retain(|span| value.get(span.range.clone()).is_some_and(|text| !text.is_empty()));
    spans.sort_by_key(|span| span.range.start);
    let mut joined: Vec<HighlightSpan> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.range.start < last.range.end => {
                last.range.end = last.range.end.max(span.range.end);
            }
            _ => joined.push(span),
        }
    }
    joined
}

/// Returns a part of a text with tags around its spans, without spaces at its ends.
pub(super) fn insert_tags(
    value: &str,
    range: Range<usize>,
    spans: &[HighlightSpan],
    tags: &HighlightTags,
) -> String {
    let mut marked =
        String::with_capacity(range.len() + spans.len() * (tags.before.len() + tags.after.len()));
    let mut at = range.start;
    for span in spans {
        marked.push_str(value.get(at..span.range.start).unwrap_or_default());
        marked.push_str(&tags.before);
        marked.push_str(value.get(span.range.clone()).unwrap_or_default());
        marked.push_str(&tags.after);
        at = span.range.end;
    }
    marked.push_str(value.get(at..range.end).unwrap_or_default());
    match marked.trim() {
        trimmed if trimmed.len() == marked.len() => marked,
        trimmed => trimmed.to_owned(),
    }
}
