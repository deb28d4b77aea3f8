//! [`ReturnType`]: how the return type of a function becomes a result, decided by its traits.
//!
//! A handler for [`ToolEntry::new`](crate::ToolEntry::new) returns something that says by itself what it
//! becomes ([`IntoToolResult`]). A function with `#[tool]` may return any serialisable value as well, or a
//! `Result` of one. Rust cannot say "this, or else that" about a type in one trait, so the choice is made
//! where the type is known, by the order in which methods are found: the attribute writes
//! `(&&&returns).tool_result(value)`, and the first of [`ContentReturn`], [`StructuredReturn`] and [`SerializedReturn`] that
//! fits the type answers.
//!
//! ```
//! use bindpost_mcp_server::returns::*;
//!
//! #[derive(serde::Serialize)]
//! struct Order { id: u32 }
//!
//! let returns = Returns::<Result<Order, String>>::new();
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

/// Stands for a return type.
#[derive(Debug)]
pub struct ReturnType<T>(PhantomData<fn() -> T>);

impl<T> Default for ReturnType<T> {
    fn default() -> ReturnType<T> {
        ReturnType(PhantomData)
    }
}

impl<T> ReturnType<T> {
    /// The return type `T`.
    pub fn new() -> ReturnType<T> {
        ReturnType::default()
    }
}

/// A `Result`: the error is told, the value counts.
impl<T, E> ReturnType<Result<T, E>> {
    /// The type of the value.
    pub fn of_value(&self) -> ReturnType<T> {
        ReturnType::default()
    }

    /// The value, or what to tell.
    pub fn settle(&self, value: Result<T, E>) -> Result<T, ToolError>
    where
        E: Into<ToolError>,
    {
        value.map_err(Into::into)
    }
}

/// Any other type is its own value. The methods of `ReturnType<Result<…>>` come first.
pub trait InfallibleReturn<T> {
    /// The type of the value.
    fn of_value(&self) -> ReturnType<T>;
    /// The value.
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

/// What says by itself what it becomes: text, content, a whole result, `Json<T>`.
pub trait ContentReturn<T> {
    /// The schema of its structured content, if it has one.
    fn output_schema(&self) -> Option<Value>;
    /// What a tool answers.
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

/// What can be serialised and has a schema: structured content.
pub trait StructuredReturn<T> {
    /// Its schema.
    fn output_schema(&self) -> Option<Value>;
    /// What a tool answers.
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

/// What can be serialised: its JSON, as structured content too if it is an object.
pub trait SerializedReturn<T> {
    /// None.
    fn output_schema(&self) -> Option<Value>;
    /// What a tool answers.
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

/// Can be returned by a function with `#[tool]` or `#[resource]`: whatever can be serialised.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned by an entry",
    label = "this type cannot be written as JSON",
    note = "derive `serde::Serialize` for it; derive `schemars::JsonSchema` too and a tool gets an output schema",
    note = "or return text, `Content`, `CallToolResult` (tools), `ResourceContents` or bytes (resources)"
)]
pub trait Returnable: Serialize {}

impl<T: Serialize> Returnable for T {}

/// What says by itself what it becomes when it is read.
pub trait ResourceReturn<T> {
    /// The same.
    fn contents(&self, value: T) -> T;
}

impl<T: IntoResourceResult> ResourceReturn<T> for &ReturnType<T> {
    fn contents(&self, value: T) -> T {
        value
    }
}

/// What can be serialised: a resource with its JSON as text.
pub trait SerializedResourceReturn<T> {
    /// Its JSON.
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

/// Runs a function that waits without `.await` on a thread of its own, so that no other call waits for it.
/// A call that is given up is answered then, though the function goes on to its end.
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
    fn the_most_that_a_type_can_say_counts() {
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
    fn an_error_is_told() {
        let returns = ReturnType::<Result<Order, &'static str>>::new();
        assert_eq!(returns.settle(Err("sold out")).err().unwrap().to_string(), "sold out");
    }
}
