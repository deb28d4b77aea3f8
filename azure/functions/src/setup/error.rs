//! The errors of the preparation of an app, with suggested fixes.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

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
    /// No file matches `main` of package.json.
    #[error("no file matches \"main\" of package.json: {main}{after}")]
    NotBuilt {
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
        /// `found`, `read`, `created`, `written` or `deleted`.
        action: &'static str,
        /// The reported error.
        source: io::Error,
    },
    /// The app's package.json is invalid.
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
            | Self::NoModule { fix, .. }
            | Self::NotInstalled { fix, .. }
            | Self::NotBuilt { fix, .. }
            | Self::NotPackaged { fix, .. } => Some(fix.into()),
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
    if output.is_empty() { String::new() } else { format!("; its last lines:\n  {}", output.join("\n  ")) }
}

fn minutes(limit: Duration) -> String {
    match limit.as_secs() {
        whole if whole >= 60 && whole % 60 == 0 => format!("{} minutes", whole / 60),
        _ => format!("{:.0?}", limit),
    }
}
