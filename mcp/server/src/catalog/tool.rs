//! Tools: the entry, the call, and how a return value becomes a result.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::header::HeaderArgument;
use bindpost_mcp_protocol::lifecycle::Icon;
use bindpost_mcp_protocol::{CallToolResult, Content, Meta, Tool, ToolAnnotations};
use futures_util::TryFutureExt as _;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::auth::AccessRule;
use crate::call::{Call, CallTarget, HandlerFuture, HandlerOutput, RunningCall};
use crate::catalog::entry::entry_methods;
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::{ProtocolError, ToolError};
use crate::handler::extract::{CallParts, Handler, Json};
use crate::handler::returns::to_json;
use crate::handler::schema::{self, CompiledSchema};
use crate::handler::signature::Signature;
use crate::peer::session::declares_extension;
use crate::transport::HeaderValues;

type Run = dyn Fn(CallParts) -> HandlerFuture + Send + Sync;

/// Whether a call of a tool may go on as a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// Never, unless the handler asks for it by [`Context::go_on_as_task`](crate::Context::go_on_as_task).
    #[default]
    Never,
    /// Whenever the client can deal with tasks.
    WhenPossible,
    /// Always; a client that cannot deal with tasks is refused.
    Required,
}

/// A tool: its definition and its handler.
#[derive(Clone)]
pub struct ToolEntry {
    pub(crate) definition: Tool,
    pub(crate) timeout: Option<Option<Duration>>,
    pub(crate) task_support: TaskSupport,
    pub(crate) access: Arc<AccessRule>,
    pub(crate) signature: Signature,
    origin: &'static Location<'static>,
    validates: bool,
    keeps_promises: bool,
    checks_name: bool,
    /// What arguments are checked against, if it is not what lists show.
    checked_by: Option<Value>,
    /// Whether the input schema is the one of the handler's types.
    is_derived: bool,
    input: Option<Arc<CompiledSchema>>,
    output: Option<Arc<CompiledSchema>>,
    header_arguments: Vec<HeaderArgument>,
    run: Arc<Run>,
}

impl std::fmt::Debug for ToolEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolEntry").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl ToolEntry {
    /// A tool with this name, served by an async function. The schemas come from the function's types.
    #[track_caller]
    pub fn new<M, R, H>(name: impl Into<String>, handler: H) -> ToolEntry
    where
        R: IntoToolResult + 'static,
        H: Handler<M, R>,
    {
        let run = move |parts: CallParts| {
            let handler = handler.clone();
            async move { handler.run(parts).await?.into_tool_result() }
        };
        ToolEntry::with_signature(name, H::signature(), run).output_schema(R::output_schema())
    }

    /// A tool with this name that takes what the signature says; `run` fills its parameters by
    /// [`CallParts::fill`] and makes the result. This is what `#[tool]` writes.
    ///
    /// ```
    /// use bindpost_mcp_server::{Argument, IntoToolResult, Parts, Signature, ToolEntry};
    ///
    /// let signature = Signature::new().parameter::<String, _>(Argument::new("name"));
    /// let greet = ToolEntry::with_signature("greet", signature, async |mut parts: Parts| {
    ///     let name: String = parts.fill("name")?;
    ///     format!("Hello, {name}").into_tool_result()
    /// });
    /// ```
    #[track_caller]
    pub fn with_signature<Fut>(
        name: impl Into<String>,
        signature: Signature,
        run: impl Fn(CallParts) -> Fut + Send + Sync + 'static,
    ) -> ToolEntry
    where
        Fut: Future<Output = Result<CallToolResult, ToolError>> + Send + 'static,
    {
        // An async block would keep the future twice, as what it holds and as what it awaits.
        let run =
            move |parts: CallParts| -> HandlerFuture { Box::pin(run(parts).map_ok(HandlerOutput::Tool)) };
        ToolEntry {
            definition: Tool { name: name.into(), input_schema: signature.schema(), ..Tool::default() },
            timeout: None,
            task_support: TaskSupport::Never,
            access: Arc::default(),
            signature,
            origin: Location::caller(),
            validates: true,
            keeps_promises: true,
            checks_name: true,
            checked_by: None,
            is_derived: true,
            input: None,
            output: None,
            header_arguments: Vec::new(),
            run: Arc::new(run),
        }
    }

    /// The schema of its arguments, instead of the one from the handler's types.
    pub fn input_schema(mut self, schema: Value) -> ToolEntry {
        self.definition.input_schema = schema;
        self.is_derived = false;
        self
    }

    /// The schema of its structured content, instead of the one from the handler's types.
    pub fn output_schema(mut self, schema: impl Into<Option<Value>>) -> ToolEntry {
        self.definition.output_schema = schema.into();
        self
    }

    /// All four hints, and no doubt left about any.
    pub fn hints(self, hints: ToolHints) -> ToolEntry {
        let ToolHints { read_only, destructive, idempotent, open_world } = hints;
        self.annotate(|annotations| {
            annotations.read_only_hint = Some(read_only);
            annotations.destructive_hint = Some(destructive);
            annotations.idempotent_hint = Some(idempotent);
            annotations.open_world_hint = Some(open_world);
        })
    }

    /// It changes nothing.
    pub fn read_only(self) -> ToolEntry {
        self.annotate(|hints| hints.read_only_hint = Some(true))
    }

    /// It may destroy something.
    pub fn destructive(self, yes: bool) -> ToolEntry {
        self.annotate(|hints| hints.destructive_hint = Some(yes))
    }

    /// Twice does the same as once.
    pub fn idempotent(self) -> ToolEntry {
        self.annotate(|hints| hints.idempotent_hint = Some(true))
    }

    /// It reaches out into the world.
    pub fn open_world(self, yes: bool) -> ToolEntry {
        self.annotate(|hints| hints.open_world_hint = Some(yes))
    }

    fn annotate(mut self, set: impl FnOnce(&mut ToolAnnotations)) -> ToolEntry {
        set(self.definition.annotations.get_or_insert_default());
        self
    }

    /// Whether a call may go on as a task.
    pub fn task(mut self, support: TaskSupport) -> ToolEntry {
        self.task_support = support;
        self
    }

    /// Passes arguments on without checking them against the schema: the handler checks for itself.
    pub fn without_validation(mut self) -> ToolEntry {
        self.validates = false;
        self
    }

    /// Checks arguments against this schema, and shows the other one in lists.
    pub fn checked_by(mut self, schema: Value) -> ToolEntry {
        self.checked_by = Some(schema);
        self
    }

    /// Passes structured content on without checking it against the output schema.
    pub fn without_output_validation(mut self) -> ToolEntry {
        self.keeps_promises = false;
        self
    }

    /// Takes any name, though most clients drop tools whose names have spaces or signs in them.
    pub fn any_name(mut self) -> ToolEntry {
        self.checks_name = false;
        self
    }

    /// Its definition, all of it, instead of what the handler's types and the builder said.
    pub fn definition(mut self, definition: Tool) -> ToolEntry {
        self.definition = definition;
        self.is_derived = false;
        self
    }

    /// Compiles what a call needs; refuses a definition that clients would drop.
    pub(crate) fn compile(&mut self) -> Result<(), String> {
        let name = &self.definition.name;
        let fits = (1..=128).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
        if self.checks_name && !fits {
            return Err("a tool's name has 1 to 128 letters, digits, `_`, `-`, `.` or `/`".to_owned());
        }
        self.signature.check()?;
        let schema = &self.definition.input_schema;
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            let reason = "the input schema must have \"type\": \"object\" at its root; an enum or a list goes into a \
                          member of a struct";
            return Err(reason.to_owned());
        }
        // Revisions before 2025-06-18 know the title by the annotations only.
        if let (Some(title), Some(annotations)) = (&self.definition.title, &mut self.definition.annotations) {
            annotations.title.get_or_insert_with(|| title.clone());
        }
        self.header_arguments = HeaderArgument::find_all(schema)?;
        if self.validates {
            let compiled = match &self.checked_by {
                Some(schema) => CompiledSchema::compile(schema),
                None if self.is_derived && !self.signature.allows_unknown_arguments() => {
                    CompiledSchema::compile_derived(&self.signature.derived_schema())
                }
                None => CompiledSchema::compile(schema),
            };
            let compiled = compiled.map_err(|error| format!("the input schema: {error}"))?;
            self.input = Some(Arc::new(compiled));
        }
        if let Some(schema) = self.definition.output_schema.as_ref().filter(|_| self.keeps_promises) {
            let compiled =
                CompiledSchema::compile(schema).map_err(|error| format!("the output schema: {error}"))?;
            self.output = Some(Arc::new(compiled));
        }
        Ok(())
    }

    /// What is wrong with a result, given what the tool promised.
    pub(crate) fn output_violation(&self, result: &CallToolResult) -> Option<String> {
        let schema = self.output.as_ref().filter(|_| !result.is_error)?;
        match &result.structured_content {
            None => Some("- there is no structured content".to_owned()),
            Some(value) => schema.check(value).err(),
        }
    }
}

entry_methods!(ToolEntry, "a call");

/// What a call of a tool may do. They are hints for the model and the user, not promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolHints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something.
    pub destructive: bool,
    /// Twice does the same as once.
    pub idempotent: bool,
    /// It reaches out into the world.
    pub open_world: bool,
}

impl Default for ToolHints {
    fn default() -> ToolHints {
        ToolHints { read_only: false, destructive: false, idempotent: false, open_world: true }
    }
}

/// `tools/call`
pub(crate) fn call(inbound: InboundRequest, headers: &dyn HeaderValues) -> DispatchOutcome {
    const METHOD: &str = "tools/call";
    let params = inbound.request.params();
    let Some(name) = params.text("name") else {
        return inbound.refuse(&ProtocolError::invalid_params(METHOD, "`name` must be a string"));
    };
    let Some(entry) = inbound.server.catalog.snapshot().tool(&name) else {
        let error = ProtocolError::UnknownTool(name.into_owned());
        return inbound.refuse_not_found(error);
    };
    let arguments = match params.get("arguments").filter(|raw| !raw.is_null()) {
        None => None,
        Some(raw) if raw.is_object() => Some(raw),
        Some(_) => {
            return inbound.refuse(&ProtocolError::invalid_params(METHOD, "`arguments` must be an object"));
        }
    };

    let needs_value = entry.input.is_some() || !entry.header_arguments.is_empty();
    let decode = || arguments.map_or_else(|| Ok(json!({})), |raw| raw.decode());
    let arguments: Option<Value> = match needs_value.then(decode).transpose() {
        Ok(arguments) => arguments,
        Err(error) => return inbound.refuse(&ProtocolError::invalid_params(METHOD, error.to_string())),
    };
    if let Some(arguments) = &arguments {
        if !entry.header_arguments.is_empty()
            && headers.has_headers()
            && !inbound.exchange.peer.revision().has_handshake()
        {
            let differs = |argument: &&HeaderArgument| {
                headers.is_unusable(&argument.header)
                    || !argument.agrees(arguments, headers.header(&argument.header))
            };
            if let Some(argument) = entry.header_arguments.iter().find(differs) {
                let (header, path) = (&argument.header, argument.path.join("."));
                let error = format!("header {header:?} does not agree with argument {path:?}");
                return inbound.refuse(&ProtocolError::HeaderMismatch(error));
            }
        }
        if let Some(schema) = &entry.input
            && let Err(violations) = schema.check(arguments)
        {
            let text = format!("Invalid arguments for tool {:?}:\n{violations}", entry.definition.name);
            return inbound.answer(CallToolResult::error(text));
        }
    }

    let timeout = entry.timeout.unwrap_or(inbound.server.limits.call_timeout);
    let run = entry.run.clone();
    let task_support = entry.task_support;
    if task_support == TaskSupport::Required && inbound.revision().has_handshake() {
        let text =
            format!("Tool {:?} runs as a task; connect with 2026-07-28 and tasks", entry.definition.name);
        return inbound.answer(CallToolResult::error(text));
    }
    let call = Call::new(inbound, CallTarget::Tool(entry));
    let as_task = match task_support {
        TaskSupport::Never => false,
        TaskSupport::WhenPossible => call.can_be_task(),
        TaskSupport::Required if call.can_be_task() => true,
        TaskSupport::Required => {
            let required = json!({"extensions": {bindpost_mcp_protocol::meta::TASKS_EXTENSION: {}}});
            return call.refuse(&ProtocolError::MissingCapability(required));
        }
    };
    RunningCall::start(call, METHOD, timeout, as_task, |context| run(CallParts::new(context, arguments)))
}

impl Call {
    /// Whether this call may go on as a task: the server keeps tasks and the client declared them.
    pub(crate) fn can_be_task(&self) -> bool {
        !self.revision().has_handshake()
            && self.server().tasks.is_some()
            && declares_extension(&self.capabilities(), bindpost_mcp_protocol::meta::TASKS_EXTENSION)
    }
}

/// Can be the return value of a tool's handler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    note = "return text, `Content`, several of them, a `CallToolResult`, or `Json<T>` for any serialisable value"
)]
pub trait IntoToolResult: Send {
    /// The result it stands for.
    fn into_tool_result(self) -> Result<CallToolResult, ToolError>;
    /// The schema of its structured content, if it has one.
    fn output_schema() -> Option<Value> {
        None
    }
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(self)
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::text(self))
    }
}

impl IntoToolResult for &'static str {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::text(self))
    }
}

macro_rules! as_text {
    ($($Plain:ty),*) => {$(
        impl IntoToolResult for $Plain {
            fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
                Ok(CallToolResult::text(self.to_string()))
            }
        }
    )*};
}
as_text!(bool, char, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);

impl IntoToolResult for std::borrow::Cow<'static, str> {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::text(self))
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::default())
    }
}

impl IntoToolResult for Content {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult { content: vec![self], ..CallToolResult::default() })
    }
}

impl IntoToolResult for Vec<Content> {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult { content: self, ..CallToolResult::default() })
    }
}

impl<T: Serialize + JsonSchema + Send> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        to_json(&self.0).map(CallToolResult::structured)
    }
    fn output_schema() -> Option<Value> {
        Some(schema::derive_output::<T>())
    }
}

impl<T: IntoToolResult, E: Into<ToolError> + Send> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> Result<CallToolResult, ToolError> {
        self.map_err(Into::into)?.into_tool_result()
    }
    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}
