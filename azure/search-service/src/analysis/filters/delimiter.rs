//! `word_delimiter`: splits words at punctuation, at case changes, and between letters and digits.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::stage::{FilterStage, TokenPositions, part_offsets, with_text};
use super::step::AnalysisToken;

#[derive(Clone)]
pub(crate) struct WordDelimiterTokenFilter {
    pub(crate) options: Arc<WordDelimiterOptions>,
    pub(crate) positions: TokenPositions,
}

#[derive(Debug, Clone)]
pub(crate) struct WordDelimiterOptions {
    pub(crate) word_parts: bool,
    pub(crate) number_parts: bool,
    pub(crate) catenate_words: bool,
    pub(crate) catenate_numbers: bool,
    pub(crate) catenate_all: bool,
    pub(crate) split_on_case: bool,
    pub(crate) split_on_numerics: bool,
    pub(crate) preserve_original: bool,
    pub(crate) possessive: bool,
    pub(crate) protected: HashSet<String>,
}

impl Default for WordDelimiterOptions {
    fn default() -> Self {
        Self {
            word_parts: true,
            number_parts: true,
            catenate_words: false,
            catenate_numbers: false,
            catenate_all: false,
            split_on_case: true,
            split_on_numerics: true,
            preserve_original: false,
            possessive: true,
            protected: HashSet::new(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DelimiterCharClass {
    Lower,
    Upper,
    /// A letter of a script without case.
    Letter,
    Digit,
    Mark,
}

#[derive(Clone, Copy)]
struct DelimitedPart {
    start: usize,
    end: usize,
    number: bool,
}

/// A token to emit: the parts it covers, and whether it joins several of them.
struct DelimitedSpan {
    first: usize,
    start: usize,
    end: usize,
    text: String,
    joined: bool,
}

impl WordDelimiterOptions {
    fn parts(&self, text: &str) -> Vec<DelimitedPart> {
        let mut parts: Vec<DelimitedPart> = Vec::new();
        let mut open: Option<(usize, bool, DelimiterCharClass)> = None;
        let mut skip_to = 0;
        for (at, c) in text.char_indices() {
            if at < skip_to {
                continue;
            }
            let kind = kind(c);
            if let Some((start, number, last)) = open {
                let parted = match (last, kind) {
                    (_, DelimiterCharClass::Mark) => true,
                    (DelimiterCharClass::Lower, DelimiterCharClass::Upper) => self.split_on_case,
                    (DelimiterCharClass::Digit, DelimiterCharClass::Digit) => false,
                    (DelimiterCharClass::Digit, _) | (_, DelimiterCharClass::Digit) => self.split_on_numerics,
                    _ => false,
                };
                if !parted {
                    open = Some((start, number && kind == DelimiterCharClass::Digit, kind));
                    continue;
                }
                parts.push(DelimitedPart { start, end: at, number });
                open = None;
            }
            if kind == DelimiterCharClass::Mark {
                if self.possessive && matches!(c, '\'' | '\u{2019}') && !parts.is_empty() {
                    let mut rest = text.get(at + c.len_utf8()..).unwrap_or_default().chars();
                    let s = matches!(rest.next(), Some('s' | 'S'));
                    if s && rest.next().is_none_or(|next| self::kind(next) == DelimiterCharClass::Mark) {
                        skip_to = at + c.len_utf8() + 1;
                    }
                }
            } else {
                open = Some((at, kind == DelimiterCharClass::Digit, kind));
            }
        }
        if let Some((start, number, _)) = open {
            parts.push(DelimitedPart { start, end: text.len(), number });
        }
        parts
    }

    fn spans(&self, text: &str, parts: &[DelimitedPart]) -> Vec<DelimitedSpan> {
        let slice = |part: &DelimitedPart| text.get(part.start..part.end).unwrap_or_default();
        let mut spans = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            if if part.number { self.number_parts } else { self.word_parts } {
                let text = slice(part).to_owned();
                spans.push(DelimitedSpan {
                    first: index,
                    start: part.start,
                    end: part.end,
                    text,
                    joined: false,
                });
            }
        }
        let mut join = |from: usize, run: &[DelimitedPart]| {
            if let (Some(first), Some(last), true) = (run.first(), run.last(), run.len() > 1) {
                let text = run.iter().map(slice).collect();
                spans.push(DelimitedSpan {
                    first: from,
                    start: first.start,
                    end: last.end,
                    text,
                    joined: true,
                });
            }
        };
        let mut from = 0;
        for run in parts.chunk_by(|one, other| one.number == other.number) {
            let number = run.first().is_some_and(|part| part.number);
            if if number { self.catenate_numbers } else { self.catenate_words } {
                join(from, run);
            }
            from += run.len();
        }
        let whole_run = parts.iter().all(|part| part.number) && self.catenate_numbers
            || parts.iter().all(|part| !part.number) && self.catenate_words;
        if self.catenate_all && !whole_run {
            join(0, parts);
        }
        // A single part that is not emitted as a part is still emitted if parts of its kind are joined.
        if let ([part], true) = (parts, spans.is_empty()) {
            let joins = if part.number { self.catenate_numbers } else { self.catenate_words };
            if joins || self.catenate_all {
                let text = slice(part).to_owned();
                spans.push(DelimitedSpan { first: 0, start: part.start, end: part.end, text, joined: false });
            }
        }
        spans.sort_by_key(|span| (span.first, span.joined));
        spans
    }
}

impl FilterStage for WordDelimiterTokenFilter {
    fn push(&mut self, mut term: AnalysisToken, original: &str, output: &mut VecDeque<AnalysisToken>) {
        let options = self.options.clone();
        let text = &term.token.text;
        let parts = options.parts(text);
        let whole = matches!(parts.as_slice(), [part] if part.start == 0 && part.end == text.len());
        let came = term.token.position;
        if whole || options.protected.contains(text) {
            term.token.position = self.positions.follow(came);
            output.push_back(term);
            return;
        }
        let mut placed: Option<usize> = None;
        if options.preserve_original {
            let at = self.positions.follow(came);
            placed = Some(at);
            let mut same = term.clone();
            same.token.position = at;
            output.push_back(same);
        }
        // The part at the current position. Joined parts have the position of their first part.
        let mut part = None;
        for span in options.spans(text, &parts) {
            let position = match placed {
                None => self.positions.follow(came),
                Some(at) if part.is_none() || part == Some(span.first) => at,
                Some(_) => self.positions.next_position(),
            };
            placed = Some(position);
            part = Some(span.first);
            let (from, to) = part_offsets(&term, original, span.start, span.end);
            let mut word = with_text(&term, span.text);
            (word.token.offset_from, word.token.offset_to, word.token.position) = (from, to, position);
            output.push_back(word);
        }
    }
}

fn kind(c: char) -> DelimiterCharClass {
    if c.is_lowercase() {
        DelimiterCharClass::Lower
    } else if c.is_uppercase() {
        DelimiterCharClass::Upper
    } else if c.is_alphabetic() {
        DelimiterCharClass::Letter
    } else if c.is_numeric() {
        DelimiterCharClass::Digit
    } else {
        DelimiterCharClass::Mark
    }
}
