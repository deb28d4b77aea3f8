//! The arguments of a call, already validated against the tool's schema.

use bindpost_mcp_server::{CallParts, Context};
use serde_json::{Map, Value};

use crate::service::failure::{Kind, ServiceFailure};

/// Maximum length of a name in the service.
const LONGEST_NAME: usize = 128;

/// The arguments and the context of a call.
pub(crate) struct ToolArguments {
    pub(crate) context: Context,
    members: Map<String, Value>,
}

impl ToolArguments {
    pub(crate) fn from_parts(mut parts: CallParts) -> ToolArguments {
        let mut members = match parts.arguments.take() {
            Some(Value::Object(members)) => members,
            _ => serde_json::from_str(parts.context.arguments_json()).unwrap_or_default(),
        };
        // In JSON Schema `5.0` is an integer, so it is accepted as one.
        for value in members.values_mut() {
            let whole = |float: &f64| float.fract() == 0.0 && (0.0..1e15).contains(float);
            if let Some(float) = value.as_f64().filter(whole).filter(|_| value.is_f64()) {
                *value = (float as u64).into();
            }
        }
        ToolArguments { context: parts.context, members }
    }

    pub(crate) fn into_parts(self) -> (Context, Map<String, Value>) {
        (self.context, self.members)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Returns all arguments.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.members.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.as_str(), value))
    }

    /// Returns a name for a path. It must not be empty or contain control characters.
    pub(crate) fn name(&self, name: &str) -> Result<&str, ServiceFailure> {
        let text = self.text(name).unwrap_or_default();
        let wrong = if text.trim().is_empty() {
            "is empty; set it to a name"
        } else if text.chars().any(char::is_control) {
            "contains control characters, which are invalid in names"
        } else if text.chars().count() > LONGEST_NAME {
            "is longer than 128 characters, the maximum length of a name"
        } else {
            return Ok(text);
        };
        Err(ServiceFailure::new(Kind::InvalidRequest, format!("`{name}` {wrong}")))
    }

    pub(crate) fn whole_number(&self, name: &str) -> Option<u64> {
        self.get(name)?.as_u64()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// Returns names that are one string with commas, or an array, as one string.
    pub(crate) fn joined_names(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")),
            _ => None,
        }
    }

    /// Returns the caller, for cursors.
    pub(crate) fn caller(&self) -> Option<&str> {
        self.context.caller().id()
    }

    /// Returns the caller's id of the request.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.text("clientRequestId")
    }
}
