//! Parses JSON as people and libraries write it for Azure Functions.
//!
//! Files may contain comments and trailing commas, and member names match in any case. The meaning of a file
//! is not decided here: [`ConfigReader`] only reads one object and collects its problems.

mod members;
mod timespan;

use bindpost_net_json::{JsonPlace, ObjectReader, PlaceError};
use serde_json::{Map, Value};

pub(crate) use members::{ConfigReader, ProblemCollector, scalar_text};

/// A syntax error in a JSON text, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub(crate) struct JsonSyntaxError {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: String,
}

/// Parses a JSON text that may have a byte order mark, comments and trailing commas.
pub(crate) fn parse(text: &str) -> Result<Value, JsonSyntaxError> {
    parse_strictly(&blank_comments(text.strip_prefix('\u{feff}').unwrap_or(text)))
}

/// Parses strict JSON, without comments and trailing commas.
pub(crate) fn parse_strictly(text: &str) -> Result<Value, JsonSyntaxError> {
    serde_json::from_str(text).map_err(|error| {
        // serde_json counts bytes; editors count characters.
        let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
        let column = line.char_indices().filter(|(at, _)| *at < error.column()).count();
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        JsonSyntaxError {
            line: error.line(),
            column,
            message: message.strip_suffix(&place).unwrap_or(&message).to_owned(),
        }
    })
}

/// Returns the member of an object whose name matches in any case. The exact name is preferred. `null` gives
/// `None`.
pub(crate) fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    ObjectReader::<PlaceError>::from_members(object, JsonPlace::default()).in_any_case().value(name)
}

/// Returns the .NET name for the kind of a JSON value.
pub(crate) fn dotnet_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "Null",
        Value::Bool(true) => "True",
        Value::Bool(false) => "False",
        Value::Number(_) => "Number",
        Value::String(_) => "String",
        Value::Array(_) => "Array",
        Value::Object(_) => "Object",
    }
}

/// Replaces comments and trailing commas with blanks, so that everything else keeps its line and column.
fn blank_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // The position of a comma that only blanks have followed so far.
    let mut comma = None;
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        match (char, rest.peek()) {
            ('/', Some('/')) => {
                plain.push(' ');
                while rest.next_if(|next| *next != '\n').is_some() {
                    plain.push(' ');
                }
                continue;
            }
            ('/', Some('*')) => {
                plain.push(' ');
                let mut last = '/';
                // The star that opens the comment does not close it: `/*/` is still open.
                plain.extend(rest.next().map(|_| ' '));
                for next in rest.by_ref() {
                    plain.push(if next == '\n' { '\n' } else { ' ' });
                    if last == '*' && next == '/' {
                        break;
                    }
                    last = next;
                }
                continue;
            }
            _ => {}
        }
        if char.is_whitespace() {
            plain.push(char);
            continue;
        }
        match char {
            // Only a comma after a value can be a trailing comma. `[,]` stays invalid.
            ',' if !matches!(before, None | Some('[' | '{' | ',' | ':')) => comma = Some(plain.len()),
            ']' | '}' => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
            }
            _ => comma = None,
        }
        before = Some(char);
        plain.push(char);
        if char == '"' {
            copy_string(&mut rest, &mut plain);
        }
    }
    plain
}

/// Copies the rest of a string with its closing quote. A string contains no comments.
fn copy_string(rest: &mut impl Iterator<Item = char>, plain: &mut String) {
    while let Some(char) = rest.next() {
        plain.push(char);
        match char {
            '"' => return,
            '\\' => plain.extend(rest.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_tolerated() {
        let text = "\u{feff}{ // a \" quote\n \"a\": [1, 2, /* , ] */ ], /*/ still a comment */\n \"b\": \"// no, */ ,]\\\"\",\n}";
        assert_eq!(parse(text), Ok(json!({"a": [1, 2], "b": "// no, */ ,]\""})));
        assert!(parse_strictly("[1,]").is_err());
        assert!(parse_strictly("[1] // one").is_err());
    }

    #[test]
    fn other_mistakes_stay_mistakes() {
        for text in ["[,]", "[1,,]", "{,}", "{\"a\":,}", "{\"a\" 1}", "/* open", "[1", "'a'", ""] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_mistake_is_found_at_its_line_and_column() {
        let error = parse("{ /* two\nlines */ \"ä\": \"ö\", x }").unwrap_err();
        assert_eq!((error.line, error.column), (2, 20), "{error}");
        assert_eq!(error.to_string(), "line 2, column 20: key must be a string");
    }

    #[test]
    fn names_match_in_any_case_and_the_exact_one_wins() {
        let value = json!({"ToolName": "a", "toolname": "b", "title": null});
        let object = value.as_object().unwrap();
        assert_eq!(member(object, "toolname"), Some(&json!("b")));
        assert_eq!(member(object, "TOOLNAME"), Some(&json!("a")));
        assert_eq!(member(object, "Title"), None);
    }

    proptest! {
        #[test]
        fn plain_json_is_read_as_it_is(text in "\\PC*", numbers in prop::collection::vec(any::<i32>(), 0..5)) {
            let value = json!({"a": text, text.clone(): numbers});
            prop_assert_eq!(parse(&value.to_string()), Ok(value));
        }

        #[test]
        fn any_text_is_read_or_rejected(text in "[\\[\\]{},:\"/* a1\\\\\n]*") {
            let _ = parse(&text);
        }
    }
}
