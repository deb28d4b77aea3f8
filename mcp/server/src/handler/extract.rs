//! The parameters of handlers: [`Args`], [`State`], [`Context`], and all types that implement [`FromCall`].

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::future::Future;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ToolError;
use crate::handler::context::Context;
use crate::handler::schema;
use crate::handler::signature::Signature;

/// The source of a handler's parameters.
#[derive(Debug)]
pub struct CallParts {
    /// The call.
    pub context: Context,
    /// The arguments, if they were decoded for validation. A parameter may take them out.
    pub arguments: Option<Value>,
    /// Whether every argument is a string: the arguments of a prompt, or the variables of a URI.
    pub(crate) are_texts: bool,
}

impl CallParts {
    pub(crate) fn new(context: Context, arguments: Option<Value>) -> CallParts {
        CallParts { context, arguments, are_texts: false }
    }

    pub(crate) fn with_text_arguments(context: Context, arguments: Option<Value>) -> CallParts {
        CallParts { context, arguments, are_texts: true }
    }

    fn arguments(&mut self) -> Result<&mut Value, ToolError> {
        let context = &self.context;
        match &mut self.arguments {
            Some(arguments) => Ok(arguments),
            none => Ok(none.insert(serde_json::from_str(context.arguments_json()).map_err(invalid)?)),
        }
    }

    pub(crate) fn has_argument(&mut self, name: &str) -> Result<bool, ToolError> {
        Ok(self.arguments()?.get(name).is_some_and(|value| !value.is_null()))
    }

    pub(crate) fn give_argument(&mut self, name: &str, value: Value) -> Result<(), ToolError> {
        if let Value::Object(arguments) = self.arguments()? {
            arguments.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// Takes the argument of this name out.
    pub(crate) fn take_argument(&mut self, name: &str) -> Result<Option<Value>, ToolError> {
        Ok(self.arguments()?.get_mut(name).map(Value::take))
    }
}

fn invalid(error: serde_json::Error) -> ToolError {
    ToolError::new(format!("invalid arguments: {error}"))
}

/// A type that can be a parameter of a handler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be filled from a call",
    label = "not a parameter of a handler",
    note = "take `Args<T>` for the arguments, `State<T>` for shared state (`T` is `Clone`) or `Context` for the call"
)]
pub trait FromCall: Sized + Send {
    /// Fills the parameter.
    fn from_call(parts: &mut CallParts) -> Result<Self, ToolError>;

    /// Adds the needs of the parameter to the signature: arguments or state.
    fn describe(_signature: &mut Signature) {}
}

impl FromCall for Context {
    fn from_call(parts: &mut CallParts) -> Result<Context, ToolError> {
        Ok(parts.context.clone())
    }

    fn describe(signature: &mut Signature) {
        signature.sees_the_call();
    }
}

/// A parameter with all arguments, decoded as `T`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send> FromCall for Args<T> {
    fn from_call(parts: &mut CallParts) -> Result<Args<T>, ToolError> {
        let arguments = match parts.arguments.take() {
            Some(mut arguments) => {
                normalize_integers(&mut arguments);
                T::deserialize(arguments)
            }
            None => serde_json::from_str(parts.context.arguments_json()),
        };
        arguments.map(Args).map_err(invalid)
    }

    fn describe(signature: &mut Signature) {
        signature.takes_all(schema::derive::<T>());
    }
}

/// A parameter with a value that was added with [`ServerBuilder::state`](crate::ServerBuilder::state). It
/// is found by its type.
///
/// ```
/// use bindpost_mcp_server::{Server, State, ToolEntry};
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
///
/// async fn count(State(counter): State<Arc<AtomicU32>>) -> u32 {
///     counter.fetch_add(1, Ordering::Relaxed) + 1
/// }
///
/// let server = Server::builder("counter", "1.0.0")
///     .state(Arc::new(AtomicU32::new(0)))
///     .tool(ToolEntry::new("count", count))
///     .build()
///     .unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromCall for State<T> {
    fn from_call(parts: &mut CallParts) -> Result<State<T>, ToolError> {
        // Entries whose declared state is missing are rejected at start. So this handler did not declare it.
        let missing = || ToolError::new("the server has no state of the type that the handler needs");
        parts.context.state::<T>().cloned().map(State).ok_or_else(missing)
    }

    fn describe(signature: &mut Signature) {
        signature.needs_state::<T>();
    }
}

/// The values that handlers share, one of each type.
#[derive(Default)]
pub(crate) struct StateMap(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl std::fmt::Debug for StateMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StateMap").field(&self.0.len()).finish()
    }
}

impl StateMap {
    /// Adds a value. Returns `false` if there was another one of its type.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) -> bool {
        self.0.insert(TypeId::of::<T>(), Box::new(value)).is_none()
    }

    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// Checks that all state that a signature needs exists.
    pub(crate) fn check_signature(&self, signature: &Signature) -> Result<(), String> {
        let missing = signature.states().iter().filter(|(id, _)| !self.0.contains_key(id));
        let names: Vec<String> = missing.map(|(_, name)| format!("State<{name}>")).collect();
        if names.is_empty() {
            return Ok(());
        }
        let names = names.join(" and ");
        Err(format!("it needs {names}, which the server does not have; add `.state(…)` to the server"))
    }
}

/// Converts floats such as `1.0` to integers. JSON Schema accepts them as integers, but Rust's integer
/// types do not.
pub(crate) fn normalize_integers(value: &mut Value) {
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
        Value::Array(items) => items.iter_mut().for_each(normalize_integers),
        Value::Object(members) => members.values_mut().for_each(normalize_integers),
        _ => {}
    }
}

/// A parameter with the arguments as the JSON text that the client wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawArguments(pub String);

impl FromCall for RawArguments {
    fn from_call(parts: &mut CallParts) -> Result<RawArguments, ToolError> {
        Ok(RawArguments(parts.context.arguments_json().to_owned()))
    }

    fn describe(signature: &mut Signature) {
        signature.takes_all(Value::Bool(true));
    }
}

/// A return value that becomes structured content. Its schema becomes the tool's `outputSchema`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// An async function whose parameters all implement [`FromCall`].
pub trait Handler<Marker, R>: Clone + Send + Sync + 'static {
    /// Fills the parameters and runs the function.
    fn run(&self, parts: CallParts) -> impl Future<Output = Result<R, ToolError>> + Send;
    /// Returns the signature: the arguments and the state that the parameters need.
    fn signature() -> Signature;
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
            fn run(&self, mut parts: CallParts) -> impl Future<Output = Result<R, ToolError>> + Send {
                async move {
                    $(let $parameter = $parameter::from_call(&mut parts)?;)*
                    Ok(self($($parameter),*).await)
                }
            }

            #[allow(unused_mut, reason = "one macro for every count")]
            fn signature() -> Signature {
                let mut signature = Signature::new();
                $($parameter::describe(&mut signature);)*
                signature
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
