//! Reads the members of a request body by name and type.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::ApiError;

/// The body of a request, or the query parameters of a GET request with the names of the body.
pub struct RequestParameters<'a> {
    members: &'a Map<String, Value>,
}

impl<'a> RequestParameters<'a> {
    /// Rejects members that are not in `known`, because a typing error would silently change the result.
    pub fn new(body: &'a Value, known: &[&str]) -> Result<Self, ApiError> {
        let Value::Object(members) = body else {
            return Err(ApiError::invalid("The body of the request must be a JSON object."));
        };
        if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
            let message = format!(
                "The request is invalid. Details: parameters : '{name}' is not a parameter of this request. Use one of: {}.",
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

    /// Returns a list of strings. A single string is a list of one.
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

    /// Returns names separated by commas. A list of strings is accepted as well, because version 12 of
    /// the Python package sends lists to suggest and autocomplete.
    pub fn names(&self, name: &str) -> Result<Option<Cow<'a, str>>, ApiError> {
        match self.get(name) {
            Some(Value::Array(_)) => Ok(Some(self.texts(name)?.join(",").into())),
            _ => Ok(self.text(name)?.map(Cow::Borrowed)),
        }
    }

    /// Returns one of the given values. The first one is the default.
    pub fn choice<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, ApiError> {
        let Some(given) = self.text(name)? else { return Ok(None) };
        match words.iter().find(|(word, _)| word.eq_ignore_ascii_case(given)) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                let message =
                    format!("'{given}' is not a valid value of '{name}'. Use one of: {}.", words.join(", "));
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::RequestParameters;

    #[test]
    fn names_are_comma_separated_or_a_list() {
        let names = |select| {
            let body = json!({"select": select});
            let given = RequestParameters::new(&body, &["select"]).unwrap();
            given.names("select").map(|names| names.map(|names| names.into_owned())).map_err(|_| ())
        };
        assert_eq!(names(json!("id,name")), Ok(Some("id,name".to_owned())));
        assert_eq!(names(json!(["id", "name"])), Ok(Some("id,name".to_owned())));
        assert_eq!(names(json!(null)), Ok(None));
        assert_eq!(names(json!([1])), Err(()));
        assert_eq!(names(json!(1)), Err(()));
    }
}
