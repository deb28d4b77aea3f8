//! Types and codec for the Model Context Protocol on the wire, for every revision.
//!
//! This crate does no async work and no I/O. [`jsonrpc`] decodes bytes to a [`Message`] and encodes it
//! again. [`revision`] lists the differences between the dated revisions. [`shape`] removes from a
//! definition or a result the members that a revision does not define. The other modules
//! hold the serde types.
//!
//! ```
//! use bindpost_mcp_protocol::{DecodedBody, Message, decode};
//!
//! let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#;
//! let Ok(DecodedBody::One(Message::Request(request))) = decode(body.into()) else { panic!() };
//! assert_eq!(request.method(), "tools/call");
//! assert_eq!(request.params().text("name").as_deref(), Some("add"));
//! ```

mod json;

pub mod client;
pub mod content;
pub mod header;
pub mod jsonrpc;
pub mod lifecycle;
pub mod meta;
pub mod prompts;
pub mod resources;
pub mod revision;
pub mod shape;
pub mod tasks;
mod tool_schema;
pub mod tools;

pub use content::{Annotations, Content, Role};
pub use jsonrpc::{
    DecodeError, DecodedBody, ErrorObject, Message, Notification, Params, RawJson, Request, RequestId,
    Response, decode,
};
pub use lifecycle::{Icon, Implementation};
pub use meta::Meta;
pub use prompts::{GetPromptResult, Prompt, PromptArgument, PromptMessage};
pub use resources::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
pub use revision::Revision;
pub use shape::ShapeForRevision;
pub use tool_schema::ToolSchema;
pub use tools::{CallToolResult, Tool, ToolAnnotations, ToolExecution};
