//! `cargo xtask deny`: what may enter the dependency tree, by `deny.toml`.
//!
//! Advisories are not checked, because they need a database from the network. `cargo deny check advisories` checks them.

use std::process::Command;

use anyhow::Result;

use crate::{packages, workspace};

/// The newest prebuilt package of a registry is 0.14, which does not know the licence Unicode-3.0 and the present
/// form of `deny.toml`. A debug build takes about a minute on two cores, a release build several.
const VERSION: &str = "0.20.2";

pub(crate) fn run() -> Result<()> {
    let program = packages::cargo("cargo-deny", VERSION)?;
    // A warning is an exception in deny.toml that nothing needs any more.
    let checks = ["check", "-D", "warnings", "bans", "licenses", "sources"];
    workspace::run(Command::new(program).args(checks).current_dir(workspace::root()))
}
