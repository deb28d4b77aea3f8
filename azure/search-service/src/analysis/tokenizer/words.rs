//! The words of the standard tokenizer: Unicode word breaking (UAX #29).
//!
//! `unicode-segmentation` implements all rules, but is fast only for pure ASCII text. Words of ASCII
//! and plain Latin, Greek and Cyrillic letters are therefore split here. All other text goes to
//! `unicode-segmentation`, up to the next white space.

use std::iter::Peekable;

use unicode_segmentation::{UWordBoundIndices, UnicodeSegmentation};

/// The words of a text as byte ranges, in order.
pub(crate) struct WordRanges<'a> {
    text: &'a str,
    /// Everything before this offset has been returned. It is always a word boundary.
    at: usize,
    /// Joins runs of Thai, Lao, Khmer and Burmese into one word. They are written without spaces, and
    /// splitting them needs a dictionary.
    join_runs: bool,
    full: Option<UnicodeSection<'a>>,
}

/// A part of the text that needs the full rules.
struct UnicodeSection<'a> {
    base: usize,
    end: usize,
    pieces: Peekable<UWordBoundIndices<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WordBreakClass {
    Letter,
    Digit,
    Underscore,
    /// Joins letters and joins digits: `.` and `'`.
    Joint,
    /// Joins letters: `:`.
    LetterJoint,
    /// Joins digits: `,` and `;`.
    DigitJoint,
    Separator,
    /// Needs the full rules.
    Other,
    End,
}

impl<'a> WordRanges<'a> {
    pub(crate) fn new(text: &'a str, join_runs: bool) -> Self {
        Self { text, at: 0, join_runs, full: None }
    }

    fn simple(&mut self) -> Option<(usize, usize)> {
        let bytes = self.text.as_bytes();
        loop {
            let boundary = self.at;
            let mut at = boundary;
            loop {
                match class_at(bytes, at).0 {
                    WordBreakClass::End => return None,
                    WordBreakClass::Letter | WordBreakClass::Digit | WordBreakClass::Underscore => break,
                    WordBreakClass::Other => {
                        self.start_full(boundary, at);
                        return None;
                    }
                    _ => at += 1,
                }
            }
            let start = at;
            let mut last = WordBreakClass::Separator;
            let mut word = false;
            loop {
                let (class, length) = class_at(bytes, at);
                match class {
                    WordBreakClass::Letter => {
                        word = true;
                        last = class;
                        at += length;
                        // Fast path for runs of ASCII letters.
                        while bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
                            at += 1;
                        }
                        continue;
                    }
                    WordBreakClass::Digit => word = true,
                    WordBreakClass::Underscore => {}
                    WordBreakClass::Joint | WordBreakClass::LetterJoint | WordBreakClass::DigitJoint => {
                        let after = class_at(bytes, at + 1).0;
                        if after == WordBreakClass::Other {
                            self.start_full(boundary, at + 1);
                            return None;
                        }
                        let joins = match last {
                            WordBreakClass::Letter => {
                                class != WordBreakClass::DigitJoint && after == WordBreakClass::Letter
                            }
                            WordBreakClass::Digit => {
                                class != WordBreakClass::LetterJoint && after == WordBreakClass::Digit
                            }
                            _ => false,
                        };
                        if !joins {
                            break;
                        }
                    }
                    WordBreakClass::Other => {
                        self.start_full(boundary, at);
                        return None;
                    }
                    WordBreakClass::Separator | WordBreakClass::End => break,
                }
                last = class;
                at += length;
            }
            self.at = at;
            if word {
                return Some((start, at));
            }
        }
    }

    /// Starts the full rules at a known boundary, up to the next ASCII white space. No rule
    /// joins text across it.
    fn start_full(&mut self, boundary: usize, other: usize) {
        let rest = self.text.as_bytes().get(other..).unwrap_or_default();
        let length = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let end = other + length;
        let part = self.text.get(boundary..end).unwrap_or_default();
        self.full =
            Some(UnicodeSection { base: boundary, end, pieces: part.split_word_bound_indices().peekable() });
    }
}

impl Iterator for WordRanges<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        loop {
            if let Some(full) = &mut self.full {
                if let Some(word) = full.next_word(self.join_runs) {
                    return Some(word);
                }
                self.at = full.end;
                self.full = None;
            }
            let word = self.simple();
            if word.is_some() || self.full.is_none() {
                return word;
            }
        }
    }
}

impl UnicodeSection<'_> {
    fn next_word(&mut self, join_runs: bool) -> Option<(usize, usize)> {
        loop {
            let (start, piece) = self.pieces.next()?;
            let mut end = start + piece.len();
            if join_runs && starts_unspaced(piece) {
                while let Some((next, piece)) = self.pieces.next_if(|(_, piece)| starts_unspaced(piece)) {
                    end = next + piece.len();
                }
            }
            if piece.chars().any(char::is_alphanumeric) {
                return Some((self.base + start, self.base + end));
            }
        }
    }
}

/// Whether the piece begins with a letter of a script that is written without spaces and is not ideographic.
pub(crate) fn starts_unspaced(piece: &str) -> bool {
    piece.chars().next().is_some_and(is_unspaced)
}

pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}'
        | '\u{e81}'..='\u{ebd}' | '\u{ec0}'..='\u{ecd}' | '\u{edc}'..='\u{edf}'
        | '\u{1000}'..='\u{103f}' | '\u{1050}'..='\u{108f}' | '\u{109a}'..='\u{109f}'
        | '\u{1780}'..='\u{17d3}' | '\u{17d7}' | '\u{17dc}'..='\u{17dd}'
        | '\u{1950}'..='\u{19df}')
}

/// The class of each first byte. [`class_at`] classifies two-byte letters.
const CLASSES: [WordBreakClass; 256] = {
    let mut classes = [WordBreakClass::Other; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => WordBreakClass::Letter,
            b'0'..=b'9' => WordBreakClass::Digit,
            b'_' => WordBreakClass::Underscore,
            b'.' | b'\'' => WordBreakClass::Joint,
            b':' => WordBreakClass::LetterJoint,
            b',' | b';' => WordBreakClass::DigitJoint,
            _ => WordBreakClass::Separator,
        };
        byte += 1;
    }
    classes
};

#[inline]
fn class_at(bytes: &[u8], at: usize) -> (WordBreakClass, usize) {
    let Some(&byte) = bytes.get(at) else { return (WordBreakClass::End, 0) };
    if byte < 0x80 {
        return (CLASSES[usize::from(byte)], 1);
    }
    if let (0xc3..=0xd2, Some(low)) = (byte, bytes.get(at + 1)) {
        let code = (u32::from(byte & 0x1f) << 6) | u32::from(low & 0x3f);
        let plain = matches!(code,
            0xc0..=0xd6 | 0xd8..=0xf6 | 0xf8..=0x24f | 0x391..=0x3a1 | 0x3a3..=0x3ce | 0x400..=0x481);
        if plain {
            return (WordBreakClass::Letter, 2);
        }
    }
    (WordBreakClass::Other, 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<&str> {
        WordRanges::new(text, true).map(|(from, to)| &text[from..to]).collect()
    }

    #[test]
    fn words_break_by_the_unicode_rules() {
        for (text, expected) in [
            ("", vec![]),
            ("  ,; ", vec![]),
            ("The quick, brown fox.", vec!["The", "quick", "brown", "fox"]),
            ("can't won\u{2019}t O'Neil's", vec!["can't", "won\u{2019}t", "O'Neil's"]),
            ("3.14 1,000 v1.2a a.b a.1", vec!["3.14", "1,000", "v1.2a", "a.b", "a", "1"]),
            ("snake_case __ _x", vec!["snake_case", "_x"]),
            ("wi-fi user@example.com", vec!["wi", "fi", "user", "example.com"]),
            ("naïve Straße Привет Ελλάδα", vec!["naïve", "Straße", "Привет", "Ελλάδα"]),
            ("e\u{301}te\u{301}", vec!["e\u{301}te\u{301}"]),
            ("東京タワー", vec!["東", "京", "タワー"]),
            ("한국어 말", vec!["한국어", "말"]),
            ("ภาษาไทย 5", vec!["ภาษาไทย", "5"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn unspaced_scripts_may_stay_in_pieces() {
        assert!(WordRanges::new("ภาษาไทย", false).count() > 1);
    }

    proptest! {
        #[test]
        fn short_cuts_change_no_boundary(text in "[a-cA1-3_.':,; \n\t\"éßλя×\u{301}\u{200d}\u{ad}\u{2019}א東カ😀\u{941}·-]{0,40}") {
            let plain: Vec<(usize, usize)> =
                text.unicode_word_indices().map(|(at, word)| (at, at + word.len())).collect();
            let ours: Vec<(usize, usize)> = WordRanges::new(&text, false).collect();
            prop_assert_eq!(ours, plain);
        }

        #[test]
        fn short_cuts_change_no_boundary_of_any_text(text in any::<String>()) {
            let plain: Vec<(usize, usize)> =
                text.unicode_word_indices().map(|(at, word)| (at, at + word.len())).collect();
            let ours: Vec<(usize, usize)> = WordRanges::new(&text, false).collect();
            prop_assert_eq!(ours, plain);
        }
    }
}
