//! Requests from a server to a client: elicitation, sampling and roots.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::{MediaContent, Role, TextContent};
use crate::meta::Meta;

/// The method `elicitation/create`.
pub const ELICIT: &str = "elicitation/create";
/// The method `sampling/createMessage`.
pub const SAMPLE: &str = "sampling/createMessage";
/// The method `roots/list`.
pub const LIST_ROOTS: &str = "roots/list";

/// The parameters of `elicitation/create`: a request for input from the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitParams {
    /// The mode of the elicitation: `url`, or absent for a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The message shown to the user. It explains what is requested and why.
    pub message: String,
    /// The JSON Schema of the form: an object with primitive properties only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Value>,
    /// The URL that the user should open, in URL mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The id of a URL elicitation, in 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
}

impl ElicitParams {
    /// Creates a form elicitation with this schema.
    pub fn form(message: impl Into<String>, requested_schema: Value) -> ElicitParams {
        ElicitParams {
            mode: None,
            message: message.into(),
            requested_schema: Some(requested_schema),
            url: None,
            elicitation_id: None,
        }
    }
    /// Creates a URL elicitation.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> ElicitParams {
        ElicitParams {
            mode: Some("url".to_owned()),
            message: message.into(),
            requested_schema: None,
            url: Some(url.into()),
            elicitation_id: None,
        }
    }
    /// Returns whether the elicitation uses URL mode.
    pub fn is_url(&self) -> bool {
        self.mode.as_deref() == Some("url")
    }
}

/// The result of `elicitation/create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElicitResult {
    /// The action that the user chose.
    pub action: ElicitAction,
    /// The submitted form data, if the user accepted a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
    /// Members that this crate does not define. This flattened field also makes serde reject an array
    /// in place of the object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ElicitResult {
    /// Returns one field of an accepted form.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self.action {
            ElicitAction::Accept => self.content.as_ref()?.get(name),
            _ => None,
        }
    }
}

/// The user's action in response to an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// The user submitted the form or agreed to open the URL.
    Accept,
    /// The user explicitly declined.
    Decline,
    /// The user dismissed the request without a choice.
    Cancel,
}

impl ElicitAction {
    /// Returns the wire spelling of the action.
    pub fn as_str(self) -> &'static str {
        match self {
            ElicitAction::Accept => "accept",
            ElicitAction::Decline => "decline",
            ElicitAction::Cancel => "cancel",
        }
    }
}

/// The parameters of `sampling/createMessage`: a request for a completion from the client's language model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SampleParams {
    /// The conversation to complete.
    pub messages: Vec<SamplingMessage>,
    /// The maximum number of tokens to generate.
    pub max_tokens: u64,
    /// The system prompt that the server suggests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The sampling temperature that the server suggests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// All other members of the schema: `modelPreferences`,
    /// `stopSequences`, `tools`, `toolChoice`, `metadata`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl SampleParams {
    /// Creates a request with one user message.
    pub fn user(text: impl Into<String>, max_tokens: u64) -> SampleParams {
        SampleParams {
            messages: vec![SamplingMessage {
                role: Role::User,
                content: OneOrMore::One(SamplingContent::text(text)),
                meta: None,
            }],
            max_tokens,
            system_prompt: None,
            temperature: None,
            extra: Map::new(),
        }
    }
}

/// One message of a sampling conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingMessage {
    /// The role of the message's author.
    pub role: Role,
    /// The content of the message.
    pub content: OneOrMore<SamplingContent>,
    /// Protocol and application metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A single value or an array of values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore<T> {
    /// A value that is not in an array.
    One(T),
    /// An array of values.
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    /// Returns all values as a slice.
    pub fn as_slice(&self) -> &[T] {
        match self {
            OneOrMore::One(one) => std::slice::from_ref(one),
            OneOrMore::More(more) => more,
        }
    }
}

/// A content block of a sampling message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SamplingContent {
    /// Plain text.
    Text(TextContent),
    /// A base64-encoded image.
    Image(MediaContent),
    /// Base64-encoded audio.
    Audio(MediaContent),
    /// A tool use, a tool result, or a content type that this crate does not define.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

impl SamplingContent {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> SamplingContent {
        SamplingContent::Text(TextContent { text: text.into(), ..TextContent::default() })
    }
}

/// The result of `sampling/createMessage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SampleResult {
    /// The role of the message's author.
    pub role: Role,
    /// The generated content.
    pub content: OneOrMore<SamplingContent>,
    /// The name of the model that generated the message.
    pub model: String,
    /// The reason why generation stopped, if the client reports one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl SampleResult {
    /// Returns the first text block of the result.
    pub fn text(&self) -> Option<&str> {
        self.content.as_slice().iter().find_map(|content| match content {
            SamplingContent::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
    }
}

/// The result of `roots/list`: the directories and files that the client exposes to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListRootsResult {
    /// The roots, in the client's order.
    pub roots: Vec<Root>,
    /// Members that this crate does not define. This flattened field also makes serde reject an array
    /// in place of the object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A root directory or file on which the server may operate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Root {
    /// The `file:` URI of the root.
    pub uri: String,
    /// A human-readable name for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
