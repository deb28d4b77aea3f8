//! The tools of the server, one file for each group.

pub(crate) mod builder;
pub(crate) mod diagnose;
pub(crate) mod evaluate;
pub(crate) mod everyday;
pub(crate) mod explain;
pub(crate) mod filter;
pub(crate) mod index_change;
pub(crate) mod indexer_runs;
pub(crate) mod profile;
pub(crate) mod reading;
pub(crate) mod search_folder;
pub(crate) mod tool_set;
