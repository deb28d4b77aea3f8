//! Parses content blocks strictly. The protocol's type accepts unknown kinds, which results must not contain.

use std::borrow::Cow;

use bindpost_mcp_protocol::content::{EmbeddedResource, MediaContent, TextContent};
use bindpost_mcp_protocol::{Content, PromptMessage, Resource, Role};
use bindpost_net_json::cut::text_members;
use bindpost_net_json::text::decode;
use serde::Deserialize;
use serde::de::Error;

/// A content block with all members that its kind requires.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StrictBlock {
    Text(TextContent),
    Image(MediaContent),
    Audio(MediaContent),
    ResourceLink(Box<Resource>),
    Resource(EmbeddedResource),
}

/// Content that was parsed strictly.
pub(super) struct ContentBlock(pub(super) Content);

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ContentBlock, D::Error> {
        Ok(ContentBlock(match StrictBlock::deserialize(deserializer)? {
            StrictBlock::Text(text) => Content::Text(text),
            StrictBlock::Image(image) => Content::Image(image),
            StrictBlock::Audio(audio) => Content::Audio(audio),
            StrictBlock::ResourceLink(link) => Content::ResourceLink(link),
            StrictBlock::Resource(EmbeddedResource { resource, .. })
                if resource.text.is_none() && resource.blob.is_none() =>
            {
                return Err(D::Error::custom("a resource has text or a blob"));
            }
            StrictBlock::Resource(resource) => Content::Resource(resource),
        }))
    }
}

/// Parses one block.
pub(super) fn parse_block(json: &str) -> Option<ContentBlock> {
    match plain_text(json) {
        Some(text) => Some(ContentBlock(Content::text(text))),
        None => parse_object(json),
    }
}

/// Returns the text of a block that has only a text, as most blocks do. Parsing the kind of a block first
/// takes several times as long.
fn plain_text(json: &str) -> Option<String> {
    let members = text_members(json)?;
    let member = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    if members.len() != 2 || member("type")? != "\"text\"" {
        return None;
    }
    decode(member("text")?).map(Cow::into_owned)
}

/// A prompt's message whose content was parsed strictly.
#[derive(Deserialize)]
pub(super) struct StrictMessage {
    role: Role,
    content: ContentBlock,
}

impl From<StrictMessage> for PromptMessage {
    fn from(message: StrictMessage) -> PromptMessage {
        PromptMessage { role: message.role, content: message.content.0 }
    }
}

/// Parses a JSON object. Serde alone would also accept an array of the members' values.
pub(super) fn parse_object<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    json.trim_ascii_start().starts_with('{').then(|| serde_json::from_str(json).ok())?
}
