//! The MCP server framework of bindpost: entries in a catalog, one table of methods, any transport.
//!
//! A [`Server`] holds a [`Catalog`] of tools, resources and prompts. A transport hands it one
//! [`Request`](bindpost_mcp_protocol::Request) at a time together with an [`RequestOrigin`] (who asks, where
//! messages go) and gets an [`EncodedResponse`], at once or from a [`RunningCall`] call.
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
//! - `server.rs`: the builder, and what every result of 2026-07-28 carries. `dispatch.rs`: every method in one table.
//!   `lifecycle.rs`: `initialize` and `server/discover`. `error.rs`: the two kinds of failure. `auth.rs`: callers, and
//!   which of them may use an entry. `budget.rs`: the bytes that are kept for all clients together.
//! - `catalog/`: the entries and how they are found, listed and paged. One file for each kind of entry.
//! - `handler/`: what a handler takes and returns, and the schemas of both.
//! - `call/`: one call from its admission (`scheduler.rs`) over its execution (`running.rs`) to its answer, with questions
//!   to the client (`ask.rs`, `seal.rs`) and tasks.
//! - `peer/`: what is known of the client: its session, its streams, its subscriptions.
//! - `transport/`: what a transport brings, a transport for anything with two ends (`pipe.rs`), and stdio.
//! - `testing/`: a client in memory, and the runner of conversations.

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
