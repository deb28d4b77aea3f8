//! Installs the packages of an app into a virtual environment, and rejects an interpreter without
//! `azure.functions`.

use std::path::Path;

use super::super::command::quote_argument;
use super::super::stamp::InstallStamp;
use super::super::{Setup, SetupError};
use super::dependencies::AppDependencies;
use super::interpreter::{self, PythonInterpreter};
use super::requirements;
use super::virtual_env;

/// The module that every app imports.
pub(super) const PACKAGE: &str = "azure.functions";
const NEW_REQUIREMENTS: &str =
    "create requirements.txt with the line `azure-functions` in the app folder, then start again";

/// Installs missing packages, and rejects an interpreter that has no `azure.functions`.
pub(super) async fn ensure_packages(
    setup: &mut Setup<'_>,
    python: PythonInterpreter,
    dependencies: Option<&AppDependencies>,
) -> Result<PythonInterpreter, SetupError> {
    let not_installed = |place: &str, fix: String| {
        Err(SetupError::NotInstalled { package: PACKAGE, place: place.to_owned(), fix })
    };
    let place = format!(" for {}", python.path.display());
    let Some(dependencies) = dependencies else {
        if !python.lacks_library_of(setup) {
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
        if !python.lacks_library_of(setup) {
            return Ok(python);
        }
        return not_installed(&place, manual_install_commands(setup, &python, dependencies));
    };
    let fix_without_library = dependencies.fix_without_library();
    let wanted = dependencies.stamp(&python.version);
    let missing = missing_package(setup, &python, dependencies).await;
    let Some(reason) = reason_to_install(&folder, missing, dependencies, &wanted) else {
        return if python.lacks_library_of(setup) {
            not_installed(&place, fix_without_library.to_owned())
        } else {
            Ok(python)
        };
    };
    let Some(command) = dependencies.install_command(setup, &python, &folder) else {
        let fix = format!("{} -m ensurepip --upgrade", quote_argument(&python.path));
        return Err(SetupError::NoModule { python: python.path, module: "pip", fix });
    };
    if !setup.options.install {
        if python.lacks_library_of(setup) {
            return not_installed(&place, command.to_string());
        }
        setup.notice(
            format!("{} is not up to date: {reason}", setup.display_path(&folder)),
            command.to_string(),
        );
        return Ok(python);
    }
    InstallStamp::remove(&folder)?;
    dependencies.write_files(&folder)?;
    let sentence =
        format!("Installing {} into {}: {reason}", dependencies.what(), setup.display_path(&folder));
    setup.step(&sentence, &command).await?;
    wanted.write(&folder)?;
    let python = PythonInterpreter {
        virtual_env: Some(folder),
        ..interpreter::probe_supported(setup, &python.path).await?
    };
    if python.lacks_library_of(setup) {
        not_installed(&place, fix_without_library.to_owned())
    } else {
        Ok(python)
    }
}

/// A package that the app needs, but the environment does not have.
struct MissingPackage {
    name: String,
    /// Whether it can only have been removed since the last install.
    was_installed: bool,
}

/// Returns a package that is missing: the library, or for a self-hosted app the first one that it lists.
async fn missing_package(
    setup: &Setup<'_>,
    python: &PythonInterpreter,
    dependencies: &AppDependencies,
) -> Option<MissingPackage> {
    if setup.needs_library {
        let was_installed = dependencies.include_functions_library();
        return (!python.has_functions).then(|| MissingPackage { name: PACKAGE.to_owned(), was_installed });
    }
    let names = dependencies.lines().0.into_iter().filter_map(requirements::unconditional_name);
    let name = interpreter::first_missing(setup, python, names).await?;
    // It may come from a file of constraints, whose packages are not all installed.
    Some(MissingPackage { name, was_installed: false })
}

/// Returns why the packages must be installed into a virtual environment, or `None` if they are up to date.
fn reason_to_install(
    folder: &Path,
    missing: Option<MissingPackage>,
    dependencies: &AppDependencies,
    wanted: &InstallStamp,
) -> Option<String> {
    let is_missing = |package: MissingPackage| format!("{} is missing", package.name);
    match InstallStamp::read(folder) {
        Some(stamp) if stamp == *wanted => {
            // Everything was installed. A new attempt helps only if a package was removed since.
            missing.filter(|package| package.was_installed).map(is_missing)
        }
        Some(_) => Some(format!("{} or Python has changed", dependencies.file())),
        None if virtual_env::is_ours(folder) => Some("first start".to_owned()),
        None => missing.map(is_missing),
    }
}

/// Returns the commands with which the user can create a virtual environment and install the packages.
fn manual_install_commands(
    setup: &Setup<'_>,
    python: &PythonInterpreter,
    dependencies: &AppDependencies,
) -> String {
    let arguments = dependencies.manual_arguments(&setup.app);
    if setup.options.executable.is_some() {
        return format!("{} -m pip install {arguments}", quote_argument(&python.path));
    }
    if matches!(dependencies, AppDependencies::Locked { .. }) {
        return format!("uv sync   (in {})", setup.app.display());
    }
    let folder = setup.app.join(virtual_env::CREATED);
    let inside = virtual_env::python_in(&folder);
    let (python, folder, inside) =
        (quote_argument(&python.path), quote_argument(folder), quote_argument(inside));
    format!("{python} -m venv {folder} && {inside} -m pip install {arguments}")
}
