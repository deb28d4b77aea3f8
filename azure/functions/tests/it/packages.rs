//! Packages that tests run. They are installed on first use and kept for the next run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of the packages.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages")
}

/// Returns the folder of an npm package, installed with its dependencies.
pub(crate) fn npm(name: &str, version: &str) -> PathBuf {
    let prefix = installed(&format!("{name}-{version}"), |prefix| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix"])
            .arg(prefix)
            .arg(format!("{name}@{version}"));
        run(&mut npm);
    });
    prefix.join("node_modules").join(name)
}

/// Returns the interpreter of a virtual environment with a package from PyPI.
pub(crate) fn pip(name: &str, version: &str) -> PathBuf {
    let prefix = installed(&format!("{name}-{version}"), |prefix| {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(prefix.join("venv")));
        let mut pip = Command::new(python_in(prefix));
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]);
        run(pip.env("PIP_USER", "0").arg(format!("{name}=={version}")));
    });
    python_in(&prefix)
}

fn python_in(prefix: &Path) -> PathBuf {
    prefix.join("venv").join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// Returns a folder that `install` has filled, in this run or in an earlier one.
fn installed(name: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let prefix = folder().join(name);
    let done = prefix.join("installed");
    fs::create_dir_all(&prefix).unwrap();
    // Concurrent test processes install it only once.
    let lock = File::create(prefix.join("lock")).unwrap();
    lock.lock().unwrap();
    if !done.exists() {
        install(&prefix);
        File::create(done).unwrap();
    }
    prefix
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
