//! A redb file that can be reopened after a disk failure.
//!
//! After the first I/O error, including a full disk, redb rejects all operations until the file is
//! reopened. Some kinds of file damage cause a panic in redb.

use std::ffi::OsString;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use bindpost_azure_search_model::ApiError;
use chrono::Utc;
use redb::{ReadTransaction, ReadableDatabase as _, TransactionError, WriteTransaction};

pub(crate) struct RedbDatabase {
    path: PathBuf,
    cache_bytes: usize,
    /// `None` when the file could not be reopened.
    file: RwLock<Option<redb::Database>>,
}

impl RedbDatabase {
    /// Opens the file, or creates it.
    pub(crate) fn open(path: &Path, cache_bytes: usize) -> Result<Self, redb::Error> {
        let file = RwLock::new(Some(open(path, cache_bytes)?));
        Ok(Self { path: path.to_owned(), cache_bytes, file })
    }

    /// Opens a file that the service can run without, and reads its content. A damaged file is renamed
    /// and replaced by a new one. `holds` names the lost content for the log message.
    pub(crate) fn open_or_put_aside<T>(
        path: &Path,
        cache_bytes: usize,
        holds: &str,
        read: impl Fn(&Self) -> Result<T, redb::Error>,
    ) -> Result<(Self, T), redb::Error> {
        let open = || {
            catch_redb_panic(|| {
                let database = Self::checked(path, cache_bytes)?;
                let read = read(&database)?;
                Ok((database, read))
            })
        };
        match open() {
            Err(error) if is_damage(&error) => {
                let aside = put_aside(path).map_err(redb::Error::Io)?;
                tracing::error!(
                    file = %path.display(), aside = %aside.display(), %error,
                    "a damaged file was renamed, and the service starts without {holds}\n  fix: stop the service and \
                     restore the file from a backup, or continue without it"
                );
                open()
            }
            opened => opened,
        }
    }

    /// Opens a file and checks the integrity of all its pages.
    fn checked(path: &Path, cache_bytes: usize) -> Result<Self, redb::Error> {
        // Files are created atomically, so an empty file is damaged. redb would treat it as a new file.
        if path.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            return Err(redb::Error::Corrupted("the file is empty".to_owned()));
        }
        let mut file = open(path, cache_bytes)?;
        match file.check_integrity().map_err(redb::Error::from) {
            Ok(true) => {}
            Ok(false) => tracing::warn!(
                file = %path.display(), "a damaged file was repaired; its last change may be lost"
            ),
            Err(error) if is_damage(&error) => return Err(error),
            // The check may need free disk space. The service can run without the check.
            Err(_) => {
                drop(file);
                file = open(path, cache_bytes)?;
            }
        }
        Ok(Self { path: path.to_owned(), cache_bytes, file: RwLock::new(Some(file)) })
    }

    pub(crate) fn read(&self) -> Result<ReadTransaction, redb::Error> {
        match &*self.file.read().unwrap_or_else(PoisonError::into_inner) {
            Some(file) => Ok(file.begin_read()?),
            None => Err(redb::Error::PreviousIo),
        }
    }

    pub(crate) fn write(&self) -> Result<WriteTransaction, redb::Error> {
        match &*self.file.read().unwrap_or_else(PoisonError::into_inner) {
            Some(file) => begin_write(file),
            None => Err(redb::Error::PreviousIo),
        }
    }

    /// Reopens the file after a disk failure. Returns whether it was reopened. After that, earlier read
    /// transactions are invalid. Waits until the current writer has finished.
    pub(crate) fn reopen_after_failure(&self) -> Result<bool, redb::Error> {
        let mut file = self.file.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*file
            && !matches!(begin_write(file), Err(redb::Error::PreviousIo))
        {
            return Ok(false);
        }
        // The file can be open only once.
        *file = None;
        *file = Some(open(&self.path, self.cache_bytes)?);
        Ok(true)
    }
}

fn open(path: &Path, cache_bytes: usize) -> Result<redb::Database, redb::Error> {
    if !path.exists() {
        create(path, cache_bytes)?;
    }
    let opened =
        catch_redb_panic(|| Ok(redb::Database::builder().set_cache_size(cache_bytes).create(path)?))?;
    // Definitions hold connection strings.
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .map_err(redb::Error::Io)?;
    Ok(opened)
}

/// Runs an operation on a database. A panic in redb becomes the error of a damaged file.
pub(crate) fn catch_redb_panic<T>(work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    // An unfinished transaction was not committed and is not used again.
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err(redb::Error::Corrupted("the file is damaged".to_owned())))
}

/// Returns whether the content of the file causes the error, and not a temporary problem.
fn is_damage(error: &redb::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error {
        redb::Error::Io(error) => matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof),
        redb::Error::DatabaseAlreadyOpen | redb::Error::PreviousIo | redb::Error::UpgradeRequired(_) => false,
        _ => true,
    }
}

/// Renames a file so that it is not opened again.
fn put_aside(path: &Path) -> io::Result<PathBuf> {
    for number in 0.. {
        let mut name = OsString::from(path);
        name.push(format!(".damaged-{}", Utc::now().format("%Y%m%dT%H%M%SZ")));
        if number > 0 {
            name.push(format!("-{number}"));
        }
        let aside = PathBuf::from(name);
        if !aside.exists() {
            std::fs::rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

/// Creates a new file under a temporary name and moves it to its path when it is complete. A process that
/// ends early therefore leaves no unreadable file.
fn create(path: &Path, cache_bytes: usize) -> Result<(), redb::Error> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(name);
    let placed = (|| {
        let _ = std::fs::remove_file(&new);
        drop(redb::Database::builder().set_cache_size(cache_bytes).create(&new)?);
        // A hard link never replaces a file that another process has created in the meantime.
        match std::fs::hard_link(&new, path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => std::fs::rename(&new, path),
            _ => Ok(()),
        }
        .map_err(redb::Error::Io)
    })();
    let _ = std::fs::remove_file(&new);
    placed
}

/// Converts a database error into the error for the client.
pub(crate) fn database_error(doing: &'static str, error: &redb::Error) -> ApiError {
    match error {
        redb::Error::Io(reason) => ApiError::storage(doing, reason),
        other => ApiError::internal(doing, other),
    }
}

fn begin_write(file: &redb::Database) -> Result<WriteTransaction, redb::Error> {
    let mut transaction = file.begin_write().map_err(|error: TransactionError| redb::Error::from(error))?;
    // Without quick repair, redb reads the whole file at the first start after a crash: seconds instead
    // of milliseconds for half a gigabyte. A commit takes slightly longer.
    transaction.set_quick_repair(true);
    Ok(transaction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_moved_to_its_path_when_it_is_complete() {
        let folder = std::env::temp_dir().join(format!("bindpost-database-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.redb");
        // A process that ended while it created its file has left this.
        let left = folder.join(format!("a.redb.{}.new", std::process::id()));
        std::fs::write(&left, [0; 100]).unwrap();
        let database = RedbDatabase::open(&path, 1 << 20).unwrap();
        database.write().unwrap().commit().unwrap();
        assert!(RedbDatabase::open(&path, 1 << 20).is_err(), "a file can be open only once");
        drop(database);
        RedbDatabase::open(&path, 1 << 20).unwrap();
        let files: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files, ["a.redb"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
