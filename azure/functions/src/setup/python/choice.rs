//! Chooses the interpreter of an app among those of the machine.
//!
//! The first of these that meets all wishes is taken: the version that a pin names, `python3` on the PATH, the
//! newest release that Azure runs, any other.

use super::super::Setup;
use super::super::error::SetupError;
use super::super::program::{OperatingSystem, RequiredProgram};
use super::candidates;
use super::interpreter::{self, PythonInterpreter};
use super::wishes::PythonWishes;

/// The names on the PATH whose interpreter is taken if nothing speaks against it.
const DEFAULT_NAMES: [&str; 2] = ["python3", "python"];
/// The minor versions that Azure runs.
const AZURE_VERSIONS: std::ops::RangeInclusive<u32> = 10..=14;

/// Returns the best interpreter of the machine for an app.
pub(super) async fn choose(
    setup: &Setup<'_>,
    wishes: &PythonWishes,
) -> Result<PythonInterpreter, SetupError> {
    let mut refused = None;
    let mut first = None;
    for path in DEFAULT_NAMES.iter().filter_map(|name| setup.find_on_path(name)) {
        match interpreter::probe_supported(setup, &path).await {
            Ok(python) => {
                first = Some(python.without_shim());
                break;
            }
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    if let Some(python) = &first
        && wishes.are_met_by(python)
        && (wishes.pins.is_empty() || wishes.pins.iter().any(|pin| pin.is_met_exactly_by(python.numbers())))
        && let Some(python) = first
    {
        return Ok(python);
    }
    let found = query_all(setup, first.as_ref()).await;
    if let Some(best) = best_of(&found, first.as_ref(), wishes) {
        return Ok(best.clone());
    }
    if found.is_empty() {
        let missing =
            || RequiredProgram::Python.missing(format!("{} on the PATH", DEFAULT_NAMES.join(" and ")));
        return Err(refused.unwrap_or_else(missing));
    }
    match refused {
        // There are only interpreters that are too old. The error of the first one names the minimum.
        Some(error) if wishes.reasons().is_empty() => Err(error),
        _ => Err(no_suitable(setup, wishes, &found)),
    }
}

/// Queries all interpreters. Those that do not run are left out: pyenv has a program for each name of a version, and
/// most of them fail.
async fn query_all(setup: &Setup<'_>, first: Option<&PythonInterpreter>) -> Vec<PythonInterpreter> {
    let mut found: Vec<PythonInterpreter> = first.cloned().into_iter().collect();
    for path in candidates::find_all(setup).await {
        let Ok(python) = interpreter::probe(setup, &path, None).await else { continue };
        let python = python.without_shim();
        let is_known = found.iter().any(|known| known.path == python.path);
        if !is_known && python.is_cpython && python.virtual_env.is_none() {
            found.push(python);
        }
    }
    found
}

fn best_of<'a>(
    found: &'a [PythonInterpreter],
    first: Option<&PythonInterpreter>,
    wishes: &PythonWishes,
) -> Option<&'a PythonInterpreter> {
    let fitting: Vec<&PythonInterpreter> = found.iter().filter(|python| wishes.are_met_by(python)).collect();
    let is_first = |python: &PythonInterpreter| first.is_some_and(|first| first.path == python.path);
    let rank = |python: &PythonInterpreter| {
        let version = python.numbers();
        let runs_in_azure = version.major == 3 && AZURE_VERSIONS.contains(&version.minor);
        (python.is_release, runs_in_azure, version)
    };
    let best = |accepts: &dyn Fn(&PythonInterpreter) -> bool| {
        let accepted = || fitting.iter().copied().filter(|python| accepts(python));
        // The last of equal ones would be the result of `max_by_key`, but the first one is nearer to the user.
        accepted()
            .find(|python| is_first(python))
            .or_else(|| accepted().rev().max_by_key(|python| rank(python)))
    };
    let exactly = wishes.pins.iter().find_map(|pin| best(&|python| pin.is_met_exactly_by(python.numbers())));
    let about = || wishes.pins.iter().find_map(|pin| best(&|python| pin.is_met_by(python.numbers())));
    exactly.or_else(about).or_else(|| best(&|_| true))
}

fn no_suitable(setup: &Setup<'_>, wishes: &PythonWishes, found: &[PythonInterpreter]) -> SetupError {
    let found = found.iter().map(|python| format!("{} ({})", python.version, python.path.display()));
    SetupError::NoSuitablePython {
        wishes: wishes.reasons().into_iter().map(str::to_owned).collect(),
        found: found.collect(),
        fix: install_fix(setup, &wishes.version_to_install()),
    }
}

/// Returns how to install a version of Python.
pub(super) fn install_fix(setup: &Setup<'_>, version: &str) -> String {
    if setup.find_on_path("uv").is_some() {
        return format!("uv python install {version}   (then start again)");
    }
    if setup.find_on_path("pyenv").is_some() {
        return format!("pyenv install {version}   (then start again)");
    }
    match OperatingSystem::current() {
        OperatingSystem::Macos => format!("brew install python@{version}   (then start again)"),
        OperatingSystem::Windows => {
            format!("winget install Python.Python.{version}   (then open a new terminal)")
        }
        OperatingSystem::Linux => format!(
            "install Python {version}: `uv python install {version}` with uv (https://docs.astral.sh/uv/), or the \
             packages python{version} and python{version}-venv of the distribution; then start again"
        ),
    }
}
