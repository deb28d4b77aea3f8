//! Prepares an app for its start: interpreter, packages and build.
//!
//! [`prepare`] is for apps with functions, [`prepare_server`] for apps that are servers of their own. They find the programs that the app's language needs. If the options allow it, it also installs
//! missing packages and builds the app. It returns the interpreter and the environment variables for the
//! worker's process. It starts no worker and prints nothing. Progress is reported to a [`SetupProgress`]. A
//! failure is a [`SetupError`] with a fix.
//!
//! The environment is read only through [`SetupOptions::environment`]. File access blocks the thread, because
//! an app is prepared before anything is served.

mod command;
mod error;
mod java;
mod node;
mod program;
mod python;
mod server;
mod stamp;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use self::error::SetupError;
pub use self::java::JavaWorkerClasses;
pub use self::server::{PreparedServer, ServerCommand, prepare_server};
pub use crate::app::WorkerRuntime;

use self::command::CommandLine;
use self::program::ProgramVersion;

/// Looks up an environment variable by name.
pub type Lookup<'a> = &'a (dyn Fn(&str) -> Option<OsString> + Send + Sync);

/// Options of [`prepare`].
#[derive(Clone)]
pub struct SetupOptions<'a> {
    /// Whether packages may be installed and the app built.
    pub install: bool,
    /// The interpreter to use, from the setting `languageWorkers__<language>__defaultExecutablePath`. It is a
    /// name to look up on the PATH, or a path. A relative path is resolved against the app folder.
    pub executable: Option<PathBuf>,
    /// The source of variables such as `PATH`, `HOME`, `VIRTUAL_ENV`, `JAVA_HOME` and `NODE_ENV`.
    pub environment: Lookup<'a>,
    /// Whether our own worker runs the app. The one for Java is then compiled, if it was not before.
    pub built_in_worker: bool,
    /// The folders whose subfolders are installations of Java. Default: those in which the system installs it.
    pub java_folders: Vec<PathBuf>,
    /// How long one install or build may take. Default: 15 minutes.
    pub time_limit: Duration,
}

impl<'a> SetupOptions<'a> {
    /// Creates options that install what is missing and find the interpreter in the environment.
    pub fn new(environment: Lookup<'a>) -> Self {
        Self {
            install: true,
            executable: None,
            environment,
            built_in_worker: true,
            java_folders: java::system_folders::of_system(),
            time_limit: Duration::from_secs(15 * 60),
        }
    }
}

/// Receives the progress of [`prepare`]. A step may take minutes.
///
/// [`SetupProgress::done`] is not called for a step that fails. `prepare` then returns the error, or goes another way.
pub trait SetupProgress: Send + Sync {
    /// A step began. `step` is a sentence such as "Installing requirements.txt into .venv".
    fn started(&self, step: &str);
    /// The step's program wrote this line. It has no control characters and at most 4 KiB.
    fn output(&self, line: &str);
    /// The step succeeded.
    fn done(&self, step: &str, took: Duration);
}

/// An app that can be started.
#[derive(Clone, Debug, Default)]
pub struct PreparedApp {
    /// The program that runs the worker. `None` for a custom handler.
    pub interpreter: Option<Interpreter>,
    /// Where the interpreter comes from, and why it was chosen. `None` if there was no choice.
    pub interpreter_origin: Option<String>,
    /// Variables to set for the worker's process, in addition to those it inherits.
    pub environment: Vec<(String, OsString)>,
    /// The folder of the packaged app, if the app folder is a project of a build tool.
    pub packaged: Option<PathBuf>,
    /// Our compiled Java worker, if it runs the app.
    pub java_worker: Option<JavaWorkerClasses>,
    /// Problems to report to the user that do not prevent the start.
    pub notices: Vec<SetupNotice>,
}

/// The interpreter of a language, with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The absolute path.
    pub path: PathBuf,
    /// The version, such as `3.11.7`.
    pub version: String,
}

impl Interpreter {
    /// Returns the first number of the version. A version that cannot be parsed may be newer than all others.
    pub fn major(&self) -> u32 {
        ProgramVersion::parse(&self.version).map_or(u32::MAX, |version| version.major)
    }
}

/// A message for the user, with a suggested fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupNotice {
    /// The problem, in one line.
    pub message: String,
    /// What to do or which command to run, in one line.
    pub fix: Option<String>,
}

/// Prepares the app in the folder `app` for its start.
///
/// Dropping the future kills the program that is running. Ctrl-C in a terminal does not reach it, because
/// programs run in their own process groups. An interrupted or failed install is repeated the next time.
pub async fn prepare(
    runtime: WorkerRuntime,
    app: &Path,
    options: &SetupOptions<'_>,
    progress: &dyn SetupProgress,
) -> Result<PreparedApp, SetupError> {
    // Child processes run in the app folder, so the paths passed to them must be absolute.
    let app = std::path::absolute(app).map_err(SetupError::file(app, "found"))?;
    let mut setup = Setup { app, options, progress, needs_library: true, prepared: PreparedApp::default() };
    match runtime {
        WorkerRuntime::Python => python::prepare(&mut setup).await?,
        WorkerRuntime::Node => node::prepare(&mut setup).await?,
        WorkerRuntime::Java => java::prepare(&mut setup).await?,
        // A custom handler is a program of the app. Workers of other languages need no preparation.
        WorkerRuntime::Custom | WorkerRuntime::Other(_) => {}
    }
    Ok(setup.prepared)
}

/// One run of [`prepare`].
struct Setup<'a> {
    app: PathBuf,
    options: &'a SetupOptions<'a>,
    progress: &'a dyn SetupProgress,
    /// Whether the app needs the library of the language: `azure.functions` or `@azure/functions`. A self-hosted app does
    /// not.
    needs_library: bool,
    prepared: PreparedApp,
}

impl Setup<'_> {
    fn variable(&self, name: &str) -> Option<OsString> {
        (self.options.environment)(name).filter(|value| !value.is_empty())
    }

    /// Returns a command line that runs in the app folder, with the PATH of the options' environment.
    fn command(&self, program: &Path) -> CommandLine {
        CommandLine::new(program, &self.app).path(self.variable("PATH"))
    }

    fn notice(&mut self, message: impl Into<String>, fix: impl Into<Option<String>>) {
        self.prepared.notices.push(SetupNotice { message: message.into(), fix: fix.into() });
    }

    fn set_interpreter(&mut self, path: PathBuf, version: String) {
        self.prepared.interpreter = Some(Interpreter { path, version });
    }

    /// Runs one step and reports its progress.
    async fn step(&self, sentence: &str, command: &CommandLine) -> Result<(), SetupError> {
        self.progress.started(sentence);
        let begin = Instant::now();
        command.run(self.options.time_limit, &mut |line| self.progress.output(line)).await?;
        self.progress.done(sentence, begin.elapsed());
        Ok(())
    }

    /// Returns a path for messages. A path below the app folder is shown relative to it.
    fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.app).unwrap_or(path).display().to_string()
    }

    /// Returns whether a `function.json` describes a function. Such a function does not need
    /// the language's library.
    fn has_function_json(&self) -> bool {
        let Ok(entries) = fs::read_dir(&self.app) else { return false };
        entries.flatten().any(|entry| entry.path().join("function.json").is_file())
    }
}
