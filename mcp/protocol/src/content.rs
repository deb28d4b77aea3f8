//! What tools and prompts say: text, pictures, sound, resources.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::meta::Meta;
use crate::resources::{Resource, ResourceContents};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints on a piece of content or a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Whom it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// How much it matters, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When it changed, as ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(MediaContent),
    /// Sound.
    Audio(MediaContent),
    /// A resource that can be read.
    ResourceLink(Box<Resource>),
    /// A resource, contents included.
    Resource(EmbeddedResource),
    /// A kind we do not know: passed on as it stands.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

/// Text content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// More.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A picture or sound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaContent {
    /// Base64.
    pub data: String,
    /// The media type.
    pub mime_type: String,
    /// Hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// More.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A resource inside a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// Its contents.
    pub resource: ResourceContents,
    /// Hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// More.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Content {
    /// Text.
    pub fn text(text: impl Into<String>) -> Content {
        Content::Text(TextContent { text: text.into(), ..TextContent::default() })
    }
    /// A picture from its bytes.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Content {
        Content::Image(MediaContent::new(bytes, mime_type))
    }
    /// Sound from its bytes.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Content {
        Content::Audio(MediaContent::new(bytes, mime_type))
    }
    /// A resource with its contents.
    pub fn resource(resource: ResourceContents) -> Content {
        Content::Resource(EmbeddedResource { resource, annotations: None, meta: None, extra: Map::new() })
    }
    /// A link to a resource.
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
