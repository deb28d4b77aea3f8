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
/// The folders that build tools of Java write, and the files beside them.
const OUTPUTS: [(&str, [&str; 2]); 2] =
    [("target", ["pom.xml", "pom.xml"]), ("build", ["build.gradle", "build.gradle.kts"])];
/// The extensions of files that a worker loads or a build reads.
const SOURCES: [&str; 15] = [
    "py", "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jar", "class", "java", "kt", "kts", "groovy",
    "gradle",
];
/// The files that the host and the setup read.
const SETTINGS: [&str; 13] = [
    "pom.xml",
    "gradle.properties",
    "libs.versions.toml",
    "host.json",
    "local.settings.json",
    "function.json",
    "package.json",
    "tsconfig.json",
    "requirements.txt",
    "pyproject.toml",
    "uv.lock",
    ".python-version",
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

/// What is watched besides the sources of the app.
#[derive(Debug, Default)]
pub(crate) struct WatchAdditions {
    /// Files that are watched whatever their names are.
    pub(crate) files: Vec<PathBuf>,
    /// The packaged app of a project. Other files that the build writes are not watched.
    pub(crate) packaged: Option<PathBuf>,
}

/// The files of an app as they were at the last check.
#[derive(Debug)]
pub(crate) struct FileWatcher {
    root: PathBuf,
    additions: WatchAdditions,
    seen: SeenFiles,
}

impl FileWatcher {
    /// Captures the files as they are now. A change since `read` to one of its files is still reported.
    pub(crate) fn new(root: &Path, additions: WatchAdditions, read: &ConfigSnapshot) -> FileWatcher {
        let mut seen = scan_files(root, &additions);
        for (name, state) in READ_FIRST.iter().zip(&read.0) {
            match state {
                Some(state) => seen.insert(root.join(name), *state),
                None => seen.remove(&root.join(name)),
            };
        }
        FileWatcher { root: root.to_owned(), additions, seen }
    }

    /// Returns the files that were created, deleted or changed since the last check, relative to the app's
    /// folder.
    pub(crate) fn changes(&mut self) -> Vec<PathBuf> {
        let now = scan_files(&self.root, &self.additions);
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

fn scan_files(root: &Path, additions: &WatchAdditions) -> SeenFiles {
    let metadata = |path: &PathBuf| Some((path.clone(), state(&path.metadata().ok()?)));
    let mut seen: SeenFiles = additions.files.iter().filter_map(metadata).collect();
    let mut folders = vec![(root.to_owned(), 0)];
    folders.extend(additions.packaged.iter().map(|folder| (folder.clone(), 0)));
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                let is_ours =
                    !name.starts_with('.') && !NOT_OURS.contains(&name) && !is_output(&folder, name);
                if depth < DEEPEST && is_ours {
                    folders.push((entry.path(), depth + 1));
                }
            } else if is_watched(name) && seen.len() < MOST_FILES {
                seen.insert(entry.path(), state(&metadata));
            }
        }
    }
    seen
}

/// Returns whether a build tool of Java writes this folder.
fn is_output(parent: &Path, name: &str) -> bool {
    let tool = OUTPUTS.iter().find(|(folder, _)| *folder == name);
    tool.is_some_and(|(_, projects)| projects.iter().any(|project| parent.join(project).is_file()))
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
        let with_document = || WatchAdditions { files: vec![root.join("docs.txt")], packaged: None };
        assert!(FileWatcher::new(root, with_document(), &read).changes().is_empty());
        fs::write(root.join("host.json"), "{ }").unwrap();
        fs::write(root.join("local.settings.json"), "{}").unwrap();
        fs::write(root.join("built.js"), "").unwrap();
        fs::write(root.join("other.txt"), "").unwrap();
        let mut watch = FileWatcher::new(root, with_document(), &read);
        assert_eq!(watch.changes(), ["host.json", "local.settings.json"].map(PathBuf::from));
        assert!(watch.changes().is_empty());
        fs::write(root.join("docs.txt"), "").unwrap();
        assert_eq!(watch.changes(), [PathBuf::from("docs.txt")]);
    }

    /// A build tool rewrites its output many times during one build.
    #[test]
    fn of_the_output_of_a_build_only_the_packaged_app_is_watched() {
        let folder = PrivateFolder::create().unwrap();
        let root = folder.path();
        let packaged = root.join("target/azure-functions/orders");
        fs::create_dir_all(&packaged).unwrap();
        fs::create_dir_all(root.join("src/main/java")).unwrap();
        fs::create_dir_all(root.join("target/classes")).unwrap();
        fs::write(root.join("pom.xml"), "").unwrap();
        let additions = WatchAdditions { files: Vec::new(), packaged: Some(packaged.clone()) };
        let mut watch = FileWatcher::new(root, additions, &ConfigSnapshot::capture(root));
        fs::write(root.join("target/classes/Save.class"), "").unwrap();
        fs::write(root.join("target/orders.jar"), "").unwrap();
        assert!(watch.changes().is_empty());
        fs::write(root.join("src/main/java/Save.java"), "").unwrap();
        fs::write(packaged.join("orders.jar"), "").unwrap();
        let changed = ["src/main/java/Save.java", "target/azure-functions/orders/orders.jar"];
        assert_eq!(watch.changes(), changed.map(PathBuf::from));
    }
}
