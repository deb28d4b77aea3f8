//! Takes up changes of an app's files: who may come in at once, then new workers; once they serve the old ones go.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bindpost_mcp_http::{ApiKeys, Auth, Endpoint};
use tokio::task::JoinSet;

use crate::app::App;
use crate::console::EventLogger;
use crate::door::{AccessPolicy, ServerProfile};
use crate::error::HostError;
use crate::front_door::RequestRouter;
use crate::generation::AppGeneration;
use crate::host::{DRAIN, HostState};
use crate::setup::SetupProgress;
use crate::watch::FileWatcher;

/// How often files are looked at, and how long they must lie still before the app is started again.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LIE_STILL: Duration = Duration::from_millis(300);
/// Files that a line of the log names.
const NAMED: usize = 3;

/// How an app is served.
pub(crate) enum ServingMode {
    Http { front_door: Arc<RequestRouter<HostState>>, door: AccessPolicy },
    Stdio,
}

/// Keeps an app that is served like its files.
pub(crate) struct AppReloader {
    shared: Arc<HostState>,
    served: ServingMode,
    /// What clients meet now.
    face: ServerProfile,
    /// What `local.settings.json` said of the port, last.
    port: Option<u16>,
    /// There should be keys, and they could not be made: that is tried again with the next change.
    lacks_keys: bool,
    /// Looks after the sessions of an endpoint that took the place of the first one.
    sweeping: JoinSet<()>,
}

impl AppReloader {
    pub(crate) fn new(shared: Arc<HostState>, served: ServingMode) -> AppReloader {
        let face = match &served {
            ServingMode::Http { door, .. } => ServerProfile::new(&shared.app, door),
            ServingMode::Stdio => ServerProfile::new(&shared.app, &AccessPolicy::default()),
        };
        let port = shared.app.local.port;
        AppReloader { shared, served, face, port, lacks_keys: false, sweeping: JoinSet::new() }
    }

    /// Takes up every change from now on; never ends.
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

    /// Makes the app that is served like its files; the answer is what these were like.
    async fn apply_change(&mut self, files: &str) -> Result<Option<FileWatcher>, ReloadError> {
        let begin = Instant::now();
        let shared = &self.shared;
        let app = App::open(&shared.app.folder, shared.app.settings.environment());
        let app =
            app.map_err(|error| ReloadError { what: "the app as it was goes on", error: error.into() })?;
        // Who may come in does not wait for workers, and not for code that works.
        let has_face = self.apply_profile(&app, files);
        let what = match has_face {
            Ok(true) => "the functions as they were go on",
            _ => "the app as it was goes on",
        };
        has_face.map_err(|error| ReloadError { what, error })?;
        self.note_port(&app);
        let newer = self.start_again(&app).await.map_err(|error| ReloadError { what, error })?;
        let ms = begin.elapsed().as_millis();
        tracing::info!(target: "host", "{files} changed: started again in {ms} ms");
        Ok(newer)
    }

    /// Serves the app by another endpoint if clients are to meet something else; says whether they are.
    ///
    /// Whatever was opened at the old endpoint ends: it was opened for those who could come in there. Calls that run
    /// are answered.
    fn apply_profile(&mut self, app: &App, files: &str) -> Result<bool, HostError> {
        let (front_door, door) = match &self.served {
            ServingMode::Http { front_door, door } => (front_door, door),
            ServingMode::Stdio => {
                self.warn_profile_change(app);
                return Ok(false);
            }
        };
        let face = ServerProfile::new(app, door);
        let differences = self.face.differences(&face, true);
        if differences.is_empty() && !self.lacks_keys {
            return Ok(false);
        }
        let server = face.server(self.shared.generation().entries())?;
        let auth = face.auth(&app.folder);
        self.lacks_keys = auth.is_err();
        let auth = auth.unwrap_or_else(|error| {
            tracing::error!(target: "host", "callers need a key, and there are none, so that no caller is let in: {error}");
            Some(Auth::new(ApiKeys::new()))
        });
        let endpoint = Endpoint::new(server.clone(), face.settings(door, auth, DRAIN));
        let old = front_door.replace(endpoint.clone());
        let old_server = self.shared.replace_server(server);
        old.close();
        // Its entries would keep the old workers.
        if let Err(error) = old_server.catalog().replace(Vec::new()) {
            tracing::debug!(target: "host", "{error}");
        }
        if self.shared.draining.load(Ordering::SeqCst) {
            endpoint.drain();
        }
        // The one before is aborted: its endpoint is closed.
        self.sweeping = JoinSet::new();
        self.sweeping.spawn(async move { endpoint.sweep().await });
        log_profile_change(files, &differences, &face);
        self.face = face;
        Ok(true)
    }

    /// A conversation over a pipe has been told the server's name already.
    fn warn_profile_change(&mut self, app: &App) {
        let face = ServerProfile::new(app, &AccessPolicy::default());
        let differences = self.face.differences(&face, false);
        if !differences.is_empty() {
            let names = differences.join(", ");
            tracing::warn!(
                target: "host",
                "{names} changed, which this client was told already: start bindpost again for it to count"
            );
        }
        self.face = face;
    }

    /// A listener stays where it is.
    fn note_port(&mut self, app: &App) {
        if app.local.port != self.port {
            let port = app.local.port.map_or_else(|| "not set".to_owned(), |port| port.to_string());
            tracing::warn!(
                target: "host",
                "LocalHttpPort of local.settings.json is {port} now, and the address stays as it is: start bindpost \
                 again for it to count"
            );
        }
        self.port = app.local.port;
    }

    /// Starts the app again; the answer is what its files were like.
    async fn start_again(&self, app: &App) -> Result<Option<FileWatcher>, HostError> {
        let shared = &self.shared;
        let events = Arc::new(EventLogger::new(shared.failed.clone(), app.host.log_levels.clone()));
        if app.host.custom_handler.as_ref().is_some_and(|handler| handler.port.is_some()) {
            // Two cannot listen on one port: the old one has to go first.
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
        tokio::spawn(async move {
            old.wait_until_released(DRAIN).await;
            old.stop(Duration::ZERO).await;
        });
        Ok(watch)
    }
}

/// Waits for a change that lies still; names the files.
async fn wait_for_change(watch: &mut FileWatcher) -> String {
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

/// Says what clients meet from now on.
fn log_profile_change(files: &str, differences: &[&str], face: &ServerProfile) {
    let mut line =
        format!("{files} changed: {} counts now, and clients connect again", differences.join(", "));
    if differences.contains(&"webhookAuthorizationLevel") {
        let _ = match face.requires_key() {
            true => write!(line, "; a key is asked for, the keys are in .bindpost/keys of the app"),
            false => write!(line, "; no key is asked for"),
        };
    }
    tracing::info!(target: "host", "{line}");
}

/// Why a change is not served.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
struct ReloadError {
    /// What is served instead.
    what: &'static str,
    error: HostError,
}

/// Steps are for the log.
struct ProgressLogger;

impl SetupProgress for ProgressLogger {
    fn started(&self, step: &str) {
        tracing::info!(target: "host", "{step}");
    }

    fn output(&self, _line: &str) {}

    fn done(&self, _step: &str, _took: Duration) {}
}
