//! Tools: their definitions and results.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::Content;
use crate::lifecycle::Icon;
use crate::meta::Meta;

/// A tool as `tools/list` shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// What a call names.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments; its root has `type: object`.
    pub input_schema: Value,
    /// JSON Schema of the structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints on what a call may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Pictures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// More.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Hints on what a call of a tool may do. They are not promises.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// For people; `Tool.title` is newer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// May destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Twice does the same as once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Reaches out into the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What a call gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// For the model. Always there, even empty.
    #[serde(default)]
    pub content: Vec<Content>,
    /// For programs: what `outputSchema` describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// The tool ran and failed; `content` says why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// More.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CallToolResult {
    /// One piece of text.
    pub fn text(text: impl Into<String>) -> CallToolResult {
        CallToolResult { content: vec![Content::text(text)], ..CallToolResult::default() }
    }
    /// A failure the model can read.
    pub fn error(text: impl Into<String>) -> CallToolResult {
        CallToolResult { is_error: true, ..CallToolResult::text(text) }
    }
    /// Structured content, with the same JSON as text for clients that know no structure.
    pub fn structured(value: Value) -> CallToolResult {
        // Not `to_string`: writing by way of a formatter costs twice as much.
        let text = serde_json::to_string(&value).unwrap_or_default();
        CallToolResult { structured_content: Some(value), ..CallToolResult::text(text) }
    }
}
