//! `.python_packages`: the packages that a deployed app includes. Compiled ones bind the version of Python.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of directory entries to check.
const MAX_ENTRIES: usize = 20_000;

/// The folder of packages that a deployed app includes.
pub(super) struct DeployedPackages {
    pub(super) folder: PathBuf,
    /// The minor version of Python 3 for which most of the compiled modules are made.
    pub(super) minor: Option<u32>,
}

/// Returns the packages of a deployed app.
pub(super) fn find(app: &Path) -> Option<DeployedPackages> {
    let libraries = app.join(".python_packages").join("lib");
    let folder = libraries.join("site-packages");
    if folder.is_dir() {
        let minor = compiled_for(&folder);
        return Some(DeployedPackages { folder, minor });
    }
    // Older tools name the version.
    let versions = fs::read_dir(&libraries).ok()?.flatten().filter_map(|entry| {
        let minor = entry.file_name().to_str()?.strip_prefix("python3.")?.parse().ok()?;
        let folder = entry.path().join("site-packages");
        folder.is_dir().then_some(DeployedPackages { folder, minor: Some(minor) })
    });
    versions.max_by_key(|found| found.minor)
}

/// Counts the compiled modules by their version, and returns the most common one.
fn compiled_for(folder: &Path) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                break;
            }
            // Links are not followed, because they may form a cycle.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if let Some(minor) = entry.file_name().to_str().and_then(compiled_minor) {
                *counts.entry(minor).or_default() += 1;
            }
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(minor, _)| minor)
}

/// Returns 12 for `_cffi.cpython-312-x86_64-linux-gnu.so` and `_cffi.cp312-win_amd64.pyd`. Modules of the stable
/// interface, `x.abi3.so`, run on every version.
fn compiled_minor(name: &str) -> Option<u32> {
    let module = name.strip_suffix(".so").or_else(|| name.strip_suffix(".pyd"))?;
    let tag = module
        .split('.')
        .skip(1)
        .find_map(|tag| tag.strip_prefix("cpython-3").or_else(|| tag.strip_prefix("cp3")))?;
    let end = tag.find(|c: char| !c.is_ascii_digit()).unwrap_or(tag.len());
    tag.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_compiled_module_has_its_version() {
        assert_eq!(compiled_minor("_cffi.cpython-312-x86_64-linux-gnu.so"), Some(12));
        assert_eq!(compiled_minor("_speedups.cpython-39-darwin.so"), Some(9));
        assert_eq!(compiled_minor("_cffi.cp313-win_amd64.pyd"), Some(13));
        assert_eq!(compiled_minor("_rust.abi3.so"), None);
        assert_eq!(compiled_minor("libffi.so"), None);
        assert_eq!(compiled_minor("app.cpython-312.pyc"), None);
    }
}
