//! Starts a worker: process, stream, init, index, load.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::arrivals::ExpectedWorkers;
use crate::worker::channel::{StreamEnded, WorkerChannel};
use crate::worker::error::{StartStep, WorkerStartError};
use crate::worker::events::{WorkerDetails, WorkerEvents, WorkerNumber};
use crate::worker::limits::WorkerLimits;
use crate::worker::process::console::ProcessConsole;
use crate::worker::process::launch::{ConnectAddress, WorkerLaunch};
use crate::worker::process::private_folder::PrivateFolder;
use crate::worker::process::{ChildProcess, StopSignal};
use crate::worker::wire::framing::Framing;
use crate::worker::wire::grpc::GrpcListener;
use crate::worker::wire::indexing::{IndexedFunction, IndexingResult, WorkerFailure, failure};
use crate::worker::wire::proto::WorkerInitRequest;
use crate::worker::wire::socket::SocketListener;

/// How long to wait for the exit of a process after its stream has ended.
const AFTER_STREAM: Duration = Duration::from_secs(1);

/// Workers that run the same files with the same settings.
pub(crate) struct WorkerGeneration {
    pub(crate) launch: WorkerLaunch,
    limits: WorkerLimits,
    events: Arc<dyn WorkerEvents>,
    address: ConnectAddress,
    arrivals: Arc<ExpectedWorkers>,
    listening: AbortHandle,
}

/// A connected and initialized worker process.
pub(crate) struct Worker {
    pub(crate) number: WorkerNumber,
    pub(crate) process: ChildProcess,
    pub(crate) channel: Arc<WorkerChannel>,
    pub(crate) console: Arc<ProcessConsole>,
    pub(crate) about: WorkerDetails,
    pub(crate) since: Instant,
    /// Why the worker gets no further invocations. `None` while it serves.
    pub(crate) retired: watch::Sender<Option<String>>,
    /// Keeps the listener open that this worker is connected to.
    pub(crate) generation: Arc<WorkerGeneration>,
}

impl WorkerGeneration {
    /// Opens the listener that the workers connect to.
    pub(crate) async fn open(
        mut launch: WorkerLaunch,
        limits: WorkerLimits,
        events: Arc<dyn WorkerEvents>,
    ) -> Result<Self, WorkerStartError> {
        // The worker runs in the app folder, where a relative path would refer to another folder.
        for directory in [&mut launch.app_directory, &mut launch.worker_directory] {
            *directory = std::path::absolute(&*directory).map_err(WorkerStartError::Listen)?;
        }
        let arrivals = Arc::new(ExpectedWorkers::new(limits.clone(), Arc::clone(&events)));
        let (address, listening) = match launch.framing {
            Framing::Grpc => {
                let (listener, address) = GrpcListener::bind().await.map_err(WorkerStartError::Listen)?;
                let address: SocketAddr = address;
                (ConnectAddress::Grpc(address), tokio::spawn(listener.serve(Arc::clone(&arrivals))))
            }
            Framing::Frames => {
                let folder = match &launch.folder {
                    Some(folder) => Arc::clone(folder),
                    None => Arc::new(PrivateFolder::create().map_err(WorkerStartError::Listen)?),
                };
                let socket_folder = launch.has_unix_sockets.then(|| folder.path());
                let (listener, address) =
                    SocketListener::bind(socket_folder).await.map_err(WorkerStartError::Listen)?;
                launch.folder = Some(folder);
                (ConnectAddress::Frames(address), tokio::spawn(listener.serve(Arc::clone(&arrivals))))
            }
        };
        Ok(Self { launch, limits, events, address, arrivals, listening: listening.abort_handle() })
    }

    /// Starts one process and waits until it is initialized. A process that fails to initialize is killed.
    pub(crate) async fn start(
        self: &Arc<Self>,
        number: WorkerNumber,
    ) -> Result<Arc<Worker>, WorkerStartError> {
        let console =
            Arc::new(ProcessConsole::new(number, Arc::clone(&self.events), self.limits.lines_per_second));
        let expected = self.arrivals.expect_worker(number);
        let request_id = uuid::Uuid::new_v4().to_string();
        let command = self.launch.command(&self.address, expected.id(), &request_id);
        let process = ChildProcess::start(command, Arc::clone(&console))
            .await
            .map_err(|source| WorkerStartError::Spawn { command: self.launch.display_command(), source })?;
        let starting = StartingWorker { generation: self, process: &process, console: &console };

        let channel = starting
            .step(StartStep::Connect, self.limits.connect, async { expected.await.ok_or(StreamEnded) })
            .await?;
        let request = WorkerInitRequest {
            host_version: self.launch.host_version.clone(),
            capabilities: HashMap::from([("MultiStream".to_owned(), "10".to_owned())]),
            worker_directory: text(&self.launch.worker_directory),
            function_app_directory: text(&self.launch.app_directory),
        };
        let response = starting.step(StartStep::Init, self.limits.init, channel.init(request)).await?;
        if let Some(failure) = failure(response.result) {
            return Err(starting.refused(StartStep::Init, failure));
        }
        let metadata = response.worker_metadata.unwrap_or_default();
        let about = WorkerDetails {
            pid: process.pid(),
            runtime: metadata.runtime_name,
            runtime_version: metadata.runtime_version,
            worker_version: [metadata.worker_version, response.worker_version]
                .into_iter()
                .find(|version| !version.is_empty())
                .unwrap_or_default(),
            capabilities: response.capabilities,
        };
        Ok(Arc::new(Worker {
            number,
            process,
            channel,
            console,
            about,
            since: Instant::now(),
            retired: watch::Sender::new(None),
            generation: Arc::clone(self),
        }))
    }
}

impl Drop for WorkerGeneration {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Worker {
    /// Requests the functions of the app, if this kind of worker supports indexing.
    pub(crate) async fn index(&self) -> Result<IndexingResult, WorkerStartError> {
        let default = || IndexingResult::UseFunctionJson { console: self.console.tail().0 };
        let launch = &self.generation.launch;
        if !launch.indexes {
            return Ok(default());
        }
        let starting = self.starting();
        let app = text(&launch.app_directory);
        let limit = self.generation.limits.index;
        let response = starting.step(StartStep::Index, limit, self.channel.index(&app)).await?;
        if let Some(failure) = failure(response.result) {
            return Err(starting.refused(StartStep::Index, failure));
        }
        if response.use_default_metadata_indexing {
            return Ok(default());
        }
        let functions = response.function_metadata_results.into_iter().map(IndexedFunction::from_wire);
        Ok(IndexingResult::Functions(functions.collect()))
    }

    /// Makes the worker load functions. Results are in the order of the functions.
    pub(crate) async fn load(
        &self,
        functions: &[Arc<crate::function::Function>],
    ) -> Result<Vec<Result<(), String>>, WorkerStartError> {
        let limit = self.generation.limits.load;
        // The channel applies the limit itself, so that one function that hangs does not fail the others.
        let load = self.channel.load(functions, limit);
        self.starting().step(StartStep::Load, limit + Duration::from_secs(1), load).await
    }

    /// Stops the worker: first with `WorkerTerminate`, then with SIGTERM, then with SIGKILL.
    pub(crate) async fn stop(&self) {
        let limits = &self.generation.limits;
        if self.channel.terminate(limits.terminate) && self.process.ends_within(limits.terminate).await {
            return;
        }
        self.process.signal(StopSignal::Terminate);
        if self.process.ends_within(limits.sigterm).await {
            return;
        }
        self.process.signal(StopSignal::Kill);
        self.process.wait_for_exit().await;
    }

    fn starting(&self) -> StartingWorker<'_> {
        StartingWorker { generation: &self.generation, process: &self.process, console: &self.console }
    }
}

/// A worker that is starting, with the data for error messages.
struct StartingWorker<'a> {
    generation: &'a WorkerGeneration,
    process: &'a ChildProcess,
    console: &'a ProcessConsole,
}

impl StartingWorker<'_> {
    /// Runs one step. It ends with its response, with the exit of the process, or at the time limit.
    async fn step<T>(
        &self,
        step: StartStep,
        limit: Duration,
        answer: impl Future<Output = Result<T, StreamEnded>>,
    ) -> Result<T, WorkerStartError> {
        let answer = async {
            let answer = answer.await;
            if answer.is_err() {
                // The process has probably exited too, and its exit status explains more.
                tokio::time::sleep(AFTER_STREAM).await;
            }
            answer
        };
        let command = || self.generation.launch.display_command();
        tokio::select! {
            biased;
            answer = answer => answer.map_err(|StreamEnded| {
                WorkerStartError::HungUp { command: command(), step, console: self.console.tail() }
            }),
            exit = self.process.wait_for_exit() => Err(WorkerStartError::Exited {
                command: command(),
                status: exit.to_string(),
                console: self.console.tail(),
            }),
            () = tokio::time::sleep(limit) => Err(WorkerStartError::TimedOut {
                command: command(),
                step,
                after: limit,
                console: self.console.tail(),
            }),
        }
    }

    fn refused(&self, step: StartStep, failure: WorkerFailure) -> WorkerStartError {
        let WorkerFailure { message, stack } = failure;
        let command = self.generation.launch.display_command();
        tracing::debug!(target: "worker", "the worker that could not {step} is `{command}`");
        WorkerStartError::Refused { step, message, stack, console: self.console.tail() }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
