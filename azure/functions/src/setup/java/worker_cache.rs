//! [`WorkerCache`]: the folder in which the compiled worker is kept for the next start.
//!
//! Its classes are executed, so a folder that another user could have written is not used.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::Setup;
use super::super::program::OperatingSystem;

/// The folders below the user's cache folder.
const FOLDERS: [&str; 2] = ["bindpost", "java-worker"];
/// The prefix of the name of a folder that is not complete.
const DRAFT: &str = ".draft-";
/// The age from which a draft is known to be left by a process that was killed.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// The folder of compiled workers. It belongs to this user, and no other user can write to it.
#[derive(Debug)]
pub(super) struct WorkerCache {
    folder: PathBuf,
}

/// A folder that is filled and then kept. It is deleted if it is not kept.
#[derive(Debug)]
pub(super) struct CacheDraft {
    path: PathBuf,
}

impl WorkerCache {
    /// Opens the folder, and creates it if it does not exist.
    pub(super) fn open(setup: &Setup<'_>) -> io::Result<Self> {
        let not_found = || io::Error::new(ErrorKind::NotFound, "the user has no cache folder");
        Self::open_in(&user_folder(setup).ok_or_else(not_found)?)
    }

    fn open_in(parent: &Path) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        let mut folder = parent.to_path_buf();
        for name in FOLDERS {
            folder.push(name);
            create_private(&folder)?;
            check_private(&folder)?;
        }
        Ok(Self { folder })
    }

    /// Returns the folder of this name, if it is complete and can be trusted.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        let folder = self.folder.join(name);
        check_private(&folder).is_ok().then_some(folder)
    }

    /// Creates an empty folder to fill. Deletes those of processes that were killed.
    pub(super) fn draft(&self) -> io::Result<CacheDraft> {
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let is_draft = entry.file_name().to_str().is_some_and(|name| name.starts_with(DRAFT));
            let age = entry.metadata().and_then(|file| file.modified()).map(|time| time.elapsed());
            if is_draft && matches!(age, Ok(Ok(age)) if age > ABANDONED) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let path = self.folder.join(format!("{DRAFT}{}", uuid::Uuid::new_v4().simple()));
        create_private(&path)?;
        Ok(CacheDraft { path })
    }

    /// Keeps a draft under a name. If another process was faster, its folder is used.
    pub(super) fn keep(&self, draft: &CacheDraft, name: &str) -> io::Result<PathBuf> {
        let folder = self.folder.join(name);
        match fs::rename(&draft.path, &folder) {
            Ok(()) => Ok(folder),
            Err(error) => self.find(name).ok_or(error),
        }
    }
}

impl CacheDraft {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for CacheDraft {
    fn drop(&mut self) {
        // A draft that was kept has another name now.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Returns the user's folder for caches.
fn user_folder(setup: &Setup<'_>) -> Option<PathBuf> {
    let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let variable = |name: &str| setup.variable(name).and_then(absolute);
    if let Some(folder) = variable("XDG_CACHE_HOME") {
        return Some(folder);
    }
    match OperatingSystem::current() {
        OperatingSystem::Windows => variable("LOCALAPPDATA"),
        OperatingSystem::Macos => Some(variable("HOME")?.join("Library/Caches")),
        OperatingSystem::Linux => Some(variable("HOME")?.join(".cache")),
    }
}

fn create_private(folder: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "the mode is for unix"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

/// Rejects what is not a folder of this user, and what another user can write to.
fn check_private(folder: &Path) -> io::Result<()> {
    let metadata = folder.symlink_metadata()?;
    if !metadata.is_dir() {
        return Err(io::Error::other(format!("{} is not a folder", folder.display())));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other(format!("{} belongs to another user", folder.display())));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(io::Error::other(format!("other users can write to {}", folder.display())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::worker::PrivateFolder;

    #[test]
    fn a_draft_is_kept_under_its_name_or_deleted() {
        let parent = PrivateFolder::create().unwrap();
        let cache = WorkerCache::open_in(parent.path()).unwrap();
        let names = || fs::read_dir(&cache.folder).unwrap().count();
        drop(cache.draft().unwrap());
        assert_eq!(names(), 0);
        assert_eq!(cache.find("one"), None);
        for content in ["first", "second"] {
            let draft = cache.draft().unwrap();
            fs::write(draft.path().join("file"), content).unwrap();
            let kept = cache.keep(&draft, "one").unwrap();
            drop(draft);
            assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "first", "the first one stays");
            assert_eq!(cache.find("one"), Some(kept));
            assert_eq!(names(), 1);
        }
    }

    #[cfg(unix)]
    #[test]
    fn folders_that_another_user_could_have_written_are_not_used() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let parent = PrivateFolder::create().unwrap();
        let cache = WorkerCache::open_in(parent.path()).unwrap();
        let kept = cache.keep(&cache.draft().unwrap(), "one").unwrap();
        symlink(&kept, cache.folder.join("link")).unwrap();
        assert_eq!(cache.find("link"), None);
        for mode in [0o720, 0o702] {
            fs::set_permissions(&kept, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(cache.find("one"), None);
        }
        fs::set_permissions(&cache.folder, fs::Permissions::from_mode(0o777)).unwrap();
        let error = WorkerCache::open_in(parent.path()).unwrap_err();
        assert!(error.to_string().starts_with("other users can write to "), "{error}");
    }

    #[test]
    fn drafts_of_killed_processes_are_deleted_after_a_while() {
        let parent = PrivateFolder::create().unwrap();
        let cache = WorkerCache::open_in(parent.path()).unwrap();
        let (old, new) = (cache.draft().unwrap(), cache.draft().unwrap());
        let long_ago = SystemTime::now() - ABANDONED * 2;
        fs::File::open(old.path()).unwrap().set_modified(long_ago).unwrap();
        let _third = cache.draft().unwrap();
        assert!(!old.path().exists() && new.path().exists());
    }
}
