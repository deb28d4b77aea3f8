//! Runs a Python interpreter to find out its path, its version and the modules that it can import.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::super::command::CommandLine;
use super::super::program::{RequiredProgram, VERSION_LIMIT};
use super::super::{Setup, SetupError};
use super::version::PythonVersion;

/// One script for all queries, because an interpreter takes tens of milliseconds to start. It only
/// searches for `azure.functions`, because importing it takes hundreds. It also runs on Python 2, to
/// report its version.
const QUESTION: &str = r#"
import sys
def found(name):
    try:
        import importlib.util
        return importlib.util.find_spec(name) is not None
    except Exception:
        return False
def tell(name, value):
    print("bindpost:%s=%s" % (name, value))
tell("version", "%d.%d.%d" % tuple(sys.version_info[:3]))
tell("level", (tuple(sys.version_info) + ("final", "final"))[3])
tell("implementation", getattr(getattr(sys, "implementation", None), "name", "cpython"))
tell("executable", sys.executable)
if sys.prefix != getattr(sys, "base_prefix", sys.prefix):
    tell("prefix", sys.prefix)
tell("functions", found("azure.functions"))
tell("pip", found("pip"))
"#;

/// Prints the arguments that are not the name of an installed distribution.
const MISSING: &str = r#"
import sys
from importlib.metadata import PackageNotFoundError, version
for name in sys.argv[1:]:
    try:
        version(name)
    except PackageNotFoundError:
        print("bindpost:missing=" + name)
"#;

/// An interpreter and its properties.
#[derive(Clone, Debug)]
pub(super) struct PythonInterpreter {
    pub(super) path: PathBuf,
    pub(super) version: String,
    /// Whether it is no pre-release.
    pub(super) is_release: bool,
    pub(super) is_cpython: bool,
    /// The virtual environment it belongs to.
    pub(super) virtual_env: Option<PathBuf>,
    /// Whether `azure.functions` can be imported.
    pub(super) has_functions: bool,
    pub(super) has_pip: bool,
    /// The value of `sys.executable`.
    pub(super) executable: Option<PathBuf>,
}

impl PythonInterpreter {
    /// Returns `pip install`, without prompts and without the check for newer versions of pip.
    pub(super) fn pip_install(&self, setup: &Setup<'_>) -> CommandLine {
        setup
            .command(&self.path)
            .args(&["-m", "pip", "install", "--disable-pip-version-check", "--no-input"])
            // With PIP_USER set, pip would fail in a virtual environment.
            .env("PIP_USER", "0")
    }

    /// Returns whether it lacks the library that an app needs.
    pub(super) fn lacks_library_of(&self, setup: &Setup<'_>) -> bool {
        setup.needs_library && !self.has_functions
    }

    /// Returns the numbers of the version.
    pub(super) fn numbers(&self) -> PythonVersion {
        PythonVersion::parse(&self.version).unwrap_or(PythonVersion { major: 0, minor: 0, micro: 0 })
    }

    /// Replaces the path by that of the program that really runs. The one on the PATH may be a shim of pyenv, which
    /// starts more slowly than Python itself.
    pub(super) fn without_shim(mut self) -> Self {
        if let Some(real) = self.executable.take().filter(|real| real.is_file()) {
            self.path = real;
        }
        self
    }

    /// Runs the interpreter again with more folders to import from.
    pub(super) async fn with_path(self, setup: &Setup<'_>, python_path: &OsStr) -> Result<Self, SetupError> {
        probe(setup, &self.path, Some(python_path)).await
    }
}

/// Queries an interpreter and rejects one that is too old.
pub(super) async fn probe_supported(setup: &Setup<'_>, path: &Path) -> Result<PythonInterpreter, SetupError> {
    let python =
        probe(setup, path, None).await.map_err(|error| RequiredProgram::Python.does_not_run(path, &error))?;
    RequiredProgram::Python.check_version(path, &python.version)?;
    Ok(python)
}

/// Returns the first of these packages that the interpreter does not have. If it cannot be queried, none is missing.
pub(super) async fn first_missing<'a>(
    setup: &Setup<'_>,
    python: &PythonInterpreter,
    packages: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let command = setup.command(&python.path).args(&["-c", MISSING]).env("PYTHONIOENCODING", "utf-8");
    let command = packages.fold(command, CommandLine::arg);
    let mut missing = None;
    let mut keep = |line: &str| {
        let name = line.strip_prefix("bindpost:missing=");
        missing = missing.take().or(name.map(str::to_owned));
    };
    let queried = command.run(VERSION_LIMIT, &mut keep).await;
    queried.ok().and(missing)
}

/// Queries an interpreter.
pub(super) async fn probe(
    setup: &Setup<'_>,
    path: &Path,
    python_path: Option<&OsStr>,
) -> Result<PythonInterpreter, SetupError> {
    let mut command = setup.command(path).args(&["-c", QUESTION]).env("PYTHONIOENCODING", "utf-8");
    if let Some(python_path) = python_path {
        command = command.env("PYTHONPATH", python_path);
    }
    let mut answers: Vec<(String, String)> = Vec::new();
    let mut keep = |line: &str| {
        if let Some((name, value)) = line.strip_prefix("bindpost:").and_then(|line| line.split_once('=')) {
            answers.push((name.to_owned(), value.to_owned()));
        }
    };
    let output = command.run(VERSION_LIMIT, &mut keep).await?;
    let answer = |name: &str| answers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let Some(version) = answer("version") else {
        let command = path.display().to_string();
        return Err(SetupError::CommandFailed { command, status: "no version in its output".into(), output });
    };
    Ok(PythonInterpreter {
        path: path.to_path_buf(),
        version,
        is_release: answer("level").is_none_or(|level| level == "final"),
        is_cpython: answer("implementation").is_none_or(|name| name == "cpython"),
        virtual_env: answer("prefix").map(PathBuf::from),
        has_functions: answer("functions").is_some_and(|answer| answer == "True"),
        has_pip: answer("pip").is_some_and(|answer| answer == "True"),
        executable: answer("executable").map(|path| PathBuf::from(OsString::from(path))),
    })
}
