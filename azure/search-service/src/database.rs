//! A redb file that is of use again after the disk has failed.
//!
//! redb refuses everything after the first error of the disk, a full one included, until the file is opened again. Some
//! damages of a file end in a panic of it.

use std::ffi::OsString;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use crate::ApiError;
use chrono::Utc;
use redb::{ReadTransaction, ReadableDatabase as _, TransactionError, WriteTransaction};

pub(crate) struct RedbDatabase {
    path: PathBuf,
    cache_bytes: usize,
    /// Nothing when it could not be opened again.
    file: RwLock<Option<redb::Database>>,
}

impl RedbDatabase {
    /// Opens the file, or creates it.
    pub(crate) fn open(path: &Path, cache_bytes: usize) -> Result<Self, redb::Error> {
        let file = RwLock::new(Some(open(path, cache_bytes)?));
        Ok(Self { path: path.to_owned(), cache_bytes, file })
    }

    /// Opens a file that the service can do without, and reads what it holds. When it is damaged it is put aside under
    /// another name, and a new one takes its place. `holds` says in the log what that costs.
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
                    "a damaged file was put aside, and the service starts without {holds}\n  fix: stop the service and \
                     put a copy of the file back, or go on without it"
                );
                open()
            }
            opened => opened,
        }
    }

    /// Opens a file of which every page is as it was written.
    fn checked(path: &Path, cache_bytes: usize) -> Result<Self, redb::Error> {
        // Files come to their places whole; for redb this would be a new one.
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
            // Checking may need room to write, and the service is of use without it.
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

    /// Opens the file again if the disk has failed, and says whether it did. What was read from it before is of no use
    /// then. Waits for whoever writes.
    pub(crate) fn reopen_after_failure(&self) -> Result<bool, redb::Error> {
        let mut file = self.file.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*file
            && !matches!(begin_write(file), Err(redb::Error::PreviousIo))
        {
            return Ok(false);
        }
        // The file has one owner at a time.
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

/// Does something with a database. A panic of redb is the error of a damaged file.
pub(crate) fn catch_redb_panic<T>(work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    // What redb has left half done is not used again: it is a transaction that was not committed.
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err(redb::Error::Corrupted("the file is damaged".to_owned())))
}

/// Whether the content of a file is to blame, and not that it cannot be used just now.
fn is_damage(error: &redb::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error {
        redb::Error::Io(error) => matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof),
        redb::Error::DatabaseAlreadyOpen | redb::Error::PreviousIo | redb::Error::UpgradeRequired(_) => false,
        _ => true,
    }
}

/// Gives a file another name, under which nothing looks for it.
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

/// Makes a new file beside its place and puts it there when it is whole: a program that ends in the middle of that leaves
/// nothing that cannot be opened.
fn create(path: &Path, cache_bytes: usize) -> Result<(), redb::Error> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(name);
    let placed = (|| {
        let _ = std::fs::remove_file(&new);
        drop(redb::Database::builder().set_cache_size(cache_bytes).create(&new)?);
        // A link, because it replaces nothing: another program may have been quicker.
        match std::fs::hard_link(&new, path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => std::fs::rename(&new, path),
            _ => Ok(()),
        }
        .map_err(redb::Error::Io)
    })();
    let _ = std::fs::remove_file(&new);
    placed
}

/// What a client is told of an error of a database.
pub(crate) fn database_error(doing: &'static str, error: &redb::Error) -> ApiError {
    match error {
        redb::Error::Io(reason) => ApiError::storage(doing, reason),
        other => ApiError::internal(doing, other),
    }
}

fn begin_write(file: &redb::Database) -> Result<WriteTransaction, redb::Error> {
    let mut transaction = file.begin_write().map_err(|error: TransactionError| redb::Error::from(error))?;
    // Without it, the whole file is read at the first start after a crash: seconds for half a gigabyte, where now it is
    // milliseconds. A commit takes little longer.
    transaction.set_quick_repair(true);
    Ok(transaction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_in_its_place_when_it_is_whole() {
        let folder = std::env::temp_dir().join(format!("bindpost-database-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.redb");
        // What a program left that ended while it made its file.
        let left = folder.join(format!("a.redb.{}.new", std::process::id()));
        std::fs::write(&left, [0; 100]).unwrap();
        let database = RedbDatabase::open(&path, 1 << 20).unwrap();
        database.write().unwrap().commit().unwrap();
        assert!(RedbDatabase::open(&path, 1 << 20).is_err(), "it has one owner");
        drop(database);
        RedbDatabase::open(&path, 1 << 20).unwrap();
        let files: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files, ["a.redb"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
