//! The tools that most calls are: definitions of every kind, and documents.
//!
//! What a tool takes and answers is decided here; how the service is called is `client.rs`.

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

use crate::shared::Shared;

pub(crate) use batch::deletions;
pub(crate) use definitions::{name_of, read, read_list};
pub(crate) use kinds::{DefinitionKind, KINDS};
pub(crate) use secrets::hide_secrets;

use known::Known;

/// The tools of this module.
pub(crate) fn entries(shared: &Arc<Shared>) -> Vec<Entry> {
    let known = Arc::new(Known::default());
    let mut entries = definitions::entries(shared);
    entries.extend(analysis::entries(shared));
    entries.extend(search::entries(shared, &known));
    entries.extend(lookup::entries(shared, &known));
    entries.extend(batch::entries(shared));
    entries.extend(retrieval::entries(shared));
    entries
}
