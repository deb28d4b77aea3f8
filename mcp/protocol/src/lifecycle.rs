//! Who the two sides are and what they can do: `initialize`, `server/discover`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A picture for a definition or an implementation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// Where it is: an `https:` or `data:` URI.
    pub src: String,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its sizes, `48x48` or `any`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// The background it is made for: `light` or `dark`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The picture at this address.
impl From<&str> for Icon {
    fn from(src: &str) -> Icon {
        Icon { src: src.to_owned(), ..Icon::default() }
    }
}

/// The name and version of a client or server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// For programs.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its own version.
    pub version: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its pictures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Its home on the web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Implementation {
    /// A name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Implementation {
        Implementation { name: name.into(), version: version.into(), ..Implementation::default() }
    }
}

/// What `initialize` asks.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The revision the client would like.
    pub protocol_version: String,
    /// What the client can do.
    pub capabilities: ClientCapabilities,
    /// Who the client is.
    pub client_info: Implementation,
}

/// What a client can do. A member that is there, even empty, is a yes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientCapabilities {
    /// It can list its roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<Value>,
    /// It can ask its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Value>,
    /// It can ask its user; an empty object means by form only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<Value>,
    /// Extensions it knows, with their settings.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extensions: Map<String, Value>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ClientCapabilities {
    /// Whether forms can be shown.
    pub fn elicits_by_form(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|e| e.get("form").is_some() || e.get("url").is_none())
    }
    /// Whether URLs can be opened.
    pub fn elicits_by_url(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|e| e.get("url").is_some())
    }
}

/// What a server can do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCapabilities {
    /// It has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListCapability>,
    /// It has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// It has prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListCapability>,
    /// It completes arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<Map<String, Value>>,
    /// It sends log messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<Map<String, Value>>,
    /// Extensions it serves, with their settings.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extensions: Map<String, Value>,
    /// What no revision knows yet.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub experimental: Map<String, Value>,
}

/// A list whose changes may be announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListCapability {
    /// Whether changes are announced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub list_changed: bool,
}

/// Resources: their list and their contents may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesCapability {
    /// Whether changes of the list are announced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub list_changed: bool,
    /// Whether changes of one resource can be subscribed to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subscribe: bool,
}

/// What `initialize` answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The revision that holds from here on.
    pub protocol_version: String,
    /// What the server can do.
    pub capabilities: ServerCapabilities,
    /// Who the server is.
    pub server_info: Implementation,
    /// How to use the server, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// What `server/discover` answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverResult {
    /// The revisions this server serves without a handshake.
    pub supported_versions: Vec<String>,
    /// What the server can do.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// The severity of a log message, as in RFC 5424.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum LogLevel {
    /// For developers.
    Debug,
    /// Normal work.
    Info,
    /// Normal but worth a look.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// Every level, least severe first.
    pub const ALL: [LogLevel; 8] = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ];
}

/// Asks for a prompt's or a template's argument to be completed.
#[derive(Clone, Debug, Deserialize)]
pub struct CompleteParams {
    /// What the argument belongs to.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument and what the user typed so far.
    pub argument: CompletionArgument,
    /// Arguments that are known already.
    #[serde(default)]
    pub context: CompletionContext,
    /// Members we do not know. That it is there also makes an array no stand-in for the object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A prompt or a resource template.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type")]
pub enum CompletionReference {
    /// A prompt, by name.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// Its name.
        name: String,
    },
    /// A resource template, by URI template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// Its URI template.
        uri: String,
    },
}

/// An argument in the making.
#[derive(Clone, Debug, Deserialize)]
pub struct CompletionArgument {
    /// Its name.
    pub name: String,
    /// What the user typed so far.
    pub value: String,
    /// Members we do not know. That it is there also makes an array no stand-in for the object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Arguments that are known already.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct CompletionContext {
    /// By name.
    #[serde(default)]
    pub arguments: std::collections::BTreeMap<String, String>,
    /// Members we do not know. That it is there also makes an array no stand-in for the object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Candidates for an argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// At most 100.
    pub values: Vec<String>,
    /// How many there are in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    /// Whether there are more than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// The most values one answer may hold.
    pub const MOST: usize = 100;
}

/// What a listener wants to hear of (`subscriptions/listen`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilter {
    /// Changes of the list of tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tools_list_changed: bool,
    /// Changes of the list of prompts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prompts_list_changed: bool,
    /// Changes of the list of resources.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resources_list_changed: bool,
    /// Changes of these resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
    /// Changes of these tasks (tasks extension).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
    /// Members we do not know, which we do not promise to honour. That they are here also makes an array
    /// no stand-in for the object.
    #[serde(flatten, skip_serializing)]
    pub extra: Map<String, Value>,
}
