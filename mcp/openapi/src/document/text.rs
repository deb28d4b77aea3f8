//! Parses JSON or YAML within limits and keeps the order of the paths.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::document::DocumentError;

/// The maximum nesting depth. All later code may recurse over a value.
pub(super) const MAX_DEPTH: usize = 128;
/// A multiple of the stack that the deepest YAML needs without optimisation.
const YAML_STACK: usize = 16 << 20;
const TOO_DEEP: &str = "nested deeper than";

/// A parsed text.
pub(super) struct ParsedText {
    pub(super) value: Value,
    /// The keys of `paths` and the keys below each, as written. Parsed objects do not keep the order of
    /// their members.
    pub(super) order: Vec<(String, Vec<String>)>,
}

/// Parses a text. A text that looks like JSON is parsed as JSON first, because that parser is faster and
/// has better messages.
pub(super) fn parse(text: &str, name: &str) -> Result<ParsedText, DocumentError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with(['{', '[']) { parse_json(text, name) } else { parse_yaml(text, name) }
}

/// Returns whether a parser failed because of the depth, by our limit or by its own equal limit.
fn is_too_deep(error: &str) -> bool {
    [TOO_DEEP, "recursion limit exceeded", "budget breached: Depth"].iter().any(|said| error.contains(said))
}

fn too_deep(place: String) -> DocumentError {
    DocumentError::invalid(
        place,
        format!("this is {TOO_DEEP} {MAX_DEPTH} levels"),
        "move the inner part to a definition, and reference it with `$ref`",
    )
}

fn parse_json(text: &str, name: &str) -> Result<ParsedText, DocumentError> {
    let mut order = Vec::new();
    let mut input = serde_json::Deserializer::from_str(text);
    let parsed = ValueSeed { depth: 0, role: NodeRole::Root, order: &mut order }
        .deserialize(&mut input)
        .and_then(|value| input.end().map(|()| value));
    match parsed {
        Ok(value) => Ok(ParsedText { value, order }),
        // A YAML flow mapping looks like JSON at first.
        Err(error) => {
            let is_yaml = (name.ends_with(".yaml") || name.ends_with(".yml")) && error.is_syntax();
            if is_yaml && let Ok(parsed) = parse_yaml(text, name) {
                return Ok(parsed);
            }
            let place = format!("{name}:{}:{}", error.line(), error.column());
            if is_too_deep(&error.to_string()) {
                return Err(too_deep(place));
            }
            Err(DocumentError::invalid(
                place,
                format!("this is not valid JSON: {error}"),
                "correct the file at that line and column",
            ))
        }
    }
}

/// Parses YAML on a thread with a large stack. A hundred nested blocks need more than the threads of a
/// runtime have.
fn parse_yaml(text: &str, name: &str) -> Result<ParsedText, DocumentError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(YAML_STACK);
        let parsed = thread.spawn_scoped(scope, || parse_yaml_here(text, name)).map(|thread| thread.join());
        match parsed {
            Ok(Ok(parsed)) => parsed,
            _ => Err(DocumentError::invalid(
                name.to_owned(),
                "no thread could be started to parse it".to_owned(),
                "give the program more memory, or write the document as JSON",
            )),
        }
    })
}

fn parse_yaml_here(text: &str, name: &str) -> Result<ParsedText, DocumentError> {
    // A file has at most 64 MiB. The expansion of its aliases is limited separately.
    let budget = serde_saphyr::budget! {
        max_events: 24_000_000,
        max_nodes: 12_000_000,
        max_depth: MAX_DEPTH,
        flow_nesting_limit: MAX_DEPTH,
        max_total_scalar_bytes: 128 * 1024 * 1024,
        max_documents: 1,
        max_inclusion_depth: 0,
    };
    let options = serde_saphyr::options! {
        budget: budget,
        strict_booleans: true,
        no_schema: false,
        with_snippet: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
    };
    let mut order = Vec::new();
    let parsed = serde_saphyr::with_deserializer_from_str_with_options(text, options, |input| {
        ValueSeed { depth: 0, role: NodeRole::Root, order: &mut order }.deserialize(input)
    });
    match parsed {
        Ok(value) => Ok(ParsedText { value, order }),
        Err(error) => {
            let place = match error.location() {
                Some(location) => format!("{name}:{}:{}", location.line(), location.column()),
                None => name.to_owned(),
            };
            if is_too_deep(&error.to_string()) {
                return Err(too_deep(place));
            }
            Err(DocumentError::invalid(
                place,
                format!("this is not valid YAML, or it exceeds a limit: {error}"),
                "correct the file at that position; aliases may not expand to millions of values",
            ))
        }
    }
}

/// The part of a document that a value belongs to, as far as its order matters.
#[derive(Clone, Copy, PartialEq)]
enum NodeRole {
    Root,
    Paths,
    PathItem,
    Other,
}

struct ValueSeed<'a> {
    depth: usize,
    role: NodeRole,
    order: &'a mut Vec<(String, Vec<String>)>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        input.deserialize_any(self)
    }
}

impl ValueSeed<'_> {
    fn child<E: serde::de::Error>(&mut self, role: NodeRole) -> Result<ValueSeed<'_>, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format_args!("{TOO_DEEP} {MAX_DEPTH} levels")));
        }
        Ok(ValueSeed { depth: self.depth + 1, role, order: self.order })
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Number::from_i128(value).map_or_else(|| Value::String(value.to_string()), Value::Number))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Number::from_u128(value).map_or_else(|| Value::String(value.to_string()), Value::Number))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // YAML has infinity and JSON does not. As a bound it has no effect.
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        self.deserialize(input)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        self.deserialize(input)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(self.child(NodeRole::Other)?)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        // A YAML key can be any value: `200:` is a number.
        while let Some(key) = entries.next_key_seed(self.child(NodeRole::Other)?)? {
            let key = match key {
                Value::String(key) => key,
                Value::Number(key) => key.to_string(),
                Value::Bool(key) => key.to_string(),
                Value::Null => "null".to_owned(),
                _ => return Err(A::Error::custom("a key must not be a list or a mapping")),
            };
            let role = match self.role {
                NodeRole::Root if key == "paths" => NodeRole::Paths,
                NodeRole::Paths => {
                    self.order.push((key.clone(), Vec::new()));
                    NodeRole::PathItem
                }
                NodeRole::PathItem => {
                    if let Some((_, keys)) = self.order.last_mut() {
                        keys.push(key.clone());
                    }
                    NodeRole::Other
                }
                _ => NodeRole::Other,
            };
            let value = entries.next_value_seed(self.child(role)?)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}
