//! Azure AI Search as an MCP server: tools, resources and prompts for a service in Azure or for the
//! embedded service.
//!
//! [`SearchServer::builder`] builds the server. Start reading in `server.rs`. [`EmbeddedService`] is a
//! service in this process, and [`sample`] fills it with sample data.
//!
//! Files, in reading order: `server.rs` (the server, built from all entries), `shared.rs` (the state that tools share),
//! `tools/` (one file for each group of tools; `everyday.rs` has definitions and documents, `builder.rs` builds entries),
//! `resources.rs`, `prompts.rs`, `code.rs` and `code/` (search as code, for the CLI and for tools), and `service/` (the
//! client of the search service, credentials, the embedded service, the sample, and our description of the API).

#![allow(missing_docs, reason = "part of the program; the public entry points are documented")]

pub mod code;
mod prompts;
mod resources;
mod server;
mod service;
mod shared;
mod tools;

pub use resources::{IndexerWatch, watch_indexers};
pub use server::{
    ANSWER_BYTES, LIST_BYTES, SearchServer, SearchServerBuilder, SearchServerError, ServerOverview,
    own_entries,
};
pub use service::api::{self, API_VERSION};
pub use service::client::{SearchClient, ServiceRequest, ServiceResponse, odata_key};
pub use service::embedded::{EmbeddedError, EmbeddedOptions, EmbeddedService, api_key_credential};
pub use service::failure::{Kind, ServiceFailure};
pub use service::remote::{RemoteError, TOKEN_RESOURCE, is_local, remote_client};
pub use service::sample;
pub use shared::SearchServerState;
pub use tools::search_folder::ServedFolder;
pub use tools::tool_set::ToolSet;
