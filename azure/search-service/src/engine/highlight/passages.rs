//! Splits a text into passages of about a hundred characters, at the ends of sentences if possible.

use std::collections::HashSet;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::HighlightSpan;

/// A part of a text with matching words.
pub(super) struct HighlightPassage {
    pub(super) range: Range<usize>,
    pub(super) spans: Vec<HighlightSpan>,
    /// The number of distinct matching words, then the number of all matching words.
    pub(super) worth: (usize, usize),
}

/// The target length of a passage in characters. A shorter text is not split.
const LENGTH: usize = 100;
/// A sentence up to this length is not split.
const LONG: usize = 150;

/// Returns the passages with matches, in the order of the text.
pub(super) fn passages(value: &str, spans: Vec<HighlightSpan>) -> Vec<HighlightPassage> {
    let mut spans = spans.into_iter().peekable();
    let mut passages = Vec::new();
    for mut range in cut(value) {
        let mut own = Vec::new();
        while let Some(span) = spans.next_if(|span| span.range.start < range.end) {
            own.push(span);
        }
        if let Some(last) = own.last() {
            // A word is never split, even if it contains a boundary.
            range.end = range.end.max(last.range.end);
            let different: HashSet<&str> = own.iter().map(|span| span.token.as_str()).collect();
            let worth = (different.len(), own.len());
            passages.push(HighlightPassage { range, spans: own, worth });
        }
        if spans.peek().is_none() {
            break;
        }
    }
    passages
}

fn cut(value: &str) -> Vec<Range<usize>> {
    if value.chars().nth(LENGTH).is_none() {
        return std::iter::once(0..value.len()).collect();
    }
    let mut pieces = PassageBuilder::default();
    for (start, sentence) in value.split_sentence_bound_indices() {
        let length = sentence.chars().count();
        if length <= LONG {
            pieces.add(start..start + sentence.len(), length);
            continue;
        }
        pieces.close();
        for (at, word) in sentence.split_word_bound_indices() {
            pieces.add(start + at..start + at + word.len(), word.chars().count());
        }
        pieces.close();
    }
    pieces.close();
    pieces.ranges
}

/// Collects adjacent parts until a passage is full.
#[derive(Default)]
struct PassageBuilder {
    ranges: Vec<Range<usize>>,
    open: Option<(Range<usize>, usize)>,
}

impl PassageBuilder {
    fn add(&mut self, part: Range<usize>, length: usize) {
        match &mut self.open {
            Some((range, gathered)) if *gathered + length <= LENGTH => {
                range.end = part.end;
                *gathered += length;
            }
            _ => {
                self.close();
                self.open = Some((part, length));
            }
        }
    }

    fn close(&mut self) {
        self.ranges.extend(self.open.take().map(|(range, _)| range));
    }
}
