//! The members of a request's body, read by name and type.

use serde_json::{Map, Value};

use crate::ApiError;

/// The body of a request, or the query options of a GET in the same words.
pub struct Parameters<'a> {
    members: &'a Map<String, Value>,
}

impl<'a> Parameters<'a> {
    /// Members that are not among `known` are refused, because a typo would silently change what is found.
    pub fn new(body: &'a Value, known: &[&str]) -> Result<Self, ApiError> {
        let Value::Object(members) = body else {
            return Err(ApiError::invalid("The body of the request must be a JSON object."));
        };
        if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
            let message = format!(
                "The request is invalid. Details: parameters : '{name}' is not a parameter of this request. There are {}.",
                known.join(", ")
            );
            return Err(ApiError::invalid(message));
        }
        Ok(Self { members })
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub fn raw(&self, name: &str) -> Option<&'a Value> {
        self.get(name)
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "a string", other)),
        }
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(wrong(name, "true or false", other)),
        }
    }

    pub fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value.as_i64().map(Some).ok_or_else(|| wrong(name, "a whole number", value)),
        }
    }

    pub fn number(&self, name: &str) -> Result<Option<f64>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value.as_f64().map(Some).ok_or_else(|| wrong(name, "a number", value)),
        }
    }

    /// A list of strings; a single string counts as a list of one.
    pub fn texts(&self, name: &str) -> Result<Vec<String>, ApiError> {
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            Some(Value::Array(list)) => {
                let text = |value: &Value| value.as_str().map(str::to_owned);
                list.iter()
                    .map(|value| text(value).ok_or_else(|| wrong(name, "a list of strings", value)))
                    .collect()
            }
            Some(other) => Err(wrong(name, "a list of strings", other)),
        }
    }

    /// One of a few words; the first is the default.
    pub fn choice<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, ApiError> {
        let Some(given) = self.text(name)? else { return Ok(None) };
        match words.iter().find(|(word, _)| word.eq_ignore_ascii_case(given)) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                let message =
                    format!("'{given}' is not a value of '{name}'; there are {}.", words.join(", "));
                Err(ApiError::parameter(name, message))
            }
        }
    }
}

fn wrong(name: &str, expected: &str, found: &Value) -> ApiError {
    let found = match found {
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
        Value::String(_) => "a string",
        Value::Number(_) => "a number",
        Value::Bool(_) | Value::Null => "a literal",
    };
    ApiError::parameter(name, format!("'{name}' must be {expected}, but it is {found}."))
}
