//! [`App`]: a function app on disk.
//!
//! This module parses the files of an app: `host.json`, `local.settings.json`, `function.json` and
//! `worker.config.json`. It starts no process, and only [`settings`] reads the environment. A mistake in one
//! function disables that function only. A mistake in the app's own files is an [`AppError`].

pub mod function_json;
pub mod host_json;
pub mod language_workers;
pub mod local_settings;
pub mod log_level;
mod overrides;
pub mod runtime;
pub mod settings;
pub mod worker_config;
mod worker_profile;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

pub use function_json::FunctionFolders;
pub use host_json::{CustomHandlerConfig, HostConfig, McpConfig, WebhookAuthorization};
pub use language_workers::{LanguageWorkers, WorkerOverride};
pub use local_settings::LocalHostConfig;
pub use log_level::{LogLevel, LogLevels};
pub use runtime::WorkerRuntime;
pub use settings::Settings;
pub use worker_config::{HostPlatform, ProcessOptions, WorkerConfig};

use crate::host::file_watch::ConfigSnapshot;
use crate::json::{self, ProblemCollector};
use crate::problem::{AppError, Problem};

/// A function app: its folder and its parsed files.
#[derive(Clone, Debug)]
pub struct App {
    /// The absolute path of the folder.
    pub folder: PathBuf,
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
        Ok(App { folder, host, settings, local, runtime, read_first })
    }

    /// Reads the functions that `function.json` files describe. Workers that index do not need these files.
    pub fn function_folders(&self) -> FunctionFolders {
        function_json::read(self)
    }

    /// Returns the worker that the settings name for the app's language, if any.
    pub fn worker_config(&self) -> Result<Option<WorkerConfig>, AppError> {
        let language = self.runtime.as_str();
        let Some(directory) = self.host.language_workers.directory(language, &self.folder) else {
            return Ok(None);
        };
        let overrides = self.host.language_workers.override_for(language);
        WorkerConfig::read(&directory, &self.settings, overrides, &HostPlatform::current()).map(Some)
    }

    /// Returns the worker for the app's language. `folder` contains one folder for each language, or is
    /// itself the folder of the worker.
    pub fn worker_config_in(&self, folder: &Path) -> Result<WorkerConfig, AppError> {
        let language = self.runtime.as_str();
        let own = folder.join(language);
        let directory = if own.is_dir() { own } else { folder.to_owned() };
        let directory = std::path::absolute(&directory).unwrap_or(directory);
        let overrides = self.host.language_workers.override_for(language);
        WorkerConfig::read(&directory, &self.settings, overrides, &HostPlatform::current())
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
