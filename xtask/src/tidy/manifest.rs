//! The dependencies a `Cargo.toml` names. Reads the few forms people write, not all of TOML.

/// One dependency, and where its version comes from.
#[derive(Debug, PartialEq)]
pub(super) struct Dependency {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) origin: DependencyOrigin,
}

#[derive(Debug, PartialEq)]
pub(super) enum DependencyOrigin {
    Workspace,
    Path,
    /// A version, a git address: something this manifest says by itself.
    Own,
}

/// All dependencies of a manifest: normal, dev, build, per target, and a workspace's.
pub(super) fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found: Vec<(usize, String, String)> = Vec::new();
    let mut section = ManifestSection::Other;
    let mut depth = 0;
    for (number, line) in (1..).zip(manifest.lines()) {
        let line = without_comment(line).trim();
        if line.is_empty() {
            continue;
        }
        if depth == 0 && line.starts_with('[') {
            section = ManifestSection::parse_header(line.trim_matches(['[', ']']));
            if let ManifestSection::One(name) = &section {
                found.push((number, name.clone(), String::new()));
            }
            continue;
        }
        match &section {
            ManifestSection::Other => {}
            ManifestSection::List if depth == 0 => {
                let (key, value) = line.split_once('=').unwrap_or((line, ""));
                let (name, rest) = key.trim().split_once('.').unwrap_or((key.trim(), ""));
                found.push((number, name.trim_matches('"').to_owned(), format!("{rest} = {value}")));
            }
            // Further lines of the same dependency.
            ManifestSection::List | ManifestSection::One(_) => {
                if let Some((_, _, text)) = found.last_mut() {
                    text.push('\n');
                    text.push_str(line);
                }
            }
        }
        depth += line.matches(['[', '{']).count();
        depth -= line.matches([']', '}']).count().min(depth);
    }
    found.into_iter().map(|(line, name, text)| Dependency { line, name, origin: origin(&text) }).collect()
}

enum ManifestSection {
    /// `[dependencies]` and its kind: one dependency per line.
    List,
    /// `[dependencies.serde]`: the whole section is one dependency.
    One(String),
    Other,
}

impl ManifestSection {
    fn parse_header(header: &str) -> Self {
        match header.rsplit_once('.') {
            _ if header.ends_with("dependencies") => Self::List,
            Some((list, name)) if list.ends_with("dependencies") => {
                Self::One(name.trim_matches('"').to_owned())
            }
            _ => Self::Other,
        }
    }
}

fn origin(text: &str) -> DependencyOrigin {
    let text: String = text.split_whitespace().collect();
    if text.contains("workspace=true") {
        DependencyOrigin::Workspace
    } else if text.contains("path=\"") {
        DependencyOrigin::Path
    } else {
        DependencyOrigin::Own
    }
}

fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, character) in line.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '#' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{DependencyOrigin, dependencies};

    #[test]
    fn reads_every_form_of_a_dependency() {
        let manifest = r#"
[package]
name = "x"  # [dependencies]

[dependencies]
anyhow.workspace = true
tokio = { workspace = true, features = [
    "rt", # for = tests
    "net",
] }
near = { path = "../near" }
serde = "1"

[dev-dependencies.proptest]
version = "1"
features = ["std"]

[target.'cfg(unix)'.dependencies]
libc = { version = "0.2" }

[lints]
workspace = true
"#;
        let found: Vec<_> = dependencies(manifest).into_iter().map(|d| (d.line, d.name, d.origin)).collect();
        let expected = [
            (6, "anyhow", DependencyOrigin::Workspace),
            (7, "tokio", DependencyOrigin::Workspace),
            (11, "near", DependencyOrigin::Path),
            (12, "serde", DependencyOrigin::Own),
            (14, "proptest", DependencyOrigin::Own),
            (19, "libc", DependencyOrigin::Own),
        ];
        assert_eq!(found, expected.map(|(line, name, origin)| (line, name.to_owned(), origin)));
    }
}
