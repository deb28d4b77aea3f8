//! [`InstallStamp`]: records what was installed, so that a change of the requirements triggers a new install.

use std::fmt;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::SetupError;

/// The name of the stamp file in a virtual environment or `node_modules`.
pub(super) const INSTALLED: &str = ".bindpost-installed";

/// A hash of the requirements of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InstallStamp(String);

/// Writes the hash as hexadecimal digits.
impl fmt::Display for InstallStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl InstallStamp {
    pub(super) fn from_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            // The length separates parts that would be equal when joined.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Reads the stamp in `folder`, if it exists.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        fs::read_to_string(folder.join(INSTALLED)).ok().map(|text| Self(text.trim().to_owned()))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), SetupError> {
        let file = folder.join(INSTALLED);
        fs::write(&file, format!("{}\n", self.0)).map_err(SetupError::file(&file, "written"))
    }

    /// Deletes the stamp before an install, so that an interrupted install leaves none.
    pub(super) fn remove(folder: &Path) -> Result<(), SetupError> {
        let file = folder.join(INSTALLED);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(SetupError::file(&file, "deleted")(error))
            }
            _ => Ok(()),
        }
    }
}
