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

mod answer;
mod ask;
mod auth;
mod budget;
mod call;
mod catalog;
mod context;
mod cursor;
mod dispatch;
mod entry;
mod error;
mod extract;
mod lifecycle;
mod peer;
mod pipe;
mod prompt;
mod resource;
mod resource_list;
mod schema;
mod seal;
mod server;
mod session;
mod signature;
mod stream;
mod subscriptions;
mod tasks;
mod tool;
mod uri_template;

pub mod nearest;
pub mod returns;
pub mod stdio;
pub mod testing;
pub mod transport;
mod turns;

pub use answer::{EncodedResponse, RejectionKind};
pub use ask::AskError;
pub use auth::{AccessRule, Caller, CallerKind, Identity, LackingRights, RequiredAccess};
pub use budget::{ByteBudget, ByteReservation};
pub use call::{CallCanceller, RunningCall};
pub use catalog::{Catalog, CatalogError};
pub use context::Context;
pub use cursor::{ListCursor, ListKind};
pub use dispatch::DispatchOutcome;
pub use entry::{Entry, IntoEntries, Toolbox};
pub use error::{ProtocolError, ToolError};
pub use extract::{Args, CallParts, FromCall, Handler, Json, RawArguments, State};
pub use peer::Peer;
pub use pipe::{Pipe, join_batch, refuse_batch};
pub use prompt::{IntoPromptResult, PromptEntry};
pub use resource::{IntoResourceResult, ResourceEntry, TemplateEntry};
pub use resource_list::{IntoResourceList, ResourceListEntry};
pub use returns::blocking;
pub use schema::CompiledSchema;
pub use server::{BuildError, CacheScope, Server, ServerBuilder, ServerLimits};
pub use session::Session;
pub use signature::{Argument, ByCall, ByName, Parameter, Signature};
pub use stream::{MessageStream, StreamLimits, StreamRead};
pub use tasks::TaskLimits;
pub use tool::{IntoToolResult, TaskSupport, ToolEntry, ToolHints};
pub use transport::{DeliveryTarget, HeaderValues, HttpRequest, ListVisibility, NoHeaders, RequestOrigin};
pub use uri_template::UriTemplate;

pub use bindpost_mcp_protocol as protocol;
