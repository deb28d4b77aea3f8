//! Indexers: they turn the files of folders into documents of an index.
//!
//! A run uses these files in this order. `source` lists the blobs and `parse` reads items from each blob.
//! `skills` enriches the items and `mapping` creates documents. `run` sends the documents to the index in
//! batches and records the processed blobs in `state`. `scheduler` decides when indexers run. This module
//! does not depend on HTTP or on the storage of an index.

pub mod definition;
pub mod mapping;
pub mod parse;
mod redb_state;
pub mod run;
pub mod scheduler;
pub mod skills;
pub mod source;
pub mod state;
pub mod status;

pub use definition::{FieldMapping, IndexerDefinition, IndexingSchedule};
pub use redb_state::RedbState;
pub use run::{DocumentSink, IndexerActionOutcome, IndexerJob, IndexerRun, IndexerRunner};
pub use scheduler::IndexerScheduler;
pub use skills::Skillset;
pub use source::{AllowedFolders, DataSourceDefinition};
pub use status::IndexerLimits;

#[cfg(test)]
mod tests;
