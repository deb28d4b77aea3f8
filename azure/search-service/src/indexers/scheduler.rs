//! All indexers of a service: which are due, which run, and the operations of clients.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bindpost_azure_search_model::ApiError;
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::definition::IndexerDefinition;
use super::redb_state::RedbState;
use super::run::{IndexerJob, IndexerRun, IndexerRunner};
use super::source::AllowedFolders;
use super::status::{self, ExecutionResult, ExecutionStatus, IndexerLimits};

/// Runs indexers, each at most once at a time.
pub(crate) struct IndexerScheduler {
    runner: IndexerRunner,
    live: Mutex<HashMap<String, Arc<IndexerRun>>>,
    /// Notified when a run has ended.
    ended: Notify,
}

/// A reserved run that has not started. Dropping it releases the reservation.
pub(crate) struct ReservedRun {
    indexers: Arc<IndexerScheduler>,
    job: IndexerJob,
    run: Arc<IndexerRun>,
}

impl IndexerScheduler {
    pub(crate) fn new(store: Arc<RedbState>, places: AllowedFolders, limits: IndexerLimits) -> Arc<Self> {
        Arc::new(Self {
            runner: IndexerRunner::new(store, places, limits),
            live: Mutex::new(HashMap::new()),
            ended: Notify::new(),
        })
    }

    /// Waits until an indexer does not run, at most for this time.
    pub(crate) async fn wait_for_end(&self, indexer: &str, most: Duration) {
        let mut late = pin!(tokio::time::sleep(most));
        loop {
            let mut ended = pin!(self.ended.notified());
            // A run that ends from here on is noticed.
            ended.as_mut().enable();
            if !self.live().contains_key(indexer) {
                return;
            }
            tokio::select! {
                () = ended => {}
                () = &mut late => return,
            }
        }
    }

    /// Starts a run on a thread for blocking work. The handle may be dropped.
    ///
    /// Must be called within a tokio runtime.
    pub(crate) fn start(self: &Arc<Self>, job: IndexerJob) -> Result<JoinHandle<ExecutionResult>, ApiError> {
        let ticket = self.reserve_run(job)?;
        Ok(tokio::task::spawn_blocking(move || ticket.run()))
    }

    /// Reserves a run. Returns 409 if the indexer is already running.
    pub(crate) fn reserve_run(self: &Arc<Self>, job: IndexerJob) -> Result<ReservedRun, ApiError> {
        let name = &job.indexer.name;
        if job.indexer.disabled {
            return Err(ApiError::invalid(format!(
                "Indexer '{name}' is disabled. Set its 'disabled' to false to run it."
            )));
        }
        let mut live = self.live();
        if live.contains_key(name) {
            return Err(busy());
        }
        let run = Arc::new(self.runner.prepare(name)?);
        live.insert(name.clone(), Arc::clone(&run));
        drop(live);
        Ok(ReservedRun { indexers: Arc::clone(self), job, run })
    }

    /// Records a run that could not start because a data source or an index is missing.
    pub(crate) fn record_failed_start(&self, indexer: &str, error: &ApiError) -> Result<(), ApiError> {
        let now = Utc::now();
        self.runner.change_record(indexer, |record| {
            record.broken = true;
            record.last_start = Some(now.timestamp_millis());
            let mut result = ExecutionResult::reset(None, now);
            result.status = ExecutionStatus::TransientFailure;
            result.error_message = Some(error.message.clone());
            record.remember(result);
        })
    }

    /// Returns the body for `search.status`.
    pub(crate) fn status(&self, indexer: &str) -> Result<Value, ApiError> {
        let live = self.live().get(indexer).map(|run| run.result());
        let mut record = self.runner.record(indexer)?;
        // A run is in progress until its reservation is released. Otherwise a client could see its end
        // and fail to start the next run.
        if let (Some(live), Some(first)) = (&live, record.history.first())
            && live.start_time == first.start_time
        {
            record.history.remove(0);
        }
        Ok(status::status(indexer, &record, live, &self.runner.limits))
    }

    /// `search.reset`: the next run processes all blobs again.
    pub(crate) fn reset(&self, indexer: &str) -> Result<(), ApiError> {
        // The lock prevents a run from starting in the meantime.
        let live = self.live();
        if live.contains_key(indexer) {
            return Err(busy());
        }
        self.runner.clear(indexer)?;
        self.runner.change_record(indexer, |record| {
            record.tracking = None;
            record.reset_keys.clear();
            record.reset_blobs.clear();
            record.remember(ExecutionResult::reset(None, Utc::now()));
        })
    }

    /// `search.resetdocs`: the next run processes only these documents again.
    pub(crate) fn reset_docs(&self, indexer: &str, body: &Value, overwrite: bool) -> Result<(), ApiError> {
        let keys = strings(body, "documentKeys")?;
        let blobs = strings(body, "datasourceDocumentIds")?;
        self.runner.change_record(indexer, |record| {
            if overwrite {
                record.reset_keys.clear();
                record.reset_blobs.clear();
            }
            record.reset_keys.extend(keys);
            record.reset_blobs.extend(blobs);
            record.remember(ExecutionResult::reset(Some("resetDocs"), Utc::now()));
        })
    }

    /// `search.resync`: not supported, because folders have no permissions to synchronize.
    pub(crate) fn resync(&self, indexer: &str, body: &Value) -> Result<(), ApiError> {
        for option in strings(body, "options")? {
            if option != "permissions" {
                return Err(ApiError::invalid(format!("The resync option '{option}' is not known.")));
            }
        }
        Err(ApiError::not_supported(format!(
            "Indexer '{indexer}' reads folders, which have no permissions to resync. Use search.reset and search.run to index everything again."
        )))
    }

    /// Returns the names of the indexers that are due now.
    pub(crate) fn due_indexers<'a>(
        &self,
        indexers: impl IntoIterator<Item = &'a IndexerDefinition>,
        now: DateTime<Utc>,
    ) -> Result<Vec<&'a str>, ApiError> {
        let mut due = Vec::new();
        for indexer in indexers {
            if indexer.disabled || indexer.schedule.is_none() || self.live().contains_key(&indexer.name) {
                continue;
            }
            let last =
                self.runner.record(&indexer.name)?.last_start.and_then(DateTime::from_timestamp_millis);
            if is_due(indexer, last, now) {
                due.push(indexer.name.as_str());
            }
        }
        Ok(due)
    }

    #[cfg(test)]
    pub(crate) fn is_running(&self, indexer: &str) -> bool {
        self.live().contains_key(indexer)
    }

    /// Ends the run of an indexer before its next item.
    #[cfg(test)]
    pub(crate) fn cancel(&self, indexer: &str) {
        if let Some(run) = self.live().get(indexer) {
            run.cancel();
        }
    }

    /// Ends all runs when the service stops. Indexed documents stay, and the next runs continue from there.
    pub(crate) fn cancel_all(&self) {
        self.live().values().for_each(|run| run.cancel());
    }

    /// Deletes the state of a deleted indexer.
    pub(crate) fn forget(&self, indexer: &str) {
        let live = self.live();
        match live.get(indexer) {
            // The run deletes the state when it ends.
            Some(run) => run.forget(),
            None => self.runner.forget(indexer),
        }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<String, Arc<IndexerRun>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReservedRun {
    /// Runs to the end. The call blocks.
    pub(crate) fn run(self) -> ExecutionResult {
        self.indexers.runner.run(&self.job, &self.run)
    }
}

impl Drop for ReservedRun {
    fn drop(&mut self) {
        self.indexers.live().remove(&self.job.indexer.name);
        self.indexers.ended.notify_waiters();
    }
}

/// Returns whether an indexer runs right after its creation. It does not if it is disabled or its
/// schedule starts later.
pub(crate) fn runs_when_created(indexer: &IndexerDefinition, now: DateTime<Utc>) -> bool {
    let later =
        indexer.schedule.as_ref().and_then(|schedule| schedule.start).is_some_and(|start| start > now);
    !indexer.disabled && !later
}

fn is_due(indexer: &IndexerDefinition, last: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    let Some(schedule) = &indexer.schedule else { return false };
    match (schedule.start, last) {
        (Some(start), _) if now < start => false,
        (_, None) => true,
        (None, Some(last)) => now.signed_duration_since(last) >= schedule.interval,
        (Some(start), Some(last)) => {
            // Start times that passed during a run are skipped.
            let interval = schedule.interval.num_seconds().max(1);
            let since = now.signed_duration_since(start).num_seconds();
            let latest = start.timestamp() + since - since % interval;
            last.timestamp() < latest
        }
    }
}

fn busy() -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "OperationNotAllowed",
        "Another indexer invocation is currently in progress; concurrent invocations are not allowed.",
    )
}

fn strings(body: &Value, name: &str) -> Result<Vec<String>, ApiError> {
    let wrong = || ApiError::invalid(format!("'{name}' must be an array of strings."));
    match body.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => {
            list.iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}
