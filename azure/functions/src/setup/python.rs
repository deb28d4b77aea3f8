//! Prepares a Python app: its interpreter, and its packages.
//!
//! The interpreter is the first of these that applies:
//!
//! 1. the interpreter that the settings name,
//! 2. a virtual environment in the app folder,
//! 3. the active virtual environment,
//! 4. one of the machine's interpreters, if the app was deployed with its packages or lists none,
//! 5. a new virtual environment, `.venv`.
//!
//! For 4 and 5, `choice.rs` chooses among the interpreters that `candidates.rs` finds, by what the app's files say
//! about the version (`wishes.rs`). `dependencies.rs` has the files that list packages. `install.rs` installs them.
//!
//! A virtual environment of the user is never deleted, and not changed if it contains `azure.functions`. A self-hosted
//! app needs no such library: its own packages count instead.

mod candidates;
mod choice;
mod dependencies;
mod deployed;
mod install;
mod interpreter;
mod pip_report;
mod pyproject;
mod requirements;
mod uv_lock;
mod version;
mod virtual_env;
mod wishes;

use std::ffi::OsString;

use self::dependencies::AppDependencies;
use self::deployed::DeployedPackages;
use self::install::ensure_packages;
use self::interpreter::PythonInterpreter;
use self::pyproject::PyProject;
use self::virtual_env::VirtualEnv;
use self::wishes::PythonWishes;
use super::command::quote_argument;
use super::program::RequiredProgram;
use super::{Setup, SetupError};

/// The setting that names the interpreter.
const EXECUTABLE_SETTING: &str = "languageWorkers__python__defaultExecutablePath";

pub(super) async fn prepare(setup: &mut Setup<'_>) -> Result<(), SetupError> {
    let project = read_project(setup)?;
    let dependencies = AppDependencies::read(setup, project.as_ref())?;
    let wishes = PythonWishes::read(&setup.app, project.as_ref(), dependencies.as_ref());
    let dependencies = dependencies.as_ref();

    if let Some(named) = setup.named_executable(RequiredProgram::Python) {
        let python = interpreter::probe_supported(setup, &named?).await?;
        if let Some(reason) = wishes.unmet_by(python.numbers()) {
            let message = format!("{} is Python {}, but {reason}", python.path.display(), python.version);
            setup.notice(message, format!("change or remove the setting {EXECUTABLE_SETTING}"));
        }
        let python = ensure_packages(setup, python, dependencies).await?;
        use_interpreter(setup, python, EXECUTABLE_SETTING.to_owned(), &wishes);
        return Ok(());
    }
    if let Some(found) = virtual_env::find(setup) {
        let (environment, python) = suitable(setup, found, &wishes).await?;
        return in_virtual_env(setup, environment, python, dependencies, wishes).await;
    }
    if let Some(packages) = deployed::find(&setup.app) {
        return use_deployed(setup, &packages, wishes).await;
    }
    let chosen = choice::choose(setup, &wishes).await;
    if dependencies.is_some() && setup.options.install {
        let (environment, python) = create(setup, chosen, &wishes).await?;
        return in_virtual_env(setup, environment, python, dependencies, wishes).await;
    }
    let python = chosen?;
    tell_unmet_pin(setup, &python, &wishes);
    let python = ensure_packages(setup, python, dependencies).await?;
    let place = python.path.display().to_string();
    use_interpreter(setup, python, place, &wishes);
    Ok(())
}

/// Reads pyproject.toml. If it is invalid, that matters only to apps that list their packages there.
fn read_project(setup: &mut Setup<'_>) -> Result<Option<PyProject>, SetupError> {
    match PyProject::read(&setup.app) {
        Err(error) if setup.app.join(requirements::FILE).is_file() => {
            setup.notice(format!("{error}; the file is ignored"), None);
            Ok(None)
        }
        read => read,
    }
}

/// Returns the interpreter of a virtual environment. One of ours is created again if it does not work, or if another
/// interpreter fits the app better.
async fn suitable(
    setup: &mut Setup<'_>,
    found: VirtualEnv,
    wishes: &PythonWishes,
) -> Result<(VirtualEnv, PythonInterpreter), SetupError> {
    let may_replace = found.is_ours() && setup.options.install;
    let python = match found.python(setup).await {
        Ok(python) => python,
        Err(broken) if may_replace => {
            let chosen = choice::choose(setup, wishes).await;
            return replace(setup, &found, chosen, wishes, broken.to_string()).await;
        }
        Err(broken) => return Err(broken),
    };
    let version = python.numbers();
    let unmet_wish = wishes.unmet_by(version);
    let Some(reason) = unmet_wish.or_else(|| Some(&wishes.unmet_pin(version)?.reason)) else {
        return Ok((found, python));
    };
    let unsuitable = found.unsuitable(&python.version, reason);
    if may_replace {
        let chosen = choice::choose(setup, wishes).await;
        let is_other =
            chosen.as_ref().map_or(unmet_wish.is_some(), |other| !other.numbers().has_minor_of(version));
        if is_other {
            return replace(setup, &found, chosen, wishes, unsuitable.to_string()).await;
        }
        tell_unmet_pin(setup, &python, wishes);
        return Ok((found, python));
    }
    if unmet_wish.is_some() && setup.options.install && python.lacks_library_of(setup) {
        return Err(unsuitable);
    }
    setup.notice(unsuitable.to_string(), found.suggested_fix());
    Ok((found, python))
}

/// Creates a virtual environment of ours again. Without an interpreter for it, the old one stays.
async fn replace(
    setup: &mut Setup<'_>,
    old: &VirtualEnv,
    chosen: Result<PythonInterpreter, SetupError>,
    wishes: &PythonWishes,
    why: String,
) -> Result<(VirtualEnv, PythonInterpreter), SetupError> {
    let has_uv = setup.find_on_path("uv").is_some();
    let chosen = match chosen {
        Err(error) if !has_uv => return Err(error),
        chosen => chosen,
    };
    old.delete()?;
    setup.notice(format!("{why}; it was created again"), None);
    create(setup, chosen, wishes).await
}

/// Creates `.venv` with the chosen interpreter. If none fits, uv may download one.
async fn create(
    setup: &mut Setup<'_>,
    chosen: Result<PythonInterpreter, SetupError>,
    wishes: &PythonWishes,
) -> Result<(VirtualEnv, PythonInterpreter), SetupError> {
    let is_best = chosen.as_ref().is_ok_and(|python| wishes.unmet_pin(python.numbers()).is_none());
    if !is_best && let Some(uv) = setup.find_on_path("uv") {
        let version = wishes.version_to_install();
        match VirtualEnv::create_with_uv(setup, &uv, &version).await {
            Ok(made) => {
                let python = made.python(setup).await?;
                return Ok((made, python));
            }
            Err(error @ SetupError::File { .. } | error @ SetupError::InTheWay { .. }) => return Err(error),
            // uv has no such version, or no network. Its output has been shown.
            Err(_) => {}
        }
    }
    let base = chosen?;
    tell_unmet_pin(setup, &base, wishes);
    let made = VirtualEnv::create(setup, &base).await?;
    let python = made.python(setup).await?;
    Ok((made, python))
}

/// Installs the packages into a virtual environment. If pip reports that they need another Python, the environment is
/// created once again, if it is ours.
async fn in_virtual_env(
    setup: &mut Setup<'_>,
    mut environment: VirtualEnv,
    python: PythonInterpreter,
    dependencies: Option<&AppDependencies>,
    mut wishes: PythonWishes,
) -> Result<(), SetupError> {
    let version = python.numbers();
    let python = match ensure_packages(setup, python, dependencies).await {
        Ok(python) => python,
        Err(error) => {
            let SetupError::CommandFailed { output, .. } = &error else { return Err(error) };
            let Some(wish) = pip_report::needed_python(output) else { return Err(error) };
            let unsuitable = environment.unsuitable(&version.to_string(), &wish.reason);
            if !environment.is_ours() {
                return Err(unsuitable);
            }
            wishes.add(wish);
            let chosen = choice::choose(setup, &wishes).await;
            if chosen.as_ref().is_ok_and(|other| other.numbers().has_minor_of(version)) {
                return Err(error);
            }
            let (again, python) =
                replace(setup, &environment, chosen, &wishes, unsuitable.to_string()).await?;
            environment = again;
            ensure_packages(setup, python, dependencies).await?
        }
    };
    let place = environment.place(setup);
    use_interpreter(setup, python, place, &wishes);
    Ok(())
}

/// Uses the packages that the app was deployed with.
async fn use_deployed(
    setup: &mut Setup<'_>,
    packages: &DeployedPackages,
    mut wishes: PythonWishes,
) -> Result<(), SetupError> {
    if let Some(minor) = packages.minor {
        wishes.prefer(minor, format!("the packages in .python_packages are compiled for Python 3.{minor}"));
    }
    let rest = setup.variable("PYTHONPATH").unwrap_or_default();
    let folders = std::iter::once(packages.folder.clone())
        .chain(std::env::split_paths(&rest).filter(|folder| !folder.as_os_str().is_empty()));
    let python_path = std::env::join_paths(folders).unwrap_or_else(|_| packages.folder.clone().into());
    let python = choice::choose(setup, &wishes).await?;
    tell_unmet_pin(setup, &python, &wishes);
    let python = python.with_path(setup, &python_path).await?;
    if python.lacks_library_of(setup) {
        let fix = format!(
            "{} -m pip install --target {} azure-functions",
            quote_argument(&python.path),
            quote_argument(&packages.folder)
        );
        let place = format!(" in {}", packages.folder.display());
        return Err(SetupError::NotInstalled { package: install::PACKAGE, place, fix });
    }
    setup.prepared.environment.push(("PYTHONPATH".to_owned(), python_path));
    let place = python.path.display().to_string();
    use_interpreter(setup, python, place, &wishes);
    Ok(())
}

/// Tells that no interpreter has the version that the app prefers.
fn tell_unmet_pin(setup: &mut Setup<'_>, python: &PythonInterpreter, wishes: &PythonWishes) {
    if let Some(pin) = wishes.unmet_pin(python.numbers()) {
        let message = format!("{}, which was not found; {} is used", pin.reason, python.version);
        let fix = choice::install_fix(setup, &pin.minor_version());
        setup.notice(message, fix);
    }
}

/// Stores the interpreter, and the variables that `activate` of its virtual environment would set.
fn use_interpreter(setup: &mut Setup<'_>, python: PythonInterpreter, place: String, wishes: &PythonWishes) {
    let origin = match wishes.reason_for(python.numbers()) {
        Some(reason) => format!("{place}; {reason}"),
        None => place,
    };
    if let Some(folder) = python.virtual_env {
        if let Some(path) = python.path.parent().and_then(|programs| setup.prepend_to_path(programs)) {
            setup.prepared.environment.push(("PATH".to_owned(), path));
        }
        setup.prepared.environment.push(("VIRTUAL_ENV".to_owned(), OsString::from(folder)));
    }
    setup.set_interpreter(python.path, python.version);
    setup.prepared.interpreter_origin = Some(origin);
}
