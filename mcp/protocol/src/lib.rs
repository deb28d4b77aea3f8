//! The words of the Model Context Protocol on the wire, every revision: types and codec.
//!
//! Nothing here awaits or touches a socket. [`jsonrpc`] turns bytes into a [`Message`] and back,
//! [`revision`] knows what each dated revision of the protocol has, [`shape`] strips from a
//! definition or a result what a revision does not know. The other modules are the serde types.
//!
//! ```
//! use bindpost_mcp_protocol::{Incoming, Message, decode};
//!
//! let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#;
//! let Ok(Incoming::One(Message::Request(request))) = decode(body.into()) else { panic!() };
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
pub use tools::{CallToolResult, Tool, ToolAnnotations};
