//! Tool definitions and the results of tool calls.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::Content;
use crate::lifecycle::Icon;
use crate::meta::Meta;
use crate::tool_schema::ToolSchema;

/// A tool that the client can call, as listed by `tools/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The identifier of the tool, sent in `tools/call`.
    pub name: String,
    /// A human-readable name for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description of the tool. It helps the model decide when and how to call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments. Its root has `type: object`.
    pub input_schema: ToolSchema,
    /// The JSON Schema of `structuredContent` in the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<ToolSchema>,
    /// Optional hints on the behavior of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Icons that the client can display.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// How the tool may be called (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Protocol and application metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How a tool may be called (2025-11-25).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// Whether a call may be a task: `forbidden`, `optional` or `required`. Default: `forbidden`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<String>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Hints on the behavior of a tool. Clients must not rely on hints from an untrusted server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// A human-readable title. Newer revisions prefer `Tool.title`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether the tool leaves its environment unmodified. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// Whether the tool may perform destructive updates, not only additions. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Whether repeated calls with the same arguments have no additional effect. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Whether the tool may interact with external entities outside a closed domain. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The result of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// The unstructured result as content blocks. It is always written, even when empty.
    #[serde(default)]
    pub content: Vec<Content>,
    /// The structured result as JSON. It matches the tool's `outputSchema` if one is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Whether the tool call failed. `content` then describes the failure to the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Protocol and application metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CallToolResult {
    /// Creates a successful result with one text block.
    pub fn text(text: impl Into<String>) -> CallToolResult {
        CallToolResult { content: vec![Content::text(text)], ..CallToolResult::default() }
    }
    /// Creates a failed result whose text the model can read.
    pub fn error(text: impl Into<String>) -> CallToolResult {
        CallToolResult { is_error: true, ..CallToolResult::text(text) }
    }
    /// Creates a result with structured content. The same JSON is added as text for clients that do not
    /// support structured content.
    pub fn structured(value: Value) -> CallToolResult {
        // `Value::to_string` writes through a formatter, which takes twice as long.
        let text = serde_json::to_string(&value).unwrap_or_default();
        CallToolResult { structured_content: Some(value), ..CallToolResult::text(text) }
    }
}
