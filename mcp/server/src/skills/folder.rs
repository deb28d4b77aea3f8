//! Reads a [`SkillSet`] from a folder. What is not read is a mistake or is documented in
//! [`SkillSet::from_folder`].

use std::fs::{self, DirEntry, File, FileType};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::set::{FileDraft, SkillDraft, SkillSet};
use super::{MANIFEST, MAX_BYTES, MAX_FILES};
use crate::catalog::CatalogError;

/// The maximum depth of folders in each other.
const MAX_DEPTH: usize = 32;

pub(super) fn read_set(folder: &Path) -> SkillSet {
    let mut reader = FolderReader { root: PathBuf::new(), set: SkillSet::new() };
    match folder.canonicalize() {
        Ok(root) => {
            reader.root = root;
            reader.read_folder(folder, "", None, 0);
            let FolderReader { set, .. } = &mut reader;
            if set.skills.is_empty() && set.mistakes.is_empty() {
                let reason = format!("the folder has no skills; a skill is a folder in it with a {MANIFEST}");
                set.mistakes.push(mistake(folder, reason));
            }
        }
        Err(error) => {
            let hint = if folder.is_relative() {
                "; a relative path starts at the working directory of the program"
            } else {
                ""
            };
            let reason = format!("the folder cannot be read: {error}{hint}");
            reader.set.mistakes.push(mistake(folder, reason));
        }
    }
    reader.set
}

fn mistake(place: &Path, reason: impl Into<String>) -> CatalogError {
    CatalogError::Invalid { kind: "skill", name: place.display().to_string(), reason: reason.into() }
}

struct FolderReader {
    /// The folder of all skills, without symbolic links.
    root: PathBuf,
    set: SkillSet,
}

/// What has been read of a skill that is in no other skill.
#[derive(Default)]
struct SkillTally {
    files: usize,
    bytes: u64,
}

impl SkillTally {
    fn is_exceeded(&self) -> bool {
        self.files > MAX_FILES || self.bytes > MAX_BYTES
    }
}

impl FolderReader {
    fn reject(&mut self, place: &Path, reason: impl Into<String>) {
        self.set.mistakes.push(mistake(place, reason));
    }

    /// Reads a folder. `path` is its path from the root, `tally` that of the skill that contains it.
    fn read_folder(&mut self, folder: &Path, path: &str, tally: Option<&mut SkillTally>, depth: usize) {
        if depth > MAX_DEPTH {
            return self.reject(folder, format!("the folder is deeper than {MAX_DEPTH} folders; move it up"));
        }
        let entries = match self.visible_entries(folder) {
            Ok(entries) => entries,
            Err(error) => return self.reject(folder, format!("the folder cannot be read: {error}")),
        };
        let is_skill = entries.iter().any(|(name, _, kind)| name == MANIFEST && !kind.is_dir());
        for (name, entry, _) in &entries {
            if name != MANIFEST && name.eq_ignore_ascii_case(MANIFEST) {
                self.reject(
                    &entry.path(),
                    format!("the name of the file is {name:?}; rename it to {MANIFEST:?}"),
                );
                return;
            }
        }
        if is_skill && path.is_empty() {
            let reason = "the folder of all skills cannot be a skill; give the folder above it, or move the \
                          files to a folder with the name of the skill";
            return self.reject(folder, reason);
        }
        let mut own = SkillTally::default();
        let mut tally = match tally {
            Some(tally) => Some(tally),
            None if is_skill => Some(&mut own),
            None => None,
        };
        let mut has_stray_files = false;
        for (name, entry, kind) in entries {
            let inner = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            if kind.is_dir() {
                self.read_folder(&entry.path(), &inner, tally.as_deref_mut(), depth + 1);
            } else if let Some(tally) = tally.as_deref_mut() {
                let is_read = self.read_file(&entry, inner, tally);
                if is_read && name == MANIFEST {
                    let place = entry.path().display().to_string();
                    self.set.skills.push(SkillDraft { path: path.to_owned(), place });
                }
            } else {
                has_stray_files = true;
            }
            if tally.as_deref().is_some_and(SkillTally::is_exceeded) {
                break;
            }
        }
        // A skill that contains this one reports the limits.
        if own.is_exceeded() {
            let reason = format!(
                "the skill has more than {MAX_FILES} files or {} MiB, which hosts may refuse; remove files",
                MAX_BYTES / 1024 / 1024
            );
            self.reject(folder, reason);
        }
        if has_stray_files && !path.is_empty() {
            let reason =
                format!("the folder has files but no {MANIFEST}; add one, or move the files to a skill");
            self.reject(folder, reason);
        }
    }

    /// Returns the files and folders whose names do not begin with a dot, sorted by name.
    fn visible_entries(&mut self, folder: &Path) -> io::Result<Vec<(String, DirEntry, FileType)>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_name().into_string() {
                Ok(name) if name.starts_with('.') => {}
                Ok(name) => {
                    let kind = entry.file_type()?;
                    entries.push((name, entry, kind));
                }
                Err(_) => self.reject(&entry.path(), "the name of the file is not UTF-8; rename it"),
            }
        }
        entries.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        Ok(entries)
    }

    /// Reads a file, unless it is a mistake or exceeds the limits. Returns whether it was read.
    fn read_file(&mut self, entry: &DirEntry, path: String, tally: &mut SkillTally) -> bool {
        let place = entry.path();
        let content = match self.content_of(entry, MAX_BYTES.saturating_sub(tally.bytes)) {
            Ok(content) => content,
            Err(reason) => {
                self.reject(&place, reason);
                return false;
            }
        };
        tally.files += 1;
        tally.bytes += u64::try_from(content.len()).unwrap_or(u64::MAX);
        if tally.is_exceeded() {
            return false;
        }
        self.set.files.push(FileDraft { path, content, place: place.display().to_string() });
        true
    }

    /// Reads at most one byte more than `limit`.
    fn content_of(&self, entry: &DirEntry, limit: u64) -> Result<Vec<u8>, String> {
        let unreadable = |error: io::Error| format!("the file cannot be read: {error}");
        // Without links in the path, so that what is checked is what is opened.
        let target = entry.path().canonicalize().map_err(unreadable)?;
        if !target.starts_with(&self.root) {
            return Err(
                "the symbolic link leads out of the folder of skills; replace it by the file".to_owned()
            );
        }
        let metadata = fs::metadata(&target).map_err(unreadable)?;
        if metadata.is_dir() {
            return Err("a symbolic link to a folder is not followed; replace it by the folder".to_owned());
        }
        if !metadata.is_file() {
            return Err("this is not a regular file; remove it".to_owned());
        }
        let mut content = Vec::new();
        let file = File::open(&target).map_err(unreadable)?;
        file.take(limit.saturating_add(1)).read_to_end(&mut content).map_err(unreadable)?;
        Ok(content)
    }
}
