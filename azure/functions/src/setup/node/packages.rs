//! `node_modules`: checks the installed packages, and installs them with the app's package manager.
//!
//! Packages that the user installed are not changed if `@azure/functions` is among them, or for a self-hosted app all
//! packages of `dependencies`. Packages that
//! bindpost installed are installed again when package.json or the lock file changes.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::command::CommandLine;
use super::super::program::RequiredProgram;
use super::super::stamp::InstallStamp;
use super::super::{Setup, SetupError};
use super::PackageJson;

/// The npm package of the programming model.
pub(super) const PACKAGE: &str = "@azure/functions";
/// A file that exists in the app folder while packages are installed, to detect an interrupted install. It is
/// not in `node_modules`, because `npm ci` empties that folder.
const INSTALLING: &str = ".bindpost-installing";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackageManagerKind {
    Npm,
    Pnpm,
    Yarn,
}

impl PackageManagerKind {
    const ALL: [Self; 3] = [Self::Npm, Self::Pnpm, Self::Yarn];

    fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
        }
    }

    fn lock_file(self) -> &'static str {
        match self {
            Self::Npm => "package-lock.json",
            Self::Pnpm => "pnpm-lock.yaml",
            Self::Yarn => "yarn.lock",
        }
    }
}

/// The package manager that installs the app's packages and runs its scripts.
pub(super) struct PackageManager {
    kind: PackageManagerKind,
    /// The path of the program. `None` if it was not found, which is an error only when it is needed.
    program: Option<PathBuf>,
    /// Whether the lock file is in the app folder, not in a parent folder.
    has_own_lock: bool,
    /// The manager of the app's lock file, if it is not installed.
    instead_of: Option<PackageManagerKind>,
}

impl PackageManager {
    /// Chooses the manager by the lock file of the app, or else by that of its workspace.
    pub(super) fn detect(setup: &Setup<'_>, node: &Path) -> Self {
        let find = |kind: PackageManagerKind| {
            let beside_node = node.parent().map(|folder| folder.join(kind.name()));
            let beside_node = beside_node.as_deref().and_then(super::super::program::find_executable);
            beside_node.or_else(|| setup.find_on_path(kind.name()))
        };
        let (wanted, has_own_lock) = match lock_file_kind(&setup.app) {
            Some(kind) => (kind, true),
            None => {
                (workspace(&setup.app).and_then(lock_file_kind).unwrap_or(PackageManagerKind::Npm), false)
            }
        };
        match find(wanted) {
            None if wanted != PackageManagerKind::Npm => Self {
                kind: PackageManagerKind::Npm,
                program: find(PackageManagerKind::Npm),
                has_own_lock: false,
                instead_of: Some(wanted),
            },
            program => Self { kind: wanted, program, has_own_lock, instead_of: None },
        }
    }

    /// Returns a command line of the manager, or an error if it is not installed.
    fn command(&self, setup: &Setup<'_>) -> Result<CommandLine, SetupError> {
        let missing = || RequiredProgram::Npm.missing("npm next to node and on the PATH".to_owned());
        let program = self.program.as_deref().ok_or_else(missing)?;
        let path = setup.prepared.environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.clone()).or_else(|| setup.variable("PATH"));
        Ok(setup.command(program).path(path).env("npm_config_update_notifier", "false"))
    }

    /// Returns the command that installs all packages. `first` means that no packages are installed yet.
    fn install_command(&self, setup: &Setup<'_>, first: bool) -> Result<CommandLine, SetupError> {
        let mut command = self.command(setup)?;
        for argument in self.install_arguments(first) {
            command = command.arg(argument);
        }
        // A build needs the development packages, which are not installed in production mode.
        let is_production = setup.variable("NODE_ENV").is_some_and(|value| value == "production");
        Ok(match self.kind {
            PackageManagerKind::Npm if is_production => command.arg("--include=dev"),
            _ if is_production => command.env("NODE_ENV", "development"),
            _ => command,
        })
    }

    fn install_arguments(&self, first: bool) -> &'static [&'static str] {
        match self.kind {
            // `npm ci` rejects a lock file that does not match package.json, so a change needs `npm install`.
            PackageManagerKind::Npm if first && self.has_own_lock => &["ci", "--no-audit", "--no-fund"],
            PackageManagerKind::Npm => &["install", "--no-audit", "--no-fund"],
            PackageManagerKind::Pnpm | PackageManagerKind::Yarn => &["install"],
        }
    }

    /// Returns npm's reasons if `npm ci` failed because the lock file does not match package.json. npm shows them before
    /// a hundred lines about its options.
    fn explain_stale_lock(&self, setup: &Setup<'_>, error: SetupError) -> SetupError {
        let SetupError::CommandFailed { output, .. } = &error else { return error };
        let reason = |line: &String| {
            let line = line.strip_prefix("npm error ").or_else(|| line.strip_prefix("npm ERR! "))?.trim();
            let names_lock = line.contains("from lock file") || line.contains("lock file's");
            (names_lock && (line.starts_with("Missing: ") || line.starts_with("Invalid: ")))
                .then(|| line.to_owned())
        };
        let reasons: Vec<String> = output.iter().filter_map(reason).collect();
        if reasons.is_empty() {
            return error;
        }
        let fix =
            self.manual_command(setup, &["install"]) + "; then commit package-lock.json and start again";
        SetupError::StaleLock { reasons, fix }
    }

    /// Installs what package.json lists, although the lock file does not match it. The lock file is neither used nor
    /// changed. A self-hosted app may come with such a file, because the platform installs nothing by it.
    async fn install_without_lock(
        &self,
        setup: &mut Setup<'_>,
        reasons: &[String],
        fix: String,
    ) -> Result<(), SetupError> {
        let command = self.command(setup)?.args(&["install", "--no-package-lock", "--no-audit", "--no-fund"]);
        let command = match setup.variable("NODE_ENV").is_some_and(|value| value == "production") {
            true => command.arg("--include=dev"),
            false => command,
        };
        setup.step("Installing packages with npm, without package-lock.json", &command).await?;
        let first = reasons.first().map(String::as_str).unwrap_or_default();
        let more = match reasons.len() {
            0 | 1 => String::new(),
            all => format!(", and {} more", all - 1),
        };
        let message = format!(
            "package-lock.json does not match package.json, so the versions in it are not used: {first}{more}"
        );
        setup.notice(message, fix);
        Ok(())
    }

    /// Returns the command that runs a script of package.json.
    pub(super) fn run_command(&self, setup: &Setup<'_>, script: &str) -> Result<CommandLine, SetupError> {
        Ok(self.command(setup)?.args(&["run", script]))
    }

    /// Returns a command as the user would type it.
    pub(super) fn manual_command(&self, setup: &Setup<'_>, arguments: &[&str]) -> String {
        format!("{} {}   (in {})", self.kind.name(), arguments.join(" "), setup.app.display())
    }
}

/// Installs the packages if they are missing, or if package.json has changed.
pub(super) async fn install(
    setup: &mut Setup<'_>,
    manager: &PackageManager,
    manifest: &PackageJson,
) -> Result<(), SetupError> {
    let modules = setup.app.join("node_modules");
    let marker = setup.app.join(INSTALLING);
    let is_there = match setup.needs_library {
        true => is_installed(&setup.app, PACKAGE),
        false => manifest.dependencies().all(|package| is_installed(&setup.app, package)),
    };
    let is_fatal = setup.needs_library && manifest.depends_on(PACKAGE);
    let was_interrupted = marker.is_file();
    let has_changed = InstallStamp::read(&modules).is_some_and(|stamp| stamp != current_stamp(&setup.app));
    let reason = if !manifest.has_dependencies() {
        None
    } else if was_interrupted {
        Some("the last install was not completed")
    } else if has_changed {
        Some("package.json or its lock file has changed")
    } else if !is_there && (is_fatal || !setup.needs_library || !modules.is_dir()) {
        Some("packages are missing")
    } else {
        None
    };
    let by_hand = manager.manual_command(setup, manager.install_arguments(!is_there));
    match reason {
        Some(reason) if setup.options.install => {
            if let Some(wanted) = manager.instead_of {
                let message = format!("{} is not installed, so npm is used", wanted.name());
                setup.notice(message, format!("npm install --global {}", wanted.name()));
            }
            let first = was_interrupted || !has_changed;
            let command = manager.install_command(setup, first)?;
            InstallStamp::remove(&modules)?;
            fs::write(&marker, "").map_err(SetupError::file(&marker, "written"))?;
            let sentence = format!("Installing packages with {}: {reason}", manager.kind.name());
            let installed = setup.step(&sentence, &command).await;
            match installed.map_err(|error| manager.explain_stale_lock(setup, error)) {
                Err(SetupError::StaleLock { reasons, fix }) if !setup.needs_library => {
                    manager.install_without_lock(setup, &reasons, fix).await?;
                }
                installed => installed?,
            }
            fs::remove_file(&marker).map_err(SetupError::file(&marker, "deleted"))?;
            // In a workspace, all packages may be in a parent folder. Then only their presence is checked.
            if modules.is_dir() {
                current_stamp(&setup.app).write(&modules)?;
            }
        }
        Some(reason) if is_there || !is_fatal => {
            setup.notice(format!("packages are not up to date: {reason}"), by_hand);
        }
        Some(_) => {
            return Err(SetupError::NotInstalled { package: PACKAGE, place: String::new(), fix: by_hand });
        }
        None => {}
    }
    if setup.needs_library && !is_installed(&setup.app, PACKAGE) {
        return check_missing_library(setup, manager, manifest);
    }
    Ok(())
}

/// Handles an app whose library cannot be found although its packages are installed.
fn check_missing_library(
    setup: &mut Setup<'_>,
    manager: &PackageManager,
    manifest: &PackageJson,
) -> Result<(), SetupError> {
    if manifest.depends_on(PACKAGE) {
        let place = format!(" in node_modules of {} or above", setup.app.display());
        let fix = manager.manual_command(setup, &["install"]);
        return Err(SetupError::NotInstalled { package: PACKAGE, place, fix });
    }
    // This is not an error. Functions described by function.json do not need the library, and a bundler may
    // have included it in the app's own files.
    if !setup.has_function_json() {
        let verb = if manager.kind == PackageManagerKind::Npm { "install" } else { "add" };
        let fix = manager.manual_command(setup, &[verb, PACKAGE]);
        setup.notice(format!("{PACKAGE} is not installed, and package.json does not list it"), fix);
    }
    Ok(())
}

/// Returns whether Node can resolve a package from the app folder: there, or in a parent folder.
fn is_installed(app: &Path, package: &str) -> bool {
    app.ancestors().any(|folder| folder.join("node_modules").join(package).join("package.json").is_file())
}

/// Returns the stamp of the current package.json and lock files.
fn current_stamp(app: &Path) -> InstallStamp {
    let files =
        PackageManagerKind::ALL.map(PackageManagerKind::lock_file).into_iter().chain(["package.json"]);
    let texts: Vec<Vec<u8>> = files.map(|file| fs::read(app.join(file)).unwrap_or_default()).collect();
    InstallStamp::from_parts(texts.iter().map(Vec::as_slice))
}

fn lock_file_kind(folder: &Path) -> Option<PackageManagerKind> {
    // npm is last: an app that uses another manager may also contain a package-lock.json.
    [PackageManagerKind::Pnpm, PackageManagerKind::Yarn, PackageManagerKind::Npm]
        .into_iter()
        .find(|kind| folder.join(kind.lock_file()).is_file())
}

/// Returns the nearest parent folder that declares workspaces.
fn workspace(app: &Path) -> Option<&Path> {
    app.ancestors().skip(1).find(|folder| {
        folder.join("pnpm-workspace.yaml").is_file()
            || PackageJson::read(folder).is_ok_and(|found| found.is_some_and(|found| found.has_workspaces()))
    })
}
