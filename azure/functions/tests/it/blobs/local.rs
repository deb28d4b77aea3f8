//! Tests of the embedded store only: crashes, links, permissions, a full disk.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bindpost_azure_functions::blobs::{BlobSettings, LocalStore};
use bytes::Bytes;

use super::path;
use crate::scratch::Scratch;

const SIZE: usize = 32 << 20;

async fn open(folder: &Path) -> LocalStore {
    LocalStore::open(folder, &BlobSettings::default()).await.unwrap()
}

fn temporary_files(container: &Path) -> usize {
    let Ok(entries) = fs::read_dir(container) else { return 0 };
    entries.filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with(".tmp-")).count()
}

/// Runs this program again, as the writer that is killed or fills the disk.
fn child(folder: &Path, prefix: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = match prefix {
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        [] => Command::new(program),
    };
    command.args(["--exact", "blobs::local::the_writer_of_other_tests", "--ignored", "--nocapture"]);
    command.env("BINDPOST_TEST_BLOBS", folder).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// A child that does not outlive the test.
struct Writer(Child);

impl Writer {
    fn start(folder: &Path) -> Writer {
        Writer(child(folder, &[]).spawn().unwrap())
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
#[ignore = "other tests run it in a separate process"]
async fn the_writer_of_other_tests() {
    let Some(folder) = std::env::var_os("BINDPOST_TEST_BLOBS") else { return };
    let store = open(Path::new(&folder)).await;
    for version in 0u8.. {
        if let Err(error) = store.write(&path("killed/a"), vec![version; SIZE].into()).await {
            println!("FAILED {error} SHOWN {}", error.client_message());
            return;
        }
        if version == u8::MAX {
            return;
        }
    }
}

#[tokio::test]
async fn a_killed_writer_leaves_whole_blobs_only() {
    let folder = Scratch::new();
    let container = folder.path().join("killed");
    open(folder.path()).await.write(&path("killed/a"), vec![255; SIZE].into()).await.unwrap();
    let mut left_over = 0;
    let started = Instant::now();
    for round in 0.. {
        assert!(started.elapsed() < Duration::from_secs(30), "{left_over} leftovers in {round} rounds");
        let mut writer = Writer::start(folder.path());
        // Kill it in the middle of a write, when a temporary file exists.
        while temporary_files(&container) == 0 {
            assert!(writer.is_running(), "the writer ended by itself");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(3 * round)).await;
        drop(writer);
        left_over += temporary_files(&container);

        let store = open(folder.path()).await;
        assert_eq!(temporary_files(&container), 0, "leftovers are removed at start");
        let found = store.read(&path("killed/a")).await.unwrap().unwrap();
        assert!(found.len() == SIZE && found.iter().all(|&byte| byte == found[0]), "half a blob");
        assert_eq!(fs::read_dir(&container).unwrap().count(), 1);
        if left_over >= 3 {
            break;
        }
    }
}

#[tokio::test]
async fn a_writer_in_another_process_is_left_alone() {
    let folder = Scratch::new();
    let mut writer = Writer::start(folder.path());
    // Stores that open in the meantime look for leftovers, and must not remove the writer's file.
    let until = Instant::now() + Duration::from_secs(2);
    let mut seen_at_work = 0;
    while Instant::now() < until {
        let busy = temporary_files(&folder.path().join("killed"));
        let store = open(folder.path()).await;
        if let Some(found) = store.read(&path("killed/a")).await.unwrap() {
            assert!(found.len() == SIZE && found.iter().all(|&byte| byte == found[0]), "half a blob");
        }
        assert!(writer.is_running(), "the writer failed");
        seen_at_work += busy;
    }
    drop(writer);
    assert!(seen_at_work > 0, "the writer was never seen writing");

    // A locked file is not a leftover. It is one after it is unlocked.
    let held_path = folder.path().join("killed/.tmp-held");
    let held = fs::File::create(&held_path).unwrap();
    held.lock().unwrap();
    open(folder.path()).await;
    assert!(held_path.exists());
    drop(held);
    open(folder.path()).await;
    assert!(!held_path.exists());
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_a_clear_error() {
    let folder = Scratch::new();
    // No file may be larger than a few blocks, so a write fails as on a full disk.
    let limit = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let output = child(folder.path(), &["sh", "-c", limit]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("FAILED") && said.contains("make room"), "{said}");
    assert!(said.contains("SHOWN The blob could not be written: the server's disk is full."), "{said}");
    assert_eq!(temporary_files(&folder.path().join("killed")), 0, "a failed write cleans up");
    assert!(!folder.path().join("killed/a").exists());
}

#[tokio::test]
async fn a_store_that_was_deleted_starts_over() {
    let folder = Scratch::new();
    let root = folder.path().join("blobs");
    let store = open(&root).await;
    store.write(&path("abc/a"), "x".into()).await.unwrap();
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(store.read(&path("abc/a")).await.unwrap(), None);
    store.write(&path("abc/a"), "y".into()).await.unwrap();
    assert_eq!(store.read(&path("abc/a")).await.unwrap().unwrap(), "y");
}

#[tokio::test]
async fn a_blob_above_the_limit_is_not_read() {
    let folder = Scratch::new();
    let settings = BlobSettings { size_limit: 10, ..BlobSettings::default() };
    let store = LocalStore::open(folder.path(), &settings).await.unwrap();
    store.write(&path("abc/a"), "0123456789".into()).await.unwrap();
    store.write(&path("abc/b"), "0123456789a".into()).await.unwrap();
    assert_eq!(store.read(&path("abc/a")).await.unwrap().unwrap(), "0123456789");
    assert!(store.read(&path("abc/b")).await.unwrap_err().to_string().contains("limit of 10"));
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[tokio::test]
    async fn links_are_not_followed() {
        let (folder, outside) = (Scratch::new(), Scratch::new());
        let store = open(folder.path()).await;
        let treasure = outside.path().join("treasure");
        fs::write(&treasure, "gold").unwrap();
        fs::write(outside.path().join(".tmp-mine"), "mine").unwrap();

        // A linked container is neither read nor written nor cleaned.
        symlink(outside.path(), folder.path().join("linked")).unwrap();
        for error in [
            store.read(&path("linked/treasure")).await.unwrap_err(),
            store.write(&path("linked/new"), "x".into()).await.unwrap_err(),
        ] {
            assert!(error.to_string().contains("is a link"), "{error}");
            assert!(
                !error.client_message().contains(folder.path().to_str().unwrap()),
                "{}",
                error.client_message()
            );
        }
        open(folder.path()).await;
        assert!(outside.path().join(".tmp-mine").exists());
        assert!(!outside.path().join("new").exists());

        // A linked blob is not read, and a write replaces the link with a blob.
        store.write(&path("abc/a"), "x".into()).await.unwrap();
        symlink(&treasure, folder.path().join("abc/b")).unwrap();
        assert!(store.read(&path("abc/b")).await.unwrap_err().to_string().contains("is a link"));
        store.write(&path("abc/b"), "mine".into()).await.unwrap();
        assert_eq!(store.read(&path("abc/b")).await.unwrap().unwrap(), "mine");
        assert_eq!(fs::read(&treasure).unwrap(), b"gold");

        // A leftover that is a link and a folder with the name of a blob are not followed either.
        symlink(&treasure, folder.path().join("abc/.tmp-link")).unwrap();
        fs::create_dir(folder.path().join("abc/c")).unwrap();
        open(folder.path()).await;
        assert!(treasure.exists());
        assert!(store.read(&path("abc/c")).await.is_err());
        assert!(store.write(&path("abc/c"), "x".into()).await.is_err());
        assert_eq!(temporary_files(&folder.path().join("abc")), 1, "only the link");
    }

    #[tokio::test]
    async fn a_pipe_in_the_store_does_not_hang_a_read() {
        let folder = Scratch::new();
        let store = open(folder.path()).await;
        store.write(&path("abc/a"), "x".into()).await.unwrap();
        let made = Command::new("mkfifo").arg(folder.path().join("abc/pipe")).status().unwrap();
        assert!(made.success());
        let pipe = path("abc/pipe");
        let read = tokio::time::timeout(Duration::from_secs(2), store.read(&pipe)).await;
        // A read that waits for a writer gets one now, so that a failing test ends.
        drop(fs::OpenOptions::new().read(true).write(true).open(folder.path().join("abc/pipe")));
        assert!(read.expect("no hang").unwrap_err().to_string().contains("special file"));
    }

    #[tokio::test]
    async fn only_the_owner_has_access() {
        let folder = Scratch::new();
        let root = folder.path().join(".bindpost/blobs");
        open(&root).await.write(&path("abc/a"), "x".into()).await.unwrap();
        for (entry, mode) in [
            (folder.path().join(".bindpost"), 0o700),
            (root.clone(), 0o700),
            (root.join("abc"), 0o700),
            (root.join("abc/a"), 0o600),
        ] {
            let found = fs::metadata(&entry).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{}", entry.display());
        }
    }

    #[tokio::test]
    async fn the_store_itself_may_be_reached_by_a_link() {
        let (folder, elsewhere) = (Scratch::new(), Scratch::new());
        let link = folder.path().join("blobs");
        symlink(elsewhere.path(), &link).unwrap();
        let store = open(&link).await;
        store.write(&path("abc/a"), Bytes::from_static(b"x")).await.unwrap();
        assert_eq!(store.folder(), elsewhere.path());
        assert!(elsewhere.path().join("abc/a").exists());
    }
}
