//! Temporary folders of tests.

use std::path::{Path, PathBuf};

/// A new, empty folder that is deleted on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        let name = format!("bindpost-{:016x}", getrandom::u64().unwrap());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Scratch(path.canonicalize().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
