//! The MCP server framework of bindpost: entries in a catalog, one table of methods, any transport.
//!
//! A [`Server`] holds a [`Catalog`] of tools, resources and prompts. A transport hands it one
//! [`Request`](bindpost_mcp_protocol::Request) at a time together with an [`Exchange`] (who asks, where
//! messages go) and gets an [`Answer`], at once or from a [`Running`] call.
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

pub use answer::{Answer, Refusal};
pub use ask::AskError;
pub use auth::{Access, Caller, CallerKind, Demand, Identity, LackingRights};
pub use budget::{ByteBudget, Reservation};
pub use call::{Canceller, Running};
pub use catalog::{Catalog, CatalogError};
pub use context::Context;
pub use cursor::{Cursor, Kind};
pub use dispatch::Dispatch;
pub use entry::{Entry, IntoEntries, Toolbox};
pub use error::{ProtocolError, ToolError};
pub use extract::{Args, FromCall, Handler, Json, Parts, RawArguments, State};
pub use peer::Peer;
pub use pipe::{Pipe, join_batch, refuse_batch};
pub use prompt::{IntoPromptResult, PromptEntry};
pub use resource::{IntoResourceResult, ResourceEntry, TemplateEntry};
pub use resource_list::{IntoResourceList, ResourceListEntry};
pub use returns::blocking;
pub use schema::Schema;
pub use server::{BuildError, CacheScope, Limits, Server, ServerBuilder};
pub use session::Session;
pub use signature::{Argument, ByCall, ByName, Parameter, Signature};
pub use stream::{Popped, Stream, StreamLimits};
pub use tasks::TaskLimits;
pub use tool::{Hints, IntoToolResult, TaskSupport, ToolEntry};
pub use transport::{Delivery, Exchange, HeaderValues, HttpRequest, Listing, NoHeaders};
pub use uri_template::UriTemplate;

pub use bindpost_mcp_protocol as protocol;
