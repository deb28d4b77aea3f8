//! `cargo xtask tidy`: rules about this repository that no compiler checks.
//!
//! Each finding says what, where, and how to fix it. The lists a developer may have to extend are in this file.

mod crates;
mod documents;
mod files;
mod guide;
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
    "cargo install --path cli --locked",
    "cargo run -- demo",
    "cargo run -- run examples/snippets-python",
    "cargo run -- search",
    "cargo run -- search-service --data search-data",
    "cargo run -p guide",
    "cargo test -p bindpost-mcp-server",
    "cargo xtask",
    "cargo xtask compare",
    "cargo xtask compare --measure",
    "cargo xtask compare features",
    "cargo xtask compare openapi",
    "cargo xtask conformance --scenario server-stateless",
    "cargo xtask dist",
    "cargo xtask dist --profile dev",
    "cargo xtask fuzz --minutes 10",
    "cargo xtask fuzz --replay",
    "cargo xtask neighbours",
    "cargo xtask soak",
    "cargo xtask test",
    "cargo xtask test --only dist",
    "cargo xtask test --only fmt,clippy,test",
    "cargo xtask words",
];

/// Lines below `mcp/` that may name the cloud: (file, a part of the line).
const CLOUD_ALLOWED: &[(&str, &str)] = &[];

/// Lines that may hold a machine's path or a registry's host: (file, a part of the line).
const MACHINE_ALLOWED: &[(&str, &str)] = &[];

/// The members of a manifest that a registry shows.
const REGISTRY_FIELDS: &[&str] = &[
    "license",
    "repository",
    "homepage",
    "documentation",
    "readme",
    "keywords",
    "categories",
    "rust_version",
];

/// Generated Rust files.
const GENERATED: &[&str] = &[];

const CHECKS: &[fn(&Repository) -> Vec<TidyFinding>] = &[
    crates::layers,
    crates::names,
    crates::descriptions,
    crates::published_crates_introduce_themselves,
    crates::dependencies_come_from_the_workspace,
    crates::testing_is_for_tests,
    files::no_cloud_below_mcp,
    files::no_machine_paths,
    files::no_registry_hosts,
    files::no_testing_in_products,
    files::long_files,
    words::unique_type_names,
    words::names_stand_alone,
    words::no_vague_words,
    words::no_fill_comments,
    words::folders_have_groups,
    lock::fuzz_is_in_step,
    lock::rust_version_is_true,
    documents::commands,
    guide::samples_are_tested,
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
#[derive(Default)]
struct Repository {
    files: Vec<RepositoryFile>,
    crates: Vec<WorkspaceCrate>,
    dependencies: Vec<LockedPackage>,
}

/// A text file that git knows or would add; the path is relative to the root.
struct RepositoryFile {
    path: String,
    text: String,
}

/// A member of the workspace.
#[derive(Default)]
struct WorkspaceCrate {
    name: String,
    folder: String,
    description: String,
    rust_version: String,
    /// Whether `cargo publish` may upload it.
    published: bool,
    /// The members of its manifest that a registry shows, and that are not there.
    missing_fields: Vec<&'static str>,
    /// Folders of the crates of this repository it depends on, for building or for tests.
    depends_on: Vec<String>,
    /// Features that it enables in its dependencies, as `crate/feature`, for tests aside.
    enables: Vec<String>,
}

/// A package of the lock file that is not of this repository.
struct LockedPackage {
    name: String,
    version: String,
    /// The oldest compiler it supports. Empty if it does not say.
    rust_version: String,
}

impl Repository {
    fn read() -> Result<Self> {
        let files = Self::read_files(workspace::root())?;
        let metadata = workspace::metadata(&[])?;
        let members = metadata["workspace_members"].as_array().context("cargo names no members")?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let (crates, dependencies): (Vec<&Value>, Vec<&Value>) =
            packages.partition(|package| members.contains(&package["id"]));
        Ok(Self {
            files,
            crates: crates.into_iter().map(WorkspaceCrate::read).collect(),
            dependencies: dependencies.into_iter().map(LockedPackage::read).collect(),
        })
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
        let is_missing = |key: &&str| {
            let value = &package[*key];
            value.is_null() || value.as_array().is_some_and(Vec::is_empty)
        };
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let dependencies = list(&package["dependencies"]);
        let normal = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
        let enabled = normal.flat_map(|dependency| {
            let name = dependency["name"].as_str().unwrap_or_default();
            let features = list(&dependency["features"]).into_iter();
            features.filter_map(move |feature| Some(format!("{name}/{}", feature.as_str()?)))
        });
        Self {
            name: text("name"),
            folder: relative(&text("manifest_path")).trim_end_matches("/Cargo.toml").to_owned(),
            description: text("description"),
            enables: enabled.collect(),
            rust_version: text("rust_version"),
            // `publish = false` is an empty list of registries.
            published: package["publish"].is_null(),
            missing_fields: REGISTRY_FIELDS.iter().copied().filter(is_missing).collect(),
            depends_on: dependencies
                .iter()
                .filter_map(|dependency| dependency["path"].as_str())
                .map(relative)
                .collect(),
        }
    }
}

impl LockedPackage {
    fn read(package: &Value) -> Self {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        Self { name: text("name"), version: text("version"), rust_version: text("rust_version") }
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
