//! Turn functions into MCP servers.
//!
//! This page is for authors of servers. The module [`transport`] is for authors of transports.
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
//! The server supports every revision of the protocol from 2024-11-05 to 2026-07-28 on
//! `http://127.0.0.1:7071/mcp`, and `add` is still a function that a test can call.
//!
//! # Entries
//!
//! | | on a function | on methods of a value |
//! |---|---|---|
//! | a tool | [`#[tool]`](macro@tool) | the same, in an `impl` block with [`#[tools]`](macro@tools) |
//! | a resource or a resource template | [`#[resource("menu://{id}")]`](macro@resource) | the same |
//! | resources that a function lists on request | [`#[resource_list("menu")]`](macro@resource_list) | the same |
//! | a prompt | [`#[prompt]`](macro@prompt) | the same |
//! | registered by | [`entries![first, second]`](macro@entries) | the value itself |
//!
//! The attributes generate [`ToolEntry`], [`ResourceEntry`], [`TemplateEntry`], [`ResourceListEntry`]
//! and [`PromptEntry`] values. You can also create them by hand.
//!
//! # Parameters
//!
//! An argument can have any type that derives `serde::Deserialize` and `schemars::JsonSchema`.
//! [`Args<T>`] receives all arguments as one struct. [`State<T>`] receives a value that was given to
//! the server. [`Context`] gives access to everything else: the caller, the HTTP request, progress, log
//! messages and input from the user. A type of your own becomes a parameter
//! when it implements [`FromCall`].
//!
//! # Results
//!
//! | A tool returns | and the client gets |
//! |---|---|
//! | `String`, `&'static str`, a number, `bool`, `()` | its text |
//! | a type with `serde::Serialize` and `schemars::JsonSchema` | structured content, the same JSON as text, and an output schema |
//! | a type with `serde::Serialize` only | the same without a schema |
//! | [`Content`](protocol::Content), several, a [`CallToolResult`](protocol::CallToolResult) | the content itself: images, audio, links, errors |
//! | `Result` of one of these | the value, or the error's text for the model ([`ToolError`]) |
//!
//! A resource returns text, bytes, [`ResourceContents`](protocol::ResourceContents) or any serialisable
//! value. Set `mime_type` if it is not JSON. For a resource that does not exist, return
//! `Err(ProtocolError::UnknownResource(uri))` ([`ProtocolError`]).
//!
//! The operator `?` accepts `String` and `&str`, whose text the model reads, and errors such as
//! [`std::io::Error`], whose text goes to the log only. The feature `anyhow` adds `anyhow::Error`.
//! [`or_tool_error("…")`](OrToolError::or_tool_error) gives any error a text for the model. For an error of
//! your own, [`IntoToolError`] decides which text the model reads and what is only logged.
//!
//! A function without `async` runs on the threads of the async runtime. If it blocks, on a disk, a lock
//! or a long computation, use `#[tool(blocking)]` to run it on a thread of its own. Logs and spans go
//! to `tracing`. Install a subscriber to see them.
//!
//! # Authentication
//!
//! By default a server requires no authentication and accepts connections from this machine only.
//! [`http::Auth`] requires credentials: [`http::ApiKeys`], OAuth tokens ([`oauth::TokenAuthorizer`]),
//! or your own [`http::Authorizer`]. Entries declare the access they
//! require: `anonymous`, `scopes = ["orders.write"]`.
//!
//! # Transports
//!
//! [`serve`] listens on an address, [`stdio::serve_stdio`] uses standard input and output, and
//! [`http::Endpoint`] runs inside a service of your own.
//!
//! With the feature `tls`, [`http::Settings::tls`] serves HTTPS. The files are read again when they change:
//!
//! ```no_run
//! use bindpost::http::{ApiKeys, Auth, Settings, TlsFiles};
//!
//! # async fn run(server: bindpost::Server) -> std::io::Result<()> {
//! let settings = Settings {
//!     tls: Some(TlsFiles::new("/etc/orders/cert.pem", "/etc/orders/key.pem")),
//!     allowed_hosts: vec!["orders.example".to_owned()],
//!     auth: Some(Auth::new(ApiKeys::from_file("/etc/orders/keys")?)),
//!     ..Settings::default()
//! };
//! bindpost::http::bind("0.0.0.0:8443").await?.serve(server, settings).await
//! # }
//! ```
//!
//! # Tests
//!
//! The feature `testing` adds `testing::TestClient`, an in-memory client. Enable it for tests only:
//!
//! ```toml
//! [dev-dependencies]
//! bindpost = { version = "0.1", features = ["testing"] }
//! ```
//!
//! ```
//! # use bindpost::{Server, entries, tool};
//! # use serde_json::json;
//! # /// Adds two numbers.
//! # #[tool]
//! # async fn add(a: f64, b: f64) -> f64 { a + b }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = Server::builder("adder", "1.0.0").add(entries![add]).build()?;
//! let mut client = bindpost::testing::TestClient::connect(&server);
//! assert_eq!(client.call("add", json!({"a": 1, "b": 2})).await, Ok("3".to_owned()));
//! # Ok(())
//! # }
//! ```

pub mod options;

// Servers.
pub use bindpost_mcp_server::{
    BuildError, CacheScope, Catalog, CatalogError, ListKind, Server, ServerBuilder, ServerLimits,
    StreamLimits, TaskLimits,
};

// Entries, by attributes or by hand.
pub use bindpost_mcp_macros::{entries, prompt, resource, resource_list, tool, tools};
pub use bindpost_mcp_server::{
    Completer, Entry, IntoEntries, IntoSuggestions, PromptEntry, ResourceEntry, ResourceListEntry,
    SyncCompleter, TaskSupport, TemplateEntry, ToolEntry, ToolHints, Toolbox,
};

// Parameters of handlers.
pub use bindpost_mcp_server::{
    Args, Context, FromCall, Handler, HttpRequest, Json, RawArguments, State, TrackedItems, TrackedStream,
};

// Results and errors.
pub use bindpost_mcp_server::{
    AskError, Elicitation, IntoPromptResult, IntoResourceList, IntoResourceResult, IntoToolError,
    IntoToolResult, OrToolError, ProtocolError, SampleRequest, ToolError,
};

// Hooks around tool calls, resource reads and prompts.
pub use bindpost_mcp_server::{EntryView, NextHandler, Operation, OperationResult};

// Callers and the access rules of entries.
#[cfg(feature = "oauth")]
pub use bindpost_mcp_oauth as oauth;
pub use bindpost_mcp_server::{AccessRule, Caller, CallerKind, Identity, ListVisibility};

// Serving.
pub use bindpost_mcp_http as http;
pub use bindpost_mcp_server::stdio;
pub use options::{Options, OptionsError};

// What the attributes generate, and entries from descriptions other than Rust types.
pub use bindpost_mcp_server::{
    Argument, ByCall, ByName, CallParts, CompiledSchema, Parameter, Signature, UriTemplate, blocking, returns,
};

pub use bindpost_mcp_protocol as protocol;
#[cfg(feature = "testing")]
pub use bindpost_mcp_server::testing;
pub use bindpost_mcp_server::transport;

/// Serves on an address with the default settings until SIGTERM or SIGINT, then until every accepted
/// call is answered. The server has no authentication ([`http::Auth`]), so it accepts connections from
/// this machine only.
pub async fn serve(server: Server, address: impl tokio::net::ToSocketAddrs) -> std::io::Result<()> {
    http::bind(address).await?.serve(server, http::Settings::default()).await
}

/// Compiles the examples in the documentation.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct ReadmeExamples;
    #[doc = include_str!("../README.md")]
    struct CrateReadmeExamples;
    #[doc = include_str!("../../../docs/auth.md")]
    struct AuthExamples;
    #[doc = include_str!("../../../docs/options.md")]
    struct OptionsExamples;
}
