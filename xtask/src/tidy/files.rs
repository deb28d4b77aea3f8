//! Rules about the text of single files.

use super::words::{is_product_source, lines_before_tests};
use super::{CLOUD_ALLOWED, GENERATED, MACHINE_ALLOWED, Repository, RepositoryFile, TidyFinding};

/// Names of the cloud and of the headers in which it names the user.
const CLOUD_NAMES: &[&str] = &["azure", "x-ms-client-principal", "x-ms-token-"];

/// Nothing below `mcp/` knows a cloud; only what a user reads in `mcp/bindpost` may mention it.
pub(super) fn no_cloud_below_mcp(repository: &Repository) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| file.path.starts_with("mcp/")) {
        let names_cloud = |line: &str| {
            let line = line.to_lowercase();
            CLOUD_NAMES.iter().any(|name| line.contains(name))
        };
        for (number, line) in file.lines().filter(|(_, line)| names_cloud(line)) {
            let shown_to_users = file.path.starts_with("mcp/bindpost/") && is_documentation(&file.path, line);
            if !shown_to_users && !file.is_allowed(line, CLOUD_ALLOWED) {
                findings.push(TidyFinding::error(
                    format!("{}:{number}", file.path),
                    "a file below mcp/ names a cloud or its headers",
                    "move it to azure/, or find the general word; CLOUD_ALLOWED in tidy.rs is for the rest",
                ));
            }
        }
    }
    findings
}

fn is_documentation(path: &str, line: &str) -> bool {
    path.ends_with(".md") || ["//!", "///"].iter().any(|mark| line.trim_start().starts_with(mark))
}

// The patterns are in two parts, so that this file does not match itself.

const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
    concat!("C:", "\\Users\\"),
];

const REGISTRY_HOSTS: &[&str] = &[
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("npm.pkg.", "github.com"),
    concat!("pypi.", "org/simple"),
    concat!("files.", "pythonhosted.org"),
    concat!("arti", "factory"),
    concat!("jf", "rog.io"),
    concat!("pkgs.", "visualstudio.com"),
    concat!("-npm.", "pkg.dev"),
    concat!("-python.", "pkg.dev"),
];

pub(super) fn no_machine_paths(repository: &Repository) -> Vec<TidyFinding> {
    forbidden(
        repository,
        has_machine_path,
        "an absolute path of some machine",
        "make it relative, or take it as an argument",
    )
}

pub(super) fn no_registry_hosts(repository: &Repository) -> Vec<TidyFinding> {
    let has_host = |line: &str| REGISTRY_HOSTS.iter().any(|host| line.contains(host));
    forbidden(
        repository,
        has_host,
        "the host name of a package registry",
        "leave the choice of a registry to the user's own configuration; do not track lock files that name one",
    )
}

fn forbidden(
    repository: &Repository,
    matches: impl Fn(&str) -> bool,
    what: &str,
    fix: &str,
) -> Vec<TidyFinding> {
    let found = |file: &RepositoryFile| -> Vec<usize> {
        let lines = file.lines().filter(|(_, line)| matches(line) && !file.is_allowed(line, MACHINE_ALLOWED));
        lines.map(|(number, _)| number).collect()
    };
    let files =
        repository.files.iter().map(|file| (file, found(file))).filter(|(_, lines)| !lines.is_empty());
    files
        .map(|(file, lines)| {
            let more = if lines.len() > 1 { format!(" ({} lines)", lines.len()) } else { String::new() };
            TidyFinding::error(format!("{}:{}", file.path, lines[0]), format!("{what}{more}"), fix)
        })
        .collect()
}

/// The path must begin a word: `https://host/…` and `{base}/…` are not paths of a machine.
fn has_machine_path(line: &str) -> bool {
    MACHINE_PATHS.iter().any(|path| {
        line.match_indices(path).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + path.len()..].chars().next();
            before.is_none_or(|c| !c.is_alphanumeric() && !".~/_-}>)]*".contains(c))
                && after.is_some_and(|c| c.is_alphanumeric() || c == '.')
        })
    })
}

/// The files that offer the test support of `mcp/server`.
const TESTING_FILES: &[&str] =
    &["mcp/server/src/lib.rs", "mcp/server/src/testing", "mcp/bindpost/src/lib.rs"];

// In two parts, so that this file does not match itself.
const TESTING_PATHS: &[&str] = &[
    concat!("bindpost", "::testing"),
    concat!("bindpost_mcp_server", "::testing"),
    concat!(" testing", "::"),
    concat!("{testing", "::"),
];

/// The product does not use test support. Otherwise it would not build without the feature `testing`.
pub(super) fn no_testing_in_products(repository: &Repository) -> Vec<TidyFinding> {
    let products = repository.files.iter().filter(|file| is_product_source(&file.path));
    let products = products.filter(|file| !TESTING_FILES.iter().any(|path| file.path.starts_with(path)));
    let uses_testing = |line: &str| {
        !line.trim_start().starts_with("//") && TESTING_PATHS.iter().any(|path| line.contains(path))
    };
    let mut findings = Vec::new();
    for file in products {
        for (number, _) in lines_before_tests(&file.text).filter(|(_, line)| uses_testing(line)) {
            findings.push(TidyFinding::error(
                format!("{}:{number}", file.path),
                "the product uses test support",
                "use a method of `Server`, or move the code to a test",
            ));
        }
    }
    findings
}

/// A file beyond 700 lines is rarely one topic.
pub(super) fn long_files(repository: &Repository) -> Vec<TidyFinding> {
    let rust = repository.files.iter().filter(|file| file.path.ends_with(".rs"));
    let long = rust.map(|file| (file, file.text.lines().count())).filter(|(_, lines)| *lines > 700);
    long.filter(|(file, _)| !GENERATED.contains(&file.path.as_str()))
        .map(|(file, lines)| {
            TidyFinding::warning(
                &file.path,
                format!("{lines} lines"),
                "split it by topic; if a program wrote it, add it to GENERATED in tidy.rs",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Repository, RepositoryFile};
    use super::{MACHINE_PATHS, has_machine_path, no_cloud_below_mcp, no_testing_in_products};

    #[test]
    fn finds_paths_of_a_machine() {
        for path in MACHINE_PATHS {
            assert!(has_machine_path(&format!("let file = \"{path}me/file\";")), "{path}");
            assert!(!has_machine_path(&format!("see https://example.com{path}me")), "{path}");
            assert!(!has_machine_path(&format!("starts with {path}")), "{path}");
        }
    }

    #[test]
    fn only_tests_use_the_test_support() {
        let line = concat!("use bindpost_mcp_server::", "testing::TestClient;\n");
        let grouped = concat!("use bindpost_mcp_server::{\n    Server, ", "testing::TestClient,\n};\n");
        let file = |path: &str, text: String| RepositoryFile { path: path.into(), text };
        let files = vec![
            file("azure/search/src/server.rs", line.to_owned()),
            file("azure/search/src/shared.rs", grouped.to_owned()),
            file("azure/search/src/lib.rs", format!("// {line}#[cfg(test)]\nmod tests {{\n    {line}}}\n")),
            file("azure/search/src/tools/tests.rs", line.to_owned()),
            file("azure/search/tests/it/talk.rs", line.to_owned()),
            file("mcp/server/src/testing/client.rs", line.to_owned()),
        ];
        let findings = no_testing_in_products(&Repository { files, ..Repository::default() });
        let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["azure/search/src/server.rs:1", "azure/search/src/shared.rs:2"]);
    }

    #[test]
    fn only_the_documentation_of_the_library_names_the_cloud() {
        let file = |path: &str, text: &str| RepositoryFile { path: path.into(), text: text.into() };
        let files = vec![
            file("mcp/bindpost/src/lib.rs", "//! Functions on Azure: see the book."),
            file("mcp/bindpost/src/run.rs", "let azure = true;"),
            file("mcp/http/src/lib.rs", "\n/// As Azure does."),
            file("cli/src/main.rs", "let azure = true;"),
        ];
        let findings = no_cloud_below_mcp(&Repository { files, ..Repository::default() });
        let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["mcp/bindpost/src/run.rs:1", "mcp/http/src/lib.rs:2"]);
    }
}
