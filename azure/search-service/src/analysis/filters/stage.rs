//! Token filters that emit several tokens for one, or need the neighbours of a token.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use regex::Regex;

use super::folding;
use super::phonetic::PhoneticEncoder;
use super::step::{AnalysisToken, LONGEST_STEMMED, lowered};
use super::stop_words::StopWords;
use crate::analysis::char_filter::max_output;

/// The maximum number of tokens that a filter keeps at a time. Only the n-grams or pattern matches of a
/// text of megabytes reach it. All of them would not fit into memory.
const MOST_KEPT: usize = 500_000;

/// A token filter while it processes one text.
pub(crate) trait FilterStage {
    /// Accepts the next token. `original` is the text that offsets refer to.
    fn push(&mut self, term: AnalysisToken, original: &str, output: &mut VecDeque<AnalysisToken>);

    /// Emits more tokens from the filter's state, before the next token is pushed.
    fn emit_pending(&mut self, _output: &mut VecDeque<AnalysisToken>) {}

    /// Ends the input and emits the remaining tokens.
    fn finish(&mut self, _output: &mut VecDeque<AnalysisToken>) {}

    /// Whether the filter will emit nothing more, regardless of its input.
    fn is_closed(&self) -> bool {
        false
    }
}

/// The output positions of a filter that emits more or fewer tokens than it reads. Gaps are kept, and
/// additional tokens shift the following positions.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenPositions {
    taken: Option<usize>,
    given: Option<usize>,
}

impl TokenPositions {
    /// Returns the output position of a token that was read at `position`.
    pub(crate) fn follow(&mut self, position: usize) -> usize {
        let gap = position.saturating_sub(self.taken.unwrap_or_default());
        let given = self.given.unwrap_or_default() + gap;
        self.taken = Some(position);
        self.given = Some(given);
        given
    }

    /// Returns the position after the last one.
    pub(crate) fn next_position(&mut self) -> usize {
        let given = self.given.map_or(0, |given| given + 1);
        self.given = Some(given);
        given
    }

    /// Records a token that was read and has no output position of its own.
    pub(crate) fn skip_position(&mut self, position: usize) {
        self.taken = Some(position);
    }
}

/// Returns the offsets of a part of a token. They are exact if the token has the same length as its
/// source text. Otherwise they are those of the whole token.
pub(crate) fn part_offsets(term: &AnalysisToken, original: &str, start: usize, end: usize) -> (usize, usize) {
    let token = &term.token;
    let (from, to) = (token.offset_from + start, token.offset_from + end);
    let same_length = token.offset_to - token.offset_from == token.text.len();
    if same_length && original.is_char_boundary(from) && original.is_char_boundary(to) {
        (from, to)
    } else {
        (token.offset_from, token.offset_to)
    }
}

/// Returns a token at the same position and offsets with another text.
pub(crate) fn with_text(term: &AnalysisToken, text: impl Into<String>) -> AnalysisToken {
    let mut other = AnalysisToken { keyword: term.keyword, ..AnalysisToken::default() };
    other.token.text = text.into();
    other.token.offset_from = term.token.offset_from;
    other.token.offset_to = term.token.offset_to;
    other.token.position = term.token.position;
    other
}

/// `asciifolding` with `preserveOriginal`.
#[derive(Clone)]
pub(crate) struct FoldPreservingOriginal;

impl FilterStage for FoldPreservingOriginal {
    fn push(&mut self, term: AnalysisToken, _: &str, output: &mut VecDeque<AnalysisToken>) {
        let mut folded = term.token.text.clone();
        if folding::fold(&mut folded) {
            let folded = with_text(&term, folded);
            output.push_back(folded);
        }
        output.push_back(term);
    }
}

/// `phonetic` with `replace: false`.
#[derive(Clone)]
pub(crate) struct PhoneticPreservingOriginal(pub(crate) PhoneticEncoder);

impl FilterStage for PhoneticPreservingOriginal {
    fn push(&mut self, term: AnalysisToken, _: &str, output: &mut VecDeque<AnalysisToken>) {
        let code = self.0.encode(&term.token.text);
        if !code.is_empty() && code != term.token.text {
            output.push_back(with_text(&term, code));
        }
        output.push_back(term);
    }
}

/// `keyword_repeat`: emits each token twice. Stemmers skip the first copy.
#[derive(Clone)]
pub(crate) struct KeywordRepeatTokenFilter;

impl FilterStage for KeywordRepeatTokenFilter {
    fn push(&mut self, term: AnalysisToken, _: &str, output: &mut VecDeque<AnalysisToken>) {
        let mut keyword = term.clone();
        keyword.keyword = true;
        output.extend([keyword, term]);
    }
}

/// `limit`: emits only the first tokens.
#[derive(Clone)]
pub(crate) struct LimitTokenFilter(pub(crate) usize);

impl FilterStage for LimitTokenFilter {
    fn push(&mut self, term: AnalysisToken, _: &str, output: &mut VecDeque<AnalysisToken>) {
        if let Some(left) = self.0.checked_sub(1) {
            self.0 = left;
            output.push_back(term);
        }
    }

    fn is_closed(&self) -> bool {
        self.0 == 0
    }
}

/// `unique`: emits each token once per text, or once per position. After [`MOST_KEPT`] tokens, new ones
/// may be repeated.
#[derive(Clone, Default)]
pub(crate) struct UniqueTokenFilter {
    pub(crate) at_position: bool,
    pub(crate) seen: HashSet<String>,
    pub(crate) position: usize,
}

impl FilterStage for UniqueTokenFilter {
    fn push(&mut self, term: AnalysisToken, _: &str, output: &mut VecDeque<AnalysisToken>) {
        if self.at_position && term.token.position != self.position {
            self.seen.clear();
            self.position = term.token.position;
        }
        if !self.seen.contains(&term.token.text) {
            if self.seen.len() < MOST_KEPT {
                self.seen.insert(term.token.text.clone());
            }
            output.push_back(term);
        }
    }
}

/// `stopwords` with `removeTrailing: false`: keeps a stop word at the end of the text, because it may
/// be the start of a longer word.
#[derive(Clone)]
pub(crate) struct StopExceptTrailing {
    pub(crate) words: StopWords,
    pub(crate) ignore_case: bool,
    pub(crate) held: Option<AnalysisToken>,
}

impl FilterStage for StopExceptTrailing {
    fn push(&mut self, mut term: AnalysisToken, _: &str, output: &mut VecDeque<AnalysisToken>) {
        let stop = if self.ignore_case {
            self.words.contains(&mut lowered(&term.token.text))
        } else {
            self.words.contains(&mut term.token.text)
        };
        self.held = None;
        if stop {
            self.held = Some(term);
        } else {
            output.push_back(term);
        }
    }

    fn finish(&mut self, output: &mut VecDeque<AnalysisToken>) {
        output.extend(self.held.take());
    }
}

/// `pattern_capture`: emits the groups of patterns as tokens.
#[derive(Clone)]
pub(crate) struct PatternCaptureTokenFilter {
    pub(crate) patterns: Arc<[Regex]>,
    pub(crate) preserve: bool,
}

impl FilterStage for PatternCaptureTokenFilter {
    fn push(&mut self, term: AnalysisToken, _: &str, output: &mut VecDeque<AnalysisToken>) {
        let text = &term.token.text;
        let mut found: Vec<(usize, &str)> = Vec::new();
        // Nested groups of many patterns can be a multiple of the token's length. Groups beyond this
        // limit are dropped.
        let mut room = max_output(text.len());
        'patterns: for pattern in self.patterns.iter() {
            for captures in pattern.captures_iter(text) {
                let first = usize::from(captures.len() > 1);
                for group in captures.iter().skip(first).flatten() {
                    let (start, group) = (group.start(), group.as_str());
                    if group.is_empty() || self.preserve && group == text.as_str() {
                        continue;
                    }
                    match room.checked_sub(group.len()) {
                        Some(left) if found.len() < MOST_KEPT => room = left,
                        _ => break 'patterns,
                    }
                    found.push((start, group));
                }
            }
        }
        found.sort_by_key(|(start, _)| *start);
        let groups: Vec<AnalysisToken> =
            found.into_iter().map(|(_, group)| with_text(&term, group)).collect();
        if self.preserve || groups.is_empty() {
            output.push_back(term);
        }
        output.extend(groups);
    }
}

/// `dictionary_decompounder`: emits the dictionary words inside a longer word.
#[derive(Clone)]
pub(crate) struct DecompounderTokenFilter {
    /// The dictionary, in lower case.
    pub(crate) words: Arc<HashSet<String>>,
    pub(crate) min_word: usize,
    pub(crate) min_part: usize,
    pub(crate) max_part: usize,
    pub(crate) longest: bool,
}

impl FilterStage for DecompounderTokenFilter {
    fn push(&mut self, term: AnalysisToken, _: &str, output: &mut VecDeque<AnalysisToken>) {
        let text = &term.token.text;
        let mut parts: Vec<AnalysisToken> = Vec::new();
        let bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        // A text of thousands of characters is not a compound, and all its substrings could
        // be in the dictionary.
        if bounds.len() > self.min_word && text.len() <= LONGEST_STEMMED {
            for (index, start) in bounds.iter().enumerate() {
                let mut best: Option<&str> = None;
                let ends = bounds.iter().skip(index + self.min_part);
                for end in ends.take((self.max_part + 1).saturating_sub(self.min_part)) {
                    let part = text.get(*start..*end).unwrap_or_default();
                    if self.words.contains(&lowered(part)) {
                        if !self.longest {
                            parts.push(with_text(&term, part));
                        }
                        best = Some(part);
                    }
                }
                if let (true, Some(best)) = (self.longest, best) {
                    parts.push(with_text(&term, best));
                }
            }
        }
        output.push_back(term);
        output.extend(parts);
    }
}
