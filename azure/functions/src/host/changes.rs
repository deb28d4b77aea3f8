//! Applies changes to an app's files. Access settings apply at once. New workers replace the old ones when
//! they are ready.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bindpost_mcp_http::{ApiKeys, Auth, Endpoint};
use tokio::task::JoinSet;

use crate::app::App;
use crate::error::HostError;
use crate::host::access::{AccessPolicy, ServerProfile};
use crate::host::console::EventLogger;
use crate::host::file_watch::FileWatcher;
use crate::host::front::RequestRouter;
use crate::host::generation::AppGeneration;
use crate::host::{DRAIN, HostState};
use crate::setup::SetupProgress;

/// How often the files are checked, and how long they must stay unchanged before the app is restarted.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LIE_STILL: Duration = Duration::from_millis(300);
/// The maximum number of files that a log line names.
const NAMED: usize = 3;

/// The transport that serves an app.
pub(crate) enum ServingMode {
    Http { front_door: Arc<RequestRouter<HostState>>, door: AccessPolicy },
    Stdio,
}

/// Reloads a running app when its files change.
pub(crate) struct AppReloader {
    shared: Arc<HostState>,
    served: ServingMode,
    /// The profile that clients see now.
    face: ServerProfile,
    /// The port that `local.settings.json` named last.
    port: Option<u16>,
    /// Keys are required but could not be created. The next change tries again.
    lacks_keys: bool,
    /// The task that expires the sessions of an endpoint that replaced the first one.
    sweeping: JoinSet<()>,
}

impl AppReloader {
    pub(crate) fn new(shared: Arc<HostState>, served: ServingMode) -> AppReloader {
        let uses_tasks = shared.generation().uses_tasks();
        let face = match &served {
            ServingMode::Http { door, .. } => ServerProfile::new(&shared.app, door, uses_tasks),
            ServingMode::Stdio => ServerProfile::new(&shared.app, &AccessPolicy::default(), uses_tasks),
        };
        let port = shared.app.local.port;
        AppReloader { shared, served, face, port, lacks_keys: false, sweeping: JoinSet::new() }
    }

    /// Applies every change from now on. Never returns.
    pub(crate) async fn follow_changes(mut self, mut watch: FileWatcher) {
        loop {
            let files = wait_for_change(&mut watch).await;
            match self.apply_change(&files).await {
                Ok(newer) => watch = newer.unwrap_or(watch),
                Err(error) => {
                    tracing::error!(target: "host", "{files} changed, but {error}");
                }
            }
        }
    }

    /// Applies the changed files to the running app. Returns a watcher with the state of the files that were
    /// read.
    async fn apply_change(&mut self, files: &str) -> Result<Option<FileWatcher>, ReloadError> {
        let begin = Instant::now();
        let shared = &self.shared;
        let app = App::open(&shared.app.folder, shared.app.settings.environment());
        let app =
            app.map_err(|error| ReloadError { what: "the previous app keeps running", error: error.into() })?;
        // Access settings do not wait for workers, and apply even if the app's code is broken.
        let has_face = self.apply_profile(&app, files);
        let what = match has_face {
            Ok(true) => "the previous functions keep running",
            _ => "the previous app keeps running",
        };
        has_face.map_err(|error| ReloadError { what, error })?;
        self.note_port(&app);
        let newer = self.start_again(&app).await.map_err(|error| ReloadError { what, error })?;
        if self.shared.generation().uses_tasks() != self.face.has_tasks() {
            let what = "the new functions run, but not as tasks";
            self.apply_profile(&app, files).map_err(|error| ReloadError { what, error })?;
        }
        let ms = begin.elapsed().as_millis();
        tracing::info!(target: "host", "{files} changed: started again in {ms} ms");
        Ok(newer)
    }

    /// Replaces the endpoint if the profile changed. Returns whether it did.
    ///
    /// Sessions and streams of the old endpoint end, because they were opened under the old access settings.
    /// Running calls are answered.
    fn apply_profile(&mut self, app: &App, files: &str) -> Result<bool, HostError> {
        let (front_door, door) = match &self.served {
            ServingMode::Http { front_door, door } => (front_door, door),
            ServingMode::Stdio => {
                self.warn_profile_change(app);
                return Ok(false);
            }
        };
        let face = ServerProfile::new(app, door, self.shared.generation().uses_tasks());
        let differences = self.face.differences(&face, true);
        if differences.is_empty() && !self.lacks_keys {
            return Ok(false);
        }
        let server = face.server(self.shared.generation().entries())?;
        let auth = face.auth(&app.state_folder);
        self.lacks_keys = auth.is_err();
        let auth = auth.unwrap_or_else(|error| {
            tracing::error!(target: "host", "a key is required, but the keys cannot be created; all calls are rejected: {error}");
            Some(Auth::new(ApiKeys::new()))
        });
        let endpoint = Endpoint::new(server.clone(), face.settings(door, auth, DRAIN));
        let old = front_door.replace(endpoint.clone());
        let old_server = self.shared.replace_server(server);
        old.close();
        // The old server's entries would keep the old workers alive.
        if let Err(error) = old_server.catalog().replace(Vec::new()) {
            tracing::debug!(target: "host", "{error}");
        }
        if self.shared.draining.load(Ordering::SeqCst) {
            endpoint.drain();
        }
        // This aborts the previous task, whose endpoint is closed.
        self.sweeping = JoinSet::new();
        self.sweeping.spawn(async move { endpoint.sweep().await });
        log_profile_change(files, &differences, &face);
        self.face = face;
        Ok(true)
    }

    /// Warns that a change of the profile needs a restart: over stdio the client already has the server's
    /// name.
    fn warn_profile_change(&mut self, app: &App) {
        let uses_tasks = self.shared.generation().uses_tasks();
        let face = ServerProfile::new(app, &AccessPolicy::default(), uses_tasks);
        let differences = self.face.differences(&face, false);
        if !differences.is_empty() {
            let names = differences.join(", ");
            tracing::warn!(
                target: "host",
                "{names} changed, but the client already has the old value: restart bindpost to apply it"
            );
        }
        self.face = face;
    }

    /// Warns that a changed port needs a restart. The listener keeps its address.
    fn note_port(&mut self, app: &App) {
        if app.local.port != self.port {
            let port = app.local.port.map_or_else(|| "not set".to_owned(), |port| port.to_string());
            tracing::warn!(
                target: "host",
                "LocalHttpPort of local.settings.json is now {port}, but the address does not change: restart \
                 bindpost to apply it"
            );
        }
        self.port = app.local.port;
    }

    /// Restarts the app. Returns a watcher with the state of the files that were read.
    async fn start_again(&self, app: &App) -> Result<Option<FileWatcher>, HostError> {
        let shared = &self.shared;
        let events = Arc::new(EventLogger::new(shared.failed.clone(), app.host.log_levels.clone()));
        if app.host.custom_handler.as_ref().is_some_and(|handler| handler.port.is_some()) {
            // Two handlers cannot listen on one port: the old one stops first.
            shared.timers.stop();
            let old = shared.generation();
            old.wait_until_released(DRAIN).await;
            old.stop(Duration::ZERO).await;
        }
        let mut generation = AppGeneration::start(app, &shared.options, events, &ProgressLogger).await?;
        let watch = generation.watch.take();
        if let Err(error) = shared.server().catalog().replace(generation.entries()) {
            generation.stop(Duration::ZERO).await;
            return Err(HostError::Server(error.to_string()));
        }
        for warning in &generation.report.warnings {
            tracing::warn!(target: "host", "{}", warning.message);
        }
        let old = shared.replace_generation(generation);
        if !shared.draining.load(Ordering::SeqCst) {
            shared.start_timers(false);
        }
        tokio::spawn(async move {
            old.wait_until_released(DRAIN).await;
            old.stop(Duration::ZERO).await;
        });
        Ok(watch)
    }
}

/// Waits until files have changed and then stay unchanged. Returns their names.
pub(crate) async fn wait_for_change(watch: &mut FileWatcher) -> String {
    let mut changed: Vec<PathBuf> = loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let changed = watch.changes();
        if !changed.is_empty() {
            break changed;
        }
    };
    loop {
        tokio::time::sleep(LIE_STILL).await;
        let more = watch.changes();
        if more.is_empty() {
            break;
        }
        changed.extend(more);
    }
    changed.sort_unstable();
    changed.dedup();
    let names: Vec<String> = changed.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    names.join(", ")
}

/// Logs which settings changed.
fn log_profile_change(files: &str, differences: &[&str], face: &ServerProfile) {
    let mut line = format!("{files} changed: {} applied, clients must reconnect", differences.join(", "));
    if differences.contains(&"webhookAuthorizationLevel") {
        let _ = match face.requires_key() {
            true => write!(line, "; a key is required now, the keys are in .bindpost/keys of the app"),
            false => write!(line, "; no key is required now"),
        };
    }
    tracing::info!(target: "host", "{line}");
}

/// The reason why a change is not served.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
struct ReloadError {
    /// What keeps running instead.
    what: &'static str,
    error: HostError,
}

/// Writes the steps of the setup to the log.
pub(crate) struct ProgressLogger;

impl SetupProgress for ProgressLogger {
    fn started(&self, step: &str) {
        tracing::info!(target: "host", "{step}");
    }

    fn output(&self, _line: &str) {}

    fn done(&self, _step: &str, _took: Duration) {}
}
