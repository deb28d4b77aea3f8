//! [`ReturnType`]: converts the return value of a function into a result, depending on the traits
//! of its type.
//!
//! A handler for [`ToolEntry::new`](crate::ToolEntry::new) returns a type that implements
//! [`IntoToolResult`]. A function with `#[tool]` may also return any serialisable value, or a `Result` of
//! one. One trait cannot express this choice, because Rust has no specialization. Therefore the choice is
//! made by method resolution: the attribute generates `(&&&returns).tool_result(value)`, and Rust selects
//! the first of [`ContentReturn`], [`StructuredReturn`] and [`SerializedReturn`] that the type implements.
//!
//! ```
//! use bindpost_mcp_server::returns::*;
//!
//! #[derive(serde::Serialize)]
//! struct Order { id: u32 }
//!
//! let returns = ReturnType::<Result<Order, String>>::new();
//! let value = returns.settle(Ok(Order { id: 7 }))?;
//! let result = (&&&returns.of_value()).tool_result(value)?;
//! assert_eq!(result.structured_content, Some(serde_json::json!({"id": 7})));
//! # Ok::<(), bindpost_mcp_server::ToolError>(())
//! ```

use std::marker::PhantomData;

use bindpost_mcp_protocol::CallToolResult;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::catalog::resource::IntoResourceResult;
use crate::catalog::tool::IntoToolResult;
use crate::error::ToolError;
use crate::handler::extract::Json;
use crate::handler::schema;

/// A marker for the return type `T`.
#[derive(Debug)]
pub struct ReturnType<T>(PhantomData<fn() -> T>);

impl<T> Default for ReturnType<T> {
    fn default() -> ReturnType<T> {
        ReturnType(PhantomData)
    }
}

impl<T> ReturnType<T> {
    /// Returns the marker.
    pub fn new() -> ReturnType<T> {
        ReturnType::default()
    }
}

/// For a `Result`, an error becomes a [`ToolError`] and the type of the value decides the result.
impl<T, E> ReturnType<Result<T, E>> {
    /// Returns the marker of the value's type.
    pub fn of_value(&self) -> ReturnType<T> {
        ReturnType::default()
    }

    /// Returns the value, or the error as a [`ToolError`].
    pub fn settle(&self, value: Result<T, E>) -> Result<T, ToolError>
    where
        E: ReturnableError,
    {
        value.map_err(Into::into)
    }
}

/// An error that a function with an attribute can return: every type that converts to a [`ToolError`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of an entry",
    label = "the model needs a text for `{Self}`",
    note = "return `ToolError`, and convert with `.or_tool_error(\"…\")?`, with `use bindpost::OrToolError;`",
    note = "or implement `bindpost::IntoToolError` for `{Self}`, if it is a type of yours"
)]
pub trait ReturnableError: Into<ToolError> {}

impl<E: Into<ToolError>> ReturnableError for E {}

/// A return type that is not a `Result`. The methods of `ReturnType<Result<…>>` have precedence.
pub trait InfallibleReturn<T> {
    /// Returns the marker of the value's type.
    fn of_value(&self) -> ReturnType<T>;
    /// Returns the value, which is never an error.
    fn settle(&self, value: T) -> Result<T, ToolError>;
}

impl<T> InfallibleReturn<T> for ReturnType<T> {
    fn of_value(&self) -> ReturnType<T> {
        ReturnType::default()
    }
    fn settle(&self, value: T) -> Result<T, ToolError> {
        Ok(value)
    }
}

/// A return type that implements [`IntoToolResult`]: text, content, a whole result, `Json<T>`.
pub trait ContentReturn<T> {
    /// Returns the schema of the structured content, if the type has one.
    fn output_schema(&self) -> Option<Value>;
    /// Converts the value into the result of a tool.
    fn tool_result(&self, value: T) -> Result<CallToolResult, ToolError>;
}

impl<T: IntoToolResult> ContentReturn<T> for &&ReturnType<T> {
    fn output_schema(&self) -> Option<Value> {
        T::output_schema()
    }
    fn tool_result(&self, value: T) -> Result<CallToolResult, ToolError> {
        value.into_tool_result()
    }
}

/// A return type that can be serialised and has a schema. It becomes structured content.
pub trait StructuredReturn<T> {
    /// Returns the schema of the type.
    fn output_schema(&self) -> Option<Value>;
    /// Converts the value into the result of a tool.
    fn tool_result(&self, value: T) -> Result<CallToolResult, ToolError>;
}

impl<T: Serialize + JsonSchema> StructuredReturn<T> for &ReturnType<T> {
    fn output_schema(&self) -> Option<Value> {
        Some(schema::derive_output::<T>())
    }
    fn tool_result(&self, value: T) -> Result<CallToolResult, ToolError> {
        to_json(&value).map(CallToolResult::structured)
    }
}

/// A return type that can only be serialised. It becomes JSON text, and structured content too if it
/// is an object.
pub trait SerializedReturn<T> {
    /// Returns `None`, because the type has no schema.
    fn output_schema(&self) -> Option<Value>;
    /// Converts the value into the result of a tool.
    fn tool_result(&self, value: T) -> Result<CallToolResult, ToolError>
    where
        T: Returnable;
}

impl<T> SerializedReturn<T> for ReturnType<T> {
    fn output_schema(&self) -> Option<Value> {
        None
    }
    fn tool_result(&self, value: T) -> Result<CallToolResult, ToolError>
    where
        T: Returnable,
    {
        let value = to_json(&value)?;
        Ok(match value {
            Value::Object(_) => CallToolResult::structured(value),
            Value::String(text) => CallToolResult::text(text),
            other => CallToolResult::text(other.to_string()),
        })
    }
}

/// A type that a function with `#[tool]` or `#[resource]` can return: every serialisable type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned by an entry",
    label = "this type cannot be written as JSON",
    note = "derive `serde::Serialize` for it; derive `schemars::JsonSchema` too and a tool gets an output schema",
    note = "or return text, `Content`, `CallToolResult` (tools), `ResourceContents` or bytes (resources)"
)]
pub trait Returnable: Serialize {}

impl<T: Serialize> Returnable for T {}

/// A return type that implements [`IntoResourceResult`].
pub trait ResourceReturn<T> {
    /// Returns the value unchanged.
    fn contents(&self, value: T) -> T;
}

impl<T: IntoResourceResult> ResourceReturn<T> for &ReturnType<T> {
    fn contents(&self, value: T) -> T {
        value
    }
}

/// A return type that can only be serialised. It becomes a resource with JSON text.
pub trait SerializedResourceReturn<T> {
    /// Wraps the value in [`Json`].
    fn contents(&self, value: T) -> Json<T>
    where
        T: Returnable;
}

impl<T> SerializedResourceReturn<T> for ReturnType<T> {
    fn contents(&self, value: T) -> Json<T>
    where
        T: Returnable,
    {
        Json(value)
    }
}

/// Runs a blocking function on its own thread, so that it does not block other calls. If the call is
/// cancelled or times out, the function still runs to its end.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => Ok(value),
        Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
        Err(ended) => Err(ToolError::with_source("the server is shutting down", ended)),
    }
}

pub(crate) fn to_json(value: &impl Serialize) -> Result<Value, ToolError> {
    serde_json::to_value(value)
        .map_err(|error| ToolError::with_source("the result cannot be written as JSON", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Serialize, JsonSchema)]
    struct Order {
        id: u32,
    }

    #[derive(Serialize)]
    struct Bare(&'static str);

    macro_rules! result_of {
        ($type:ty, $value:expr) => {{
            let returns = ReturnType::<$type>::new();
            let value = returns.settle($value).unwrap();
            let schema = (&&&returns.of_value()).output_schema();
            ((&&&returns.of_value()).tool_result(value).unwrap(), schema)
        }};
    }

    #[test]
    fn the_most_specific_conversion_is_selected() {
        let (text, schema) = result_of!(&'static str, "hello");
        assert_eq!((text, schema), (CallToolResult::text("hello"), None));
        let (number, schema) = result_of!(Result<f64, String>, Ok(1.5));
        assert_eq!((number, schema), (CallToolResult::text("1.5"), None));
        let (order, schema) = result_of!(Result<Order, ToolError>, Ok(Order { id: 7 }));
        assert_eq!(order, CallToolResult::structured(json!({"id": 7})));
        assert_eq!(schema.unwrap()["required"], json!(["id"]));
        let (list, schema) = result_of!(Vec<Order>, vec![Order { id: 7 }]);
        assert_eq!(list.structured_content, Some(json!([{"id": 7}])));
        assert_eq!(schema.unwrap()["type"], "array");
        let (bare, schema) = result_of!(Bare, Bare("as text"));
        assert_eq!((bare, schema), (CallToolResult::text("as text"), None));
    }

    #[test]
    fn an_error_becomes_a_tool_error() {
        let returns = ReturnType::<Result<Order, &'static str>>::new();
        assert_eq!(returns.settle(Err("sold out")).err().unwrap().to_string(), "sold out");
    }
}
