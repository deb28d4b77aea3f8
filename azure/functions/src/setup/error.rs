//! The errors of the preparation of an app, with suggested fixes.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

/// The number of lines of a failed program that its error shows.
const SHOWN_LINES: usize = 20;

/// Why an app cannot be prepared.
///
/// `Display` shows the problem. [`SetupError::fix`] returns a suggested fix, to be shown on its own line.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A required program was not found.
    #[error("{program} was not found: looked for {looked_for}")]
    Missing {
        /// The display name, such as `Python`.
        program: &'static str,
        /// The names and folders that were searched.
        looked_for: String,
        /// How to install the program.
        fix: String,
    },
    /// A program was found, but its version is too old to run the app.
    #[error("{} is {program} {version}, but {needed} or newer is required", path.display())]
    TooOld {
        /// The display name, such as `Python`.
        program: &'static str,
        /// The path of the program.
        path: PathBuf,
        /// The version that was found.
        version: String,
        /// The minimum version.
        needed: &'static str,
        /// How to install a newer version.
        fix: String,
    },
    /// A program was found, but it failed to print its version.
    #[error("{} does not run: {reason}", path.display())]
    DoesNotRun {
        /// The path of the program.
        path: PathBuf,
        /// Its last line of output, or why it could not be started.
        reason: String,
        /// How to reinstall it.
        fix: String,
    },
    /// The app's virtual environment has no working Python, often because its base interpreter was removed.
    #[error("the virtual environment {} is broken: {reason}", folder.display())]
    BrokenVirtualEnv {
        /// The virtual environment.
        folder: PathBuf,
        /// Why its Python does not work.
        reason: String,
        /// How to remove it.
        fix: String,
    },
    /// No interpreter of the machine has a version that the app accepts.
    #[error("no suitable Python was found: {}; found {}", wishes.join("; "), found.join(", "))]
    NoSuitablePython {
        /// What the app needs, and which file says so.
        wishes: Vec<String>,
        /// The versions that were found, with their paths.
        found: Vec<String>,
        /// How to install another one.
        fix: String,
    },
    /// No Java of the machine runs the classes of the app.
    #[error("no suitable Java was found: {reason}; found {}", found.join(", "))]
    NoSuitableJava {
        /// What the app needs, and which file says so.
        reason: String,
        /// The versions that were found, with their paths.
        found: Vec<String>,
        /// How to install another one.
        fix: String,
    },
    /// The machine has Java, but no compiler for the Java worker.
    #[error(
        "the Java worker of bindpost is compiled once, which needs a JDK; {} (Java {version}) has no compiler, and no \
         other JDK was found",
        java.display()
    )]
    NoJavaCompiler {
        /// The Java that would run the app.
        java: PathBuf,
        /// The version of that Java.
        version: String,
        /// How to install a JDK.
        fix: String,
    },
    /// The Python of the user's virtual environment does not fit the app. The user's environments are not deleted.
    #[error("the virtual environment {} has Python {version}, but {reason}", folder.display())]
    UnsuitableEnvironment {
        /// The virtual environment.
        folder: PathBuf,
        /// The version of its Python.
        version: String,
        /// What the app needs.
        reason: String,
        /// How to remove it.
        fix: String,
    },
    /// The folder for the new virtual environment contains other files.
    #[error("cannot create a virtual environment in {}: the folder contains other files", folder.display())]
    InTheWay {
        /// The folder.
        folder: PathBuf,
    },
    /// The Python installation lacks `venv` or `pip`. This is the default on Debian.
    #[error("{} has no {module} module", python.display())]
    NoModule {
        /// The interpreter.
        python: PathBuf,
        /// `venv` or `pip`.
        module: &'static str,
        /// How to install the module.
        fix: String,
    },
    /// A package that the app needs is not installed.
    #[error("{package} is not installed{place}")]
    NotInstalled {
        /// The import name of the package.
        package: &'static str,
        /// Where it was searched, beginning with a space. It may be empty.
        place: String,
        /// The command to run, or the line to add.
        fix: String,
    },
    /// No file matches the entry files of a Node app.
    #[error("no file matches {named_by}: {main}{after}")]
    NotBuilt {
        /// Where they are named: `"main" of package.json`.
        named_by: &'static str,
        /// The file or pattern.
        main: String,
        /// Empty, or a note that a build has just run.
        after: &'static str,
        /// The command to run, or what to correct.
        fix: String,
    },
    /// The folder contains the sources of a Java app. Only packaged apps can run.
    #[error("{} contains the sources of a Java app, not the packaged app", folder.display())]
    NotPackaged {
        /// The folder.
        folder: PathBuf,
        /// The command that packages it, or the folder to run.
        fix: String,
    },
    /// The program of a self-hosted app was not found.
    #[error(
        "host.json: customHandler.description.defaultExecutablePath: {program} was not found: looked for {looked_for}"
    )]
    NoServerProgram {
        /// The program, as `host.json` names it.
        program: String,
        /// The files and names that were searched.
        looked_for: String,
        /// How to install it, or what to write.
        fix: String,
    },
    /// The program of a self-hosted app is not executable.
    #[error("host.json: customHandler.description.defaultExecutablePath: {} is not executable", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// The command that makes it executable.
        fix: String,
    },
    /// The file that the program of a self-hosted app runs does not exist.
    #[error("host.json: customHandler.description.arguments: {file} does not exist{reason}")]
    NoServerFile {
        /// The file, as `host.json` names it.
        file: String,
        /// Empty, or that the app is not built.
        reason: &'static str,
        /// How to build it, or which folder to run.
        fix: String,
    },
    /// A program exited with a failure.
    #[error("`{command}` failed, {status}{}", last_lines(output))]
    CommandFailed {
        /// The command line.
        command: String,
        /// The exit status, such as `exit status: 1`.
        status: String,
        /// Its last lines of output.
        output: Vec<String>,
    },
    /// The lock file of npm does not match package.json, so `npm ci` installs nothing.
    #[error("package-lock.json does not match package.json:\n  {}", reasons.join("\n  "))]
    StaleLock {
        /// npm's lines, such as `Missing: left-pad@1.3.0 from lock file`.
        reasons: Vec<String>,
        /// The command that updates the lock file.
        fix: String,
    },
    /// A program exceeded its time limit and was killed.
    #[error("`{command}` timed out after {}{}", minutes(*limit), last_lines(output))]
    TimedOut {
        /// The command line.
        command: String,
        /// The time limit.
        limit: Duration,
        /// Its last lines of output.
        output: Vec<String>,
    },
    /// A program could not be started.
    #[error("`{command}` could not be started: {source}")]
    NotStarted {
        /// The command line.
        command: String,
        /// The reported error.
        source: io::Error,
    },
    /// A file or folder of the app could not be read, created, written or deleted.
    #[error("{} cannot be {action}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// `found`, `read`, `created`, `written`, `renamed` or `deleted`.
        action: &'static str,
        /// The reported error.
        source: io::Error,
    },
    /// The app's package.json or pyproject.toml is invalid.
    #[error("{} is not valid: {reason}", path.display())]
    InvalidManifest {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        reason: String,
    },
}

impl SetupError {
    /// Returns what to do or which command to run, in one line. `None` if the message is sufficient.
    pub fn fix(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Missing { fix, .. }
            | Self::TooOld { fix, .. }
            | Self::DoesNotRun { fix, .. }
            | Self::BrokenVirtualEnv { fix, .. }
            | Self::NoSuitablePython { fix, .. }
            | Self::NoSuitableJava { fix, .. }
            | Self::NoJavaCompiler { fix, .. }
            | Self::UnsuitableEnvironment { fix, .. }
            | Self::NoModule { fix, .. }
            | Self::NotInstalled { fix, .. }
            | Self::NotBuilt { fix, .. }
            | Self::NotPackaged { fix, .. }
            | Self::NoServerProgram { fix, .. }
            | Self::NotExecutable { fix, .. }
            | Self::NoServerFile { fix, .. }
            | Self::StaleLock { fix, .. } => Some(fix.into()),
            Self::InTheWay { folder } => {
                Some(format!("rename or delete {}, then start again", folder.display()).into())
            }
            Self::CommandFailed { command, .. } => {
                Some(format!("correct what it reports, then start again; manual command: {command}").into())
            }
            Self::TimedOut { command, .. } => {
                Some(format!("run it yourself, then start with --no-install: {command}").into())
            }
            Self::File { action: "created" | "written", .. } => {
                Some("make the app folder writable, or install by hand and start with --no-install".into())
            }
            Self::NotStarted { .. } | Self::File { .. } | Self::InvalidManifest { .. } => None,
        }
    }

    /// Returns a function for `map_err` that creates the error of an action on a file.
    pub(super) fn file(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { path, action, source }
    }
}

fn last_lines(output: &[String]) -> String {
    let shown = output.get(output.len().saturating_sub(SHOWN_LINES)..).unwrap_or(output);
    if shown.is_empty() { String::new() } else { format!("; its last lines:\n  {}", shown.join("\n  ")) }
}

fn minutes(limit: Duration) -> String {
    match limit.as_secs() {
        whole if whole >= 60 && whole % 60 == 0 => format!("{} minutes", whole / 60),
        _ => format!("{:.0?}", limit),
    }
}
