//! What an indexer remembers between runs: which blobs it has seen, and how its runs ended.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::status::ExecutionResult;

/// A blob as it was when its documents were last written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobState {
    pub modified: i64,
    pub size: u64,
    pub keys: Vec<String>,
    /// False when the blob had so many documents that only the first keys were kept.
    pub all_keys: bool,
}

/// What is remembered about an indexer as a whole.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IndexerRecord {
    /// Newest first.
    pub history: Vec<ExecutionResult>,
    /// Document keys, and addresses of blobs, that the next run must take again.
    pub reset_keys: BTreeSet<String>,
    pub reset_blobs: BTreeSet<String>,
    pub tracking: Option<String>,
    /// The last run could not even begin: only a new definition helps.
    pub broken: bool,
    /// When the schedule last started a run, in milliseconds since 1970.
    pub last_start: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StateError(pub String);

impl From<serde_json::Error> for StateError {
    fn from(source: serde_json::Error) -> Self {
        Self(source.to_string())
    }
}
