//! Tools: the entry, `tools/call`, and the conversion of return values.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::header::HeaderArgument;
use bindpost_mcp_protocol::jsonrpc::INVALID_PARAMS;
use bindpost_mcp_protocol::lifecycle::Icon;
use bindpost_mcp_protocol::{CallToolResult, Content, ErrorObject, Meta, Tool, ToolAnnotations, ToolSchema};
use futures_util::TryFutureExt as _;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::auth::AccessRule;
use crate::call::task_requests::requests_task;
use crate::call::{Call, CallTarget, HandlerFuture, HandlerOutput, RunningCall, TaskStart};
use crate::catalog::app_page::AppPage;
use crate::catalog::entry::entry_methods;
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::{ProtocolError, ToolError};
use crate::handler::extract::{CallParts, Handler, Json};
use crate::handler::returns::to_json;
use crate::handler::schema::{self, CompiledSchema, UnknownMembers};
use crate::handler::signature::Signature;
use crate::hooks::OperationEntry;
use crate::peer::session::declares_extension;
use crate::transport::HeaderValues;

type Run = dyn Fn(CallParts) -> HandlerFuture + Send + Sync;

/// Whether a call of a tool runs as a task. A client supports tasks by the tasks extension of 2026-07-28. In 2025-11-25 it
/// requests one with each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// Never, except when the handler calls [`Context::go_on_as_task`](crate::Context::go_on_as_task).
    #[default]
    Never,
    /// Whenever the client supports tasks.
    WhenPossible,
    /// Always. Calls of a client that does not support tasks are rejected.
    Required,
}

/// A tool: its definition and its handler.
#[derive(Clone)]
pub struct ToolEntry {
    pub(crate) definition: Tool,
    pub(crate) timeout: Option<Option<Duration>>,
    pub(crate) task_support: TaskSupport,
    pub(crate) answer_after: Option<Duration>,
    pub(crate) access: Arc<AccessRule>,
    pub(crate) signature: Signature,
    origin: &'static Location<'static>,
    validates: bool,
    keeps_promises: bool,
    checks_name: bool,
    /// The schema that arguments are validated against, if it is not the listed one.
    checked_by: Option<Value>,
    /// Whether the input schema is derived from the handler's types.
    is_derived: bool,
    input: Option<Arc<CompiledSchema>>,
    output: Option<Arc<CompiledSchema>>,
    header_arguments: Vec<HeaderArgument>,
    pub(crate) page: Option<AppPage>,
    /// Whether the model does not see the tool.
    pub(crate) is_for_pages: bool,
    run: Arc<Run>,
}

impl std::fmt::Debug for ToolEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolEntry").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl ToolEntry {
    /// Returns a tool with this name and an async function as its handler. The schemas are derived from the
    /// types of the function.
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

    /// Returns a tool with this name and an explicit signature. `run` fills its parameters with
    /// [`CallParts::fill`] and returns the result. The attribute `#[tool]` generates calls of this function.
    ///
    /// ```
    /// use bindpost_mcp_server::{Argument, CallParts, IntoToolResult, Signature, ToolEntry};
    ///
    /// let signature = Signature::new().parameter::<String, _>(Argument::new("name"));
    /// let greet = ToolEntry::with_signature("greet", signature, async |mut parts: CallParts| {
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
        // An async block would store the future twice: captured and awaited.
        let run =
            move |parts: CallParts| -> HandlerFuture { Box::pin(run(parts).map_ok(HandlerOutput::Tool)) };
        ToolEntry {
            definition: Tool { name: name.into(), ..Tool::default() },
            timeout: None,
            task_support: TaskSupport::Never,
            answer_after: None,
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
            page: None,
            is_for_pages: false,
            run: Arc::new(run),
        }
    }

    /// Sets the schema of the arguments, instead of the one derived from the handler's types.
    pub fn input_schema(mut self, schema: Value) -> ToolEntry {
        self.definition.input_schema = schema.into();
        self.is_derived = false;
        self
    }

    /// Sets the schema of the structured content, instead of the one derived from the handler's types.
    pub fn output_schema(mut self, schema: impl Into<Option<Value>>) -> ToolEntry {
        self.definition.output_schema = schema.into().map(ToolSchema::from);
        self
    }

    /// Sets all four hints.
    pub fn hints(self, hints: ToolHints) -> ToolEntry {
        let ToolHints { read_only, destructive, idempotent, open_world } = hints;
        self.annotate(|annotations| {
            annotations.read_only_hint = Some(read_only);
            annotations.destructive_hint = Some(destructive);
            annotations.idempotent_hint = Some(idempotent);
            annotations.open_world_hint = Some(open_world);
        })
    }

    /// Sets `readOnlyHint`: the tool does not modify its environment.
    pub fn read_only(self) -> ToolEntry {
        self.annotate(|hints| hints.read_only_hint = Some(true))
    }

    /// Sets `destructiveHint`: whether the tool may perform destructive updates.
    pub fn destructive(self, yes: bool) -> ToolEntry {
        self.annotate(|hints| hints.destructive_hint = Some(yes))
    }

    /// Sets `idempotentHint`: repeated calls with the same arguments have no additional effect.
    pub fn idempotent(self) -> ToolEntry {
        self.annotate(|hints| hints.idempotent_hint = Some(true))
    }

    /// Sets `openWorldHint`: whether the tool interacts with external systems.
    pub fn open_world(self, yes: bool) -> ToolEntry {
        self.annotate(|hints| hints.open_world_hint = Some(yes))
    }

    fn annotate(mut self, set: impl FnOnce(&mut ToolAnnotations)) -> ToolEntry {
        set(self.definition.annotations.get_or_insert_default());
        self
    }

    /// Sets whether calls run as tasks.
    pub fn task(mut self, support: TaskSupport) -> ToolEntry {
        self.task_support = support;
        self
    }

    /// Answers clients that do not know tasks when a call has run for this time. They get the id of a task, and fetch the
    /// result with the tool [`ToolEntry::task_result`], which the server must have. The tool must run as a task where that
    /// is possible ([`TaskSupport::WhenPossible`]), and have no output schema, which such an answer would break.
    pub fn answer_after(mut self, time: Duration) -> ToolEntry {
        self.answer_after = Some(time);
        self
    }

    /// Allows arguments that the handler does not declare, and unknown members of its arguments. They are
    /// ignored, and the input schema has no `additionalProperties: false`. By default they are rejected with
    /// the nearest known name. A type with `#[serde(deny_unknown_fields)]` still rejects them.
    pub fn allow_unknown_arguments(mut self) -> ToolEntry {
        self.signature = self.signature.allow_unknown_arguments();
        self
    }

    /// Disables the validation of arguments against the schema. The handler has to check them.
    pub fn without_validation(mut self) -> ToolEntry {
        self.validates = false;
        self
    }

    /// Validates arguments against this schema. Lists still show the input schema.
    pub fn checked_by(mut self, schema: Value) -> ToolEntry {
        self.checked_by = Some(schema);
        self
    }

    /// Disables the validation of structured content against the output schema.
    pub fn without_output_validation(mut self) -> ToolEntry {
        self.keeps_promises = false;
        self
    }

    /// Allows any name. Most clients drop tools whose names contain spaces or special characters.
    pub fn any_name(mut self) -> ToolEntry {
        self.checks_name = false;
        self
    }

    /// Replaces the whole definition, which the handler's types and the builder have set.
    pub fn definition(mut self, definition: Tool) -> ToolEntry {
        self.definition = definition;
        self.is_derived = false;
        self
    }

    /// Compiles the schemas. Rejects a definition that clients would drop.
    pub(crate) fn compile(&mut self) -> Result<(), String> {
        let name = &self.definition.name;
        let fits = (1..=128).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
        if self.checks_name && !fits {
            return Err("a tool's name has 1 to 128 letters, digits, `_`, `-`, `.` or `/`".to_owned());
        }
        if self.answer_after.is_some()
            && (self.task_support != TaskSupport::WhenPossible || self.definition.output_schema.is_some())
        {
            let reason = "`answer_after` needs `TaskSupport::WhenPossible` and no output schema";
            return Err(reason.to_owned());
        }
        self.signature.check()?;
        self.describe_page();
        self.describe_tasks();
        if self.is_derived {
            // Only this validation rejects unknown arguments.
            let unknown = match self.validates && self.checked_by.is_none() {
                true => self.signature.unknown_members(),
                false => UnknownMembers::Allowed,
            };
            self.definition.input_schema = self.signature.schema_for_clients(unknown).into();
        }
        let schema = &self.definition.input_schema;
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            let reason = "the input schema must have \"type\": \"object\" at its root; an enum or a list goes into a \
                          member of a struct";
            return Err(reason.to_owned());
        }
        // Revisions before 2025-06-18 have the title in the annotations only.
        if let (Some(title), Some(annotations)) = (&self.definition.title, &mut self.definition.annotations) {
            annotations.title.get_or_insert_with(|| title.clone());
        }
        self.header_arguments = HeaderArgument::find_all(schema)?;
        if self.validates {
            let compiled = match &self.checked_by {
                Some(schema) => CompiledSchema::compile(schema),
                None if self.is_derived => {
                    let unknown = self.signature.unknown_members();
                    CompiledSchema::compile_derived(&self.signature.derived_schema(), unknown)
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

    /// Tells clients of 2025-11-25 whether they may request a task.
    fn describe_tasks(&mut self) {
        let support = match self.task_support {
            TaskSupport::Never => return,
            TaskSupport::WhenPossible => "optional",
            TaskSupport::Required => "required",
        };
        self.definition.execution.get_or_insert_default().task_support = Some(support.to_owned());
    }

    /// Returns how a result violates the output schema, or `None` if it is valid.
    pub(crate) fn output_violation(&self, result: &CallToolResult) -> Option<String> {
        let schema = self.output.as_ref().filter(|_| !result.is_error)?;
        match &result.structured_content {
            None => Some("- the structured content is missing".to_owned()),
            Some(value) => schema.check(value).err(),
        }
    }
}

entry_methods!(ToolEntry, "a call");

/// The hints about the behaviour of a tool. They are not guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolHints {
    /// The tool does not modify its environment.
    pub read_only: bool,
    /// The tool may perform destructive updates.
    pub destructive: bool,
    /// Repeated calls with the same arguments have no additional effect.
    pub idempotent: bool,
    /// The tool interacts with external systems.
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
    let visible = inbound.visible_entries();
    let Some(entry) = visible.tool(&name) else {
        let error = ProtocolError::UnknownTool(name.into_owned());
        return inbound.refuse_unknown_name(error, visible.tools().map(|tool| tool.name.as_str()));
    };
    let arguments = match params.get("arguments").filter(|raw| !raw.is_null()) {
        None => None,
        Some(raw) if raw.is_object() => Some(raw),
        Some(_) => {
            return inbound.refuse(&ProtocolError::invalid_params(METHOD, "`arguments` must be an object"));
        }
    };

    let requests_task = match requests_task(&inbound, &entry) {
        Ok(requests_task) => requests_task,
        Err(error) => return inbound.refuse(&error),
    };
    let needs_value = entry.input.is_some() || !entry.header_arguments.is_empty();
    let decode = || arguments.map_or_else(|| Ok(json!({})), |raw| raw.decode());
    let mut arguments: Option<Value> = match needs_value.then(decode).transpose() {
        Ok(arguments) => arguments,
        Err(error) => return inbound.refuse(&ProtocolError::invalid_params(METHOD, error.to_string())),
    };
    if let Some(arguments) = &mut arguments {
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
        if let Some(schema) = &entry.input {
            schema.normalize(arguments);
            if let Err(violations) = schema.check(arguments) {
                let text = format!("Invalid arguments for tool {:?}:\n{violations}", entry.definition.name);
                if requests_task {
                    // The client expects a task, not a result.
                    return inbound.refuse(&ProtocolError::Other(ErrorObject::new(INVALID_PARAMS, text)));
                }
                return inbound.answer(CallToolResult::error(text));
            }
        }
    }

    let timeout = entry.timeout.unwrap_or(inbound.server.limits.call_timeout);
    let run = entry.run.clone();
    let hooked = (!inbound.server.hooks.is_empty()).then(|| OperationEntry::Tool(entry.clone()));
    let (task_support, answer_after) = (entry.task_support, entry.answer_after);
    if task_support == TaskSupport::Required && !requests_task && inbound.revision().has_handshake() {
        let text = format!(
            "Tool {:?} runs only as a task; use revision 2025-11-25, or 2026-07-28 with the tasks extension",
            entry.definition.name
        );
        return inbound.answer(CallToolResult::error(text));
    }
    let call = Call::new(inbound, CallTarget::Tool(entry));
    let task_start = match task_support {
        TaskSupport::Never => TaskStart::Never,
        TaskSupport::WhenPossible | TaskSupport::Required if call.can_be_task() => TaskStart::AtOnce,
        TaskSupport::WhenPossible => answer_after.map_or(TaskStart::Never, TaskStart::After),
        TaskSupport::Required => {
            let required = json!({"extensions": {bindpost_mcp_protocol::meta::TASKS_EXTENSION: {}}});
            return call.refuse(&ProtocolError::MissingCapability(required));
        }
    };
    RunningCall::start(call, METHOD, timeout, task_start, |context| match hooked {
        None => run(CallParts::new(context, arguments)),
        Some(entry) => {
            let hooks = context.call().server().hooks.clone();
            hooks.start(context, entry, move |context| run(CallParts::new(context, arguments)))
        }
    })
}

impl Call {
    /// Returns whether this call may run as a task: the server has tasks enabled, and the client declared the
    /// extension or, in 2025-11-25, requested a task.
    pub(crate) fn can_be_task(&self) -> bool {
        if self.server().tasks.is_none() {
            return false;
        }
        match self.revision() {
            revision if revision.has_task_requests() => {
                self.params().get("task").is_some_and(|task| task.is_object())
            }
            revision if revision.has_handshake() => false,
            _ => declares_extension(&self.capabilities(), bindpost_mcp_protocol::meta::TASKS_EXTENSION),
        }
    }
}

/// A type that the handler of a tool can return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    note = "return text, `Content`, several of them, a `CallToolResult`, or `Json<T>` for any serialisable value"
)]
pub trait IntoToolResult: Send {
    /// Converts the value into a result.
    fn into_tool_result(self) -> Result<CallToolResult, ToolError>;
    /// Returns the schema of the structured content, if the type has one.
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
