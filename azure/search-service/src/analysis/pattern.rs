//! Regular expressions in Java syntax, which Lucene uses, and their replacement texts.

use bindpost_azure_search_model::ApiError;
use regex::{Captures, Regex, RegexBuilder};

/// The maximum length of a replacement in a definition, in characters.
pub(super) const LONGEST_REPLACEMENT: usize = 1_000;
/// The maximum length of a token after replacements, in bytes. It is far longer than any term in an index.
const LONGEST_REPLACED: usize = 1 << 20;

/// Compiles a Java pattern. `place` names the definition in error messages.
pub(super) fn compile(pattern: &str, flags: &str, place: &str) -> Result<Regex, ApiError> {
    let mut literal = false;
    let mut apply: Vec<fn(&mut RegexBuilder)> = Vec::new();
    for flag in flags.split('|').map(str::trim).filter(|flag| !flag.is_empty()) {
        match flag {
            "CASE_INSENSITIVE" => apply.push(|builder| _ = builder.case_insensitive(true)),
            "COMMENTS" => apply.push(|builder| _ = builder.ignore_whitespace(true)),
            "DOTALL" => apply.push(|builder| _ = builder.dot_matches_new_line(true)),
            "MULTILINE" => apply.push(|builder| _ = builder.multi_line(true)),
            "LITERAL" => literal = true,
            // Both are always in effect here.
            "UNICODE_CASE" | "UNIX_LINES" => {}
            "CANON_EQ" => {
                return Err(ApiError::not_supported(format!(
                    "{place}: the flag 'CANON_EQ' is not available in this service. Write the pattern for the composed and the decomposed form."
                )));
            }
            _ => {
                return Err(ApiError::invalid(format!(
                    "{place}: '{flag}' is not a flag of regular expressions. Join flags with '|', for example 'CASE_INSENSITIVE|DOTALL'."
                )));
            }
        }
    }
    let translated = if literal { regex::escape(pattern) } else { translate(pattern) };
    let mut builder = RegexBuilder::new(&translated);
    builder.size_limit(4 << 20);
    for change in apply {
        change(&mut builder);
    }
    builder.build().map_err(|error| {
        ApiError::invalid(format!(
            "{place}: the pattern '{pattern}' cannot be used: {error}. Look-around and back-references are not available in this service."
        ))
    })
}

/// Translates Java's `\w`, `\d`, `\s` and `\b`, which match ASCII. In the `regex` crate they match Unicode.
fn translate(pattern: &str) -> String {
    let mut translated = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars();
    let mut depth = 0_usize;
    while let Some(c) = chars.next() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '\\' => {
                match chars.next() {
                    Some('w') => translated.push_str("[0-9A-Za-z_]"),
                    Some('W') => translated.push_str("[^0-9A-Za-z_]"),
                    Some('d') => translated.push_str("[0-9]"),
                    Some('D') => translated.push_str("[^0-9]"),
                    Some('s') => translated.push_str(r"[ \t\n\x0B\x0C\r]"),
                    Some('S') => translated.push_str(r"[^ \t\n\x0B\x0C\r]"),
                    Some('b') if depth == 0 => translated.push_str(r"(?-u:\b)"),
                    Some('e') => translated.push_str(r"\x1B"),
                    Some(other) => translated.extend(['\\', other]),
                    None => translated.push('\\'),
                }
                continue;
            }
            _ => {}
        }
        translated.push(c);
    }
    translated
}

/// The replacement of a match: text, and groups as `$1` or `${name}`.
#[derive(Debug, Clone)]
pub(super) struct PatternReplacement(Vec<ReplacementPart>);

#[derive(Debug, Clone)]
enum ReplacementPart {
    Text(String),
    Group(usize),
}

impl PatternReplacement {
    pub(super) fn parse(text: &str, pattern: &Regex, place: &str) -> Result<Self, ApiError> {
        let wrong = |what: &str| {
            Err(ApiError::invalid(format!(
                "{place}: the replacement '{text}' {what}. Write '$1' for a group and '\\$' for a dollar sign."
            )))
        };
        if text.chars().count() > LONGEST_REPLACEMENT {
            return Err(ApiError::invalid(format!(
                "{place}: the replacement is longer than {LONGEST_REPLACEMENT} characters."
            )));
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == '\\' {
                let Some(escaped) = chars.next() else { return wrong("ends with a backslash") };
                plain.push(escaped);
                continue;
            }
            if c != '$' {
                plain.push(c);
                continue;
            }
            let group = if chars.next_if_eq(&'{').is_some() {
                let mut name = String::new();
                while let Some(c) = chars.next_if(|c| *c != '}') {
                    name.push(c);
                }
                if chars.next().is_none() {
                    return wrong("has a '${' without '}'");
                }
                pattern.capture_names().position(|known| known == Some(&name))
            } else {
                let mut number = None;
                while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                    let longer = number.unwrap_or(0) * 10 + digit as usize;
                    // As in Java, a digit belongs to the number as long as a group with that number exists.
                    if number.is_some() && longer >= pattern.captures_len() {
                        break;
                    }
                    number = Some(longer);
                    chars.next();
                }
                number
            };
            match group {
                Some(group) if group < pattern.captures_len() => {
                    if !plain.is_empty() {
                        parts.push(ReplacementPart::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(ReplacementPart::Group(group));
                }
                _ => return wrong("names a group that the pattern does not have"),
            }
        }
        if !plain.is_empty() {
            parts.push(ReplacementPart::Text(plain));
        }
        Ok(Self(parts))
    }

    /// Returns the pieces that replace a match, in order. Together they may be long, because a group
    /// can be used often.
    pub(super) fn pieces<'a>(&'a self, captures: &Captures<'a>) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(|part| match part {
            ReplacementPart::Text(text) => text.as_str(),
            ReplacementPart::Group(group) => captures.get(*group).map_or("", |found| found.as_str()),
        })
    }

    /// Replaces all matches. The result is truncated at [`LONGEST_REPLACED`] bytes.
    pub(super) fn replace_all(&self, pattern: &Regex, text: &mut String) {
        if !pattern.is_match(text) {
            return;
        }
        let most = text.len().max(LONGEST_REPLACED);
        let mut output = String::with_capacity(text.len());
        let mut at = 0;
        let mut fits = true;
        for captures in pattern.captures_iter(text) {
            let Some(whole) = captures.get(0) else { continue };
            let before = text.get(at..whole.start()).unwrap_or_default();
            let mut pieces = std::iter::once(before).chain(self.pieces(&captures));
            fits = pieces.all(|piece| push_within(&mut output, piece, most));
            if !fits {
                break;
            }
            at = whole.end();
        }
        if fits {
            push_within(&mut output, text.get(at..).unwrap_or_default(), most);
        }
        *text = output;
    }
}

/// Appends the text, truncated so that the output has at most `most` bytes. Returns false
/// if it was truncated.
pub(super) fn push_within(output: &mut String, text: &str, most: usize) -> bool {
    let mut end = most.saturating_sub(output.len()).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    output.push_str(text.get(..end).unwrap_or_default());
    end == text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_mean_ascii_as_in_java() {
        let pattern = compile(r"\W+", "", "here").unwrap();
        assert_eq!(pattern.split("café au lait").collect::<Vec<_>>(), ["caf", "au", "lait"]);
        let pattern = compile(r"[^\w.]+", "", "here").unwrap();
        assert_eq!(pattern.split("a.b-c").collect::<Vec<_>>(), ["a.b", "c"]);
        assert!(compile(r"\bab\b", "CASE_INSENSITIVE | DOTALL", "here").unwrap().is_match("x AB."));
        assert!(compile("a.b", "LITERAL", "here").unwrap().is_match("xa.b"));
    }

    #[test]
    fn unsupported_patterns_are_rejected_with_their_place() {
        for (pattern, flags) in [("(", ""), ("(?<=a)b", ""), (r"(a)\1", ""), ("a", "LOUD"), ("a", "CANON_EQ")]
        {
            let error = compile(pattern, flags, "Tokenizer 'x'").unwrap_err();
            assert!(error.message.starts_with("Tokenizer 'x'"), "{error}");
        }
    }

    #[test]
    fn replacements_support_groups_and_escapes() {
        let pattern = compile(r"(\d+)-(?<last>\d+)", "", "here").unwrap();
        for (replacement, expected) in [
            ("$2$1", "x 21 y"),
            ("$1a", "x 1a y"),
            ("${last}", "x 2 y"),
            (r"\$1", "x $1 y"),
            ("", "x  y"),
            ("$23", "x 23 y"),
        ] {
            let mut text = "x 1-2 y".to_owned();
            PatternReplacement::parse(replacement, &pattern, "here")
                .unwrap()
                .replace_all(&pattern, &mut text);
            assert_eq!(text, expected);
        }
        for wrong in ["$3", "$", "${first}", "${last", "\\"] {
            assert!(PatternReplacement::parse(wrong, &pattern, "here").is_err(), "{wrong}");
        }
        assert!(PatternReplacement::parse(&"é".repeat(1_000), &pattern, "here").is_ok());
        let error = PatternReplacement::parse(&"é".repeat(1_001), &pattern, "here").unwrap_err();
        assert_eq!(error.message, "here: the replacement is longer than 1000 characters.");
    }

    #[test]
    fn replaced_words_have_a_maximum_length() {
        let pattern = compile("a", "", "here").unwrap();
        let replacement = PatternReplacement::parse(&"éab".repeat(300), &pattern, "here").unwrap();
        let mut text = "a".repeat(2_000);
        replacement.replace_all(&pattern, &mut text);
        assert!((LONGEST_REPLACED - 1..=LONGEST_REPLACED).contains(&text.len()), "{}", text.len());
        replacement.replace_all(&pattern, &mut text);
        assert!((LONGEST_REPLACED - 1..=LONGEST_REPLACED).contains(&text.len()), "{}", text.len());
    }
}
