//! What a test client receives: results of tools, resources and prompts, progress, logs and changes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bindpost_mcp_protocol::lifecycle::LogLevel;
use bindpost_mcp_protocol::{
    CallToolResult, Content, GetPromptResult, PromptMessage, ReadResourceResult, ResourceContents,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::TestError;

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolReply {
    result: CallToolResult,
}

impl ToolReply {
    pub(super) fn new(result: CallToolResult) -> ToolReply {
        ToolReply { result }
    }

    /// Returns all texts of the content, one per line.
    pub fn text(&self) -> String {
        join_texts(&self.result.content)
    }

    /// Returns whether the tool failed. `call` returns such a reply as [`TestError::Tool`].
    pub fn is_error(&self) -> bool {
        self.result.is_error
    }

    /// Returns the content.
    pub fn content(&self) -> &[Content] {
        &self.result.content
    }

    /// Decodes the structured content.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, TestError> {
        let Some(structured) = &self.result.structured_content else {
            return Err(TestError::invalid("the result", "it has no structured content"));
        };
        T::deserialize(structured).map_err(|error| TestError::invalid("the structured content", error))
    }

    /// Decodes the structured content, or else the text: as JSON, or as the text itself.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, TestError> {
        if self.result.structured_content.is_some() {
            return self.structured();
        }
        decode_text(&self.text())
    }

    /// Returns the whole result.
    pub fn result(&self) -> &CallToolResult {
        &self.result
    }
}

/// The contents of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceReply {
    result: ReadResourceResult,
}

impl ResourceReply {
    pub(super) fn new(result: ReadResourceResult) -> ResourceReply {
        ResourceReply { result }
    }

    /// Returns all texts of the contents, one per line.
    pub fn text(&self) -> String {
        let texts: Vec<&str> =
            self.result.contents.iter().filter_map(|content| content.text.as_deref()).collect();
        texts.join("\n")
    }

    /// Returns the bytes of the first content: a decoded blob, or a text.
    pub fn bytes(&self) -> Result<Vec<u8>, TestError> {
        match self.result.contents.first() {
            Some(ResourceContents { blob: Some(blob), .. }) => {
                STANDARD.decode(blob).map_err(|error| TestError::invalid("the blob", error))
            }
            Some(ResourceContents { text: Some(text), .. }) => Ok(text.clone().into_bytes()),
            _ => Err(TestError::invalid("the resource", "it has no contents")),
        }
    }

    /// Decodes the text: as JSON, or as the text itself.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, TestError> {
        decode_text(&self.text())
    }

    /// Returns the media type of the first content.
    pub fn mime_type(&self) -> Option<&str> {
        self.result.contents.first()?.mime_type.as_deref()
    }

    /// Returns all contents.
    pub fn contents(&self) -> &[ResourceContents] {
        &self.result.contents
    }

    /// Returns the whole result.
    pub fn result(&self) -> &ReadResourceResult {
        &self.result
    }
}

/// The messages of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptReply {
    result: GetPromptResult,
}

impl PromptReply {
    pub(super) fn new(result: GetPromptResult) -> PromptReply {
        PromptReply { result }
    }

    /// Returns the texts of all messages, one per line.
    pub fn text(&self) -> String {
        join_texts(self.result.messages.iter().map(|message| &message.content))
    }

    /// Returns the messages.
    pub fn messages(&self) -> &[PromptMessage] {
        &self.result.messages
    }

    /// Returns the whole result.
    pub fn result(&self) -> &GetPromptResult {
        &self.result
    }
}

/// The progress that a call reported.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ProgressUpdate {
    /// The progress so far.
    pub progress: f64,
    /// The progress at the end, if the call knows it.
    #[serde(default)]
    pub total: Option<f64>,
    /// A text about the progress (from 2025-03-26).
    #[serde(default)]
    pub message: Option<String>,
}

/// A log message of the server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LogRecord {
    /// The severity.
    pub level: LogLevel,
    /// The name of the logger, if it has one.
    #[serde(default)]
    pub logger: Option<String>,
    /// The message: a text, or any other JSON value.
    pub data: Value,
}

/// A change that the server announced.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerChange {
    /// The list of tools changed.
    Tools,
    /// The list of resources or templates changed.
    Resources,
    /// The list of prompts changed.
    Prompts,
    /// A subscribed resource changed.
    Resource(String),
}

fn join_texts<'a>(contents: impl IntoIterator<Item = &'a Content>) -> String {
    let texts = contents.into_iter().filter_map(|content| match content {
        Content::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn decode_text<T: DeserializeOwned>(text: &str) -> Result<T, TestError> {
    serde_json::from_str(text).or_else(|error| {
        let as_text = T::deserialize(Value::from(text));
        as_text.map_err(|_| TestError::invalid(format!("the text {text:?}"), error))
    })
}
