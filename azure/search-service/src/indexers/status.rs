//! The status of indexers for clients: results, history and limits.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::state::IndexerRecord;

/// The result or the progress of a run, with the names of the REST API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionResult {
    pub status: ExecutionStatus,
    pub status_detail: Option<String>,
    pub mode: String,
    pub error_message: Option<String>,
    pub start_time: String,
    pub end_time: Option<String>,
    pub errors: Vec<ItemError>,
    pub warnings: Vec<ItemWarning>,
    pub items_processed: u64,
    pub items_failed: u64,
    pub initial_tracking_state: Option<String>,
    pub final_tracking_state: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ExecutionStatus {
    TransientFailure,
    Success,
    InProgress,
    Reset,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ItemError {
    pub key: Option<String>,
    pub error_message: String,
    pub status_code: u16,
    pub name: Option<String>,
    pub details: Option<String>,
    pub documentation_link: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ItemWarning {
    pub key: Option<String>,
    pub message: String,
    pub name: Option<String>,
    pub details: Option<String>,
    pub documentation_link: Option<String>,
}

/// The limits of a run, of a blob and of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexerLimits {
    pub run_time: Duration,
    /// The maximum size of files that are read as a whole. Files of lines may be larger.
    pub document_bytes: u64,
    pub content_characters: usize,
}

impl Default for IndexerLimits {
    fn default() -> Self {
        Self {
            run_time: Duration::from_secs(24 * 60 * 60),
            document_bytes: 256 * 1024 * 1024,
            content_characters: 16 * 1024 * 1024,
        }
    }
}

pub(crate) const INDEXING_ALL: &str = "indexingAllDocs";
pub(crate) const INDEXING_RESET: &str = "indexingResetDocs";
/// The maximum number of runs in the history, as in Azure. Details of older runs are shortened to limit
/// the size.
const LONGEST_HISTORY: usize = 50;
const OLD_MESSAGES: usize = 20;

impl ExecutionResult {
    /// Returns the history entry of a reset.
    pub(crate) fn reset(detail: Option<&str>, now: DateTime<Utc>) -> Self {
        Self {
            status: ExecutionStatus::Reset,
            status_detail: detail.map(str::to_owned),
            mode: if detail.is_some() { INDEXING_RESET } else { INDEXING_ALL }.to_owned(),
            error_message: None,
            start_time: format_time(now),
            end_time: Some(format_time(now)),
            errors: Vec::new(),
            warnings: Vec::new(),
            items_processed: 0,
            items_failed: 0,
            initial_tracking_state: None,
            final_tracking_state: None,
        }
    }
}

impl IndexerRecord {
    /// Adds a result at the start of the history.
    pub(crate) fn remember(&mut self, result: ExecutionResult) {
        if let Some(older) = self.history.first_mut() {
            older.errors.truncate(OLD_MESSAGES);
            older.warnings.truncate(OLD_MESSAGES);
        }
        self.history.insert(0, result);
        self.history.truncate(LONGEST_HISTORY);
    }
}

/// Returns the body for `search.status`.
pub(crate) fn status(
    name: &str,
    record: &IndexerRecord,
    live: Option<ExecutionResult>,
    limits: &IndexerLimits,
) -> Value {
    let last = live.as_ref().or(record.history.first());
    // The schedule retries a failed run, so Azure reports the indexer as "running".
    let overall = if record.broken && live.is_none() { "error" } else { "running" };
    let mode = match (&live, record.reset_keys.is_empty() && record.reset_blobs.is_empty()) {
        (Some(live), _) => live.mode.as_str(),
        (None, true) => INDEXING_ALL,
        (None, false) => INDEXING_RESET,
    };
    json!({
        "name": name,
        "status": overall,
        "lastResult": last,
        "executionHistory": record.history,
        "limits": {
            "maxRunTime": format_duration(limits.run_time),
            "maxDocumentExtractionSize": limits.document_bytes,
            "maxDocumentContentCharactersToExtract": limits.content_characters,
        },
        "currentState": {
            "mode": mode,
            "allDocsInitialTrackingState": record.tracking,
            "allDocsFinalTrackingState": if live.is_some() { &None } else { &record.tracking },
            "resetDocsInitialTrackingState": null,
            "resetDocsFinalTrackingState": null,
            "resyncInitialTrackingState": null,
            "resyncFinalTrackingState": null,
            "resetDocumentKeys": record.reset_keys,
            "resetDatasourceDocumentIds": record.reset_blobs,
        },
    })
}

fn format_duration(span: Duration) -> String {
    match span.as_secs() {
        seconds if seconds > 0 && seconds % 3600 == 0 => format!("PT{}H", seconds / 3600),
        seconds => format!("PT{seconds}S"),
    }
}

pub(crate) fn format_time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
