//! Turn functions into MCP servers.
//!
//! This page is the reference for authors of servers. The
//! [guide](https://github.com/bindpost/bindpost/tree/main/docs/guide) teaches them, a chapter for each topic: tools,
//! arguments, results, state, resources, prompts, questions to the user, progress, tasks, authentication, hooks,
//! mounting, testing, deploying. The module [`transport`] is for authors of transports.
//!
//! ```
//! use bindpost::prelude::*;
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
//! With the feature `skills`, a server also serves skills, which are folders of instructions:
//! `.skills(SkillSet::from_folder("skills"))`.
//!
//! # Parameters
//!
//! An argument can have any type that derives `serde::Deserialize` and `schemars::JsonSchema`.
//! [`Args<T>`] receives all arguments as one struct. [`State<T>`] receives a value that was given to
//! the server. [`Context`] gives access to everything else: the caller, the HTTP request, progress, log
//! messages and input from the user. A type of your own becomes a parameter
//! when it implements [`FromCall`].
//!
//! Arguments that the function does not have are rejected, and the input schema has
//! `additionalProperties: false`, for nested types too. `#[tool(allow_unknown_arguments)]` ignores them. A
//! map with `#[serde(flatten)]` collects them.
//!
//! | In a struct of arguments | in the schema |
//! |---|---|
//! | `Option<T>`, `#[serde(default)]` on a member or on the struct | not required |
//! | `#[serde(default)]`, and the type of the member implements `Serialize` | the default too; without `Serialize` write `#[schemars(extend("default" = "fast"))]` |
//! | `chrono::NaiveDate`, `NaiveTime`, `DateTime<Tz>` (feature `chrono04` of schemars) | the formats `date`, `time` and `date-time` |
//! | `rust_decimal::Decimal` (feature `rust_decimal1` of schemars) | a string or a number |
//! | the same with `#[schemars(with = "f64")]`, or `with = "String"` | only a number, or only a string |
//!
//! A `NaiveTime` has no zone: `10:30:00` and `10:30:00Z` are accepted, other zones are rejected. In results a
//! `Decimal` is a string. For numbers there, write `#[serde(with = "rust_decimal::serde::float")]` and
//! `#[schemars(with = "f64")]`. The feature `serde-str` of rust_decimal rejects numbers in arguments, so it
//! needs `#[schemars(with = "String")]`, and `serde-float` needs `with = "f64"` in results.
//!
//! # Results
//!
//! | A tool returns | and the client gets |
//! |---|---|
//! | `String`, `&'static str`, a number, `bool`, `()` | its text |
//! | a type with `serde::Serialize` and `schemars::JsonSchema` | structured content, the same JSON as text, and an output schema |
//! | a type with `serde::Serialize` only | the same without a schema |
//! | [`Content`], several, a [`CallToolResult`] | the content itself: images, audio, links, errors |
//! | `Result` of one of these | the value, or the error's text for the model ([`ToolError`]) |
//!
//! A resource returns text, bytes, [`ResourceContents`] or any serialisable
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
//! use bindpost::testing::TestClient;
//!
//! # /// Adds two numbers.
//! # #[tool]
//! # async fn add(a: f64, b: f64) -> f64 { a + b }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = Server::builder("adder", "1.0.0").add(entries![add]).build()?;
//! let mut client = TestClient::connect(&server);
//! let sum: f64 = client.call_as("add", json!({"a": 1, "b": 2})).await?;
//! assert_eq!(sum, 3.0);
//! # Ok(())
//! # }
//! ```
//!
//! The client enforces scopes and roles, uses legacy and modern revisions, answers elicitation and
//! sampling by closures, and collects progress and logs:
//!
//! ```
//! # use bindpost::{Context, Server, ToolError, entries, tool};
//! # use serde_json::json;
//! use bindpost::Identity;
//! use bindpost::testing::{ElicitationRequest, TestClient};
//!
//! # #[derive(serde::Deserialize, schemars::JsonSchema)]
//! # struct Confirmation { sure: bool }
//! # /// Cancels an order.
//! # #[tool(scopes = ["orders.write"])]
//! # async fn cancel_order(id: u32, context: Context) -> Result<String, ToolError> {
//! #     let answer: Confirmation = context.elicit("Are you sure?").await?.required()?;
//! #     Ok(if answer.sure { format!("order {id} is cancelled") } else { "nothing was done".to_owned() })
//! # }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = Server::builder("orders", "1.0.0").add(entries![cancel_order]).build()?;
//! let mut client = TestClient::builder(&server)
//!     .caller(Identity::new("alice").user().scope("orders.write"))
//!     .on_elicitation(|form: ElicitationRequest| form.accept(&json!({"sure": true})))
//!     .connect()
//!     .await?;
//! assert_eq!(client.call("cancel_order", json!({"id": 7})).await?.text(), "order 7 is cancelled");
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "options")]
pub mod options;
pub mod prelude;

// Servers.
pub use bindpost_mcp_server::{
    BuildError, CacheScope, Catalog, CatalogError, ListKind, Server, ServerBuilder, ServerLimits,
    StreamLimits, TaskLimits, VisibleEntries,
};
#[cfg(feature = "skills")]
pub use bindpost_mcp_server::{Skill, SkillSet};

// Entries, by attributes or by hand.
pub use bindpost_mcp_macros::{entries, prompt, resource, resource_list, tool, tools};
pub use bindpost_mcp_server::{
    AppPage, Completer, Entry, IntoEntries, IntoSuggestions, PagePermission, PromptEntry, ResourceEntry,
    ResourceListEntry, SyncCompleter, TaskSupport, TemplateEntry, ToolEntry, ToolHints, Toolbox,
};

// Parameters of handlers.
pub use bindpost_mcp_server::{
    Args, BlockingTrackedItems, Context, FromCall, Handler, HttpRequest, Json, RawArguments, State,
    TrackedItems, TrackedStream,
};

// Results and errors.
pub use bindpost_mcp_protocol::lifecycle::LogLevel;
pub use bindpost_mcp_protocol::{
    CallToolResult, Content, PromptMessage, Resource, ResourceContents, Revision,
};
pub use bindpost_mcp_server::{
    AskError, Elicitation, IntoPromptResult, IntoResourceList, IntoResourceResult, IntoToolError,
    IntoToolResult, OrToolError, ProtocolError, SampleRequest, ToolError,
};

// Hooks around tool calls, resource reads and prompts.
pub use bindpost_mcp_server::{CallQuota, EntryView, NextHandler, Operation, OperationResult};

// Callers and the access rules of entries.
#[cfg(feature = "oauth")]
pub use bindpost_mcp_oauth as oauth;
pub use bindpost_mcp_server::{AccessRule, Caller, CallerKind, Identity, ListVisibility};

// Serving.
pub use bindpost_mcp_http as http;
pub use bindpost_mcp_server::stdio;
#[cfg(feature = "options")]
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
    #[cfg(feature = "options")]
    #[doc = include_str!("../../../docs/options.md")]
    struct OptionsExamples;
}
