//! The nightly compiler and cargo-fuzz: checked, fetched, and used to build targets.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

const CARGO_FUZZ: &str = "0.13.2";

/// Our crates forbid `unsafe`, so the address sanitizer finds little and costs a factor of six. Without `--release`
/// cargo-fuzz turns on the debug assertions of all crates; with it, `fuzz/Cargo.toml` says whose.
const BUILD: [&str; 4] = ["build", "--release", "--sanitizer", "none"];

/// Builds these targets, or all if the list is empty, and returns the folder they are in.
pub(super) fn build(targets: &[&str]) -> Result<PathBuf> {
    let host = host()?;
    let cargo_fuzz = cargo_fuzz()?;
    let folder = workspace::root().join("fuzz/target");
    // cargo-fuzz takes one target or none, which means all.
    let rounds = if targets.is_empty() { vec![None] } else { targets.iter().map(Some).collect() };
    for target in rounds {
        let mut build = nightly();
        build.arg(&cargo_fuzz).args(BUILD).arg("--target-dir").arg(&folder).args(target);
        workspace::run(&mut build)?;
    }
    Ok(folder.join(host).join("release"))
}

/// A command on the nightly toolchain.
fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly"]).current_dir(workspace::root());
    // What `cargo xtask` runs on is another toolchain.
    command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTDOC");
    command
}

/// What the nightly compiler calls this machine.
fn host() -> Result<String> {
    let version = workspace::output(nightly().args(["rustc", "--version", "--verbose"])).context(
        "libFuzzer needs a nightly compiler: install it with `rustup toolchain install nightly --profile minimal`",
    )?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc --version --verbose` names no host")?.to_owned())
}

/// cargo-fuzz below `target/`, installed if it is not there in the version we use.
fn cargo_fuzz() -> Result<PathBuf> {
    let tools = workspace::target().join("tools");
    let program = tools.join("bin/cargo-fuzz");
    let version = workspace::output(Command::new(&program).arg("--version")).unwrap_or_default();
    if version.trim() != format!("cargo-fuzz {CARGO_FUZZ}") {
        let mut install = workspace::cargo(&["install", "--locked", "cargo-fuzz", "--version", CARGO_FUZZ]);
        workspace::run(install.arg("--root").arg(&tools))?;
    }
    Ok(program)
}
