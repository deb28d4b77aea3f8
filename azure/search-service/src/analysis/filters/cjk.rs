//! `cjk_bigram`: indexes scripts without spaces as pairs of neighbouring characters.

use std::collections::VecDeque;

use super::stage::{FilterStage, TokenPositions, part_offsets, with_text};
use super::step::AnalysisToken;
use crate::analysis::tokenizer::words::starts_unspaced;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CjkScript {
    Han,
    Hiragana,
    Katakana,
    Hangul,
}

#[derive(Clone, Default)]
pub(crate) struct CjkBigramTokenFilter {
    pub(crate) ignored: Vec<CjkScript>,
    pub(crate) unigrams: bool,
    /// Also pairs Thai, Lao, Khmer and Burmese, by pieces similar to syllables.
    pub(crate) unspaced: bool,
    state: CjkBigramState,
}

#[derive(Clone, Default)]
struct CjkBigramState {
    positions: TokenPositions,
    /// The last character, and whether it is already part of a pair.
    last: Option<(AnalysisToken, bool)>,
}

impl CjkBigramTokenFilter {
    pub(crate) fn new(ignored: Vec<CjkScript>, unigrams: bool, unspaced: bool) -> Self {
        Self { ignored, unigrams, unspaced, state: CjkBigramState::default() }
    }

    fn is_paired(&self, text: &str) -> bool {
        if self.unspaced && starts_unspaced(text) {
            return true;
        }
        !text.is_empty()
            && text.chars().all(|c| script(c).is_some_and(|script| !self.ignored.contains(&script)))
    }

    /// Adds one character. `joined` means that it follows the last one, regardless of the offsets.
    fn unit(&mut self, unit: AnalysisToken, joined: bool, output: &mut VecDeque<AnalysisToken>) {
        let position = unit.token.position;
        let from = unit.token.offset_from;
        if !self.state.last.as_ref().is_some_and(|(last, _)| joined || last.token.offset_to == from) {
            self.flush(output);
            self.state.last = Some((unit, false));
            return;
        }
        if let Some((last, paired)) = self.state.last.take() {
            let at = self.next_position(&last, paired);
            if self.unigrams {
                let mut single = last.clone();
                single.token.position = at;
                output.push_back(single);
            }
            let mut pair = with_text(&last, format!("{}{}", last.token.text, unit.token.text));
            pair.token.offset_to = unit.token.offset_to;
            pair.token.position = at;
            pair.token.position_length = if self.unigrams { 2 } else { 1 };
            output.push_back(pair);
        }
        self.state.positions.skip_position(position);
        self.state.last = Some((unit, true));
    }

    fn next_position(&mut self, last: &AnalysisToken, paired: bool) -> usize {
        if paired {
            self.state.positions.next_position()
        } else {
            self.state.positions.follow(last.token.position)
        }
    }

    fn flush(&mut self, output: &mut VecDeque<AnalysisToken>) {
        let Some((mut last, paired)) = self.state.last.take() else { return };
        if !paired || self.unigrams {
            last.token.position = self.next_position(&last, paired);
            output.push_back(last);
        }
    }
}

impl FilterStage for CjkBigramTokenFilter {
    fn push(&mut self, mut term: AnalysisToken, original: &str, output: &mut VecDeque<AnalysisToken>) {
        if !self.is_paired(&term.token.text) {
            self.flush(output);
            term.token.position = self.state.positions.follow(term.token.position);
            output.push_back(term);
            return;
        }
        if starts_unspaced(&term.token.text) {
            self.unit(term, false, output);
            return;
        }
        for (at, c) in term.token.text.char_indices() {
            let mut unit = with_text(&term, c);
            (unit.token.offset_from, unit.token.offset_to) =
                part_offsets(&term, original, at, at + c.len_utf8());
            self.unit(unit, at > 0, output);
        }
    }

    fn finish(&mut self, output: &mut VecDeque<AnalysisToken>) {
        self.flush(output);
    }
}

fn script(c: char) -> Option<CjkScript> {
    match c {
        '\u{2e80}'..='\u{2fdf}'
        | '\u{3005}'
        | '\u{3007}'
        | '\u{3021}'..='\u{3029}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Some(CjkScript::Han),
        '\u{3041}'..='\u{309f}' => Some(CjkScript::Hiragana),
        '\u{30a1}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' => {
            Some(CjkScript::Katakana)
        }
        '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7ff}' => {
            Some(CjkScript::Hangul)
        }
        _ => None,
    }
}
