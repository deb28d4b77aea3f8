//! [`PythonWishes`]: what the files of an app say about the version of Python.
//!
//! A wish must be met, because packages cannot be installed otherwise. A pin is preferred: without such a Python,
//! another one is used, with a notice.

use std::fs;
use std::path::Path;

use super::dependencies::AppDependencies;
use super::interpreter::PythonInterpreter;
use super::pyproject::{self, PyProject};
use super::requirements::specifier_of;
use super::version::{PythonVersion, VersionSpecifier};

const VERSION_FILE: &str = ".python-version";
/// The versions that our worker and `azure-functions` run on.
const MINIMUM: &str = ">=3.9";

/// The range of Python that a series of `azure-functions` needs, by the first numbers of its versions.
const LIBRARY_SERIES: [(&[u32], &str); 3] =
    [(&[1, 25], ">=3.10"), (&[1, 26], ">=3.10,<3.13"), (&[2], ">=3.13")];
/// The first series of the library in [`LIBRARY_SERIES`]. Earlier ones run on every supported Python.
const OLD_SERIES: std::ops::Range<u32> = 0..25;

/// A condition on the version of Python, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PythonWish {
    specifiers: Vec<VersionSpecifier>,
    /// A sentence such as `pyproject.toml requires Python >=3.12`.
    pub(super) reason: String,
}

impl PythonWish {
    /// Creates a wish that is met if one of the specifiers matches.
    pub(super) fn new(specifiers: Vec<VersionSpecifier>, reason: String) -> Self {
        Self { specifiers, reason }
    }

    fn is_met_by(&self, version: PythonVersion) -> bool {
        self.specifiers.iter().any(|specifier| specifier.matches(&version.numbers()))
    }
}

/// A version that is preferred: `3.13` or `3.13.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PythonPin {
    numbers: Vec<u32>,
    /// A sentence such as `.python-version asks for 3.13`.
    pub(super) reason: String,
}

impl PythonPin {
    /// Returns whether the version has all numbers of the pin.
    pub(super) fn is_met_exactly_by(&self, version: PythonVersion) -> bool {
        version.numbers().starts_with(&self.numbers)
    }

    /// Returns whether the first two numbers are the same.
    pub(super) fn is_met_by(&self, version: PythonVersion) -> bool {
        self.numbers.iter().take(2).eq(version.numbers().iter().take(2))
    }

    /// Returns the version as `3.13`, without its third number.
    pub(super) fn minor_version(&self) -> String {
        self.numbers.iter().take(2).map(u32::to_string).collect::<Vec<_>>().join(".")
    }
}

/// What an app says about its Python.
#[derive(Clone, Debug, Default)]
pub(super) struct PythonWishes {
    wishes: Vec<PythonWish>,
    /// The preferred versions, in order. One is enough.
    pub(super) pins: Vec<PythonPin>,
}

impl PythonWishes {
    /// Reads the wishes of an app.
    pub(super) fn read(
        app: &Path,
        project: Option<&PyProject>,
        dependencies: Option<&AppDependencies>,
    ) -> Self {
        let mut wishes = Self { wishes: Vec::new(), pins: pinned_versions(app) };
        if let Some(text) = project.and_then(|project| project.requires_python.as_deref())
            && let Some(specifier) = VersionSpecifier::parse(text)
        {
            let reason = format!("{} requires Python {}", pyproject::FILE, specifier.as_str());
            wishes.add(PythonWish::new(vec![specifier], reason));
        }
        if let Some(dependencies) = dependencies {
            let (lines, file) = dependencies.lines();
            lines
                .into_iter()
                .filter_map(|line| wish_of_library(line, file))
                .for_each(|wish| wishes.add(wish));
        }
        wishes
    }

    pub(super) fn add(&mut self, wish: PythonWish) {
        self.wishes.push(wish);
    }

    /// Prefers a version before all others.
    pub(super) fn prefer(&mut self, minor: u32, reason: String) {
        self.pins.insert(0, PythonPin { numbers: vec![3, minor], reason });
    }

    /// Returns the reason of the first wish that a version does not meet.
    pub(super) fn unmet_by(&self, version: PythonVersion) -> Option<&str> {
        self.wishes.iter().find(|wish| !wish.is_met_by(version)).map(|wish| wish.reason.as_str())
    }

    /// Returns whether our worker runs on a version, and the version meets all wishes.
    pub(super) fn are_met_by(&self, python: &PythonInterpreter) -> bool {
        let is_supported = VersionSpecifier::parse(MINIMUM)
            .is_some_and(|oldest| oldest.matches(&python.numbers().numbers()));
        is_supported && self.unmet_by(python.numbers()).is_none()
    }

    /// Returns the first pin if a version meets none of them.
    pub(super) fn unmet_pin(&self, version: PythonVersion) -> Option<&PythonPin> {
        if self.pins.iter().any(|pin| pin.is_met_by(version)) { None } else { self.pins.first() }
    }

    /// Returns the reasons of all wishes.
    pub(super) fn reasons(&self) -> Vec<&str> {
        self.wishes.iter().map(|wish| wish.reason.as_str()).collect()
    }

    /// Returns why a Python was not simply the first one: the pin that it meets, or else the first wish.
    pub(super) fn reason_for(&self, version: PythonVersion) -> Option<&str> {
        let pin = self.pins.iter().find(|pin| pin.is_met_by(version)).map(|pin| pin.reason.as_str());
        pin.or_else(|| self.reasons().first().copied())
    }

    /// Returns the version to download, as `3.13`: a pin, or the newest one that meets all wishes.
    pub(super) fn version_to_install(&self) -> String {
        let fits = |minor: &u32| {
            let newest = PythonVersion { major: 3, minor: *minor, micro: 99 };
            self.unmet_by(newest).is_none()
        };
        let pinned = self.pins.iter().filter_map(|pin| pin.numbers.get(1).copied()).find(fits);
        // The platform's newest released version first.
        let minor = pinned.or_else(|| [13, 12, 11, 10, 14, 9].into_iter().find(fits)).unwrap_or(13);
        format!("3.{minor}")
    }
}

/// Returns the versions of the nearest `.python-version`: of the app's folder, or of a folder above it up to
/// the root of the repository.
fn pinned_versions(app: &Path) -> Vec<PythonPin> {
    let is_root = |folder: &Path| folder.join(".git").exists();
    let has_root = app.ancestors().any(is_root);
    let mut folders = Vec::new();
    for folder in app.ancestors() {
        folders.push(folder);
        if !has_root || is_root(folder) {
            break;
        }
    }
    let Some((folder, text)) = folders
        .into_iter()
        .find_map(|folder| Some((folder, fs::read_to_string(folder.join(VERSION_FILE)).ok()?)))
    else {
        return Vec::new();
    };
    let shown =
        if folder == app { VERSION_FILE.to_owned() } else { folder.join(VERSION_FILE).display().to_string() };
    let versions = text.lines().filter_map(pinned_version);
    versions
        .map(|(text, numbers)| PythonPin { numbers, reason: format!("{shown} asks for Python {text}") })
        .collect()
}

/// Parses a line such as `3.13`, `3.13.1` or `cpython-3.13`. Other lines, such as the name of a virtual environment of
/// pyenv, say nothing about the version.
fn pinned_version(line: &str) -> Option<(String, Vec<u32>)> {
    let line = line.split('#').next().unwrap_or(line).trim();
    let version = ["cpython", "python"].iter().find_map(|name| line.strip_prefix(name)).unwrap_or(line);
    let version = version.trim_start_matches(['-', '@']);
    let end = version.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(version.len());
    let version = version.get(..end)?.trim_end_matches('.');
    let numbers: Vec<u32> = version.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    (numbers.first() == Some(&3) && (2..=3).contains(&numbers.len())).then(|| (version.to_owned(), numbers))
}

/// Returns the versions of Python that a line about `azure-functions` leaves.
fn wish_of_library(line: &str, file: &str) -> Option<PythonWish> {
    let shown = line.split([';', '#']).next().unwrap_or(line).trim();
    // A line with a marker may be meant for another Python.
    if line.contains(';') {
        return None;
    }
    if specifier_of(line, "azure-functions-runtime").is_some() {
        let specifiers = vec![VersionSpecifier::parse(">=3.13")?];
        return Some(PythonWish::new(specifiers, format!("{shown} in {file} needs Python >=3.13")));
    }
    let allowed = VersionSpecifier::parse(specifier_of(line, "azure-functions")?)?;
    if OLD_SERIES.into_iter().any(|minor| allowed.may_match_below(&[1, minor])) {
        return None;
    }
    let ranges =
        LIBRARY_SERIES.iter().filter(|(series, _)| allowed.may_match_below(series)).map(|(_, range)| *range);
    let ranges: Vec<&str> = ranges.collect();
    // A series whose range contains that of another one says enough.
    let widest = if ranges.contains(&">=3.10") { vec![">=3.10"] } else { ranges };
    if widest.is_empty() {
        return None;
    }
    let reason = format!("{shown} in {file} needs Python {}", widest.join(" or "));
    Some(PythonWish::new(widest.into_iter().filter_map(VersionSpecifier::parse).collect(), reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_the_library_limits_the_version_of_python() {
        let reason = |line| wish_of_library(line, "r.txt").map(|wish| wish.reason);
        let needs = |line: &str, range: &str| Some(format!("{line} in r.txt needs Python {range}"));
        for (line, range) in [
            ("azure-functions>=2.2.0b2", ">=3.13"),
            ("azure_functions~=2.1", ">=3.13"),
            ("azure-functions==2.*", ">=3.13"),
            ("azure-functions-runtime", ">=3.13"),
            ("azure-functions>=1.25", ">=3.10"),
            ("azure-functions==1.25.0", ">=3.10"),
            ("azure-functions==1.26.0b3", ">=3.10,<3.13"),
            ("azure-functions>=1.26.0b1", ">=3.10,<3.13 or >=3.13"),
        ] {
            assert_eq!(reason(line), needs(line, range));
        }
        for line in
            ["azure-functions", "azure-functions<2", "azure-functions>=1.24", "azure-functions==1.24.0"]
        {
            assert_eq!(reason(line), None, "{line}");
        }
        assert_eq!(reason("azure-functions>=2; python_version >= '3.13'"), None);
        assert_eq!(reason("azure-functions>=9"), None);
        assert_eq!(reason("azure-functions-durable>=2"), None);
    }

    #[test]
    fn a_line_of_the_version_file_is_a_version_or_ignored() {
        let numbers = |line| pinned_version(line).map(|(_, numbers)| numbers);
        assert_eq!(numbers(" 3.13 # ours"), Some(vec![3, 13]));
        assert_eq!(numbers("cpython-3.12.1-linux-x86_64-gnu"), Some(vec![3, 12, 1]));
        assert_eq!(numbers("cpython@3.12"), Some(vec![3, 12]));
        assert_eq!(numbers("3.14rc1"), Some(vec![3, 14]));
        for line in ["3", "2.7.18", "system", "pypy3.10-7.3.12", "my-app", ""] {
            assert_eq!(numbers(line), None, "{line}");
        }
    }
}
