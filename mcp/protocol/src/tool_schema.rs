//! [`ToolSchema`]: the JSON Schema of a tool.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON Schema, as a value and optionally as the text to send. It dereferences to the value.
///
/// A [`Value`] sorts the members of objects. The text keeps the order in which an author declared them, and models
/// read the properties of a tool in that order.
///
/// ```
/// # use bindpost_mcp_protocol::ToolSchema;
/// let text = r#"{"type":"object","properties":{"to":{},"from":{}}}"#;
/// let schema = ToolSchema::from_text(text)?;
/// assert_eq!(schema["type"], "object");
/// assert_eq!(serde_json::to_string(&schema)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ToolSchema {
    value: Value,
    text: Option<Arc<RawValue>>,
}

impl ToolSchema {
    /// Creates a schema that is sent as this text. Objects must not have two members of one name.
    pub fn from_text(text: &str) -> Result<ToolSchema, serde_json::Error> {
        let raw: Box<RawValue> = serde_json::from_str(text)?;
        Ok(ToolSchema { value: serde_json::from_str(raw.get())?, text: Some(raw.into()) })
    }

    /// Returns the text to send, if the schema was created from a text.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref().map(RawValue::get)
    }
}

impl From<Value> for ToolSchema {
    fn from(value: Value) -> ToolSchema {
        ToolSchema { value, text: None }
    }
}

impl From<ToolSchema> for Value {
    fn from(schema: ToolSchema) -> Value {
        schema.value
    }
}

impl Deref for ToolSchema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

/// Compares the values. The order of members is not part of a schema's meaning.
impl PartialEq for ToolSchema {
    fn eq(&self, other: &ToolSchema) -> bool {
        self.value == other.value
    }
}

impl PartialEq<Value> for ToolSchema {
    fn eq(&self, other: &Value) -> bool {
        self.value == *other
    }
}

impl fmt::Debug for ToolSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl Serialize for ToolSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.text {
            Some(text) => text.serialize(serializer),
            None => self.value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ToolSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ToolSchema, D::Error> {
        Value::deserialize(deserializer).map(ToolSchema::from)
    }
}
