//! Character filters: they change the text before it is cut, and remember where everything came from.

use std::collections::HashMap;
use std::sync::Arc;

use regex::Regex;

use super::html;
use super::pattern::Replacement;

#[derive(Debug, Clone)]
pub(super) enum CharFilter {
    HtmlStrip,
    Mapping(Arc<Mappings>),
    Pattern { pattern: Regex, replacement: Replacement },
}

/// Replacements by the first character of what is replaced, the longest first.
#[derive(Debug, Default)]
pub(super) struct Mappings(HashMap<char, Vec<(String, String)>>);

/// A changed text, and its changes in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Edited {
    pub(super) text: String,
    edits: Vec<Edit>,
    /// Bytes of the input that have been read.
    read: usize,
}

/// `input..input + removed` became `output..output + added`.
#[derive(Debug, Clone, Copy)]
struct Edit {
    input: usize,
    removed: usize,
    output: usize,
    added: usize,
}

impl CharFilter {
    pub(super) fn apply(&self, text: &str) -> Edited {
        let mut edited = Edited::default();
        match self {
            Self::HtmlStrip => html::strip(text, &mut edited),
            Self::Mapping(mappings) => mappings.apply(text, &mut edited),
            Self::Pattern { pattern, replacement } => {
                let mut with = String::new();
                for captures in pattern.captures_iter(text) {
                    let Some(whole) = captures.get(0) else { continue };
                    edited.keep_to(text, whole.start());
                    with.clear();
                    replacement.expand(&captures, &mut with);
                    edited.replace(whole.len(), &with);
                }
                edited.keep_to(text, text.len());
            }
        }
        edited
    }
}

impl Mappings {
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

    fn apply(&self, text: &str, edited: &mut Edited) {
        let mut skip = 0;
        for (at, c) in text.char_indices() {
            if at < skip {
                continue;
            }
            let rest = text.get(at..).unwrap_or_default();
            let found = self.0.get(&c).and_then(|list| list.iter().find(|(from, _)| rest.starts_with(from)));
            if let Some((from, to)) = found {
                edited.keep_to(text, at);
                edited.replace(from.len(), to);
                skip = at + from.len();
            }
        }
        edited.keep_to(text, text.len());
    }
}

impl Edited {
    /// Takes the input unchanged up to a place.
    pub(super) fn keep_to(&mut self, input: &str, end: usize) {
        self.text.push_str(input.get(self.read..end).unwrap_or_default());
        self.read = self.read.max(end);
    }

    /// Replaces the next `removed` bytes of the input.
    pub(super) fn replace(&mut self, removed: usize, with: &str) {
        self.edits.push(Edit { input: self.read, removed, output: self.text.len(), added: with.len() });
        self.text.push_str(with);
        self.read += removed;
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
        let mut mappings = Mappings::default();
        for (from, to) in pairs {
            assert!(mappings.add((*from).to_owned(), (*to).to_owned()));
        }
        CharFilter::Mapping(Arc::new(mappings))
    }

    #[test]
    fn mappings_replace_the_longest_text_first() {
        let filter = mapping(&[("ph", "f"), ("p", "b"), ("-", ""), ("é", "ee")]);
        assert_eq!(filter.apply("photo-päpé").text, "fotobäbee");
    }

    #[test]
    fn places_lead_back_through_a_change() {
        let edited = mapping(&[("ph", "f"), ("-", "")]).apply("a-photo-b");
        assert_eq!(edited.text, "afotob");
        // `foto` is `photo`: without the hyphens around it.
        assert_eq!((edited.start(1), edited.end(5)), (2, 7));
        assert_eq!((edited.start(0), edited.end(1)), (0, 1));
        assert_eq!((edited.start(5), edited.end(6)), (8, 9));
    }

    #[test]
    fn patterns_replace_with_groups() {
        let pattern = compile(r"(\d)(\d)", "", "here").unwrap();
        let replacement = Replacement::parse("$2$1", &pattern, "here").unwrap();
        let edited = CharFilter::Pattern { pattern, replacement }.apply("é12x");
        assert_eq!(edited.text, "é21x");
        assert_eq!((edited.start(2), edited.end(3)), (2, 4));
    }
}
