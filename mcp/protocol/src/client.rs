//! What a server may ask of a client: elicitation, sampling, roots.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::{MediaContent, Role, TextContent};
use crate::meta::Meta;

/// `elicitation/create`
pub const ELICIT: &str = "elicitation/create";
/// `sampling/createMessage`
pub const SAMPLE: &str = "sampling/createMessage";
/// `roots/list`
pub const LIST_ROOTS: &str = "roots/list";

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitParams {
    /// `url`, or absent for a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What is asked, and why.
    pub message: String,
    /// A flat object schema: the form's fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Value>,
    /// Where the user should go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Names the URL elicitation in 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
}

impl ElicitParams {
    /// A form with these fields.
    pub fn form(message: impl Into<String>, requested_schema: Value) -> ElicitParams {
        ElicitParams {
            mode: None,
            message: message.into(),
            requested_schema: Some(requested_schema),
            url: None,
            elicitation_id: None,
        }
    }
    /// A page the user should open.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> ElicitParams {
        ElicitParams {
            mode: Some("url".to_owned()),
            message: message.into(),
            requested_schema: None,
            url: Some(url.into()),
            elicitation_id: None,
        }
    }
    /// Whether it is a page rather than a form.
    pub fn is_url(&self) -> bool {
        self.mode.as_deref() == Some("url")
    }
}

/// The user's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElicitResult {
    /// What the user did.
    pub action: ElicitAction,
    /// The form's fields, when accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
    /// Members we do not know. That it is there also makes an array no stand-in for the object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ElicitResult {
    /// One field of an accepted form.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self.action {
            ElicitAction::Accept => self.content.as_ref()?.get(name),
            _ => None,
        }
    }
}

/// What the user did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// Answered.
    Accept,
    /// Said no.
    Decline,
    /// Went away.
    Cancel,
}

impl ElicitAction {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            ElicitAction::Accept => "accept",
            ElicitAction::Decline => "decline",
            ElicitAction::Cancel => "cancel",
        }
    }
}

/// A question to the client's model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SampleParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// The longest answer.
    pub max_tokens: u64,
    /// What the model should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// How free the answer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Everything else the schema has: `modelPreferences`, `stopSequences`, `tools`, `toolChoice`, `metadata`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl SampleParams {
    /// One message of the user.
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
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: OneOrMore<SamplingContent>,
    /// More.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// One thing, or an array of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore<T> {
    /// One.
    One(T),
    /// An array.
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    /// All of them.
    pub fn as_slice(&self) -> &[T] {
        match self {
            OneOrMore::One(one) => std::slice::from_ref(one),
            OneOrMore::More(more) => more,
        }
    }
}

/// What a sampling conversation is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SamplingContent {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(MediaContent),
    /// Sound.
    Audio(MediaContent),
    /// A tool's use or result, or a kind we do not know.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

impl SamplingContent {
    /// Text.
    pub fn text(text: impl Into<String>) -> SamplingContent {
        SamplingContent::Text(TextContent { text: text.into(), ..TextContent::default() })
    }
}

/// The model's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SampleResult {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: OneOrMore<SamplingContent>,
    /// Which model.
    pub model: String,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl SampleResult {
    /// The first text of the answer.
    pub fn text(&self) -> Option<&str> {
        self.content.as_slice().iter().find_map(|content| match content {
            SamplingContent::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
    }
}

/// The folders a client works in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListRootsResult {
    /// In the client's order.
    pub roots: Vec<Root>,
    /// Members we do not know. That it is there also makes an array no stand-in for the object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A folder a client works in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Root {
    /// A `file:` URI.
    pub uri: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
