//! Tasks for clients that do not know them: a call that takes long is answered with the id of a task, and the tool
//! `task_result` returns the result.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::tasks::{Task, TaskStatus};
use bindpost_mcp_protocol::{CallToolResult, meta};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::call::ask::AskError;
use crate::call::tasks::TaskState;
use crate::catalog::tool::ToolEntry;
use crate::error::ToolError;
use crate::handler::context::Context;
use crate::handler::extract::CallParts;
use crate::handler::schema::shorten;
use crate::handler::signature::Signature;

/// The interval at which clients should ask for a result.
const POLL_AFTER_SECONDS: u64 = 5;

impl ToolEntry {
    /// The name of [`ToolEntry::task_result`].
    pub const TASK_RESULT: &'static str = "task_result";

    /// Returns the tool `task_result`, which returns the result of a call that was answered before its end
    /// ([`ToolEntry::answer_after`]), or cancels it. A call of this tool waits for the end as long as `wait`.
    #[track_caller]
    pub fn task_result(wait: Duration) -> ToolEntry {
        let schema = json!({
            "type": "object",
            "properties": {
                "taskId": {"type": "string", "description": "The taskId of the answer with the status \"running\"."},
                "cancel": {"type": "boolean", "description": "Cancels the task instead of waiting for it."},
            },
            "required": ["taskId"],
        });
        ToolEntry::with_signature(ToolEntry::TASK_RESULT, Signature::new(), move |parts: CallParts| async move {
            let id: String = parts.context.required_argument("taskId")?;
            let cancels = parts.context.argument("cancel")?.unwrap_or(false);
            find_result(&parts.context, &id, cancels, wait).await
        })
        .description(
            "Returns the result of a tool that answered with the status \"running\" and a taskId. Call it again while the \
             status is \"running\".",
        )
        .input_schema(schema)
        .timeout(None)
    }
}

async fn find_result(
    context: &Context,
    id: &str,
    cancels: bool,
    wait: Duration,
) -> Result<CallToolResult, ToolError> {
    let call = context.call();
    let tasks = call.server().tasks.as_ref();
    let Some(task) = tasks.and_then(|tasks| tasks.find(id, call.caller())) else {
        let id = shorten(id);
        return Err(ToolError::new(format!(
            "unknown task {id:?}: it has expired, or it belongs to another caller"
        )));
    };
    if cancels {
        task.cancel();
    }
    // A call that only waits takes no other call its turn. With too many of them it does not wait.
    let permit = task.wait_permit();
    let wait = if permit.is_some() { wait } else { Duration::ZERO };
    call.release_permit();
    let mut deadline = Instant::now() + wait;
    loop {
        let mut change = pin!(task.next_change());
        change.as_mut().enable();
        let shown = task.to_task();
        if shown.status.is_terminal() {
            return Ok(ended(shown));
        }
        tokio::select! {
            asked = ask_next_question(context, &task) => {
                asked?;
                // The wait does not include the time in which the user answers.
                deadline = Instant::now() + wait;
            }
            () = change => {}
            () = sleep_until(deadline), if shown.status == TaskStatus::Working => return Ok(running(&shown)),
        }
    }
}

/// Asks the client a question of the task. Never returns if the task has none that no other request asks.
async fn ask_next_question(context: &Context, task: &Arc<TaskState>) -> Result<(), ToolError> {
    let Some(question) = task.take_question() else { return std::future::pending().await };
    match context.ask_raw(question.key(), &question.request).await {
        Ok(answer) => question.answer(Ok(answer)),
        Err(error @ (AskError::Refused(_) | AskError::Invalid(_))) => question.answer(Err(error)),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Returns the answer to a call that goes on as a task.
pub(crate) fn running(task: &Task) -> CallToolResult {
    let mut structured =
        json!({"status": "running", "taskId": task.task_id, "pollAfterSeconds": POLL_AFTER_SECONDS});
    let mut text = "Still running".to_owned();
    if let Some(message) = &task.status_message {
        structured["message"] = message.as_str().into();
        text = format!("{text}: {message}");
    }
    let (tool, arguments) = (ToolEntry::TASK_RESULT, json!({"taskId": task.task_id}));
    let text = format!(
        "{text}.\nTo get the result, call the tool {tool} with {arguments} in {POLL_AFTER_SECONDS} seconds."
    );
    CallToolResult { structured_content: Some(structured), ..CallToolResult::text(text) }
}

/// Returns the result of a task that has ended.
fn ended(task: Task) -> CallToolResult {
    match (task.status, task.result, task.error) {
        (TaskStatus::Completed, Some(Value::Object(mut result)), _) => {
            // Members of the response, which gets its own.
            result.remove("resultType");
            if let Some(Value::Object(own)) = result.get_mut("_meta") {
                own.remove(meta::SERVER_INFO);
                if own.is_empty() {
                    result.remove("_meta");
                }
            }
            serde_json::from_value(Value::Object(result))
                .unwrap_or_else(|error| CallToolResult::error(format!("the result cannot be read: {error}")))
        }
        (TaskStatus::Failed, _, Some(error)) => CallToolResult::error(error.message),
        _ => CallToolResult::error(format!("task {} was cancelled", task.task_id)),
    }
}
