//! What nearly every server uses: `use bindpost::prelude::*;`.
//!
//! ```
//! use bindpost::prelude::*;
//!
//! /// Greets a person.
//! #[tool(read_only)]
//! fn greet(name: String) -> String {
//!     format!("Hello, {name}!")
//! }
//!
//! fn server() -> Result<Server, BuildError> {
//!     Server::builder("greeter", "1.0.0").add(entries![greet]).build()
//! }
//! # assert!(server().is_ok());
//! ```

pub use crate::{Args, Context, State};
pub use crate::{
    AskError, BuildError, Elicitation, IntoToolError, OrToolError, ProtocolError, Server, ToolError,
};
pub use crate::{CallToolResult, Content, PromptMessage, Resource, ResourceContents};
pub use crate::{entries, prompt, resource, resource_list, tool, tools};
