//! N-grams, shingles and common grams.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::stage::{FilterStage, with_text};
use super::step::{AnalysisToken, lowered};

/// `nGram`: emits all substrings of `min` to `max` characters.
#[derive(Clone)]
pub(crate) struct NGramTokenFilter {
    pub(crate) min: usize,
    pub(crate) max: usize,
    /// The current token and the start of its next n-grams. They are emitted in portions,
    /// because there may be many.
    pub(crate) current: Option<(AnalysisToken, usize)>,
}

impl FilterStage for NGramTokenFilter {
    fn push(&mut self, term: AnalysisToken, _: &str, _: &mut VecDeque<AnalysisToken>) {
        self.current = Some((term, 0));
    }

    fn emit_pending(&mut self, output: &mut VecDeque<AnalysisToken>) {
        let Some((term, start)) = &mut self.current else { return };
        let rest = term.token.text.get(*start..).unwrap_or_default();
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).take(self.max).skip(self.min - 1);
        output.extend(ends.map(|end| with_text(term, rest.get(..end).unwrap_or_default())));
        match rest.chars().next() {
            Some(c) if !output.is_empty() => *start += c.len_utf8(),
            _ => self.current = None,
        }
    }
}

/// `edgeNGram`: emits n-grams from the start of a token, or up to its end.
#[derive(Clone)]
pub(crate) struct EdgeNGramTokenFilter {
    pub(crate) min: usize,
    pub(crate) max: usize,
    pub(crate) back: bool,
}

impl FilterStage for EdgeNGramTokenFilter {
    fn push(&mut self, term: AnalysisToken, _: &str, output: &mut VecDeque<AnalysisToken>) {
        let text = &term.token.text;
        if self.back {
            let starts = text.char_indices().rev().map(|(at, _)| at).take(self.max).skip(self.min - 1);
            output.extend(starts.map(|at| with_text(&term, text.get(at..).unwrap_or_default())));
        } else {
            let ends = text.char_indices().map(|(at, c)| at + c.len_utf8()).take(self.max).skip(self.min - 1);
            output.extend(ends.map(|at| with_text(&term, text.get(..at).unwrap_or_default())));
        }
    }
}

/// The maximum length of a shingle in bytes. It is Lucene's maximum term length.
const LONGEST_SHINGLE: usize = 32_766;

/// `shingle`: joins neighbouring tokens.
#[derive(Clone)]
pub(crate) struct ShingleTokenFilter {
    pub(crate) min: usize,
    pub(crate) max: usize,
    pub(crate) unigrams: bool,
    pub(crate) unigrams_if_alone: bool,
    pub(crate) separator: Arc<str>,
    /// Replaces a removed token.
    pub(crate) filler: Arc<str>,
    pub(crate) window: VecDeque<(usize, Option<AnalysisToken>)>,
    /// The tokens after the window. Shingles are emitted in portions, because those of a whole
    /// window may be large.
    pub(crate) waiting: VecDeque<(usize, Option<AnalysisToken>)>,
    pub(crate) ended: bool,
    pub(crate) any: bool,
}

impl ShingleTokenFilter {
    pub(crate) fn new(min: usize, max: usize, unigrams: bool) -> Self {
        Self {
            min,
            max,
            unigrams,
            unigrams_if_alone: false,
            separator: " ".into(),
            filler: "_".into(),
            window: VecDeque::new(),
            waiting: VecDeque::new(),
            ended: false,
            any: false,
        }
    }

    /// Emits all shingles that begin with the first token of the window, and removes that token.
    fn emit_window(&mut self, output: &mut VecDeque<AnalysisToken>) {
        let mut text = String::new();
        let mut real: Option<(usize, usize)> = None;
        let position = self.window.front().map(|(position, _)| *position).unwrap_or_default();
        let alone = self.unigrams_if_alone && !self.any && self.window.len() == 1;
        for (index, (_, slot)) in self.window.iter().enumerate() {
            let size = index + 1;
            if index > 0 {
                text.push_str(&self.separator);
            }
            match slot {
                Some(term) => {
                    text.push_str(&term.token.text);
                    let token = &term.token;
                    let start = real.map_or(token.offset_from, |(from, _)| from);
                    real = Some((start, real.map_or(token.offset_to, |(_, to)| to.max(token.offset_to))));
                }
                None => text.push_str(&self.filler),
            }
            if size > 1 && text.len() > LONGEST_SHINGLE {
                break;
            }
            if size == 1 {
                if let (Some(term), true) = (slot, self.unigrams || alone) {
                    output.push_back(term.clone());
                }
            } else if let (Some((from, to)), true) = (real, size >= self.min) {
                let mut shingle = AnalysisToken::default();
                let token = &mut shingle.token;
                token.text.clone_from(&text);
                (token.offset_from, token.offset_to) = (from, to);
                (token.position, token.position_length) = (position, size);
                output.push_back(shingle);
                self.any = true;
            }
        }
        self.window.pop_front();
    }
}

impl FilterStage for ShingleTokenFilter {
    fn push(&mut self, term: AnalysisToken, _: &str, _: &mut VecDeque<AnalysisToken>) {
        let position = term.token.position;
        if let Some((last, _)) = self.window.back() {
            let first_gap = last + 1;
            // Shingles of fillers only are not emitted, so more fillers than fit into the
            // window are not needed.
            self.waiting.extend((first_gap..position).take(self.max).map(|gap| (gap, None)));
        }
        self.waiting.push_back((position, Some(term)));
    }

    fn emit_pending(&mut self, output: &mut VecDeque<AnalysisToken>) {
        while output.is_empty() {
            if self.window.len() >= self.max {
                self.emit_window(output);
            } else if let Some(next) = self.waiting.pop_front() {
                self.window.push_back(next);
            } else if self.ended && !self.window.is_empty() {
                self.emit_window(output);
            } else {
                return;
            }
        }
    }

    fn finish(&mut self, _: &mut VecDeque<AnalysisToken>) {
        self.ended = true;
    }
}

/// `common_grams`: joins a common word to its neighbours, so that phrases with it are found quickly.
#[derive(Clone)]
pub(crate) struct CommonGramTokenFilter {
    pub(crate) words: Arc<HashSet<String>>,
    pub(crate) ignore_case: bool,
    /// Query mode: words in a pair are not emitted alone.
    pub(crate) query: bool,
    pub(crate) last: Option<(AnalysisToken, bool)>,
    /// Whether `last` ends a pair.
    pub(crate) paired: bool,
}

impl CommonGramTokenFilter {
    fn is_common(&self, term: &AnalysisToken) -> bool {
        self.words.contains(&term.token.text)
            || (self.ignore_case && self.words.contains(&lowered(&term.token.text)))
    }
}

impl FilterStage for CommonGramTokenFilter {
    fn push(&mut self, term: AnalysisToken, _: &str, output: &mut VecDeque<AnalysisToken>) {
        let common = self.is_common(&term);
        let mut paired = false;
        if let Some((last, last_common)) = self.last.take() {
            paired = (common || last_common) && last.token.position + 1 == term.token.position;
            if paired {
                let mut pair = with_text(&last, format!("{}_{}", last.token.text, term.token.text));
                pair.token.offset_to = term.token.offset_to;
                pair.token.position_length = 2;
                output.push_back(pair);
            } else if self.query {
                output.push_back(last);
            }
        }
        if !self.query {
            output.push_back(term.clone());
        }
        self.paired = paired;
        self.last = Some((term, common));
    }

    fn finish(&mut self, output: &mut VecDeque<AnalysisToken>) {
        if let (Some((last, _)), true, false) = (self.last.take(), self.query, self.paired) {
            output.push_back(last);
        }
    }
}
