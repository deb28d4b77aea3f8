//! pyproject.toml: the packages that a project depends on, and the versions of Python that it accepts.

use std::fs;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::SetupError;

pub(super) const FILE: &str = "pyproject.toml";

/// The members of a pyproject.toml that decide how an app is prepared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PyProject {
    /// `project.dependencies`. `None` if there is no such list.
    pub(super) dependencies: Option<Vec<String>>,
    /// `project.requires-python`, or `python` in the dependencies of Poetry.
    pub(super) requires_python: Option<String>,
}

impl PyProject {
    /// Reads the file in a folder. Returns `None` if it does not exist.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, SetupError> {
        let path = folder.join(FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SetupError::file(&path, "read")(error)),
        };
        let text = String::from_utf8_lossy(&bytes);
        Self::parse(&text).map(Some).map_err(|reason| SetupError::InvalidManifest { path, reason })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let root = DeTable::parse(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            format!("line {line}: {}", error.message())
        })?;
        let root = root.get_ref();
        let project = table(root, "project");
        let dependencies =
            project.and_then(|project| match project.get("dependencies").map(Spanned::get_ref) {
                Some(DeValue::Array(list)) => {
                    Some(list.iter().filter_map(|item| item.get_ref().as_str().map(str::to_owned)).collect())
                }
                _ => None,
            });
        let poetry = table(root, "tool").and_then(|tool| table(tool, "poetry"));
        let poetry = poetry.and_then(|poetry| table(poetry, "dependencies"));
        let requires_python = project
            .and_then(|project| string(project, "requires-python"))
            .or_else(|| poetry.and_then(|dependencies| string(dependencies, "python")));
        Ok(Self { dependencies, requires_python })
    }
}

fn table<'a, 'i>(parent: &'a DeTable<'i>, name: &str) -> Option<&'a DeTable<'i>> {
    match parent.get(name)?.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

fn string(table: &DeTable<'_>, name: &str) -> Option<String> {
    table.get(name)?.get_ref().as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_and_versions_are_read() {
        let parsed = PyProject::parse(
            "[project]\nrequires-python = \">=3.12\"\ndependencies = [\n  \"azure-functions>=2\", # ours\n]\n",
        );
        let expected = PyProject {
            dependencies: Some(vec!["azure-functions>=2".to_owned()]),
            requires_python: Some(">=3.12".to_owned()),
        };
        assert_eq!(parsed, Ok(expected));
        let poetry = PyProject::parse("[tool.poetry.dependencies]\npython = \"^3.11\"\n").unwrap();
        assert_eq!((poetry.dependencies, poetry.requires_python.as_deref()), (None, Some("^3.11")));
        assert_eq!(PyProject::parse("[tool.ruff]\nline-length = 120\n"), Ok(PyProject::default()));
    }

    #[test]
    fn an_invalid_file_is_reported_with_its_line() {
        let error = PyProject::parse("[project]\nname = x\n").unwrap_err();
        assert!(error.starts_with("line 2: "), "{error}");
    }
}
