//! Azure AI Search as an MCP server: tools, resources and prompts over a service in the cloud or the embedded one.
//!
//! [`SearchServer::builder`] puts the server together; `server.rs` is where to start reading. [`EmbeddedService`] is the service
//! for those who have none, [`sample`] gives it something to show.

#![allow(missing_docs, reason = "a part of the program; what users start from is documented")]

pub mod api;
mod client;
mod diagnose;
mod embedded;
mod evaluate;
mod explain;
mod failure;
mod filter;
mod front;
mod identity;
mod index_change;
mod indexer_runs;
mod profile;
mod prompts;
mod reading;
mod remote;
mod resources;
pub mod sample;
mod server;
mod shared;
mod tool;

pub use api::API_VERSION;
pub use client::{SearchClient, ServiceRequest, ServiceResponse, odata_key};
pub use embedded::{EmbeddedError, EmbeddedOptions, EmbeddedService, api_key_credential};
pub use failure::{Kind, ServiceFailure};
pub use identity::{CredentialError, EntraCredential};
pub use remote::{RemoteError, is_local, remote_client};
pub use resources::{IndexerWatch, watch_indexers};
pub use server::{
    ANSWER_BYTES, LIST_BYTES, SearchServer, SearchServerBuilder, SearchServerError, ServerOverview,
    own_entries,
};
pub use shared::SearchServerState;
