//! Prepares a Python app: its interpreter, and the packages of requirements.txt.
//!
//! The interpreter is the first of these that applies:
//!
//! 1. the interpreter that the settings name,
//! 2. a virtual environment in the app folder,
//! 3. the active virtual environment,
//! 4. the system's Python, if the app was deployed with its packages or has no requirements.txt,
//! 5. a new virtual environment, `.venv`.
//!
//! A virtual environment of the user is not changed if it contains `azure.functions`.

mod interpreter;
mod requirements;
mod virtual_env;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use self::interpreter::PythonInterpreter;
use self::requirements::PythonRequirements;
use self::virtual_env::VirtualEnv;
use super::command::{CommandLine, quote_argument};
use super::program::RequiredProgram;
use super::stamp::InstallStamp;
use super::{Setup, SetupError};

const PACKAGE: &str = "azure.functions";
const ADD_PACKAGE: &str = "add the line `azure-functions` to requirements.txt, then start again";
const NEW_REQUIREMENTS: &str =
    "create requirements.txt with the line `azure-functions` in the app folder, then start again";

pub(super) async fn prepare(setup: &mut Setup<'_>) -> Result<(), SetupError> {
    let requirements = PythonRequirements::read(&setup.app)?;
    if let Some(named) = setup.named_executable(RequiredProgram::Python) {
        let python = interpreter::probe_supported(setup, &named?).await?;
        let python = ensure_packages(setup, python, requirements.as_ref()).await?;
        return use_interpreter(setup, python);
    }
    if let Some(found) = virtual_env::find(setup) {
        let python = match found.python(setup).await {
            Ok(python) => python,
            Err(broken) if found.is_ours() && setup.options.install => {
                found.delete()?;
                setup.notice(format!("{broken}; it was created again"), None);
                create(setup).await?
            }
            Err(broken) => return Err(broken),
        };
        let python = ensure_packages(setup, python, requirements.as_ref()).await?;
        return use_interpreter(setup, python);
    }
    if let Some(packages) = deployed_packages(&setup.app) {
        return deployed(setup, &packages).await;
    }
    let python = match requirements {
        Some(_) if setup.options.install => create(setup).await?,
        _ => interpreter::find_system_python(setup).await?,
    };
    let python = ensure_packages(setup, python, requirements.as_ref()).await?;
    use_interpreter(setup, python)
}

/// Creates `.venv` with the system's Python.
async fn create(setup: &Setup<'_>) -> Result<PythonInterpreter, SetupError> {
    let base = interpreter::find_system_python(setup).await?;
    VirtualEnv::create(setup, &base).await?.python(setup).await
}

/// Installs missing requirements, and rejects an interpreter that has no `azure.functions`.
async fn ensure_packages(
    setup: &mut Setup<'_>,
    python: PythonInterpreter,
    requirements: Option<&PythonRequirements>,
) -> Result<PythonInterpreter, SetupError> {
    let not_installed = |place: &str, fix: String| {
        Err(SetupError::NotInstalled { package: PACKAGE, place: place.to_owned(), fix })
    };
    let place = format!(" for {}", python.path.display());
    let Some(requirements) = requirements else {
        if python.has_functions {
            return Ok(python);
        }
        return if setup.options.install {
            not_installed(&format!("{place}, and there is no requirements.txt"), NEW_REQUIREMENTS.to_owned())
        } else {
            let command = python.pip_install(setup).arg("azure-functions");
            not_installed(&place, command.to_string())
        };
    };
    let Some(folder) = python.virtual_env.clone() else {
        // Packages of the system's Python are not changed.
        if python.has_functions {
            return Ok(python);
        }
        return not_installed(&place, manual_install_commands(setup, &python));
    };
    let wanted = requirements.stamp(&python.version);
    let Some(reason) = reason_to_install(&folder, &python, requirements, &wanted) else {
        return if python.has_functions { Ok(python) } else { not_installed(&place, ADD_PACKAGE.to_owned()) };
    };
    let command = install_command(setup, &python);
    if !setup.options.install {
        if !python.has_functions {
            return not_installed(&place, command.to_string());
        }
        setup.notice(
            format!("{} is not up to date: {reason}", setup.display_path(&folder)),
            command.to_string(),
        );
        return Ok(python);
    }
    if !python.has_pip {
        let fix = format!("{} -m ensurepip --upgrade", quote_argument(&python.path));
        return Err(SetupError::NoModule { python: python.path, module: "pip", fix });
    }
    InstallStamp::remove(&folder)?;
    let sentence = format!("Installing requirements.txt into {}: {reason}", setup.display_path(&folder));
    setup.step(&sentence, &command).await?;
    wanted.write(&folder)?;
    let python = PythonInterpreter {
        virtual_env: Some(folder),
        ..interpreter::probe_supported(setup, &python.path).await?
    };
    if python.has_functions { Ok(python) } else { not_installed(&place, ADD_PACKAGE.to_owned()) }
}

/// Returns why the requirements must be installed into a virtual environment, or `None` if they are
/// up to date.
fn reason_to_install(
    folder: &Path,
    python: &PythonInterpreter,
    requirements: &PythonRequirements,
    wanted: &InstallStamp,
) -> Option<&'static str> {
    let missing = Some("azure.functions is missing");
    match InstallStamp::read(folder) {
        Some(stamp) if stamp == *wanted => {
            // Everything was installed. A new attempt helps only if a package was removed since.
            missing.filter(|_| !python.has_functions && requirements.includes_functions_library())
        }
        Some(_) => Some("requirements.txt or Python has changed"),
        None if virtual_env::is_ours(folder) => Some("first start"),
        None => missing.filter(|_| !python.has_functions),
    }
}

fn install_command(setup: &Setup<'_>, python: &PythonInterpreter) -> CommandLine {
    python.pip_install(setup).arg("-r").arg(setup.app.join(requirements::FILE))
}

/// Returns the commands with which the user can create a virtual environment and install the requirements.
fn manual_install_commands(setup: &Setup<'_>, python: &PythonInterpreter) -> String {
    let requirements = setup.app.join(requirements::FILE);
    if setup.options.executable.is_some() {
        return format!(
            "{} -m pip install -r {}",
            quote_argument(&python.path),
            quote_argument(requirements)
        );
    }
    let folder = setup.app.join(virtual_env::CREATED);
    let inside = virtual_env::python_in(&folder);
    let (python, folder, inside) =
        (quote_argument(&python.path), quote_argument(folder), quote_argument(inside));
    format!("{python} -m venv {folder} && {inside} -m pip install -r {}", quote_argument(requirements))
}

/// Returns the folder of packages that a deployed app includes.
fn deployed_packages(app: &Path) -> Option<PathBuf> {
    Some(app.join(".python_packages").join("lib").join("site-packages")).filter(|folder| folder.is_dir())
}

async fn deployed(setup: &mut Setup<'_>, packages: &Path) -> Result<(), SetupError> {
    let rest = setup.variable("PYTHONPATH").unwrap_or_default();
    let folders = std::iter::once(packages.to_path_buf())
        .chain(std::env::split_paths(&rest).filter(|folder| !folder.as_os_str().is_empty()));
    let python_path = std::env::join_paths(folders).unwrap_or_else(|_| packages.into());
    let python = interpreter::find_system_python(setup).await?;
    let python = python.with_path(setup, &python_path).await?;
    if !python.has_functions {
        let fix = format!(
            "{} -m pip install --target {} azure-functions",
            quote_argument(&python.path),
            quote_argument(packages.as_os_str())
        );
        let place = format!(" in {}", packages.display());
        return Err(SetupError::NotInstalled { package: PACKAGE, place, fix });
    }
    setup.prepared.environment.push(("PYTHONPATH".to_owned(), python_path));
    use_interpreter(setup, python)
}

/// Stores the interpreter, and the variables that `activate` of its virtual environment would set.
fn use_interpreter(setup: &mut Setup<'_>, python: PythonInterpreter) -> Result<(), SetupError> {
    if let Some(folder) = python.virtual_env {
        if let Some(path) = python.path.parent().and_then(|programs| setup.prepend_to_path(programs)) {
            setup.prepared.environment.push(("PATH".to_owned(), path));
        }
        setup.prepared.environment.push(("VIRTUAL_ENV".to_owned(), OsString::from(folder)));
    }
    setup.set_interpreter(python.path, python.version);
    Ok(())
}
