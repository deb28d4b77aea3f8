//! A custom handler: a program of the app that serves invocations over HTTP.
//!
//! [`wire`] encodes requests and parses responses. This file starts and restarts the process and calls it.

mod wire;

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_TYPE, USER_AGENT};
use tokio::process::Command;
use tokio::sync::watch;

use crate::invocation::{Invocation, InvocationOutcome};
use crate::worker::{
    ChildProcess, InvocationError, LogRecord, ProcessConsole, ProcessExit, StartStep, StopSignal,
    WorkerEvents, WorkerLimits, WorkerNumber, WorkerStartError,
};

/// How often a starting handler is probed.
const ASK_EVERY: Duration = Duration::from_millis(25);
/// How long a handler may take until it listens.
const START: Duration = Duration::from_secs(30);

/// The command, environment and port of a custom handler.
#[derive(Clone, Debug)]
pub(crate) struct HandlerLaunch {
    /// A command that is put before the handler's command. It must end by executing the rest of its
    /// arguments.
    pub(crate) launcher: Vec<OsString>,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: PathBuf,
    pub(crate) app: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The fixed port of a handler that cannot be given one.
    pub(crate) port: Option<u16>,
}

/// A running custom handler. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CustomHandler {
    shared: Arc<HandlerState>,
}

struct HandlerState {
    launch: HandlerLaunch,
    limits: WorkerLimits,
    events: Arc<dyn WorkerEvents>,
    client: reqwest::Client,
    /// The process that serves, or `None` during a restart.
    serving: watch::Sender<Option<HandlerProcess>>,
    stopping: watch::Sender<bool>,
}

/// One process of the handler.
#[derive(Clone)]
struct HandlerProcess {
    process: Arc<ChildProcess>,
    base: Arc<str>,
    /// Set when the process is to be replaced.
    retired: watch::Sender<bool>,
}

impl std::fmt::Debug for CustomHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CustomHandler").field("program", &self.shared.launch.program).finish_non_exhaustive()
    }
}

impl CustomHandler {
    /// Starts the handler and waits until it listens.
    pub(crate) async fn start(
        launch: HandlerLaunch,
        limits: WorkerLimits,
        events: Arc<dyn WorkerEvents>,
    ) -> Result<CustomHandler, WorkerStartError> {
        // The handler is on the loopback, so proxies of the environment are not used.
        let client = bindpost_net_upstream::client_builder().no_proxy().http1_only().tcp_nodelay(true);
        // Redirects are not followed: a request for the handler must not reach another server.
        let client = client.redirect(reqwest::redirect::Policy::none());
        let client =
            client.build().map_err(|error| WorkerStartError::Listen(std::io::Error::other(error)))?;
        let shared = Arc::new(HandlerState {
            launch,
            limits,
            events,
            client,
            serving: watch::Sender::new(None),
            stopping: watch::Sender::new(false),
        });
        let serving = shared.start_process(1).await?;
        shared.serving.send_replace(Some(serving));
        tokio::spawn(supervise_process(Arc::clone(&shared)));
        Ok(CustomHandler { shared })
    }

    /// Runs a function.
    pub(crate) async fn invoke(
        &self,
        invocation: Invocation,
        timeout: Option<Duration>,
        logs: impl FnMut(LogRecord),
    ) -> Result<InvocationOutcome, InvocationError> {
        let serving = self.shared.running_process().await?;
        let (shared, retired) = (Arc::clone(&self.shared), serving.retired.clone());
        let mut asked = Box::pin(async move { shared.send_invocation(&serving, &invocation).await });
        let answered = match timeout {
            None => asked.await,
            Some(after) => match tokio::time::timeout(after, &mut asked).await {
                Ok(answered) => answered,
                Err(_) => {
                    let grace = self.shared.limits.cancel_grace;
                    tokio::spawn(async move {
                        if tokio::time::timeout(grace, asked).await.is_err() {
                            retired.send_replace(true);
                        }
                    });
                    return Err(InvocationError::TimedOut { after });
                }
            },
        };
        let wire::HandlerResponse { outcome, logs: said } = answered?;
        said.into_iter().for_each(logs);
        Ok(outcome)
    }

    /// Returns whether a process serves at the moment.
    pub(crate) fn is_serving(&self) -> bool {
        self.shared.serving.borrow().is_some()
    }

    /// Stops the process.
    pub(crate) async fn stop(&self) {
        self.shared.stopping.send_replace(true);
        let serving = self.shared.serving.send_replace(None);
        if let Some(serving) = serving {
            serving.end(&self.shared.limits).await;
        }
    }

    /// Kills the process at once.
    pub(crate) fn kill(&self) {
        self.shared.stopping.send_replace(true);
        if let Some(serving) = self.shared.serving.send_replace(None) {
            serving.process.signal(StopSignal::Kill);
        }
    }
}

impl HandlerProcess {
    async fn end(&self, limits: &WorkerLimits) {
        self.process.signal(StopSignal::Terminate);
        if !self.process.ends_within(limits.sigterm).await {
            self.process.signal(StopSignal::Kill);
            self.process.wait_for_exit().await;
        }
    }

    /// Waits for its invocations, each of which holds the process, and then stops it.
    async fn finish(self, limits: WorkerLimits) {
        let deadline = Instant::now() + limits.drain;
        while Arc::strong_count(&self.process) > 1 && Instant::now() < deadline {
            tokio::time::sleep(ASK_EVERY).await;
        }
        self.end(&limits).await;
    }
}

impl HandlerState {
    async fn start_process(&self, number: u64) -> Result<HandlerProcess, WorkerStartError> {
        let launch = &self.launch;
        let port = match launch.port {
            Some(port) => port,
            None => free_port().map_err(WorkerStartError::Listen)?,
        };
        let mut line = launch.launcher.clone();
        line.push(launch.program.clone());
        line.extend(launch.arguments.iter().cloned());
        let shown = line.get(launch.launcher.len()..).unwrap_or_default();
        let shown = shown.join(std::ffi::OsStr::new(" ")).to_string_lossy().into_owned();
        let (program, arguments) =
            line.split_first().map_or((OsString::new(), &[][..]), |(first, rest)| (first.clone(), rest));
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&launch.directory).envs(launch.environment.iter().cloned());
        for name in ["FUNCTIONS_CUSTOMHANDLER_PORT", "FUNCTIONS_HTTPWORKER_PORT"] {
            command.env(name, port.to_string());
        }
        for name in ["FUNCTIONS_CUSTOMHANDLER_WORKER_ID", "FUNCTIONS_HTTPWORKER_ID"] {
            command.env(name, number.to_string());
        }
        command.env("FUNCTIONS_APP_ROOT_PATH", &launch.app);

        let worker = WorkerNumber(number);
        let console =
            Arc::new(ProcessConsole::new(worker, Arc::clone(&self.events), self.limits.lines_per_second));
        let process = ChildProcess::start(command, Arc::clone(&console)).await;
        let process = process.map_err(|source| WorkerStartError::Spawn { command: shown.clone(), source })?;
        let base = format!("http://{}", SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let listening = async {
            // Any response is enough, also a 404.
            while self.client.get(format!("{base}/")).timeout(Duration::from_secs(2)).send().await.is_err() {
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        tokio::select! {
            () = listening => {}
            exit = process.wait_for_exit() => {
                return Err(WorkerStartError::Exited { command: shown, status: exit.to_string(), console: console.tail() });
            }
            () = tokio::time::sleep(START) => {
                let (step, after) = (StartStep::Connect, START);
                return Err(WorkerStartError::TimedOut { command: shown, step, after, console: console.tail() });
            }
        }
        Ok(HandlerProcess {
            process: Arc::new(process),
            base: base.into(),
            retired: watch::Sender::new(false),
        })
    }

    /// Returns the process that serves. Waits a while if one is being started.
    async fn running_process(&self) -> Result<HandlerProcess, InvocationError> {
        let mut serving = self.serving.subscribe();
        let found = serving.wait_for(Option::is_some);
        let found = tokio::time::timeout(self.limits.wait_for_worker, found).await;
        match found {
            Ok(Ok(found)) => found.clone().ok_or_else(|| no_worker("the custom handler has just exited")),
            _ => Err(no_worker("the custom handler is not running")),
        }
    }

    async fn send_invocation(
        &self,
        serving: &HandlerProcess,
        invocation: &Invocation,
    ) -> Result<wire::HandlerResponse, InvocationError> {
        let version = env!("CARGO_PKG_VERSION");
        let request = self
            .client
            .post(format!("{}/{}", serving.base, invocation.function.name))
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, format!("Azure-Functions-Host/{version}"))
            .header("X-Azure-Functions-InvocationId", invocation.id.as_ref())
            .header("X-Azure-Functions-HostVersion", version)
            .body(wire::encode_request(invocation));
        let answered = async {
            let mut response = request.send().await?;
            let status = response.status();
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                if body.len() + chunk.len() > self.limits.message {
                    return Ok((status, None));
                }
                body.extend_from_slice(&chunk);
            }
            Ok::<_, reqwest::Error>((status, Some(body)))
        };
        let (status, body) = tokio::select! {
            answered = answered => answered.map_err(|error| exit_error(&serving.process, &error.to_string()))?,
            exit = serving.process.wait_for_exit() => {
                return Err(InvocationError::WorkerExited { reason: exit.to_string() });
            }
        };
        let Some(body) = body else {
            let reason = format!("the response is larger than {} bytes", self.limits.message);
            return Err(InvocationError::Message { reason });
        };
        if !status.is_success() {
            let text =
                String::from_utf8_lossy(body.get(..body.len().min(1000)).unwrap_or_default()).into_owned();
            let message = format!("the custom handler answered {status}: {text}");
            return Err(InvocationError::Failed { message, stack: String::new() });
        }
        wire::parse_response(&body, &invocation.function)
    }
}

fn exit_error(process: &ChildProcess, otherwise: &str) -> InvocationError {
    let reason = process.exit().map_or_else(|| otherwise.to_owned(), |exit: ProcessExit| exit.to_string());
    InvocationError::WorkerExited { reason }
}

fn no_worker(reason: &str) -> InvocationError {
    InvocationError::NoWorker { reason: reason.to_owned() }
}

/// Returns a port that is free at the moment.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Restarts the handler when it exits: at once the first time, then with increasing delays. Gives up when it
/// exits too often.
async fn supervise_process(shared: Arc<HandlerState>) {
    let mut restarts: Vec<Instant> = Vec::new();
    let mut number = 1;
    let mut stopping = shared.stopping.subscribe();
    loop {
        let Some(serving) = shared.serving.borrow().clone() else { return };
        let mut retired = serving.retired.subscribe();
        let exit = tokio::select! {
            exit = serving.process.wait_for_exit() => Some(exit),
            _ = retired.wait_for(|retired| *retired) => None,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        if shared.serving.send_replace(None).is_none() {
            return;
        }
        let mut reason = match exit {
            Some(exit) => format!("the custom handler exited: {exit}"),
            None => "a function of the custom handler did not return within its timeout".to_owned(),
        };
        shared.events.worker_exited(WorkerNumber(number), &reason);
        let mut counted = exit.is_some();
        if !counted {
            match shared.launch.port {
                // The next process needs its port.
                Some(_) => serving.end(&shared.limits).await,
                None => drop(tokio::spawn(serving.finish(shared.limits.clone()))),
            }
        }
        loop {
            restarts.retain(|at| at.elapsed() < shared.limits.restart_window);
            if counted && restarts.len() >= shared.limits.restarts_per_process {
                let reason = format!("{reason}; {} restarts failed", restarts.len());
                shared.events.workers_failed(&reason);
                return;
            }
            let delay = match restarts.len() {
                more if more > 0 && counted => (shared.limits.restart_delay
                    * (1 << (more - 1).min(8)) as u32)
                    .min(shared.limits.restart_delay_max),
                _ => Duration::ZERO,
            };
            if counted {
                restarts.push(Instant::now());
            }
            counted = true;
            shared.events.worker_restarting(&reason, delay);
            number += 1;
            let started = async {
                tokio::time::sleep(delay).await;
                shared.start_process(number).await
            };
            let started = tokio::select! {
                started = started => started,
                _ = stopping.wait_for(|stopping| *stopping) => return,
            };
            match started {
                Ok(serving) => {
                    shared.serving.send_replace(Some(serving));
                    break;
                }
                Err(error) => reason = error.to_string(),
            }
        }
    }
}
