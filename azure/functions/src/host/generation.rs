//! [`AppGeneration`]: the workers, functions and stores of one start of an app. A change of files creates
//! another.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindpost_mcp_server::{Entry, TaskSupport, ToolEntry};
use chrono::Utc;

use crate::app::{App, TaskConfig, WorkerConfig, WorkerRuntime};
use crate::blobs::{BlobSettings, BlobStore, OpenedStore, StorageConnection, StoreKind};
use crate::custom_handler::CustomHandler;
use crate::entries::{self, ServingOptions};
use crate::error::HostError;
use crate::function::{Function, FunctionRejection, FunctionSource, SkippedFunction, Trigger, check_unique};
use crate::host::HostOptions;
use crate::host::empty_app::FunctionSearch;
use crate::host::file_watch::{FileWatcher, WatchAdditions};
use crate::host::report::{AppReport, AppWarning, ToolRow, WorkerKind, WorkerRow};
use crate::host::state_folder::ignore_in_git;
use crate::host::tool_tasks::{checked_tasks, tool_tasks};
use crate::host::worker_launch::{handler_launch, launch};
use crate::http_tools::{self, HttpTools};
use crate::invocation::{FunctionRunner, InvocationBackend};
use crate::problem::{AppError, Problem};
use crate::routes::RouteTable;
use crate::routes::front::AppRoutes;
use crate::setup::{self, PreparedApp, SetupProgress};
use crate::timers::scheduler::TimerSet;
use crate::timers::zone::TimeZone;
use crate::worker::{IndexedFunction, IndexingResult, WorkerEvents, WorkerLimits, WorkerPool};

/// How long the tool `task_result` waits for the end of a task. Clients give up a call after a minute.
const RESULT_WAIT: Duration = Duration::from_secs(20);

/// The workers, functions and stores of one start of an app.
#[derive(Debug)]
pub(crate) struct AppGeneration {
    pub(crate) runner: Arc<FunctionRunner>,
    pub(crate) functions: Vec<Arc<Function>>,
    /// The functions with an HTTP trigger.
    pub(crate) routes: Arc<AppRoutes>,
    /// Those of them that are tools.
    http_tools: HttpTools,
    /// The time zone of schedules.
    zone: TimeZone,
    manner: ServingOptions,
    tasks: TaskConfig,
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
        let worker_folder = match &options.workers {
            Some(folder) => Some(app.worker_folder_in(folder)),
            None => app.worker_folder(),
        };
        // A wrong folder is an error before packages are installed.
        if let Some(folder) = worker_folder.as_deref().filter(|folder| !WorkerConfig::exists_in(folder)) {
            app.worker_config(folder, None)?;
        }
        let prepared = prepare(app, options, worker_folder.is_none(), progress).await?;
        let version = prepared.interpreter.as_ref().map(|found| found.version.as_str());
        let worker_config = worker_folder.map(|folder| app.worker_config(&folder, version)).transpose()?;
        // Files written by the build are not changes. A worker may have read a later change too early.
        let packaged = prepared.packaged.as_deref();
        let additions =
            WatchAdditions { files: http_tools::document_files(app), packaged: packaged.map(Path::to_owned) };
        let watch = options.watch.then(|| FileWatcher::new(&app.folder, additions, &app.read_first));
        let mut report = AppReport {
            app: app.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            runtime: match &prepared.interpreter {
                Some(interpreter) => format!("{} {}", app.runtime.as_str(), interpreter.version),
                None => app.runtime.as_str().to_owned(),
            },
            worker: describe_worker(app, worker_config.as_ref()),
            interpreter: prepared.interpreter_origin.clone(),
            ..AppReport::default()
        };
        // A project is run as its packaged app.
        let packaged = packaged.map(|folder| app.packaged_in(folder));
        let app = packaged.as_ref().unwrap_or(app);
        report.warnings.extend(app.runtime.experimental_note().map(AppWarning::new));
        report.warnings.extend(app.host.warnings.iter().map(AppWarning::from));
        for notice in &prepared.notices {
            let warning = AppWarning::new(&notice.message);
            report.warnings.push(AppWarning { fix: notice.fix.clone(), ..warning });
        }

        let limits = limits(worker_config.as_ref());
        let (engine, mut functions) = match (&app.runtime, &app.host.custom_handler) {
            (WorkerRuntime::Custom, Some(handler)) => {
                let functions = DiscoveredFunctions::from_function_json(app);
                functions.check_exist(app, Vec::new())?;
                let launch = handler_launch(app, handler, options);
                (
                    InvocationBackend::CustomHandler(Box::new(
                        CustomHandler::start(launch, limits, events).await?,
                    )),
                    functions,
                )
            }
            (WorkerRuntime::Custom, None) => return Err(HostError::NoHandler),
            _ => {
                let launch = launch(app, options, &prepared, worker_config.as_ref())?;
                let (workers, indexing) = WorkerPool::start(launch, limits, events).await?;
                let functions = match indexing {
                    IndexingResult::Functions(indexed) => {
                        let functions = DiscoveredFunctions::from_worker_index(app, indexed);
                        functions.check_exist(app, Vec::new())?;
                        functions
                    }
                    IndexingResult::UseFunctionJson { console } => {
                        let functions = DiscoveredFunctions::from_function_json(app);
                        functions.check_exist(app, console)?;
                        functions
                    }
                };
                (InvocationBackend::Workers { workers, own: worker_config.is_none() }, functions)
            }
        };
        functions.keep_unique();
        if let Err(error) = check_connections(app, &functions.found, options.exposed) {
            engine.kill();
            return Err(error.into());
        }
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
        let (table, route_problems) = RouteTable::build(&served, &app.host.http.route_prefix);
        let is_routed = |function: &Function| {
            !matches!(function.trigger, Trigger::Http(_))
                || table.routes().iter().any(|route| route.function.name == function.name)
        };
        served.retain(|function| is_routed(function));
        functions.problems.extend(route_problems);
        functions.add_warnings_to(&mut report);
        if served.is_empty() {
            engine.kill();
            let reasons = report.warnings.iter().map(|AppWarning { message, fix }| match fix {
                Some(fix) => format!("{message}\n    fix: {fix}"),
                None => message.clone(),
            });
            return Err(HostError::NothingToServe { reasons: reasons.collect() });
        }
        let zone = time_zone(app, &served, &mut report);
        let now = Utc::now();
        served.iter().for_each(|function| report.add(function, &zone, now));
        report.add_routes(&table);
        let routes = Arc::new(AppRoutes::new(table, app, engine.http_form(), options.detailed_errors));
        let log_levels = app.host.log_levels.clone();
        let runner = FunctionRunner { engine, stores, timeout: app.host.function_timeout, log_levels };
        let runner = Arc::new(runner);
        let http_tools = HttpTools::find(app, &runner, &routes, &mut report).await;
        report.add_http_tools(&http_tools.list(&runner, &routes));
        let tasks = checked_tasks(app, &served, &mut report);
        let manner = ServingOptions {
            validates: app.host.mcp.validate_arguments,
            detects_prompts: app.host.mcp.detect_prompt_json,
            detailed_errors: options.detailed_errors,
        };
        Ok(AppGeneration {
            runner,
            functions: served,
            routes,
            http_tools,
            zone,
            manner,
            tasks,
            report,
            watch,
        })
    }

    /// Returns the functions as entries of the server's catalog.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let entry =
            |function| entries::entry(&self.runner, function, self.manner, tool_tasks(&self.tasks, function));
        let mut entries: Vec<Entry> = self.functions.iter().filter_map(entry).collect();
        let answers_early =
            |function: &Arc<Function>| tool_tasks(&self.tasks, function).answer_after.is_some();
        entries.extend(self.http_tools.entries(&self.runner, &self.routes, &self.tasks));
        if self.functions.iter().any(answers_early) {
            entries.push(ToolEntry::task_result(RESULT_WAIT).into());
        }
        entries
    }

    /// Returns whether a tool runs as a task.
    pub(crate) fn uses_tasks(&self) -> bool {
        let is_task = |tool: &ToolRow| self.tasks.support_name(&tool.name) != TaskSupport::Never;
        let mut http_tools = self.report.tools.iter().filter(|tool| tool.http.is_some());
        http_tools.any(is_task)
            || self
                .functions
                .iter()
                .any(|function| tool_tasks(&self.tasks, function).support != TaskSupport::Never)
    }

    /// Returns the functions with a timer trigger.
    pub(crate) fn timers(&self) -> TimerSet {
        TimerSet::new(self.runner.clone(), self.zone.clone(), &self.functions)
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

    /// Returns an error if there is no function at all. `console` has the last lines of the worker's console.
    fn check_exist(&self, app: &App, console: Vec<String>) -> Result<(), HostError> {
        match self.found.is_empty() && self.skipped.is_empty() && self.problems.is_empty() {
            true => Err(HostError::NoFunctions { search: FunctionSearch::of_app(app), console }),
            false => Ok(()),
        }
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

/// Returns the time zone of schedules. If the system does not know it, schedules use UTC, as on the platform.
fn time_zone(app: &App, functions: &[Arc<Function>], report: &mut AppReport) -> TimeZone {
    if !functions.iter().any(|function| matches!(function.trigger, Trigger::Timer(_))) {
        return TimeZone::Utc;
    }
    TimeZone::resolve(&app.settings.lookup()).unwrap_or_else(|error| {
        let warning = AppWarning::new(format!("{error}; the schedules of timers use UTC"));
        let fix = "write a name of the IANA time zone database, such as Europe/Berlin, and check that the system has it \
                   (package tzdata)";
        report.warnings.push(warning.fix(fix));
        TimeZone::Utc
    })
}

/// Rejects an app that other machines can reach if a binding names a connection that no setting has. Its data would
/// be stored where nothing else finds it.
fn check_connections(app: &App, functions: &[Function], exposed: bool) -> Result<(), AppError> {
    let lookup = app.settings.lookup();
    let unset = |function: &Function| {
        let mut names: Vec<String> = connections(function)
            .filter_map(|connection| {
                let resolved = StorageConnection::resolve(connection, &lookup).ok()?;
                resolved.unset_name().map(str::to_owned)
            })
            .collect();
        names.dedup();
        let problem = |name: &String| {
            let message = format!("{}, and other machines can reach this app", unset_message(name));
            Problem::new(message).of_function(&function.name).fix(unset_fix(name))
        };
        names.iter().map(problem).collect::<Vec<_>>()
    };
    match functions.iter().filter(|_| exposed).flat_map(unset).collect::<Vec<_>>() {
        problems if problems.is_empty() => Ok(()),
        problems => Err(AppError(problems)),
    }
}

fn unset_message(connection: &str) -> String {
    format!("no setting has the connection {connection} of its blobs")
}

fn unset_fix(connection: &str) -> String {
    format!(
        "set {connection} to a connection string, to UseDevelopmentStorage=true, or {connection}__accountName to the name \
         of a storage account"
    )
}

/// Opens the store of every connection. A function whose store cannot be opened is not served.
async fn open_stores(
    app: &App,
    functions: &mut DiscoveredFunctions,
    report: &mut AppReport,
) -> HashMap<String, BlobStore> {
    let state = &app.state_folder;
    let folder = state.join("blobs");
    let mut stores = HashMap::new();
    let mut broken: HashMap<String, String> = HashMap::new();
    for function in &functions.found {
        for connection in connections(function) {
            if stores.contains_key(connection) || broken.contains_key(connection) {
                continue;
            }
            let mut unset = None;
            let opened = match StorageConnection::resolve(connection, &app.settings.lookup()) {
                Ok(resolved) => {
                    unset = resolved.unset_name().map(str::to_owned);
                    let opened = BlobStore::open(resolved, &folder, &BlobSettings::default()).await;
                    opened.map_err(|error| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            match opened {
                Ok(OpenedStore { store, place, notice }) => {
                    if place == StoreKind::Embedded
                        && let Err(error) = ignore_in_git(state)
                    {
                        tracing::warn!(%error, "could not write the file .gitignore in .bindpost");
                    }
                    match (unset, &store) {
                        (Some(name), BlobStore::Local(local)) => {
                            let (message, folder) = (unset_message(&name), local.folder().display());
                            let message =
                                format!("function {}: {message}: they are stored in {folder}", function.name);
                            report.warnings.push(AppWarning::new(message).fix(unset_fix(&name)));
                        }
                        _ if place != StoreKind::Account && !report.notices.contains(&notice) => {
                            report.notices.push(notice);
                        }
                        _ => {}
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
    function.read_blobs().chain(function.written_blobs()).map(|binding| binding.connection.as_str())
}

fn describe_worker(app: &App, config: Option<&WorkerConfig>) -> WorkerRow {
    let (kind, place) = match (&app.host.custom_handler, config) {
        (Some(handler), _) if app.runtime == WorkerRuntime::Custom => {
            (WorkerKind::CustomHandler, Some(handler.default_executable_path.clone()))
        }
        (_, Some(config)) => (WorkerKind::Public, Some(config.directory.display().to_string())),
        (_, None) => (WorkerKind::BuiltIn, None),
    };
    WorkerRow { kind, place }
}

async fn prepare(
    app: &App,
    options: &HostOptions,
    built_in_worker: bool,
    progress: &dyn SetupProgress,
) -> Result<PreparedApp, HostError> {
    let overridden = app.host.language_workers.override_for(app.runtime.as_str());
    let environment = |name: &str| app.settings.get(name).map(OsString::from);
    let options = setup::SetupOptions {
        install: options.install,
        executable: overridden
            .and_then(|settings| settings.default_executable_path.as_ref())
            .map(PathBuf::from),
        built_in_worker,
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
