//! The host: start an app, serve it, take up changes of its files, drain, stop. Read this first.

use std::ffi::OsString;
use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use bindpost_mcp_http::listener::{Client, Drain, DrainTrigger, Limits as Connections, until_signal};
use bindpost_mcp_http::{Auth, Bound, Endpoint, SessionMode, Settings, SseOptions};
use bindpost_mcp_protocol::Revision;
use bindpost_mcp_server::{Entry, Limits as CallLimits, Server, stdio};
use hyper::service::service_fn;
use tokio::sync::watch;

use crate::app::App;
use crate::console::Told;
use crate::entries::{self, Manner};
use crate::error::HostError;
use crate::front_door::{Condition, FrontDoor, MCP_PATH, SSE_PATHS};
use crate::generation::Generation;
use crate::invocation::Engine;
use crate::keys;
use crate::report::Report;
use crate::setup::Progress;
use crate::watch::Watch;
use crate::worker::Health;

/// How often files are looked at, and how long they must lie still before the app is started again.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LIE_STILL: Duration = Duration::from_millis(300);
/// How long invocations of the old workers may go on when there are new ones, or when the host stops.
const DRAIN: Duration = Duration::from_secs(25);
/// How long before the end of a drain calls that still run are given up.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// How often HTTP+SSE clients are pinged, as on the platform.
const PING: Duration = Duration::from_secs(25);

/// How an app is run.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Whether packages may be installed and the app built.
    pub install: bool,
    /// A folder of language workers to use instead of our own.
    pub workers: Option<PathBuf>,
    /// How many processes run functions; the setting `FUNCTIONS_WORKER_PROCESS_COUNT` unless told.
    pub processes: Option<usize>,
    /// Tells clients what a function says when it fails.
    pub detailed_errors: bool,
    /// Starts the app again when its files change.
    pub watch: bool,
    /// A command before each worker's command, which ends by executing the rest of its arguments.
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
            launcher: Vec::new(),
        }
    }
}

/// Who may come in.
#[derive(Clone, Debug, Default)]
pub struct Door {
    /// Whether a key is asked for; without one, whoever reaches the address may call everything.
    pub requires_key: bool,
    /// Host names that are served besides those of the loopback.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call.
    pub allowed_origins: Vec<String>,
    /// Believes the headers by which a platform in front names the user; otherwise functions do not see them.
    pub trusts_platform: bool,
}

/// An app that runs.
pub struct Host {
    shared: Arc<Shared>,
    watch: Option<Watch>,
}

struct Shared {
    app: App,
    options: HostOptions,
    manner: Manner,
    server: Server,
    current: RwLock<Arc<Generation>>,
    /// Why the host must end, once workers have ended too often.
    failed: watch::Sender<Option<String>>,
    draining: AtomicBool,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("app", &self.shared.app.folder).finish_non_exhaustive()
    }
}

impl Host {
    /// Makes the app ready, starts its workers and finds out what it offers.
    pub async fn start(app: App, options: HostOptions, progress: &dyn Progress) -> Result<Host, HostError> {
        let failed = watch::Sender::new(None);
        let events = Arc::new(Told::new(failed.clone(), app.host.log_levels.clone()));
        let mut generation = Generation::start(&app, &options, events, progress).await?;
        let watch = generation.watch.take();
        let mcp = &app.host.mcp;
        let manner = Manner {
            validates: mcp.validate_arguments,
            detects_prompts: mcp.detect_prompt_json,
            detailed_errors: options.detailed_errors,
        };
        let mut builder = Server::builder(&mcp.server_name, &mcp.server_version)
            .ignore_case()
            .word_unknown(entries::word_unknown)
            .offer_all()
            .limits(CallLimits { call_timeout: None, calls_per_session: 100, ..CallLimits::default() })
            .add(entries_of(&generation, manner));
        if let Some(instructions) = &mcp.instructions {
            builder = builder.instructions(instructions);
        }
        let server = builder.build().map_err(|error| HostError::Server(error.to_string()))?;
        let current = RwLock::new(Arc::new(generation));
        let draining = AtomicBool::new(false);
        let shared = Shared { app, options, manner, server, current, failed, draining };
        Ok(Host { shared: Arc::new(shared), watch })
    }

    /// What the app offers, and what is wrong with it.
    pub fn report(&self) -> Report {
        self.shared.generation().report.clone()
    }

    /// The server that clients talk to.
    pub fn server(&self) -> &Server {
        &self.shared.server
    }

    /// Serves HTTP until SIGTERM or SIGINT, and then until every accepted call is answered. A second signal
    /// ends at once. `ready` is called when nothing can go wrong any more: there are keys if they are asked
    /// for, and signals are heard.
    pub async fn serve(
        self,
        bound: Bound,
        door: Door,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), HostError> {
        let endpoint = self.endpoint(&door)?;
        let (trigger, drain) = Drain::new();
        let mut signals = Box::pin(until_signal(trigger.clone()));
        // Polled once, the handlers are in place.
        if let Poll::Ready(failed) = poll_fn(|context| Poll::Ready(signals.as_mut().poll(context))).await {
            return Ok(failed?);
        }
        let signals = tokio::spawn(signals);
        ready()?;
        let served = self.serve_endpoint(bound, endpoint, trigger, drain).await;
        signals.abort();
        served
    }

    /// Serves HTTP until `drain` says so, or the workers have failed for good.
    pub async fn serve_until(
        self,
        bound: Bound,
        door: Door,
        trigger: DrainTrigger,
        drain: Drain,
    ) -> Result<(), HostError> {
        let endpoint = self.endpoint(&door)?;
        self.serve_endpoint(bound, endpoint, trigger, drain).await
    }

    fn endpoint(&self, door: &Door) -> Result<Arc<Endpoint>, HostError> {
        Ok(Endpoint::new(self.shared.server.clone(), self.shared.settings(door)?))
    }

    async fn serve_endpoint(
        self,
        bound: Bound,
        endpoint: Arc<Endpoint>,
        trigger: DrainTrigger,
        drain: Drain,
    ) -> Result<(), HostError> {
        let front_door = Arc::new(FrontDoor::new(endpoint.clone(), self.shared.clone()));
        let draining = {
            let (shared, begun) = (self.shared.clone(), drain.begun());
            tokio::spawn(async move {
                begun.await;
                shared.draining.store(true, Ordering::SeqCst);
                // Calls that take longer get an error while there is still somebody to send it.
                tokio::time::sleep(DRAIN.saturating_sub(LAST_ANSWERS)).await;
                shared.generation().kill();
            })
        };
        let watching = self.watch.map(|watch| tokio::spawn(self.shared.clone().keep_up(watch)));
        let failing = {
            let failed = self.shared.clone().until_failed();
            tokio::spawn(async move {
                failed.await;
                trigger.pull();
            })
        };
        let make = |client: Client| {
            let front_door = front_door.clone();
            service_fn(move |request| front_door.clone().answer(request, client.clone()))
        };
        let ended = drain.ended();
        let served = bound.serve_behind(&endpoint, make, drain).await;
        draining.abort();
        failing.abort();
        if let Some(watching) = watching {
            watching.abort();
        }
        let generation = self.shared.generation();
        tokio::select! {
            () = generation.stop(Duration::ZERO) => {}
            // Whoever asks twice does not wait for a worker that is busy.
            () = ended => generation.kill(),
        }
        served?;
        self.shared.outcome()
    }

    /// Serves stdin and stdout until the client is gone, or the workers have failed for good.
    pub async fn serve_stdio(self) -> Result<(), HostError> {
        let watching = self.watch.map(|watch| tokio::spawn(self.shared.clone().keep_up(watch)));
        let served = tokio::select! {
            served = stdio::serve_stdio(&self.shared.server) => served,
            () = self.shared.clone().until_failed() => Ok(()),
        };
        if let Some(watching) = watching {
            watching.abort();
        }
        self.shared.generation().stop(Duration::ZERO).await;
        served?;
        self.shared.outcome()
    }

    /// Ends the workers.
    pub async fn stop(self) {
        self.shared.generation().stop(DRAIN).await;
    }
}

fn entries_of(generation: &Generation, manner: Manner) -> Vec<Entry> {
    generation.functions.iter().map(|function| entries::entry(&generation.runner, function, manner)).collect()
}

impl Shared {
    fn generation(&self) -> Arc<Generation> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn settings(&self, door: &Door) -> Result<Settings, HostError> {
        let auth = match door.requires_key {
            true => Some(Auth::new(keys::open(&self.app.folder.join(".bindpost"))?.0)),
            false => None,
        };
        let mcp = &self.app.host.mcp;
        let mut allowed_hosts = door.allowed_hosts.clone();
        if auth.is_some() && allowed_hosts.is_empty() {
            // Whoever knows the key may call by any name.
            allowed_hosts.push("*".to_owned());
        }
        Ok(Settings {
            path: MCP_PATH.to_owned(),
            sse_paths: Some((SSE_PATHS.0.to_owned(), SSE_PATHS.1.to_owned())),
            sse: SseOptions {
                absolute: mcp.use_absolute_uri_for_endpoint,
                repeats: vec![keys::PARAMETER.to_owned()],
                ping: Some(PING),
            },
            allowed_hosts,
            allowed_origins: door.allowed_origins.clone(),
            // The platform's own clients call tools without a handshake.
            sessions: SessionMode::Optional,
            without_header: Revision::V2025_06_18,
            trust_platform_identity: door.trusts_platform,
            connections: Connections { drain: DRAIN, ..Connections::default() },
            max_body: usize::try_from(mcp.max_request_body_bytes).unwrap_or(usize::MAX),
            open_to_all: auth.is_none(),
            auth,
            ..Settings::default()
        })
    }

    /// Waits until there is no hope for the workers.
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

    /// Starts the app again when its files change: the new workers first, then the old ones go.
    async fn keep_up(self: Arc<Self>, mut watch: Watch) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let mut changed = watch.changes();
            if changed.is_empty() {
                continue;
            }
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
            let begin = Instant::now();
            let names: Vec<String> = changed.iter().take(3).map(|path| path.display().to_string()).collect();
            let names = names.join(", ");
            match self.renew().await {
                Ok(newer) => {
                    watch = newer.unwrap_or(watch);
                    let ms = begin.elapsed().as_millis();
                    tracing::info!(target: "host", "{names} changed: started again in {ms} ms");
                }
                Err(error) => {
                    tracing::error!(target: "host", "{names} changed, but the app as it was goes on: {error}");
                }
            }
        }
    }

    /// Starts the app again; the answer is what its files were like.
    async fn renew(self: &Arc<Self>) -> Result<Option<Watch>, HostError> {
        let app = App::open(&self.app.folder, self.app.settings.environment())?;
        let events = Arc::new(Told::new(self.failed.clone(), app.host.log_levels.clone()));
        if app.host.custom_handler.as_ref().is_some_and(|handler| handler.port.is_some()) {
            // Two cannot listen on one port: the old one has to go first.
            let old = self.generation();
            old.released(DRAIN).await;
            old.stop(Duration::ZERO).await;
        }
        let mut generation = Generation::start(&app, &self.options, events, &Quiet).await?;
        let watch = generation.watch.take();
        let replaced = self.server.catalog().replace(entries_of(&generation, self.manner));
        if let Err(error) = replaced {
            generation.stop(Duration::ZERO).await;
            return Err(HostError::Server(error.to_string()));
        }
        for warning in &generation.report.warnings {
            tracing::warn!(target: "host", "{}", warning.message);
        }
        let old = {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, Arc::new(generation))
        };
        tokio::spawn(async move {
            old.released(DRAIN).await;
            old.stop(Duration::ZERO).await;
        });
        Ok(watch)
    }
}

impl Condition for Shared {
    fn readiness(&self) -> Result<(), String> {
        if self.draining.load(Ordering::SeqCst) {
            return Err("the host is stopping".to_owned());
        }
        match &self.generation().runner.engine {
            Engine::Workers { workers, .. } => match workers.health() {
                Health::Serving(_) => Ok(()),
                Health::Restarting(_) => Err("no worker is up at the moment".to_owned()),
                Health::Failed(_) => Err("workers ended too often".to_owned()),
                Health::Stopping => Err("the host is stopping".to_owned()),
            },
            Engine::CustomHandler(handler) if handler.is_serving() => Ok(()),
            Engine::CustomHandler(_) => Err("the custom handler is not up at the moment".to_owned()),
        }
    }

    fn liveness(&self) -> Result<(), String> {
        match *self.failed.borrow() {
            Some(_) => Err("workers ended too often".to_owned()),
            None => Ok(()),
        }
    }
}

/// Nobody watches.
struct Quiet;

impl Progress for Quiet {
    fn started(&self, step: &str) {
        tracing::info!(target: "host", "{step}");
    }

    fn output(&self, _line: &str) {}

    fn done(&self, _step: &str, _took: Duration) {}
}
