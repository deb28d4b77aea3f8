//! Functions with MCP triggers as entries of the catalog.

use std::sync::Arc;

use bindpost_mcp_protocol::jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS};
use bindpost_mcp_protocol::lifecycle::LogLevel;
use bindpost_mcp_protocol::{CallToolResult, ErrorObject, GetPromptResult, ReadResourceResult};
use bindpost_mcp_server::{
    AskError, CallParts, Context, Entry, PromptEntry, ProtocolError, ResourceEntry, Signature, TemplateEntry,
    ToolEntry, ToolError,
};
use http::HeaderName;
use serde_json::{Map, Value, json};

use crate::app::LogLevels;
use crate::bindings::arguments::Arguments;
use crate::bindings::context::{Request, Subject};
use crate::bindings::progress::{self, Progress};
use crate::bindings::results::{self, ResultError, Returned};
use crate::console;
use crate::datum::Datum;
use crate::front_door::SSE_PATHS;
use crate::function::{Address, Function, PromptTrigger, ResourceTrigger, ToolTrigger, Trigger};
use crate::invocation::{Failure, Listener, Runner, Trace};
use crate::worker::{Level, Log, LogOrigin};

/// How functions are served.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// Arguments are checked against their types and values, not only for being there.
    pub(crate) validates: bool,
    /// A prompt that returns the JSON of a `GetPromptResult` means it.
    pub(crate) detects_prompts: bool,
    /// Clients are told what a function says when it fails.
    pub(crate) detailed_errors: bool,
}

/// How often one call may ask its client; a function that never stops asking is stopped.
const MOST_ROUNDS: usize = 32;

/// The entry of a function.
pub(crate) fn entry(runner: &Arc<Runner>, function: &Arc<Function>, manner: Manner) -> Entry {
    let served = Served { runner: runner.clone(), function: function.clone(), manner };
    let nothing = Signature::new;
    match &function.trigger {
        Trigger::Tool(trigger) => {
            let run = move |parts: CallParts| {
                let served = served.clone();
                async move { served.call_tool(&parts.context).await }
            };
            let entry = ToolEntry::with_signature(&trigger.tool.name, nothing(), run)
                .definition(trigger.tool.clone())
                .any_name()
                .without_output_validation()
                .timeout(None);
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
                Address::One(resource) => {
                    ResourceEntry::with_signature(&resource.uri, &resource.name, nothing(), run)
                        .definition(resource.clone())
                        .timeout(None)
                        .into()
                }
                Address::Family(pattern, template) => {
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
    }
}

/// What a client is told about what is not there, in the platform's words.
pub(crate) fn word_unknown(error: &ProtocolError) -> Option<ErrorObject> {
    let text = match error {
        ProtocolError::UnknownTool(name) => format!("Unknown tool: '{name}'"),
        ProtocolError::UnknownPrompt(name) => format!("Unknown prompt: '{name}'"),
        ProtocolError::UnknownResource(uri) => format!("Unknown resource: '{uri}'"),
        _ => return None,
    };
    Some(ErrorObject::new(INVALID_PARAMS, text))
}

/// Missing arguments are told by the function's own check, in the platform's words.
fn without_required(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        members.remove("required");
    }
    schema
}

/// One function as clients meet it.
#[derive(Clone)]
struct Served {
    runner: Arc<Runner>,
    function: Arc<Function>,
    manner: Manner,
}

/// Where a call stands that has asked its client.
#[derive(Default)]
struct Round {
    responses: Option<Map<String, Value>>,
    state: Option<Value>,
}

impl Served {
    async fn call_tool(&self, context: &Context) -> Result<CallToolResult, ToolError> {
        let Trigger::Tool(ToolTrigger { required, uses_result_schema, .. }) = &self.function.trigger else {
            return Err(ToolError::new("this function is no tool"));
        };
        let name = context.requested_name();
        let subject = Subject::Tool { name: &name, arguments: arguments(context) };
        let is_node = self.function.source.language == "node";
        let shape = |returned| {
            let is_envelope = *uses_result_schema || (is_node && results::is_envelope(&returned));
            results::tool_result(returned, is_envelope)
        };
        match self.run(context, subject, required, shape).await? {
            Ok(result) => Ok(result),
            Err(failure) => {
                let text = self.told(&failure, format!("An error occurred invoking '{name}'."));
                Ok(CallToolResult::error(text))
            }
        }
    }

    async fn read_resource(&self, context: &Context) -> Result<ReadResourceResult, ToolError> {
        let Trigger::Resource(ResourceTrigger { mime_type, .. }) = &self.function.trigger else {
            return Err(ToolError::new("this function is no resource"));
        };
        let uri = context.uri().unwrap_or_default();
        let variables: Vec<(String, String)> =
            context.variables().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let subject = Subject::Resource { uri, variables: &variables };
        let shape = |returned| results::resource_result(returned, uri, mime_type.as_deref());
        self.run(context, subject, &[], shape).await?.map_err(|failure| self.internal(&failure))
    }

    async fn get_prompt(&self, context: &Context) -> Result<GetPromptResult, ToolError> {
        let Trigger::Prompt(PromptTrigger { required, uses_result_schema, .. }) = &self.function.trigger
        else {
            return Err(ToolError::new("this function is no prompt"));
        };
        let name = context.requested_name();
        let subject = Subject::Prompt { name: &name, arguments: arguments(context) };
        let shape =
            |returned| results::prompt_result(returned, *uses_result_schema, self.manner.detects_prompts);
        self.run(context, subject, required, shape).await?.map_err(|failure| self.internal(&failure))
    }

    /// Runs the function until it is done, asking the client as often as the function wants. A failure of the
    /// function is for the caller to word; anything else is answered as it is.
    async fn run<T>(
        &self,
        context: &Context,
        subject: Subject<'_>,
        required: &[String],
        shape: impl Fn(Datum) -> Result<Returned<T>, ResultError>,
    ) -> Result<Result<T, Failure>, ToolError> {
        let client_info = context.client_info_json();
        let http = context.http();
        let request = Request {
            subject,
            session_id: context.session_id(),
            client_info: client_info.as_deref(),
            transport: match http {
                None => "unknown",
                Some(http) if http.uri().path() == SSE_PATHS.1 => "http-sse",
                Some(_) => "http-streamable",
            },
            headers: http.map(|http| http.headers()),
            input_responses: None,
            state: None,
        };
        if let Some(text) = request.missing_required(required) {
            return Err(ProtocolError::Other(ErrorObject::new(INVALID_PARAMS, text)).into());
        }
        let (mut round, rounds) = taken_up(context).await?;
        for number in rounds..MOST_ROUNDS {
            let again;
            let request = match &round {
                Round { responses: None, state: None } => &request,
                Round { responses, state } => {
                    again = Request {
                        input_responses: responses.as_ref(),
                        state: state.as_ref(),
                        ..request.clone()
                    };
                    &again
                }
            };
            let listener = Client { context, served: self };
            let returned = match self.runner.run(&self.function, request, trace(context), &listener).await {
                Ok(returned) => returned,
                Err(failure) => return Ok(Err(self.noted(failure))),
            };
            match shape(returned) {
                Ok(Returned::Done(result)) => return Ok(Ok(result)),
                Err(error) => return Ok(Err(self.noted(error.into()))),
                Ok(Returned::InputRequired { requests, state }) => {
                    context.remember(json!({"requests": requests, "state": state, "rounds": number + 1}));
                    let responses = match context.ask_all(&requests).await {
                        // The function's mistake, and for its author to read.
                        Err(AskError::Unclear(reason)) => {
                            return Ok(Err(self.noted(Failure::Question(reason))));
                        }
                        asked => asked?,
                    };
                    round = Round { responses: Some(responses), state };
                }
            }
        }
        Err(ToolError::new(format!("the function asked {MOST_ROUNDS} times and did not come to an end")))
    }

    /// The failure, after the log has it.
    fn noted(&self, failure: Failure) -> Failure {
        let function = self.function.name.as_str();
        match failure.stack() {
            Some(stack) => tracing::error!(target: "function", function, "failed: {failure}\n{stack}"),
            None => tracing::error!(target: "function", function, "failed: {failure}"),
        }
        failure
    }

    fn told(&self, failure: &Failure, text: String) -> String {
        match failure.shown() {
            Some(shown) => format!("{text} {shown}"),
            None if self.manner.detailed_errors => format!("{text} {failure}"),
            None => text,
        }
    }

    fn internal(&self, failure: &Failure) -> ToolError {
        let text = self.told(failure, "An error occurred.".to_owned());
        ProtocolError::Other(ErrorObject::new(INTERNAL_ERROR, text)).into()
    }
}

/// The arguments as the client wrote them, if it did.
fn arguments(context: &Context) -> Arguments<'_> {
    Arguments::parse(context.given_arguments_json())
}

/// Where the call goes on, if the client has come back with answers, and after how many rounds.
async fn taken_up(context: &Context) -> Result<(Round, usize), ToolError> {
    let memory = context.remembered().unwrap_or_default();
    let Some(requests) = memory.get("requests").and_then(Value::as_object) else {
        return Ok((Round::default(), 0));
    };
    let responses = context.ask_all(requests).await?;
    let state = memory.get("state").filter(|state| !state.is_null()).cloned();
    let rounds = memory.get("rounds").and_then(Value::as_u64).and_then(|rounds| usize::try_from(rounds).ok());
    Ok((Round { responses: Some(responses), state }, rounds.unwrap_or(MOST_ROUNDS)))
}

/// Headers of W3C trace context. A name as text would have to be read each time.
static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

fn trace(context: &Context) -> Trace {
    let header = |name| context.http()?.headers().get(name)?.to_str().ok().map(str::to_owned);
    Trace {
        parent: context.traceparent().map(Into::into).or_else(|| header(&TRACEPARENT)),
        state: context.tracestate().map(Into::into).or_else(|| header(&TRACESTATE)),
    }
}

/// Passes on what a function says: progress to the client, everything else to the console and, if the client
/// asked for it, to the client.
struct Client<'a> {
    context: &'a Context,
    served: &'a Served,
}

impl Listener for Client<'_> {
    async fn hear(&self, log: Log) {
        let Served { runner, function, .. } = self.served;
        tell(self.context, &runner.log_levels, &function.name, log).await;
    }
}

async fn tell(context: &Context, levels: &LogLevels, function: &str, log: Log) {
    if let Some(Progress { progress, total, message }) = progress::parse(&log.message) {
        return context.progress(progress, total, message).await;
    }
    console::write(levels, Some(function), &log);
    let Log { level, origin, category, message, .. } = log;
    // Java's worker says this of every call, as if the function had.
    let is_workers_own = message.starts_with("Function \"") && message.ends_with("invoked by Java Worker");
    if origin != LogOrigin::User || is_workers_own || !context.asked_for_logs() {
        return;
    }
    let level = match level {
        Level::Trace | Level::Debug => LogLevel::Debug,
        Level::Information => LogLevel::Info,
        Level::Warning => LogLevel::Warning,
        Level::Error => LogLevel::Error,
        Level::Critical => LogLevel::Critical,
    };
    context.log(level, Some(category.as_str()).filter(|it| !it.is_empty()), message).await;
}
