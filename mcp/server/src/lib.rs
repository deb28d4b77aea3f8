//! The MCP server framework of bindpost: entries in a catalog, one table of methods, any transport.
//!
//! This page is for authors of servers. A [`Server`] holds a [`Catalog`] of entries: tools, resources and
//! prompts. The module [`transport`] is for authors of transports.
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
//! - `server.rs`: the builder. `result_envelope.rs`: the members that every result of 2026-07-28 carries. `dispatch.rs`:
//!   every method in one table. `lifecycle.rs`: `initialize` and `server/discover`. `error.rs`: the two
//!   kinds of failure, and what converts to them (`error/conversion.rs`). `auth.rs`: callers and the
//!   access rules of entries; `auth/required.rs`: the access that a message requires. `budget.rs`: the
//!   limit on the bytes held for all clients together. `hooks.rs`: functions around calls, reads and prompts; `hooks/quota.rs`: quotas.
//! - `catalog/`: the entries and how they are found, listed and paged (`section.rs`). One file for each kind of entry, and one for the
//!   pages of tools (`app_page.rs`).
//! - `handler/`: the parameters and return types of handlers, and the schemas of both.
//! - `call/`: one call from its admission (`scheduler.rs`) through its execution (`running.rs`) to its
//!   response, with requests to the client (`ask.rs`, typed ones in `elicitation.rs` and `sampling.rs`, `seal.rs`)
//!   and tasks.
//! - `peer/`: the client's session, streams and subscriptions.
//! - `transport.rs`: the types for authors of transports. `transport/`: the data that a transport passes with
//!   a request (`origin.rs`), the transport for any pair of byte pipes (`pipe.rs`), and stdio.
//! - `skills.rs` and `skills/`, with the feature `skills`: the skills extension. Without it, `no_skills.rs`.
//! - `testing/`, with the feature `testing`: an in-memory client (`client.rs`, its settings in `builder.rs` and
//!   `answers.rs`, one operation in `exchange.rs`, its connection in `connection.rs`), and the runner of
//!   conversations.
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
mod hooks;
mod lifecycle;
mod peer;
mod result_envelope;
mod server;
#[cfg_attr(not(feature = "skills"), path = "no_skills.rs")]
mod skills;

#[cfg(feature = "testing")]
pub mod testing;
pub mod transport;

// Servers.
pub use call::tasks::TaskLimits;
pub use catalog::cursor::ListKind;
pub use catalog::visible_entries::VisibleEntries;
pub use catalog::{Catalog, CatalogError};
pub use peer::stream::StreamLimits;
pub use result_envelope::CacheScope;
pub use server::{BuildError, Server, ServerBuilder, ServerLimits};
#[cfg(feature = "skills")]
pub use skills::{Skill, SkillSet};
pub use transport::stdio;

// Entries.
pub use catalog::app_page::{AppPage, PagePermission};
pub use catalog::completion::{Completer, IntoSuggestions, SyncCompleter};
pub use catalog::entry::{Entry, IntoEntries, Toolbox};
pub use catalog::entry_view::EntryView;
pub use catalog::prompt::PromptEntry;
pub use catalog::resource::{ResourceEntry, TemplateEntry};
pub use catalog::resource_list::ResourceListEntry;
pub use catalog::tool::{TaskSupport, ToolEntry, ToolHints};

// Parameters of handlers.
pub use handler::blocking::BlockingTrackedItems;
pub use handler::context::Context;
pub use handler::extract::{Args, FromCall, Handler, Json, RawArguments, State};
pub use handler::progress::{TrackedItems, TrackedStream};
pub use transport::origin::HttpRequest;

// Results and errors.
pub use call::ask::AskError;
pub use call::elicitation::Elicitation;
pub use call::sampling::SampleRequest;
pub use catalog::prompt::IntoPromptResult;
pub use catalog::resource::IntoResourceResult;
pub use catalog::resource_list::IntoResourceList;
pub use catalog::tool::IntoToolResult;
pub use error::conversion::{IntoToolError, OrToolError};
pub use error::{ProtocolError, ToolError};

// Hooks.
pub use hooks::quota::CallQuota;
pub use hooks::{NextHandler, Operation, OperationResult};

// Callers and the access rules of entries.
pub use auth::{AccessRule, Caller, CallerKind, Identity};
pub use transport::origin::ListVisibility;

// What the attributes generate, and entries from descriptions other than Rust types.
pub use catalog::uri_template::UriTemplate;
pub use handler::extract::CallParts;
pub use handler::returns::blocking;
pub use handler::schema::CompiledSchema;
pub use handler::signature::{Argument, ByCall, ByName, Parameter, Signature};
pub use handler::{nearest, returns};

// A fuzz target decodes it. It is not part of the API.
#[doc(hidden)]
pub use catalog::cursor::ListCursor;

pub use bindpost_mcp_protocol as protocol;
