//! [`FunctionsHost`]: starts an app with functions, serves it, applies changes to its files, drains and stops. Read this
//! file first. [`Host`] in `either.rs` is for apps of both kinds.

pub(crate) mod access;
pub(crate) mod changes;
pub(crate) mod console;
mod either;
pub(crate) mod empty_app;
pub(crate) mod file_watch;
pub(crate) mod front;
pub(crate) mod generation;
pub(crate) mod keys;
pub(crate) mod report;
pub(crate) mod state_folder;
pub(crate) mod tool_tasks;
pub(crate) mod worker_launch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bindpost_mcp_http::listener::{ConnectedClient, Drain, DrainTrigger};
use bindpost_mcp_http::{BoundListener, Endpoint};
use bindpost_mcp_server::{Server, stdio};
use hyper::service::service_fn;
use tokio::sync::watch;

pub use self::either::Host;

use self::access::{AccessPolicy, ServerProfile};
use self::changes::{AppReloader, ServingMode};
use self::console::EventLogger;
use self::file_watch::FileWatcher;
use self::front::{HealthProbes, RequestRouter};
use self::generation::AppGeneration;
use self::report::AppReport;
use crate::app::App;
use crate::error::HostError;
use crate::invocation::InvocationBackend;
use crate::routes::front::FunctionRoutes;
use crate::setup::SetupProgress;
use crate::timers::scheduler::TimerScheduler;
use crate::worker::PoolHealth;

/// How long running invocations may continue after their workers are replaced or the host begins to stop.
pub(crate) const DRAIN: Duration = Duration::from_secs(25);
/// Calls that still run this long before the end of a drain fail with an error.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// The options for running an app.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Whether packages may be installed and the app built.
    pub install: bool,
    /// A folder of language workers to use instead of the built-in ones.
    pub workers: Option<PathBuf>,
    /// The number of worker processes. Defaults to the setting `FUNCTIONS_WORKER_PROCESS_COUNT`.
    pub processes: Option<usize>,
    /// Includes the error message of a failed function in the response to the client.
    pub detailed_errors: bool,
    /// Restarts the app when its files change.
    pub watch: bool,
    /// Other machines can reach the app. Settings that are missing are then errors where they would lose data.
    pub exposed: bool,
    /// A command that is put before each worker's command. It must end by executing the rest of its
    /// arguments.
    pub launcher: Vec<OsString>,
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions {
            install: true,
            workers: None,
            processes: None,
            detailed_errors: false,
            watch: false,
            exposed: false,
            launcher: Vec::new(),
        }
    }
}

/// A running app with functions.
pub(crate) struct FunctionsHost {
    shared: Arc<HostState>,
    watch: Option<FileWatcher>,
}

/// The state that serving an app and reloading it share.
pub(crate) struct HostState {
    /// The app as it was when the host started.
    pub(crate) app: App,
    pub(crate) options: HostOptions,
    server: RwLock<Server>,
    current: RwLock<Arc<AppGeneration>>,
    /// The reason why the host must stop. It is set when workers have exited too often.
    pub(crate) failed: watch::Sender<Option<String>>,
    pub(crate) draining: AtomicBool,
    pub(crate) timers: TimerScheduler,
}

impl std::fmt::Debug for FunctionsHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FunctionsHost").field("app", &self.shared.app.folder).finish_non_exhaustive()
    }
}

impl FunctionsHost {
    /// Prepares the app, starts its workers and discovers its functions.
    pub(super) async fn start(
        app: App,
        options: HostOptions,
        progress: &dyn SetupProgress,
    ) -> Result<FunctionsHost, HostError> {
        let failed = watch::Sender::new(None);
        let events = Arc::new(EventLogger::new(failed.clone(), app.host.log_levels.clone()));
        let mut generation = AppGeneration::start(&app, &options, events, progress).await?;
        let watch = generation.watch.take();
        let profile = ServerProfile::new(&app, &AccessPolicy::default(), generation.uses_tasks());
        let server = RwLock::new(profile.server(generation.entries())?);
        let current = RwLock::new(Arc::new(generation));
        let draining = AtomicBool::new(false);
        let timers = TimerScheduler::new(app.state_folder.clone());
        let shared = HostState { app, options, server, current, failed, draining, timers };
        Ok(FunctionsHost { shared: Arc::new(shared), watch })
    }

    /// Returns what the app offers and which problems it has.
    pub(super) fn report(&self) -> AppReport {
        self.shared.generation().report.clone()
    }

    pub(super) fn endpoint(&self, door: &AccessPolicy) -> Result<Endpoint, HostError> {
        let app = &self.shared.app;
        let face = ServerProfile::new(app, door, self.shared.generation().uses_tasks());
        let settings = face.settings(door, face.auth(&app.state_folder)?, DRAIN);
        Ok(Endpoint::new(self.shared.server(), settings))
    }

    /// Serves HTTP until `drain` begins or the workers have failed permanently.
    pub(super) async fn serve_endpoint(
        self,
        bound: BoundListener,
        door: AccessPolicy,
        endpoint: Endpoint,
        trigger: DrainTrigger,
        drain: Drain,
    ) -> Result<(), HostError> {
        let routes = FunctionRoutes::new(self.shared.clone(), &door)?;
        let front_door = Arc::new(RequestRouter::new(endpoint.clone(), self.shared.clone(), routes));
        self.shared.start_timers(true);
        let draining = {
            let (shared, front_door, begun) = (self.shared.clone(), front_door.clone(), drain.begun());
            tokio::spawn(async move {
                begun.await;
                shared.draining.store(true, Ordering::SeqCst);
                shared.timers.stop();
                front_door.endpoint().drain();
                // Calls that take longer fail now, while their clients are still connected.
                tokio::time::sleep(DRAIN.saturating_sub(LAST_ANSWERS)).await;
                shared.generation().kill();
            })
        };
        let watching = self.watch.map(|watch| {
            let served = ServingMode::Http { front_door: front_door.clone(), door };
            tokio::spawn(AppReloader::new(self.shared.clone(), served).follow_changes(watch))
        });
        let failing = {
            let failed = self.shared.clone().until_failed();
            tokio::spawn(async move {
                failed.await;
                trigger.pull();
            })
        };
        let make = |client: ConnectedClient| {
            let (front_door, known) = (front_door.clone(), front_door.endpoint());
            service_fn(move |request| {
                front_door.clone().handle(front_door.endpoint_after(&known), request, client.clone())
            })
        };
        let (ended, ended_early) = (drain.ended(), drain.ended());
        let served = bound.serve_behind(&endpoint, make, drain).await;
        // The task `draining` ends the runs of timers that take too long.
        tokio::select! {
            () = self.shared.timers.finish(DRAIN) => {}
            () = ended_early => {}
        }
        draining.abort();
        failing.abort();
        if let Some(watching) = watching {
            watching.abort();
        }
        let generation = self.shared.generation();
        tokio::select! {
            () = generation.stop(Duration::ZERO) => {}
            // A second stop signal does not wait for busy workers.
            () = ended => generation.kill(),
        }
        served?;
        self.shared.outcome()
    }

    /// Serves stdin and stdout until the client disconnects or the workers have failed permanently.
    pub(super) async fn serve_stdio(self) -> Result<(), HostError> {
        let changes = AppReloader::new(self.shared.clone(), ServingMode::Stdio);
        let watching = self.watch.map(|watch| tokio::spawn(changes.follow_changes(watch)));
        let server = self.shared.server();
        self.shared.start_timers(true);
        let served = tokio::select! {
            served = stdio::serve_stdio(&server) => served,
            () = self.shared.clone().until_failed() => Ok(()),
        };
        if let Some(watching) = watching {
            watching.abort();
        }
        self.shared.timers.finish(DRAIN.saturating_sub(LAST_ANSWERS)).await;
        self.shared.generation().stop(Duration::ZERO).await;
        served?;
        self.shared.outcome()
    }

    /// Stops the workers.
    pub(super) async fn stop(self) {
        self.shared.generation().stop(DRAIN).await;
    }
}

impl HostState {
    pub(crate) fn generation(&self) -> Arc<AppGeneration> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a newer generation run all further calls. Returns the previous generation.
    pub(crate) fn replace_generation(&self, generation: AppGeneration) -> Arc<AppGeneration> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, Arc::new(generation))
    }

    /// Makes the timers of the current generation run. `is_startup` runs those that have `runOnStartup`.
    pub(crate) fn start_timers(&self, is_startup: bool) {
        self.timers.replace(self.generation().timers(), is_startup);
    }

    pub(crate) fn server(&self) -> Server {
        self.server.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace_server(&self, server: Server) -> Server {
        let mut current = self.server.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, server)
    }

    /// Waits until the workers have failed permanently.
    async fn until_failed(self: Arc<Self>) {
        let mut failed = self.failed.subscribe();
        if failed.wait_for(Option::is_some).await.is_err() {
            std::future::pending().await
        }
    }

    fn outcome(&self) -> Result<(), HostError> {
        match self.failed.borrow().clone() {
            Some(reason) => Err(HostError::Failed(reason)),
            None => Ok(()),
        }
    }
}

impl HealthProbes for HostState {
    fn readiness(&self) -> Result<(), String> {
        if self.draining.load(Ordering::SeqCst) {
            return Err("the host is stopping".to_owned());
        }
        match &self.generation().runner.engine {
            InvocationBackend::Workers { workers, .. } => match workers.health() {
                PoolHealth::Serving(_) => Ok(()),
                PoolHealth::Restarting(_) => Err("no worker is running at the moment".to_owned()),
                PoolHealth::Failed(_) => Err("workers exited too often".to_owned()),
                PoolHealth::Stopping => Err("the host is stopping".to_owned()),
            },
            InvocationBackend::CustomHandler(handler) if handler.is_serving() => Ok(()),
            InvocationBackend::CustomHandler(_) => {
                Err("the custom handler is not running at the moment".to_owned())
            }
        }
    }

    fn liveness(&self) -> Result<(), String> {
        match *self.failed.borrow() {
            Some(_) => Err("workers exited too often".to_owned()),
            None => Ok(()),
        }
    }
}
