//! `completion/complete`: suggestions for arguments of prompts and variables of resource templates.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::lifecycle::{CompleteParams, Completion, CompletionReference};
use serde_json::{Value, json};

use crate::call::{Call, CallTarget, HandlerOutput, RunningCall};
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::{ProtocolError, ToolError};
use crate::transport::HeaderValues;

/// Suggests values for an argument.
#[derive(Clone)]
pub(crate) enum ArgumentCompleter {
    /// A synchronous function.
    Now(Arc<Suggest>),
    /// An asynchronous function.
    Later(Arc<SuggestLater>),
}

type Suggest = dyn Fn(&str) -> Vec<String> + Send + Sync;
type SuggestLater = dyn Fn(String) -> Suggesting + Send + Sync;

/// The future of an asynchronous completer.
type Suggesting = Pin<Box<dyn Future<Output = Result<Vec<String>, ToolError>> + Send>>;

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
        ArgumentCompleter::Later(Arc::new(move |typed| Box::pin(completer(typed))))
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
        RunningCall::start(call, "completion/complete", None, false, |_| {
            Box::pin(async move {
                let suggesting = suggest(typed);
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
    let snapshot = inbound.server.catalog.snapshot();
    let find = |completers: &[(String, ArgumentCompleter)]| {
        let found = completers.iter().find(|(argument, _)| *argument == params.argument.name);
        found.map(|(_, completer)| completer.clone())
    };
    let (completer, timeout) = match &params.reference {
        CompletionReference::Prompt { name } => match snapshot.prompt(name) {
            None => return inbound.refuse_not_found(ProtocolError::UnknownPrompt(name.clone())),
            Some(entry) => (find(&entry.completers), entry.timeout),
        },
        CompletionReference::Resource { uri } => match snapshot.template(uri) {
            None => return inbound.refuse_not_found(ProtocolError::UnknownResource(uri.clone())),
            Some(entry) => (find(&entry.completers), entry.timeout),
        },
    };
    let timeout = timeout.unwrap_or(inbound.server.limits.call_timeout);
    match completer {
        Some(completer) => completer.start(inbound, params.argument.value, timeout),
        None => inbound.answer(completion_result(Completion::default())),
    }
}
