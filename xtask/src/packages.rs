//! Packages of pinned versions from npm, PyPI and crates.io, each set in its own folder below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

/// Installs the packages of a `package.json`, and copies the scripts next to it, because Node searches
/// packages from the folder of the script.
pub(crate) fn npm(folder: &Path, project: &Path) -> Result<()> {
    let manifest = fs::read_to_string(project.join("package.json"))?;
    install_once(folder, &manifest, || {
        fs::write(folder.join("package.json"), &manifest)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]);
        workspace::run(npm.current_dir(folder)).context("npm is needed (it comes with Node)")
    })?;
    for entry in fs::read_dir(project)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "mjs" || extension == "ts") {
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Installs the packages of a requirements file into a virtual environment, and returns its Python.
pub(crate) fn python(folder: &Path, requirements: &Path) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    install_once(folder, &fs::read_to_string(requirements)?, || {
        workspace::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        workspace::run(pip.arg(requirements))
    })?;
    Ok(python)
}

/// Builds a program from crates.io with its own lock file, and returns the program.
pub(crate) fn cargo(name: &str, version: &str) -> Result<PathBuf> {
    let folder = workspace::target().join("tools").join(name);
    install_once(&folder, version, || {
        let mut cargo = workspace::cargo(&["install", name, "--version", version, "--locked", "--debug"]);
        // Its dependencies are not those of the product, so they are built in a temporary folder.
        cargo.env_remove("CARGO_TARGET_DIR").arg("--root").arg(&folder);
        workspace::run(&mut cargo)
    })?;
    Ok(folder.join("bin").join(name))
}

/// Installs into an empty folder, unless a stamp file has the same versions.
fn install_once(folder: &Path, versions: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == versions) {
        return Ok(());
    }
    println!("installing into {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    install()?;
    Ok(fs::write(stamp, versions)?)
}
