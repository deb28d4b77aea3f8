//! Prompts: the entry, `prompts/get`, and the conversion of return values.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::jsonrpc::INVALID_PARAMS;
use bindpost_mcp_protocol::lifecycle::Icon;
use bindpost_mcp_protocol::{ErrorObject, GetPromptResult, Meta, Prompt, PromptArgument, PromptMessage};
use futures_util::FutureExt as _;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::auth::AccessRule;
use crate::call::{Call, CallTarget, HandlerFuture, HandlerOutput, RunningCall, TaskStart};
use crate::catalog::completion::{ArgumentCompleter, Completer};
use crate::catalog::entry::entry_methods;
use crate::catalog::prompt_arguments::PromptArguments;
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::{ProtocolError, ToolError};
use crate::handler::extract::{CallParts, Handler};
use crate::handler::schema::UnknownMembers;
use crate::handler::signature::Signature;
use crate::hooks::OperationEntry;
use crate::transport::HeaderValues;

type Run = dyn Fn(CallParts) -> HandlerFuture + Send + Sync;

/// A prompt: its definition and its handler.
#[derive(Clone)]
pub struct PromptEntry {
    pub(crate) definition: Prompt,
    pub(crate) completers: Vec<(String, ArgumentCompleter)>,
    pub(crate) access: Arc<AccessRule>,
    pub(crate) signature: Signature,
    origin: &'static Location<'static>,
    pub(crate) timeout: Option<Option<Duration>>,
    validates: bool,
    /// The compiled arguments, if they are validated.
    pub(crate) arguments: Option<Arc<PromptArguments>>,
    run: Arc<Run>,
}

impl std::fmt::Debug for PromptEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PromptEntry").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl PromptEntry {
    /// Returns a prompt with this name and an async function as its handler.
    ///
    /// The fields of `T` in a parameter [`Args<T>`](crate::Args) become the arguments of the prompt.
    #[track_caller]
    pub fn new<M, R, H>(name: impl Into<String>, handler: H) -> PromptEntry
    where
        R: IntoPromptResult + 'static,
        H: Handler<M, R>,
    {
        PromptEntry::with_signature(name, H::signature(), move |parts| {
            let handler = handler.clone();
            async move { handler.run(parts).await }
        })
    }

    /// Returns a prompt with this name and an explicit signature. `run` fills its parameters with
    /// [`CallParts::fill`]. The attribute `#[prompt]` generates calls of this function.
    #[track_caller]
    pub fn with_signature<R, Fut>(
        name: impl Into<String>,
        signature: Signature,
        run: impl Fn(CallParts) -> Fut + Send + Sync + 'static,
    ) -> PromptEntry
    where
        R: IntoPromptResult,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        // An async block would store the future twice: captured and awaited.
        let run = move |parts: CallParts| -> HandlerFuture {
            Box::pin(run(parts).map(|returned| returned?.into_prompt_result().map(HandlerOutput::Prompt)))
        };
        let arguments = arguments_of(&signature.schema());
        PromptEntry {
            definition: Prompt { name: name.into(), arguments, ..Prompt::default() },
            completers: Vec::new(),
            access: Arc::default(),
            signature,
            origin: Location::caller(),
            timeout: None,
            validates: true,
            arguments: None,
            run: Arc::new(run),
        }
    }

    /// Replaces the whole definition, which the handler's types and the builder have set.
    pub fn definition(mut self, definition: Prompt) -> PromptEntry {
        self.definition = definition;
        self
    }

    /// Disables the validation of arguments. The handler reads them with
    /// [`Context::arguments_json`](crate::Context::arguments_json).
    pub fn without_validation(mut self) -> PromptEntry {
        self.validates = false;
        self
    }

    /// Adds an argument. Once there is one, undeclared arguments are rejected.
    pub fn argument(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        required: bool,
    ) -> PromptEntry {
        self.definition.arguments.push(PromptArgument {
            name: name.into(),
            description: Some(description.into()),
            required,
            ..PromptArgument::default()
        });
        self
    }

    /// Sets a function that completes an argument from the text typed so far.
    pub fn complete(
        mut self,
        argument: impl Into<String>,
        completer: impl Fn(&str) -> Vec<String> + Send + Sync + 'static,
    ) -> PromptEntry {
        self.completers.push((argument.into(), ArgumentCompleter::new(completer)));
        self
    }

    /// Sets a function that completes an argument. It can be async and take [`State`](crate::State) and
    /// [`Context`](crate::Context), see [`Completer`]. The timeout is [`PromptEntry::timeout`].
    pub fn completer<M: 'static>(
        mut self,
        argument: impl Into<String>,
        completer: impl Completer<M>,
    ) -> PromptEntry {
        let (completer, needed) = ArgumentCompleter::from_function(completer);
        self.signature.needs_states_of(&needed);
        self.completers.push((argument.into(), completer));
        self
    }

    /// Sets an async function that completes an argument. Its timeout is [`PromptEntry::timeout`]. If it
    /// fails or times out, it suggests nothing and the reason is logged.
    pub fn complete_with<Fut>(
        mut self,
        argument: impl Into<String>,
        completer: impl Fn(String) -> Fut + Send + Sync + 'static,
    ) -> PromptEntry
    where
        Fut: Future<Output = Result<Vec<String>, ToolError>> + Send + 'static,
    {
        self.completers.push((argument.into(), ArgumentCompleter::new_async(completer)));
        self
    }

    /// Returns the names of all arguments, or `None` if others are allowed.
    pub(crate) fn known_arguments(&self) -> Option<Vec<&str>> {
        self.arguments.as_ref().filter(|arguments| arguments.unknown == UnknownMembers::Rejected)?;
        Some(self.definition.arguments.iter().map(|argument| argument.name.as_str()).collect())
    }

    pub(crate) fn compile(&mut self) -> Result<(), String> {
        if self.definition.name.is_empty() {
            return Err("a prompt needs a name".to_owned());
        }
        self.signature.check()?;
        let arguments = &self.definition.arguments;
        for (index, argument) in arguments.iter().enumerate() {
            if arguments[..index].iter().any(|other| other.name == argument.name) {
                return Err(format!("argument {:?} appears twice", argument.name));
            }
        }
        let is_known = |name: &str| arguments.iter().any(|argument| argument.name == name);
        if let Some((unknown, _)) = self.completers.iter().find(|(name, _)| !is_known(name)) {
            return Err(format!("there is no argument {unknown:?} to complete"));
        }
        if self.validates {
            self.arguments = Some(Arc::new(PromptArguments::compile(arguments, &self.signature)?));
        }
        Ok(())
    }
}

entry_methods!(PromptEntry, "a get");

/// Returns the prompt arguments that the schema of a type describes.
fn arguments_of(schema: &Value) -> Vec<PromptArgument> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, property)| PromptArgument {
            name: name.clone(),
            title: property["title"].as_str().map(str::to_owned),
            description: property["description"].as_str().map(str::to_owned),
            required: required.contains(&name.as_str()),
            ..PromptArgument::default()
        })
        .collect()
}

/// `prompts/get`
pub(crate) fn get(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    const METHOD: &str = "prompts/get";
    let params = inbound.request.params();
    let Some(name) = params.text("name") else {
        return inbound.refuse(&ProtocolError::invalid_params(METHOD, "`name` must be a string"));
    };
    let visible = inbound.visible_entries();
    let Some(entry) = visible.prompt(&name) else {
        let error = ProtocolError::UnknownPrompt(name.into_owned());
        return inbound.refuse_unknown_name(error, visible.prompts().map(|prompt| prompt.name.as_str()));
    };
    let mut arguments = None;
    if let Some(description) = &entry.arguments {
        let given = match params.get("arguments").and_then(|raw| raw.decode().ok()) {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(given)) => given,
            Some(_) => {
                let error = ProtocolError::invalid_params(METHOD, "`arguments` must be an object");
                return inbound.refuse(&error);
            }
        };
        match description.check(given) {
            Ok(checked) => arguments = Some(checked),
            Err(violations) => {
                let text = format!("Invalid arguments for prompt {:?}:\n{violations}", entry.definition.name);
                // Its lines are short, so the whole text is not shortened.
                return inbound.refuse(&ProtocolError::Other(ErrorObject::new(INVALID_PARAMS, text)));
            }
        }
    }
    let timeout = entry.timeout.unwrap_or(inbound.server.limits.call_timeout);
    let call = Call::new(inbound, CallTarget::Prompt(entry.definition.name.clone()));
    RunningCall::start(call, METHOD, timeout, TaskStart::Never, |context| {
        if context.call().server().hooks.is_empty() {
            return (entry.run)(CallParts::with_text_arguments(context, arguments));
        }
        let hooks = context.call().server().hooks.clone();
        hooks.start(context, OperationEntry::Prompt(entry.clone()), move |context| {
            (entry.run)(CallParts::with_text_arguments(context, arguments))
        })
    })
}

/// A type that the handler of a prompt can return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a prompt",
    note = "return text, a `PromptMessage`, several of them, or a `GetPromptResult`"
)]
pub trait IntoPromptResult: Send {
    /// Converts the value into a result.
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError>;
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        Ok(self)
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        Ok(GetPromptResult { messages: self, ..GetPromptResult::default() })
    }
}

impl IntoPromptResult for PromptMessage {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        vec![self].into_prompt_result()
    }
}

impl IntoPromptResult for String {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        PromptMessage::user(self).into_prompt_result()
    }
}

impl IntoPromptResult for &'static str {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        PromptMessage::user(self).into_prompt_result()
    }
}

impl<T: IntoPromptResult, E: Into<ToolError> + Send> IntoPromptResult for Result<T, E> {
    fn into_prompt_result(self) -> Result<GetPromptResult, ToolError> {
        self.map_err(Into::into)?.into_prompt_result()
    }
}
