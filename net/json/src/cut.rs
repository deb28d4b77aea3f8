//! Cuts members and elements out of JSON text, without decoding them.
//!
//! [`members`] and [`elements`] trust the text: it was checked before, by a parser or by the strict pass over a message
//! in `mcp/protocol`. They skip a value by its quotes and brackets alone. Invalid text is cut at arbitrary places, but
//! never panics. [`text_members`] checks what it cuts, but knows strings only.
//!
//! The strict pass is another algorithm. It proves that a text is valid, so it has to look at every number, escape and
//! name, it counts the depth, and it compares the names of every object. It finds positions only on the way. What both
//! have in common is in [`text`](crate::text).

use std::borrow::Cow;

use crate::text::{decode, plain_prefix};

/// The members of an object, as raw names (without quotes) and raw values.
#[derive(Clone, Debug)]
pub struct JsonMembers<'a> {
    text: &'a str,
    at: usize,
}

/// Returns the members of an object. Returns `None` if the text is not an object.
#[inline]
pub fn members(text: &str) -> Option<JsonMembers<'_>> {
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
#[derive(Clone, Debug)]
pub struct JsonElements<'a> {
    text: &'a str,
    at: usize,
}

/// Returns the elements of an array. Returns `None` if the text is not an array.
#[inline]
pub fn elements(text: &str) -> Option<JsonElements<'_>> {
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

/// Decodes the raw name of a member. Returns `None` if it has an invalid escape.
#[inline]
pub fn decode_name(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.as_bytes().contains(&b'\\') {
        return Some(Cow::Borrowed(raw));
    }
    decode(&format!("\"{raw}\"")).map(|name| Cow::Owned(name.into_owned()))
}

/// Returns the members of an object that has only string values, and names without escapes, as most arguments and all
/// envelopes do. Returns `None` for any other text and for strings with `\u` escapes. This takes half the time of a
/// parser.
pub fn text_members(json: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    // Some libraries write one space after each colon and comma.
    let unspaced = |json| str::strip_prefix(json, ' ').unwrap_or(json);
    let mut members = Vec::with_capacity(4);
    let mut rest = json.strip_prefix('{')?;
    loop {
        let (name, after) = cut_name(rest)?;
        let (value, after) = cut_string(unspaced(after.strip_prefix(':')?))?;
        members.push((name.into(), value));
        match after.strip_prefix(',') {
            Some(next) => rest = unspaced(next),
            None => return (after == "}").then_some(members),
        }
    }
}

/// Splits the text after the JSON string at its start. Returns the string's value and the rest, or `None` if the string
/// has escapes.
fn cut_name(json: &str) -> Option<(&str, &str)> {
    let inside = json.strip_prefix('"')?;
    let (name, after) = inside.split_at_checked(plain_prefix(inside.as_bytes()))?;
    Some((name, after.strip_prefix('"')?))
}

/// Splits the text after the JSON string at its start. Returns the string with its quotes and the rest, or `None` if the
/// string has a `\u` escape.
fn cut_string(json: &str) -> Option<(&str, &str)> {
    let inside = json.strip_prefix('"')?.as_bytes();
    let mut end = 0;
    loop {
        end += plain_prefix(inside.get(end..)?);
        match inside.get(end..)? {
            [b'"', ..] => return json.split_at_checked(end + 2),
            [b'\\', b'"' | b'\\' | b'/' | b'n' | b'r' | b't' | b'b' | b'f', ..] => end += 2,
            _ => return None,
        }
    }
}

/// Returns the start of the next token. Commas and colons are skipped, because valid JSON has them in place.
#[inline]
fn next_token(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Returns the offset after the closing quote of the string that starts at `at`, or the length of the text.
pub fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        at += plain_prefix(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            None => return bytes.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            // A control character, which no valid string contains.
            Some(_) => at += 1,
        }
    }
}

fn value_end(bytes: &[u8], start: usize) -> usize {
    match bytes.get(start) {
        None => bytes.len(),
        Some(b'"') => string_end(bytes, start),
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
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::value::RawValue;

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

    #[test]
    fn objects_of_strings_are_checked() {
        let json = r#"{"a":"b", "c": "{\"d\":\"\\n\"}"}"#;
        let found = text_members(json).unwrap();
        assert_eq!(found, [("a".into(), r#""b""#), ("c".into(), r#""{\"d\":\"\\n\"}""#)]);
        for other in [r#"{"\u0061":"b"}"#, r#"{"a":1}"#, r#"{"a":"b"} "#, r#"{"a":"\x"}"#, r#"{"a":"b"#, "{}"]
        {
            assert_eq!(text_members(other), None, "{other}");
        }
    }

    /// The members by a parser. Of equal names the last one is used.
    fn parsed(json: &str) -> Option<BTreeMap<String, &str>> {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
        Some(members.into_iter().map(|(name, value)| (name, value.get())).collect())
    }

    proptest! {
        #[test]
        fn broken_text_never_panics_and_always_ends(text in "[\\[{][\\[\\]{}\",:\\\\aé1 \n]{0,40}") {
            if let Some(members) = members(&text) {
                prop_assert!(members.count() <= text.len());
            }
            if let Some(elements) = elements(&text) {
                prop_assert!(elements.count() <= text.len());
            }
            _ = text_members(&text);
        }

        #[test]
        fn valid_text_is_cut_like_a_parser_does(pieces in prop::collection::vec(prop_oneof![
            Just(r#""a":1"#), Just(r#" "b\"" : [ {"x":"]}"}, 2 ]"#), Just(r#""\u0061" :{"d":null }"#),
            Just(r#""é":"\\""#), Just("\"c\"\n:\ttrue "), Just(r#""{":-0.5e+3"#), Just(r#""":"\ud83d\ude00""#),
        ], 0..6)) {
            let json = format!("{{{}}}", pieces.join(","));
            let cut = members(&json).unwrap().map(|(name, value)| (decode_name(name).unwrap().into_owned(), value));
            prop_assert_eq!(Some(cut.collect()), parsed(&json));
        }

        #[test]
        fn objects_of_strings_are_cut_like_a_parser_does(json in r#"\{("[a\\\\"]{0,2}"|[:, ]|\\\\[nu"]|1){0,9}\}"#) {
            if let Some(members) = text_members(&json) {
                let cut = members.into_iter().map(|(name, value)| (name.into_owned(), value));
                prop_assert_eq!(Some(cut.collect()), parsed(&json));
            }
        }
    }
}
