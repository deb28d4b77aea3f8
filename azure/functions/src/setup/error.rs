//! Why an app cannot be made ready, and what its owner can do about it.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

/// Why an app cannot be made ready.
///
/// The text is the problem; [`SetupError::suggest_uri_fix`] is the way out, for a line of its own.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A program is not where programs are looked for.
    #[error("{program} was not found: looked for {looked_for}")]
    Missing {
        /// What people call it, such as `PythonInterpreter`.
        program: &'static str,
        /// Names and places.
        looked_for: String,
        /// How to install it.
        fix: String,
    },
    /// A program is there, of a version that cannot run the app.
    #[error("{} is {program} {version}, and {needed} or newer is needed", path.display())]
    TooOld {
        /// What people call it.
        program: &'static str,
        /// Where it is.
        path: PathBuf,
        /// The version it has.
        version: String,
        /// The oldest version that will do.
        needed: &'static str,
        /// How to get a newer one.
        fix: String,
    },
    /// A program is there and does not say its version.
    #[error("{} does not run: {reason}", path.display())]
    DoesNotRun {
        /// Where it is.
        path: PathBuf,
        /// Its last line, or why it could not be started.
        reason: String,
        /// How to install it anew.
        fix: String,
    },
    /// The app's virtual environment has no working Python, often because the one it was made with is gone.
    #[error("the virtual environment {} is broken: {reason}", folder.display())]
    BrokenVirtualEnv {
        /// The virtual environment.
        folder: PathBuf,
        /// What its Python said.
        reason: String,
        /// How to get rid of it.
        fix: String,
    },
    /// The folder that would become the virtual environment holds something else.
    #[error("{} is in the way: it holds files and is no virtual environment", folder.display())]
    InTheWay {
        /// The folder.
        folder: PathBuf,
    },
    /// Python came without what makes virtual environments or installs packages, as on a bare Debian.
    #[error("{} has no {module} module", python.display())]
    NoModule {
        /// The interpreter.
        python: PathBuf,
        /// `venv` or `pip`.
        module: &'static str,
        /// How to add it.
        fix: String,
    },
    /// A package that the app needs is not installed.
    #[error("{package} is not installed{place}")]
    NotInstalled {
        /// The package, as it is imported.
        package: &'static str,
        /// Where it was looked for, beginning with a space; may be empty.
        place: String,
        /// The exact command, or the line to add.
        fix: String,
    },
    /// The files that package.json names as `main` do not exist.
    #[error("no file matches \"main\" of package.json: {main}{after}")]
    NotBuilt {
        /// The file or pattern.
        main: String,
        /// Empty, or that a build has just run.
        after: &'static str,
        /// The exact command, or what to correct.
        fix: String,
    },
    /// The folder holds the sources of a Java app, which is run as packaged.
    #[error("{} holds the sources of a Java app, not the packaged app", folder.display())]
    NotPackaged {
        /// The folder.
        folder: PathBuf,
        /// The command that packages it, or the folder to run.
        fix: String,
    },
    /// A program ended with a failure.
    #[error("`{command}` failed, {status}{}", last_lines(output))]
    CommandFailed {
        /// The command line.
        command: String,
        /// How it ended, such as `exit status: 1`.
        status: String,
        /// Its last lines.
        output: Vec<String>,
    },
    /// A program took too long and was ended.
    #[error("`{command}` was ended after {}{}", minutes(*limit), last_lines(output))]
    TimedOut {
        /// The command line.
        command: String,
        /// How long it was given.
        limit: Duration,
        /// Its last lines.
        output: Vec<String>,
    },
    /// A program could not be started.
    #[error("`{command}` could not be started: {source}")]
    NotStarted {
        /// The command line.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// A file or folder of the app could not be used.
    #[error("{} cannot be {action}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// `read`, `created`, `written`, `deleted`.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The app's package.json is not what npm would accept.
    #[error("{} is not valid: {reason}", path.display())]
    InvalidManifest {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        reason: String,
    },
}

impl SetupError {
    /// What to do or to run, in one line. None if the text says all there is.
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
                Some(format!("correct what it reports, then start again; by hand: {command}").into())
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

    /// For `map_err`: the error of an action on a file.
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
