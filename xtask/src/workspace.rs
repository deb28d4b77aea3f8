//! Paths of the workspace, and functions that run programs in it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// Returns the folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Returns the build folder of cargo. Commands install packages and write results there.
pub(crate) fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns the cargo that runs this command, in the root folder.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Returns what `cargo metadata` says about the workspace and its dependencies.
pub(crate) fn metadata(args: &[&str]) -> Result<Value> {
    let text = output(cargo(&["metadata", "--locked", "--format-version", "1"]).args(args))?;
    serde_json::from_str(&text).context("cargo metadata did not print JSON")
}

/// Builds packages of the product with the profile of packages and benchmarks, and returns the folder of
/// the programs.
pub(crate) fn build_dist(packages: &[&str]) -> Result<PathBuf> {
    build("dist", packages)
}

/// Builds packages of the product, and returns the folder of the programs.
pub(crate) fn build(profile: &str, packages: &[&str]) -> Result<PathBuf> {
    build_with(profile, packages, &[])
}

/// Builds packages of the product with variables for their build scripts, and returns the folder of the programs.
pub(crate) fn build_with(profile: &str, packages: &[&str], variables: &[(&str, &Path)]) -> Result<PathBuf> {
    let mut command = cargo(&["build", "--profile", profile]);
    command.envs(variables.iter().copied());
    for package in packages {
        command.args(["--package", package]);
    }
    run(&mut command)?;
    Ok(target().join(if profile == "dev" { "debug" } else { profile }))
}

/// Builds programs of `bench/`, which is a separate workspace, and returns their folder.
pub(crate) fn build_bench(packages: &[&str]) -> Result<PathBuf> {
    let target = root().join("bench/target");
    let mut command = cargo(&["build", "--release", "--manifest-path", "bench/Cargo.toml"]);
    for package in packages {
        command.args(["--package", package]);
    }
    run(command.env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join("release"))
}

/// Runs a program with inherited output, and fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    let status = command.status().with_context(|| format!("could not start `{line}`"))?;
    ensure!(status.success(), "`{line}` failed ({status})");
    Ok(())
}

/// Runs a program and returns its stdout. Its stderr is inherited.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command.output().with_context(|| format!("could not start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the command line as typed in a shell.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Copies the files of a repository folder to another folder, without those that git ignores.
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
