//! How a handler's parameters are filled: [`Args`], [`Context`], and whatever implements [`FromCall`].

use std::future::Future;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Context;
use crate::error::ToolError;

/// What a handler's parameters are filled from.
#[derive(Debug)]
pub struct Parts {
    /// The call.
    pub context: Context,
    /// The arguments, decoded when they were validated; taken by the parameter that wants them.
    pub arguments: Option<Value>,
}

/// Can be a parameter of a handler.
pub trait FromCall: Sized + Send {
    /// Fills the parameter.
    fn from_call(parts: &mut Parts) -> Result<Self, ToolError>;

    /// The schema of the arguments, if this parameter stands for them.
    fn schema() -> Option<Value> {
        None
    }
}

impl FromCall for Context {
    fn from_call(parts: &mut Parts) -> Result<Context, ToolError> {
        Ok(parts.context.clone())
    }
}

/// The arguments, as a type of yours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send> FromCall for Args<T> {
    fn from_call(parts: &mut Parts) -> Result<Args<T>, ToolError> {
        let arguments = match parts.arguments.take() {
            Some(mut arguments) => {
                make_whole(&mut arguments);
                T::deserialize(arguments)
            }
            None => serde_json::from_str(parts.context.arguments_json()),
        };
        arguments.map(Args).map_err(|error| ToolError::new(format!("invalid arguments: {error}")))
    }

    fn schema() -> Option<Value> {
        Some(schema_of::<T>())
    }
}

/// JSON Schema takes `1.0` for an integer, and models write it; Rust's integers do not.
fn make_whole(value: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number.as_f64()
                && float.fract() == 0.0
                && float.abs() <= EXACT
            {
                *number = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(members) => members.values_mut().for_each(make_whole),
        _ => {}
    }
}

/// The arguments as the JSON text the client wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawArguments(pub String);

impl FromCall for RawArguments {
    fn from_call(parts: &mut Parts) -> Result<RawArguments, ToolError> {
        Ok(RawArguments(parts.context.arguments_json().to_owned()))
    }
}

/// The arguments as any JSON object.
impl FromCall for Value {
    fn from_call(parts: &mut Parts) -> Result<Value, ToolError> {
        match parts.arguments.take() {
            Some(arguments) => Ok(arguments),
            None => serde_json::from_str(parts.context.arguments_json())
                .map_err(|error| ToolError::new(format!("invalid arguments: {error}"))),
        }
    }
}

/// A value as structured content; its schema becomes the tool's `outputSchema`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// The schema of a type, without what only repeats its name.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
    schema.remove("$schema");
    schema.remove("title");
    schema.to_value()
}

/// An async function whose parameters all implement [`FromCall`].
pub trait Handler<Marker, R>: Clone + Send + Sync + 'static {
    /// Fills the parameters and runs the function.
    fn run(&self, parts: Parts) -> impl Future<Output = Result<R, ToolError>> + Send;
    /// The schema of its arguments, if one of its parameters has one.
    fn schema() -> Option<Value>;
}

macro_rules! handler {
    ($($parameter:ident),*) => {
        impl<F, Fut, R, $($parameter),*> Handler<($($parameter,)*), R> for F
        where
            F: Fn($($parameter),*) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = R> + Send,
            $($parameter: FromCall,)*
        {
            #[allow(non_snake_case, unused_mut, unused_variables, reason = "one macro for every count")]
            fn run(&self, mut parts: Parts) -> impl Future<Output = Result<R, ToolError>> + Send {
                async move {
                    $(let $parameter = $parameter::from_call(&mut parts)?;)*
                    Ok(self($($parameter),*).await)
                }
            }

            fn schema() -> Option<Value> {
                let schemas: [Option<Value>; _] = [$($parameter::schema(),)* None];
                schemas.into_iter().flatten().next()
            }
        }
    };
}

handler!();
handler!(P1);
handler!(P1, P2);
handler!(P1, P2, P3);
handler!(P1, P2, P3, P4);
handler!(P1, P2, P3, P4, P5);
handler!(P1, P2, P3, P4, P5, P6);
