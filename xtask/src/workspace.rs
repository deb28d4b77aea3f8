//! Where things are, and how to run a program there.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Where cargo builds, and where chores keep what they install and write.
pub(crate) fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The cargo that runs this chore, started in the root.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Builds packages of the product with the profile of packages and benchmarks, and returns the folder of their programs.
pub(crate) fn build_dist(packages: &[&str]) -> Result<PathBuf> {
    let mut command = cargo(&["build", "--profile", "dist"]);
    for package in packages {
        command.args(["--package", package]);
    }
    run(&mut command)?;
    Ok(target().join("dist"))
}

/// Builds programs of `bench/`, which is a workspace of its own, and returns the folder they are in.
pub(crate) fn build_bench(packages: &[&str]) -> Result<PathBuf> {
    let target = root().join("bench/target");
    let mut command = cargo(&["build", "--release", "--manifest-path", "bench/Cargo.toml"]);
    for package in packages {
        command.args(["--package", package]);
    }
    run(command.env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join("release"))
}

/// Runs a program with our own output, and fails when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    let status = command.status().with_context(|| format!("could not start `{line}`"))?;
    ensure!(status.success(), "`{line}` failed ({status})");
    Ok(())
}

/// Runs a program and returns what it printed; its errors are part of ours.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command.output().with_context(|| format!("could not start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command line as a developer would type it.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Copies a folder of the repository over another one: what git knows of it, and no more.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut git = Command::new("git");
    let listed =
        output(git.current_dir(from).args(["ls-files", "--cached", "--others", "--exclude-standard"]))?;
    for file in listed.lines() {
        let target = to.join(file);
        std::fs::create_dir_all(target.parent().unwrap_or(to))?;
        std::fs::copy(from.join(file), target)?;
    }
    Ok(())
}
