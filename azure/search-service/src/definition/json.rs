//! Reads definitions. JSON values carry their place in the definition, so that every error message names it.

use serde_json::{Map, Value};

use crate::ApiError;

/// Creates the error for an invalid definition, with the prefix that Azure AI Search uses.
pub(crate) fn invalid_definition(reason: impl std::fmt::Display) -> ApiError {
    ApiError::invalid(format!("The request is invalid. Details: definition : {reason}"))
}

/// One JSON object of a definition. A member that is `null` is treated as missing, because services
/// return nulls and clients send them back.
#[derive(Clone, Copy)]
pub(crate) struct ObjectReader<'a, 'p> {
    members: &'a Map<String, Value>,
    /// A description of the object, such as `field 'address/city'`.
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

    /// Returns a string that must exist and must not be empty.
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

    /// Returns the elements of an array. Empty if the array is missing.
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
