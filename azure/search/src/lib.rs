//! Azure AI Search as an MCP server: tools, resources and prompts over a service in the cloud or the embedded one.
//!
//! [`SearchServer::builder`] puts the server together; `server.rs` is where to start reading. [`Embedded`] is the service
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
pub use client::{Answer, Call, Client, quoted};
pub use embedded::{Embedded, EmbeddedError, EmbeddedOptions, api_key};
pub use failure::{Failure, Kind};
pub use identity::{CredentialError, EntraCredential};
pub use remote::{RemoteError, is_local, remote};
pub use resources::{Watch, watch};
pub use server::{
    ANSWER_BYTES, LIST_BYTES, Overview, SearchServer, SearchServerBuilder, SearchServerError, own_entries,
};
pub use shared::Shared;
