//! Finds the virtual environment of an app, or creates it.
//!
//! A virtual environment that bindpost creates contains a marker file. No other one is ever deleted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::command::{CommandLine, quote_argument};
use super::super::program::{RequiredProgram, failure_reason};
use super::super::{Setup, SetupError};
use super::interpreter::{self, PythonInterpreter};

/// The folder that bindpost creates.
pub(super) const CREATED: &str = ".venv";
/// The usual folder names, most common first.
const FOLDERS: [&str; 4] = [CREATED, "venv", "env", ".env"];
/// The file that marks a folder as created by bindpost. Its content is `complete` when the folder is.
const MARKER: &str = ".bindpost-created";
const COMPLETE: &str = "complete\n";

/// The folder of a virtual environment, which may be incomplete.
pub(super) struct VirtualEnv {
    folder: PathBuf,
    /// Whether it comes from `VIRTUAL_ENV`, not from the app folder.
    is_active: bool,
}

/// Returns the virtual environment of the app, or else the active one.
pub(super) fn find(setup: &mut Setup<'_>) -> Option<VirtualEnv> {
    let of_the_app = FOLDERS.iter().map(|name| setup.app.join(name));
    // A folder of ours without pyvenv.cfg is a virtual environment whose creation was interrupted.
    if let Some(folder) = of_the_app.into_iter().find(|folder| is_virtual_env(folder) || is_ours(folder)) {
        return Some(VirtualEnv { folder, is_active: false });
    }
    let folder = PathBuf::from(setup.variable("VIRTUAL_ENV")?);
    if is_virtual_env(&folder) {
        return Some(VirtualEnv { folder, is_active: true });
    }
    let message = format!("VIRTUAL_ENV is ignored: {} is not a virtual environment", folder.display());
    setup.notice(message, "deactivate".to_owned());
    None
}

/// Returns whether bindpost created the folder.
pub(super) fn is_ours(folder: &Path) -> bool {
    folder.join(MARKER).is_file()
}

/// Returns the path of the interpreter of a virtual environment.
pub(super) fn python_in(folder: &Path) -> PathBuf {
    if cfg!(windows) { folder.join("Scripts").join("python.exe") } else { folder.join("bin").join("python") }
}

fn is_virtual_env(folder: &Path) -> bool {
    folder.join("pyvenv.cfg").is_file()
}

impl VirtualEnv {
    pub(super) fn is_ours(&self) -> bool {
        is_ours(&self.folder)
    }

    /// Queries its interpreter. The virtual environment is broken if that fails, or if it is ours and
    /// has no pip.
    pub(super) async fn python(&self, setup: &Setup<'_>) -> Result<PythonInterpreter, SetupError> {
        if self.is_ours() && fs::read_to_string(self.folder.join(MARKER)).ok().as_deref() != Some(COMPLETE) {
            return Err(self.broken("its creation was interrupted".to_owned()));
        }
        let path = python_in(&self.folder);
        let mut python = match interpreter::probe(setup, &path, None).await {
            Ok(python) => python,
            Err(error) => return Err(self.broken(failure_reason(&error))),
        };
        RequiredProgram::Python.check_version(&path, &python.version).map_err(|error| self.too_old(error))?;
        if self.is_ours() && !python.has_pip {
            // The base interpreter was replaced by another version of Python.
            return Err(self.broken("it has no packages for this version of Python".to_owned()));
        }
        python.virtual_env = Some(self.folder.clone());
        Ok(python)
    }

    fn broken(&self, reason: String) -> SetupError {
        SetupError::BrokenVirtualEnv { folder: self.folder.clone(), reason, fix: self.suggested_fix() }
    }

    /// Replaces the fix of the error. Installing a newer Python does not help while the
    /// virtual environment exists.
    fn too_old(&self, error: SetupError) -> SetupError {
        match error {
            SetupError::TooOld { program, path, version, needed, .. } => {
                SetupError::TooOld { program, path, version, needed, fix: self.suggested_fix() }
            }
            error => error,
        }
    }

    /// Returns the error of an environment whose Python does not fit the app.
    pub(super) fn unsuitable(&self, version: &str, reason: &str) -> SetupError {
        SetupError::UnsuitableEnvironment {
            folder: self.folder.clone(),
            version: version.to_owned(),
            reason: reason.to_owned(),
            fix: self.suggested_fix(),
        }
    }

    /// Returns how the start screen names it.
    pub(super) fn place(&self, setup: &Setup<'_>) -> String {
        let folder = setup.display_path(&self.folder);
        if self.is_active { format!("VIRTUAL_ENV {folder}") } else { format!("{folder} of the app") }
    }

    /// Returns the command that removes the environment from the way.
    pub(super) fn suggested_fix(&self) -> String {
        let delete = if cfg!(windows) { "rmdir /s" } else { "rm -r" };
        if self.is_active {
            "deactivate   (then start again)".to_owned()
        } else {
            format!("{delete} {}   (then start again)", quote_argument(&self.folder))
        }
    }

    /// Deletes the folder.
    pub(super) fn delete(&self) -> Result<(), SetupError> {
        fs::remove_dir_all(&self.folder).map_err(SetupError::file(&self.folder, "deleted"))
    }

    /// Creates the app's virtual environment.
    pub(super) async fn create(setup: &Setup<'_>, base: &PythonInterpreter) -> Result<Self, SetupError> {
        let made = Self::begin(setup)?;
        let command = setup.command(&base.path).args(&["-m", "venv"]).arg(&made.folder);
        let sentence = format!("Creating a virtual environment in {CREATED} with Python {}", base.version);
        let created = made.finish(setup, &sentence, &command).await;
        created.map_err(|error| if lacks_venv(&error) { no_venv(base) } else { error })
    }

    /// Creates the app's virtual environment with a Python that uv downloads if necessary.
    pub(super) async fn create_with_uv(
        setup: &Setup<'_>,
        uv: &Path,
        version: &str,
    ) -> Result<Self, SetupError> {
        let made = Self::begin(setup)?;
        // uv does not replace a folder with other files, and the marker is one.
        let command = setup.command(uv).args(&["venv", "--seed", "--allow-existing", "--python", version]);
        let sentence = format!("Creating a virtual environment in {CREATED} with uv and Python {version}");
        let command = command.arg(&made.folder);
        made.finish(setup, &sentence, &command).await
    }

    /// Creates the folder with the marker, so that an interrupted creation is recognized as ours.
    fn begin(setup: &Setup<'_>) -> Result<Self, SetupError> {
        let folder = setup.app.join(CREATED);
        if !is_free(&folder) {
            return Err(SetupError::InTheWay { folder });
        }
        fs::create_dir_all(&folder).map_err(SetupError::file(&folder, "created"))?;
        mark(&folder, "incomplete\n")?;
        Ok(Self { folder, is_active: false })
    }

    /// Runs the command that fills the folder. A failure deletes it.
    async fn finish(
        self,
        setup: &Setup<'_>,
        sentence: &str,
        command: &CommandLine,
    ) -> Result<Self, SetupError> {
        if let Err(error) = setup.step(sentence, command).await {
            self.delete()?;
            return Err(error);
        }
        mark(&self.folder, COMPLETE)?;
        Ok(self)
    }
}

fn mark(folder: &Path, state: &str) -> Result<(), SetupError> {
    let marker = folder.join(MARKER);
    fs::write(&marker, state).map_err(SetupError::file(&marker, "written"))
}

/// Returns whether the folder is empty or does not exist.
fn is_free(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Returns whether Python cannot create virtual environments. Debian ships it without `venv` and `ensurepip`,
/// and each has its own message.
fn lacks_venv(error: &SetupError) -> bool {
    let SetupError::CommandFailed { output, .. } = error else { return false };
    output
        .iter()
        .any(|line| line.contains("ensurepip is not available") || line.contains("No module named venv"))
}

fn no_venv(base: &PythonInterpreter) -> SetupError {
    let fix = "sudo apt install python3-venv   (Debian, Ubuntu; then start again)".to_owned();
    SetupError::NoModule { python: base.path.clone(), module: "venv", fix }
}
