//! [`App`]: a function app on disk.
//!
//! This module parses the files of an app: `host.json`, `local.settings.json`, `function.json` and
//! `worker.config.json`. It starts no process, and only [`settings`] reads the environment. A mistake in one
//! function disables that function only. A mistake in the app's own files is an [`AppError`].

mod custom_handler;
mod dotnet_output;
pub mod function_json;
pub mod host_json;
pub mod http_config;
pub mod http_tool_config;
pub mod language_workers;
pub mod local_settings;
pub mod log_level;
pub mod name_patterns;
mod overrides;
pub mod runtime;
pub mod settings;
pub mod task_config;
pub mod worker_config;
mod worker_profile;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

pub use custom_handler::{ConfigurationProfile, CustomHandlerConfig, HandlerRoute};
pub use function_json::FunctionFolders;
pub use host_json::{HostConfig, McpConfig, WebhookAuthorization};
pub use http_config::HttpConfig;
pub use http_tool_config::HttpToolConfig;
pub use language_workers::{LanguageWorkers, WorkerOverride};
pub use local_settings::LocalHostConfig;
pub use log_level::{LogLevel, LogLevels};
pub use name_patterns::NamePatterns;
pub(crate) use runtime::POWERSHELL;
pub use runtime::WorkerRuntime;
pub use settings::Settings;
pub use task_config::TaskConfig;
pub use worker_config::{HostPlatform, ProcessOptions, WorkerConfig};

use crate::host::file_watch::ConfigSnapshot;
use crate::host::state_folder;
use crate::json::{self, ProblemCollector};
use crate::problem::{AppError, Problem};

/// The setting with arguments for the Java virtual machine.
const JAVA_OPTIONS: &str = "JAVA_OPTS";

/// A function app: its folder and its parsed files.
#[derive(Clone, Debug)]
pub struct App {
    /// The absolute path of the folder.
    pub folder: PathBuf,
    /// The folder for its keys, its blobs and the status of its timers.
    pub state_folder: PathBuf,
    /// `host.json`, with the overrides of the settings applied.
    pub host: HostConfig,
    /// App settings from the environment, then from `local.settings.json`.
    pub settings: Settings,
    /// The `Host` section of `local.settings.json`.
    pub local: LocalHostConfig,
    /// The language or program that runs the functions.
    pub runtime: WorkerRuntime,
    /// The state of `host.json` and `local.settings.json` when they were read.
    pub(crate) read_first: ConfigSnapshot,
}

impl App {
    /// Reads the app in a folder. [`settings::process_environment`] returns the environment of this process.
    pub fn open(
        folder: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<App, AppError> {
        let not_there = |error| {
            let problem = Problem::new(format!("cannot open the folder: {error}"))
                .in_file(folder.display().to_string());
            problem.fix("pass the folder that contains the app's host.json")
        };
        let folder =
            std::path::absolute(folder).and_then(|path| path.metadata().map(|_| path)).map_err(not_there)?;
        if !folder.is_dir() {
            let problem = Problem::new("is not a folder").in_file(folder.display().to_string());
            return Err(problem.fix("pass the folder that contains the app's host.json").into());
        }
        let read_first = ConfigSnapshot::capture(&folder);
        let (values, local) = local_settings::read(&folder)?;
        let settings = Settings::new(environment, values);
        let host = HostConfig::read(&folder, &settings)?;
        let runtime = WorkerRuntime::detect(&folder, &host, &settings)?;
        let state_folder = state_folder::of_app(&folder);
        Ok(App { folder, state_folder, host, settings, local, runtime, read_first })
    }

    /// Reads the functions that `function.json` files describe. Workers that index do not need these files.
    pub fn function_folders(&self) -> FunctionFolders {
        function_json::read(self)
    }

    /// Returns the names of the folders with a `function.json`.
    pub(crate) fn function_names(&self) -> Vec<String> {
        function_json::find_function_folders(&self.folder).into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the folder of the worker for the app's language, if the built-in workers do not run it: the folder that the
    /// settings name, or the app's own folder if the app is its worker.
    pub fn worker_folder(&self) -> Option<PathBuf> {
        let own = || dotnet_output::is_app(self.runtime.as_str(), &self.folder).then(|| self.folder.clone());
        self.host.language_workers.directory(self.runtime.as_str(), &self.folder).or_else(own)
    }

    /// Returns the folder of the worker for the app's language. `folder` contains one folder for each language, or is
    /// itself the folder of the worker.
    pub fn worker_folder_in(&self, folder: &Path) -> PathBuf {
        let own = folder.join(self.runtime.as_str());
        let folder = if own.is_dir() { own } else { folder.to_owned() };
        std::path::absolute(&folder).unwrap_or(folder)
    }

    /// Reads the configuration of a worker for the app's language. Its paths may contain the version of the language:
    /// that of the interpreter in use, unless a setting has another.
    pub fn worker_config(&self, folder: &Path, interpreter: Option<&str>) -> Result<WorkerConfig, AppError> {
        let version = interpreter.map(|version| self.runtime.short_version(version));
        let settings = match version {
            Some(version) => &self.settings.with_default(worker_config::RUNTIME_VERSION, &version),
            None => &self.settings,
        };
        let overrides = self.host.language_workers.override_for(self.runtime.as_str());
        let config = WorkerConfig::read(folder, settings, overrides, &HostPlatform::current())?;
        config.check_language(self.runtime.as_str())?;
        Ok(config)
    }

    /// Returns the packaged app of a project. It has its own functions, but the settings of the project.
    pub(crate) fn packaged_in(&self, folder: &Path) -> App {
        App { folder: folder.to_owned(), ..self.clone() }
    }

    /// Returns the arguments for the Java virtual machine that the settings name.
    pub(crate) fn java_arguments(&self) -> Vec<String> {
        let overrides = self.host.language_workers.override_for(WorkerRuntime::Java.as_str());
        let configured = overrides.map(|overrides| overrides.arguments.as_slice()).unwrap_or_default();
        let texts = self.settings.get(JAVA_OPTIONS).into_iter().chain(configured.iter().map(String::as_str));
        texts.flat_map(|text| worker_config::split(&self.settings.expand(text))).collect()
    }

    /// Returns the program to which requests are forwarded, if the app is a server of its own.
    pub fn self_hosted(&self) -> Option<&CustomHandlerConfig> {
        self.host.self_hosted(&self.runtime)
    }

    /// Returns whether a setting disables a function.
    pub fn is_disabled(&self, function: &str) -> bool {
        function_json::disabling_setting(function, &self.settings).is_some()
    }
}

/// Reads the object in a JSON file. Returns `None` if the file does not exist. Problems refer to
/// it as `name`.
fn read_object(path: &Path, name: &str) -> Result<Option<Map<String, Value>>, Problem> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Problem::new(format!("cannot be read: {error}")).in_file(name)),
    };
    let text = String::from_utf8(bytes).map_err(|_| {
        Problem::new("is not valid UTF-8").in_file(name).fix("save it with the encoding UTF-8")
    })?;
    match json::parse(&text) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(other) => {
            Err(Problem::new(format!("must contain a JSON object, but has {}", json::dotnet_kind(&other)))
                .in_file(name))
        }
        Err(error) => Err(Problem::new(format!("is not valid JSON: {error}")).in_file(name)),
    }
}

/// Returns the value, or an error if problems were reported.
fn unless_problems<T>(notes: ProblemCollector, value: T) -> Result<T, AppError> {
    notes.into_result(value).map_err(AppError)
}
