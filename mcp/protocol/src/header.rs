//! Values that a client repeats in HTTP headers (2026-07-28): `Mcp-Name`, `Mcp-Param-*`.
//!
//! A value that is not plain ASCII is encoded as `=?base64?…?=`. With `x-mcp-header`, the schema of a
//! tool marks the arguments that a client repeats in a header.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The member of a property's schema that names the header.
pub const SCHEMA_MEMBER: &str = "x-mcp-header";
/// The prefix of the header names, in lower case as HTTP libraries store them.
pub const PARAM_PREFIX: &str = "mcp-param-";

/// The largest integer that every JSON library represents exactly.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Decodes a header value. Returns `None` if the value has the base64 form but is not valid base64 of
/// UTF-8.
pub fn decode_value(value: &str) -> Option<Cow<'_, str>> {
    let value = value.trim_matches([' ', '\t']);
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(Cow::Borrowed(value)),
        Some(encoded) => {
            let bytes = STANDARD.decode(encoded).ok()?;
            String::from_utf8(bytes).ok().map(Cow::Owned)
        }
    }
}

/// Encodes a text as a header value. The base64 form is used only if the text is not a valid plain value.
pub fn encode_value(text: &str) -> String {
    let plain = text.bytes().all(|b| (0x20..=0x7e).contains(&b))
        && text.trim_matches(' ') == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

/// An argument that a client repeats in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderArgument {
    /// The full header name in lower case.
    pub header: String,
    /// The path of the argument, one property name per level.
    pub path: Vec<String>,
}

impl HeaderArgument {
    /// Returns the arguments that a schema marks. Returns an error for a mark that makes clients ignore
    /// the tool.
    pub fn find_all(schema: &Value) -> Result<Vec<HeaderArgument>, String> {
        let mut found = Vec::new();
        let mut path = Vec::new();
        collect(schema, true, &mut path, &mut found)?;
        for (index, one) in found.iter().enumerate() {
            if found[..index].iter().any(|other: &HeaderArgument| other.header == one.header) {
                return Err(format!("header {:?} is used by two properties", one.header));
            }
        }
        Ok(found)
    }

    /// Returns whether the header, present or missing, agrees with the arguments.
    pub fn agrees(&self, arguments: &Value, header: Option<&str>) -> bool {
        let mut argument = arguments;
        for name in &self.path {
            argument = argument.get(name).unwrap_or(&Value::Null);
        }
        let Some(header) = header else { return argument.is_null() };
        let Some(text) = decode_value(header) else { return false };
        match argument {
            // The client sent a header for an argument that it did not send.
            Value::Null => false,
            Value::String(argument) => *argument == text,
            Value::Bool(argument) => text == if *argument { "true" } else { "false" },
            Value::Number(argument) => {
                match (parse_exact_integer(&text), parse_exact_integer(&argument.to_string())) {
                    (Some(header), Some(argument)) => header == argument,
                    _ => text.parse::<f64>().is_ok_and(|number| argument.as_f64() == Some(number)),
                }
            }
            Value::Array(_) | Value::Object(_) => false,
        }
    }
}

/// Parses an integer exactly, with or without zeros after a decimal point. Returns `None`
/// for any other text.
fn parse_exact_integer(text: &str) -> Option<i128> {
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|digit| digit == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    whole.parse().ok()
}

/// Walks a schema. Marks are allowed only where `reachable` is true, on paths that
/// use nothing but `properties`.
fn collect(
    schema: &Value,
    reachable: bool,
    path: &mut Vec<String>,
    found: &mut Vec<HeaderArgument>,
) -> Result<(), String> {
    let Some(members) = schema.as_object() else {
        if let Some(items) = schema.as_array() {
            for item in items {
                collect(item, false, path, found)?;
            }
        }
        return Ok(());
    };
    if let Some(name) = members.get(SCHEMA_MEMBER) {
        let place = format!("/{}", path.join("/"));
        let name = name.as_str().filter(|name| is_token(name));
        let name = name.ok_or_else(|| format!("{place}: `{SCHEMA_MEMBER}` must be an HTTP header name"))?;
        if !reachable || path.is_empty() {
            return Err(format!("{place}: `{SCHEMA_MEMBER}` is allowed only below `properties`"));
        }
        match members.get("type").and_then(Value::as_str) {
            Some("string" | "boolean") => {}
            Some("integer") => {
                let unsafe_bound = ["minimum", "maximum"].iter().any(|bound| {
                    let bound = members.get(*bound).and_then(Value::as_f64);
                    bound.is_some_and(|bound| bound.abs() > MAX_SAFE_INTEGER)
                });
                if unsafe_bound {
                    return Err(format!("{place}: an integer in a header must stay within ±(2^53−1)"));
                }
            }
            _ => return Err(format!("{place}: only a string, integer or boolean can be sent in a header")),
        }
        found.push(HeaderArgument {
            header: format!("{PARAM_PREFIX}{}", name.to_ascii_lowercase()),
            path: path.clone(),
        });
    }
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    collect(property, reachable, path, found)?;
                    path.pop();
                }
            }
            // These members hold values, not schemas. A mark in them is data.
            ("const" | "enum" | "default" | "examples", _) => {}
            _ => collect(value, false, path, found)?,
        }
    }
    Ok(())
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_round_trip() {
        for text in ["plain", "héllo x", " padded ", "", "=?base64?eA==?=", "tab\t"] {
            assert_eq!(decode_value(&encode_value(text)).as_deref(), Some(text), "{text:?}");
        }
        assert_eq!(encode_value("héllo x"), "=?base64?aMOpbGxvIHg=?=");
        assert_eq!(decode_value("  padded "), Some("padded".into()));
    }

    #[test]
    fn an_invalid_base64_form_is_rejected_and_an_incomplete_form_is_literal() {
        for broken in ["=?base64?aGk?=", "=?base64?a$k=?=", "=?base64?/w==?="] {
            assert_eq!(decode_value(broken), None, "{broken}");
        }
        assert_eq!(decode_value("=?base64?aGk="), Some("=?base64?aGk=".into()));
        assert_eq!(decode_value("=?BASE64?aGk=?="), Some("=?BASE64?aGk=?=".into()));
    }

    #[test]
    fn marks_are_found_below_properties_only() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}}});
        let found = HeaderArgument::find_all(&schema).unwrap();
        let headers: Vec<_> = found.iter().map(|f| (f.header.as_str(), f.path.join("."))).collect();
        assert!(headers.contains(&("mcp-param-region", "region".to_owned())));
        assert!(headers.contains(&("mcp-param-n", "deep.n".to_owned())));

        for (bad, why) in [
            (json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}), "only a string"),
            (json!({"properties": {"a": {"type": "string", "x-mcp-header": ""}}}), "HTTP header name"),
            (json!({"properties": {"a": {"type": "string", "x-mcp-header": "a b"}}}), "HTTP header name"),
            (
                json!({"properties": {"a": {"items": {"type": "string", "x-mcp-header": "A"}}}}),
                "below `properties`",
            ),
            (
                json!({"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]}),
                "below `properties`",
            ),
            (
                json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"},
                                      "b": {"type": "string", "x-mcp-header": "a"}}}),
                "two properties",
            ),
        ] {
            let error = HeaderArgument::find_all(&bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn a_header_is_compared_by_value() {
        let argument = |name: &str| HeaderArgument { header: "h".into(), path: vec![name.into()] };
        let arguments = json!({"s": "x", "n": 42, "b": true, "z": null});
        assert!(argument("s").agrees(&arguments, Some("x")));
        assert!(argument("s").agrees(&arguments, Some("=?base64?eA==?=")));
        assert!(argument("n").agrees(&arguments, Some("42.0")));
        assert!(argument("b").agrees(&arguments, Some("true")));
        assert!(argument("z").agrees(&arguments, None));
        assert!(argument("missing").agrees(&arguments, None));
        assert!(!argument("s").agrees(&arguments, None));
        assert!(!argument("s").agrees(&arguments, Some("X")));
        assert!(!argument("b").agrees(&arguments, Some("True")));
        assert!(!argument("s").agrees(&arguments, Some("=?base64?eA?=")));
    }
}
