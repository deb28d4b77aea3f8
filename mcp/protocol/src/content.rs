//! Content of tool results and prompt messages: text, images, audio and resources.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::meta::Meta;
use crate::resources::{Resource, ResourceContents};

/// The role of a message's author or recipient in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The human user.
    User,
    /// The language model.
    Assistant,
}

/// Optional hints for the client on how to use or display content or a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The intended recipients: the user, the model or both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// The importance, from 0 (optional) to 1 (effectively required).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// The time of the last modification, as an ISO 8601 string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One content block of a tool result or a prompt message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text(TextContent),
    /// A base64-encoded image.
    Image(MediaContent),
    /// Base64-encoded audio.
    Audio(MediaContent),
    /// A link to a resource that the client can read with `resources/read`.
    ResourceLink(Box<Resource>),
    /// A resource embedded with its contents.
    Resource(EmbeddedResource),
    /// A content type that this crate does not define, passed on unchanged.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

/// Text given to or produced by a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text of the block.
    pub text: String,
    /// Optional hints for the client, such as audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Protocol and application metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// An image or audio, encoded as base64.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaContent {
    /// The bytes, encoded as base64.
    pub data: String,
    /// The media type of the data, such as `image/png` or `audio/wav`.
    pub mime_type: String,
    /// Optional hints for the client, such as audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Protocol and application metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A resource embedded in a tool result or a prompt message, with its contents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// The contents of the resource, text or binary.
    pub resource: ResourceContents,
    /// Optional hints for the client, such as audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Protocol and application metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that this crate does not define, kept unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Content {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Content {
        Content::Text(TextContent { text: text.into(), ..TextContent::default() })
    }
    /// Creates an image block and encodes the bytes as base64.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Content {
        Content::Image(MediaContent::new(bytes, mime_type))
    }
    /// Creates an audio block and encodes the bytes as base64.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Content {
        Content::Audio(MediaContent::new(bytes, mime_type))
    }
    /// Creates a block that embeds a resource with its contents.
    pub fn resource(resource: ResourceContents) -> Content {
        Content::Resource(EmbeddedResource { resource, annotations: None, meta: None, extra: Map::new() })
    }
    /// Creates a block that links to a resource.
    pub fn link(resource: Resource) -> Content {
        Content::ResourceLink(Box::new(resource))
    }
}

impl MediaContent {
    fn new(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> MediaContent {
        MediaContent { data: STANDARD.encode(bytes), mime_type: mime_type.into(), ..MediaContent::default() }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Content {
        Content::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content::text(text)
    }
}
