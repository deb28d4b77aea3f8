//! The pool of workers of one app. It selects the worker that runs an invocation and replaces
//! workers that exit.
//!
//! This file has the functions that the host calls. `supervise.rs` watches each worker
//! and starts replacements.

pub(crate) mod arrivals;
pub(crate) mod start;
pub(crate) mod supervise;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use self::start::{Worker, WorkerGeneration};
use super::channel::InvocationNotStarted;
use super::error::{InvocationError, WorkerStartError};
use super::events::{LogRecord, WorkerDetails, WorkerEvents, WorkerNumber};
use super::http_stream::StreamTarget;
use super::limits::{MAX_PROCESSES, WorkerLimits};
use super::process::StopSignal;
use super::process::launch::WorkerLaunch;
use super::wire::indexing::IndexingResult;
use crate::function::Function;
use crate::invocation::{Invocation, InvocationOutcome};

/// The workers of one app. Dropping this kills them.
pub struct WorkerPool {
    pool: Arc<SharedPool>,
}

impl std::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerPool").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

/// A worker with new files or settings. It has listed its functions but does not serve yet.
pub struct PreparedWorker {
    worker: Arc<Worker>,
    /// The functions that it found in the app.
    pub indexing: IndexingResult,
}

/// Whether the workers can serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolHealth {
    /// This many workers serve.
    Serving(usize),
    /// No worker serves at the moment. Contains the reason why the last one exited.
    Restarting(String),
    /// Workers exited too often. No further worker is started.
    Failed(String),
    Stopping,
}

/// The result of loading each function, in the order of the functions.
pub type LoadResults = Vec<Result<(), String>>;

impl WorkerPool {
    /// Starts the first worker of an app and requests the list of functions. Call `load` next.
    pub async fn start(
        launch: WorkerLaunch,
        limits: WorkerLimits,
        events: Arc<dyn WorkerEvents>,
    ) -> Result<(Self, IndexingResult), WorkerStartError> {
        let workers = Self { pool: Arc::new(SharedPool::new(limits, events)) };
        let fresh = workers.prepare(launch).await?;
        let indexing = fresh.indexing.clone();
        workers.pool.state().first = Some(fresh);
        tokio::spawn(supervise::fill_vacancies(Arc::clone(&workers.pool)));
        Ok((workers, indexing))
    }

    /// Makes the first worker load the functions, and starts the other workers. Invocations of functions that
    /// cannot be loaded fail with the reason.
    pub async fn load(&self, functions: Vec<Arc<Function>>) -> Result<LoadResults, WorkerStartError> {
        let first = self.pool.state().first.take();
        match first {
            Some(fresh) => self.replace_all(fresh, functions).await,
            None => Err(WorkerStartError::Stopping),
        }
    }

    /// Starts a worker for changed files or settings, while the others continue to serve.
    /// Call `replace_all` next.
    pub async fn prepare(&self, launch: WorkerLaunch) -> Result<PreparedWorker, WorkerStartError> {
        let pool = &self.pool;
        pool.unless_stopped(async {
            let generation =
                WorkerGeneration::open(launch, pool.limits.clone(), Arc::clone(&pool.events)).await?;
            pool.state().last_start = Some(Instant::now());
            let worker = Arc::new(generation).start(pool.next_number()).await?;
            let indexing = worker.index().await?;
            Ok(PreparedWorker { worker, indexing })
        })
        .await
    }

    /// Replaces all workers by a prepared one. The old workers finish their invocations and exit.
    pub async fn replace_all(
        &self,
        fresh: PreparedWorker,
        functions: Vec<Arc<Function>>,
    ) -> Result<LoadResults, WorkerStartError> {
        let PreparedWorker { worker, .. } = fresh;
        let results = self.pool.unless_stopped(worker.load(&functions)).await?;
        let old = {
            let mut state = self.pool.state();
            if state.stopping {
                return Err(WorkerStartError::Stopping);
            }
            let wanted = worker.generation.launch.processes.clamp(1, MAX_PROCESSES);
            state.generation = Some(Arc::clone(&worker.generation));
            state.functions = functions.into();
            state.wanted = wanted;
            // The restart budget starts again for changed files.
            state.restarts.clear();
            state.vacancies = (1..wanted).map(|_| WorkerVacancy { reason: None, counted: false }).collect();
            std::mem::take(&mut state.serving)
        };
        self.pool.failed.send_replace(None);
        self.pool.add_worker(worker);
        self.pool.vacancy.notify_one();
        for worker in old {
            worker.retired.send_replace(Some("the app has changed".into()));
        }
        Ok(results)
    }

    /// Runs a function on the least busy worker. Dropping the future cancels the invocation.
    ///
    /// All log records of the invocation are passed to `logs` before the function returns. An invocation is
    /// never sent twice.
    pub async fn invoke(
        &self,
        mut invocation: Invocation,
        timeout: Duration,
        mut logs: impl FnMut(LogRecord) + Send,
    ) -> Result<InvocationOutcome, InvocationError> {
        let stream = invocation.stream.clone();
        let (worker, mut running) = loop {
            let worker = self.pool.least_busy_worker().await?;
            match worker.channel.invoke(invocation) {
                Ok(running) => break (worker, running),
                Err(InvocationNotStarted::Unsent(unsent)) => invocation = *unsent,
                Err(InvocationNotStarted::Failed(error)) => return Err(error),
            }
        };
        if let Some((slot, server)) = stream.zip(worker.channel.http_server()) {
            slot.fill(StreamTarget { invocation: running.id().clone(), server });
        }
        let mut overdue = OverdueGuard::new(worker, running.id(), timeout, self.pool.limits.cancel_grace);
        let answered = tokio::time::timeout(timeout, running.outcome(&mut logs)).await;
        match answered {
            Ok(outcome) => {
                overdue.worker = None;
                outcome
            }
            Err(_) => Err(InvocationError::TimedOut { after: timeout }),
        }
    }

    /// Returns whether requests of HTTP functions are forwarded to servers in the workers.
    pub(crate) fn streams_http(&self) -> bool {
        self.pool.state().serving.first().is_some_and(|worker| worker.channel.http_server().is_some())
    }

    /// Returns whether the serving workers declared a capability.
    pub(crate) fn has_capability(&self, capability: &str) -> bool {
        self.pool.state().serving.first().is_some_and(|worker| worker.channel.has_capability(capability))
    }

    pub fn health(&self) -> PoolHealth {
        let state = self.pool.state();
        if let Some(reason) = &*self.pool.failed.borrow() {
            return PoolHealth::Failed(reason.clone());
        }
        if state.stopping {
            return PoolHealth::Stopping;
        }
        match state.serving.len() {
            0 if state.generation.is_none() => PoolHealth::Restarting("the first one is starting".into()),
            0 => PoolHealth::Restarting(state.last_end.clone()),
            serving => PoolHealth::Serving(serving),
        }
    }

    /// Waits until workers have exited too often, and returns the reason. The host should then exit.
    pub async fn wait_for_failure(&self) -> String {
        match self.pool.failed.subscribe().wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// Returns the properties that the serving workers reported.
    pub fn worker_details(&self) -> Vec<(WorkerNumber, WorkerDetails)> {
        self.pool.state().serving.iter().map(|worker| (worker.number, worker.about.clone())).collect()
    }

    /// Returns the last lines of the consoles. They may explain why an app has no functions.
    pub fn last_lines(&self) -> Vec<String> {
        let state = self.pool.state();
        let first = state.first.iter().map(|fresh| &fresh.worker);
        first.chain(&state.serving).flat_map(|worker| worker.console.tail().0).collect()
    }

    /// Returns the number of running invocations, without cancelled ones.
    pub fn in_flight(&self) -> usize {
        let state = self.pool.state();
        state.serving.iter().chain(&state.retiring).map(|worker| worker.channel.waiting_count()).sum()
    }

    /// Accepts no further invocations, waits for the running ones, then stops all workers. Returns the number
    /// of invocations that were not finished at the limit. These have failed.
    pub async fn drain(&self, limit: Duration) -> usize {
        let workers = self.pool.begin_stop();
        let deadline = Instant::now() + limit;
        // This runs once per stop, so polling is sufficient.
        while self.in_flight() > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let unfinished = self.in_flight();
        let mut stops = tokio::task::JoinSet::new();
        for worker in workers {
            stops.spawn(async move { worker.stop().await });
        }
        while stops.join_next().await.is_some() {}
        self.pool.stopped.send_replace(true);
        unfinished
    }

    /// Kills all workers immediately.
    pub fn kill(&self) {
        for worker in self.pool.begin_stop() {
            worker.process.signal(StopSignal::Kill);
        }
        self.pool.stopped.send_replace(true);
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Limits how long a cancelled or timed out invocation may keep its worker busy. After its timeout and a
/// grace period, the worker is replaced.
struct OverdueGuard {
    worker: Option<Arc<Worker>>,
    invocation: Arc<str>,
    end: Option<Instant>,
    grace: Duration,
}

impl OverdueGuard {
    fn new(worker: Arc<Worker>, invocation: &Arc<str>, timeout: Duration, grace: Duration) -> Self {
        let end = Instant::now().checked_add(timeout);
        Self { worker: Some(worker), invocation: Arc::clone(invocation), end, grace }
    }
}

impl Drop for OverdueGuard {
    fn drop(&mut self) {
        let (Some(worker), Some(end)) = (self.worker.take(), self.end) else { return };
        let left = end.saturating_duration_since(Instant::now());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let invocation = Arc::clone(&self.invocation);
            runtime.spawn(supervise::retire_if_overdue(worker, invocation, left + self.grace));
        }
    }
}

/// The state of the pool, shared by its tasks.
pub(crate) struct SharedPool {
    pub(crate) limits: WorkerLimits,
    pub(crate) events: Arc<dyn WorkerEvents>,
    state: Mutex<PoolState>,
    numbers: AtomicU64,
    /// Notified when a worker was added, or when the pool failed or stops.
    changed: Notify,
    /// Notified when there is a vacancy, or when the pool stops.
    pub(crate) vacancy: Notify,
    pub(crate) failed: watch::Sender<Option<String>>,
    stopped: watch::Sender<bool>,
}

#[derive(Default)]
pub(crate) struct PoolState {
    /// The worker that was started for indexing, until it serves.
    first: Option<PreparedWorker>,
    pub(crate) generation: Option<Arc<WorkerGeneration>>,
    pub(crate) functions: Arc<[Arc<Function>]>,
    pub(crate) serving: Vec<Arc<Worker>>,
    /// Workers that finish their invocations and then exit.
    pub(crate) retiring: Vec<Arc<Worker>>,
    pub(crate) wanted: usize,
    pub(crate) vacancies: VecDeque<WorkerVacancy>,
    /// The times of restarts after a crash.
    pub(crate) restarts: VecDeque<Instant>,
    pub(crate) last_start: Option<Instant>,
    /// Why the last worker exited, without paths.
    pub(crate) last_end: String,
    pub(crate) stopping: bool,
}

/// A worker that has to be started.
pub(crate) struct WorkerVacancy {
    /// Why the previous worker exited.
    pub(crate) reason: Option<String>,
    /// Whether this start counts toward the restart limit.
    pub(crate) counted: bool,
}

impl SharedPool {
    pub(crate) fn new(limits: WorkerLimits, events: Arc<dyn WorkerEvents>) -> Self {
        Self {
            limits,
            events,
            state: Mutex::default(),
            numbers: AtomicU64::new(0),
            changed: Notify::new(),
            vacancy: Notify::new(),
            failed: watch::Sender::new(None),
            stopped: watch::Sender::new(false),
        }
    }

    pub(crate) fn next_number(&self) -> WorkerNumber {
        WorkerNumber(self.numbers.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the least busy worker. Waits if no worker is available.
    async fn least_busy_worker(&self) -> Result<Arc<Worker>, InvocationError> {
        if let Some(worker) = self.pick()? {
            return Ok(worker);
        }
        let deadline = tokio::time::Instant::now() + self.limits.wait_for_worker;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(worker) = self.pick()? {
                return Ok(worker);
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                let reason = format!("the last one exited: {}", self.state().last_end);
                return Err(InvocationError::NoWorker { reason });
            }
        }
    }

    fn pick(&self) -> Result<Option<Arc<Worker>>, InvocationError> {
        let state = self.state();
        if state.stopping {
            return Err(InvocationError::NoWorker { reason: "the host is stopping".into() });
        }
        let open = state.serving.iter().filter(|worker| !worker.channel.has_ended());
        let best = open.min_by_key(|worker| worker.channel.running_count()).map(Arc::clone);
        if best.is_none() && self.failed.borrow().is_some() {
            let reason = format!("workers keep exiting; the last one: {}", state.last_end);
            return Err(InvocationError::NoWorker { reason });
        }
        Ok(best)
    }

    /// Adds a worker to those that serve. A worker that is no longer needed is killed.
    pub(crate) fn add_worker(self: &Arc<Self>, worker: Arc<Worker>) {
        {
            let mut state = self.state();
            let current = state.generation.as_ref().is_some_and(|it| Arc::ptr_eq(it, &worker.generation));
            if state.stopping || !current || state.serving.len() >= state.wanted {
                worker.process.signal(StopSignal::Kill);
                return;
            }
            state.serving.push(Arc::clone(&worker));
        }
        self.events.worker_started(worker.number, &worker.about);
        tokio::spawn(supervise::supervise(Arc::clone(self), worker));
        self.changed.notify_waiters();
    }

    /// Marks the pool as failed. Invocations that wait for a worker fail.
    pub(crate) fn fail(&self, reason: String) {
        self.events.workers_failed(&reason);
        self.failed.send_replace(Some(reason));
        self.changed.notify_waiters();
    }

    /// Marks the pool as stopping and returns all workers.
    fn begin_stop(&self) -> Vec<Arc<Worker>> {
        let workers = {
            let mut state = self.state();
            state.stopping = true;
            state.vacancies.clear();
            state.first = None;
            state.serving.iter().chain(&state.retiring).map(Arc::clone).collect()
        };
        self.vacancy.notify_one();
        self.changed.notify_waiters();
        workers
    }

    /// Runs the future until it completes or the pool has stopped.
    pub(crate) async fn unless_stopped<T>(
        &self,
        future: impl Future<Output = Result<T, WorkerStartError>>,
    ) -> Result<T, WorkerStartError> {
        let mut stopped = self.stopped.subscribe();
        tokio::select! {
            result = future => result,
            _ = stopped.wait_for(|stopped| *stopped) => Err(WorkerStartError::Stopping),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
