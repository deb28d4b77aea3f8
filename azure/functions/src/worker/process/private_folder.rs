//! [`PrivateFolder`]: a temporary folder that only this user can open.
//!
//! The folder is deleted when the value is dropped. A program that is killed leaves its folders behind.
//! The next program that creates a folder deletes them. Each folder contains a file that its owner keeps
//! locked. The kernel releases the lock when the owner exits for any reason, so an unlocked file marks
//! an abandoned folder.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// The prefix of folder names. `DIGITS` hexadecimal digits follow.
const PREFIX: &str = "bindpost-";
const DIGITS: usize = 16;
/// The file that the owner keeps locked.
const OWNER: &str = ".owner";
/// The name of that file until it is locked.
const UNCLAIMED: &str = ".unclaimed";

/// A folder that only this user can open. It is deleted when this is dropped.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    /// The locked file. `None` if the file system does not support locks. Other processes do not delete
    /// such a folder.
    owner: Option<File>,
}

impl PrivateFolder {
    /// Creates a folder in the temporary directory. The first call of a process deletes the folders
    /// of killed processes.
    pub fn create() -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        let parent = std::env::temp_dir();
        SWEPT.call_once(|| sweep(&parent));
        Self::create_in(&parent)
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        let mut name = uuid::Uuid::new_v4().simple().to_string();
        // The path of a unix socket in the folder must be short.
        name.truncate(DIGITS);
        let path = parent.join(format!("{PREFIX}{name}"));
        #[cfg_attr(not(unix), expect(unused_mut, reason = "the mode is for unix"))]
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        let owner = claim(&path);
        Ok(Self { path, owner })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // Some systems do not delete an open file.
        drop(self.owner.take());
        // An error is ignored, because the folder contains no data of the user.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Creates the locked file. It is renamed after it is locked, so that a sweep cannot find it before.
fn claim(folder: &Path) -> Option<File> {
    let unclaimed = folder.join(UNCLAIMED);
    let file = OpenOptions::new().write(true).create_new(true).open(&unclaimed).ok()?;
    let claimed = file.try_lock().is_ok() && fs::rename(&unclaimed, folder.join(OWNER)).is_ok();
    if !claimed {
        let _ = fs::remove_file(&unclaimed);
    }
    claimed.then_some(file)
}

/// Deletes the folders whose owners have exited.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_str().is_some_and(is_name) {
            continue;
        }
        let path = entry.path();
        // The lock is held until the folder is deleted.
        if let Some(_owner) = is_private(&path).then(|| lock_if_abandoned(&path)).flatten() {
            match fs::remove_dir_all(&path) {
                Ok(()) => {
                    tracing::debug!(target: "host", "deleted {}, left by a killed process", path.display())
                }
                Err(error) => tracing::debug!(target: "host", "cannot delete {}: {error}", path.display()),
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether the path is a folder, not a link, that belongs to this user and that no other
/// user can open.
fn is_private(path: &Path) -> bool {
    let Ok(metadata) = path.symlink_metadata() else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
            return false;
        }
    }
    metadata.is_dir()
}

/// Locks the owner file of a folder. Returns `None` if the file does not exist or is locked.
fn lock_if_abandoned(folder: &Path) -> Option<File> {
    let path = folder.join(OWNER);
    if !path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).ok()?;
    file.try_lock().is_ok().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parent folder for the folders of one test.
    fn parent() -> PrivateFolder {
        PrivateFolder::create().unwrap()
    }

    /// Creates a folder as a killed process leaves it: the owner file exists and is not locked.
    fn left_behind(parent: &Path) -> PathBuf {
        let mut folder = PrivateFolder::create_in(parent).unwrap();
        fs::create_dir(folder.path.join("inside")).unwrap();
        fs::write(folder.path.join("inside/file"), "x").unwrap();
        drop(folder.owner.take());
        let path = folder.path.clone();
        std::mem::forget(folder);
        path
    }

    #[test]
    fn folders_of_exited_owners_are_deleted_and_those_of_live_owners_are_kept() {
        let parent = parent();
        let live = PrivateFolder::create_in(parent.path()).unwrap();
        let dead = left_behind(parent.path());
        sweep(parent.path());
        assert!(!dead.exists());
        assert!(live.path().join(OWNER).is_file());
        let path = live.path().to_owned();
        drop(live);
        assert!(!path.exists());
    }

    #[test]
    fn other_folders_are_kept() {
        let parent = parent();
        let dead = || left_behind(parent.path());
        let other_name = parent.path().join("bindpost-run-1");
        fs::rename(dead(), &other_name).unwrap();
        let longer_name = dead();
        let longer = parent.path().join(format!("{}0", longer_name.file_name().unwrap().to_str().unwrap()));
        fs::rename(longer_name, &longer).unwrap();
        let without_owner = dead();
        fs::remove_file(without_owner.join(OWNER)).unwrap();
        let file = parent.path().join(format!("{PREFIX}0123456789abcdef"));
        fs::write(&file, "a file of that name").unwrap();
        let mut kept = vec![other_name, longer, without_owner, file];
        #[cfg(unix)]
        {
            use std::os::unix::fs::{PermissionsExt as _, symlink};
            let open_to_others = dead();
            fs::set_permissions(&open_to_others, fs::Permissions::from_mode(0o755)).unwrap();
            kept.push(open_to_others);
            // A link to a folder that would be deleted if the folder itself had this name.
            let target = parent.path().join("target");
            fs::rename(dead(), &target).unwrap();
            let link = parent.path().join(format!("{PREFIX}fedcba9876543210"));
            symlink(&target, &link).unwrap();
            kept.extend([target.join("inside/file"), link]);
            // An owner file that is a link to a file of the user.
            let linked = dead();
            fs::write(parent.path().join("precious"), "").unwrap();
            fs::remove_file(linked.join(OWNER)).unwrap();
            symlink(parent.path().join("precious"), linked.join(OWNER)).unwrap();
            kept.push(linked);
        }
        sweep(parent.path());
        for path in kept {
            assert!(path.symlink_metadata().is_ok(), "{} was deleted", path.display());
        }
    }

    /// The target of a link in a deleted folder is not deleted.
    #[cfg(unix)]
    #[test]
    fn a_sweep_does_not_follow_links() {
        let parent = parent();
        let precious = parent.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "x").unwrap();
        let dead = left_behind(parent.path());
        std::os::unix::fs::symlink(&precious, dead.join("link")).unwrap();
        sweep(parent.path());
        assert!(!dead.exists());
        assert!(precious.join("file").is_file());
    }
}
