//! Making an app ready to start: its interpreter, its packages, its build.
//!
//! [`prepare`] finds what the app's language needs, installs or builds what is missing when it may, and says
//! what the worker's process needs to know. It starts no worker and prints nothing: what it does goes to a
//! [`SetupProgress`], what went wrong is a [`SetupError`] with a fix.
//!
//! The environment is read through [`SetupOptions::environment`] only. Files are read and written without leaving
//! the thread: an app is prepared before anything is served.

mod command;
mod error;
mod java;
mod node;
mod program;
mod python;
mod stamp;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use self::error::SetupError;
pub use crate::app::WorkerRuntime;

use self::command::CommandLine;

/// One variable of the environment, by name.
pub type Lookup<'a> = &'a (dyn Fn(&str) -> Option<OsString> + Send + Sync);

/// What [`prepare`] may do, and where it looks.
#[derive(Clone)]
pub struct SetupOptions<'a> {
    /// Whether packages may be installed and the app built.
    pub install: bool,
    /// The interpreter to use, as the setting `languageWorkers__<language>__defaultExecutablePath` gives it: a
    /// name to find on the PATH, or a path, relative ones from the app folder.
    pub executable: Option<PathBuf>,
    /// Where variables such as `PATH`, `VIRTUAL_ENV`, `JAVA_HOME` and `NODE_ENV` are read.
    pub environment: Lookup<'a>,
    /// How long one install or build may take. 15 minutes.
    pub time_limit: Duration,
}

impl<'a> SetupOptions<'a> {
    /// Options that install what is missing and let the environment choose the interpreter.
    pub fn new(environment: Lookup<'a>) -> Self {
        Self { install: true, executable: None, environment, time_limit: Duration::from_secs(15 * 60) }
    }
}

/// Who watches the steps of [`prepare`], each of which may take minutes.
///
/// A step that fails is not done: the error of `prepare` ends it.
pub trait SetupProgress: Send + Sync {
    /// A step began; `step` is a sentence such as "Installing requirements.txt into .venv".
    fn started(&self, step: &str);
    /// The step's program wrote this line: no control characters, at most 4 KiB.
    fn output(&self, line: &str);
    /// The step succeeded.
    fn done(&self, step: &str, took: Duration);
}

/// An app that can be started.
#[derive(Clone, Debug, Default)]
pub struct PreparedApp {
    /// What runs the worker; nothing for a custom handler.
    pub interpreter: Option<Interpreter>,
    /// Variables to set for the worker's process, above those it inherits.
    pub environment: Vec<(String, OsString)>,
    /// What the user should know, though the app starts.
    pub notices: Vec<SetupNotice>,
}

/// A language's program, found and asked for its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// Where it is; absolute.
    pub path: PathBuf,
    /// Its version, such as `3.11.7`.
    pub version: String,
}

/// Something the user should know, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupNotice {
    /// What is the case, in one line.
    pub message: String,
    /// What to do or to run, in one line.
    pub fix: Option<String>,
}

/// Makes the app in the folder `app` ready to start.
///
/// Dropping the future ends whatever program it runs; nothing else does, as programs run in process groups of
/// their own, which Ctrl-C in a terminal does not reach. An interrupted or failed install is made again the
/// next time.
pub async fn prepare(
    runtime: WorkerRuntime,
    app: &Path,
    options: &SetupOptions<'_>,
    progress: &dyn SetupProgress,
) -> Result<PreparedApp, SetupError> {
    // Children run in the app folder, so every path handed to them has to hold from there.
    let app = std::path::absolute(app).map_err(SetupError::file(app, "found"))?;
    let mut setup = Setup { app, options, progress, prepared: PreparedApp::default() };
    match runtime {
        WorkerRuntime::Python => python::prepare(&mut setup).await?,
        WorkerRuntime::Node => node::prepare(&mut setup).await?,
        WorkerRuntime::Java => java::prepare(&mut setup).await?,
        // A custom handler is a program of the app's own; other workers bring what they need.
        WorkerRuntime::Custom | WorkerRuntime::Other(_) => {}
    }
    Ok(setup.prepared)
}

/// One run of [`prepare`].
struct Setup<'a> {
    app: PathBuf,
    options: &'a SetupOptions<'a>,
    progress: &'a dyn SetupProgress,
    prepared: PreparedApp,
}

impl Setup<'_> {
    fn variable(&self, name: &str) -> Option<OsString> {
        (self.options.environment)(name).filter(|value| !value.is_empty())
    }

    /// A command line that runs in the app folder, with the PATH that the lookup gives.
    fn command(&self, program: &Path) -> CommandLine {
        CommandLine::new(program, &self.app).path(self.variable("PATH"))
    }

    fn notice(&mut self, message: impl Into<String>, fix: impl Into<Option<String>>) {
        self.prepared.notices.push(SetupNotice { message: message.into(), fix: fix.into() });
    }

    fn set_interpreter(&mut self, path: PathBuf, version: String) {
        self.prepared.interpreter = Some(Interpreter { path, version });
    }

    /// Runs one visible step to its successful end.
    async fn step(&self, sentence: &str, command: &CommandLine) -> Result<(), SetupError> {
        self.progress.started(sentence);
        let begin = Instant::now();
        command.run(self.options.time_limit, &mut |line| self.progress.output(line)).await?;
        self.progress.done(sentence, begin.elapsed());
        Ok(())
    }

    /// A path as messages show it: below the app folder without the folder's name.
    fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.app).unwrap_or(path).display().to_string()
    }

    /// Whether a function is described by a `function.json`, which needs no library of the language.
    fn has_function_json(&self) -> bool {
        let Ok(entries) = fs::read_dir(&self.app) else { return false };
        entries.flatten().any(|entry| entry.path().join("function.json").is_file())
    }
}
