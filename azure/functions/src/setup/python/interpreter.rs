//! Runs a Python interpreter to find out its path, its version and the modules that it can import.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::super::command::CommandLine;
use super::super::program::{RequiredProgram, VERSION_LIMIT};
use super::super::{Setup, SetupError};

/// The names to look up on the PATH, in order of preference.
const NAMES: [&str; 2] = ["python3", "python"];

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
tell("executable", sys.executable)
if sys.prefix != getattr(sys, "base_prefix", sys.prefix):
    tell("prefix", sys.prefix)
tell("functions", found("azure.functions"))
tell("pip", found("pip"))
"#;

/// An interpreter and its properties.
#[derive(Clone, Debug)]
pub(super) struct PythonInterpreter {
    pub(super) path: PathBuf,
    pub(super) version: String,
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

    /// Runs the interpreter again with more folders to import from.
    pub(super) async fn with_path(self, setup: &Setup<'_>, python_path: &OsStr) -> Result<Self, SetupError> {
        probe(setup, &self.path, Some(python_path)).await
    }
}

/// Returns the first Python on the PATH that is new enough.
pub(super) async fn find_system_python(setup: &Setup<'_>) -> Result<PythonInterpreter, SetupError> {
    let mut refused = None;
    for path in NAMES.iter().filter_map(|name| setup.find_on_path(name)) {
        match probe_supported(setup, &path).await {
            Ok(mut python) => {
                // The program on the PATH may be a shim of pyenv, which starts more slowly
                // than Python itself.
                if let Some(real) = python.executable.take().filter(|real| real.is_file()) {
                    python.path = real;
                }
                return Ok(python);
            }
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused
        .unwrap_or_else(|| RequiredProgram::Python.missing(format!("{} on the PATH", NAMES.join(" and ")))))
}

/// Queries an interpreter and rejects one that is too old.
pub(super) async fn probe_supported(setup: &Setup<'_>, path: &Path) -> Result<PythonInterpreter, SetupError> {
    let python =
        probe(setup, path, None).await.map_err(|error| RequiredProgram::Python.does_not_run(path, &error))?;
    RequiredProgram::Python.check_version(path, &python.version)?;
    Ok(python)
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
        virtual_env: answer("prefix").map(PathBuf::from),
        has_functions: answer("functions").is_some_and(|answer| answer == "True"),
        has_pip: answer("pip").is_some_and(|answer| answer == "True"),
        executable: answer("executable").map(|path| PathBuf::from(OsString::from(path))),
    })
}
