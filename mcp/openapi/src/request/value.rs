//! Serialises values as text: scalars, lists and objects in every style.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::operation::{Parameter, ParameterStyle};

/// Everything except the unreserved characters of RFC 3986.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Names of query parameters keep the `$` of OData, which users search for in logs.
const NAME: &AsciiSet = &STRICT.remove(b'$');
/// The characters for `allowReserved`. Those that would end the value or change its meaning are still
/// encoded: `&`, `#`, `+` and `%`.
const RESERVED: &AsciiSet = &STRICT
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'[')
    .remove(b']');

/// How a text is encoded for its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueEncoding {
    /// No encoding, for headers.
    Plain,
    /// Percent-encoding of all characters that are not unreserved.
    Strict,
    /// Like `Strict`, with `'` doubled first, for text between quotation marks.
    Quoted,
    /// Percent-encoding that keeps most reserved characters.
    Reserved,
    /// The encoding of a query parameter's name.
    Name,
}

/// Encodes a text for its location.
pub(super) fn encode_text(text: &str, encoding: ValueEncoding) -> String {
    let set = match encoding {
        ValueEncoding::Plain => return text.to_owned(),
        ValueEncoding::Quoted => return utf8_percent_encode(&text.replace('\'', "''"), STRICT).to_string(),
        ValueEncoding::Strict => STRICT,
        ValueEncoding::Reserved => RESERVED,
        ValueEncoding::Name => NAME,
    };
    utf8_percent_encode(text, set).to_string()
}

/// Serialises a value for a path or a header. The parameter's name is included only if
/// the style requires it.
pub(super) fn encode_value(parameter: &Parameter, value: &Value, encoding: ValueEncoding) -> String {
    let text = |value: &Value| encode_text(&plain_value(value), encoding);
    let named = |name: &str, value: String| match value.is_empty() {
        true => format!(";{name}"),
        false => format!(";{name}={value}"),
    };
    let own = encode_text(&parameter.name, encoding);
    let explode = parameter.explode;
    match (parameter.style, value) {
        (ParameterStyle::Json, _) => encode_text(&value.to_string(), encoding),
        (ParameterStyle::Segments, _) => {
            let whole = plain_value(value);
            let segments = whole.trim_start_matches('/').split('/');
            segments.map(|segment| encode_text(segment, encoding)).collect::<Vec<_>>().join("/")
        }
        (ParameterStyle::Label, Value::Array(_) | Value::Object(_)) => {
            let separator = if explode { "." } else { "," };
            let inner = joined(value, separator, explode, text);
            if inner.is_empty() { inner } else { format!(".{inner}") }
        }
        (ParameterStyle::Label, _) => format!(".{}", text(value)),
        (ParameterStyle::Matrix, Value::Array(items)) if explode => {
            non_null(items).map(|item| named(&own, text(item))).collect()
        }
        (ParameterStyle::Matrix, Value::Object(members)) if explode => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            members.map(|(name, value)| named(&encode_text(name, encoding), text(value))).collect()
        }
        (ParameterStyle::Matrix, _) => named(&own, joined(value, ",", false, text)),
        (style, _) => {
            let separator = match (style, encoding) {
                (ParameterStyle::SpaceDelimited, ValueEncoding::Plain) => " ",
                (ParameterStyle::SpaceDelimited, _) => "%20",
                (ParameterStyle::PipeDelimited, ValueEncoding::Plain) => "|",
                (ParameterStyle::PipeDelimited, _) => "%7C",
                (ParameterStyle::TabDelimited, ValueEncoding::Plain) => "\t",
                (ParameterStyle::TabDelimited, _) => "%09",
                _ => ",",
            };
            joined(value, separator, explode, text)
        }
    }
}

/// Serialises a value as encoded `name=value` pairs for a query or cookies.
pub(super) fn pairs(parameter: &Parameter, value: &Value) -> Vec<String> {
    let encoding = if parameter.allow_reserved { ValueEncoding::Reserved } else { ValueEncoding::Strict };
    let pair = |name: &str, value: &Value| {
        format!("{}={}", encode_text(name, ValueEncoding::Name), encode_text(&plain_value(value), encoding))
    };
    let own = parameter.name.as_str();
    match (parameter.style, value) {
        (ParameterStyle::Json, _) => {
            vec![format!(
                "{}={}",
                encode_text(own, ValueEncoding::Name),
                encode_text(&value.to_string(), encoding)
            )]
        }
        (ParameterStyle::DeepObject, Value::Object(_)) => {
            let mut found = Vec::new();
            push_deep_object(own.to_owned(), value, &pair, &mut found);
            found
        }
        (_, Value::Array(items)) if parameter.explode => {
            non_null(items).map(|item| pair(own, item)).collect()
        }
        (_, Value::Object(members)) if parameter.explode => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            members.map(|(name, value)| pair(name, value)).collect()
        }
        (style, Value::Array(_) | Value::Object(_)) => {
            let separator = match style {
                ParameterStyle::SpaceDelimited => "%20",
                ParameterStyle::PipeDelimited => "%7C",
                ParameterStyle::TabDelimited => "%09",
                _ => ",",
            };
            // Only the separators stay unencoded, whatever the parameter allows.
            let inner = joined(value, separator, false, |value| {
                encode_text(&plain_value(value), ValueEncoding::Strict)
            });
            match inner.is_empty() {
                true => Vec::new(),
                false => vec![format!("{}={inner}", encode_text(own, ValueEncoding::Name))],
            }
        }
        _ => vec![pair(own, value)],
    }
}

/// Serialises `name[member]=value` at any depth.
fn push_deep_object(
    name: String,
    value: &Value,
    pair: &impl Fn(&str, &Value) -> String,
    found: &mut Vec<String>,
) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (member, value) in members {
                push_deep_object(format!("{name}[{member}]"), value, pair, found);
            }
        }
        Value::Array(items) => found.extend(non_null(items).map(|item| pair(&name, item))),
        _ => found.push(pair(&name, value)),
    }
}

/// Joins a list as `a,b` and an object as `k,v` or, with `explode`, `k=v`. Other values stay unchanged.
fn joined(value: &Value, separator: &str, explode: bool, text: impl Fn(&Value) -> String) -> String {
    let pieces: Vec<String> = match value {
        Value::Array(items) => non_null(items).map(&text).collect(),
        Value::Object(members) => {
            let between = if explode { "=" } else { separator };
            let members = members.iter().filter(|(_, value)| !value.is_null());
            let name = |name: &String| text(&Value::String(name.clone()));
            members.map(|(key, value)| format!("{}{between}{}", name(key), text(value))).collect()
        }
        _ => vec![text(value)],
    };
    pieces.join(separator)
}

fn non_null(items: &[Value]) -> impl Iterator<Item = &Value> {
    items.iter().filter(|item| !item.is_null())
}

/// Serialises a value where only text is allowed. Nested lists and objects become JSON.
pub(super) fn plain_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        _ => value.to_string(),
    }
}
