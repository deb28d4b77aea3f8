//! `cargo xtask compare features`: the table of features in `docs/compare.md`, row by row from servers that run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{FrameworkBuild, build_rust, sources};
use crate::packages;
use crate::workspace;

/// The server of a framework.
struct FeatureServer {
    name: &'static str,
    command: Vec<PathBuf>,
    /// Cells that say how the framework does it, where "yes" would hide a difference: the row, the cell.
    notes: &'static [(&'static str, &'static str)],
}

const RMCP_NOTES: &[(&str, &str)] = &[
    ("unknown arguments are rejected", "yes, with `deny_unknown_fields`"),
    ("a misspelled argument is answered with the known name", "yes, with `deny_unknown_fields`"),
    ("resource templates", "yes, URIs are parsed by hand"),
    ("typed elicitation in all revisions", "yes, by two code paths"),
    ("sampling in all revisions", "yes, by two code paths"),
    ("one tool is open to callers without a key", "yes, by a middleware"),
    ("a tool needs a scope", "yes, by a middleware"),
    ("a missing scope is a 403 with a challenge", "yes, by a middleware"),
    ("a hook around every call", "yes, by overriding `call_tool`"),
    ("each caller sees its own entries", "yes, by overriding `list_tools`"),
];
const FASTMCP_NOTES: &[(&str, &str)] = &[
    ("the text of a propagated error stays on the server", "yes, by an option"),
    ("typed elicitation in all revisions", "yes, by two code paths"),
    ("sampling in all revisions", "yes, by two code paths"),
    ("a quota for each caller and tool", "yes, by a subclass"),
];

/// Probes all frameworks and prints the table. `docs/compare.md` must contain it.
pub(super) fn run(node: &Path) -> Result<()> {
    let folder = workspace::target().join("compare");
    // The rmcp of both comparisons is the same, so they share what is built.
    let manifest = sources().join("features/rmcp/Cargo.toml");
    let rmcp = build_rust(&folder.join("rmcp"), &manifest, "features-compare", FrameworkBuild::Debug)?;
    let slot = folder.join("features-fastmcp");
    fs::create_dir_all(&slot)?;
    let python = packages::python(&slot, &sources().join("features/fastmcp/requirements.txt"))?;
    let servers = [
        bindpost()?,
        FeatureServer { name: "rmcp", command: vec![rmcp], notes: RMCP_NOTES },
        FeatureServer {
            name: "FastMCP",
            command: vec![python, sources().join("features/fastmcp/server.py")],
            notes: FASTMCP_NOTES,
        },
    ];
    let table = probe(node, &servers)?;
    println!("{table}");
    let document = document()?;
    let is_known = |line: &&str| document.lines().any(|known| known == *line);
    let missing: Vec<&str> = table.lines().filter(|line| !is_known(line)).collect();
    ensure!(
        missing.is_empty(),
        "docs/compare.md has other cells; replace its table of features with the one above:\n{}",
        missing.join("\n")
    );
    Ok(())
}

/// Probes our own server only, which takes seconds. Its cells must be those of `docs/compare.md`.
pub(super) fn check_ours(node: &Path) -> Result<()> {
    let table = probe(node, &[bindpost()?])?;
    let document = document()?;
    let is_known = |line: &&str| document.lines().any(|known| known.starts_with(line));
    let wrong: Vec<&str> = table.lines().skip(2).filter(|line| !is_known(line)).collect();
    ensure!(wrong.is_empty(), "these cells are not those of docs/compare.md:\n{}", wrong.join("\n"));
    println!("{} features of docs/compare.md work", table.lines().count().saturating_sub(2));
    Ok(())
}

fn document() -> Result<String> {
    Ok(fs::read_to_string(workspace::root().join("docs/compare.md"))?)
}

fn bindpost() -> Result<FeatureServer> {
    let manifest = sources().join("features/bindpost/Cargo.toml");
    let program =
        build_rust(&workspace::target(), &manifest, "compare-features-bindpost", FrameworkBuild::Debug)?;
    Ok(FeatureServer { name: "bindpost", command: vec![program], notes: &[] })
}

fn probe(node: &Path, servers: &[FeatureServer]) -> Result<String> {
    let mut command = Command::new(node);
    command.arg(sources().join("features/probe.mjs"));
    command.args(servers.iter().map(|server| {
        let notes: BTreeMap<_, _> = server.notes.iter().copied().collect();
        json!({"name": server.name, "command": server.command, "notes": notes}).to_string()
    }));
    workspace::output(&mut command)
}
