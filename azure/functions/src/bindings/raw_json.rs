//! JSON text as bindings read it, without a tree: values are passed on without a copy. `net/json` cuts the text. Here is
//! what .NET decides: equal names, names in any case, the string form of a value, half of a surrogate pair.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use bindpost_net_json::cut::{self, decode_name, elements, string_end, text_members};
use bindpost_net_json::text::{decode, push_string};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde_json::value::RawValue;

/// The members of an object, in order, with the JSON text of their values.
pub(crate) type RawMembers<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// Returns the members of an object, each name once. Of equal names the last one is used. Returns `None` if
/// the text is not a JSON object.
pub(crate) fn members(json: &str) -> Option<RawMembers<'_>> {
    match text_members(json) {
        Some(members) => Some(last_of_equal_names(members)),
        // The cutter trusts its text.
        None => serde_json::from_str::<&RawValue>(json).ok().and_then(|json| checked_members(json.get())),
    }
}

/// Does the same for text that is valid JSON, as every part of a decoded message is.
pub(crate) fn checked_members(json: &str) -> Option<RawMembers<'_>> {
    let name = |raw| decode_name(raw).or_else(|| Some(string(&format!("\"{raw}\""))?.into_owned().into()));
    let members = cut::members(json.trim_ascii_start())?;
    Some(last_of_equal_names(members.filter_map(|(raw, value)| Some((name(raw)?, value))).collect()))
}

fn last_of_equal_names(mut members: RawMembers<'_>) -> RawMembers<'_> {
    if has_duplicate_names(&members) {
        let mut last = HashSet::with_capacity(members.len());
        let mut keep: Vec<bool> = members.iter().rev().map(|(name, _)| last.insert(name.clone())).collect();
        members.retain(|_| keep.pop().unwrap_or(true));
    }
    members
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

/// Returns the value of a JSON string, or `None` for any other JSON. Half of a surrogate pair is replaced: clients in
/// JavaScript send such halves, and no call should fail because of one.
pub(crate) fn string(json: &str) -> Option<Cow<'_, str>> {
    decode(json).or_else(|| serde_json::from_str(json).ok().map(|LossyText(text)| text))
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
                let length = string_end(text.as_bytes(), 0);
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

/// Copies JSON without white space between its tokens, in the order of its members. Of equal names the last one is
/// kept, because strict clients reject repeated names. The text must be valid JSON that serde_json reads.
pub(crate) fn without_duplicates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    push_without_duplicates(&mut out, json.trim_ascii());
    out
}

fn push_without_duplicates(out: &mut String, json: &str) {
    if let Some(members) = checked_members(json) {
        out.push('{');
        for (index, (name, value)) in members.iter().enumerate() {
            out.push_str(if index == 0 { "" } else { "," });
            push_string(out, name);
            out.push(':');
            push_without_duplicates(out, value);
        }
        out.push('}');
    } else if let Some(elements) = elements(json) {
        out.push('[');
        for (index, element) in elements.enumerate() {
            out.push_str(if index == 0 { "" } else { "," });
            push_without_duplicates(out, element);
        }
        out.push(']');
    } else {
        out.push_str(json);
    }
}

/// Removes the white space between the tokens of JSON. Names and numbers are kept as written. The text must be
/// valid JSON.
pub(crate) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(|letter: char| letter == '"' || letter.is_ascii_whitespace()) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let length = if after.starts_with('"') { string_end(after.as_bytes(), 0) } else { 0 };
        let (string, after) = after.split_at_checked(length).unwrap_or((after, ""));
        out.push_str(string);
        rest = if length == 0 { after.trim_ascii_start() } else { after };
    }
    out.push_str(rest);
    out
}

/// A string in which half of a surrogate pair is replaced.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
    fn indents_without_touching_names_numbers_or_strings() {
        let json = r#"{"b":1.50,"a":[ ],"c":[1,{"d":"x, {\"y\": [] }"}],"e":{ }}"#;
        let expected = "{\n  \"b\": 1.50,\n  \"a\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"x, {\\\"y\\\": [] }\"\n    }\n  ],\n  \"e\": {}\n}";
        assert_eq!(indented(json).as_deref(), Some(expected));
        assert_eq!(indented("\"a b\"").as_deref(), Some("\"a b\""));
    }

    #[test]
    fn keeps_the_last_of_equal_names_at_every_level() {
        let json = r#" {"b": {"x": 1, "y": 2.50, "x": "\u0041"}, "a": [{"c": 1, "c": [ ]}, null]} "#;
        assert_eq!(without_duplicates(json), r#"{"b":{"y":2.50,"x":"\u0041"},"a":[{"c":[]},null]}"#);
    }

    #[test]
    fn does_not_indent_deeply_nested_json() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(indented(&nested(DEEPEST)).is_some());
        assert!(indented(&nested(DEEPEST + 1)).is_none());
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
        fn reads_strings_like_serde_json(text in r#"("|\\\\|[a"é\\\\]|\\\\[nrtbfu"/x]){0,12}"#) {
            let json = format!("\"{text}\"");
            let expected = serde_json::from_str::<String>(&json).ok();
            prop_assert_eq!(string(&json).map(Cow::into_owned), expected);
        }

        #[test]
        fn finds_members_like_serde_json(json in r#" ?\{("[a\\\\"]{0,2}"|"\\\\u0061"|[:, ]|\\\\[nu"]|1){0,9}\} ?"#) {
            let expected: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(&json).ok();
            let expected = expected.map(|all| all.into_iter().map(|(name, value)| (name, value.get())).collect());
            let found = members(&json).map(|all| all.into_iter().map(|(name, value)| (name.into_owned(), value)));
            prop_assert_eq!(found.map(BTreeMap::from_iter), expected);
        }

        #[test]
        fn indents_and_compacts_like_serde_json(value in any_json()) {
            let expected = serde_json::to_string_pretty(&value).unwrap();
            let indented = indented(&value.to_string()).unwrap();
            prop_assert_eq!(compact(&indented), value.to_string());
            prop_assert_eq!(indented, expected);
        }

        #[test]
        fn never_panics_on_invalid_json(text in r#"[\[\]{}":,a1é \\\n]{0,60}"#) {
            _ = indented(&text);
            _ = compact(&text);
            _ = without_duplicates(&text);
            _ = members(&text);
            _ = string(&text);
            _ = dotnet_text(&text);
        }
    }
}
