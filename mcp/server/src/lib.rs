//! The MCP server framework of bindpost: entries in a catalog, one table of methods, any transport.
//!
//! A [`Server`] holds a [`Catalog`] of tools, resources and prompts. A transport passes it one
//! [`Request`](bindpost_mcp_protocol::Request) at a time together with a [`RequestOrigin`] (the caller, the
//! client, and where messages go). It gets an [`EncodedResponse`], at once or from a [`RunningCall`].
//!
//! ```
//! use bindpost_mcp_server::{Args, Server, ToolEntry};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Sum { a: f64, b: f64 }
//!
//! async fn add(Args(sum): Args<Sum>) -> String {
//!     (sum.a + sum.b).to_string()
//! }
//!
//! let server = Server::builder("adder", "1.0.0")
//!     .tool(ToolEntry::new("add", add).description("Adds two numbers"))
//!     .build()
//!     .unwrap();
//! # let _ = server;
//! ```
//!
//! # The files, in reading order
//!
//! - `server.rs`: the builder, and the members that every result of 2026-07-28 carries. `dispatch.rs`:
//!   every method in one table. `lifecycle.rs`: `initialize` and `server/discover`. `error.rs`: the two
//!   kinds of failure. `auth.rs`: callers and the access rules of entries. `budget.rs`: the limit on the
//!   bytes held for all clients together.
//! - `catalog/`: the entries and how they are found, listed and paged. One file for each kind of entry.
//! - `handler/`: the parameters and return types of handlers, and the schemas of both.
//! - `call/`: one call from its admission (`scheduler.rs`) through its execution (`running.rs`) to its
//!   response, with requests to the client (`ask.rs`, `seal.rs`) and tasks.
//! - `peer/`: the client's session, streams and subscriptions.
//! - `transport/`: the data that a transport passes with a request, the transport for any pair of byte pipes
//!   (`pipe.rs`), and stdio.
//! - `testing/`: an in-memory client, and the runner of conversations.
//!
//! # Revisions
//!
//! *Legacy* revisions, up to 2025-11-25, open a session by a handshake. *Modern* revisions, from
//! 2026-07-28, are stateless: each request carries an envelope in its `_meta` that names the revision and
//! the capabilities of the client.

mod auth;
mod budget;
mod call;
mod catalog;
mod dispatch;
mod error;
mod handler;
mod lifecycle;
mod peer;
mod server;

pub use handler::{nearest, returns};
pub use transport::stdio;

pub mod testing;
pub mod transport;

pub use auth::{AccessRule, Caller, CallerKind, Identity, LackingRights, RequiredAccess};
pub use budget::{ByteBudget, ByteReservation};
pub use call::answer::{EncodedResponse, RejectionKind};
pub use call::ask::AskError;
pub use call::tasks::TaskLimits;
pub use call::{CallCanceller, RunningCall};
pub use catalog::cursor::{ListCursor, ListKind};
pub use catalog::entry::{Entry, IntoEntries, Toolbox};
pub use catalog::prompt::{IntoPromptResult, PromptEntry};
pub use catalog::resource::{IntoResourceResult, ResourceEntry, TemplateEntry};
pub use catalog::resource_list::{IntoResourceList, ResourceListEntry};
pub use catalog::tool::{IntoToolResult, TaskSupport, ToolEntry, ToolHints};
pub use catalog::uri_template::UriTemplate;
pub use catalog::{Catalog, CatalogError};
pub use dispatch::DispatchOutcome;
pub use error::{ProtocolError, ToolError};
pub use handler::context::Context;
pub use handler::extract::{Args, CallParts, FromCall, Handler, Json, RawArguments, State};
pub use handler::returns::blocking;
pub use handler::schema::CompiledSchema;
pub use handler::signature::{Argument, ByCall, ByName, Parameter, Signature};
pub use peer::Peer;
pub use peer::session::Session;
pub use peer::stream::{MessageStream, StreamLimits, StreamRead};
pub use server::{BuildError, CacheScope, Server, ServerBuilder, ServerLimits};
pub use transport::pipe::{Pipe, join_batch, refuse_batch};
pub use transport::{DeliveryTarget, HeaderValues, HttpRequest, ListVisibility, NoHeaders, RequestOrigin};

pub use bindpost_mcp_protocol as protocol;
