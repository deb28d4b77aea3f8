//! Which of an app's files have changed.
//!
//! A look costs one `stat` per source file, so it needs no help of the system, and works on the mounts of
//! containers where such help stays silent.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files beyond these are not looked at; an app with more sources is started again by hand.
const MOST_FILES: usize = 20_000;
const DEEPEST: usize = 12;

/// Folders that hold other people's code, or what running the app makes.
const NOT_OURS: [&str; 4] = ["node_modules", "venv", "env", "__pycache__"];
/// What a worker loads, or a build makes it from.
const SOURCES: [&str; 10] = ["py", "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jar", "class"];
/// What the host and the set-up read.
const SETTINGS: [&str; 7] = [
    "host.json",
    "local.settings.json",
    "function.json",
    "package.json",
    "tsconfig.json",
    "requirements.txt",
    "proxies.json",
];

type Seen = HashMap<PathBuf, (Option<SystemTime>, u64)>;

/// The files of an app as they were when somebody last looked.
#[derive(Debug)]
pub(crate) struct Watch {
    root: PathBuf,
    seen: Seen,
}

impl Watch {
    pub(crate) fn new(root: &Path) -> Watch {
        Watch { root: root.to_owned(), seen: look(root) }
    }

    /// What has come, gone or changed since the last look, relative to the app's folder.
    pub(crate) fn changes(&mut self) -> Vec<PathBuf> {
        let now = look(&self.root);
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

fn look(root: &Path) -> Seen {
    let mut seen = Seen::new();
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
                seen.insert(entry.path(), (metadata.modified().ok(), metadata.len()));
            }
        }
    }
    seen
}

fn is_watched(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    SETTINGS.contains(&name) || extension.is_some_and(|extension| SOURCES.contains(&extension))
}
