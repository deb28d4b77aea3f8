//! [`Arguments`]: the arguments of a tool or prompt, by name, each with the JSON text that the client sent.

use std::borrow::Cow;

use super::raw_json::{RawMembers, checked_members, dotnet_text};
use crate::datum::Datum;

/// The arguments of one call. They are parsed once and used by the check for required arguments, the
/// `mcpToolProperty` and `mcpPromptArgument` bindings, the trigger metadata and path expressions.
#[derive(Clone, Debug, Default)]
pub struct Arguments<'a> {
    json: Option<&'a str>,
    members: RawMembers<'a>,
}

/// A binding requires an argument that the client did not send.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Required prompt argument '{0}' was not provided.")]
pub struct MissingArgument(pub String);

impl<'a> Arguments<'a> {
    /// Parses the JSON text that the client sent, if any. It must be valid JSON, as every part of a decoded
    /// message is. Anything but an object has no arguments.
    pub fn parse(json: Option<&'a str>) -> Arguments<'a> {
        Arguments { json, members: json.and_then(checked_members).unwrap_or_default() }
    }

    /// Returns the JSON text that the client sent.
    pub fn as_json(&self) -> Option<&'a str> {
        self.json
    }

    /// Returns the JSON text of one argument. Names are case-sensitive, as everywhere in MCP.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Returns the names and values, with values in the string form of [`text`](Arguments::text).
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, Cow<'a, str>)> {
        self.members.iter().map(|(name, value)| (name.as_ref(), dotnet_text(value)))
    }

    /// Returns one argument in the string form of bindings: strings as they are, numbers, objects and arrays
    /// as written, `True`, `False`, and an empty string for null.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).map(dotnet_text)
    }

    /// Returns the value of an `mcpToolProperty` binding. It is always text, empty if the argument is
    /// missing.
    pub fn tool_property(&self, name: &str) -> Datum {
        Datum::Text(self.text(name).unwrap_or_default().into_owned())
    }

    /// Returns the value of an `mcpPromptArgument` binding: text, or no value if an optional argument is
    /// missing.
    pub fn prompt_argument(&self, name: &str, required: bool) -> Result<Datum, MissingArgument> {
        match self.text(name) {
            Some(text) => Ok(Datum::Text(text.into_owned())),
            None if required => Err(MissingArgument(name.to_owned())),
            None => Ok(Datum::Nothing),
        }
    }

    /// Returns the names of required arguments that are missing or null, in the given order and separated by
    /// commas. Returns `None` if no argument is missing.
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
        assert_eq!(arguments.tool_property("S"), Datum::from(""), "names are case-sensitive");
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
