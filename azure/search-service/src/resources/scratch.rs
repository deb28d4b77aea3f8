//! Temporary folders that are deleted after the test.

use std::path::{Path, PathBuf};

pub(crate) struct TestFolder(PathBuf);

impl TestFolder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("bindpost-search-{:016x}", getrandom::u64().unwrap()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
