//! Names and capabilities of client and server: `initialize`, `server/discover`, completion, logging
//! and subscriptions.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An icon that a client can display in its user interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// The URI of the icon: `https:` or `data:`.
    pub src: String,
    /// The media type of the icon, if it differs from the one the source reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The sizes for which the icon is suitable: `48x48`, or `any` for scalable formats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// The background for which the icon is designed: `light` or `dark`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Creates an icon with this URI and no other members.
impl From<&str> for Icon {
    fn from(src: &str) -> Icon {
        Icon { src: src.to_owned(), ..Icon::default() }
    }
}

/// The name, version and description of a client or server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// The identifier of the implementation, for use by programs.
    pub name: String,
    /// A human-readable name for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The version of the implementation, not of the protocol.
    pub version: String,
    /// A human-readable description of what the implementation does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Icons that the other side can display.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// The URL of the implementation's website.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Implementation {
    /// Creates an implementation with a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Implementation {
        Implementation { name: name.into(), version: version.into(), ..Implementation::default() }
    }
}

/// The parameters of `initialize`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The newest revision that the client supports.
    pub protocol_version: String,
    /// The capabilities of the client.
    pub capabilities: ClientCapabilities,
    /// The name and version of the client.
    pub client_info: Implementation,
}

/// The capabilities of a client. A member that is present, even as an empty
/// object, declares the capability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientCapabilities {
    /// The client can list its roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<Value>,
    /// The client can request a completion from its language model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Value>,
    /// The client can request input from its user. An empty object means form mode only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<Value>,
    /// The extensions that the client supports, with their settings.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extensions: Map<String, Value>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ClientCapabilities {
    /// Returns whether the client supports elicitation in form mode.
    pub fn elicits_by_form(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|e| e.get("form").is_some() || e.get("url").is_none())
    }
    /// Returns whether the client supports elicitation in URL mode.
    pub fn elicits_by_url(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|e| e.get("url").is_some())
    }
}

/// The capabilities of a server. A member that is present declares the capability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCapabilities {
    /// The server offers tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListCapability>,
    /// The server offers resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// The server offers prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListCapability>,
    /// The server offers completion of prompt and template arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<Map<String, Value>>,
    /// The server can send log messages to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<Map<String, Value>>,
    /// The requests that the server runs as tasks (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Value>,
    /// The extensions that the server supports, with their settings.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extensions: Map<String, Value>,
    /// Experimental, non-standard capabilities.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub experimental: Map<String, Value>,
}

/// The settings of the capability `tools` or `prompts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListCapability {
    /// Whether the server sends a notification when the list changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub list_changed: bool,
}

/// The settings of the capability `resources`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesCapability {
    /// Whether the server sends a notification when the list of resources changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub list_changed: bool,
    /// Whether the client can subscribe to changes of a resource.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subscribe: bool,
}

/// The result of `initialize`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The revision that the server selected for this session.
    pub protocol_version: String,
    /// The capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// The name and version of the server.
    pub server_info: Implementation,
    /// Instructions on how to use the server, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// The result of `server/discover`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverResult {
    /// The stateless revisions that the server supports.
    pub supported_versions: Vec<String>,
    /// The capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// Instructions on how to use the server, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// The severity of a log message, as defined in RFC 5424.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum LogLevel {
    /// Detailed information for debugging.
    Debug,
    /// General information about normal operation.
    Info,
    /// A normal but significant event.
    Notice,
    /// A warning condition.
    Warning,
    /// An error condition.
    Error,
    /// A critical condition, such as the failure of a component.
    Critical,
    /// A condition that requires immediate action.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    /// All levels, from the least to the most severe.
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

/// The parameters of `completion/complete`: a request for values of one argument.
#[derive(Clone, Debug, Deserialize)]
pub struct CompleteParams {
    /// The prompt or resource template to which the argument belongs.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument's name and its current value.
    pub argument: CompletionArgument,
    /// Arguments whose values were already chosen.
    #[serde(default)]
    pub context: CompletionContext,
    /// Members that this crate does not define. This flattened field also makes serde reject an array
    /// in place of the object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A reference to a prompt or a resource template.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type")]
pub enum CompletionReference {
    /// A prompt, identified by its name.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// The name of the prompt.
        name: String,
    },
    /// A resource template, identified by its URI template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// The URI template.
        uri: String,
    },
}

/// The argument to complete.
#[derive(Clone, Debug, Deserialize)]
pub struct CompletionArgument {
    /// The name of the argument.
    pub name: String,
    /// The value that the user has typed so far.
    pub value: String,
    /// Members that this crate does not define. This flattened field also makes serde reject an array
    /// in place of the object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Additional context for a completion.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct CompletionContext {
    /// The values of the other arguments that were already chosen, by name.
    #[serde(default)]
    pub arguments: std::collections::BTreeMap<String, String>,
    /// Members that this crate does not define. This flattened field also makes serde reject an array
    /// in place of the object.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The values that a server suggests for an argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// The suggested values, at most [`Completion::MOST`].
    pub values: Vec<String>,
    /// The total number of available values. It can exceed the number of `values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    /// Whether more values exist than those in this result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// The maximum number of values in one result.
    pub const MOST: usize = 100;
}

/// The notifications that a client requests with `subscriptions/listen`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilter {
    /// Notify when the list of tools changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tools_list_changed: bool,
    /// Notify when the list of prompts changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prompts_list_changed: bool,
    /// Notify when the list of resources changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resources_list_changed: bool,
    /// Notify when one of these resources changes, identified by URI.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
    /// Notify when one of these tasks changes, identified by task id (tasks extension).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
    /// Members that this crate does not define. They are not written back, because the server does not
    /// honour them. This flattened field also makes serde reject an array in place of the object.
    #[serde(flatten, skip_serializing)]
    pub extra: Map<String, Value>,
}
