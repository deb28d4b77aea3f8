//! Reads one component definition of an index: typed access to its properties, and rejection of unknown ones.

use std::cell::RefCell;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::ApiError;

/// A definition such as `{"@odata.type":…,"name":…,…}`. A property that is null is treated as absent.
pub(super) struct ComponentSettings<'a> {
    /// The name in error messages, such as `Token filter 'mine'`.
    pub(super) place: String,
    pub(super) name: &'a str,
    /// The part of `@odata.type` after the last dot.
    pub(super) kind: &'a str,
    members: &'a Map<String, Value>,
    read: RefCell<HashSet<&'static str>>,
}

impl<'a> ComponentSettings<'a> {
    pub(super) fn new(what: &str, value: &'a Value) -> Result<Self, ApiError> {
        let members = value.as_object().ok_or_else(|| {
            ApiError::invalid(format!(
                "{what}: each definition must be an object with '@odata.type' and 'name'."
            ))
        })?;
        let name = members.get("name").and_then(Value::as_str).ok_or_else(|| {
            ApiError::invalid(format!("{what}: a definition has no 'name', or its name is not a string."))
        })?;
        let place = format!("{what} '{name}'");
        if !is_name(name) {
            return Err(ApiError::invalid(format!(
                "{place}: the name is not valid. Use at most 128 letters, digits, spaces, dashes and underscores, and begin and end with a letter or a digit."
            )));
        }
        let kind = members.get("@odata.type").and_then(Value::as_str).ok_or_else(|| {
            ApiError::invalid(format!("{place}: '@odata.type' is missing or not a string."))
        })?;
        let kind = kind.strip_prefix("#Microsoft.Azure.Search.").ok_or_else(|| {
            ApiError::invalid(format!(
                "{place}: '@odata.type' is '{kind}', but it must begin with '#Microsoft.Azure.Search.'."
            ))
        })?;
        Ok(Self { place, name, kind, members, read: RefCell::default() })
    }

    /// Creates the settings of a predefined component, without any properties.
    pub(super) fn defaults(
        place: String,
        name: &'a str,
        kind: &'a str,
        members: &'a Map<String, Value>,
    ) -> Self {
        Self { place, name, kind, members, read: RefCell::default() }
    }

    fn get(&self, key: &'static str) -> Option<&'a Value> {
        self.read.borrow_mut().insert(key);
        self.members.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, expected: &str) -> ApiError {
        ApiError::invalid(format!("{}: the property '{key}' must be {expected}.", self.place))
    }

    pub(super) fn missing(&self, key: &str) -> ApiError {
        ApiError::invalid(format!("{}: the property '{key}' is required.", self.place))
    }

    pub(super) fn boolean(&self, key: &'static str, default: bool) -> Result<bool, ApiError> {
        match self.get(key) {
            None => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| self.wrong(key, "true or false")),
        }
    }

    /// Reads an integer from `min` to `max`, both inclusive.
    pub(super) fn number(
        &self,
        key: &'static str,
        default: usize,
        min: usize,
        max: usize,
    ) -> Result<usize, ApiError> {
        let Some(value) = self.get(key) else { return Ok(default) };
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        number
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| self.wrong(key, &format!("an integer from {min} to {max}")))
    }

    /// Like [`ComponentSettings::number`]. The value -1 means none.
    pub(super) fn number_or_none(&self, key: &'static str, max: usize) -> Result<Option<usize>, ApiError> {
        match self.get(key) {
            None => Ok(None),
            Some(value) if value.as_i64() == Some(-1) => Ok(None),
            Some(_) => self.number(key, 0, 0, max).map(Some),
        }
    }

    pub(super) fn string(&self, key: &'static str) -> Result<Option<&'a str>, ApiError> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(|| self.wrong(key, "a string")),
        }
    }

    pub(super) fn required_string(&self, key: &'static str) -> Result<&'a str, ApiError> {
        self.string(key)?.ok_or_else(|| self.missing(key))
    }

    pub(super) fn character(&self, key: &'static str, default: char) -> Result<char, ApiError> {
        let Some(text) = self.string(key)? else { return Ok(default) };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok(c),
            _ => Err(self.wrong(key, "one character")),
        }
    }

    pub(super) fn strings(&self, key: &'static str) -> Result<Option<Vec<String>>, ApiError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let list = value.as_array().and_then(|values| {
            values.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
        });
        list.map(Some).ok_or_else(|| self.wrong(key, "an array of strings"))
    }

    pub(super) fn required_strings(&self, key: &'static str) -> Result<Vec<String>, ApiError> {
        let list = self.strings(key)?.ok_or_else(|| self.missing(key))?;
        if list.is_empty() {
            return Err(self.wrong(key, "an array with at least one string"));
        }
        Ok(list)
    }

    /// Reads a string that must be one of `choices`.
    pub(super) fn choice<T: Copy>(
        &self,
        key: &'static str,
        default: T,
        choices: &[(&str, T)],
    ) -> Result<T, ApiError> {
        match self.string(key)? {
            None => Ok(default),
            Some(word) => self.choose(key, word, choices),
        }
    }

    pub(super) fn choices<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Vec<T>, ApiError> {
        let words = self.strings(key)?.unwrap_or_default();
        words.iter().map(|word| self.choose(key, word, choices)).collect()
    }

    fn choose<T: Copy>(&self, key: &str, word: &str, choices: &[(&str, T)]) -> Result<T, ApiError> {
        choices.iter().find(|(known, _)| *known == word).map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
            self.wrong(key, &format!("one of {}, but it is '{word}'", known.join(", ")))
        })
    }

    /// Rejects properties that were not read. A misspelled option would otherwise have no effect.
    pub(super) fn finish(&self) -> Result<(), ApiError> {
        let read = self.read.borrow();
        let unknown = self
            .members
            .keys()
            .find(|key| !key.starts_with("@odata.") && *key != "name" && !read.contains(key.as_str()));
        match unknown {
            None => Ok(()),
            Some(key) => Err(ApiError::invalid(format!(
                "{}: the property '{key}' does not exist on type 'Microsoft.Azure.Search.{}'.",
                self.place, self.kind
            ))),
        }
    }
}

fn is_name(name: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    name.len() <= 128
        && name.chars().all(inside)
        && edge(name.chars().next())
        && edge(name.chars().next_back())
}
