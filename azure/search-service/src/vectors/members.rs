//! Reads JSON objects with errors that name the position.

use serde_json::{Map, Value};

use crate::ApiError;

/// An object at a path such as `vectorSearch.profiles[0]`. Null members are treated as missing, because
/// clients send them.
pub(super) struct VectorJsonObject<'a> {
    pub place: String,
    map: &'a Map<String, Value>,
}

impl<'a> VectorJsonObject<'a> {
    pub(super) fn new(place: String, value: &'a Value) -> Result<Self, ApiError> {
        match value {
            Value::Object(map) => Ok(Self { place, map }),
            _ => Err(ApiError::invalid(format!("'{place}' must be an object."))),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn error(&self, name: &str, message: impl std::fmt::Display) -> ApiError {
        ApiError::invalid(format!("'{}.{name}' {message}", self.place))
    }

    /// Rejects members that are not in the list. Annotations, whose names contain an @, are ignored.
    pub(super) fn allow_only(&self, names: &[&str]) -> Result<(), ApiError> {
        let unknown = self.map.keys().find(|name| !names.contains(&name.as_str()) && !name.contains('@'));
        unknown.map_or(Ok(()), |name| {
            Err(self.error(name, format_args!("is not known. Use one of: {}.", names.join(", "))))
        })
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.error(name, "must be a string."))
    }

    pub(super) fn needed_text(&self, name: &str) -> Result<&'a str, ApiError> {
        let text = self.text(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| self.error(name, "is missing."))
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.error(name, "must be true or false."))
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| self.error(name, "must be a number."))
    }

    pub(super) fn integer(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<Option<usize>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let integer = value.as_u64().and_then(|value| usize::try_from(value).ok());
        integer.filter(|integer| range.contains(integer)).map(Some).ok_or_else(|| {
            let (least, most) = range.into_inner();
            self.error(name, format_args!("must be a whole number from {least} to {most}, but is {value}."))
        })
    }

    /// Returns the objects of a list, or none if it is missing.
    pub(super) fn list(&self, name: &str) -> Result<Vec<VectorJsonObject<'a>>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or_else(|| self.error(name, "must be an array."))?;
        let place = |at| format!("{}.{name}[{at}]", self.place);
        items.iter().enumerate().map(|(at, item)| VectorJsonObject::new(place(at), item)).collect()
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<VectorJsonObject<'a>>, ApiError> {
        let inner =
            self.get(name).map(|value| VectorJsonObject::new(format!("{}.{name}", self.place), value));
        inner.transpose()
    }
}
