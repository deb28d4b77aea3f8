//! Rules about the members of the workspace.

use super::manifest::{self, DependencyOrigin};
use super::{Repository, TidyFinding, WorkspaceCrate};

/// Where a README of a single crate sends its readers.
const MAIN_README: &str = "https://github.com/bindpost/bindpost#readme";

/// Dependencies point up the page only: `cli → azure → mcp → net`.
pub(super) fn layers(repository: &Repository) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for krate in &repository.crates {
        let allowed: &[&str] = match layer(&krate.folder) {
            "net" => &["net"],
            "mcp" => &["net", "mcp"],
            "azure" => &["net", "mcp", "azure"],
            _ => continue,
        };
        for target in krate.depends_on.iter().filter(|target| !allowed.contains(&layer(target))) {
            findings.push(TidyFinding::error(
                format!("{}/Cargo.toml", krate.folder),
                format!(
                    "{} depends on {target}; this layer may use only {}",
                    krate.name,
                    allowed.join(" and ")
                ),
                "move the code that needs it up a layer, or pass it in through a trait",
            ));
        }
    }
    findings
}

/// Crates are named after their path.
pub(super) fn names(repository: &Repository) -> Vec<TidyFinding> {
    let wrong = repository.crates.iter().filter(|krate| krate.name != name_for(&krate.folder));
    wrong
        .map(|krate| {
            let WorkspaceCrate { name, folder, .. } = krate;
            TidyFinding::error(
                format!("{folder}/Cargo.toml"),
                format!("the crate in {folder} is called {name}"),
                format!("call it {}, or move it", name_for(folder)),
            )
        })
        .collect()
}

pub(super) fn descriptions(repository: &Repository) -> Vec<TidyFinding> {
    let silent = repository.crates.iter().filter(|krate| krate.description.trim().is_empty());
    silent
        .map(|krate| {
            TidyFinding::error(
                format!("{}/Cargo.toml", krate.folder),
                format!("{} has no description", krate.name),
                "add `description = \"…\"`: one sentence, what it is",
            )
        })
        .collect()
}

/// A published crate has a README of its own, because a registry shows it without the rest of the repository.
pub(super) fn published_crates_introduce_themselves(repository: &Repository) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for krate in repository.crates.iter().filter(|krate| krate.published) {
        let WorkspaceCrate { name, folder, .. } = krate;
        if !krate.missing_fields.is_empty() {
            findings.push(TidyFinding::error(
                format!("{folder}/Cargo.toml"),
                format!("{name} is published without {}", krate.missing_fields.join(", ")),
                "add them as in the other manifests, or `publish = false`",
            ));
        }
        let readme = format!("{folder}/README.md");
        let text = repository.file(&readme).map_or("", |file| file.text.as_str());
        if !text.starts_with(&format!("# {name}\n")) || !text.contains(MAIN_README) {
            findings.push(TidyFinding::error(
                readme,
                "no README that a registry can show",
                format!("begin with `# {name}`, say what it is, and link to {MAIN_README}"),
            ));
        }
    }
    findings
}

/// Versions live once, in the root manifest.
pub(super) fn dependencies_come_from_the_workspace(repository: &Repository) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for krate in &repository.crates {
        let Some(file) = repository.file(&format!("{}/Cargo.toml", krate.folder)) else { continue };
        for dependency in manifest::dependencies(&file.text) {
            if dependency.origin == DependencyOrigin::Own {
                findings.push(TidyFinding::error(
                    format!("{}:{}", file.path, dependency.line),
                    format!("{} has a version of its own", dependency.name),
                    format!(
                        "put the version into the root Cargo.toml and write `{}.workspace = true` here",
                        dependency.name
                    ),
                ));
            }
        }
    }
    findings
}

/// Only tests enable the feature `testing`, so no program contains test support.
pub(super) fn testing_is_for_tests(repository: &Repository) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    // An example that compares test clients is a test.
    for krate in repository.crates.iter().filter(|krate| krate.folder != "examples/compare/features/bindpost")
    {
        let testing = |feature: &&String| feature.starts_with("bindpost") && feature.ends_with("/testing");
        for feature in krate.enables.iter().filter(testing) {
            findings.push(TidyFinding::error(
                format!("{}/Cargo.toml", krate.folder),
                format!("{} enables {feature} outside of its tests", krate.name),
                "enable the feature in [dev-dependencies]",
            ));
        }
    }
    findings
}

/// The first part of a path: the layer a crate belongs to.
fn layer(folder: &str) -> &str {
    folder.split('/').next().unwrap_or_default()
}

/// `mcp/server` is `bindpost-mcp-server`; names people type are shorter.
fn name_for(folder: &str) -> String {
    match folder.split_once('/') {
        Some(("mcp", "bindpost")) => "bindpost".to_owned(),
        Some(("examples", example)) => example.replace('/', "-"),
        None if folder == "xtask" => "xtask".to_owned(),
        _ => format!("bindpost-{}", folder.replace('/', "-")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Repository, RepositoryFile, WorkspaceCrate};
    use super::{MAIN_README, layers, name_for, published_crates_introduce_themselves, testing_is_for_tests};

    fn krate(folder: &str, target: &str, enables: &[&str]) -> WorkspaceCrate {
        WorkspaceCrate {
            name: folder.into(),
            folder: folder.into(),
            depends_on: vec![target.into()],
            enables: enables.iter().map(ToString::to_string).collect(),
            ..WorkspaceCrate::default()
        }
    }

    #[test]
    fn only_tests_enable_the_test_support() {
        let crates = vec![
            krate("mcp/http", "mcp/server", &["tokio/test-util"]),
            krate("azure/search", "mcp/server", &["serde/derive", "bindpost-mcp-server/testing"]),
        ];
        let findings = testing_is_for_tests(&Repository { crates, ..Repository::default() });
        let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["azure/search/Cargo.toml"]);
    }

    #[test]
    fn names_follow_paths() {
        assert_eq!(name_for("mcp/server"), "bindpost-mcp-server");
        assert_eq!(name_for("mcp/bindpost"), "bindpost");
        assert_eq!(name_for("azure/search-service"), "bindpost-azure-search-service");
        assert_eq!(name_for("examples/bench-server"), "bench-server");
        assert_eq!(name_for("examples/compare/bindpost"), "compare-bindpost");
        assert_eq!(name_for("cli"), "bindpost-cli");
        assert_eq!(name_for("xtask"), "xtask");
    }

    #[test]
    fn a_lower_layer_must_not_use_a_higher_one() {
        let krate = |folder, target| krate(folder, target, &[]);
        let crates = vec![
            krate("mcp/http", "mcp/server"),
            krate("mcp/server", "azure/search"),
            krate("mcp/openapi", "cli"),
            krate("azure/search", "mcp/server"),
            krate("cli", "azure/search"),
        ];
        let findings = layers(&Repository { crates, ..Repository::default() });
        let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["mcp/server/Cargo.toml", "mcp/openapi/Cargo.toml"]);
    }

    #[test]
    fn a_published_crate_has_a_readme_of_its_own() {
        let krate = |folder: &str, published, missing_fields| WorkspaceCrate {
            name: name_for(folder),
            folder: folder.into(),
            published,
            missing_fields,
            ..WorkspaceCrate::default()
        };
        let crates = vec![
            krate("mcp/http", true, vec![]),
            krate("mcp/server", true, vec!["keywords"]),
            krate("xtask", false, vec!["readme"]),
        ];
        let text = format!("# bindpost-mcp-http\n\nHTTP. See {MAIN_README}.\n");
        let files = vec![RepositoryFile { path: "mcp/http/README.md".into(), text }];
        let findings =
            published_crates_introduce_themselves(&Repository { files, crates, ..Repository::default() });
        let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["mcp/server/Cargo.toml", "mcp/server/README.md"]);
    }
}
