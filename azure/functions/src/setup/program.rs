//! Finds the programs of a language, checks their versions, and suggests how to install them
//! on each platform.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Setup, SetupError};

/// How long a program may take to print its version. This allows for a cold start on a slow disk.
pub(super) const VERSION_LIMIT: Duration = Duration::from_secs(60);

/// A program that apps need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequiredProgram {
    Python,
    Node,
    Npm,
    Java,
}

/// The operating system, which decides how programs are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperatingSystem {
    Linux,
    Macos,
    Windows,
}

impl OperatingSystem {
    pub(super) fn current() -> Self {
        match env::consts::OS {
            "windows" => Self::Windows,
            "macos" => Self::Macos,
            _ => Self::Linux,
        }
    }
}

impl RequiredProgram {
    /// Returns the display name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Node => "Node",
            Self::Npm => "npm",
            Self::Java => "Java",
        }
    }

    /// Returns the minimum version that runs our workers, as numbers and as text.
    pub(super) fn minimum_version(self) -> (ProgramVersion, &'static str) {
        match self {
            Self::Python => (ProgramVersion { major: 3, minor: 9 }, "3.9"),
            Self::Node | Self::Npm => (ProgramVersion { major: 18, minor: 0 }, "18"),
            Self::Java => (ProgramVersion { major: 11, minor: 0 }, "11"),
        }
    }

    /// Returns the command that installs the program, or a newer version, on a platform.
    pub(super) fn fix(self, platform: OperatingSystem) -> &'static str {
        use OperatingSystem::{Linux, Macos, Windows};
        match (self, platform) {
            (Self::Python, Linux) => "sudo apt install python3 python3-venv   (Debian, Ubuntu)",
            (Self::Python, Macos) => "brew install python",
            (Self::Python, Windows) => "winget install Python.Python.3.13   (then open a new terminal)",
            (Self::Node | Self::Npm, Linux) => {
                "sudo apt install nodejs npm   (Debian 12, Ubuntu 24.04; elsewhere https://nodejs.org/en/download)"
            }
            (Self::Node | Self::Npm, Macos) => "brew install node",
            (Self::Node | Self::Npm, Windows) => {
                "winget install OpenJS.NodeJS.LTS   (then open a new terminal)"
            }
            (Self::Java, Linux) => "sudo apt install default-jre-headless   (Debian, Ubuntu)",
            (Self::Java, Macos) => "brew install --cask temurin",
            (Self::Java, Windows) => {
                "winget install EclipseAdoptium.Temurin.21.JDK   (then open a new terminal)"
            }
        }
    }

    pub(super) fn missing(self, looked_for: String) -> SetupError {
        let fix = self.fix(OperatingSystem::current()).to_owned();
        SetupError::Missing { program: self.name(), looked_for, fix }
    }

    pub(super) fn does_not_run(self, path: &Path, error: &SetupError) -> SetupError {
        let fix = self.fix(OperatingSystem::current()).to_owned();
        SetupError::DoesNotRun { path: path.to_path_buf(), reason: failure_reason(error), fix }
    }

    /// Rejects a version that is too old. A version that cannot be parsed is accepted, because it
    /// may be newer.
    pub(super) fn check_version(self, path: &Path, version: &str) -> Result<(), SetupError> {
        let (oldest, needed) = self.minimum_version();
        match ProgramVersion::parse(version) {
            Some(found) if found < oldest => Err(SetupError::TooOld {
                program: self.name(),
                path: path.to_path_buf(),
                version: version.to_owned(),
                needed,
                fix: self.fix(OperatingSystem::current()).to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// The first two numbers of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProgramVersion {
    pub(super) major: u32,
    pub(super) minor: u32,
}

impl ProgramVersion {
    /// Parses `3.11.7`, `v20.1`, and Java's `17`, `21-ea` and `1.8.0_392`, which is 8.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text
            .trim()
            .trim_start_matches('v')
            .split(|c: char| !c.is_ascii_digit())
            .map_while(|number| number.parse().ok());
        match (numbers.next()?, numbers.next().unwrap_or(0)) {
            (1, major) => Some(Self { major, minor: 0 }),
            (major, minor) => Some(Self { major, minor }),
        }
    }
}

/// Returns the last line of output of a failed program, or its exit status.
pub(super) fn failure_reason(error: &SetupError) -> String {
    match error {
        SetupError::CommandFailed { status, output, .. } => output.last().unwrap_or(status).clone(),
        SetupError::NotStarted { source, .. } => source.to_string(),
        SetupError::TimedOut { limit, .. } => format!("no output within {limit:.0?}"),
        error => error.to_string(),
    }
}

impl Setup<'_> {
    /// Returns the first program of this name on the PATH.
    pub(super) fn find_on_path(&self, name: &str) -> Option<PathBuf> {
        let path = self.variable("PATH")?;
        // Programs run in the app folder, where a relative entry of the PATH would refer to another folder.
        env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .find_map(|folder| find_executable(&folder.join(name)))
    }

    /// Returns the program that the settings name, or an error if it was not found. `None` if they
    /// name no program.
    pub(super) fn named_executable(&self, program: RequiredProgram) -> Option<Result<PathBuf, SetupError>> {
        let named = self.options.executable.as_ref()?;
        let is_bare = named.components().count() == 1 && named.parent() == Some(Path::new(""));
        let found = match named.to_str() {
            Some(name) if is_bare => self.find_on_path(name),
            _ => find_executable(&self.app.join(named)),
        };
        let place = if is_bare { " on the PATH" } else { "" };
        let looked_for = || format!("{}{place}, as configured in the settings", named.display());
        Some(found.ok_or_else(|| program.missing(looked_for())))
    }

    /// Returns the PATH with `folder` first. `None` if the folder's name is not allowed in a PATH.
    pub(super) fn prepend_to_path(&self, folder: &Path) -> Option<OsString> {
        let rest = self.variable("PATH").unwrap_or_default();
        env::join_paths(std::iter::once(folder.to_path_buf()).chain(env::split_paths(&rest))).ok()
    }
}

/// Returns `path` if it is an executable file. On Windows, the extensions exe, cmd and bat are tried.
pub(super) fn find_executable(path: &Path) -> Option<PathBuf> {
    if !cfg!(windows) {
        return is_executable(path).then(|| path.to_path_buf());
    }
    if path.extension().is_some() && path.is_file() {
        return Some(path.to_path_buf());
    }
    ["exe", "cmd", "bat"].iter().find_map(|ending| {
        let mut name = path.as_os_str().to_os_string();
        name.push(".");
        name.push(ending);
        Some(PathBuf::from(name)).filter(|path| path.is_file())
    })
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_every_program_are_parsed() {
        let parsed = |text| ProgramVersion::parse(text).map(|version| (version.major, version.minor));
        assert_eq!(parsed("3.9.18"), Some((3, 9)));
        assert_eq!(parsed("v20.20.2"), Some((20, 20)));
        assert_eq!(parsed("17"), Some((17, 0)));
        assert_eq!(parsed("21-ea"), Some((21, 0)));
        assert_eq!(parsed("1.8.0_392"), Some((8, 0)));
        assert_eq!(parsed("unknown"), None);
    }

    #[test]
    fn the_minimum_version_is_accepted_and_older_ones_are_rejected() {
        let python = |version| RequiredProgram::Python.check_version(Path::new("/p"), version).is_ok();
        assert!(python("3.9.0") && python("3.14.0a1") && !python("3.8.20") && !python("2.7.18"));
        let java = |version| RequiredProgram::Java.check_version(Path::new("/j"), version).is_ok();
        assert!(java("11") && !java("1.8.0_392"));
    }

    #[test]
    fn every_platform_has_its_own_fix() {
        for program in
            [RequiredProgram::Python, RequiredProgram::Node, RequiredProgram::Npm, RequiredProgram::Java]
        {
            assert!(program.fix(OperatingSystem::Linux).contains("apt install"));
            assert!(program.fix(OperatingSystem::Macos).starts_with("brew install"));
            assert!(program.fix(OperatingSystem::Windows).starts_with("winget install"));
        }
    }
}
