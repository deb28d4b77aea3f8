//! One component definition of an index: its name, its type, and the properties that components share.

use bindpost_azure_search_model::ApiError;
use bindpost_net_json::{JsonPlace, ObjectReader};
use serde_json::{Map, Value};

/// A definition such as `{"@odata.type":…,"name":…,…}`.
pub(super) struct ComponentSettings<'a> {
    /// The name at the start of error messages, such as `Token filter 'mine'`.
    pub(super) place: String,
    pub(super) name: &'a str,
    /// The part of `@odata.type` after the last dot.
    pub(super) kind: &'a str,
    pub(super) given: ObjectReader<'a, ApiError>,
}

impl<'a> ComponentSettings<'a> {
    /// Reads the definition of a component such as a `Token filter`.
    pub(super) fn new(what: &str, given: &ObjectReader<'a, ApiError>) -> Result<Self, ApiError> {
        let name = given.required_text("name")?;
        let place = format!("{what} '{name}'");
        if !is_name(name) {
            return Err(ApiError::invalid(format!(
                "{place}: the name is not valid. Use at most 128 letters, digits, spaces, dashes and underscores, and begin and end with a letter or a digit."
            )));
        }
        let given = ObjectReader::from_members(given.members(), component_place(&place)).track_reads();
        given.value("name");
        let kind = given.required_text("@odata.type")?;
        let kind = kind.strip_prefix("#Microsoft.Azure.Search.").ok_or_else(|| {
            let problem = format_args!("must begin with '#Microsoft.Azure.Search.', not '{kind}'");
            given.error("@odata.type", problem)
        })?;
        Ok(Self { place, name, kind, given })
    }

    /// Creates the settings of a predefined component, without any properties.
    pub(super) fn defaults(
        place: String,
        name: &'a str,
        kind: &'a str,
        members: &'a Map<String, Value>,
    ) -> Self {
        let given = ObjectReader::from_members(members, component_place(&place));
        Self { place, name, kind, given }
    }

    /// Reads a whole number. The value -1 means none.
    pub(super) fn number_or_none(&self, key: &str, max: usize) -> Result<Option<usize>, ApiError> {
        match self.given.value(key).and_then(Value::as_i64) {
            Some(-1) => Ok(None),
            _ => self.given.integer_in(key, 0..=max),
        }
    }

    pub(super) fn character(&self, key: &str, default: char) -> Result<char, ApiError> {
        let Some(text) = self.given.text(key)? else { return Ok(default) };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok(c),
            _ => Err(self.given.error(key, "must be one character")),
        }
    }

    /// Reads an array of strings. `None` if it is absent.
    pub(super) fn strings(&self, key: &str) -> Result<Option<Vec<String>>, ApiError> {
        let texts = self.given.texts(key)?;
        Ok(self.given.value(key).map(|_| texts.into_iter().map(str::to_owned).collect()))
    }

    /// Reads an array of at least one string.
    pub(super) fn required_strings(&self, key: &str) -> Result<Vec<String>, ApiError> {
        let list = self.strings(key)?.ok_or_else(|| self.given.missing(key))?;
        if list.is_empty() { Err(self.given.error(key, "must not be empty")) } else { Ok(list) }
    }

    /// Rejects properties that were not read. A misspelled option would otherwise have no effect.
    pub(super) fn finish(&self) -> Result<(), ApiError> {
        self.given.unread().map_or(Ok(()), |name| {
            let problem = format_args!("does not exist on type 'Microsoft.Azure.Search.{}'", self.kind);
            Err(self.given.error(name, problem))
        })
    }
}

/// The place of a component in the middle of a sentence, such as `token filter 'mine'`.
fn component_place(place: &str) -> JsonPlace {
    let (first, rest) = place.split_at_checked(1).unwrap_or_default();
    JsonPlace::of(format!("{}{rest}", first.to_lowercase()))
}

fn is_name(name: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    name.len() <= 128
        && name.chars().all(inside)
        && edge(name.chars().next())
        && edge(name.chars().next_back())
}
