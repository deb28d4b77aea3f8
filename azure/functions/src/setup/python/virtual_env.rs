//! Virtual environments: finding the app's, and creating one.
//!
//! One that we create holds a file that says so. It is the only kind we ever delete.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::command::{CommandLine, quote_argument};
use super::super::program::{RequiredProgram, failure_reason};
use super::super::{Setup, SetupError};
use super::interpreter::{self, PythonInterpreter};

/// The folder that we create.
pub(super) const CREATED: &str = ".venv";
/// The folders people use, in the order of how many do.
const FOLDERS: [&str; 4] = [CREATED, "venv", "env", ".env"];
/// Says that the folder is ours, and whether it is complete.
const MARKER: &str = ".bindpost-created";
const COMPLETE: &str = "complete\n";

/// A folder that is, or should be, a virtual environment.
pub(super) struct VirtualEnv {
    folder: PathBuf,
    /// Whether the environment names it, not the app.
    is_active: bool,
}

/// The virtual environment of the app, else the active one.
pub(super) fn find(setup: &mut Setup<'_>) -> Option<VirtualEnv> {
    let of_the_app = FOLDERS.iter().map(|name| setup.app.join(name));
    // Without pyvenv.cfg it is one of ours whose creation was interrupted.
    if let Some(folder) = of_the_app.into_iter().find(|folder| is_virtual_env(folder) || is_ours(folder)) {
        return Some(VirtualEnv { folder, is_active: false });
    }
    let folder = PathBuf::from(setup.variable("VIRTUAL_ENV")?);
    if is_virtual_env(&folder) {
        return Some(VirtualEnv { folder, is_active: true });
    }
    let message = format!("VIRTUAL_ENV names {}, which is no virtual environment: ignored", folder.display());
    setup.notice(message, "deactivate".to_owned());
    None
}

/// Whether we created the folder.
pub(super) fn is_ours(folder: &Path) -> bool {
    folder.join(MARKER).is_file()
}

/// Where the interpreter of a virtual environment is.
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

    /// Runs its interpreter. It fails as broken if that does not work, or if it is ours and has no pip.
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
            // Another Python took the place of the one it was made with.
            return Err(self.broken("it has no packages for this version of Python".to_owned()));
        }
        python.virtual_env = Some(self.folder.clone());
        Ok(python)
    }

    fn broken(&self, reason: String) -> SetupError {
        SetupError::BrokenVirtualEnv { folder: self.folder.clone(), reason, fix: self.suggested_fix() }
    }

    /// A newer Python does not help as long as the virtual environment is there.
    fn too_old(&self, error: SetupError) -> SetupError {
        match error {
            SetupError::TooOld { program, path, version, needed, .. } => {
                SetupError::TooOld { program, path, version, needed, fix: self.suggested_fix() }
            }
            error => error,
        }
    }

    fn suggested_fix(&self) -> String {
        let delete = if cfg!(windows) { "rmdir /s" } else { "rm -r" };
        if self.is_active {
            "deactivate   (then start again)".to_owned()
        } else {
            format!("{delete} {}   (then start again)", quote_argument(&self.folder))
        }
    }

    /// Deletes what we created.
    pub(super) fn delete(&self) -> Result<(), SetupError> {
        fs::remove_dir_all(&self.folder).map_err(SetupError::file(&self.folder, "deleted"))
    }

    /// Creates the app's virtual environment.
    pub(super) async fn create(setup: &Setup<'_>, base: &PythonInterpreter) -> Result<Self, SetupError> {
        let folder = setup.app.join(CREATED);
        if !is_free(&folder) {
            return Err(SetupError::InTheWay { folder });
        }
        // The marker comes first: whatever is interrupted from here on is known as ours.
        fs::create_dir_all(&folder).map_err(SetupError::file(&folder, "created"))?;
        mark(&folder, "incomplete\n")?;
        let made = Self { folder, is_active: false };
        let command: CommandLine = setup.command(&base.path).args(&["-m", "venv"]).arg(&made.folder);
        let sentence = format!("Creating a virtual environment in {CREATED} with Python {}", base.version);
        if let Err(error) = setup.step(&sentence, &command).await {
            made.delete()?;
            return Err(if lacks_venv(&error) { no_venv(base) } else { error });
        }
        mark(&made.folder, COMPLETE)?;
        Ok(made)
    }
}

fn mark(folder: &Path, state: &str) -> Result<(), SetupError> {
    let marker = folder.join(MARKER);
    fs::write(&marker, state).map_err(SetupError::file(&marker, "written"))
}

/// Whether nothing would be overwritten.
fn is_free(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Debian ships Python without the parts that make virtual environments; each half has its own words.
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
