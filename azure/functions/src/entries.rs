//! Builds the catalog's entries from functions with MCP triggers.

use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS};
use bindpost_mcp_protocol::lifecycle::LogLevel;
use bindpost_mcp_protocol::{CallToolResult, ErrorObject, GetPromptResult, ReadResourceResult};
use bindpost_mcp_server::{
    AskError, CallParts, Context, Entry, PromptEntry, ProtocolError, ResourceEntry, Signature, TaskSupport,
    TemplateEntry, ToolEntry, ToolError,
};
use http::HeaderName;
use serde_json::{Map, Value, json};

use crate::app::LogLevels;
use crate::bindings::arguments::Arguments;
use crate::bindings::context::{McpRequest, RequestSubject};
use crate::bindings::progress::{self, ProgressUpdate};
use crate::bindings::results::{self, FunctionReply, ReturnValueError};
use crate::bindings::trigger_event::TriggerEvent;
use crate::datum::Datum;
use crate::function::{Function, PromptTrigger, ResourceAddress, ResourceTrigger, ToolTrigger, Trigger};
use crate::host::console;
use crate::host::front::SSE_PATHS;
use crate::invocation::{FunctionFailure, FunctionRunner, LogSink, TraceContext};
use crate::worker::{LogOrigin, LogRecord, LogSeverity};

/// The options for serving functions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServingOptions {
    /// Validates the types and values of arguments, not only their presence.
    pub(crate) validates: bool,
    /// Treats a prompt's text as a `GetPromptResult` if it is the JSON of one.
    pub(crate) detects_prompts: bool,
    /// Includes the error message of a failed function in the response to the client.
    pub(crate) detailed_errors: bool,
}

/// The maximum number of times one call may ask its client for input.
const MOST_ROUNDS: usize = 32;

/// Whether calls of a tool run as tasks, and when clients without tasks get an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolTasks {
    pub(crate) support: TaskSupport,
    pub(crate) answer_after: Option<Duration>,
}

/// Builds the entry of a function. A function without an MCP trigger has none.
pub(crate) fn entry(
    runner: &Arc<FunctionRunner>,
    function: &Arc<Function>,
    manner: ServingOptions,
    tasks: ToolTasks,
) -> Option<Entry> {
    let served = ServedFunction { runner: runner.clone(), function: function.clone(), manner };
    let nothing = Signature::new;
    Some(match &function.trigger {
        Trigger::Tool(trigger) => {
            let run = move |parts: CallParts| {
                let served = served.clone();
                async move { served.call_tool(&parts.context).await }
            };
            let mut entry = ToolEntry::with_signature(&trigger.tool.name, nothing(), run)
                .definition(trigger.tool.clone())
                .any_name()
                .without_output_validation()
                .task(tasks.support)
                .timeout(None);
            if let Some(time) = tasks.answer_after {
                entry = entry.answer_after(time);
            }
            match manner.validates {
                true => entry.checked_by(without_required(&trigger.tool.input_schema)).into(),
                false => entry.without_validation().into(),
            }
        }
        Trigger::Resource(trigger) => {
            let run = move |parts: CallParts| {
                let served = served.clone();
                async move { served.read_resource(&parts.context).await }
            };
            match &trigger.address {
                ResourceAddress::One(resource) => {
                    ResourceEntry::with_signature(&resource.uri, &resource.name, nothing(), run)
                        .definition(resource.clone())
                        .timeout(None)
                        .into()
                }
                ResourceAddress::Family(pattern, template) => {
                    let pattern = pattern.clone();
                    TemplateEntry::with_signature(&template.uri_template, &template.name, nothing(), run)
                        .definition(template.clone())
                        .matched_by(move |uri| pattern.matches(uri))
                        .timeout(None)
                        .into()
                }
            }
        }
        Trigger::Prompt(trigger) => {
            let run = move |parts: CallParts| {
                let served = served.clone();
                async move { served.get_prompt(&parts.context).await }
            };
            PromptEntry::with_signature(&trigger.prompt.name, nothing(), run)
                .definition(trigger.prompt.clone())
                .without_validation()
                .timeout(None)
                .into()
        }
        Trigger::Http(_) | Trigger::Timer(_) => return None,
    })
}

/// Returns the platform's error message for an unknown tool, prompt or resource.
pub(crate) fn unknown_entry_error(error: &ProtocolError) -> Option<ErrorObject> {
    let text = match error {
        ProtocolError::UnknownTool(name) => format!("Unknown tool: '{name}'"),
        ProtocolError::UnknownPrompt(name) => format!("Unknown prompt: '{name}'"),
        ProtocolError::UnknownResource(uri) => format!("Unknown resource: '{uri}'"),
        _ => return None,
    };
    Some(ErrorObject::new(INVALID_PARAMS, text))
}

/// Removes `required` from a schema. The function's own check reports missing arguments with the platform's
/// text.
fn without_required(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        members.remove("required");
    }
    schema
}

/// A function with everything that its entry needs to run it.
#[derive(Clone)]
struct ServedFunction {
    runner: Arc<FunctionRunner>,
    function: Arc<Function>,
    manner: ServingOptions,
}

/// The answers of the client and the state of the function, for the next round of a call.
#[derive(Default)]
struct InputRound {
    responses: Option<Map<String, Value>>,
    state: Option<Value>,
}

impl ServedFunction {
    async fn call_tool(&self, context: &Context) -> Result<CallToolResult, ToolError> {
        let Trigger::Tool(ToolTrigger { required, uses_result_schema, .. }) = &self.function.trigger else {
            return Err(ToolError::new("this function is not a tool"));
        };
        let name = context.requested_name();
        let subject = RequestSubject::Tool { name: &name, arguments: arguments(context) };
        let is_node = self.function.source.language == "node";
        let shape = |returned| {
            let is_envelope = *uses_result_schema || (is_node && results::is_envelope(&returned));
            results::tool_result(returned, is_envelope)
        };
        match self.run(context, subject, required, shape).await? {
            Ok(result) => Ok(result),
            Err(failure) => {
                let text = self.failure_text(&failure, format!("An error occurred invoking '{name}'."));
                Ok(CallToolResult::error(text))
            }
        }
    }

    async fn read_resource(&self, context: &Context) -> Result<ReadResourceResult, ToolError> {
        let Trigger::Resource(ResourceTrigger { mime_type, .. }) = &self.function.trigger else {
            return Err(ToolError::new("this function is not a resource"));
        };
        let uri = context.uri().unwrap_or_default();
        let variables: Vec<(String, String)> =
            context.variables().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let subject = RequestSubject::Resource { uri, variables: &variables };
        let shape = |returned| results::resource_result(returned, uri, mime_type.as_deref());
        self.run(context, subject, &[], shape).await?.map_err(|failure| self.internal_error(&failure))
    }

    async fn get_prompt(&self, context: &Context) -> Result<GetPromptResult, ToolError> {
        let Trigger::Prompt(PromptTrigger { required, uses_result_schema, .. }) = &self.function.trigger
        else {
            return Err(ToolError::new("this function is not a prompt"));
        };
        let name = context.requested_name();
        let subject = RequestSubject::Prompt { name: &name, arguments: arguments(context) };
        let shape =
            |returned| results::prompt_result(returned, *uses_result_schema, self.manner.detects_prompts);
        self.run(context, subject, required, shape).await?.map_err(|failure| self.internal_error(&failure))
    }

    /// Runs the function until it returns a result. The client is asked as often as the function requests.
    /// The caller turns a failure of the function into a message. Other errors are returned as they are.
    async fn run<T>(
        &self,
        context: &Context,
        subject: RequestSubject<'_>,
        required: &[String],
        shape: impl Fn(Datum) -> Result<FunctionReply<T>, ReturnValueError>,
    ) -> Result<Result<T, FunctionFailure>, ToolError> {
        let client_info = context.client_info_json();
        let http = context.http();
        let request = McpRequest {
            subject,
            session_id: context.session_id(),
            client_info: client_info.as_deref(),
            transport: match http {
                None => "unknown",
                Some(http) if http.uri().path() == SSE_PATHS.1 => "http-sse",
                Some(_) => "http-streamable",
            },
            headers: http.map(|http| http.headers()),
            sent_names: http.and_then(|http| http.parts.extensions.get()),
            input_responses: None,
            state: None,
        };
        if let Some(text) = request.missing_required(required) {
            return Err(ProtocolError::Other(ErrorObject::new(INVALID_PARAMS, text)).into());
        }
        let (mut round, rounds) = resume_round(context).await?;
        for number in rounds..MOST_ROUNDS {
            let again;
            let request = match &round {
                InputRound { responses: None, state: None } => &request,
                InputRound { responses, state } => {
                    again = McpRequest {
                        input_responses: responses.as_ref(),
                        state: state.as_ref(),
                        ..request.clone()
                    };
                    &again
                }
            };
            let (levels, function) = (&self.runner.log_levels, self.function.name.as_str());
            let listener = ClientLogSink { context, levels, function };
            let event = TriggerEvent::mcp(request);
            let returned =
                match self.runner.run(&self.function, event, trace_context(context), &listener).await {
                    Ok(outcome) => outcome.returned,
                    Err(failure) => return Ok(Err(self.log_failure(failure))),
                };
            match shape(returned) {
                Ok(FunctionReply::Done(result)) => return Ok(Ok(result)),
                Err(error) => return Ok(Err(self.log_failure(error.into()))),
                Ok(FunctionReply::InputRequired { requests, state }) => {
                    context.remember(json!({"requests": requests, "state": state, "rounds": number + 1}));
                    let responses = match context.ask_all(&requests).await {
                        // The function's request is invalid: its author needs the reason.
                        Err(AskError::Unclear(reason)) => {
                            return Ok(Err(self.log_failure(FunctionFailure::Question(reason))));
                        }
                        asked => asked?,
                    };
                    round = InputRound { responses: Some(responses), state };
                }
            }
        }
        Err(ToolError::new(format!("the function asked {MOST_ROUNDS} times and returned no result")))
    }

    /// Logs the failure and returns it.
    fn log_failure(&self, failure: FunctionFailure) -> FunctionFailure {
        console::log_failure(&self.function.name, &failure);
        failure
    }

    fn failure_text(&self, failure: &FunctionFailure, text: String) -> String {
        match failure.client_message() {
            Some(shown) => format!("{text} {shown}"),
            None if self.manner.detailed_errors => format!("{text} {failure}"),
            None => text,
        }
    }

    fn internal_error(&self, failure: &FunctionFailure) -> ToolError {
        let text = self.failure_text(failure, "An error occurred.".to_owned());
        ProtocolError::Other(ErrorObject::new(INTERNAL_ERROR, text)).into()
    }
}

/// Returns the arguments as the client sent them.
fn arguments(context: &Context) -> Arguments<'_> {
    Arguments::parse(context.given_arguments_json())
}

/// Returns the round at which a call continues if the client has sent answers, and the number of rounds so
/// far.
async fn resume_round(context: &Context) -> Result<(InputRound, usize), ToolError> {
    let memory = context.remembered().unwrap_or_default();
    let Some(requests) = memory.get("requests").and_then(Value::as_object) else {
        return Ok((InputRound::default(), 0));
    };
    let responses = context.ask_all(requests).await?;
    let state = memory.get("state").filter(|state| !state.is_null()).cloned();
    let rounds = memory.get("rounds").and_then(Value::as_u64).and_then(|rounds| usize::try_from(rounds).ok());
    Ok((InputRound { responses: Some(responses), state }, rounds.unwrap_or(MOST_ROUNDS)))
}

/// The headers of W3C trace context. As statics they are not parsed for each call.
pub(crate) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

pub(crate) fn trace_context(context: &Context) -> TraceContext {
    let header = |name| context.http()?.headers().get(name)?.to_str().ok().map(str::to_owned);
    TraceContext {
        parent: context.traceparent().map(Into::into).or_else(|| header(&TRACEPARENT)),
        state: context.tracestate().map(Into::into).or_else(|| header(&TRACESTATE)),
    }
}

/// Forwards the logs of a function: progress to the client, everything else to the console and, if the client
/// requested logs, to the client.
pub(crate) struct ClientLogSink<'a> {
    pub(crate) context: &'a Context,
    pub(crate) levels: &'a LogLevels,
    pub(crate) function: &'a str,
}

impl LogSink for ClientLogSink<'_> {
    async fn receive_log(&self, log: LogRecord) {
        forward_log(self.context, self.levels, self.function, log).await;
    }
}

async fn forward_log(context: &Context, levels: &LogLevels, function: &str, log: LogRecord) {
    if let Some(ProgressUpdate { progress, total, message }) = progress::parse(&log.message) {
        return context.progress(progress, total, message).await;
    }
    console::write(levels, Some(function), &log);
    let LogRecord { level, origin, category, message, .. } = log;
    // The Java worker logs this for every call with the origin of a user log.
    let is_workers_own = message.starts_with("Function \"") && message.ends_with("invoked by Java Worker");
    if origin != LogOrigin::User || is_workers_own || !context.asked_for_logs() {
        return;
    }
    let level = match level {
        LogSeverity::Trace | LogSeverity::Debug => LogLevel::Debug,
        LogSeverity::Information => LogLevel::Info,
        LogSeverity::Warning => LogLevel::Warning,
        LogSeverity::Error => LogLevel::Error,
        LogSeverity::Critical => LogLevel::Critical,
    };
    context.log(level, Some(category.as_str()).filter(|it| !it.is_empty()), message).await;
}
