//! [`LockedVersions`]: the versions of a `uv.lock`, for pip, which cannot read the file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::super::SetupError;

/// The file in the virtual environment that has the versions for pip.
const FILE: &str = ".bindpost-constraints.txt";

/// The versions that a `uv.lock` has of packages from a registry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LockedVersions(String);

impl LockedVersions {
    /// Reads the versions. A package in several versions, for different systems, is left to pip.
    pub(super) fn parse(lock: &[u8]) -> Option<LockedVersions> {
        let text = String::from_utf8_lossy(lock);
        let root = DeTable::parse(&text).ok()?;
        let DeValue::Array(packages) = root.get_ref().get("package")?.get_ref() else { return None };
        let mut versions: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        for package in packages.iter() {
            let DeValue::Table(package) = package.get_ref() else { continue };
            let text = |name: &str| package.get(name).and_then(|value| value.get_ref().as_str());
            let source = package.get("source").map(|source| source.get_ref());
            // Others are the app itself, or come from folders and repositories that pip finds by pyproject.toml.
            let is_published = match source {
                Some(DeValue::Table(source)) => source.contains_key("registry"),
                _ => true,
            };
            if let (Some(name), Some(version), true) = (text("name"), text("version"), is_published) {
                versions.entry(name).and_modify(|known| *known = None).or_insert(Some(version));
            }
        }
        let lines =
            versions.into_iter().filter_map(|(name, version)| Some(format!("{name}=={}\n", version?)));
        Some(LockedVersions(lines.collect()))
    }

    /// Returns the versions as lines for pip.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Writes them into a virtual environment.
    pub(super) fn write(&self, folder: &Path) -> Result<(), SetupError> {
        let file = Self::file(folder);
        fs::write(&file, &self.0).map_err(SetupError::file(&file, "written"))
    }

    /// Returns the file in a virtual environment.
    pub(super) fn file(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_packages_with_one_version_are_constrained() {
        let lock = r#"
            version = 1
            [[package]]
            name = "app"
            version = "0.1.0"
            source = { virtual = "." }
            [[package]]
            name = "mcp"
            version = "1.30.0"
            source = { registry = "https://registry.example/simple" }
            [[package]]
            name = "numpy"
            version = "2.0.0"
            source = { registry = "https://registry.example/simple" }
            [[package]]
            name = "numpy"
            version = "2.1.0"
            source = { registry = "https://registry.example/simple" }
        "#;
        assert_eq!(LockedVersions::parse(lock.as_bytes()), Some(LockedVersions("mcp==1.30.0\n".to_owned())));
        assert_eq!(LockedVersions::parse(b"= oops"), None);
    }
}
