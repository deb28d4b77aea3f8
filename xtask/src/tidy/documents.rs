//! Rules about what the documents tell people.

use super::manifest::{self, DependencyOrigin};
use super::{KNOWN_COMMANDS, Repository, RepositoryFile, TidyFinding};

/// Every cargo command in a document has been tried: it is in the list.
pub(super) fn commands(repository: &Repository) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut used = Vec::new();
    for file in repository.files.iter().filter(|file| is_document(&file.path)) {
        for (number, command) in cargo_commands(file) {
            if !KNOWN_COMMANDS.contains(&command.as_str()) {
                findings.push(TidyFinding::error(
                    format!("{}:{number}", file.path),
                    format!("`{command}` is not a command that was tested"),
                    "run it from a clean checkout, then add it to KNOWN_COMMANDS in tidy.rs",
                ));
            }
            used.push(command);
        }
    }
    for command in KNOWN_COMMANDS.iter().filter(|command| !used.iter().any(|used| used == *command)) {
        findings.push(TidyFinding::warning(
            "xtask/src/tidy.rs",
            format!("no document mentions `{command}`"),
            "remove it from KNOWN_COMMANDS",
        ));
    }
    findings
}

fn is_document(path: &str) -> bool {
    ["README.md", "CONTRIBUTING.md"].contains(&path) || (path.starts_with("docs/") && path.ends_with(".md"))
}

/// The cargo lines of fenced `console` and `sh` blocks, without prompt, settings and comment.
fn cargo_commands(file: &RepositoryFile) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut fence: Option<bool> = None;
    for (number, line) in file.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = match fence {
                None => Some(["console", "sh"].contains(&language.trim())),
                Some(_) => None,
            };
        } else if fence == Some(true) {
            let line = line.split(" #").next().unwrap_or_default().trim();
            for command in line.trim_start_matches("$ ").split("&&") {
                let words: Vec<&str> =
                    command.split_whitespace().skip_while(|word| is_setting(word)).collect();
                if words.first() == Some(&"cargo") {
                    commands.push((number, words.join(" ")));
                }
            }
        }
    }
    commands
}

/// `RUST_LOG=debug` before a command.
fn is_setting(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

/// Every dependency has a line of reason in docs/dependencies.md: `| name | why |`, the name as code.
pub(super) fn dependency_table(repository: &Repository) -> Vec<TidyFinding> {
    let Some(root) = repository.file("Cargo.toml") else { return Vec::new() };
    let table = repository.file("docs/dependencies.md").map_or("", |file| file.text.as_str());
    let foreign = manifest::dependencies(&root.text)
        .into_iter()
        .filter(|dependency| dependency.origin == DependencyOrigin::Own);
    foreign
        .filter(|dependency| !has_reason(table, &dependency.name))
        .map(|dependency| {
            let name = dependency.name;
            TidyFinding::error(
                format!("Cargo.toml:{}", dependency.line),
                format!("{name} is not in docs/dependencies.md"),
                format!("add a row there: | `{name}` | why we have it |"),
            )
        })
        .collect()
}

fn has_reason(document: &str, name: &str) -> bool {
    document.lines().any(|line| {
        let mut cells = line.trim().trim_matches('|').split('|').map(str::trim);
        let named = cells.next().is_some_and(|cell| cell.contains(&format!("`{name}`")));
        line.trim_start().starts_with('|') && named && cells.any(|cell| !cell.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::super::RepositoryFile;
    use super::{cargo_commands, has_reason};

    #[test]
    fn finds_the_cargo_commands_of_a_document() {
        let text = "Run `cargo inline`.\n```console\n$ cargo xtask test   # all of it\nok\nRUST_LOG=debug cargo run\n```\n\
                    ```rust\ncargo no\n```\n  ```sh\n  cd x && cargo build\n  ```\ncargo outside\n";
        let file = RepositoryFile { path: "README.md".into(), text: text.into() };
        let commands = cargo_commands(&file);
        assert_eq!(
            commands,
            [(3, "cargo xtask test".into()), (5, "cargo run".into()), (11, "cargo build".to_owned())]
        );
    }

    #[test]
    fn a_reason_is_a_row_with_a_second_cell() {
        assert!(has_reason("| `http`, `http-body` | types of hyper |", "http-body"));
        assert!(!has_reason("| `http-body` | types of hyper |", "http"));
        assert!(!has_reason("| `http` | |", "http"));
        assert!(!has_reason("`http` is nice", "http"));
    }
}
