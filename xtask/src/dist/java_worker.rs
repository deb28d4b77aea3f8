//! Compiles the Java worker for the program of a release, so that its users need no compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// The variable that names the folder of the classes for the build script of `azure/functions`.
pub(super) const VARIABLE: &str = "BINDPOST_JAVA_CLASSES";
/// The parts of the worker, which are compiled separately.
const PARTS: [&str; 3] = ["worker", "api", "gson"];

/// Compiles the worker with the JDK of the machine, and returns the folder of the classes.
pub(super) fn compile() -> Result<PathBuf> {
    let (sources, output) =
        (workspace::root().join("azure/functions/workers/java"), workspace::target().join("java-worker"));
    if output.exists() {
        fs::remove_dir_all(&output)?;
    }
    for part in PARTS {
        let mut files = Vec::new();
        collect(&sources.join(part), &mut files)?;
        ensure!(!files.is_empty(), "{} has no sources", sources.join(part).display());
        let classes = output.join(part);
        fs::create_dir_all(&classes)?;
        let mut javac = Command::new("javac");
        javac.args(["--release", "11", "-encoding", "UTF-8", "-proc:none", "-nowarn", "-d"]);
        workspace::run(javac.arg(&classes).args(&files))
            .context("a release contains the compiled Java worker, which needs a JDK 11 or newer")?;
    }
    Ok(output)
}

/// Returns the sources of a folder, sorted.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "java") {
            files.push(path);
        }
    }
    Ok(())
}
