//! Prompt definitions, their arguments and messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::{Content, Role};
use crate::lifecycle::Icon;
use crate::meta::Meta;

/// A prompt or prompt template that the server offers, as listed by `prompts/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The identifier of the prompt, sent in `prompts/get`.
    pub name: String,
    /// A human-readable name for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description of what the prompt provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments that fill in the prompt template.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// Icons that the client can display.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Protocol and application metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// An argument of a prompt. Its value is always a string.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// The identifier of the argument.
    pub name: String,
    /// A human-readable name for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description of the argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the client must provide the argument.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptMessage {
    /// The role of the message's author.
    pub role: Role,
    /// The content of the message.
    pub content: Content,
}

impl PromptMessage {
    /// Creates a message with the role `user`.
    pub fn user(content: impl Into<Content>) -> PromptMessage {
        PromptMessage { role: Role::User, content: content.into() }
    }
    /// Creates a message with the role `assistant`.
    pub fn assistant(content: impl Into<Content>) -> PromptMessage {
        PromptMessage { role: Role::Assistant, content: content.into() }
    }
}

/// The result of `prompts/get`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GetPromptResult {
    /// A description of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages to give to the model, in order.
    pub messages: Vec<PromptMessage>,
    /// Protocol and application metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
