//! Tasks: tool calls that continue after their request was answered, in the form of the tasks extension and in that of
//! 2025-11-25.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// The task is running.
    Working,
    /// The task requires input from the client, sent with `tasks/update`.
    InputRequired,
    /// The task ended with a result.
    Completed,
    /// The task ended with a JSON-RPC error.
    Failed,
    /// The task was cancelled with `tasks/cancel`.
    Cancelled,
}

impl TaskStatus {
    /// Returns whether the status is final.
    pub fn is_terminal(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

/// A task, as written in results and notifications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The unguessable identifier of the task.
    pub task_id: String,
    /// The current status.
    pub status: TaskStatus,
    /// A human-readable message about the current status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// The creation time, as an RFC 3339 timestamp.
    pub created_at: String,
    /// The time of the last update, as an RFC 3339 timestamp.
    pub last_updated_at: String,
    /// The time for which the server keeps the task, in milliseconds from its creation.
    /// `null` means no limit.
    pub ttl_ms: Option<u64>,
    /// The suggested interval between two `tasks/get` requests, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// The outstanding input requests, by key, while the status is `input_required`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub input_requests: Map<String, Value>,
    /// The result of the call, if the task completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The JSON-RPC error, if the task failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::ErrorObject>,
}

/// A task in the form of 2025-11-25. It has neither questions nor the result: `tasks/result` delivers both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LegacyTask {
    /// The unguessable identifier of the task.
    pub task_id: String,
    /// The current status. A tool that ended with an error has failed.
    pub status: TaskStatus,
    /// A human-readable message about the current status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// The creation time, as an RFC 3339 timestamp.
    pub created_at: String,
    /// The time of the last update, as an RFC 3339 timestamp.
    pub last_updated_at: String,
    /// The time for which the server keeps the task, in milliseconds from its creation.
    /// `null` means no limit.
    pub ttl: Option<u64>,
    /// The suggested interval between two `tasks/get` requests, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<u64>,
}

impl From<&Task> for LegacyTask {
    fn from(task: &Task) -> LegacyTask {
        let is_error =
            task.result.as_ref().is_some_and(|result| result.get("isError") == Some(&Value::Bool(true)));
        LegacyTask {
            task_id: task.task_id.clone(),
            status: if is_error { TaskStatus::Failed } else { task.status },
            status_message: task.status_message.clone(),
            created_at: task.created_at.clone(),
            last_updated_at: task.last_updated_at.clone(),
            ttl: task.ttl_ms,
            poll_interval: task.poll_interval_ms,
        }
    }
}
