//! The most frequently used tools: definitions of every kind, and documents.
//!
//! Arguments and results of the tools are defined here. The HTTP client is in `client.rs`.

mod analysis;
mod batch;
mod body_check;
mod definitions;
mod differences;
mod kinds;
mod known;
mod lookup;
mod retrieval;
mod search;
mod secrets;

use std::sync::Arc;

use bindpost_mcp_server::Entry;

use crate::shared::SearchServerState;

pub(crate) use analysis::entries as analysis;
pub(crate) use batch::deletions;
pub(crate) use definitions::{entries as definitions, name_of, read_definition, read_list};
pub(crate) use kinds::{DefinitionKind, KINDS};
pub(crate) use known::IndexCache;
pub(crate) use secrets::hide_secrets;

/// Returns `searchDocuments`.
pub(crate) fn search_entries(shared: &Arc<SearchServerState>, known: &Arc<IndexCache>) -> Vec<Entry> {
    search::entries(shared, known)
}

/// Returns the other tools that read and write documents.
pub(crate) fn document_entries(shared: &Arc<SearchServerState>, known: &Arc<IndexCache>) -> Vec<Entry> {
    let mut entries = lookup::entries(shared, known);
    entries.extend(batch::entries(shared));
    entries.extend(retrieval::entries(shared));
    entries
}
