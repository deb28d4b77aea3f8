//! One run of an indexer, from its first blob to its result.

mod failures;
mod pass;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use self::pass::{Pass, Stop};
use super::definition::IndexerDefinition;
use super::redb_state::RedbState;
use super::skills::Skillset;
use super::source::{DataSourceDefinition, Places};
use super::state::Record;
use super::status::{
    ExecutionResult, ExecutionStatus, INDEXING_ALL, INDEXING_RESET, ItemError, ItemWarning, Limits, time,
};
use crate::ApiError;
use crate::definition::field::Schema;

/// The index that a run writes to. Calls may block.
pub trait Target: Send + Sync {
    fn schema(&self) -> Result<Arc<Schema>, ApiError>;
    /// Applies actions (`@search.action` is `mergeOrUpload` or `delete`) and says for each, in order, how it went.
    fn apply(&self, actions: Vec<Map<String, Value>>) -> Result<Vec<Outcome>, ApiError>;
}

/// How one action went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub key: String,
    pub ok: bool,
    pub status: u16,
    pub message: Option<String>,
}

/// Everything that a run needs, as it was defined when the run began.
pub struct Job {
    pub indexer: IndexerDefinition,
    pub source: DataSourceDefinition,
    pub skillset: Option<Skillset>,
    pub target: Arc<dyn Target>,
}

/// A run that others may watch and cancel.
pub struct Run {
    started: DateTime<Utc>,
    deadline: Instant,
    mode: &'static str,
    tracking: Option<String>,
    cancelled: AtomicBool,
    /// The indexer was deleted while it ran: nothing of it is to be kept.
    forgotten: AtomicBool,
    processed: AtomicU64,
    failed: AtomicU64,
    messages: Mutex<Messages>,
}

#[derive(Default)]
struct Messages {
    errors: Vec<ItemError>,
    warnings: Vec<ItemWarning>,
}

/// Runs indexers, one call per run.
pub struct Runner {
    store: Arc<RedbState>,
    places: Places,
    pub limits: Limits,
    /// Held while a record is read, changed and written.
    records: Mutex<()>,
}

/// Azure lists as many of each; what comes after them is counted only.
const MOST_MESSAGES: usize = 1_000;

impl Runner {
    pub fn new(store: Arc<RedbState>, places: Places, limits: Limits) -> Self {
        Self { store, places, limits, records: Mutex::new(()) }
    }

    /// Notes the beginning of a run.
    pub fn prepare(&self, indexer: &str) -> Result<Run, ApiError> {
        let started = Utc::now();
        let record = self.change_record(indexer, |record| {
            record.last_start = Some(started.timestamp_millis());
            record.clone()
        })?;
        let resets = !record.reset_keys.is_empty() || !record.reset_blobs.is_empty();
        Ok(Run {
            started,
            deadline: Instant::now() + self.limits.run_time,
            mode: if resets { INDEXING_RESET } else { INDEXING_ALL },
            tracking: record.tracking,
            cancelled: AtomicBool::new(false),
            forgotten: AtomicBool::new(false),
            processed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            messages: Mutex::new(Messages::default()),
        })
    }

    /// Runs to the end and keeps the result. Blocks; a panic on the way ends this run only.
    pub fn run(&self, job: &Job, run: &Run) -> ExecutionResult {
        let name = job.indexer.name.as_str();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.pass(job, run))).unwrap_or_else(|_| {
            tracing::error!(indexer = name, "a run of an indexer panicked");
            Err(Stop::Message("The run ended by a fault of this service. Its log says more.".to_owned()))
        });
        let (message, broken) = match &outcome {
            Ok(()) => (None, false),
            Err(Stop::Definition(error)) => (Some(error.message.clone()), true),
            Err(Stop::Message(message) | Stop::Early(message)) => (Some(message.clone()), false),
        };
        let mut result = run.result();
        result.end_time = Some(time(Utc::now()));
        result.error_message = message;
        result.status = match outcome {
            Ok(()) => ExecutionStatus::Success,
            Err(_) => ExecutionStatus::TransientFailure,
        };
        if outcome.is_ok() && run.mode == INDEXING_ALL {
            let start = time(run.started);
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

    fn pass(&self, job: &Job, run: &Run) -> Result<(), Stop> {
        let schema = job.target.schema().map_err(Stop::Definition)?;
        let source = job.source.open(&self.places).map_err(Stop::Definition)?;
        let mut pass = Pass::new(self.store.as_ref(), job, run, &source, &schema, &self.limits)?;
        for note in job.skillset.iter().flat_map(|skillset| &skillset.notes) {
            run.warn(None, note.clone(), job.skillset.as_ref().map(|skillset| skillset.name.clone()), None);
        }
        if run.mode == INDEXING_ALL {
            return pass.all();
        }
        let record = self.record(&job.indexer.name).map_err(Stop::Definition)?;
        pass.again(&record.reset_keys, &record.reset_blobs)?;
        // What was added while this run went on stays for the next one.
        self.change_record(&job.indexer.name, |now| {
            now.reset_keys.retain(|key| !record.reset_keys.contains(key));
            now.reset_blobs.retain(|blob| !record.reset_blobs.contains(blob));
        })
        .map_err(|error| Stop::Message(error.message))
    }

    pub fn record(&self, indexer: &str) -> Result<Record, ApiError> {
        self.store
            .record(indexer)
            .map_err(|error| ApiError::internal("reading the state of an indexer", error))
    }

    /// Reads, changes and writes what is remembered of an indexer.
    pub fn change_record<T>(
        &self,
        indexer: &str,
        change: impl FnOnce(&mut Record) -> T,
    ) -> Result<T, ApiError> {
        let _held = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let mut record = self.record(indexer)?;
        let answer = change(&mut record);
        self.store
            .save_record(indexer, &record)
            .map_err(|error| ApiError::internal("writing the state of an indexer", error))?;
        Ok(answer)
    }

    /// Forgets which blobs were seen.
    pub fn clear(&self, indexer: &str) -> Result<(), ApiError> {
        self.store
            .clear(indexer)
            .map_err(|error| ApiError::internal("clearing the state of an indexer", error))
    }

    /// Forgets everything of an indexer that was deleted.
    pub fn forget(&self, indexer: &str) {
        if let Err(error) = self.store.remove(indexer) {
            tracing::error!(%error, indexer, "the state of a deleted indexer could not be removed");
        }
    }
}

impl Run {
    /// How far the run is.
    pub fn result(&self) -> ExecutionResult {
        let messages = self.messages();
        ExecutionResult {
            status: ExecutionStatus::InProgress,
            status_detail: None,
            mode: self.mode.to_owned(),
            error_message: None,
            start_time: time(self.started),
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
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    pub(super) fn forget(&self) {
        self.forgotten.store(true, Ordering::Release);
        self.cancel();
    }

    fn count(&self, items: u64) {
        self.processed.fetch_add(items, Ordering::Relaxed);
    }

    /// Notes an item that failed, and gives the number of such items so far.
    fn fail(&self, error: ItemError) -> u64 {
        let mut messages = self.messages();
        if messages.errors.len() < MOST_MESSAGES {
            messages.errors.push(error);
        }
        self.failed.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn warn(&self, key: Option<String>, message: String, name: Option<String>, details: Option<String>) {
        let mut messages = self.messages();
        if messages.warnings.len() < MOST_MESSAGES {
            messages.warnings.push(ItemWarning { key, message, name, details, documentation_link: None });
        }
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
