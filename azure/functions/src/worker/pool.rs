//! The workers of one app: which of them runs an invocation, and what happens when one ends.
//!
//! `supervise.rs` watches each worker and starts others in its place; here is what the host calls.

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

/// A worker with new files or settings, which has told its functions but does not serve yet.
pub struct PreparedWorker {
    worker: Arc<Worker>,
    /// What it found in the app.
    pub indexing: IndexingResult,
}

/// Whether the workers can serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolHealth {
    /// So many workers serve.
    Serving(usize),
    /// None serves at the moment; the reason why the last one ended.
    Restarting(String),
    /// Workers ended too often; there will be no further start.
    Failed(String),
    Stopping,
}

/// Why a function could not be loaded; in the order of the functions.
pub type LoadResults = Vec<Result<(), String>>;

impl WorkerPool {
    /// Starts the first worker of an app and asks it for the functions. Next comes `load`.
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

    /// Lets the first worker load the functions, and starts the others. Those that cannot be loaded fail every
    /// invocation with the reason.
    pub async fn load(&self, functions: Vec<Arc<Function>>) -> Result<LoadResults, WorkerStartError> {
        let first = self.pool.state().first.take();
        match first {
            Some(fresh) => self.replace_all(fresh, functions).await,
            None => Err(WorkerStartError::Stopping),
        }
    }

    /// Starts a worker for changed files or settings, beside those that serve. Next comes `replace_all`.
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

    /// Lets a fresh worker serve in place of all others, which finish what they run and end.
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
            // Other files deserve another try.
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
    /// All log records of the invocation are handed to `logs` before the outcome is there. Nothing is ever sent twice.
    pub async fn invoke(
        &self,
        mut invocation: Invocation,
        timeout: Duration,
        mut logs: impl FnMut(LogRecord) + Send,
    ) -> Result<InvocationOutcome, InvocationError> {
        let (worker, mut running) = loop {
            let worker = self.pool.least_busy_worker().await?;
            match worker.channel.invoke(invocation) {
                Ok(running) => break (worker, running),
                Err(InvocationNotStarted::Unsent(unsent)) => invocation = *unsent,
                Err(InvocationNotStarted::Failed(error)) => return Err(error),
            }
        };
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

    /// Waits until workers ended too often; the answer is why. The host should exit then.
    pub async fn wait_for_failure(&self) -> String {
        match self.pool.failed.subscribe().wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// What the workers that serve said about themselves.
    pub fn worker_details(&self) -> Vec<(WorkerNumber, WorkerDetails)> {
        self.pool.state().serving.iter().map(|worker| (worker.number, worker.about.clone())).collect()
    }

    /// The last lines of the consoles, for when an app has no functions and nobody knows why.
    pub fn last_lines(&self) -> Vec<String> {
        let state = self.pool.state();
        let first = state.first.iter().map(|fresh| &fresh.worker);
        first.chain(&state.serving).flat_map(|worker| worker.console.tail().0).collect()
    }

    /// Invocations that somebody waits for.
    pub fn in_flight(&self) -> usize {
        let state = self.pool.state();
        state.serving.iter().chain(&state.retiring).map(|worker| worker.channel.waiting_count()).sum()
    }

    /// Takes no further invocation, waits for those that run, then ends all workers. Returns how many invocations
    /// were not finished at the limit; they have failed.
    pub async fn drain(&self, limit: Duration) -> usize {
        let workers = self.pool.begin_stop();
        let deadline = Instant::now() + limit;
        // Once per stop, so a look from time to time is enough.
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

    /// Ends all workers at once, whatever they run.
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

/// Sees to it that an invocation nobody waits for any more, because it took too long or its caller has gone, does not
/// hold its worker for longer than one that is waited for.
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

/// What the tasks around the workers share.
pub(crate) struct SharedPool {
    pub(crate) limits: WorkerLimits,
    pub(crate) events: Arc<dyn WorkerEvents>,
    state: Mutex<PoolState>,
    numbers: AtomicU64,
    /// A worker came, or none will come.
    changed: Notify,
    /// There is a vacancy, or no more need to fill any.
    pub(crate) vacancy: Notify,
    pub(crate) failed: watch::Sender<Option<String>>,
    stopped: watch::Sender<bool>,
}

#[derive(Default)]
pub(crate) struct PoolState {
    /// The worker that was started to index, until it serves.
    first: Option<PreparedWorker>,
    pub(crate) generation: Option<Arc<WorkerGeneration>>,
    pub(crate) functions: Arc<[Arc<Function>]>,
    pub(crate) serving: Vec<Arc<Worker>>,
    /// Workers that finish what they run.
    pub(crate) retiring: Vec<Arc<Worker>>,
    pub(crate) wanted: usize,
    pub(crate) vacancies: VecDeque<WorkerVacancy>,
    /// When workers were started again after a crash.
    pub(crate) restarts: VecDeque<Instant>,
    pub(crate) last_start: Option<Instant>,
    /// Why the last worker ended, without paths.
    pub(crate) last_end: String,
    pub(crate) stopping: bool,
}

/// A place for a worker to be started.
pub(crate) struct WorkerVacancy {
    /// Why the worker that was there is gone.
    pub(crate) reason: Option<String>,
    /// Whether its start uses up the budget.
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

    /// The least busy worker; waits for one if there is none.
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
                let reason = format!("the last one ended: {}", self.state().last_end);
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
            let reason = format!("workers keep ending; the last one: {}", state.last_end);
            return Err(InvocationError::NoWorker { reason });
        }
        Ok(best)
    }

    /// Gives a worker its place among those that serve, unless it is not wanted any more.
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

    /// No worker will come any more: those who wait should not.
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

    /// Runs the future, but not beyond the end of the pool.
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
