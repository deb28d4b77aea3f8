//! Builds a Node app whose entry files are missing, or older than its TypeScript sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::super::{Setup, SetupError};
use super::packages::PackageManager;
use super::{PackageJson, entry_files};

/// A file whose modification time is that of our last build. A build may rewrite only changed files and leave
/// an entry file older than a source.
const BUILT: &str = ".bindpost-built";
/// The maximum number of directory entries to check.
const MAX_SOURCES: usize = 20_000;

/// The entry files of an app: a path or a pattern, and where it comes from.
pub(super) struct EntryPattern<'a> {
    pub(super) pattern: &'a str,
    pub(super) named_by: &'static str,
}

/// Runs the build script if the output is missing or out of date.
pub(super) async fn build(
    setup: &mut Setup<'_>,
    manager: &PackageManager,
    manifest: &PackageJson,
    entry: EntryPattern<'_>,
) -> Result<(), SetupError> {
    let EntryPattern { pattern: main, named_by } = entry;
    let entries = entry_files::find_matching(&setup.app, main);
    let note = setup.app.join("node_modules").join(BUILT);
    let script = if entries.is_empty() { manifest.first_build_script() } else { "build" };
    let by_hand = manager.manual_command(setup, &["run", script]);
    if !manifest.has_build_script() {
        let is_needed = setup.needs_library && (manifest.has_main() || !setup.has_function_json());
        if entries.is_empty() && is_needed {
            let fix = if setup.app.join("tsconfig.json").is_file() {
                "add \"build\": \"tsc\" to \"scripts\" of package.json, then start again"
            } else {
                "correct \"main\" of package.json"
            };
            setup.notice(format!("no file matches \"main\" of package.json: {main}"), fix.to_owned());
        }
        return Ok(());
    }
    let reason = if entries.is_empty() {
        "its output is missing"
    } else if is_stale(&setup.app, &entries, &note) {
        "sources are newer than its output"
    } else {
        return Ok(());
    };
    if !setup.options.install {
        if entries.is_empty() {
            return Err(SetupError::NotBuilt { named_by, main: main.to_owned(), after: "", fix: by_hand });
        }
        setup.notice(format!("the build is not up to date: {reason}"), by_hand);
        return Ok(());
    }
    let command = manager.run_command(setup, script)?;
    setup.step(&format!("Building the app: {reason}"), &command).await?;
    if entry_files::find_matching(&setup.app, main).is_empty() {
        let fix = format!("set {named_by} to the files that the build writes");
        let after = ", although the build ran";
        return Err(SetupError::NotBuilt { named_by, main: main.to_owned(), after, fix });
    }
    if let Some(folder) = note.parent().filter(|folder| folder.is_dir()) {
        fs::write(&note, "").map_err(SetupError::file(folder, "written"))?;
    }
    Ok(())
}

/// Returns whether a TypeScript source is newer than every entry file and than our last build.
fn is_stale(app: &Path, entries: &[PathBuf], note: &Path) -> bool {
    if !app.join("tsconfig.json").is_file() {
        return false;
    }
    let built = entries.iter().map(PathBuf::as_path).chain([note]).filter_map(modified_time).max();
    newest_source(&app.join("src")) > built
}

fn modified_time(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|file| file.modified()).ok()
}

fn newest_source(folder: &Path) -> Option<SystemTime> {
    let mut newest = None;
    let mut folders = vec![folder.to_path_buf()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_SOURCES {
                return newest;
            }
            // Links are not followed, because they may form a cycle.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && entry.file_name() != "node_modules" => {
                    folders.push(entry.path())
                }
                Ok(kind) if kind.is_file() && is_source(&entry.path()) => {
                    newest = newest.max(modified_time(&entry.path()));
                }
                _ => {}
            }
        }
    }
    newest
}

fn is_source(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ["ts", "mts", "cts", "tsx"].iter().any(|known| ending == *known))
}
