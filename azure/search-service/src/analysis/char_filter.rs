//! Character filters. They change the text before the tokenizer runs, and record how output
//! offsets map to the input.

pub(crate) mod html;

use std::collections::HashMap;
use std::sync::Arc;

use regex::Regex;

use super::pattern::{PatternReplacement, push_within};

/// Returns the maximum number of bytes that the character filters of an analyzer may produce for a text
/// of `input` bytes. Longer output is truncated.
///
/// Without this limit, long replacements could turn megabytes of text into gigabytes. A document that
/// was already acknowledged would then crash the process each time it is indexed. Useful filters stay
/// far below the limit.
pub(super) fn max_output(input: usize) -> usize {
    input.saturating_mul(4).saturating_add(1 << 20)
}

#[derive(Debug, Clone)]
pub(super) enum CharFilter {
    HtmlStrip,
    Mapping(Arc<CharMappings>),
    Pattern { pattern: Regex, replacement: PatternReplacement },
}

/// Replacements, grouped by the first character of the replaced text. The longest text comes first.
#[derive(Debug, Default)]
pub(super) struct CharMappings(HashMap<char, Vec<(String, String)>>);

/// A changed text with its edits in order.
#[derive(Debug, Clone)]
pub(super) struct EditedText {
    pub(super) text: String,
    edits: Vec<TextEdit>,
    /// The number of input bytes that have been read.
    read: usize,
    /// The maximum length of the text in bytes.
    most: usize,
}

/// One replacement: `input..input + removed` became `output..output + added`.
#[derive(Debug, Clone, Copy)]
struct TextEdit {
    input: usize,
    removed: usize,
    output: usize,
    added: usize,
}

impl CharFilter {
    /// Applies the filter. Returns at most `most` bytes of text.
    pub(super) fn apply(&self, text: &str, most: usize) -> EditedText {
        let mut edited = EditedText { text: String::new(), edits: Vec::new(), read: 0, most };
        match self {
            Self::HtmlStrip => html::strip(text, &mut edited),
            Self::Mapping(mappings) => mappings.apply(text, &mut edited),
            Self::Pattern { pattern, replacement } => {
                for captures in pattern.captures_iter(text) {
                    let Some(whole) = captures.get(0) else { continue };
                    edited.keep_to(text, whole.start());
                    edited.replace(whole.len(), replacement.pieces(&captures));
                    if edited.is_full() {
                        return edited;
                    }
                }
                edited.keep_to(text, text.len());
            }
        }
        edited
    }
}

impl CharMappings {
    /// Adds a mapping. Returns false if the same text is already mapped.
    pub(super) fn add(&mut self, from: String, to: String) -> bool {
        let Some(first) = from.chars().next() else { return false };
        let list = self.0.entry(first).or_default();
        if list.iter().any(|(known, _)| *known == from) {
            return false;
        }
        list.push((from, to));
        list.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        true
    }

    fn apply(&self, text: &str, edited: &mut EditedText) {
        let mut skip = 0;
        for (at, c) in text.char_indices() {
            if at < skip {
                continue;
            }
            let rest = text.get(at..).unwrap_or_default();
            let found = self.0.get(&c).and_then(|list| list.iter().find(|(from, _)| rest.starts_with(from)));
            if let Some((from, to)) = found {
                edited.keep_to(text, at);
                edited.replace(from.len(), [to.as_str()]);
                if edited.is_full() {
                    return;
                }
                skip = at + from.len();
            }
        }
        edited.keep_to(text, text.len());
    }
}

impl EditedText {
    /// Copies the input unchanged up to `end`.
    pub(super) fn keep_to(&mut self, input: &str, end: usize) {
        self.push(input.get(self.read..end).unwrap_or_default());
        self.read = self.read.max(end);
    }

    /// Replaces the next `removed` bytes of the input.
    pub(super) fn replace<'t>(&mut self, removed: usize, with: impl IntoIterator<Item = &'t str>) {
        let output = self.text.len();
        for piece in with {
            self.push(piece);
        }
        // Record only the bytes that were added, so that output offsets map back to the input even
        // after truncation.
        self.edits.push(TextEdit { input: self.read, removed, output, added: self.text.len() - output });
        self.read += removed;
    }

    fn push(&mut self, text: &str) {
        if !push_within(&mut self.text, text, self.most) {
            // After a truncation nothing more is appended, even if it would fit.
            self.most = self.text.len();
        }
    }

    fn is_full(&self) -> bool {
        self.text.len() >= self.most
    }

    /// Returns the input offset where a token begins that begins at `output`.
    pub(super) fn start(&self, output: usize) -> usize {
        let before = self.edits.partition_point(|edit| edit.output <= output);
        match before.checked_sub(1).and_then(|index| self.edits.get(index)) {
            None => output,
            Some(edit) if output < edit.output + edit.added => edit.input,
            Some(edit) => edit.input + edit.removed + (output - edit.output - edit.added),
        }
    }

    /// Returns the input offset where a token ends that ends at `output`. Text removed right after the
    /// token is not part of it.
    pub(super) fn end(&self, output: usize) -> usize {
        let before = self.edits.partition_point(|edit| edit.output < output);
        match before.checked_sub(1).and_then(|index| self.edits.get(index)) {
            None => output,
            Some(edit) if output <= edit.output + edit.added => edit.input + edit.removed,
            Some(edit) => edit.input + edit.removed + (output - edit.output - edit.added),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::compile;
    use super::*;

    fn mapping(pairs: &[(&str, &str)]) -> CharFilter {
        let mut mappings = CharMappings::default();
        for (from, to) in pairs {
            assert!(mappings.add((*from).to_owned(), (*to).to_owned()));
        }
        CharFilter::Mapping(Arc::new(mappings))
    }

    fn applied(filter: &CharFilter, text: &str) -> EditedText {
        filter.apply(text, max_output(text.len()))
    }

    #[test]
    fn output_beyond_the_limit_is_truncated_and_offsets_still_map_back() {
        let pattern = compile("a", "", "here").unwrap();
        let replacement = PatternReplacement::parse("éé$0$0", &pattern, "here").unwrap();
        let pattern = CharFilter::Pattern { pattern, replacement };
        for filter in [mapping(&[("a", "ééaa")]), pattern] {
            for (most, expected) in [
                (14, "ééaaxééaax"),
                (12, "ééaaxééa"),
                // Half a character does not fit, and the following text does not take its place.
                (10, "ééaaxé"),
                (7, "ééaax"),
                (3, "é"),
                (1, ""),
            ] {
                let edited = filter.apply("axax", most);
                assert_eq!(edited.text, expected, "{most}");
                for place in 0..=edited.text.len() {
                    assert!(edited.start(place) <= 4 && edited.end(place) <= 4, "{most}: {place}");
                }
            }
        }
    }

    #[test]
    fn a_short_text_cannot_become_gigabytes() {
        let pattern = compile("(?s).*", "", "here").unwrap();
        let replacement = PatternReplacement::parse(&"$0".repeat(500), &pattern, "here").unwrap();
        let text = "x".repeat(100_000);
        let edited = applied(&CharFilter::Pattern { pattern, replacement }, &text);
        assert_eq!(edited.text.len(), max_output(text.len()));
        assert_eq!(edited.end(edited.text.len()), text.len());
    }

    #[test]
    fn mappings_replace_the_longest_text_first() {
        let filter = mapping(&[("ph", "f"), ("p", "b"), ("-", ""), ("é", "ee")]);
        assert_eq!(applied(&filter, "photo-päpé").text, "fotobäbee");
    }

    #[test]
    fn offsets_map_back_through_a_change() {
        let edited = applied(&mapping(&[("ph", "f"), ("-", "")]), "a-photo-b");
        assert_eq!(edited.text, "afotob");
        // `foto` maps to `photo` without the hyphens around it.
        assert_eq!((edited.start(1), edited.end(5)), (2, 7));
        assert_eq!((edited.start(0), edited.end(1)), (0, 1));
        assert_eq!((edited.start(5), edited.end(6)), (8, 9));
    }

    #[test]
    fn patterns_replace_with_groups() {
        let pattern = compile(r"(\d)(\d)", "", "here").unwrap();
        let replacement = PatternReplacement::parse("$2$1", &pattern, "here").unwrap();
        let edited = applied(&CharFilter::Pattern { pattern, replacement }, "é12x");
        assert_eq!(edited.text, "é21x");
        assert_eq!((edited.start(2), edited.end(3)), (2, 4));
    }
}
