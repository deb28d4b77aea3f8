//! Reads and writes JSON text without building a tree, so that values are passed on without a copy.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, in order, with the JSON text of their values.
pub(crate) type RawMembers<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// Returns the members of an object, each name once. Of equal names the last one is used. Returns `None` if
/// the text is not a JSON object.
pub(crate) fn members(json: &str) -> Option<RawMembers<'_>> {
    let mut members = match text_members(json) {
        Some(members) => members,
        None => serde_json::from_str(json).ok().map(|RawObject(members)| members)?,
    };
    if !has_duplicate_names(&members) {
        return Some(members);
    }
    let mut last = HashSet::with_capacity(members.len());
    let mut keep: Vec<bool> = members.iter().rev().map(|(name, _)| last.insert(name.clone())).collect();
    members.retain(|_| keep.pop().unwrap_or(true));
    Some(members)
}

/// Returns the members of an object that has only string values and names without escapes, as most arguments
/// and all envelopes do. Returns `None` for any other text. This takes half the time of a parser.
pub(crate) fn text_members(json: &str) -> Option<RawMembers<'_>> {
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

/// Splits the text after the JSON string at its start. Returns the string's value and the rest, or `None` if
/// the string has escapes.
fn cut_name(json: &str) -> Option<(&str, &str)> {
    let inside = json.strip_prefix('"')?;
    let (name, after) = inside.split_at_checked(special_at(inside.as_bytes())?)?;
    Some((name, after.strip_prefix('"')?))
}

/// Splits the text after the JSON string at its start. Returns the string with its quotes and the rest, or
/// `None` if the string has a `\u` escape.
fn cut_string(json: &str) -> Option<(&str, &str)> {
    let inside = json.strip_prefix('"')?.as_bytes();
    let mut end = 0;
    loop {
        end += special_at(inside.get(end..)?)?;
        match inside.get(end..)? {
            [b'"', ..] => return json.split_at_checked(end + 2),
            [b'\\', b'"' | b'\\' | b'/' | b'n' | b'r' | b't' | b'b' | b'f', ..] => end += 2,
            _ => return None,
        }
    }
}

fn has_duplicate_names(members: &RawMembers<'_>) -> bool {
    if members.len() <= 16 {
        // The usual case: faster than hashing.
        let after = |at| members.iter().skip(at + 1);
        return members.iter().enumerate().any(|(at, (name, _))| after(at).any(|(other, _)| other == name));
    }
    let mut seen = HashSet::with_capacity(members.len());
    !members.iter().all(|(name, _)| seen.insert(name.as_ref()))
}

/// Returns the member of that name in any case. A member in the same case is preferred.
pub(crate) fn member_in_any_case<'a>(members: &RawMembers<'a>, name: &str) -> Option<&'a str> {
    let exact = members.iter().find(|(known, _)| known == name);
    let (_, value) = exact.or_else(|| members.iter().find(|(known, _)| same_in_any_case(known, name)))?;
    Some(value)
}

/// Returns whether two names differ only in case. Compares one character at a time, as .NET does.
pub(crate) fn same_in_any_case(a: &str, b: &str) -> bool {
    fn upper(letter: char) -> char {
        let mut upper = letter.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(upper), None) => upper,
            _ => letter,
        }
    }
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.chars().map(upper).eq(b.chars().map(upper)))
}

/// Returns the value of a JSON string, or `None` for any other JSON.
pub(crate) fn string(json: &str) -> Option<Cow<'_, str>> {
    if let Some(text) = plain_string(json) {
        return Some(text);
    }
    serde_json::from_str(json).ok().map(|LossyText(text)| text)
}

/// Returns the value of a valid JSON string without `\u` escapes. JSON in JSON has many quotes and
/// backslashes, which a parser handles one at a time. This copies eight bytes at a time and then removes
/// those that are not plain, which is one store instead of a call for a few letters.
pub(crate) fn plain_string(json: &str) -> Option<Cow<'_, str>> {
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    if special_at(inside.as_bytes()).is_none() {
        return Some(inside.into());
    }
    let mut text = Vec::with_capacity(inside.len());
    let mut rest = inside.as_bytes();
    while let Some((eight, after)) = rest.split_first_chunk() {
        text.extend_from_slice(eight);
        let plain = plain_bytes(*eight);
        if plain == eight.len() {
            rest = after;
        } else {
            text.truncate(text.len() + plain - eight.len());
            text.push(unescaped(rest.get(plain..plain + 2)?)?);
            rest = rest.get(plain + 2..)?;
        }
    }
    while let Some((first, after)) = rest.split_first() {
        if is_special(*first) {
            text.push(unescaped(rest.get(..2)?)?);
            rest = rest.get(2..)?;
        } else {
            text.push(*first);
            rest = after;
        }
    }
    String::from_utf8(text).ok().map(Cow::Owned)
}

/// Returns the character of a two-letter escape.
fn unescaped(escape: &[u8]) -> Option<u8> {
    Some(match escape {
        [b'\\', same @ (b'"' | b'\\' | b'/')] => *same,
        b"\\n" => b'\n',
        b"\\r" => b'\r',
        b"\\t" => b'\t',
        b"\\b" => 0x8,
        b"\\f" => 0xc,
        _ => return None,
    })
}

/// Returns the .NET string form of a JSON value: strings as they are, numbers, objects and arrays as written,
/// `True`, `False`, and an empty string for null.
pub(crate) fn dotnet_text(json: &str) -> Cow<'_, str> {
    match json.as_bytes().first() {
        Some(b'"') => string(json).unwrap_or_default(),
        Some(b't') => "True".into(),
        Some(b'f') => "False".into(),
        Some(b'n') => "".into(),
        _ => json.into(),
    }
}

/// Writes a JSON string.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// Writes the content of a JSON string, without quotes.
pub(crate) fn push_escaped(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut rest = text;
    while let Some(at) = special_at(rest.as_bytes()) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut letters = special.chars();
        match letters.next() {
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some(letter) => {
                let code = letter as usize;
                let digit = |four_bits: usize| HEX.get(four_bits & 15).map_or('0', |hex| char::from(*hex));
                out.push_str("\\u00");
                out.extend([digit(code >> 4), digit(code)]);
            }
            None => {}
        }
        rest = letters.as_str();
    }
    out.push_str(rest);
}

/// Returns the position of the first quote, backslash or control character, which a JSON string must escape.
/// Checks eight bytes at a time, because most texts contain few of them.
fn special_at(bytes: &[u8]) -> Option<usize> {
    let (eights, rest) = bytes.as_chunks();
    for (at, eight) in eights.iter().enumerate() {
        let plain = plain_bytes(*eight);
        if plain < eight.len() {
            return Some(at * eight.len() + plain);
        }
    }
    let at = rest.iter().position(|byte| is_special(*byte))?;
    Some(bytes.len() - rest.len() + at)
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns how many of eight bytes come before the first quote, backslash or control character.
pub(crate) fn plain_bytes(eight: [u8; 8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // Sets the highest bit of each byte that is below `than`, and maybe of others, but only after one of
    // those.
    let below = |eight: u64, than: u8| eight.wrapping_sub(ONES * u64::from(than)) & !eight & HIGH;
    let eight = u64::from_le_bytes(eight);
    let quotes = below(eight ^ (ONES * u64::from(b'"')), 1);
    let backslashes = below(eight ^ (ONES * u64::from(b'\\')), 1);
    let special = below(eight, 0x20) | quotes | backslashes;
    special.trailing_zeros() as usize / 8
}

/// The maximum depth of JSON that is indented. Every level widens all lines below it, so a small text could
/// otherwise grow without limit.
const DEEPEST: usize = 64;

/// Indents JSON with two spaces per level. Names and numbers are kept as written. Returns `None` if it is
/// nested too deep. The text must be valid JSON.
pub(crate) fn indented(json: &str) -> Option<String> {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    let mut letters = json.char_indices().filter(|(_, letter)| !letter.is_ascii_whitespace()).peekable();
    let mut quoted_until = 0;
    while let Some((at, letter)) = letters.next() {
        if at < quoted_until {
            continue;
        }
        match letter {
            '"' => {
                let text = json.get(at..).unwrap_or_default();
                let length = string_length(text);
                out.push_str(text.get(..length).unwrap_or_default());
                quoted_until = at + length;
            }
            '{' | '[' => {
                out.push(letter);
                if let Some((_, close)) = letters.next_if(|(_, next)| matches!(next, '}' | ']')) {
                    out.push(close);
                } else if depth == DEEPEST {
                    return None;
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => out.push(letter),
        }
    }
    Some(out)
}

/// Returns the length of the JSON string at the start of the text, including its quotes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A string, borrowed if it has no escapes. Half of a surrogate pair is replaced: clients in JavaScript send
/// such halves, and no call should fail because of one.
struct LossyText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for LossyText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LossyText<'a>, D::Error> {
        struct LossyTextVisitor;
        impl<'de> Visitor<'de> for LossyTextVisitor {
            type Value = LossyText<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<LossyText<'de>, E> {
                Ok(LossyText(lossy(bytes)))
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<LossyText<'de>, E> {
                Ok(LossyText(lossy(bytes).into_owned().into()))
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<LossyText<'de>, E> {
                Ok(LossyText(text.into()))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<LossyText<'de>, E> {
                Ok(LossyText(text.to_owned().into()))
            }
        }
        deserializer.deserialize_bytes(LossyTextVisitor)
    }
}

/// Decodes text and replaces invalid UTF-8. A fast check avoids the slower replacement for valid text.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

struct RawObject<'a>(RawMembers<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawObject<'a>, D::Error> {
        struct RawObjectVisitor;
        impl<'de> Visitor<'de> for RawObjectVisitor {
            type Value = RawObject<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((LossyText(name), value)) = map.next_entry::<_, &RawValue>()? {
                    members.push((name, value.get()));
                }
                Ok(RawObject(members))
            }
        }
        deserializer.deserialize_map(RawObjectVisitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn names_and_values(json: &str) -> Option<Vec<(String, String)>> {
        let own = |(name, value): (Cow<'_, str>, &str)| (name.into_owned(), value.to_owned());
        Some(members(json)?.into_iter().map(own).collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn members_keep_their_order_and_their_text() {
        assert_eq!(
            names_and_values(r#"{"b": 1.50 , "a":{ "x":[]}}"#),
            pairs(&[("b", "1.50"), ("a", r#"{ "x":[]}"#)])
        );
        assert_eq!(names_and_values("{}"), pairs(&[]));
    }

    #[test]
    fn texts_are_members_like_others() {
        let json = r#"{"a":"b", "c": "{\"d\":\"\\n\"}"}"#;
        assert_eq!(text_members(json).map(|members| members.len()), Some(2));
        assert_eq!(names_and_values(json), pairs(&[("a", r#""b""#), ("c", r#""{\"d\":\"\\n\"}""#)]));
        assert_eq!(text_members(r#"{"\u0061":"b"}"#), None);
        assert_eq!(names_and_values(r#"{"\u0061":"b"}"#), pairs(&[("a", r#""b""#)]));
    }

    #[test]
    fn only_an_object_has_members() {
        for json in ["[]", "1", "null", "", "{", r#"{"a":1} x"#, r#"{"a":}"#] {
            assert_eq!(names_and_values(json), None, "{json}");
        }
    }

    #[test]
    fn of_equal_names_the_last_one_is_used() {
        assert_eq!(names_and_values(r#"{"a":1,"b":2,"a":3,"a":4}"#), pairs(&[("b", "2"), ("a", "4")]));
        let many: Vec<String> = (0..40).map(|at| format!("\"k{}\":{at}", at % 20)).collect();
        let kept = names_and_values(&format!("{{{}}}", many.join(","))).unwrap();
        assert_eq!(kept.len(), 20);
        assert_eq!(kept.first(), Some(&("k0".to_owned(), "20".to_owned())));
    }

    #[test]
    fn a_name_in_the_same_case_comes_before_others() {
        let members = members(r#"{"NAME":1,"name":2}"#).unwrap();
        assert_eq!(member_in_any_case(&members, "name"), Some("2"));
        assert_eq!(member_in_any_case(&members, "Name"), Some("1"));
        assert!(member_in_any_case(&members, "nam").is_none());
        assert!(same_in_any_case("Größe", "GRÖßE"));
        assert!(!same_in_any_case("Größe", "GRÖSSE"));
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        assert_eq!(string(r#""a\ud83d""#).as_deref(), Some("a\u{fffd}\u{fffd}\u{fffd}"));
        assert_eq!(string(r#""\ud83d\ude00""#).as_deref(), Some("😀"));
        assert_eq!(string("7"), None);
        assert_eq!(string("[97]"), None);
    }

    #[test]
    fn reads_json_in_json() {
        let inner = r#"{"a":"b\\c / \u00e9 \n"}"#;
        let outer = serde_json::to_string(inner).unwrap();
        assert_eq!(string(&outer).as_deref(), Some(inner));
        assert_eq!(string(r#""\b\f\/\t é""#).as_deref(), Some("\u{8}\u{c}/\t é"));
        for wrong in [r#""a"b""#, r#""a\""#, r#""\x""#, "\""] {
            assert_eq!(string(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn indents_without_touching_names_numbers_or_strings() {
        let json = r#"{"b":1.50,"a":[ ],"c":[1,{"d":"x, {\"y\": [] }"}],"e":{ }}"#;
        let expected = "{\n  \"b\": 1.50,\n  \"a\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"x, {\\\"y\\\": [] }\"\n    }\n  ],\n  \"e\": {}\n}";
        assert_eq!(indented(json).as_deref(), Some(expected));
        assert_eq!(indented("\"a b\"").as_deref(), Some("\"a b\""));
    }

    #[test]
    fn does_not_indent_deeply_nested_json() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(indented(&nested(DEEPEST)).is_some());
        assert!(indented(&nested(DEEPEST + 1)).is_none());
    }

    #[test]
    fn writes_every_control_character_as_an_escape() {
        let controls: String = (0..0x20_u8).map(char::from).collect();
        let mut json = String::new();
        push_string(&mut json, &controls);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), controls);
        assert!(!json.contains(char::is_control));
        assert!(json.contains("\\u001f"));
    }

    #[test]
    fn reads_many_members_in_proportion_to_their_number() {
        let names: Vec<String> = (0..200_000).map(|at| format!("\"k{at}\":0")).collect();
        let json = format!("{{{}}}", names.join(","));
        let started = std::time::Instant::now();
        assert_eq!(members(&json).unwrap().len(), 200_000);
        // Comparing every name with every other one would take minutes.
        assert!(started.elapsed() < std::time::Duration::from_secs(10));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn finds_what_must_be_escaped(text in "[a-c\u{7f}é\u{0}\u{1f} !\"#\\\\]{0,40}") {
            let special = |letter: char| letter < ' ' || letter == '"' || letter == '\\';
            prop_assert_eq!(special_at(text.as_bytes()), text.find(special));
        }

        #[test]
        fn writes_strings_that_read_the_same(text in any::<String>()) {
            let mut json = String::new();
            push_string(&mut json, &text);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }

        #[test]
        fn reads_strings_like_serde_json(text in r#"("|\\\\|[a"é\\\\]|\\\\[nrtbfu"/x]){0,12}"#) {
            let json = format!("\"{text}\"");
            let expected = serde_json::from_str::<String>(&json).ok();
            prop_assert_eq!(string(&json).map(Cow::into_owned), expected);
        }

        #[test]
        fn finds_members_like_serde_json(json in r#"\{("[a\\\\"]{0,2}"|[:, ]|\\\\[nu"]|1){0,9}\}"#) {
            let parsed = serde_json::from_str(&json).ok().map(|RawObject(members)| members);
            if let Some(members) = text_members(&json) {
                prop_assert_eq!(Some(members), parsed);
            }
        }

        #[test]
        fn indents_like_serde_json(value in any_json()) {
            let expected = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(indented(&value.to_string()).unwrap(), expected);
        }

        #[test]
        fn never_panics_on_invalid_json(text in r#"[\[\]{}":,a1é \\\n]{0,60}"#) {
            _ = indented(&text);
            _ = members(&text);
            _ = string(&text);
            _ = dotnet_text(&text);
        }
    }
}
