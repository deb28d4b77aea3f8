//! Tasks of 2025-11-25: the parameter `task` of a call, `tasks/list`, and `tasks/result`, which waits for the end of a task
//! and asks its questions meanwhile.

use std::pin::pin;
use std::sync::Arc;

use bindpost_mcp_protocol::jsonrpc::{INVALID_PARAMS, METHOD_NOT_FOUND};
use bindpost_mcp_protocol::tasks::{LegacyTask, Task, TaskStatus};
use bindpost_mcp_protocol::{ErrorObject, meta};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::call::ask::AskError;
use crate::call::tasks::{TaskState, find_named_task};
use crate::call::{Call, CallTarget, HandlerOutput, RunningCall};
use crate::catalog::tool::{TaskSupport, ToolEntry};
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::{ProtocolError, ToolError};
use crate::transport::HeaderValues;

/// The parameter `task` of a call.
#[derive(Deserialize)]
struct TaskParams {
    /// How long the client wants to have the task. The server decides, and answers with its own time.
    #[serde(default, rename = "ttl")]
    _ttl: Option<f64>,
    /// This flattened field makes serde reject an array in place of the object.
    #[serde(flatten)]
    _extra: Map<String, Value>,
}

/// Returns whether a call requests a task, or the error if it must not, or must.
pub(crate) fn requests_task(inbound: &InboundRequest, entry: &ToolEntry) -> Result<bool, ProtocolError> {
    if !inbound.revision().has_task_requests() || inbound.server.tasks.is_none() {
        return Ok(false);
    }
    let task = inbound.request.params().get("task").filter(|task| !task.is_null());
    if let Some(Err(error)) = task.as_ref().map(|task| task.decode::<TaskParams>()) {
        return Err(ProtocolError::invalid_params("tools/call", format!("`task`: {error}")));
    }
    let name = &entry.definition.name;
    let reason = match (entry.task_support, task) {
        (TaskSupport::Never, Some(_)) => {
            format!("tool {name:?} does not run as a task; call it without `task`")
        }
        (TaskSupport::Required, None) => format!("tool {name:?} runs only as a task; call it with `task`"),
        (_, task) => return Ok(task.is_some()),
    };
    Err(ProtocolError::Other(ErrorObject::new(METHOD_NOT_FOUND, reason)))
}

/// Returns the answer to a call that became a task.
pub(crate) fn created_task(task: &Task) -> Value {
    json!({"task": LegacyTask::from(task)})
}

/// `tasks/list`. There are never more tasks of one caller than fit one page.
pub(crate) fn list(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    if inbound.request.params().get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        let reason = "`cursor` is not one that this server has sent";
        return inbound.refuse(&ProtocolError::invalid_params("tasks/list", reason));
    }
    let tasks = inbound.server.tasks.as_ref();
    let own = tasks.map(|tasks| tasks.list(&inbound.exchange.caller, inbound.exchange.peer.session()));
    let own: Vec<LegacyTask> = own.iter().flatten().map(LegacyTask::from).collect();
    inbound.answer(json!({"tasks": own}))
}

/// `tasks/result`: stays open until the task has ended, and is answered as the call would have been.
pub(crate) fn result(mut inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    const METHOD: &str = "tasks/result";
    let task = match find_named_task(&inbound, METHOD) {
        Ok(task) => task,
        Err(error) => return inbound.refuse(&error),
    };
    let Some(permit) = task.wait_permit() else {
        return inbound.refuse(&ProtocolError::Busy { retry_after_seconds: 1 });
    };
    let most = inbound.server.limits.calls_per_session;
    if inbound.exchange.peer.session().is_some_and(|session| session.running_calls() >= most) {
        return inbound.refuse(&ProtocolError::Busy { retry_after_seconds: 1 });
    }
    inbound.request.forget_params();
    let call = Call::new(inbound, CallTarget::TaskResult);
    RunningCall::start_listener(call, METHOD, |call| {
        Box::pin(async move {
            let _permit = permit;
            tokio::select! {
                result = deliver_result(&call, &task) => result,
                // The task is lost with the server, unless it ends in time.
                () = call.server().until_shutdown() => Err(ProtocolError::Busy { retry_after_seconds: 1 }.into()),
                () = call.until_ending() => Err(ProtocolError::Busy { retry_after_seconds: 1 }.into()),
            }
        })
    })
}

async fn deliver_result(call: &Call, task: &Arc<TaskState>) -> Result<HandlerOutput, ToolError> {
    loop {
        let mut change = pin!(task.next_change());
        change.as_mut().enable();
        let shown = task.to_task();
        if shown.status.is_terminal() {
            return ended(shown);
        }
        let Some(question) = task.take_question() else {
            change.await;
            continue;
        };
        let answer = tokio::select! {
            answer = ask(call, &shown.task_id, &question.request) => answer,
            // Another request has answered the question, or the task has ended.
            () = change => continue,
        };
        match answer {
            Err(AskError::NoAnswer) => return Err(AskError::NoAnswer.into()),
            answer => question.answer(answer),
        }
    }
}

/// Sends a question of a task to the client of the session.
async fn ask(call: &Call, task_id: &str, request: &Value) -> Result<Value, AskError> {
    let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
    let mut params = request.get("params").cloned().unwrap_or_else(|| json!({}));
    if let Value::Object(params) = &mut params {
        let own = params.entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(own) = own {
            own.insert(meta::RELATED_TASK.to_owned(), json!({"taskId": task_id}));
        }
    }
    call.ask_session(method, &params).await
}

/// Returns the outcome of a task that has ended.
fn ended(task: Task) -> Result<HandlerOutput, ToolError> {
    let related = json!({"taskId": task.task_id});
    match (task.status, task.result, task.error) {
        (TaskStatus::Completed, Some(Value::Object(mut result)), _) => {
            let mut own = match result.remove("_meta") {
                Some(Value::Object(own)) => own,
                _ => Map::new(),
            };
            own.insert(meta::RELATED_TASK.to_owned(), related);
            Ok(HandlerOutput::TaskResult(result, own))
        }
        (TaskStatus::Failed, _, Some(error)) => Err(ProtocolError::Other(error).into()),
        _ => {
            let reason = format!("task {} was cancelled", task.task_id);
            Err(ProtocolError::Other(ErrorObject::new(INVALID_PARAMS, reason)).into())
        }
    }
}
