//! [`App`]: a function app as it lies on disk.
//!
//! Here files become values: `host.json`, `local.settings.json`, `function.json`, `worker.config.json`.
//! Nothing is started, and only [`settings`] reads the environment. What a mistake in one function breaks is
//! that function; a mistake in the app's own files is an [`AppError`].

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

use crate::json::{self, ProblemCollector};
use crate::problem::{AppError, Problem};
use crate::watch::ConfigSnapshot;

/// A function app: its folder and what its files say.
#[derive(Clone, Debug)]
pub struct App {
    /// The folder, absolute.
    pub folder: PathBuf,
    /// `host.json`, settings applied.
    pub host: HostConfig,
    /// App settings: the environment, then `local.settings.json`.
    pub settings: Settings,
    /// What `local.settings.json` says of the host.
    pub local: LocalHostConfig,
    /// What runs the functions.
    pub runtime: WorkerRuntime,
    /// How `host.json` and `local.settings.json` were when they were read.
    pub(crate) read_first: ConfigSnapshot,
}

impl App {
    /// Reads the app in a folder; [`settings::process_environment`] is the real environment.
    pub fn open(
        folder: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<App, AppError> {
        let not_there = |error| {
            let problem = Problem::new(format!("cannot open the folder: {error}"))
                .in_file(folder.display().to_string());
            problem.fix("give the folder that holds the app's host.json")
        };
        let folder =
            std::path::absolute(folder).and_then(|path| path.metadata().map(|_| path)).map_err(not_there)?;
        if !folder.is_dir() {
            let problem = Problem::new("is a file").in_file(folder.display().to_string());
            return Err(problem.fix("give the folder that holds the app's host.json").into());
        }
        let read_first = ConfigSnapshot::capture(&folder);
        let (values, local) = local_settings::read(&folder)?;
        let settings = Settings::new(environment, values);
        let host = HostConfig::read(&folder, &settings)?;
        let runtime = WorkerRuntime::detect(&folder, &host, &settings)?;
        Ok(App { folder, host, settings, local, runtime, read_first })
    }

    /// The functions that `function.json` files describe. Workers that index by themselves do not need them.
    pub fn function_folders(&self) -> FunctionFolders {
        function_json::read(self)
    }

    /// The worker for the app's language that settings name, if they name one.
    pub fn worker_config(&self) -> Result<Option<WorkerConfig>, AppError> {
        let language = self.runtime.as_str();
        let Some(directory) = self.host.language_workers.directory(language, &self.folder) else {
            return Ok(None);
        };
        let overrides = self.host.language_workers.override_for(language);
        WorkerConfig::read(&directory, &self.settings, overrides, &HostPlatform::current()).map(Some)
    }

    /// The worker for the app's language in a folder of workers, or the one that the folder is.
    pub fn worker_config_in(&self, folder: &Path) -> Result<WorkerConfig, AppError> {
        let language = self.runtime.as_str();
        let own = folder.join(language);
        let directory = if own.is_dir() { own } else { folder.to_owned() };
        let directory = std::path::absolute(&directory).unwrap_or(directory);
        let overrides = self.host.language_workers.override_for(language);
        WorkerConfig::read(&directory, &self.settings, overrides, &HostPlatform::current())
    }

    /// Whether a setting switches a function off.
    pub fn is_disabled(&self, function: &str) -> bool {
        function_json::disabling_setting(function, &self.settings).is_some()
    }
}

/// The object in a JSON file; nothing if there is no such file. `name` is what problems call it.
fn read_object(path: &Path, name: &str) -> Result<Option<Map<String, Value>>, Problem> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Problem::new(format!("cannot be read: {error}")).in_file(name)),
    };
    let text = String::from_utf8(bytes).map_err(|_| {
        Problem::new("is not text in UTF-8").in_file(name).fix("save it with the encoding UTF-8")
    })?;
    match json::parse(&text) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(other) => {
            Err(Problem::new(format!("must hold a JSON object, and holds {}", json::dotnet_kind(&other)))
                .in_file(name))
        }
        Err(error) => Err(Problem::new(format!("is no JSON: {error}")).in_file(name)),
    }
}

/// What was read, unless problems were noted.
fn unless_problems<T>(notes: ProblemCollector, value: T) -> Result<T, AppError> {
    notes.into_result(value).map_err(AppError)
}
