//! The tasks extension: calls that outlive their request.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Runs.
    Working,
    /// Waits for answers (`tasks/update`).
    InputRequired,
    /// Ended with a result.
    Completed,
    /// Ended with a JSON-RPC error.
    Failed,
    /// Ended by `tasks/cancel`.
    Cancelled,
}

impl TaskStatus {
    /// Whether it stays as it is.
    pub fn is_terminal(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

/// A task as the wire shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Unguessable.
    pub task_id: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// More on that, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub last_updated_at: String,
    /// How long it is kept, in milliseconds from its creation; `null` for ever.
    pub ttl_ms: Option<u64>,
    /// How often to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub input_requests: Map<String, Value>,
    /// How it completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::ErrorObject>,
}
