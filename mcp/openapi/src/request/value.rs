//! Values as text: scalars, lists and objects in every style.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::operation::{Parameter, Style};

/// Everything but what RFC 3986 calls unreserved.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Names of query parameters keep the `$` of OData, which people look for in logs.
const NAME: &AsciiSet = &STRICT.remove(b'$');
/// As `allowReserved` wants it, but for what would end the value or change its meaning: `&`, `#`, `+` and `%`.
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

/// How text is made fit for its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Not at all: headers.
    Plain,
    /// Percent-encoded but for unreserved characters.
    Strict,
    /// The same, with `'` doubled first: between quotation marks.
    Quoted,
    /// Percent-encoded but for most reserved characters.
    Reserved,
    /// The name of a query parameter.
    Name,
}

/// A text, made fit for its place.
pub(super) fn encoded(text: &str, encoding: Encoding) -> String {
    let set = match encoding {
        Encoding::Plain => return text.to_owned(),
        Encoding::Quoted => return utf8_percent_encode(&text.replace('\'', "''"), STRICT).to_string(),
        Encoding::Strict => STRICT,
        Encoding::Reserved => RESERVED,
        Encoding::Name => NAME,
    };
    utf8_percent_encode(text, set).to_string()
}

/// A value as one text, without its parameter's name (but where the style has it within): paths and headers.
pub(super) fn written(parameter: &Parameter, value: &Value, encoding: Encoding) -> String {
    let text = |value: &Value| encoded(&plain(value), encoding);
    let named = |name: &str, value: String| match value.is_empty() {
        true => format!(";{name}"),
        false => format!(";{name}={value}"),
    };
    let own = encoded(&parameter.name, encoding);
    let explode = parameter.explode;
    match (parameter.style, value) {
        (Style::Json, _) => encoded(&value.to_string(), encoding),
        (Style::Label, Value::Array(_) | Value::Object(_)) => {
            let separator = if explode { "." } else { "," };
            let inner = joined(value, separator, explode, text);
            if inner.is_empty() { inner } else { format!(".{inner}") }
        }
        (Style::Label, _) => format!(".{}", text(value)),
        (Style::Matrix, Value::Array(items)) if explode => {
            present(items).map(|item| named(&own, text(item))).collect()
        }
        (Style::Matrix, Value::Object(members)) if explode => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            members.map(|(name, value)| named(&encoded(name, encoding), text(value))).collect()
        }
        (Style::Matrix, _) => named(&own, joined(value, ",", false, text)),
        (style, _) => {
            let separator = match (style, encoding) {
                (Style::SpaceDelimited, Encoding::Plain) => " ",
                (Style::SpaceDelimited, _) => "%20",
                (Style::PipeDelimited, Encoding::Plain) => "|",
                (Style::PipeDelimited, _) => "%7C",
                (Style::TabDelimited, Encoding::Plain) => "\t",
                (Style::TabDelimited, _) => "%09",
                _ => ",",
            };
            joined(value, separator, explode, text)
        }
    }
}

/// A value as `name=value` pieces of a query or of cookies, encoded.
pub(super) fn pairs(parameter: &Parameter, value: &Value) -> Vec<String> {
    let encoding = if parameter.allow_reserved { Encoding::Reserved } else { Encoding::Strict };
    let pair = |name: &str, value: &Value| {
        format!("{}={}", encoded(name, Encoding::Name), encoded(&plain(value), encoding))
    };
    let own = parameter.name.as_str();
    match (parameter.style, value) {
        (Style::Json, _) => {
            vec![format!("{}={}", encoded(own, Encoding::Name), encoded(&value.to_string(), encoding))]
        }
        (Style::DeepObject, Value::Object(_)) => {
            let mut found = Vec::new();
            deep(own.to_owned(), value, &pair, &mut found);
            found
        }
        (_, Value::Array(items)) if parameter.explode => present(items).map(|item| pair(own, item)).collect(),
        (_, Value::Object(members)) if parameter.explode => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            members.map(|(name, value)| pair(name, value)).collect()
        }
        (style, Value::Array(_) | Value::Object(_)) => {
            let separator = match style {
                Style::SpaceDelimited => "%20",
                Style::PipeDelimited => "%7C",
                Style::TabDelimited => "%09",
                _ => ",",
            };
            // Separators are the only ones that are not encoded, whatever the parameter allows.
            let inner = joined(value, separator, false, |value| encoded(&plain(value), Encoding::Strict));
            match inner.is_empty() {
                true => Vec::new(),
                false => vec![format!("{}={inner}", encoded(own, Encoding::Name))],
            }
        }
        _ => vec![pair(own, value)],
    }
}

/// `name[member]=value`, however deep.
fn deep(name: String, value: &Value, pair: &impl Fn(&str, &Value) -> String, found: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (member, value) in members {
                deep(format!("{name}[{member}]"), value, pair, found);
            }
        }
        Value::Array(items) => found.extend(present(items).map(|item| pair(&name, item))),
        _ => found.push(pair(&name, value)),
    }
}

/// A list as `a,b`, an object as `k,v` or, `explode`d, `k=v`; anything else as it is.
fn joined(value: &Value, separator: &str, explode: bool, text: impl Fn(&Value) -> String) -> String {
    let pieces: Vec<String> = match value {
        Value::Array(items) => present(items).map(&text).collect(),
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

fn present(items: &[Value]) -> impl Iterator<Item = &Value> {
    items.iter().filter(|item| !item.is_null())
}

/// A value where only text fits: lists and objects in there are JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        _ => value.to_string(),
    }
}
