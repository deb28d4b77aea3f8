//! Turn functions into MCP servers.
//!
//! ```
//! use bindpost::{Server, entries, tool};
//!
//! /// Adds two numbers.
//! #[tool(read_only)]
//! async fn add(
//!     /// The first number.
//!     a: f64,
//!     #[arg(description = "The second number.", default = 0)] b: f64,
//! ) -> f64 {
//!     a + b
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Server::builder("adder", "1.0.0").add(entries![add]).build()?;
//! #   let bound = bindpost::http::bind("127.0.0.1:0").await?;
//! #   let (address, _stop) = bound.serve_in_background(server.clone(), Default::default());
//! #   let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
//! #   let answer = tokio::task::spawn_blocking(move || {
//! #       use std::io::{Read, Write};
//! #       let mut stream = std::net::TcpStream::connect(address)?;
//! #       write!(stream, "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: add\r\ncontent-length: {}\r\n\r\n{call}", call.len())?;
//! #       let mut answer = String::new();
//! #       stream.read_to_string(&mut answer)?;
//! #       std::io::Result::Ok(answer)
//! #   }).await??;
//! #   assert!(answer.contains(r#""text":"3""#), "{answer}");
//! #   if true { return Ok(()) }
//!     bindpost::serve(server, "127.0.0.1:7071").await?;
//!     Ok(())
//! }
//! ```
//!
//! That is all: the server speaks every revision of the protocol from 2024-11-05 to 2026-07-28 on
//! `http://127.0.0.1:7071/mcp`, and `add` is still a function that a test can call.
//!
//! # Entries
//!
//! | | on a function | on methods of a value |
//! |---|---|---|
//! | a tool | [`#[tool]`](macro@tool) | the same, in an `impl` block with [`#[tools]`](macro@tools) |
//! | a resource, or a family of them | [`#[resource("menu://{id}")]`](macro@resource) | the same |
//! | resources that are listed when asked | [`#[resource_list("menu")]`](macro@resource_list) | the same |
//! | a prompt | [`#[prompt]`](macro@prompt) | the same |
//! | registered by | [`entries![first, second]`](macro@entries) | the value itself |
//!
//! The attributes are sugar for [`ToolEntry`], [`ResourceEntry`], [`TemplateEntry`], [`ResourceListEntry`] and
//! [`PromptEntry`], which can be made by hand as well.
//!
//! # Parameters
//!
//! An argument is any type that derives `serde::Deserialize` and `schemars::JsonSchema`. Take all of
//! them as one struct with [`Args<T>`], what the server was given with [`State<T>`], and with [`Context`]
//! everything else: who calls, the HTTP request, progress, log messages, questions to the user. A type of
//! yours becomes a parameter by implementing [`FromCall`].
//!
//! # Results
//!
//! | A tool returns | and the client gets |
//! |---|---|
//! | `String`, `&'static str`, a number, `bool`, `()` | its text |
//! | a type with `serde::Serialize` and `schemars::JsonSchema` | structured content, the same JSON as text, and an output schema |
//! | a type with `serde::Serialize` only | the same without a schema |
//! | [`Content`](protocol::Content), several, a [`CallToolResult`](protocol::CallToolResult) | what it says: images, audio, links, errors |
//! | `Result` of one of these | the value, or the error's text for the model ([`ToolError`]) |
//!
//! A resource returns text, bytes, [`ResourceContents`](protocol::ResourceContents) or anything serialisable; say its
//! `mime_type` if it is not JSON. For one that is not there return `Err(ProtocolError::UnknownResource(uri))`
//! ([`ProtocolError`]). `?` needs an error that a [`ToolError`] can be made from: `String`, `&str`, or yours with
//! `impl From<MyError> for ToolError`, where you decide what the model reads and what only the log does
//! ([`ToolError::with_source`]).
//!
//! A function without `async` runs where all calls run: if it waits for a disk, a lock or a long sum, say
//! `#[tool(blocking)]`, and it gets a thread of its own. Logs and spans go to `tracing`; subscribe to see them.
//!
//! # Callers
//!
//! Without more, a server is open, and serves this machine only. [`http::Auth`] puts somebody at the door:
//! [`http::ApiKeys`], OAuth tokens ([`oauth::Tokens`]), or your own [`http::Authorizer`]. Entries say whom
//! they want: `anonymous`, `scopes = ["orders.write"]`.
//!
//! # Homes
//!
//! [`serve`] on an address, [`stdio::serve_stdio`] on a pipe, [`http::Endpoint`] in a service of your own.
//! [`testing::Client`] is a client in memory, for tests.

pub mod options;

pub use bindpost_mcp_http as http;
pub use bindpost_mcp_macros::{entries, prompt, resource, resource_list, tool, tools};
#[cfg(feature = "oauth")]
pub use bindpost_mcp_oauth as oauth;
pub use bindpost_mcp_protocol as protocol;
pub use bindpost_mcp_server::*;
pub use options::{Options, OptionsError};

/// Serves on an address, with the default settings, until SIGTERM or SIGINT; then until every accepted call
/// is answered. Without somebody at the door ([`http::Auth`]) only this machine is served.
pub async fn serve(server: Server, address: impl tokio::net::ToSocketAddrs) -> std::io::Result<()> {
    http::bind(address).await?.serve(server, http::Settings::default()).await
}

/// The code in the documents compiles.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct ReadmeExamples;
    #[doc = include_str!("../../../docs/auth.md")]
    struct AuthExamples;
    #[doc = include_str!("../../../docs/options.md")]
    struct OptionsExamples;
}
