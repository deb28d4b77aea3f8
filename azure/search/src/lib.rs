//! Azure AI Search as an MCP server: tools, resources and prompts over a service in the cloud or the embedded one.

#![allow(missing_docs, reason = "a part of the program; what users start from is documented")]

mod client;
pub mod diagnose;
pub mod evaluate;
pub mod explain;
mod failure;
pub mod filter;
mod front;
mod identity;
pub mod index_change;
pub mod indexer_runs;
pub mod profile;
pub mod prompts;
mod reading;
mod resources;
mod shared;

pub use client::{Answer, Call, Client, quoted};
pub use failure::{Failure, Kind};
pub use identity::{CredentialError, EntraCredential};
pub use resources::{Watch, watch};
pub use shared::Shared;

/// The tools and resources of definitions and documents: `front.rs` and `resources.rs`.
pub fn main_entries(shared: &std::sync::Arc<Shared>) -> Vec<bindpost_mcp_server::Entry> {
    let mut entries = front::entries(shared);
    entries.extend(resources::entries(shared));
    entries
}
