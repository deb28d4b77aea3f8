//! `worker.config.json`: how to start the worker of a language.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::language_workers::WorkerOverride;
use super::settings::{Settings, expand};
use super::{read_object, unless_problems, worker_profile};
use crate::json::{ConfigReader, ProblemCollector};
use crate::problem::{AppError, Problem};

const FILE: &str = "worker.config.json";
/// The setting with the version of the language. The path of a worker may contain it.
pub(super) const RUNTIME_VERSION: &str = "FUNCTIONS_WORKER_RUNTIME_VERSION";

/// The configuration of a worker. Its command line is `executable arguments… worker_path`, followed by the
/// arguments of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerConfig {
    /// The folder of the worker.
    pub directory: PathBuf,
    pub language: String,
    pub extensions: Vec<String>,
    /// A name to look up on the PATH, or a path. A relative path is resolved against the app's folder.
    pub executable: String,
    pub arguments: Vec<String>,
    /// The absolute path of the file to run. `None` if the worker is itself a program.
    pub worker_path: Option<PathBuf>,
    /// Whether the worker lists the functions. If not, they are read from `function.json` files.
    pub worker_indexing: bool,
    pub runtime_version: Option<String>,
    pub is_disabled: bool,
    pub process: ProcessOptions,
}

/// The section `processOptions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessOptions {
    pub process_count: u64,
    pub max_process_count: u64,
    pub process_startup_interval: Duration,
    /// The time from the start of the process to its first message.
    pub process_startup_timeout: Duration,
    pub initialization_timeout: Duration,
    pub environment_reload_timeout: Duration,
    pub process_restart_interval: Duration,
    pub process_shutdown_timeout: Duration,
}

impl Default for ProcessOptions {
    fn default() -> ProcessOptions {
        ProcessOptions {
            process_count: 1,
            max_process_count: 10,
            process_startup_interval: Duration::from_secs(10),
            process_startup_timeout: Duration::from_secs(60),
            initialization_timeout: Duration::from_secs(10),
            environment_reload_timeout: Duration::from_secs(30),
            process_restart_interval: Duration::from_secs(10),
            process_shutdown_timeout: Duration::from_secs(10),
        }
    }
}

/// Operating system and architecture, as `worker.config.json` spells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlatform {
    /// `LINUX`, `OSX` or `WINDOWS`.
    pub os: String,
    /// `X64`, `X86` or `Arm64`.
    pub architecture: String,
}

impl HostPlatform {
    /// Returns the platform of this process.
    pub fn current() -> HostPlatform {
        let os = if cfg!(target_os = "macos") {
            "OSX"
        } else if cfg!(windows) {
            "WINDOWS"
        } else {
            "LINUX"
        };
        let architecture = if cfg!(target_arch = "aarch64") {
            "Arm64"
        } else if cfg!(target_arch = "x86") {
            "X86"
        } else {
            "X64"
        };
        HostPlatform { os: os.to_owned(), architecture: architecture.to_owned() }
    }
}

impl WorkerConfig {
    /// Returns whether a folder has a `worker.config.json`.
    pub(crate) fn exists_in(directory: &Path) -> bool {
        directory.join(FILE).is_file()
    }

    /// Reads the `worker.config.json` in the folder of a worker.
    pub fn read(
        directory: &Path,
        settings: &Settings,
        overrides: Option<&WorkerOverride>,
        platform: &HostPlatform,
    ) -> Result<WorkerConfig, AppError> {
        let file = directory.join(FILE).display().to_string();
        let Some(mut config) = read_object(&directory.join(FILE), &file)? else {
            let problem = Problem::new("does not exist, so this folder is not a worker").in_file(file);
            return Err(problem
                .fix(
                    "pass --workers DIR, where DIR/python/worker.config.json exists, or set \
                     languageWorkers__<language>__workerDirectory to the folder of the worker",
                )
                .into());
        };
        worker_profile::apply(&mut config, settings, platform);
        let notes = ProblemCollector::on_file(file);
        let root = ConfigReader::new(&config, "", &notes);
        let description = root.object("description");
        let places = WorkerDescription { directory, settings, platform, description: &description };
        let language = description.required_text("language").unwrap_or_default();
        places.check_supported(&language);
        let worker = WorkerConfig {
            directory: places.directory(),
            extensions: description.texts("extensions"),
            executable: places.executable(overrides),
            arguments: places.arguments(overrides),
            worker_path: places.worker_path(),
            worker_indexing: description.flag("workerIndexing").unwrap_or(false),
            runtime_version: places.runtime_version(),
            is_disabled: description.flag("isDisabled").unwrap_or(false),
            process: process_options(&root.object("processOptions")),
            language,
        };
        unless_problems(notes, worker)
    }

    /// Rejects a worker of another language.
    pub(super) fn check_language(&self, language: &str) -> Result<(), AppError> {
        if self.language.eq_ignore_ascii_case(language) {
            return Ok(());
        }
        let message = format!("is {}, but the language of the app is {language}", self.language);
        let problem = Problem::new(message).in_file(self.directory.join(FILE).display().to_string());
        let fix = format!("pass the folder of a {language} worker, or a folder that has {language}/{FILE}");
        Err(problem.at("description.language").fix(fix).into())
    }
}

fn process_options(members: &ConfigReader<'_>) -> ProcessOptions {
    let default = ProcessOptions::default();
    let time = |name: &str, default: Duration| members.time(name).unwrap_or(default);
    ProcessOptions {
        process_count: members.whole_number("processCount").unwrap_or(default.process_count),
        max_process_count: members.whole_number("maxProcessCount").unwrap_or(default.max_process_count),
        process_startup_interval: time("processStartupInterval", default.process_startup_interval),
        process_startup_timeout: time("processStartupTimeout", default.process_startup_timeout),
        initialization_timeout: time("initializationTimeout", default.initialization_timeout),
        environment_reload_timeout: time("environmentReloadTimeout", default.environment_reload_timeout),
        process_restart_interval: time("processRestartInterval", default.process_restart_interval),
        process_shutdown_timeout: time("processShutdownTimeout", default.process_shutdown_timeout),
    }
}

/// The description of a worker and the values of its placeholders.
struct WorkerDescription<'a> {
    directory: &'a Path,
    settings: &'a Settings,
    platform: &'a HostPlatform,
    description: &'a ConfigReader<'a>,
}

impl WorkerDescription<'_> {
    /// Returns the worker's folder. The description may change it.
    fn directory(&self) -> PathBuf {
        let moved = self.description.text("workerDirectory").filter(|path| !path.trim().is_empty());
        moved.map_or_else(|| self.directory.to_owned(), |path| self.directory.join(self.fill_braces(&path)))
    }

    fn runtime_version(&self) -> Option<String> {
        let set = self.settings.get(RUNTIME_VERSION).filter(|version| !version.is_empty()).map(str::to_owned);
        set.or_else(|| self.description.text("defaultRuntimeVersion"))
    }

    fn executable(&self, overrides: Option<&WorkerOverride>) -> String {
        let overriding = overrides.and_then(|overrides| overrides.default_executable_path.clone());
        let Some(text) = overriding.or_else(|| self.description.required_text("defaultExecutablePath"))
        else {
            return String::new();
        };
        let mut unset = false;
        let path = self.expand_placeholders(&text, &mut |_| unset = true);
        // If JAVA_HOME is not set in `%JAVA_HOME%/bin/java`, the program may still be on the PATH.
        let name = path.rsplit(['/', '\\']).next().unwrap_or(&path).to_owned();
        if unset { name } else { path }
    }

    /// Splits the arguments. One element may contain several, separated by spaces, because the host of Azure
    /// joins all of them to one command line.
    fn arguments(&self, overrides: Option<&WorkerOverride>) -> Vec<String> {
        let added = overrides.map(|overrides| overrides.arguments.clone()).unwrap_or_default();
        let all = self.description.texts("arguments").into_iter().chain(added);
        all.flat_map(|text| split(&self.expand_placeholders(&text, &mut |_| {}))).collect()
    }

    fn worker_path(&self) -> Option<PathBuf> {
        let text = self.description.text("defaultWorkerPath").filter(|path| !path.trim().is_empty())?;
        let mut unset = Vec::new();
        let filled = self.expand_placeholders(&text, &mut |name| unset.push(name.to_owned()));
        let path = self.directory().join(&filled);
        if path.is_file() {
            return Some(path);
        }
        let fix = match unset.first() {
            Some(name) => format!("set {name}"),
            None => "check that the folder contains a complete worker for this language version".to_owned(),
        };
        self.description.report_problem(
            "defaultWorkerPath",
            format!("{} does not exist", path.display()),
            Some(&fix),
        );
        None
    }

    fn check_supported(&self, language: &str) {
        let version = self.runtime_version().unwrap_or_default();
        for (list, what, setting) in [
            ("supportedOperatingSystems", self.platform.os.as_str(), None),
            ("supportedArchitectures", self.platform.architecture.as_str(), None),
            ("supportedRuntimeVersions", version.as_str(), Some(RUNTIME_VERSION)),
        ] {
            let supported = self.description.texts(list);
            if !what.is_empty()
                && !supported.is_empty()
                && !supported.iter().any(|one| one.eq_ignore_ascii_case(what))
            {
                let fix = setting.map(|name| {
                    let versions = supported.join(", ");
                    format!("run the app with one of {versions}, or set {name} to one of them")
                });
                let message = format!("{what} is not supported for language {language}");
                self.description.report_problem(list, message, fix.as_deref());
            }
        }
    }

    /// Replaces `%NAME%` and placeholders in braces. A setting that does not exist is replaced by an empty
    /// string, and its name is passed to `unset`.
    fn expand_placeholders(&self, text: &str, unset: &mut dyn FnMut(&str)) -> String {
        let value = &mut |name: &str| {
            // Text with spaces between percent signs is not a name.
            if name.contains(char::is_whitespace) {
                return None;
            }
            let version =
                || name.eq_ignore_ascii_case(RUNTIME_VERSION).then(|| self.runtime_version()).flatten();
            let value = self.settings.get(name).map(str::to_owned).or_else(version);
            Some(value.unwrap_or_else(|| {
                unset(name);
                String::new()
            }))
        };
        self.fill_braces(&expand(text, value))
    }

    fn fill_braces(&self, text: &str) -> String {
        let placeholders = [
            ("{os}", self.platform.os.clone()),
            ("{architecture}", self.platform.architecture.clone()),
            // A .NET app that needs no installed .NET writes `{WorkerRoot}App`.
            ("{WorkerRoot}", format!("{}/", self.directory.display())),
            // This is last because the name of a folder may look like a placeholder.
            ("{workerDirectoryPath}", self.directory.display().to_string()),
        ];
        placeholders.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, &value))
    }
}

/// Splits a command line into words. Double quotes keep a word together.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for char in text.chars() {
        match char {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            char if char.is_whitespace() && !quoted => words.extend(word.take()),
            char => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_at_spaces_outside_quotes() {
        assert_eq!(split(" -X  no_debug_ranges"), ["-X", "no_debug_ranges"]);
        assert_eq!(split("-Da=\"b c\" \"\" d"), ["-Da=b c", "", "d"]);
        assert_eq!(split("  "), Vec::<String>::new());
    }
}
