//! [`AppDependencies`]: where a Python app lists its packages, and the command that installs them.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::command::{CommandLine, quote_argument};
use super::super::stamp::InstallStamp;
use super::super::{Setup, SetupError};
use super::interpreter::PythonInterpreter;
use super::pyproject::{self, PyProject};
use super::requirements::{self, PythonRequirements};
use super::uv_lock::LockedVersions;

const LOCK_FILE: &str = "uv.lock";

/// The packages of an app, and the file that lists them.
pub(super) enum AppDependencies {
    /// requirements.txt, and the files that it names.
    Requirements(PythonRequirements),
    /// `dependencies` of pyproject.toml, and the versions of uv.lock, if there is one.
    Project { dependencies: Vec<String>, versions: Option<LockedVersions> },
    /// uv.lock, which uv installs.
    Locked {
        /// The program.
        uv: PathBuf,
        /// `dependencies` of pyproject.toml.
        dependencies: Vec<String>,
        /// The contents of uv.lock and pyproject.toml.
        contents: [Vec<u8>; 2],
    },
}

impl AppDependencies {
    /// Reads the dependencies of an app. uv.lock is used if uv is installed and the lock file has the library, or
    /// there is no requirements.txt. Otherwise requirements.txt is used, or else pyproject.toml. A self-hosted app needs
    /// no library. For it, `dependencies` of pyproject.toml come before requirements.txt.
    pub(super) fn read(
        setup: &mut Setup<'_>,
        project: Option<&PyProject>,
    ) -> Result<Option<Self>, SetupError> {
        let mut requirements = PythonRequirements::read(&setup.app)?;
        let listed = project.and_then(|project| project.dependencies.clone());
        if !setup.needs_library && listed.as_ref().is_some_and(|listed| !listed.is_empty()) {
            requirements = None;
        }
        let lock = project.and_then(|_| fs::read(setup.app.join(LOCK_FILE)).ok());
        let mut versions = None;
        if let Some(lock) = lock
            && (requirements.is_none() || has_library(&lock))
        {
            if let Some(uv) = setup.find_on_path("uv") {
                let manifest = fs::read(setup.app.join(pyproject::FILE)).unwrap_or_default();
                let dependencies = listed.unwrap_or_default();
                return Ok(Some(Self::Locked { uv, dependencies, contents: [lock, manifest] }));
            }
            if requirements.is_none() && listed.is_some() {
                versions = LockedVersions::parse(&lock);
                let how = match versions {
                    Some(_) => "in the versions of uv.lock, without checking their hashes",
                    None => "without the versions of uv.lock, which is not valid",
                };
                let message =
                    format!("uv is not installed, so pip installs the dependencies of pyproject.toml, {how}");
                setup.notice(message, "install uv: https://docs.astral.sh/uv/".to_owned());
            }
        }
        let project = listed.map(|dependencies| Self::Project { dependencies, versions });
        Ok(requirements.map(Self::Requirements).or(project))
    }

    /// Returns the file that lists the packages.
    pub(super) fn file(&self) -> &'static str {
        match self {
            Self::Requirements(_) => requirements::FILE,
            Self::Project { versions: Some(_), .. } => "pyproject.toml, uv.lock",
            Self::Project { .. } => pyproject::FILE,
            Self::Locked { .. } => LOCK_FILE,
        }
    }

    /// Returns what is installed, for the sentence of a step.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Requirements(_) => requirements::FILE,
            Self::Project { .. } => "the dependencies of pyproject.toml",
            Self::Locked { .. } => "the packages of uv.lock",
        }
    }

    /// Returns how the user adds the library.
    pub(super) fn fix_without_library(&self) -> &'static str {
        match self {
            Self::Requirements(_) => "add the line `azure-functions` to requirements.txt, then start again",
            Self::Project { .. } => {
                "add \"azure-functions\" to `dependencies` in `[project]` of pyproject.toml, then start again"
            }
            Self::Locked { .. } => "uv add azure-functions   (then start again)",
        }
    }

    /// Returns the requirements, one package each, and the file that has them.
    pub(super) fn lines(&self) -> (Vec<&str>, &'static str) {
        match self {
            Self::Requirements(requirements) => (requirements.lines().collect(), requirements::FILE),
            Self::Project { dependencies, .. } | Self::Locked { dependencies, .. } => {
                (dependencies.iter().map(String::as_str).collect(), pyproject::FILE)
            }
        }
    }

    /// Returns whether `azure-functions` is required.
    pub(super) fn include_functions_library(&self) -> bool {
        match self {
            Self::Locked { contents: [lock, _], .. } => has_library(lock),
            _ => self
                .lines()
                .0
                .into_iter()
                .any(|line| requirements::specifier_of(line, "azure-functions").is_some()),
        }
    }

    pub(super) fn stamp(&self, python_version: &str) -> InstallStamp {
        let version = std::iter::once(python_version.as_bytes());
        match self {
            Self::Requirements(requirements) => InstallStamp::from_parts(version.chain(requirements.texts())),
            Self::Project { dependencies, versions } => {
                let listed = dependencies.iter().map(String::as_bytes);
                let versions = versions.iter().map(LockedVersions::as_bytes);
                InstallStamp::from_parts(version.chain(listed).chain(versions))
            }
            Self::Locked { contents, .. } => {
                InstallStamp::from_parts(version.chain(contents.iter().map(Vec::as_slice)))
            }
        }
    }

    /// Returns the command that installs the packages into a virtual environment. `None` if that needs pip, and
    /// there is neither pip nor uv.
    pub(super) fn install_command(
        &self,
        setup: &Setup<'_>,
        python: &PythonInterpreter,
        folder: &Path,
    ) -> Option<CommandLine> {
        if let Self::Locked { uv, .. } = self {
            // Without `--python`, uv replaces an environment whose Python is not its choice. `--inexact` keeps
            // packages that the user has added.
            let sync = setup.command(uv).args(&["sync", "--locked", "--inexact", "--python"]);
            return Some(sync.arg(&python.path).env("UV_PROJECT_ENVIRONMENT", folder));
        }
        let command = if python.has_pip {
            python.pip_install(setup)
        } else {
            setup.command(&setup.find_on_path("uv")?).args(&["pip", "install", "--python"]).arg(&python.path)
        };
        Some(match self {
            Self::Requirements(_) => command.arg("-r").arg(setup.app.join(requirements::FILE)),
            Self::Project { versions: Some(_), .. } => {
                let command = command.arg("-c").arg(LockedVersions::file(folder));
                self.lines().0.iter().filter(|line| !line.starts_with('-')).fold(command, CommandLine::arg)
            }
            _ => self.lines().0.iter().filter(|line| !line.starts_with('-')).fold(command, CommandLine::arg),
        })
    }

    /// Writes the files into a virtual environment that the command reads.
    pub(super) fn write_files(&self, folder: &Path) -> Result<(), SetupError> {
        match self {
            Self::Project { versions: Some(versions), .. } => versions.write(folder),
            _ => Ok(()),
        }
    }

    /// Returns the arguments of `pip install` that install the packages, as the user would type them.
    pub(super) fn manual_arguments(&self, app: &Path) -> String {
        match self {
            Self::Requirements(_) => format!("-r {}", quote_argument(app.join(requirements::FILE))),
            _ => self.lines().0.iter().map(quote_argument).collect::<Vec<_>>().join(" "),
        }
    }
}

fn has_library(lock: &[u8]) -> bool {
    String::from_utf8_lossy(lock).lines().any(|line| line.trim() == "name = \"azure-functions\"")
}
