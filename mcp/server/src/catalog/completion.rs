//! `completion/complete`: suggestions for arguments of prompts and variables of resource templates.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::lifecycle::{CompleteParams, Completion, CompletionReference};
use serde_json::{Value, json};

use crate::call::{Call, CallTarget, HandlerOutput, RunningCall, TaskStart};
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::{ProtocolError, ToolError};
#[cfg(doc)]
use crate::handler::context::Context;
use crate::handler::extract::{CallParts, FromCall};
use crate::handler::nearest::describe_unknown;
use crate::handler::signature::Signature;
use crate::transport::HeaderValues;

/// Suggests values for an argument.
#[derive(Clone)]
pub(crate) enum ArgumentCompleter {
    /// A synchronous function.
    Now(Arc<Suggest>),
    /// A function that waits, or that needs the call.
    Later(Arc<SuggestLater>),
}

type Suggest = dyn Fn(&str) -> Vec<String> + Send + Sync;
type SuggestLater = dyn Fn(String, CallParts) -> Suggesting + Send + Sync;

/// The future of a completer.
pub(crate) type Suggesting = Pin<Box<dyn Future<Output = Result<Vec<String>, ToolError>> + Send>>;

impl ArgumentCompleter {
    pub(crate) fn new(completer: impl Fn(&str) -> Vec<String> + Send + Sync + 'static) -> ArgumentCompleter {
        ArgumentCompleter::Now(Arc::new(completer))
    }

    pub(crate) fn new_async<Fut>(
        completer: impl Fn(String) -> Fut + Send + Sync + 'static,
    ) -> ArgumentCompleter
    where
        Fut: Future<Output = Result<Vec<String>, ToolError>> + Send + 'static,
    {
        ArgumentCompleter::Later(Arc::new(move |typed, _| Box::pin(completer(typed))))
    }

    /// Answers with the suggestions, at once or with a call that waits for them.
    fn start(&self, inbound: InboundRequest, typed: String, timeout: Option<Duration>) -> DispatchOutcome {
        let suggest = match self {
            ArgumentCompleter::Now(suggest) => {
                return inbound.answer(completion_result(truncate_suggestions(suggest(&typed))));
            }
            ArgumentCompleter::Later(suggest) => suggest.clone(),
        };
        let call = Call::new(inbound, CallTarget::Completing);
        // The call has no timeout of its own, because a completer that times out is not an error.
        RunningCall::start(call, "completion/complete", None, TaskStart::Never, |context| {
            Box::pin(async move {
                let suggesting = suggest(typed, CallParts::with_text_arguments(context, None));
                let values = match timeout {
                    None => suggesting.await,
                    Some(timeout) => tokio::time::timeout(timeout, suggesting).await.unwrap_or_else(|_| {
                        Err(ToolError::new(format!("timed out after {} s", timeout.as_secs_f64())))
                    }),
                };
                let completion = values.map(truncate_suggestions).unwrap_or_else(|error| {
                    tracing::warn!(%error, "a completer failed");
                    Completion::default()
                });
                Ok(HandlerOutput::Completed(completion))
            })
        })
    }
}

/// A function that suggests values for an argument of a prompt or a variable of a resource.
///
/// Its first parameter is the text typed so far: `&str`, or `String` in an async function. The others are
/// filled as those of a handler: [`State`](crate::State) and [`Context`], whose
/// [`argument`](Context::argument) returns the arguments that the user has already chosen (from 2025-06-18).
///
/// ```
/// use bindpost_mcp_server::{Context, PromptEntry, State};
///
/// async fn streets(typed: String, State(map): State<Vec<&'static str>>, context: Context) -> Vec<String> {
///     let city: Option<String> = context.argument("city").unwrap_or_default();
///     let known = map.iter().filter(|street| street.starts_with(&typed));
///     known.map(|street| format!("{street}, {}", city.as_deref().unwrap_or("anywhere"))).collect()
/// }
///
/// let prompt = PromptEntry::new("directions", async || "How do I get there?")
///     .argument("city", "The city", true)
///     .argument("street", "The street", true)
///     .completer("street", streets);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot complete an argument",
    label = "not a completer",
    note = "the first parameter is the typed text: `&str`, or `String` in an async function",
    note = "the others are `State<T>` or `Context`, and it returns `Vec<String>` or a `Result` of it"
)]
pub trait Completer<Marker>: Send + Sync + 'static {
    /// Fills the parameters and runs the function.
    fn suggest(
        &self,
        typed: String,
        parts: CallParts,
    ) -> impl Future<Output = Result<Vec<String>, ToolError>> + Send;

    /// Returns the state that the parameters need.
    fn signature() -> Signature;
}

/// The suggestions that a completer returns.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a completer",
    note = "return `Vec<String>`, or a `Result` of it"
)]
pub trait IntoSuggestions: Send {
    /// Converts the value into suggestions.
    fn into_suggestions(self) -> Result<Vec<String>, ToolError>;
}

impl<T: Into<String> + Send> IntoSuggestions for Vec<T> {
    fn into_suggestions(self) -> Result<Vec<String>, ToolError> {
        Ok(self.into_iter().map(Into::into).collect())
    }
}

impl<T: IntoSuggestions, E: Into<ToolError> + Send> IntoSuggestions for Result<T, E> {
    fn into_suggestions(self) -> Result<Vec<String>, ToolError> {
        self.map_err(Into::into)?.into_suggestions()
    }
}

/// Marks the completers that are not async.
#[derive(Debug)]
pub struct SyncCompleter;

macro_rules! completer {
    ($($parameter:ident),*) => {
        impl<F, R, $($parameter),*> Completer<(SyncCompleter, $($parameter,)*)> for F
        where
            F: Fn(&str, $($parameter),*) -> R + Send + Sync + 'static,
            R: IntoSuggestions,
            $($parameter: FromCall,)*
        {
            #[allow(non_snake_case, unused_mut, unused_variables, reason = "one macro for every count")]
            async fn suggest(&self, typed: String, mut parts: CallParts) -> Result<Vec<String>, ToolError> {
                $(let $parameter = $parameter::from_call(&mut parts)?;)*
                self(&typed, $($parameter),*).into_suggestions()
            }

            fn signature() -> Signature {
                #[allow(unused_mut, reason = "one macro for every count")]
                let mut signature = Signature::new();
                $($parameter::describe(&mut signature);)*
                signature
            }
        }

        impl<F, Fut, R, $($parameter),*> Completer<($($parameter,)*)> for F
        where
            F: Fn(String, $($parameter),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send,
            R: IntoSuggestions,
            $($parameter: FromCall,)*
        {
            #[allow(non_snake_case, unused_mut, unused_variables, reason = "one macro for every count")]
            async fn suggest(&self, typed: String, mut parts: CallParts) -> Result<Vec<String>, ToolError> {
                $(let $parameter = $parameter::from_call(&mut parts)?;)*
                self(typed, $($parameter),*).await.into_suggestions()
            }

            fn signature() -> Signature {
                #[allow(unused_mut, reason = "one macro for every count")]
                let mut signature = Signature::new();
                $($parameter::describe(&mut signature);)*
                signature
            }
        }
    };
}

completer!();
completer!(P1);
completer!(P1, P2);
completer!(P1, P2, P3);

impl ArgumentCompleter {
    /// Returns a completer, and the state that it needs.
    pub(crate) fn from_function<M: 'static>(completer: impl Completer<M>) -> (ArgumentCompleter, Signature) {
        fn signature_of<M, C: Completer<M>>(_: &C) -> Signature {
            C::signature()
        }
        let signature = signature_of(&completer);
        let completer = Arc::new(completer);
        let later = move |typed, parts| -> Suggesting {
            let completer = completer.clone();
            Box::pin(async move { completer.suggest(typed, parts).await })
        };
        (ArgumentCompleter::Later(Arc::new(later)), signature)
    }
}

/// Truncates the suggestions to the maximum of one response and sets `hasMore`.
fn truncate_suggestions(mut values: Vec<String>) -> Completion {
    let total = values.len();
    values.truncate(Completion::MOST);
    Completion { values, total: Some(total), has_more: Some(total > Completion::MOST) }
}

/// Returns the result that contains a completion.
pub(crate) fn completion_result(completion: Completion) -> Value {
    json!({"completion": completion})
}

/// `completion/complete`
pub(crate) fn complete(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    const METHOD: &str = "completion/complete";
    let params: CompleteParams = match inbound.request.params().decode() {
        Ok(params) => params,
        Err(error) => return inbound.refuse(&ProtocolError::invalid_params(METHOD, error.to_string())),
    };
    let visible = inbound.visible_entries();
    let find = |completers: &[(String, ArgumentCompleter)]| {
        let found = completers.iter().find(|(argument, _)| *argument == params.argument.name);
        found.map(|(_, completer)| completer.clone())
    };
    let argument = params.argument.name.as_str();
    let unknown = |known: &[&str]| {
        let is_unknown = !known.contains(&argument);
        is_unknown.then(|| ProtocolError::invalid_params(METHOD, describe_unknown(argument, known)))
    };
    let (completer, timeout, problem) = match &params.reference {
        CompletionReference::Prompt { name } => match visible.prompt(name) {
            None => {
                let error = ProtocolError::UnknownPrompt(name.clone());
                let prompts = visible.prompts().map(|prompt| prompt.name.as_str());
                return inbound.refuse_unknown_name(error, prompts);
            }
            Some(entry) => {
                let completer = find(&entry.completers);
                let problem = completer.is_none().then(|| unknown(&entry.known_arguments()?)).flatten();
                (completer, entry.timeout, problem)
            }
        },
        CompletionReference::Resource { uri } => match visible.template(uri) {
            None => return inbound.refuse_not_found(ProtocolError::UnknownResource(uri.clone())),
            Some(entry) => {
                let completer = find(&entry.completers);
                let problem = completer.is_none().then(|| unknown(&entry.known_variables()?)).flatten();
                (completer, entry.timeout, problem)
            }
        },
    };
    if let Some(problem) = problem {
        return inbound.refuse(&problem);
    }
    let timeout = timeout.unwrap_or(inbound.server.limits.call_timeout);
    match completer {
        Some(completer) => completer.start(inbound, params.argument.value, timeout),
        None => inbound.answer(completion_result(Completion::default())),
    }
}
