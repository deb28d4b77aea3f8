//! Autocomplete: terms of suggester columns that continue the typed text.
//!
//! Terms come from the dictionaries of all segments and fields. Only documents that are not deleted and
//! match the filter are counted.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use bindpost_azure_search_model::ApiError;
use tantivy::postings::TermInfo;
use tantivy::query::{EnableScoring, FuzzyTermQuery, Query};
use tantivy::schema::{Field as Column, IndexRecordOption};
use tantivy::{BitSet, InvertedIndexReader, Searcher, SegmentReader, Term};

use super::columns::FieldColumns;
use super::highlight::HighlightTags;
use super::suggest::{TypedWord, TypedWords};
use crate::budget::{Budget, MemoryReservation};

/// The autocomplete mode of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AutocompleteMode {
    /// Completes the last word.
    #[default]
    OneTerm,
    /// Completes the last word and adds the word that follows it in the index.
    TwoTerms,
    /// Completes the last word, in the context of the word before it.
    OneTermWithContext,
}

/// One completion.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Completion {
    pub text: String,
    /// The typed text, with its last part replaced by the completion.
    pub query_plus_text: String,
}

impl AutocompleteMode {
    pub(crate) fn parse(mode: Option<&str>) -> Result<Self, ApiError> {
        match mode {
            None | Some("oneTerm") => Ok(Self::OneTerm),
            Some("twoTerms") => Ok(Self::TwoTerms),
            Some("oneTermWithContext") => Ok(Self::OneTermWithContext),
            Some(other) => Err(ApiError::parameter(
                "autocompleteMode",
                format!("'{other}' is not a valid mode. Use oneTerm, twoTerms or oneTermWithContext."),
            )),
        }
    }
}

/// Returns the best `top` completions. Exact prefixes come first, then terms in more documents, then
/// alphabetical order.
///
/// `fields` holds the columns of the selected source fields. `queryPlusText` has tags around the completion.
#[expect(clippy::too_many_arguments, reason = "the arguments are independent")]
pub(crate) fn autocomplete(
    searcher: &Searcher,
    fields: &[FieldColumns],
    words: &TypedWords,
    mode: AutocompleteMode,
    filter: Option<&dyn Query>,
    top: usize,
    tags: Option<&HighlightTags>,
    budget: &Budget,
) -> tantivy::Result<Vec<Completion>> {
    let Some((last, before)) = words.words.split_last() else { return Ok(Vec::new()) };
    let segments = CompletionSegments::new(searcher, filter, budget)?;
    let mistakes = words.allows_mistakes(last);
    let suggest: Vec<Column> = fields.iter().filter_map(|columns| columns.suggest).collect();
    let pairs: Vec<Column> = fields.iter().filter_map(|columns| columns.pairs).collect();
    let (texts, context) = match (mode, before.last()) {
        (AutocompleteMode::TwoTerms, _) => {
            let (found, memory) = segments.terms(&pairs, &last.text, mistakes)?;
            let mut texts = best(found, top);
            drop(memory);
            if texts.len() < top {
                // The last word of a text has no next word and is completed alone.
                let (mut single, _memory) = segments.terms(&suggest, &last.text, mistakes)?;
                let first: HashSet<&str> = texts.iter().filter_map(|pair| pair.split(' ').next()).collect();
                single.retain(|term, _| !first.contains(term.as_str()));
                texts.extend(best(single, top - texts.len()));
            }
            (texts, None)
        }
        (AutocompleteMode::OneTermWithContext, Some(previous)) => {
            let start = format!("{} {}", previous.text, last.text);
            let (found, _memory) = segments.terms(&pairs, &start, mistakes)?;
            (best(found, top), Some(previous))
        }
        _ => {
            let (found, _memory) = segments.terms(&suggest, &last.text, mistakes)?;
            (best(found, top), None)
        }
    };
    Ok(texts.into_iter().map(|text| complete(words, last, context, text, tags)).collect())
}

/// Words before the completed word stay as typed.
fn complete(
    words: &TypedWords,
    last: &TypedWord,
    context: Option<&TypedWord>,
    text: String,
    tags: Option<&HighlightTags>,
) -> Completion {
    let (kept, completed) = match context {
        None => (last.start, text.as_str()),
        Some(previous) => match text.strip_prefix(&previous.text).and_then(|rest| rest.strip_prefix(' ')) {
            Some(completed) => (last.start, completed),
            None => (previous.start, text.as_str()),
        },
    };
    let kept = words.typed.get(..kept).unwrap_or_default();
    let query_plus_text = match tags {
        Some(HighlightTags { before, after }) => format!("{kept}{before}{completed}{after}"),
        None => format!("{kept}{completed}"),
    };
    Completion { text, query_plus_text }
}

/// The size of a map entry with spare capacity and of a list entry, without the text.
const TERM_BYTES: usize = 3 * size_of::<(String, CompletionRank)>();

/// The rank of a term: how it was found.
#[derive(Debug, Clone, Copy, Default)]
struct CompletionRank {
    exact: bool,
    documents: u64,
}

fn best(terms: HashMap<String, CompletionRank>, top: usize) -> Vec<String> {
    let mut terms: Vec<(String, CompletionRank)> = terms.into_iter().collect();
    let order = |(one, a): &(String, CompletionRank), (other, b): &(String, CompletionRank)| {
        (b.exact, b.documents).cmp(&(a.exact, a.documents)).then_with(|| one.cmp(other))
    };
    if (1..terms.len()).contains(&top) {
        terms.select_nth_unstable_by(top - 1, order);
    }
    terms.truncate(top);
    terms.sort_unstable_by(order);
    terms.into_iter().map(|(term, _)| term).collect()
}

/// The segments of an index, each with the documents that match the filter.
struct CompletionSegments<'a> {
    segments: Vec<(&'a SegmentReader, SegmentDocuments<'a>)>,
    budget: &'a Budget,
}

enum SegmentDocuments<'a> {
    All,
    Alive(&'a tantivy::fastfield::AliveBitSet),
    Filtered(BitSet),
}

impl<'a> CompletionSegments<'a> {
    fn new(searcher: &'a Searcher, filter: Option<&dyn Query>, budget: &'a Budget) -> tantivy::Result<Self> {
        let scoring = EnableScoring::disabled_from_searcher(searcher);
        let weight = filter.map(|filter| filter.weight(scoring)).transpose()?;
        let mut segments = Vec::new();
        for reader in searcher.segment_readers() {
            let allowed = match (&weight, reader.alive_bitset()) {
                (None, None) => SegmentDocuments::All,
                (None, Some(alive)) => SegmentDocuments::Alive(alive),
                (Some(weight), alive) => {
                    let mut docs = BitSet::with_max_value(reader.max_doc());
                    weight.for_each_no_score(reader, &mut |found| {
                        budget.check();
                        for doc in found.iter().filter(|doc| alive.is_none_or(|alive| alive.is_alive(**doc)))
                        {
                            docs.insert(*doc);
                        }
                    })?;
                    SegmentDocuments::Filtered(docs)
                }
            };
            segments.push((reader, allowed));
        }
        Ok(Self { segments, budget })
    }

    /// Returns all terms of the given columns that start with a prefix, with their number of documents.
    fn terms(
        &self,
        columns: &[Column],
        start: &str,
        mistakes: bool,
    ) -> tantivy::Result<(HashMap<String, CompletionRank>, MemoryReservation)> {
        let mut terms: HashMap<String, CompletionRank> = HashMap::new();
        let mut memory = self.budget.reserve_memory(0);
        for column in columns {
            let automaton = match mistakes {
                true => {
                    let term = Term::from_field_text(*column, start);
                    Some(FuzzyTermQuery::new_prefix(term, 1, true).automaton()?)
                }
                false => None,
            };
            for (reader, allowed) in &self.segments {
                let index = reader.inverted_index(*column)?;
                let mut take = |term: &[u8], info: &TermInfo| -> tantivy::Result<()> {
                    self.budget.check();
                    let documents = allowed.count(&index, info)?;
                    let Ok(term) = std::str::from_utf8(term) else { return Ok(()) };
                    if documents > 0 {
                        let exact = term.starts_with(start);
                        match terms.get_mut(term) {
                            Some(known) => known.documents += documents,
                            None => {
                                memory.grow(TERM_BYTES + term.len());
                                terms.insert(term.to_owned(), CompletionRank { exact, documents });
                            }
                        }
                    }
                    Ok(())
                };
                match &automaton {
                    Some(automaton) => {
                        let mut stream = index.terms().search(automaton).into_stream()?;
                        while let Some((term, info)) = stream.next() {
                            take(term, info)?;
                        }
                    }
                    None => {
                        // No byte of a UTF-8 string is 0xff, so this bound is above all terms with
                        // the prefix.
                        let mut end = start.as_bytes().to_vec();
                        end.push(0xff);
                        let mut stream = index.terms().range().ge(start).lt(end).into_stream()?;
                        while let Some((term, info)) = stream.next() {
                            take(term, info)?;
                        }
                    }
                }
            }
        }
        Ok((terms, memory))
    }
}

impl SegmentDocuments<'_> {
    fn count(&self, index: &InvertedIndexReader, info: &TermInfo) -> tantivy::Result<u64> {
        if let Self::All = self {
            return Ok(u64::from(info.doc_freq));
        }
        let mut postings = index.read_block_postings_from_terminfo(info, IndexRecordOption::Basic)?;
        let mut documents = 0;
        loop {
            let docs = postings.docs();
            if docs.is_empty() {
                return Ok(documents);
            }
            documents += docs.iter().filter(|doc| self.contains(**doc)).count() as u64;
            postings.advance();
        }
    }

    fn contains(&self, doc: u32) -> bool {
        match self {
            Self::All => true,
            Self::Alive(alive) => alive.is_alive(doc),
            Self::Filtered(docs) => docs.contains(doc),
        }
    }
}
