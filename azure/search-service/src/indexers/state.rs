//! The stored state of an indexer: the processed blobs and the results of runs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::status::ExecutionResult;

/// The state of a blob when its documents were last written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlobState {
    pub modified: i64,
    pub size: u64,
    pub keys: Vec<String>,
    /// False if the blob had too many documents and only the first keys were recorded.
    pub all_keys: bool,
}

/// The stored state of an indexer as a whole.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct IndexerRecord {
    /// Results of runs, newest first.
    pub history: Vec<ExecutionResult>,
    /// Document keys that the next run must process again. `reset_blobs` has the addresses of blobs.
    pub reset_keys: BTreeSet<String>,
    pub reset_blobs: BTreeSet<String>,
    pub tracking: Option<String>,
    /// The last run could not start, and the definition must be changed.
    pub broken: bool,
    /// When the schedule last started a run, in milliseconds since 1970.
    pub last_start: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct StateError(pub String);

impl From<serde_json::Error> for StateError {
    fn from(source: serde_json::Error) -> Self {
        Self(source.to_string())
    }
}
