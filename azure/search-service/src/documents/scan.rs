//! Splits JSON text into members and elements without decoding them.
//!
//! The text was checked before, a request by serde_json and a stored document when it was written.
//! Invalid text is split at arbitrary places, but never panics.

use std::borrow::Cow;

/// The members of an object, as raw names (without quotes) and raw values.
pub(super) struct JsonMembers<'a> {
    text: &'a str,
    at: usize,
}

/// Returns the members of an object. Returns `None` if the text is not an object.
pub(super) fn members(text: &str) -> Option<JsonMembers<'_>> {
    text.starts_with('{').then_some(JsonMembers { text, at: 1 })
}

impl<'a> Iterator for JsonMembers<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let start = next_token(bytes, self.at);
        if bytes.get(start) != Some(&b'"') {
            return None;
        }
        let end = string_end(bytes, start);
        let name = self.text.get(start + 1..end.checked_sub(1)?)?;
        let start = next_token(bytes, end);
        let end = value_end(bytes, start);
        let value = self.text.get(start..end)?;
        self.at = end;
        Some((name, value))
    }
}

/// The raw elements of an array.
pub(super) struct JsonElements<'a> {
    text: &'a str,
    at: usize,
}

/// Returns the elements of an array. Returns `None` if the text is not an array.
pub(super) fn elements(text: &str) -> Option<JsonElements<'_>> {
    text.starts_with('[').then_some(JsonElements { text, at: 1 })
}

impl<'a> Iterator for JsonElements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let start = next_token(bytes, self.at);
        if matches!(bytes.get(start), None | Some(b']' | b'}')) {
            return None;
        }
        let end = value_end(bytes, start);
        let value = self.text.get(start..end)?;
        self.at = end;
        Some(value)
    }
}

/// Returns the text between the quotes of a raw value, if it is a string.
pub(super) fn quoted(raw: &str) -> Option<&str> {
    raw.strip_prefix('"')?.strip_suffix('"')
}

/// Decodes a raw string with its quotes. Returns `None` if it is not a string, or has an invalid escape.
pub(super) fn decode(raw: &str) -> Option<Cow<'_, str>> {
    let inside = quoted(raw)?;
    if !inside.contains('\\') {
        return Some(Cow::Borrowed(inside));
    }
    serde_json::from_str(raw).ok().map(Cow::Owned)
}

/// Decodes the raw name of a member.
pub(super) fn decode_name(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.contains('\\') {
        return Some(Cow::Borrowed(raw));
    }
    serde_json::from_str(&format!("\"{raw}\"")).ok().map(Cow::Owned)
}

/// Returns the start of the next token. Commas and colons are skipped, because valid JSON has them in place.
fn next_token(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Returns the offset after the closing quote of the string that starts at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
            None => return bytes.len(),
            Some(found) if rest.get(found) == Some(&b'"') => return at + found + 1,
            Some(found) => at += found + 2,
        }
    }
}

fn value_end(bytes: &[u8], start: usize) -> usize {
    match bytes.get(start) {
        None => bytes.len(),
        Some(b'"') => string_end(bytes, start).min(bytes.len()),
        Some(b'{' | b'[') => {
            let mut depth = 0_usize;
            let mut at = start;
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at = string_end(bytes, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            bytes.len()
        }
        Some(_) => {
            let rest = bytes.get(start..).unwrap_or_default();
            let length = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t'));
            // At least one byte, so that invalid text also ends.
            start + length.unwrap_or(rest.len()).max(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_and_elements_are_cut_without_decoding() {
        let text = r#"{ "a" : 1 , "b\"" : [ 1, {"x":"]}"} , "\\" ], "c":{"d":null}}"#;
        let found: Vec<_> = members(text).unwrap().collect();
        assert_eq!(found, [("a", "1"), (r#"b\""#, r#"[ 1, {"x":"]}"} , "\\" ]"#), ("c", r#"{"d":null}"#)]);
        let found: Vec<_> = elements(found[1].1).unwrap().collect();
        assert_eq!(found, ["1", r#"{"x":"]}"}"#, r#""\\""#]);
        assert_eq!(members("{}").unwrap().count(), 0);
        assert_eq!(elements("[ ]").unwrap().count(), 0);
        assert!(members("[]").is_none());
    }

    proptest! {
        #[test]
        fn broken_text_never_panics_and_always_ends(text in "[\\[{][\\[\\]{}\",:\\\\aé1 ]{0,40}") {
            if let Some(members) = members(&text) {
                prop_assert!(members.count() <= text.len());
            }
            if let Some(elements) = elements(&text) {
                prop_assert!(elements.count() <= text.len());
            }
        }
    }
}
