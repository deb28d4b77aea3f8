//! `node_modules`: finding what is installed, and installing it with the app's package manager.
//!
//! Packages that the user installed are left alone as long as `@azure/functions` is among them. Those that we
//! installed are installed again when package.json or the lock file changes.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::command::CommandLine;
use super::super::program::RequiredProgram;
use super::super::stamp::InstallStamp;
use super::super::{Setup, SetupError};
use super::PackageJson;

/// The library of the programming model.
pub(super) const PACKAGE: &str = "@azure/functions";
/// Lies in the app folder while packages are installed. `npm ci` empties `node_modules`, so no note in there
/// could tell that it was interrupted.
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

/// What installs the app's packages and runs its scripts.
pub(super) struct PackageManager {
    kind: PackageManagerKind,
    /// Where it is. None: not found, which matters only if it has something to do.
    program: Option<PathBuf>,
    /// Whether the lock file lies in the app folder, not in one above.
    has_own_lock: bool,
    /// The manager whose lock file the app has and that is not installed.
    instead_of: Option<PackageManagerKind>,
}

impl PackageManager {
    /// Chooses by the lock file of the app, else of the workspace that it is part of.
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

    /// A command line of the manager. Errors if it is not installed.
    fn command(&self, setup: &Setup<'_>) -> Result<CommandLine, SetupError> {
        let missing = || RequiredProgram::Npm.missing("npm next to node and on the PATH".to_owned());
        let program = self.program.as_deref().ok_or_else(missing)?;
        let path = setup.prepared.environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.clone()).or_else(|| setup.variable("PATH"));
        Ok(setup.command(program).path(path).env("npm_config_update_notifier", "false"))
    }

    /// What installs all packages; `first` if none of them are there.
    fn install_command(&self, setup: &Setup<'_>, first: bool) -> Result<CommandLine, SetupError> {
        let mut command = self.command(setup)?;
        for argument in self.install_arguments(first) {
            command = command.arg(argument);
        }
        // A build needs the development packages, which production leaves out.
        let is_production = setup.variable("NODE_ENV").is_some_and(|value| value == "production");
        Ok(match self.kind {
            PackageManagerKind::Npm if is_production => command.arg("--include=dev"),
            _ if is_production => command.env("NODE_ENV", "development"),
            _ => command,
        })
    }

    fn install_arguments(&self, first: bool) -> &'static [&'static str] {
        match self.kind {
            // `npm ci` refuses a lock file that package.json has outgrown, so a change needs `npm install`.
            PackageManagerKind::Npm if first && self.has_own_lock => &["ci", "--no-audit", "--no-fund"],
            PackageManagerKind::Npm => &["install", "--no-audit", "--no-fund"],
            PackageManagerKind::Pnpm | PackageManagerKind::Yarn => &["install"],
        }
    }

    pub(super) fn build_command(&self, setup: &Setup<'_>) -> Result<CommandLine, SetupError> {
        Ok(self.command(setup)?.args(&["run", "build"]))
    }

    /// The same command as the user would type it.
    pub(super) fn manual_command(&self, setup: &Setup<'_>, arguments: &[&str]) -> String {
        format!("{} {}   (in {})", self.kind.name(), arguments.join(" "), setup.app.display())
    }
}

/// Installs the packages if they are not, or not those that package.json asks for now.
pub(super) async fn install(
    setup: &mut Setup<'_>,
    manager: &PackageManager,
    manifest: &PackageJson,
) -> Result<(), SetupError> {
    let modules = setup.app.join("node_modules");
    let marker = setup.app.join(INSTALLING);
    let is_there = is_library_installed(&setup.app);
    let was_interrupted = marker.is_file();
    let has_changed = InstallStamp::read(&modules).is_some_and(|stamp| stamp != current_stamp(&setup.app));
    let reason = if !manifest.has_dependencies() {
        None
    } else if was_interrupted {
        Some("the last install did not end well")
    } else if has_changed {
        Some("package.json or its lock file has changed")
    } else if !is_there && (manifest.depends_on(PACKAGE) || !modules.is_dir()) {
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
            setup.step(&sentence, &command).await?;
            fs::remove_file(&marker).map_err(SetupError::file(&marker, "deleted"))?;
            // In a workspace the packages may all lie above; then presence is all we look at.
            if modules.is_dir() {
                current_stamp(&setup.app).write(&modules)?;
            }
        }
        Some(reason) if is_there || !manifest.depends_on(PACKAGE) => {
            setup.notice(format!("packages are not up to date: {reason}"), by_hand);
        }
        Some(_) => {
            return Err(SetupError::NotInstalled { package: PACKAGE, place: String::new(), fix: by_hand });
        }
        None => {}
    }
    if !is_library_installed(&setup.app) {
        return check_missing_library(setup, manager, manifest);
    }
    Ok(())
}

/// Judges an app whose library cannot be found though all is installed.
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
    // Functions described by function.json do not need it, and a bundler may have put it into the app's own
    // files: no reason to refuse the app.
    if !setup.has_function_json() {
        let verb = if manager.kind == PackageManagerKind::Npm { "install" } else { "add" };
        let fix = manager.manual_command(setup, &[verb, PACKAGE]);
        setup.notice(format!("{PACKAGE} is not installed, and package.json does not ask for it"), fix);
    }
    Ok(())
}

/// Whether Node would find the library from the app folder: there, or hoisted to a folder above.
fn is_library_installed(app: &Path) -> bool {
    app.ancestors().any(|folder| folder.join("node_modules").join(PACKAGE).join("package.json").is_file())
}

/// What the app asks for now.
fn current_stamp(app: &Path) -> InstallStamp {
    let files =
        PackageManagerKind::ALL.map(PackageManagerKind::lock_file).into_iter().chain(["package.json"]);
    let texts: Vec<Vec<u8>> = files.map(|file| fs::read(app.join(file)).unwrap_or_default()).collect();
    InstallStamp::from_parts(texts.iter().map(Vec::as_slice))
}

fn lock_file_kind(folder: &Path) -> Option<PackageManagerKind> {
    // npm last: who uses another manager may have a stray package-lock.json, hardly the reverse.
    [PackageManagerKind::Pnpm, PackageManagerKind::Yarn, PackageManagerKind::Npm]
        .into_iter()
        .find(|kind| folder.join(kind.lock_file()).is_file())
}

/// The nearest folder above that declares workspaces.
fn workspace(app: &Path) -> Option<&Path> {
    app.ancestors().skip(1).find(|folder| {
        folder.join("pnpm-workspace.yaml").is_file()
            || PackageJson::read(folder).is_ok_and(|found| found.is_some_and(|found| found.has_workspaces()))
    })
}
