//! Reads values below `[app]` into types that implement `Deserialize`.
//!
//! Errors name the key and its source. They never contain the text of a variable.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::super::PREFIX;
use super::super::form::quoted;
use super::super::mistake::{OptionMistake, OptionSource, OptionsError, nearest};
use super::{APP, AppData, AppValue, is_same};

/// Reads the whole table.
pub(super) fn read<T: DeserializeOwned>(table: &AppValue) -> Result<T, OptionsError> {
    let unknown = RefCell::new(Vec::new());
    let reader = ValueReader { value: table, key: APP.to_owned(), unknown: &unknown, siblings: &[] };
    let read = T::deserialize(reader);
    let mut mistakes = unknown.into_inner();
    match read {
        Ok(value) => OptionsError::unless_empty(mistakes).map(|()| value),
        Err(error) => {
            mistakes.push(error.into_mistake(APP, &OptionSource::Program));
            Err(OptionsError(mistakes))
        }
    }
}

/// A value that serde rejects. It becomes a mistake where its key and its source are known.
#[derive(Debug)]
enum ReadError {
    Unexpected { shown: String, expected: String },
    MissingKey(&'static str),
    UnknownKey(String, &'static [&'static str]),
    Custom(String),
    Mistake(OptionMistake),
}

impl ReadError {
    fn into_mistake(self, key: &str, place: &OptionSource) -> OptionMistake {
        let is_secret = matches!(place, OptionSource::Variable(_));
        let text = match self {
            ReadError::Mistake(mistake) => return mistake,
            ReadError::MissingKey(name) => {
                let (key, variable) = (format!("{key}.{name}"), variable(&format!("{key}.{name}")));
                let text = format!("`{key}` is missing; set it in the file, or set `{variable}`");
                return OptionMistake { place: place.clone(), text };
            }
            ReadError::UnknownKey(name, known) => return unknown_key(&format!("{key}.{name}"), place, known),
            ReadError::Unexpected { expected, .. } if is_secret => {
                format!("is invalid; it can be {expected}")
            }
            ReadError::Unexpected { shown, expected } => format!("is {shown}; it can be {expected}"),
            ReadError::Custom(_) if is_secret => "is invalid".to_owned(),
            ReadError::Custom(reason) => format!("is invalid: {reason}"),
        };
        OptionMistake::about(key, place.clone(), text)
    }
}

/// Returns what serde expects, without the names of Rust types.
fn plain(expected: &str) -> String {
    let range = |least: i64, most: u64| format!("a whole number from {least} to {most}");
    match expected {
        "i8" => range(i8::MIN.into(), 127),
        "u8" => range(0, u8::MAX.into()),
        "i16" => range(i16::MIN.into(), 32_767),
        "u16" => range(0, u16::MAX.into()),
        "i32" => range(i32::MIN.into(), 2_147_483_647),
        "u32" => range(0, u32::MAX.into()),
        "i64" | "isize" => "a whole number".to_owned(),
        "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        name if name.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}

fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_uppercase())
}

fn unknown_key(key: &str, place: &OptionSource, known: &[&str]) -> OptionMistake {
    let name = key.rsplit('.').next().unwrap_or(key);
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known keys: {}", known.join(", ")),
    };
    let text = format!("unknown key {}; {hint}", place.describe_key(key));
    OptionMistake { place: place.clone(), text }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Unexpected { shown, expected } => write!(f, "{shown}; it can be {expected}"),
            ReadError::MissingKey(name) => write!(f, "`{name}` is missing"),
            ReadError::UnknownKey(name, _) => write!(f, "unknown key `{name}`"),
            ReadError::Custom(reason) => f.write_str(reason),
            ReadError::Mistake(mistake) => f.write_str(&mistake.text),
        }
    }
}

impl std::error::Error for ReadError {}

impl Error for ReadError {
    fn custom<T: fmt::Display>(reason: T) -> ReadError {
        ReadError::Custom(reason.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> ReadError {
        let shown = match found {
            Unexpected::Str(text) => quoted(text),
            Unexpected::Unsigned(number) => number.to_string(),
            Unexpected::Signed(number) => number.to_string(),
            Unexpected::Float(number) => number.to_string(),
            Unexpected::Bool(flag) => flag.to_string(),
            Unexpected::Map => "a table".to_owned(),
            Unexpected::Seq => "a list".to_owned(),
            other => other.to_string(),
        };
        ReadError::Unexpected { shown, expected: plain(&expected.to_string()) }
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> ReadError {
        ReadError::invalid_type(found, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> ReadError {
        ReadError::Unexpected { shown: quoted(variant), expected: expected.join(", ") }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> ReadError {
        ReadError::UnknownKey(field.to_owned(), expected)
    }

    fn missing_field(field: &'static str) -> ReadError {
        ReadError::MissingKey(field)
    }
}

/// Deserializes one value.
struct ValueReader<'a> {
    value: &'a AppValue,
    /// The path of the key: `app.pool.size`.
    key: String,
    /// Collects the keys that the type does not have.
    unknown: &'a RefCell<Vec<OptionMistake>>,
    /// The keys that the type has beside this one.
    siblings: &'static [&'static str],
}

impl<'a> ValueReader<'a> {
    /// Adds the key and the source to an error.
    fn located<T>(&self, read: Result<T, ReadError>) -> Result<T, ReadError> {
        read.map_err(|error| ReadError::Mistake(error.into_mistake(&self.key, &self.value.place)))
    }

    /// Returns a reader of a value below this one.
    fn below(&self, name: &str, value: &'a AppValue, siblings: &'static [&'static str]) -> ValueReader<'a> {
        let key = if name.is_empty() { self.key.clone() } else { format!("{}.{name}", self.key) };
        ValueReader { value, key, unknown: self.unknown, siblings }
    }

    fn visit<'de, V: Visitor<'de>>(
        &self,
        visitor: V,
        fields: &'static [&'static str],
    ) -> Result<V::Value, ReadError> {
        match &self.value.data {
            AppData::Table(members) => {
                let entries = members.iter().collect::<Vec<_>>().into_iter();
                visitor.visit_map(TableReader { parent: self, entries, next: None, fields })
            }
            AppData::List(items) => visitor.visit_seq(ListReader { parent: self, items: items.iter() }),
            AppData::Text(text) | AppData::Other(text) | AppData::Variable(text) => visitor.visit_str(text),
            AppData::Integer(number) => visitor.visit_i64(*number),
            AppData::Float(number) => visitor.visit_f64(*number),
            AppData::Flag(flag) => visitor.visit_bool(*flag),
        }
    }

    /// Returns the text of a variable, if it can be read as this type.
    fn variable_as<T: std::str::FromStr>(&self) -> Option<T> {
        match &self.value.data {
            AppData::Variable(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
}

/// Methods for types that the text of a variable is parsed to.
macro_rules! parsed_from_variables {
    ($($method:ident as $type:ty => $visit:ident),* $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            self.located(match self.variable_as::<$type>() {
                Some(value) => visitor.$visit(value),
                None => self.visit(visitor, &[]),
            })
        }
    )*};
}

impl<'de> Deserializer<'de> for ValueReader<'_> {
    type Error = ReadError;

    parsed_from_variables! {
        deserialize_bool as bool => visit_bool,
        deserialize_i8 as i64 => visit_i64,
        deserialize_i16 as i64 => visit_i64,
        deserialize_i32 as i64 => visit_i64,
        deserialize_i64 as i64 => visit_i64,
        deserialize_u8 as u64 => visit_u64,
        deserialize_u16 as u64 => visit_u64,
        deserialize_u32 as u64 => visit_u64,
        deserialize_u64 as u64 => visit_u64,
        deserialize_f32 as f64 => visit_f64,
        deserialize_f64 as f64 => visit_f64,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.located(self.visit(visitor, &[]))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.value.data {
            AppData::Variable(text) if text.is_empty() => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let AppData::Variable(text) = &self.value.data else { return self.deserialize_any(visitor) };
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        let items: Vec<AppValue> = items
            .map(|item| AppValue {
                place: self.value.place.clone(),
                data: AppData::Variable(item.to_owned()),
            })
            .collect();
        let list = ListReader { parent: &self.below("", self.value, &[]), items: items.iter() };
        self.located(visitor.visit_seq(list))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.located(self.visit(visitor, fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let read = match &self.value.data {
            AppData::Text(text) | AppData::Variable(text) => {
                visitor.visit_enum(IntoDeserializer::<ReadError>::into_deserializer(text.trim()))
            }
            AppData::Table(members) => {
                let entries = members.iter().collect::<Vec<_>>().into_iter();
                let table = TableReader { parent: &self, entries, next: None, fields: variants };
                visitor.visit_enum(MapAccessDeserializer::new(table))
            }
            _ => self.visit(visitor, &[]),
        };
        self.located(read)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.unknown.borrow_mut().push(unknown_key(&self.key, &self.value.place, self.siblings));
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct tuple tuple_struct map identifier
    }
}

struct TableReader<'r, 'a> {
    parent: &'r ValueReader<'a>,
    entries: std::vec::IntoIter<(&'a String, &'a AppValue)>,
    next: Option<(&'a str, &'a AppValue)>,
    /// The keys of the type. Empty for maps.
    fields: &'static [&'static str],
}

impl<'de> MapAccess<'de> for TableReader<'_, '_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some((name, value)) = self.entries.next() else { return Ok(None) };
        let is_variable =
            matches!(value.place, OptionSource::Variable(_)) && !self.fields.contains(&name.as_str());
        let field = self.fields.iter().find(|field| is_variable && is_same(field, name));
        let name = field.map_or(name.as_str(), |field| *field);
        self.next = Some((name, value));
        let reader: StrDeserializer<'_, ReadError> = name.into_deserializer();
        let located =
            |error: ReadError| ReadError::Mistake(error.into_mistake(&self.parent.key, &value.place));
        seed.deserialize(reader).map(Some).map_err(located)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let (name, value) = self.next.take().ok_or_else(|| ReadError::custom("a value without a key"))?;
        seed.deserialize(self.parent.below(name, value, self.fields))
    }
}

struct ListReader<'r, 'a> {
    parent: &'r ValueReader<'r>,
    items: std::slice::Iter<'a, AppValue>,
}

impl<'de> SeqAccess<'de> for ListReader<'_, '_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let ValueReader { key, unknown, .. } = self.parent;
        let reader = ValueReader { value: item, key: key.clone(), unknown, siblings: &[] };
        seed.deserialize(reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}
