//! One run of an indexer.

mod failures;
mod pass;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::field::IndexSchema;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use self::pass::{IndexerPass, RunStopReason};
use super::definition::IndexerDefinition;
use super::redb_state::RedbState;
use super::skills::Skillset;
use super::source::{AllowedFolders, DataSourceDefinition};
use super::state::IndexerRecord;
use super::status::{
    ExecutionResult, ExecutionStatus, INDEXING_ALL, INDEXING_RESET, IndexerLimits, ItemError, ItemWarning,
    format_time,
};

/// The index that a run writes to. Calls may block.
pub(crate) trait DocumentSink: Send + Sync {
    fn schema(&self) -> Result<Arc<IndexSchema>, ApiError>;
    /// Applies actions and returns the outcome of each, in order. `@search.action` is `mergeOrUpload`
    /// or `delete`.
    fn apply(&self, actions: Vec<Map<String, Value>>) -> Result<Vec<IndexerActionOutcome>, ApiError>;
}

/// The outcome of one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexerActionOutcome {
    pub key: String,
    pub ok: bool,
    pub status: u16,
    pub message: Option<String>,
}

/// The definitions of a run at the time of its start.
pub(crate) struct IndexerJob {
    pub indexer: IndexerDefinition,
    pub source: DataSourceDefinition,
    pub skillset: Option<Skillset>,
    pub target: Arc<dyn DocumentSink>,
}

/// The state of a run. Others may read it and cancel the run.
pub(crate) struct IndexerRun {
    started: DateTime<Utc>,
    deadline: Instant,
    mode: &'static str,
    tracking: Option<String>,
    cancelled: AtomicBool,
    /// The indexer was deleted during the run. Its result must not be stored.
    forgotten: AtomicBool,
    processed: AtomicU64,
    failed: AtomicU64,
    messages: Mutex<RunMessages>,
}

#[derive(Default)]
struct RunMessages {
    errors: Vec<ItemError>,
    warnings: Vec<ItemWarning>,
}

/// Runs indexers, one call per run.
pub(crate) struct IndexerRunner {
    store: Arc<RedbState>,
    places: AllowedFolders,
    pub limits: IndexerLimits,
    /// Held while a record is read, changed and written.
    records: Mutex<()>,
}

/// The maximum number of listed errors and of listed warnings, as in Azure. Further ones are only counted.
const MOST_MESSAGES: usize = 1_000;

impl IndexerRunner {
    pub(crate) fn new(store: Arc<RedbState>, places: AllowedFolders, limits: IndexerLimits) -> Self {
        Self { store, places, limits, records: Mutex::new(()) }
    }

    /// Records the start of a run.
    pub(crate) fn prepare(&self, indexer: &str) -> Result<IndexerRun, ApiError> {
        let started = Utc::now();
        let record = self.change_record(indexer, |record| {
            record.last_start = Some(started.timestamp_millis());
            record.clone()
        })?;
        let resets = !record.reset_keys.is_empty() || !record.reset_blobs.is_empty();
        Ok(IndexerRun {
            started,
            deadline: Instant::now() + self.limits.run_time,
            mode: if resets { INDEXING_RESET } else { INDEXING_ALL },
            tracking: record.tracking,
            cancelled: AtomicBool::new(false),
            forgotten: AtomicBool::new(false),
            processed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            messages: Mutex::new(RunMessages::default()),
        })
    }

    /// Runs to the end and stores the result. The call blocks. A panic ends only this run.
    pub(crate) fn run(&self, job: &IndexerJob, run: &IndexerRun) -> ExecutionResult {
        let name = job.indexer.name.as_str();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.pass(job, run))).unwrap_or_else(|_| {
            tracing::error!(indexer = name, "a run of an indexer panicked");
            Err(RunStopReason::Message(
                "The run ended because of an internal error. See the log of the service for the cause."
                    .to_owned(),
            ))
        });
        let (message, broken) = match &outcome {
            Ok(()) => (None, false),
            Err(RunStopReason::Definition(error)) => (Some(error.message.clone()), true),
            Err(RunStopReason::Message(message) | RunStopReason::Early(message)) => {
                (Some(message.clone()), false)
            }
        };
        let mut result = run.result();
        result.end_time = Some(format_time(Utc::now()));
        result.error_message = message;
        result.status = match outcome {
            Ok(()) => ExecutionStatus::Success,
            Err(_) => ExecutionStatus::TransientFailure,
        };
        if outcome.is_ok() && run.mode == INDEXING_ALL {
            let start = format_time(run.started);
            let tracking = json!({
                "lastFullEnumerationStartTime": start,
                "lastAttemptedEnumerationStartTime": start,
                "nameHighWaterMark": null,
            });
            result.final_tracking_state = Some(tracking.to_string());
        }
        if run.forgotten.load(Ordering::Acquire) {
            self.forget(name);
            return result;
        }
        let kept = self.change_record(name, |record| {
            record.broken = broken;
            if result.final_tracking_state.is_some() {
                record.tracking.clone_from(&result.final_tracking_state);
            }
            record.remember(result.clone());
        });
        if let Err(error) = kept {
            result.status = ExecutionStatus::TransientFailure;
            result.error_message = Some(error.message);
        }
        result
    }

    fn pass(&self, job: &IndexerJob, run: &IndexerRun) -> Result<(), RunStopReason> {
        let schema = job.target.schema().map_err(RunStopReason::Definition)?;
        let source = job.source.open(&self.places).map_err(RunStopReason::Definition)?;
        let mut pass = IndexerPass::new(self.store.as_ref(), job, run, &source, &schema, &self.limits)?;
        for note in job.skillset.iter().flat_map(|skillset| &skillset.notes) {
            run.add_warning(
                None,
                note.clone(),
                job.skillset.as_ref().map(|skillset| skillset.name.clone()),
                None,
            );
        }
        if run.mode == INDEXING_ALL {
            return pass.process_all();
        }
        let record = self.record(&job.indexer.name).map_err(RunStopReason::Definition)?;
        pass.process_again(&record.reset_keys, &record.reset_blobs)?;
        // Requests that were added during this run stay for the next run.
        self.change_record(&job.indexer.name, |now| {
            now.reset_keys.retain(|key| !record.reset_keys.contains(key));
            now.reset_blobs.retain(|blob| !record.reset_blobs.contains(blob));
        })
        .map_err(|error| RunStopReason::Message(error.message))
    }

    pub(crate) fn record(&self, indexer: &str) -> Result<IndexerRecord, ApiError> {
        self.store
            .record(indexer)
            .map_err(|error| ApiError::internal("reading the state of an indexer", error))
    }

    /// Reads, changes and writes the record of an indexer.
    pub(crate) fn change_record<T>(
        &self,
        indexer: &str,
        change: impl FnOnce(&mut IndexerRecord) -> T,
    ) -> Result<T, ApiError> {
        let _held = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let mut record = self.record(indexer)?;
        let answer = change(&mut record);
        self.store
            .save_record(indexer, &record)
            .map_err(|error| ApiError::internal("writing the state of an indexer", error))?;
        Ok(answer)
    }

    /// Deletes the state of all blobs of an indexer.
    pub(crate) fn clear(&self, indexer: &str) -> Result<(), ApiError> {
        self.store
            .clear(indexer)
            .map_err(|error| ApiError::internal("clearing the state of an indexer", error))
    }

    /// Deletes the state of a deleted indexer.
    pub(crate) fn forget(&self, indexer: &str) {
        if let Err(error) = self.store.remove(indexer) {
            tracing::error!(%error, indexer, "the state of a deleted indexer could not be removed");
        }
    }
}

impl IndexerRun {
    /// Returns the progress of the run.
    pub(crate) fn result(&self) -> ExecutionResult {
        let messages = self.messages();
        ExecutionResult {
            status: ExecutionStatus::InProgress,
            status_detail: None,
            mode: self.mode.to_owned(),
            error_message: None,
            start_time: format_time(self.started),
            end_time: None,
            errors: messages.errors.clone(),
            warnings: messages.warnings.clone(),
            items_processed: self.processed.load(Ordering::Relaxed),
            items_failed: self.failed.load(Ordering::Relaxed),
            initial_tracking_state: self.tracking.clone(),
            final_tracking_state: None,
        }
    }

    /// Ends the run before its next item.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    pub(super) fn forget(&self) {
        self.forgotten.store(true, Ordering::Release);
        self.cancel();
    }

    fn add_processed(&self, items: u64) {
        self.processed.fetch_add(items, Ordering::Relaxed);
    }

    /// Records a failed item and returns the number of failed items.
    fn add_failure(&self, error: ItemError) -> u64 {
        let mut messages = self.messages();
        if messages.errors.len() < MOST_MESSAGES {
            messages.errors.push(error);
        }
        self.failed.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn add_warning(
        &self,
        key: Option<String>,
        message: String,
        name: Option<String>,
        details: Option<String>,
    ) {
        let mut messages = self.messages();
        if messages.warnings.len() < MOST_MESSAGES {
            messages.warnings.push(ItemWarning { key, message, name, details, documentation_link: None });
        }
    }

    fn messages(&self) -> MutexGuard<'_, RunMessages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
