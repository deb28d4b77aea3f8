//! Compares a message with the expected one: JSON equality with placeholders.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// The values that a conversation saved with `$save:`.
#[derive(Clone, Debug, Default)]
pub(super) struct SavedValues(BTreeMap<String, Value>);

/// A description of the first difference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MessageDifference(pub(super) String);

const SAVED: &str = "$saved:";
const TAMPERED: &str = "$tampered:";

impl SavedValues {
    pub(super) fn save(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    fn get(&self, name: &str) -> Result<&Value, String> {
        self.0.get(name).ok_or_else(|| format!("nothing was saved as {name:?}"))
    }

    /// Returns the value of a placeholder, if the text is one that names a saved value.
    fn resolve_placeholder(&self, text: &str) -> Option<Result<Value, String>> {
        if let Some(name) = text.strip_prefix(SAVED) {
            return Some(self.get(name).cloned());
        }
        let name = text.strip_prefix(TAMPERED)?;
        Some(self.get(name).and_then(|value| match value {
            Value::String(text) => Ok(Value::String(tamper(text))),
            _ => Err(format!("only text can be tampered with, and {name:?} is {value}")),
        }))
    }

    /// Replaces every `"$saved:…"` and `"$tampered:…"` of a text. The rest stays as it is, even if it is
    /// not JSON.
    pub(super) fn fill_placeholders(&self, text: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("\"$") {
            filled.push_str(before);
            let Some((inside, behind)) = after.split_once('"') else {
                return Err("a placeholder without a closing quote".to_owned());
            };
            match self.resolve_placeholder(&format!("${inside}")) {
                Some(value) => filled.push_str(&value?.to_string()),
                None => return Err(format!("\"${inside}\" cannot be sent")),
            }
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

/// Changes the character in the middle of a text.
fn tamper(text: &str) -> String {
    let middle = text.chars().count() / 2;
    text.chars().enumerate().map(|(at, c)| if at != middle { c } else { other_than(c) }).collect()
}

fn other_than(c: char) -> char {
    if c == 'A' { 'B' } else { 'A' }
}

/// Compares a message with the expected one, and saves the values of `$save:`.
pub(super) fn compare(
    expected: &str,
    actual: &str,
    saved: &mut SavedValues,
) -> Result<(), MessageDifference> {
    let decode = |what: &str, text: &str| {
        serde_json::from_str::<Value>(text)
            .map_err(|error| MessageDifference(format!("{what} is not JSON: {error}")))
    };
    let (expected_value, actual_value) = (decode("the expectation", expected)?, decode("it", actual)?);
    let mut kept = saved.clone();
    match (&expected_value, &actual_value) {
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            compare_batches(expected, actual, &mut kept)?;
        }
        _ => compare_values(&expected_value, &actual_value, "", &mut kept)?,
    }
    // Ids can be numbers of any length, which `Value` cannot distinguish.
    if let (Some(expected), Some(actual)) = (large_id(expected), large_id(actual))
        && expected != actual
    {
        return Err(MessageDifference(format!("/id is {actual} instead of {expected}")));
    }
    *saved = kept;
    Ok(())
}

/// Compares the messages of a batch in any order.
fn compare_batches(
    expected: &[Value],
    actual: &[Value],
    saved: &mut SavedValues,
) -> Result<(), MessageDifference> {
    let mut open: Vec<&Value> = actual.iter().collect();
    for expected in expected {
        let fits = open.iter().position(|actual| {
            let mut kept = saved.clone();
            let matches = compare_values(expected, actual, "", &mut kept).is_ok();
            if matches {
                *saved = kept;
            }
            matches
        });
        match fits {
            Some(fits) => drop(open.remove(fits)),
            None => return Err(MessageDifference(format!("none of the batch is {}", cut(expected)))),
        }
    }
    Ok(())
}

/// Returns the digits of a message's id, if it is a number.
fn large_id(text: &str) -> Option<String> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
    let id = members.get("id")?.get();
    id.starts_with(|c: char| c == '-' || c.is_ascii_digit()).then(|| id.to_owned())
}

fn compare_values(
    expected: &Value,
    actual: &Value,
    path: &str,
    saved: &mut SavedValues,
) -> Result<(), MessageDifference> {
    let differs = |what: String| {
        let place = if path.is_empty() { "the message" } else { path };
        Err(MessageDifference(format!("{place} {what}")))
    };
    match (expected, actual) {
        (Value::String(text), _) if text.starts_with('$') => {
            let is_wanted = match text.as_str() {
                "$any" => true,
                "$string" => actual.is_string(),
                "$integer" => actual.is_i64() || actual.is_u64(),
                _ => match (text.strip_prefix("$save:"), saved.resolve_placeholder(text)) {
                    (Some(name), _) => {
                        saved.save(name, actual.clone());
                        true
                    }
                    (None, Some(Ok(value))) => value == *actual,
                    (None, Some(Err(reason))) => return differs(reason),
                    (None, None) => {
                        return differs(format!("is expected to match {text}, which is not a placeholder"));
                    }
                },
            };
            if is_wanted { Ok(()) } else { differs(format!("is {} instead of {text}", cut(actual))) }
        }
        (Value::Object(expected), Value::Object(actual)) => {
            if let Some(name) = expected.keys().find(|name| !actual.contains_key(*name)) {
                return differs(format!("lacks {name:?}"));
            }
            if let Some(name) = actual.keys().find(|name| !expected.contains_key(*name)) {
                return differs(format!("has an unexpected {name:?}"));
            }
            expected.iter().try_for_each(|(name, expected)| {
                compare_values(expected, &actual[name], &format!("{path}/{name}"), saved)
            })
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            expected.iter().zip(actual).enumerate().try_for_each(|(index, (expected, actual))| {
                compare_values(expected, actual, &format!("{path}/{index}"), saved)
            })
        }
        (Value::Array(expected), Value::Array(actual)) => {
            differs(format!("has {} elements instead of {}", actual.len(), expected.len()))
        }
        _ if expected == actual => Ok(()),
        _ => differs(format!("is {} instead of {}", cut(actual), cut(expected))),
    }
}

/// Returns a value as text, shortened. The report shows the whole message anyway.
fn cut(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn difference(expected: &str, actual: &str) -> Option<String> {
        compare(expected, actual, &mut SavedValues::default()).err().map(|difference| difference.0)
    }

    #[test]
    fn names_the_path_of_the_first_difference() {
        for (expected, actual, difference_at) in [
            (r#"{"a":[1,{"b":2}]}"#, r#"{"a":[1,{"b":3}]}"#, "/a/1/b is 3 instead of 2"),
            (r#"{"a":1}"#, r#"{"a":1.0}"#, "/a is 1.0 instead of 1"),
            (r#"{"a":1}"#, r#"{}"#, "the message lacks \"a\""),
            (r#"{"a":{}}"#, r#"{"a":{"b":1}}"#, "/a has an unexpected \"b\""),
            ("[1]", "[1,2]", "the message has 2 elements instead of 1"),
            ("[1,2]", "[2,3]", "none of the batch is 1"),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, "/a/0 is 2 instead of 1"),
            (r#"{"id":0}"#, r#"{"id":"0"}"#, "/id is \"0\" instead of 0"),
            (
                r#"{"id":123456789012345678901234567890}"#,
                r#"{"id":123456789012345678901234567891}"#,
                "/id is 123456789012345678901234567891 instead of 123456789012345678901234567890",
            ),
            (r#""$integer""#, "1.5", "the message is 1.5 instead of $integer"),
            (r#""$string""#, "null", "the message is null instead of $string"),
            (r#""$sting""#, "1", "the message is expected to match $sting, which is not a placeholder"),
            (r#""$saved:x""#, "1", "the message nothing was saved as \"x\""),
        ] {
            assert_eq!(difference(expected, actual).as_deref(), Some(difference_at), "{expected} {actual}");
        }
        assert_eq!(difference("[1,2,2]", "[2,1,2]"), None);
        assert_eq!(
            difference(r#"{"a":"$any","b":"$string","c":"$integer"}"#, r#"{"c":-1,"b":"","a":[]}"#),
            None
        );
    }

    #[test]
    fn saves_values_and_fills_them_in() {
        let mut saved = SavedValues::default();
        compare(r#"["$save:state",1]"#, r#"["ABC",1]"#, &mut saved).unwrap();
        compare(r#"["$saved:state","$tampered:state"]"#, r#"["ABC","AAC"]"#, &mut saved).unwrap();
        assert_eq!(saved.fill_placeholders(r#"{"s":"$saved:state",}"#).unwrap(), r#"{"s":"ABC",}"#);
        assert_eq!(saved.fill_placeholders(r#"["$tampered:state"]"#).unwrap(), r#"["AAC"]"#);
        assert!(saved.fill_placeholders(r#"["$any"]"#).is_err());
        // A message that does not match saves nothing.
        compare(r#"["$save:state",1]"#, r#"["XYZ",2]"#, &mut saved).unwrap_err();
        assert_eq!(saved.get("state"), Ok(&json!("ABC")));
    }
}
