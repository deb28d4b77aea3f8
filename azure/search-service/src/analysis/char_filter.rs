//! Character filters: they change the text before it is cut, and remember where everything came from.

pub(crate) mod html;

use std::collections::HashMap;
use std::sync::Arc;

use regex::Regex;

use super::pattern::{PatternReplacement, push_within};

/// How many bytes the character filters of an analyzer may make of a text; what goes beyond is cut off there.
///
/// A replacement that is longer than what it replaces would else make gigabytes of a text of megabytes, and a document
/// that was acknowledged would end the process each time it is indexed. No filter that is of use comes near this.
pub(super) fn max_output(input: usize) -> usize {
    input.saturating_mul(4).saturating_add(1 << 20)
}

#[derive(Debug, Clone)]
pub(super) enum CharFilter {
    HtmlStrip,
    Mapping(Arc<CharMappings>),
    Pattern { pattern: Regex, replacement: PatternReplacement },
}

/// Replacements by the first character of what is replaced, the longest first.
#[derive(Debug, Default)]
pub(super) struct CharMappings(HashMap<char, Vec<(String, String)>>);

/// A changed text, and its changes in order.
#[derive(Debug, Clone)]
pub(super) struct EditedText {
    pub(super) text: String,
    edits: Vec<TextEdit>,
    /// Bytes of the input that have been read.
    read: usize,
    /// How long the text may become.
    most: usize,
}

/// `input..input + removed` became `output..output + added`.
#[derive(Debug, Clone, Copy)]
struct TextEdit {
    input: usize,
    removed: usize,
    output: usize,
    added: usize,
}

impl CharFilter {
    /// Gives at most `most` bytes.
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
    /// False when the same text has been mapped before.
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
    /// Takes the input unchanged up to a place.
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
        // Only what was added in fact: places in the output lead back to the input even where it was cut.
        self.edits.push(TextEdit { input: self.read, removed, output, added: self.text.len() - output });
        self.read += removed;
    }

    fn push(&mut self, text: &str) {
        if !push_within(&mut self.text, text, self.most) {
            // Nothing follows what was cut, even if it were short enough.
            self.most = self.text.len();
        }
    }

    fn is_full(&self) -> bool {
        self.text.len() >= self.most
    }

    /// Where in the input a token begins that begins here in the output.
    pub(super) fn start(&self, output: usize) -> usize {
        let before = self.edits.partition_point(|edit| edit.output <= output);
        match before.checked_sub(1).and_then(|index| self.edits.get(index)) {
            None => output,
            Some(edit) if output < edit.output + edit.added => edit.input,
            Some(edit) => edit.input + edit.removed + (output - edit.output - edit.added),
        }
    }

    /// Where in the input a token ends that ends here in the output: what was removed after it stays outside.
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
    fn what_goes_beyond_the_limit_is_cut_and_places_still_lead_back() {
        let pattern = compile("a", "", "here").unwrap();
        let replacement = PatternReplacement::parse("éé$0$0", &pattern, "here").unwrap();
        let pattern = CharFilter::Pattern { pattern, replacement };
        for filter in [mapping(&[("a", "ééaa")]), pattern] {
            for (most, expected) in [
                (14, "ééaaxééaax"),
                (12, "ééaaxééa"),
                // Half a letter does not fit, and what follows it is not put in its place.
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
    fn places_lead_back_through_a_change() {
        let edited = applied(&mapping(&[("ph", "f"), ("-", "")]), "a-photo-b");
        assert_eq!(edited.text, "afotob");
        // `foto` is `photo`: without the hyphens around it.
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
