//! Indexers: they turn the files of folders into documents of an index.
//!
//! A run uses these files in this order. `source` lists the blobs and `parse` reads items from each blob.
//! `skills` enriches the items and `mapping` creates documents. `run` sends the documents to the index in
//! batches and records the processed blobs in `state`. `scheduler` decides when indexers run. This module
//! does not depend on HTTP or on the storage of an index.

pub(crate) mod definition;
pub(crate) mod mapping;
pub(crate) mod parse;
mod redb_state;
pub(crate) mod run;
pub(crate) mod scheduler;
pub(crate) mod skills;
pub(crate) mod source;
pub(crate) mod state;
pub(crate) mod status;

pub(crate) use definition::{FieldMapping, IndexerDefinition, parse_duration};
pub(crate) use redb_state::RedbState;
pub(crate) use run::{DocumentSink, IndexerActionOutcome, IndexerJob};
pub(crate) use scheduler::IndexerScheduler;
pub(crate) use skills::Skillset;
pub(crate) use source::{AllowedFolders, DataSourceDefinition};
pub(crate) use status::IndexerLimits;

#[cfg(test)]
mod tests;
