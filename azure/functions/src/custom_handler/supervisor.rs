//! [`HandlerSupervisor`]: starts the program of a custom handler, and starts it again when it exits.

use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::process::Command;
use tokio::sync::watch;

use super::{ports, sockets};
use crate::worker::{
    ChildProcess, ConsoleTail, ProcessConsole, ProcessExit, StopSignal, WorkerEvents, WorkerLimits,
    WorkerNumber,
};

/// How often a starting handler is probed.
const ASK_EVERY: Duration = Duration::from_millis(25);
/// How long one probe may take.
const PROBE: Duration = Duration::from_secs(2);

/// The command, environment and port of a program that serves HTTP.
#[derive(Clone, Debug)]
pub(crate) struct HandlerLaunch {
    /// What the program is, for messages: `the custom handler`.
    pub(crate) what: &'static str,
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
    /// Another variable for the port, besides those of the platform.
    pub(crate) port_variable: Option<&'static str>,
    /// How long it may take until it listens.
    pub(crate) patience: Duration,
}

/// Why the program does not serve.
#[derive(Debug, thiserror::Error)]
pub enum HandlerStartError {
    #[error("the client of the host cannot be created: {0}")]
    Client(reqwest::Error),
    #[error("no port is free for {what}: {source}")]
    NoPort { what: &'static str, source: std::io::Error },
    #[error(
        "host.json: customHandler.port: port {port} of {what} is already in use{}\n  fix: end that program, or choose \
         another port in host.json and for the program", in_use_by(owner.as_deref())
    )]
    PortInUse {
        what: &'static str,
        port: u16,
        /// The program that has the port, if it is known.
        owner: Option<String>,
    },
    #[error("cannot start `{command}`: {source}")]
    Spawn { command: String, source: std::io::Error },
    #[error("{what} exited ({status}) before it was ready\n  command: {command}{console}")]
    Exited { what: &'static str, command: String, status: String, console: ConsoleTail },
    #[error(
        "{what} did not answer GET / on 127.0.0.1:{port} within {} s{}\n  command: {command}{console}",
        after.as_secs_f32(), elsewhere_fix(elsewhere, *is_fixed)
    )]
    NotListening {
        what: &'static str,
        command: String,
        port: u16,
        /// Whether `host.json` names the port.
        is_fixed: bool,
        after: Duration,
        /// The addresses on which the program listens instead.
        elsewhere: Vec<SocketAddr>,
        console: ConsoleTail,
    },
}

fn in_use_by(owner: Option<&str>) -> String {
    owner.map(|owner| format!(" by {owner}")).unwrap_or_default()
}

fn elsewhere_fix(elsewhere: &[SocketAddr], is_fixed: bool) -> String {
    let Some(first) = elsewhere.first() else {
        return match is_fixed {
            true => "\n  fix: make it listen on the port that customHandler.port of host.json names".to_owned(),
            false => "\n  fix: make it listen on the port in the variable FUNCTIONS_CUSTOMHANDLER_PORT, or write its \
                      port into customHandler.port of host.json"
                .to_owned(),
        };
    };
    let listed = elsewhere.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ");
    format!(
        "; it listens on {listed}\n  fix: write \"port\": {} into customHandler of host.json",
        first.port()
    )
}

impl HandlerStartError {
    /// Returns the reason without commands, paths and console lines, for callers of the app.
    pub(crate) fn brief(&self) -> &'static str {
        match self {
            Self::Client(_) => "the host cannot connect to it",
            Self::NoPort { .. } | Self::PortInUse { .. } => "its port is not free",
            Self::Spawn { .. } => "it cannot be started",
            Self::Exited { .. } => "it exited before it was ready",
            Self::NotListening { .. } => "it does not answer",
        }
    }
}

/// Keeps a program running that serves HTTP. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HandlerSupervisor {
    shared: Arc<SupervisorState>,
}

struct SupervisorState {
    launch: HandlerLaunch,
    limits: WorkerLimits,
    events: Arc<dyn WorkerEvents>,
    client: reqwest::Client,
    /// The process that serves, or `None` during a restart.
    serving: watch::Sender<Option<HandlerProcess>>,
    stopping: watch::Sender<bool>,
}

/// One process of the program. A running invocation holds a clone.
#[derive(Clone)]
pub(crate) struct HandlerProcess {
    process: Arc<ChildProcess>,
    address: SocketAddr,
    /// Set when the process is to be replaced.
    retired: watch::Sender<bool>,
}

impl std::fmt::Debug for HandlerSupervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandlerSupervisor")
            .field("program", &self.shared.launch.program)
            .finish_non_exhaustive()
    }
}

impl HandlerSupervisor {
    /// Starts the program and waits until it listens.
    pub(crate) async fn start(
        launch: HandlerLaunch,
        limits: WorkerLimits,
        events: Arc<dyn WorkerEvents>,
    ) -> Result<HandlerSupervisor, HandlerStartError> {
        let client = loopback_client().map_err(HandlerStartError::Client)?;
        let (serving, stopping) = (watch::Sender::new(None), watch::Sender::new(false));
        let shared = Arc::new(SupervisorState { launch, limits, events, client, serving, stopping });
        let serving = shared.start_process(1).await?;
        shared.serving.send_replace(Some(serving));
        tokio::spawn(supervise_process(Arc::clone(&shared)));
        Ok(HandlerSupervisor { shared })
    }

    pub(crate) fn limits(&self) -> &WorkerLimits {
        &self.shared.limits
    }

    /// Returns the client for requests of the host itself.
    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.shared.client
    }

    /// Returns the process that serves. `None` during a restart.
    pub(crate) fn serving(&self) -> Option<HandlerProcess> {
        self.shared.serving.borrow().clone()
    }

    /// Returns the process that serves. Waits a while if one is being started.
    pub(crate) async fn wait_until_serving(&self) -> Option<HandlerProcess> {
        let mut serving = self.shared.serving.subscribe();
        let found = serving.wait_for(Option::is_some);
        let found = tokio::time::timeout(self.shared.limits.wait_for_worker, found).await;
        found.ok()?.ok()?.clone()
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
    /// Returns the address on which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn exit(&self) -> Option<ProcessExit> {
        self.process.exit()
    }

    pub(crate) async fn wait_for_exit(&self) -> ProcessExit {
        self.process.wait_for_exit().await
    }

    /// Returns what makes the supervisor replace the process, without holding the process.
    pub(crate) fn retirement(&self) -> watch::Sender<bool> {
        self.retired.clone()
    }

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

impl SupervisorState {
    async fn start_process(&self, number: u64) -> Result<HandlerProcess, HandlerStartError> {
        let launch = &self.launch;
        let what = launch.what;
        let port = match launch.port {
            Some(port) => check_free(port, what)?,
            None => ports::choose_free().map_err(|source| HandlerStartError::NoPort { what, source })?,
        };
        let (command, shown) = launch.command(port, number);
        let worker = WorkerNumber(number);
        let console =
            Arc::new(ProcessConsole::new(worker, Arc::clone(&self.events), self.limits.lines_per_second));
        let process = ChildProcess::start(command, Arc::clone(&console)).await;
        let process =
            process.map_err(|source| HandlerStartError::Spawn { command: shown.clone(), source })?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listening = async {
            // Any response is enough, also a 404.
            while self.client.get(format!("http://{address}/")).timeout(PROBE).send().await.is_err() {
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        tokio::select! {
            // A program that has exited is not the one that answers.
            biased;
            exit = process.wait_for_exit() => {
                return Err(HandlerStartError::Exited {
                    what, command: shown, status: exit.to_string(), console: console.tail(),
                });
            }
            () = listening => {}
            () = tokio::time::sleep(launch.patience) => {
                return Err(HandlerStartError::NotListening {
                    what,
                    command: shown,
                    port,
                    is_fixed: launch.port.is_some(),
                    after: launch.patience,
                    elsewhere: sockets::of_group(process.pid()),
                    console: console.tail(),
                });
            }
        }
        Ok(HandlerProcess { process: Arc::new(process), address, retired: watch::Sender::new(false) })
    }
}

impl HandlerLaunch {
    /// Returns the command for a process, and the command line for messages.
    fn command(&self, port: u16, number: u64) -> (Command, String) {
        let mut line = self.launcher.clone();
        line.push(self.program.clone());
        line.extend(self.arguments.iter().cloned());
        let shown = line.get(self.launcher.len()..).unwrap_or_default();
        let shown = shown.join(OsStr::new(" ")).to_string_lossy().into_owned();
        let (program, arguments) =
            line.split_first().map_or((OsString::new(), &[][..]), |(first, rest)| (first.clone(), rest));
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.directory).envs(self.environment.iter().cloned());
        let port_variables = ["FUNCTIONS_CUSTOMHANDLER_PORT", "FUNCTIONS_HTTPWORKER_PORT"];
        for name in port_variables.into_iter().chain(self.port_variable) {
            command.env(name, port.to_string());
        }
        for name in ["FUNCTIONS_CUSTOMHANDLER_WORKER_ID", "FUNCTIONS_HTTPWORKER_ID"] {
            command.env(name, number.to_string());
        }
        command.env("FUNCTIONS_APP_ROOT_PATH", &self.app);
        (command, shown)
    }
}

/// Returns a client for programs on this machine.
fn loopback_client() -> Result<reqwest::Client, reqwest::Error> {
    // The program is on the loopback, so proxies of the environment are not used.
    let client = bindpost_net_upstream::client_builder().no_proxy().http1_only().tcp_nodelay(true);
    // Redirects are not followed: a request for the program must not reach another server.
    client.redirect(reqwest::redirect::Policy::none()).build()
}

/// Returns the port if it is free. Otherwise another program would answer instead of the handler.
fn check_free(port: u16, what: &'static str) -> Result<u16, HandlerStartError> {
    if ports::is_in_use(port) {
        return Err(HandlerStartError::PortInUse { what, port, owner: sockets::owner_of(port) });
    }
    Ok(port)
}

/// Restarts the program when it exits: at once the first time, then with increasing delays. Gives up when it
/// exits too often.
async fn supervise_process(shared: Arc<SupervisorState>) {
    let what = shared.launch.what;
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
            Some(exit) => format!("{what} exited: {exit}"),
            None => format!("a function of {what} did not return within its timeout"),
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
                    // The stop may have come in between, and has then not seen this process.
                    if *stopping.borrow() {
                        if let Some(serving) = shared.serving.send_replace(None) {
                            serving.end(&shared.limits).await;
                        }
                        return;
                    }
                    break;
                }
                Err(error) => reason = error.to_string(),
            }
        }
    }
}
