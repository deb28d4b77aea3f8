//! [`LocalStore`]: the embedded store, with a folder per container and a file per blob.
//!
//! A write goes to a temporary file in the container's folder. The file is synced to disk and then renamed to
//! the blob's name. Links and special files below the store's folder are never followed or opened. Two
//! processes may share a folder.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::BlobSettings;
use super::error::{BlobError, BlobFailure, BlobOperation};
use super::file_name::{self, TEMPORARY};
use super::path::BlobPath;

/// The embedded store. Clones share the folder.
#[derive(Debug, Clone)]
pub struct LocalStore {
    folder: Arc<Path>,
    size_limit: usize,
}

impl LocalStore {
    /// Opens the store in a folder. Creates the folder if it does not exist, for its owner only. Removes
    /// partial files that a crash has left.
    ///
    /// The path of the folder itself may contain links, because the operator chooses it.
    pub async fn open(folder: &Path, settings: &BlobSettings) -> Result<LocalStore, BlobError> {
        let wanted = folder.to_owned();
        let opened = blocking(move || {
            let at = |source| BlobFailure::Disk { path: wanted.clone(), source };
            folder_builder().recursive(true).create(&wanted).map_err(at)?;
            let folder = wanted.canonicalize().map_err(at)?;
            remove_leftovers(&folder).map_err(at)?;
            Ok(folder)
        });
        let folder = opened.await.map_err(|failure| BlobError::new(BlobOperation::Open, failure))?;
        Ok(LocalStore { folder: folder.into(), size_limit: settings.size_limit })
    }

    /// Returns the folder, with links resolved.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads a whole blob, if it exists.
    pub async fn read(&self, path: &BlobPath) -> Result<Option<Bytes>, BlobError> {
        let (container, file) = self.file_paths(path);
        let limit = self.size_limit;
        let read = blocking(move || read(&container, &file, limit)).await;
        read.map_err(|failure| BlobError::new(BlobOperation::Read(path.clone()), failure))
    }

    /// Writes a whole blob.
    pub async fn write(&self, path: &BlobPath, data: Bytes) -> Result<(), BlobError> {
        let (container, file) = self.file_paths(path);
        let written = blocking(move || write(&container, &file, &data)).await;
        written.map_err(|failure| BlobError::new(BlobOperation::Write(path.clone()), failure))
    }

    fn file_paths(&self, path: &BlobPath) -> (PathBuf, PathBuf) {
        let container = self.folder.join(file_name::encode(path.container()));
        let file = container.join(file_name::encode(path.name()));
        (container, file)
    }
}

/// Runs file operations on a blocking thread. They complete even if the caller is cancelled.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobFailure> + Send + 'static,
) -> Result<T, BlobFailure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(BlobFailure::Stopping),
    }
}

fn read(container: &Path, path: &Path, limit: usize) -> Result<Option<Bytes>, BlobFailure> {
    let at = |source| BlobFailure::Disk { path: path.to_owned(), source };
    if !is_folder(container)? {
        return Ok(None);
    }
    let Some(file) = open_plain(path)? else { return Ok(None) };
    let length = file.metadata().map_err(at)?.len();
    if length > limit as u64 {
        return Err(BlobFailure::TooLarge(limit));
    }
    let mut data = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(limit as u64 + 1).read_to_end(&mut data).map_err(at)?;
    if data.len() > limit { Err(BlobFailure::TooLarge(limit)) } else { Ok(Some(data.into())) }
}

fn write(container: &Path, path: &Path, data: &[u8]) -> Result<(), BlobFailure> {
    let at = |source| BlobFailure::Disk { path: path.to_owned(), source };
    // Another process may remove the container, or our file as a leftover before it is locked. Then the file
    // is missing, and the write starts over.
    let mut patience = 5;
    loop {
        make_container(container)?;
        match write_once(container, path, data) {
            Err(error) if error.kind() == ErrorKind::NotFound && patience > 0 => patience -= 1,
            result => return result.map_err(at),
        }
    }
}

fn write_once(container: &Path, path: &Path, data: &[u8]) -> io::Result<()> {
    let (temporary, mut file) = TemporaryFile::create(container)?;
    // The lock shows other processes that this file is not a leftover. Not every file system has locks.
    let _ = file.lock();
    file.write_all(data)?;
    file.sync_all()?;
    drop(file);
    // A rename replaces a file or a link of this name, and does not follow links.
    fs::rename(&temporary.path, path)?;
    temporary.renamed();
    sync_folder(container)
}

/// A file that is deleted on drop unless it was renamed.
struct TemporaryFile {
    path: PathBuf,
    is_renamed: bool,
}

impl TemporaryFile {
    fn create(container: &Path) -> io::Result<(TemporaryFile, File)> {
        let number = getrandom::u64().map_err(io::Error::other)?;
        let path = container.join(format!("{TEMPORARY}{number:016x}"));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        Ok((TemporaryFile { path, is_renamed: false }, file))
    }

    fn renamed(mut self) {
        self.is_renamed = true;
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.is_renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn make_container(path: &Path) -> Result<(), BlobFailure> {
    if is_folder(path)? {
        return Ok(());
    }
    let at = |source| BlobFailure::Disk { path: path.to_owned(), source };
    // The store's own folder is created again too, because users delete it to start over.
    folder_builder().recursive(true).create(path).map_err(at)?;
    path.parent().map_or(Ok(()), sync_folder).map_err(at)?;
    // Another process may have created something else in the meantime.
    is_folder(path).map(drop)
}

fn folder_builder() -> DirBuilder {
    #[allow(unused_mut, reason = "Windows has no file modes")]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Returns whether a folder exists. A link to a folder is rejected.
fn is_folder(path: &Path) -> Result<bool, BlobFailure> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(_) => Err(BlobFailure::Planted(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(BlobFailure::Disk { path: path.to_owned(), source }),
    }
}

/// Opens a plain file, if it exists. Links and special files are rejected.
#[cfg(unix)]
fn open_plain(path: &Path) -> Result<Option<File>, BlobFailure> {
    use std::os::unix::fs::OpenOptionsExt;
    // Opening a pipe would block until it has a writer.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) if file.metadata().is_ok_and(|found| found.is_file()) => Ok(Some(file)),
        Ok(_) => Err(BlobFailure::Planted(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => Err(BlobFailure::Planted(path.to_owned())),
        Err(source) => Err(BlobFailure::Disk { path: path.to_owned(), source }),
    }
}

#[cfg(not(unix))]
fn open_plain(path: &Path) -> Result<Option<File>, BlobFailure> {
    let opened = fs::symlink_metadata(path)
        .and_then(|found| if found.is_file() { File::open(path).map(Some) } else { Ok(None) });
    match opened {
        Ok(Some(file)) => Ok(Some(file)),
        Ok(None) => Err(BlobFailure::Planted(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BlobFailure::Disk { path: path.to_owned(), source }),
    }
}

/// Syncs a folder, so that a new name in it survives a power cut. Windows has no such call.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// Removes temporary files that no running process has locked. A file that cannot be removed stays and is
/// never read as a blob.
fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for container in fs::read_dir(folder)? {
        let container = container?;
        // The type of the entry itself: a link to a folder is not a folder.
        if container.file_type()?.is_dir()
            && let Err(error) = remove_leftovers_of(&container.path())
        {
            let folder = container.path();
            tracing::warn!(folder = %folder.display(), %error, "partial blob files may remain");
        }
    }
    Ok(())
}

fn remove_leftovers_of(container: &Path) -> io::Result<()> {
    for entry in fs::read_dir(container)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) && is_left_over(&entry) {
            fs::remove_file(entry.path())?;
            tracing::info!(file = %entry.path().display(), "removed a partial blob file");
        }
    }
    Ok(())
}

fn is_left_over(entry: &fs::DirEntry) -> bool {
    let Ok(Some(file)) = open_plain(&entry.path()) else { return false };
    !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}
