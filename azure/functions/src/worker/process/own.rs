//! The bundled language workers. They are part of this program and are written to a private
//! folder when needed.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::private_folder::PrivateFolder;

/// The name of a file and its content.
pub(crate) type BundledFile = (&'static str, &'static [u8]);

// `PYTHON`, `NODE`, `JAVA_SOURCES`: every file of `workers/`, found by build.rs. `JAVA_CLASSES`: the compiled Java worker,
// if the program was built with it.
include!(concat!(env!("OUT_DIR"), "/own_workers.rs"));

/// A language worker that is part of this program and runs without being compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundledWorker {
    Python,
    Node,
}

/// A bundled worker whose files are on disk.
#[derive(Clone, Debug)]
pub struct UnpackedWorker {
    /// The folder of its files and of its socket.
    pub folder: Arc<PrivateFolder>,
    /// The file that the interpreter runs.
    pub entry: PathBuf,
}

impl BundledWorker {
    /// Writes the worker's files to a new private folder.
    pub fn unpack(self) -> io::Result<UnpackedWorker> {
        let (files, entry) = match self {
            Self::Python => (PYTHON, "worker.py"),
            Self::Node => (NODE, "worker.cjs"),
        };
        if !files.iter().any(|(name, _)| *name == entry) {
            return Err(io::Error::other(format!("this build does not include the {self:?} worker")));
        }
        let folder = PrivateFolder::create()?;
        for (name, content) in files {
            let path = folder.path().join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, content)?;
        }
        Ok(UnpackedWorker { entry: folder.path().join(entry), folder: Arc::new(folder) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_private_and_is_deleted() {
        for worker in [BundledWorker::Python, BundledWorker::Node] {
            let unpacked = worker.unpack().unwrap();
            assert!(unpacked.entry.is_file());
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                let mode = std::fs::metadata(unpacked.folder.path()).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o700);
            }
            let path = unpacked.folder.path().to_owned();
            drop(unpacked);
            assert!(!path.exists());
        }
    }
}
