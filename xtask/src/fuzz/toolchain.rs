//! The nightly compiler and cargo-fuzz: checks, installs and uses them to build targets.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

const CARGO_FUZZ: &str = "0.13.2";

/// The options of cargo-fuzz. Our crates forbid `unsafe`, so the address sanitizer finds little, and it
/// makes targets six times slower. Without `--release` cargo-fuzz turns on the debug assertions of all
/// crates. With it, `fuzz/Cargo.toml` selects the crates.
const BUILD: [&str; 4] = ["build", "--release", "--sanitizer", "none"];

/// Builds these targets, or all if the list is empty, and returns their folder.
pub(super) fn build(targets: &[&str]) -> Result<PathBuf> {
    let host = host()?;
    let cargo_fuzz = cargo_fuzz()?;
    let folder = workspace::root().join("fuzz/target");
    // cargo-fuzz accepts one target, or none for all.
    let rounds = if targets.is_empty() { vec![None] } else { targets.iter().map(Some).collect() };
    for target in rounds {
        let mut build = nightly();
        build.arg(&cargo_fuzz).args(BUILD).arg("--target-dir").arg(&folder).args(target);
        workspace::run(&mut build)?;
    }
    Ok(folder.join(host).join("release"))
}

/// Returns a command on the nightly toolchain.
fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly"]).current_dir(workspace::root());
    // `cargo xtask` itself runs on another toolchain.
    command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTDOC");
    command
}

/// Returns the host triple of the nightly compiler.
fn host() -> Result<String> {
    let version = workspace::output(nightly().args(["rustc", "--version", "--verbose"])).context(
        "libFuzzer needs a nightly compiler: install it with `rustup toolchain install nightly --profile minimal`",
    )?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc --version --verbose` names no host")?.to_owned())
}

/// Returns cargo-fuzz below `target/`, after installing our version if it is missing.
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
