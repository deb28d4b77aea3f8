//! [`FileWatcher`]: detects changes to an app's files.
//!
//! It polls with one `stat` per source file. So it needs no file notifications of the system, and works on
//! container mounts that send none.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The maximum number of files that are watched. An app with more sources must be restarted by hand.
const MOST_FILES: usize = 20_000;
const DEEPEST: usize = 12;

/// Folders with third-party code or generated files.
const NOT_OURS: [&str; 4] = ["node_modules", "venv", "env", "__pycache__"];
/// The extensions of files that a worker loads or a build reads.
const SOURCES: [&str; 10] = ["py", "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jar", "class"];
/// The files that the host and the setup read.
const SETTINGS: [&str; 7] = [
    "host.json",
    "local.settings.json",
    "function.json",
    "package.json",
    "tsconfig.json",
    "requirements.txt",
    "proxies.json",
];

/// The files that the host reads before packages are installed and the app is built.
const READ_FIRST: [&str; 2] = ["host.json", "local.settings.json"];

type FileState = (Option<SystemTime>, u64);
type SeenFiles = HashMap<PathBuf, FileState>;

/// The state of the files in `READ_FIRST` when they were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigSnapshot([Option<FileState>; 2]);

impl ConfigSnapshot {
    /// Captures their state. Call this before they are read.
    pub(crate) fn capture(root: &Path) -> ConfigSnapshot {
        ConfigSnapshot(READ_FIRST.map(|name| root.join(name).metadata().ok().as_ref().map(state)))
    }
}

/// The files of an app as they were at the last check.
#[derive(Debug)]
pub(crate) struct FileWatcher {
    root: PathBuf,
    seen: SeenFiles,
}

impl FileWatcher {
    /// Captures the files as they are now. A change since `read` to one of its files is still reported.
    pub(crate) fn new(root: &Path, read: &ConfigSnapshot) -> FileWatcher {
        let mut seen = scan_files(root);
        for (name, state) in READ_FIRST.iter().zip(&read.0) {
            match state {
                Some(state) => seen.insert(root.join(name), *state),
                None => seen.remove(&root.join(name)),
            };
        }
        FileWatcher { root: root.to_owned(), seen }
    }

    /// Returns the files that were created, deleted or changed since the last check, relative to the app's
    /// folder.
    pub(crate) fn changes(&mut self) -> Vec<PathBuf> {
        let now = scan_files(&self.root);
        let came_or_changed = now.iter().filter(|(path, state)| self.seen.get(*path) != Some(state));
        let gone = self.seen.iter().filter(|(path, _)| !now.contains_key(*path));
        let changed = came_or_changed.chain(gone).map(|(path, _)| path);
        let mut changed: Vec<PathBuf> =
            changed.map(|path| path.strip_prefix(&self.root).unwrap_or(path).to_owned()).collect();
        changed.sort_unstable();
        self.seen = now;
        changed
    }
}

fn scan_files(root: &Path) -> SeenFiles {
    let mut seen = SeenFiles::new();
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                if depth < DEEPEST && !name.starts_with('.') && !NOT_OURS.contains(&name) {
                    folders.push((entry.path(), depth + 1));
                }
            } else if is_watched(name) && seen.len() < MOST_FILES {
                seen.insert(entry.path(), state(&metadata));
            }
        }
    }
    seen
}

fn state(metadata: &Metadata) -> FileState {
    (metadata.modified().ok(), metadata.len())
}

fn is_watched(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    SETTINGS.contains(&name) || extension.is_some_and(|extension| SOURCES.contains(&extension))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::worker::PrivateFolder;

    /// Installing packages and building the app comes between the two, and may take minutes.
    #[test]
    fn a_change_between_reading_and_watching_is_not_lost() {
        let folder = PrivateFolder::create().unwrap();
        let root = folder.path();
        fs::write(root.join("host.json"), "{}").unwrap();
        let read = ConfigSnapshot::capture(root);
        assert!(FileWatcher::new(root, &read).changes().is_empty());
        fs::write(root.join("host.json"), "{ }").unwrap();
        fs::write(root.join("local.settings.json"), "{}").unwrap();
        fs::write(root.join("built.js"), "").unwrap();
        let mut watch = FileWatcher::new(root, &read);
        assert_eq!(watch.changes(), ["host.json", "local.settings.json"].map(PathBuf::from));
        assert!(watch.changes().is_empty());
    }
}
