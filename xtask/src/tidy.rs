//! `cargo xtask tidy`: rules about this repository that no compiler checks.
//!
//! Each finding says what, where, and how to fix it. The lists a developer may have to extend are in this file.

mod crates;
mod documents;
mod files;
mod lock;
mod manifest;
pub(crate) mod words;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::workspace;

/// Every `cargo …` line that README, CONTRIBUTING and docs/ tell people to type.
/// Run a command from a clean checkout before you add it here.
const KNOWN_COMMANDS: &[&str] = &[
    "cargo build",
    "cargo run -- demo",
    "cargo run -- run examples/snippets-python",
    "cargo run -- search",
    "cargo run -- search-service --data search-data",
    "cargo test -p bindpost-mcp-server",
    "cargo xtask",
    "cargo xtask compare",
    "cargo xtask compare --measure",
    "cargo xtask compare openapi",
    "cargo xtask conformance --scenario server-stateless",
    "cargo xtask fuzz --minutes 10",
    "cargo xtask fuzz --replay",
    "cargo xtask neighbours",
    "cargo xtask soak",
    "cargo xtask test",
    "cargo xtask test --only fmt,clippy,test",
    "cargo xtask words",
];

/// Lines below `mcp/` that may name the cloud: (file, a part of the line).
const CLOUD_ALLOWED: &[(&str, &str)] = &[];

/// Lines that may hold a machine's path or a registry's host: (file, a part of the line).
const MACHINE_ALLOWED: &[(&str, &str)] = &[];

/// Generated Rust files.
const GENERATED: &[&str] = &[];

const CHECKS: &[fn(&Repository) -> Vec<TidyFinding>] = &[
    crates::layers,
    crates::names,
    crates::descriptions,
    crates::dependencies_come_from_the_workspace,
    files::no_cloud_below_mcp,
    files::no_machine_paths,
    files::no_registry_hosts,
    files::long_files,
    words::unique_type_names,
    words::names_stand_alone,
    words::no_vague_words,
    words::no_fill_comments,
    words::folders_have_groups,
    lock::fuzz_is_in_step,
    documents::commands,
    documents::dependency_table,
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "tidy takes no options");
    let repository = Repository::read()?;
    let findings: Vec<TidyFinding> = CHECKS.iter().flat_map(|check| check(&repository)).collect();
    let errors = findings.iter().filter(|finding| !finding.only_a_warning).count();
    for finding in &findings {
        let word = if finding.only_a_warning { "warning" } else { "error" };
        println!("{word}: {}: {}\n    fix: {}", finding.place, finding.what, finding.fix);
    }
    ensure!(errors == 0, "{errors} to fix");
    println!("tidy: {} files and {} crates are in order", repository.files.len(), repository.crates.len());
    Ok(())
}

/// Something that is not as it should be.
#[derive(Debug)]
struct TidyFinding {
    place: String,
    what: String,
    fix: String,
    only_a_warning: bool,
}

impl TidyFinding {
    fn error(place: impl Into<String>, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), fix: fix.into(), only_a_warning: false }
    }

    fn warning(place: impl Into<String>, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { only_a_warning: true, ..Self::error(place, what, fix) }
    }
}

/// What the checks look at, read once.
struct Repository {
    files: Vec<RepositoryFile>,
    crates: Vec<WorkspaceCrate>,
}

/// A text file that git knows or would add; the path is relative to the root.
struct RepositoryFile {
    path: String,
    text: String,
}

/// A member of the workspace.
struct WorkspaceCrate {
    name: String,
    folder: String,
    description: String,
    /// Folders of the crates of this repository it depends on, for building or for tests.
    depends_on: Vec<String>,
}

impl Repository {
    fn read() -> Result<Self> {
        let files = Self::read_files(workspace::root())?;
        let metadata =
            workspace::output(&mut workspace::cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: Value = serde_json::from_str(&metadata)?;
        let crates = metadata["packages"].as_array().into_iter().flatten().map(WorkspaceCrate::read);
        Ok(Self { files, crates: crates.collect() })
    }

    /// The text files that git tracks, or would add, in a checkout.
    fn read_files(root: &Path) -> Result<Vec<RepositoryFile>> {
        let mut git = Command::new("git");
        git.args(["-c", "core.quotePath=off", "ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(root);
        let list = workspace::output(&mut git).context("git lists the files to check")?;
        let files = list.lines().filter_map(|path| {
            // Files that cannot be read are deleted and not yet staged, or are not text.
            let text = fs::read_to_string(root.join(path)).ok()?;
            Some(RepositoryFile { path: path.to_owned(), text })
        });
        Ok(files.collect())
    }

    fn file(&self, path: &str) -> Option<&RepositoryFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl WorkspaceCrate {
    fn read(package: &Value) -> Self {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        Self {
            name: text("name"),
            folder: relative(&text("manifest_path")).trim_end_matches("/Cargo.toml").to_owned(),
            description: text("description"),
            depends_on: dependencies
                .filter_map(|dependency| dependency["path"].as_str())
                .map(relative)
                .collect(),
        }
    }
}

fn relative(path: &str) -> String {
    let path = Path::new(path);
    path.strip_prefix(workspace::root()).unwrap_or(path).to_string_lossy().into_owned()
}

impl RepositoryFile {
    /// The lines with their numbers, from one.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    fn is_allowed(&self, line: &str, list: &[(&str, &str)]) -> bool {
        list.iter().any(|(path, part)| self.path == *path && line.contains(part))
    }
}
