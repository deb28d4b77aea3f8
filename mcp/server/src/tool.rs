//! Tools: the entry, the call, and how a return value becomes a result.

use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::header::HeaderArgument;
use bindpost_mcp_protocol::lifecycle::Icon;
use bindpost_mcp_protocol::{CallToolResult, Content, Meta, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::call::{Call, Finished, HandlerFuture, Running, Subject};
use crate::dispatch::{Dispatch, Inbound};
use crate::error::{ProtocolError, ToolError};
use crate::extract::{Handler, Json, Parts, schema_of};
use crate::schema::Schema;
use crate::session::declares_extension;
use crate::transport::HeaderValues;

type Run = dyn Fn(Parts) -> HandlerFuture + Send + Sync;

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
    validates: bool,
    input: Option<Arc<Schema>>,
    output: Option<Arc<Schema>>,
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
    pub fn new<M, R, H>(name: impl Into<String>, handler: H) -> ToolEntry
    where
        R: IntoToolResult + 'static,
        H: Handler<M, R>,
    {
        let input_schema = H::schema().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
        let run = move |parts: Parts| -> HandlerFuture {
            let handler = handler.clone();
            Box::pin(async move { handler.run(parts).await?.into_tool_result().map(Finished::Tool) })
        };
        ToolEntry {
            definition: Tool {
                name: name.into(),
                input_schema,
                output_schema: R::output_schema(),
                ..Tool::default()
            },
            timeout: None,
            task_support: TaskSupport::Never,
            validates: true,
            input: None,
            output: None,
            header_arguments: Vec::new(),
            run: Arc::new(run),
        }
    }

    /// What it does, for the model.
    pub fn description(mut self, description: impl Into<String>) -> ToolEntry {
        self.definition.description = Some(description.into());
        self
    }

    /// Its name for people.
    pub fn title(mut self, title: impl Into<String>) -> ToolEntry {
        self.definition.title = Some(title.into());
        self
    }

    /// The schema of its arguments, instead of the one from the handler's types.
    pub fn input_schema(mut self, schema: Value) -> ToolEntry {
        self.definition.input_schema = schema;
        self
    }

    /// The schema of its structured content, instead of the one from the handler's types.
    pub fn output_schema(mut self, schema: Value) -> ToolEntry {
        self.definition.output_schema = Some(schema);
        self
    }

    /// It changes nothing.
    pub fn read_only(self) -> ToolEntry {
        self.hints(|hints| hints.read_only_hint = Some(true))
    }

    /// It may destroy something.
    pub fn destructive(self, yes: bool) -> ToolEntry {
        self.hints(|hints| hints.destructive_hint = Some(yes))
    }

    /// Twice does the same as once.
    pub fn idempotent(self) -> ToolEntry {
        self.hints(|hints| hints.idempotent_hint = Some(true))
    }

    /// It reaches out into the world.
    pub fn open_world(self, yes: bool) -> ToolEntry {
        self.hints(|hints| hints.open_world_hint = Some(yes))
    }

    fn hints(mut self, set: impl FnOnce(&mut ToolAnnotations)) -> ToolEntry {
        set(self.definition.annotations.get_or_insert_default());
        self
    }

    /// Its pictures.
    pub fn icons(mut self, icons: Vec<Icon>) -> ToolEntry {
        self.definition.icons = icons;
        self
    }

    /// Its `_meta`.
    pub fn meta(mut self, meta: Meta) -> ToolEntry {
        self.definition.meta = Some(meta);
        self
    }

    /// How long a call may take, instead of the server's default; `None` for as long as it likes.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> ToolEntry {
        self.timeout = Some(timeout.into());
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

    /// Compiles what a call needs; refuses a definition that clients would drop.
    pub(crate) fn compile(&mut self) -> Result<(), String> {
        let name = &self.definition.name;
        let fits = (1..=128).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
        if !fits {
            return Err("a tool's name has 1 to 128 letters, digits, `_`, `-`, `.` or `/`".to_owned());
        }
        let schema = &self.definition.input_schema;
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err("the input schema must have \"type\": \"object\" at its root".to_owned());
        }
        self.header_arguments = HeaderArgument::find_all(schema)?;
        if self.validates {
            let compiled = Schema::compile(schema).map_err(|error| format!("the input schema: {error}"))?;
            self.input = Some(Arc::new(compiled));
        }
        if let Some(schema) = &self.definition.output_schema {
            let compiled = Schema::compile(schema).map_err(|error| format!("the output schema: {error}"))?;
            self.output = Some(Arc::new(compiled));
        }
        Ok(())
    }

    /// What is wrong with a result, given what the tool promised.
    pub(crate) fn broken_promise(&self, result: &CallToolResult) -> Option<String> {
        let schema = self.output.as_ref().filter(|_| !result.is_error)?;
        match &result.structured_content {
            None => Some("- there is no structured content".to_owned()),
            Some(value) => schema.check(value).err(),
        }
    }
}

/// `tools/call`
pub(crate) fn call(inbound: Inbound, headers: &dyn HeaderValues) -> Dispatch {
    const METHOD: &str = "tools/call";
    let params = inbound.request.params();
    let Some(name) = params.text("name") else {
        return inbound.refuse(&ProtocolError::invalid(METHOD, "`name` must be a string"));
    };
    let Some(entry) = inbound.server.catalog.snapshot().tool(&name) else {
        let error = ProtocolError::UnknownTool(name.into_owned());
        return inbound.refuse(&error);
    };
    let arguments = match params.get("arguments").filter(|raw| !raw.is_null()) {
        None => None,
        Some(raw) if raw.is_object() => Some(raw),
        Some(_) => return inbound.refuse(&ProtocolError::invalid(METHOD, "`arguments` must be an object")),
    };

    let needs_value = entry.input.is_some() || !entry.header_arguments.is_empty();
    let decode = || arguments.map_or_else(|| Ok(json!({})), |raw| raw.decode());
    let arguments: Option<Value> = match needs_value.then(decode).transpose() {
        Ok(arguments) => arguments,
        Err(error) => return inbound.refuse(&ProtocolError::invalid(METHOD, error.to_string())),
    };
    if let Some(arguments) = &arguments {
        if !entry.header_arguments.is_empty()
            && headers.are_there()
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
    let call = Call::new(inbound, Subject::Tool(entry));
    let as_task = match task_support {
        TaskSupport::Never => false,
        TaskSupport::WhenPossible => call.can_be_task(),
        TaskSupport::Required if call.can_be_task() => true,
        TaskSupport::Required => {
            let required = json!({"extensions": {bindpost_mcp_protocol::meta::TASKS_EXTENSION: {}}});
            return call.refuse(&ProtocolError::MissingCapability(required));
        }
    };
    Running::start(call, METHOD, timeout, as_task, |context| run(Parts { context, arguments }))
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
        let value = serde_json::to_value(self.0)
            .map_err(|error| ToolError::with_source("the result cannot be written as JSON", error))?;
        Ok(CallToolResult::structured(value))
    }
    fn output_schema() -> Option<Value> {
        Some(schema_of::<T>())
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
