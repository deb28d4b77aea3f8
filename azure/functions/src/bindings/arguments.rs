//! [`Arguments`]: what the caller gives a tool or prompt, by name, each value as the JSON it was sent as.

use std::borrow::Cow;

use super::raw_json::{RawMembers, dotnet_text, members};
use crate::datum::Datum;

/// The arguments of one call, read once and asked often: the check for required ones, the
/// `mcpToolProperty` and `mcpPromptArgument` bindings, the trigger metadata, path expressions.
#[derive(Clone, Debug, Default)]
pub struct Arguments<'a> {
    json: Option<&'a str>,
    members: RawMembers<'a>,
}

/// A binding asked for an argument that was not given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Required prompt argument '{0}' was not provided.")]
pub struct MissingArgument(pub String);

impl<'a> Arguments<'a> {
    /// Reads the JSON text the client sent, `None` if it sent none. It must be valid JSON, as every part of
    /// a decoded message is. Anything but an object holds no arguments.
    pub fn parse(json: Option<&'a str>) -> Arguments<'a> {
        Arguments { json, members: json.and_then(members).unwrap_or_default() }
    }

    /// The JSON text the client sent.
    pub fn as_json(&self) -> Option<&'a str> {
        self.json
    }

    /// The JSON text of one argument. Names are compared case by case, as everywhere in MCP.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Names and values in the string form bindings know: see [`text`](Arguments::decode_text).
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, Cow<'a, str>)> {
        self.members.iter().map(|(name, value)| (name.as_ref(), dotnet_text(value)))
    }

    /// One argument in the string form bindings know: strings as they are, numbers, objects and arrays as
    /// written, `True`, `False`, and nothing for null.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).map(dotnet_text)
    }

    /// The value of an `mcpToolProperty` binding: always text, empty if the argument is missing.
    pub fn tool_property(&self, name: &str) -> Datum {
        Datum::Text(self.text(name).unwrap_or_default().into_owned())
    }

    /// The value of an `mcpPromptArgument` binding: text, or nothing if the argument is missing.
    pub fn prompt_argument(&self, name: &str, required: bool) -> Result<Datum, MissingArgument> {
        match self.text(name) {
            Some(text) => Ok(Datum::Text(text.into_owned())),
            None if required => Err(MissingArgument(name.to_owned())),
            None => Ok(Datum::Nothing),
        }
    }

    /// The names of those that are missing or null, in the order given, with commas between; `None` if
    /// nothing is missing.
    pub(crate) fn missing(&self, required: &[String]) -> Option<String> {
        let mut names = String::new();
        for name in required {
            if self.get(name).is_none_or(|value| value == "null") {
                names.push_str(if names.is_empty() { "" } else { ", " });
                names.push_str(name);
            }
        }
        (!names.is_empty()).then_some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_KINDS: &str =
        r#"{"s":"a\n\"b\"","n":1.50,"t":true,"f":false,"z":null,"o":{ "k": 1 },"a":[1, 2],"e":""}"#;

    #[test]
    fn string_forms_are_those_of_dotnet() {
        let arguments = Arguments::parse(Some(ALL_KINDS));
        let forms: Vec<_> = arguments.texts().collect();
        let expected = [
            ("s", "a\n\"b\""),
            ("n", "1.50"),
            ("t", "True"),
            ("f", "False"),
            ("z", ""),
            ("o", r#"{ "k": 1 }"#),
            ("a", "[1, 2]"),
            ("e", ""),
        ];
        assert_eq!(forms.iter().map(|(name, text)| (*name, text.as_ref())).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_tool_property_is_always_text() {
        let arguments = Arguments::parse(Some(ALL_KINDS));
        assert_eq!(arguments.tool_property("s"), Datum::from("a\n\"b\""));
        assert_eq!(arguments.tool_property("n"), Datum::from("1.50"));
        assert_eq!(arguments.tool_property("t"), Datum::from("True"));
        assert_eq!(arguments.tool_property("f"), Datum::from("False"));
        assert_eq!(arguments.tool_property("o"), Datum::from(r#"{ "k": 1 }"#));
        assert_eq!(arguments.tool_property("a"), Datum::from("[1, 2]"));
        assert_eq!(arguments.tool_property("z"), Datum::from(""));
        assert_eq!(arguments.tool_property("missing"), Datum::from(""));
        assert_eq!(arguments.tool_property("S"), Datum::from(""), "names are compared with their case");
    }

    #[test]
    fn a_prompt_argument_is_text_and_nothing_when_missing() {
        let arguments = Arguments::parse(Some(r#"{"code":"x","none":null}"#));
        assert_eq!(arguments.prompt_argument("code", true), Ok(Datum::from("x")));
        assert_eq!(arguments.prompt_argument("none", true), Ok(Datum::from("")));
        assert_eq!(arguments.prompt_argument("missing", false), Ok(Datum::Nothing));
    }

    #[test]
    fn a_required_prompt_argument_that_is_missing_is_a_failure() {
        let failure = Arguments::parse(None).prompt_argument("code", true).unwrap_err();
        assert_eq!(failure.to_string(), "Required prompt argument 'code' was not provided.");
    }

    #[test]
    fn null_is_missing_but_empty_and_wrong_kinds_are_not() {
        let arguments = Arguments::parse(Some(r#"{"none": null ,"empty":"","number":1,"Upper":1}"#));
        let missing = |names: &[&str]| {
            arguments.missing(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(missing(&["number", "empty"]), None);
        assert_eq!(missing(&["none"]).as_deref(), Some("none"));
        assert_eq!(missing(&["b", "number", "upper", "a"]).as_deref(), Some("b, upper, a"));
        assert_eq!(Arguments::parse(None).missing(&["a".to_owned()]).as_deref(), Some("a"));
        assert_eq!(Arguments::parse(None).missing(&[]), None);
    }

    #[test]
    fn anything_but_an_object_holds_no_arguments() {
        let arguments = Arguments::parse(Some("[1]"));
        assert_eq!((arguments.as_json(), arguments.texts().count()), (Some("[1]"), 0));
    }
}
