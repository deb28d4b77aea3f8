//! Limits how many requests run at the same time. Each one runs on a thread that may block.

use std::sync::Arc;

use bindpost_azure_search_model::ApiError;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

use super::{Budget, CLIENT_GONE, RequestLimits, TIME_OVER, service_busy};

/// The kind of work. Each kind has its own concurrency limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// Searches, suggestions and other work that may take long.
    Search,
    /// Look-ups, counts, status requests and other short work.
    Read,
    /// Batches and definitions. Started work always finishes, even if the client disconnects.
    Write,
}

pub(super) struct ConcurrencyLimits {
    searches: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
}

impl ConcurrencyLimits {
    pub(super) fn new(limits: &RequestLimits) -> Self {
        let turns = |number: usize| Arc::new(Semaphore::new(number.clamp(1, Semaphore::MAX_PERMITS)));
        Self { searches: turns(limits.searches), reads: turns(limits.reads), writes: turns(limits.writes) }
    }

    fn semaphore_for(&self, lane: WorkKind) -> &Arc<Semaphore> {
        match lane {
            WorkKind::Search => &self.searches,
            WorkKind::Read => &self.reads,
            WorkKind::Write => &self.writes,
        }
    }
}

impl Budget {
    /// Runs work on a thread that may block, as soon as a slot is free. The work stops when the time
    /// limit passes and when this future is dropped because the client has disconnected. Work of
    /// [`WorkKind::Write`] always finishes. The slot is released when the work has ended.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        lane: WorkKind,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let started = tokio::time::Instant::now();
        let turn = timeout(self.0.time, Arc::clone(self.0.turns.semaphore_for(lane)).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Err(service_busy()) };
        let budget = self.clone();
        let task = spawn_blocking(move || {
            let done = budget.run(work);
            // The memory is released before the slot, so that the next work can use it.
            drop(budget);
            drop(turn);
            done
        });
        if lane == WorkKind::Write {
            return join_result(task.await);
        }
        let mut client = CancelOnDrop { budget: self, waits: true };
        let done = timeout(self.0.time.saturating_sub(started.elapsed()), task).await;
        client.waits = false;
        match done {
            Ok(done) => join_result(done),
            Err(_) => {
                self.stop(TIME_OVER);
                self.run(|| Err(service_busy()))
            }
        }
    }
}

/// Stops the work if it is dropped while the client still waits.
struct CancelOnDrop<'a> {
    budget: &'a Budget,
    waits: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.budget.stop(CLIENT_GONE);
        }
    }
}

fn join_result<T>(done: Result<Result<T, ApiError>, JoinError>) -> Result<T, ApiError> {
    match done {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            // The caller turns the panic into a response with status 500.
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(ApiError::internal("answering a request", error)),
        },
    }
}
