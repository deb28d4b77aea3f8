//! [`AppGeneration`]: the workers, functions and stores of one start of an app. A change of files creates
//! another.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindpost_mcp_server::Entry;

use crate::app::{App, CustomHandlerConfig as HandlerConfig, WorkerConfig, WorkerRuntime};
use crate::blobs::{BlobSettings, BlobStore, OpenedStore, StorageConnection, StoreKind};
use crate::custom_handler::{CustomHandler, HandlerLaunch};
use crate::entries::{self, ServingOptions};
use crate::error::HostError;
use crate::function::{
    Function, FunctionRejection, FunctionSource, InputBinding, OutputBinding, SkippedFunction, check_unique,
};
use crate::host::HostOptions;
use crate::host::file_watch::FileWatcher;
use crate::host::report::{AppReport, AppWarning};
use crate::invocation::{FunctionRunner, InvocationBackend};
use crate::problem::Problem;
use crate::setup::{self, PreparedApp, SetupProgress};
use crate::worker::{
    BundledWorker, Framing, IndexedFunction, IndexingResult, WorkerEvents, WorkerLaunch, WorkerLimits,
    WorkerPool,
};

/// The version that the Functions host reports. Public workers check it.
const HOST_VERSION: &str = "4.1037.0";
/// The setting with the number of worker processes.
const PROCESS_COUNT: &str = "FUNCTIONS_WORKER_PROCESS_COUNT";

/// The workers, functions and stores of one start of an app.
#[derive(Debug)]
pub(crate) struct AppGeneration {
    pub(crate) runner: Arc<FunctionRunner>,
    pub(crate) functions: Vec<Arc<Function>>,
    manner: ServingOptions,
    pub(crate) report: AppReport,
    /// The files as they were before the workers read them. `None` if the app is not watched.
    pub(crate) watch: Option<FileWatcher>,
}

/// The functions of an app, and the reasons why others are not served.
#[derive(Debug, Default)]
struct DiscoveredFunctions {
    found: Vec<Function>,
    skipped: Vec<SkippedFunction>,
    problems: Vec<Problem>,
}

impl AppGeneration {
    /// Prepares the app, starts its workers and discovers its functions.
    pub(crate) async fn start(
        app: &App,
        options: &HostOptions,
        events: Arc<dyn WorkerEvents>,
        progress: &dyn SetupProgress,
    ) -> Result<AppGeneration, HostError> {
        let worker_config = worker_config(app, options)?;
        let prepared = prepare(app, options, progress).await?;
        // Files written by the build are not changes. A worker may have read a later change too early.
        let watch = options.watch.then(|| FileWatcher::new(&app.folder, &app.read_first));
        let mut report = AppReport {
            app: app.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            runtime: match &prepared.interpreter {
                Some(interpreter) => format!("{} {}", app.runtime.as_str(), interpreter.version),
                None => app.runtime.as_str().to_owned(),
            },
            ..AppReport::default()
        };
        for notice in &prepared.notices {
            let warning = AppWarning::new(&notice.message);
            report.warnings.push(AppWarning { fix: notice.fix.clone(), ..warning });
        }

        let limits = limits(worker_config.as_ref());
        let (engine, mut functions) = match (&app.runtime, &app.host.custom_handler) {
            (WorkerRuntime::Custom, Some(handler)) => {
                let functions = DiscoveredFunctions::from_function_json(app);
                let launch = handler_launch(app, handler, options);
                (
                    InvocationBackend::CustomHandler(CustomHandler::start(launch, limits, events).await?),
                    functions,
                )
            }
            (WorkerRuntime::Custom, None) => return Err(HostError::NoHandler),
            _ => {
                let launch = launch(app, options, &prepared, worker_config.as_ref())?;
                let (workers, indexing) = WorkerPool::start(launch, limits, events).await?;
                let functions = match indexing {
                    IndexingResult::Functions(indexed) => {
                        DiscoveredFunctions::from_worker_index(app, indexed)
                    }
                    IndexingResult::UseFunctionJson { console } => {
                        let functions = DiscoveredFunctions::from_function_json(app);
                        if functions.is_empty() {
                            return Err(HostError::NoFunctions { console });
                        }
                        functions
                    }
                };
                (InvocationBackend::Workers { workers, own: worker_config.is_none() }, functions)
            }
        };
        functions.keep_unique();
        let stores = open_stores(app, &mut functions, &mut report).await;
        let mut served: Vec<Arc<Function>> = functions.found.drain(..).map(Arc::new).collect();
        if let InvocationBackend::Workers { workers, .. } = &engine {
            let loaded = workers.load(served.clone()).await?;
            let mut loaded = loaded.into_iter();
            served.retain(|function| match loaded.next() {
                Some(Err(message)) => {
                    let message = format!("the worker cannot load it: {message}");
                    functions.problems.push(Problem::new(message).of_function(&function.name));
                    false
                }
                _ => true,
            });
        }
        functions.add_warnings_to(&mut report);
        if served.is_empty() {
            engine.kill();
            let reasons = report.warnings.iter().map(|AppWarning { message, fix }| match fix {
                Some(fix) => format!("{message}\n    fix: {fix}"),
                None => message.clone(),
            });
            return Err(HostError::NothingToServe { reasons: reasons.collect() });
        }
        served.iter().for_each(|function| report.add(function));
        let log_levels = app.host.log_levels.clone();
        let runner = FunctionRunner { engine, stores, timeout: app.host.function_timeout, log_levels };
        let manner = ServingOptions {
            validates: app.host.mcp.validate_arguments,
            detects_prompts: app.host.mcp.detect_prompt_json,
            detailed_errors: options.detailed_errors,
        };
        Ok(AppGeneration { runner: Arc::new(runner), functions: served, manner, report, watch })
    }

    /// Returns the functions as entries of the server's catalog.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let functions = self.functions.iter();
        functions.map(|function| entries::entry(&self.runner, function, self.manner)).collect()
    }

    /// Waits until no call uses this generation, for at most `limit`. Every call holds the runner, even while
    /// it waits for a worker, for a blob or for a response of its client.
    pub(crate) async fn wait_until_released(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while Arc::strong_count(&self.runner) > 1 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Stops the workers at once.
    pub(crate) fn kill(&self) {
        self.runner.engine.kill();
    }

    /// Waits for running invocations, then stops the workers.
    pub(crate) async fn stop(&self, limit: Duration) {
        match &self.runner.engine {
            InvocationBackend::Workers { workers, .. } => drop(workers.drain(limit).await),
            InvocationBackend::CustomHandler(handler) => handler.stop().await,
        }
    }
}

impl DiscoveredFunctions {
    /// Reads the functions that the worker reports.
    fn from_worker_index(app: &App, indexed: Vec<IndexedFunction>) -> DiscoveredFunctions {
        let mut functions = DiscoveredFunctions::default();
        for function in indexed {
            let IndexedFunction { name, id, directory, script_file, entry_point, language, .. } = function;
            if let Some(error) = function.error {
                functions.problems.push(Problem::new(error).of_function(&name));
                continue;
            }
            if app.is_disabled(&name) {
                let reason = "a setting disables it".to_owned();
                functions.skipped.push(SkippedFunction { name, reason });
                continue;
            }
            let properties = function.properties;
            // The public Node worker sends no language.
            let language = if language.is_empty() { app.runtime.as_str().to_owned() } else { language };
            let source = FunctionSource {
                directory,
                script_file,
                entry_point,
                language,
                properties,
                ..FunctionSource::default()
            };
            match Function::from_raw_bindings(
                &name,
                &id,
                source,
                &function.raw_bindings,
                &app.settings.lookup(),
            ) {
                Ok(function) => functions.found.push(function),
                Err(FunctionRejection::Skipped(skipped)) => functions.skipped.push(skipped),
                Err(FunctionRejection::Problems(problems)) => functions.problems.extend(problems),
            }
        }
        functions
    }

    /// Reads the functions from their `function.json` files.
    fn from_function_json(app: &App) -> DiscoveredFunctions {
        let folders = app.function_folders();
        DiscoveredFunctions { found: folders.functions, skipped: folders.skipped, problems: folders.problems }
    }

    fn is_empty(&self) -> bool {
        self.found.is_empty() && self.skipped.is_empty() && self.problems.is_empty()
    }

    /// Keeps only the first of several functions that offer the same tool, prompt or resource.
    fn keep_unique(&mut self) {
        let problems = check_unique(&self.found);
        self.found.retain(|function| {
            !problems.iter().any(|problem| problem.function.as_deref() == Some(&*function.name))
        });
        self.problems.extend(problems);
    }

    fn add_warnings_to(&self, report: &mut AppReport) {
        report.warnings.extend(self.problems.iter().map(AppWarning::from));
        let skipped = self.skipped.iter();
        report.warnings.extend(skipped.map(|SkippedFunction { name, reason }| {
            AppWarning::new(format!("function {name} is skipped: {reason}"))
        }));
    }
}

/// Opens the store of every connection. A function whose store cannot be opened is not served.
async fn open_stores(
    app: &App,
    functions: &mut DiscoveredFunctions,
    report: &mut AppReport,
) -> HashMap<String, BlobStore> {
    let folder = app.folder.join(".bindpost").join("blobs");
    let mut stores = HashMap::new();
    let mut broken: HashMap<String, String> = HashMap::new();
    for function in &functions.found {
        for connection in connections(function) {
            if stores.contains_key(connection) || broken.contains_key(connection) {
                continue;
            }
            let opened = match StorageConnection::resolve(connection, &app.settings.lookup()) {
                Ok(resolved) => {
                    let opened = BlobStore::open(resolved, &folder, &BlobSettings::default()).await;
                    opened.map_err(|error| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            match opened {
                Ok(OpenedStore { store, place, notice }) => {
                    if place != StoreKind::Account && !report.notices.contains(&notice) {
                        report.notices.push(notice);
                    }
                    stores.insert(connection.to_owned(), store);
                }
                Err(error) => drop(broken.insert(connection.to_owned(), error)),
            }
        }
    }
    functions.found.retain(|function| {
        let error = connections(function).find_map(|connection| broken.get(connection));
        if let Some(error) = error {
            functions.problems.push(Problem::new(error).of_function(&function.name));
        }
        error.is_none()
    });
    stores
}

fn connections(function: &Function) -> impl Iterator<Item = &str> {
    let inputs = function.inputs.iter().filter_map(|input| match input {
        InputBinding::Blob(binding) => Some(binding),
        InputBinding::ToolProperty { .. } | InputBinding::PromptArgument { .. } => None,
    });
    let outputs = function.outputs.iter().map(|OutputBinding::Blob(binding)| binding);
    inputs.chain(outputs).map(|binding| binding.connection.as_str())
}

/// Returns the configuration of the public worker, if the options or the settings name one.
fn worker_config(app: &App, options: &HostOptions) -> Result<Option<WorkerConfig>, HostError> {
    Ok(match &options.workers {
        Some(folder) => Some(app.worker_config_in(folder)?),
        None => app.worker_config()?,
    })
}

async fn prepare(
    app: &App,
    options: &HostOptions,
    progress: &dyn SetupProgress,
) -> Result<PreparedApp, HostError> {
    let overridden = app.host.language_workers.override_for(app.runtime.as_str());
    let environment = |name: &str| app.settings.get(name).map(OsString::from);
    let options = setup::SetupOptions {
        install: options.install,
        executable: overridden
            .and_then(|settings| settings.default_executable_path.as_ref())
            .map(PathBuf::from),
        ..setup::SetupOptions::new(&environment)
    };
    Ok(setup::prepare(app.runtime.clone(), &app.folder, &options, progress).await?)
}

fn limits(worker_config: Option<&WorkerConfig>) -> WorkerLimits {
    let mut limits = WorkerLimits::default();
    if let Some(config) = worker_config {
        limits.connect = config.process.process_startup_timeout;
        limits.init = config.process.initialization_timeout;
    }
    limits
}

fn launch(
    app: &App,
    options: &HostOptions,
    prepared: &PreparedApp,
    worker_config: Option<&WorkerConfig>,
) -> Result<WorkerLaunch, HostError> {
    let mut environment: Vec<(OsString, OsString)> =
        app.settings.iter().map(|(name, value)| (name.into(), value.into())).collect();
    environment.extend(prepared.environment.iter().map(|(name, value)| (name.into(), value.clone())));
    let from_settings = app.settings.get(PROCESS_COUNT).and_then(|count| count.trim().parse().ok());
    let processes = options.processes.or(from_settings).unwrap_or(1);
    let interpreter = prepared.interpreter.as_ref();
    let common = WorkerLaunch {
        launcher: options.launcher.clone(),
        program: interpreter.map(|found| found.path.clone().into()).unwrap_or_default(),
        arguments: Vec::new(),
        worker_path: None,
        framing: Framing::Grpc,
        app_directory: app.folder.clone(),
        worker_directory: app.folder.clone(),
        environment,
        language: app.runtime.as_str().to_owned(),
        runtime_version: interpreter.map(|found| found.version.clone()),
        host_version: HOST_VERSION.to_owned(),
        indexes: true,
        processes,
        folder: None,
    };
    if let Some(config) = worker_config {
        return Ok(WorkerLaunch {
            program: match interpreter {
                // The app's own virtual environment has the app's packages.
                Some(found) if app.runtime != WorkerRuntime::Java => found.path.clone().into(),
                _ => config.executable.clone().into(),
            },
            arguments: config.arguments.iter().map(OsString::from).collect(),
            worker_path: config.worker_path.clone(),
            worker_directory: config.directory.clone(),
            indexes: config.worker_indexing,
            ..common
        });
    }
    let own = match &app.runtime {
        WorkerRuntime::Python => BundledWorker::Python,
        WorkerRuntime::Node => BundledWorker::Node,
        other => return Err(HostError::NoWorker { language: other.as_str().to_owned() }),
    };
    let unpacked = own.unpack().map_err(HostError::Unpack)?;
    Ok(WorkerLaunch {
        worker_path: Some(unpacked.entry),
        framing: Framing::Frames,
        worker_directory: unpacked.folder.path().to_owned(),
        folder: Some(unpacked.folder),
        ..common
    })
}

fn handler_launch(app: &App, handler: &HandlerConfig, options: &HostOptions) -> HandlerLaunch {
    HandlerLaunch {
        launcher: options.launcher.clone(),
        program: handler.program(&app.folder).into(),
        arguments: handler.arguments.iter().chain(&handler.worker_arguments).map(OsString::from).collect(),
        directory: handler.directory(&app.folder),
        app: app.folder.clone(),
        environment: app.settings.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        port: handler.port,
    }
}
