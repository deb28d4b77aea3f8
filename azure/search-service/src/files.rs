//! Atomic writes of small files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    Owner,
    Everyone,
}

/// Replaces a file atomically. A reader, or a start after a crash, sees either the old text or the new one.
pub(crate) fn write_atomically(path: &Path, text: &[u8], readers: FileAccess) -> io::Result<()> {
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    let _ = fs::remove_file(&draft);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if readers == FileAccess::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = readers;
    let written = options.open(&draft).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}
