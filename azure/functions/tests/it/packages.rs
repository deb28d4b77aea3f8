//! Packages that tests run: installed on first use, kept for the next run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where packages are kept.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages")
}

/// The folder of an npm package, with what it depends on installed around it.
pub(crate) fn npm(name: &str, version: &str) -> PathBuf {
    let prefix = folder().join(format!("{name}-{version}"));
    let package = prefix.join("node_modules").join(name);
    let done = prefix.join("installed");
    fs::create_dir_all(&prefix).unwrap();
    // Test processes that run side by side install it once.
    let lock = File::create(prefix.join("lock")).unwrap();
    lock.lock().unwrap();
    if !done.exists() {
        let installed = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix"])
            .arg(&prefix)
            .arg(format!("{name}@{version}"))
            .output()
            .expect("npm has to be installed");
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        File::create(done).unwrap();
    }
    package
}
