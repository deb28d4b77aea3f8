//! Reading definitions: JSON values together with the place they stand at, so that every refusal names it.

use serde_json::{Map, Value};

use crate::ApiError;

/// A refusal of a definition, in the words that Azure puts before its reasons.
pub(crate) fn invalid_definition(reason: impl std::fmt::Display) -> ApiError {
    ApiError::invalid(format!("The request is invalid. Details: definition : {reason}"))
}

/// One JSON object of a definition. A member that is `null` counts as missing: services answer with nulls, and clients
/// send back what they were answered.
#[derive(Clone, Copy)]
pub(crate) struct ObjectReader<'a, 'p> {
    members: &'a Map<String, Value>,
    /// What the object is, in words: `field 'address/city'`.
    place: &'p str,
}

impl<'a, 'p> ObjectReader<'a, 'p> {
    pub(crate) fn new(value: &'a Value, place: &'p str) -> Result<Self, ApiError> {
        match value {
            Value::Object(members) => Ok(Self { members, place }),
            other => Err(invalid_definition(format!(
                "{place} must be a JSON object, not {}.",
                json_type_name(other)
            ))),
        }
    }

    pub(crate) fn members(&self) -> &'a Map<String, Value> {
        self.members
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.type_error(name, "a string", other)),
        }
    }

    /// A string that must be there and must not be empty.
    pub(crate) fn required_text(&self, name: &str) -> Result<&'a str, ApiError> {
        match self.text(name)? {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(invalid_definition(format!("{} needs a non-empty '{name}'.", self.place))),
        }
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(self.type_error(name, "true or false", other)),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => match value.as_f64().filter(|number| number.is_finite()) {
                Some(number) => Ok(Some(number)),
                None => Err(self.type_error(name, "a number", value)),
            },
        }
    }

    pub(crate) fn required_number(&self, name: &str) -> Result<f64, ApiError> {
        self.number(name)?
            .ok_or_else(|| invalid_definition(format!("{} needs the number '{name}'.", self.place)))
    }

    /// The elements of an array; none when it is missing.
    pub(crate) fn list(&self, name: &str) -> Result<&'a [Value], ApiError> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Value::Array(elements)) => Ok(elements),
            Some(other) => Err(self.type_error(name, "an array", other)),
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<&'a str>, ApiError> {
        let elements = self.list(name)?.iter();
        elements
            .map(|element| {
                element.as_str().ok_or_else(|| self.type_error(name, "an array of strings", element))
            })
            .collect()
    }

    fn type_error(&self, name: &str, wanted: &str, given: &Value) -> ApiError {
        invalid_definition(format!(
            "'{name}' of {} must be {wanted}, not {}.",
            self.place,
            json_type_name(given)
        ))
    }
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
