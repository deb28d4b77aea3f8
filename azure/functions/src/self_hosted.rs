//! Self-hosted apps: the program of the app is a server, and requests are forwarded to it. Such an app has no functions.
//!
//! The path of one request, in [`router::ServerRouter::forward`]:
//!
//! 1. Answer the paths of this host (`/_/readyz`). Map `/runtime/webhooks/mcp` to `/mcp`.
//! 2. Check Host and Origin, answer preflight requests, and find the route.
//! 3. Check the key, if the level of the route requires one (`routes/access.rs`).
//! 4. Set the headers of the platform, remove forged identity headers, and forward the request (`forward.rs`).
//! 5. Stream the response through [`body::ServerBody`], which the end of the host also ends.
//!
//! `start.rs` prepares the app and starts its program, which `custom_handler/supervisor.rs` keeps running. `discovery.rs`
//! asks the server which tools it has, for the start screen. `reload.rs` applies changes to files.

mod body;
mod discovery;
mod reload;
mod router;
mod start;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bindpost_mcp_http::BoundListener;
use bindpost_mcp_http::listener::{ConnectedClient, ConnectionLimits, Drain, DrainTrigger};
use hyper::service::service_fn;
use tokio::sync::watch;

pub(crate) use self::body::ServerBody;
use self::reload::ServerReloader;
use self::router::ServerRouter;
use crate::app::App;
use crate::custom_handler::{HandlerProcess, HandlerSupervisor};
use crate::error::HostError;
use crate::forward::{ForwardOptions, Forwarder, UploadLimits};
use crate::host::access::AccessPolicy;
use crate::host::file_watch::FileWatcher;
use crate::host::report::AppReport;
use crate::host::{DRAIN, HostOptions, LAST_ANSWERS};
use crate::setup::SetupProgress;

/// A running self-hosted app.
pub(crate) struct SelfHostedApp {
    shared: Arc<SelfHostedState>,
    watch: Option<FileWatcher>,
    report: AppReport,
}

/// The state that serving an app and reloading it share.
pub(crate) struct SelfHostedState {
    /// The app as it was when the host started.
    app: App,
    options: HostOptions,
    server: RwLock<ServerState>,
    /// The reason why the host must stop. It is set when the server has exited too often.
    failed: watch::Sender<Option<String>>,
    draining: watch::Sender<bool>,
    /// Whether it has been told that the server has sessions.
    told_sessions: AtomicBool,
}

/// The server of the app, or the reason why there is none at the moment.
#[derive(Clone)]
enum ServerState {
    Running(Arc<RunningServer>),
    Stopped(&'static str),
}

/// The server of the app, which is started again when it exits.
#[derive(Debug)]
pub(crate) struct RunningServer {
    supervisor: HandlerSupervisor,
    forwarder: Mutex<Option<Forwarder>>,
}

impl RunningServer {
    fn new(supervisor: HandlerSupervisor) -> RunningServer {
        RunningServer { supervisor, forwarder: Mutex::default() }
    }

    /// Returns the forwarder to a process, with the connections to it. After a restart the address may be another.
    fn forwarder(&self, process: &HandlerProcess, options: impl FnOnce() -> ForwardOptions) -> Forwarder {
        let mut known = self.forwarder.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(forwarder) if forwarder.target() == process.address() => forwarder.clone(),
            _ => known.insert(Forwarder::new(process.address(), options())).clone(),
        }
    }
}

impl SelfHostedApp {
    /// Prepares the app and starts its server.
    pub(crate) async fn start(
        app: App,
        options: HostOptions,
        progress: &dyn SetupProgress,
    ) -> Result<SelfHostedApp, HostError> {
        start::check(&app, &options)?;
        let failed = watch::Sender::new(None);
        let prepared = start::prepare(&app, &options, progress).await?;
        // Files written by the build are not changes.
        let watch = options.watch.then(|| prepared.watcher(&app));
        let supervisor = prepared.start(&app, &failed).await?;
        let found = discovery::discover(&supervisor).await;
        let report = prepared.report(&app, &supervisor, &found);
        let shared = SelfHostedState {
            app,
            options,
            server: RwLock::new(ServerState::Running(Arc::new(RunningServer::new(supervisor)))),
            failed,
            draining: watch::Sender::new(false),
            told_sessions: AtomicBool::new(found.has_sessions),
        };
        Ok(SelfHostedApp { shared: Arc::new(shared), watch, report })
    }

    pub(crate) fn report(&self) -> AppReport {
        self.report.clone()
    }

    /// Returns what answers the requests. Opens the keys of the app, if a route needs them.
    pub(crate) fn router(&self, policy: AccessPolicy) -> Result<Arc<ServerRouter>, HostError> {
        Ok(Arc::new(ServerRouter::new(self.shared.clone(), policy)?))
    }

    /// Serves HTTP until `drain` begins or the server has failed permanently.
    pub(crate) async fn serve_until(
        self,
        bound: BoundListener,
        router: Arc<ServerRouter>,
        trigger: DrainTrigger,
        drain: Drain,
    ) -> Result<(), HostError> {
        let shared = self.shared;
        let draining = {
            let (shared, begun) = (shared.clone(), drain.begun());
            tokio::spawn(async move {
                begun.await;
                shared.draining.send_replace(true);
                // Requests that take longer fail now, while their clients are still connected.
                tokio::time::sleep(DRAIN.saturating_sub(LAST_ANSWERS)).await;
                shared.kill();
            })
        };
        let watching = self.watch.map(|watch| {
            let reloader = ServerReloader::new(shared.clone(), router.clone());
            tokio::spawn(reloader.follow_changes(watch))
        });
        let failing = {
            let mut failed = shared.failed.subscribe();
            tokio::spawn(async move {
                if failed.wait_for(Option::is_some).await.is_ok() {
                    trigger.pull();
                }
            })
        };
        let make = |client: ConnectedClient| {
            let router = router.clone();
            service_fn(move |request| router.clone().handle(request, client.clone()))
        };
        let ended = drain.ended();
        let limits = ConnectionLimits { drain: DRAIN, ..ConnectionLimits::default() };
        let served = bound.serve_service(make, limits, drain).await;
        draining.abort();
        failing.abort();
        if let Some(watching) = watching {
            watching.abort();
            // Until it has ended, it may start another process.
            let _ = watching.await;
        }
        tokio::select! {
            () = shared.stop() => {}
            // A second stop signal does not wait for the server.
            () = ended => shared.kill(),
        }
        served?;
        match shared.failed.borrow().clone() {
            Some(reason) => Err(HostError::Failed(reason)),
            None => Ok(()),
        }
    }

    /// Stops the server.
    pub(crate) async fn stop(self) {
        self.shared.stop().await;
    }
}

impl SelfHostedState {
    /// Returns the process that serves, or the reason why there is none, for callers of the app.
    fn serving(&self) -> Result<(Arc<RunningServer>, HandlerProcess), &'static str> {
        let server = match &*self.server.read().unwrap_or_else(PoisonError::into_inner) {
            ServerState::Running(server) => server.clone(),
            ServerState::Stopped(reason) => return Err(reason),
        };
        let process = server.supervisor.serving();
        process.map(|process| (server, process)).ok_or("it has exited and is being started again")
    }

    /// Replaces the server. Returns the previous one.
    fn replace(&self, state: ServerState) -> ServerState {
        let mut current = self.server.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, state)
    }

    /// Returns the limits of forwarded requests.
    fn forward_options(policy: &AccessPolicy, most_bytes: u64) -> ForwardOptions {
        let uploads = UploadLimits { bytes: most_bytes, ..UploadLimits::default() };
        // The platform in front sets these headers.
        ForwardOptions { uploads, trusts_forwarded: policy.trusts_platform }
    }

    /// Stops the server, and waits until its process has ended.
    async fn stop(&self) {
        if let ServerState::Running(server) = self.replace(ServerState::Stopped("the host is stopping")) {
            server.supervisor.stop().await;
        }
    }

    /// Kills the server at once.
    fn kill(&self) {
        if let ServerState::Running(server) = self.replace(ServerState::Stopped("the host is stopping")) {
            server.supervisor.kill();
        }
    }

    fn liveness(&self) -> Result<(), String> {
        match *self.failed.borrow() {
            Some(_) => Err("the server exited too often".to_owned()),
            None => Ok(()),
        }
    }

    /// Returns the reason if requests are not served: the process must run, and its port accept connections.
    async fn readiness(&self) -> Result<(), String> {
        const CONNECT: Duration = Duration::from_secs(2);
        if *self.draining.borrow() {
            return Err("the host is stopping".to_owned());
        }
        let (_, process) = self.serving().map_err(|reason| format!("the server is not running: {reason}"))?;
        let connecting = tokio::net::TcpStream::connect(process.address());
        match tokio::time::timeout(CONNECT, connecting).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err("the server does not accept connections".to_owned()),
        }
    }
}
