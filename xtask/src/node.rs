//! Node programs for other commands: a supported version of Node, and packages of pinned versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// The version that the conformance suite and the official TypeScript packages require.
const OLDEST_MAJOR: u32 = 22;

/// Returns a supported Node: the one on PATH, or one installed below `target/`.
pub(crate) fn node() -> Result<PathBuf> {
    let on_path = PathBuf::from("node");
    if major(&on_path).is_some_and(|major| major >= OLDEST_MAJOR) {
        return Ok(on_path);
    }
    let node = install("node22", &["node@22"])?.join("node_modules/node/bin/node");
    ensure!(
        major(&node).is_some_and(|major| major >= OLDEST_MAJOR),
        "{} does not run; the package `node` fetches it in an install script, so npm must not ignore scripts",
        node.display()
    );
    Ok(node)
}

/// Installs packages into `target/<name>` and returns that folder. A stamp file records
/// the installed versions.
pub(crate) fn install(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = workspace::target().join(name);
    let stamp = folder.join("installed.txt");
    let wanted = packages.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(folder);
    }
    println!("installing {} into {}", packages.join(" "), folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("could not clear {}", folder.display()))?;
    }
    fs::create_dir_all(&folder)?;
    // Its own manifest prevents npm from searching parent folders.
    fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--save-exact", "--no-audit", "--no-fund", "--loglevel=error"]).args(packages);
    workspace::output(npm.current_dir(&folder)).context("npm is needed (it comes with Node)")?;
    fs::write(&stamp, wanted)?;
    Ok(folder)
}

fn major(node: &Path) -> Option<u32> {
    parse_major(&workspace::output(Command::new(node).arg("--version")).ok()?)
}

/// Parses `v22.23.3` as 22.
fn parse_major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse_major;

    #[test]
    fn reads_the_major_version() {
        assert_eq!(parse_major("v22.23.3\n"), Some(22));
        assert_eq!(parse_major("v8.0.0"), Some(8));
        assert_eq!(parse_major("no such program"), None);
    }
}
