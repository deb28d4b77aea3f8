//! Indexers: what is in folders becomes documents of an index.
//!
//! A run goes through these files in this order: `source` lists the blobs, `parse` makes items of each,
//! `skills` enriches them, `mapping` makes documents, and `run` hands them to the index in batches and
//! keeps in `state` what it has seen. `scheduler` decides when. Nothing here knows HTTP or how an index is kept.

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
