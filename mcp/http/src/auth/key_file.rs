//! [`KeyFile`]: reads the file of API keys and reloads it when it changes. `key_line.rs` parses its lines.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::auth::key_line::{KeyLine, Sha256Digest, digest};

/// The maximum size of the file.
const MAX_BYTES: u64 = 1024 * 1024;
/// The default interval of checks for changes.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A file that was modified more recently than this may be incomplete.
const SETTLED: Duration = Duration::from_secs(1);
/// A file that is modified continuously is loaded this long after the first change.
const OVERDUE: Duration = Duration::from_secs(15);

/// A file of API keys.
///
/// A program may still be writing the file when it is checked. So a change is loaded once the file has
/// not been modified for a second. If its modification time changes continuously, the change is loaded
/// once the content has been the same for a second. If the content changes continuously too, it is
/// loaded after [`OVERDUE`], if it looks complete.
pub(crate) struct KeyFile {
    path: PathBuf,
    every: Duration,
    overdue: Duration,
    opened: Instant,
    /// The time of the next check, in milliseconds after the file was opened.
    next_look: AtomicU64,
    state: Mutex<FileState>,
}

/// The state of a file as of the last check.
struct FileState {
    /// The fingerprint of the file when it was complete and read. `None` if the next check has to read it.
    seen: Option<FileFingerprint>,
    /// The digest of the content that was loaded.
    taken: Sha256Digest,
    /// A change that may be incomplete.
    pending: Option<PendingChange>,
}

/// A change of a file that may be incomplete. The times are milliseconds after the file was opened.
struct PendingChange {
    since: u64,
    text: Sha256Digest,
    text_since: u64,
}

/// The metadata of a file by which changes are detected without reading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FileFingerprint {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
    /// The time of the last change of content or metadata (`ctime`). Programs cannot set it.
    changed: Option<(i64, i64)>,
}

/// The result of a check for changes.
pub(crate) enum KeyFileChange {
    No,
    To(Vec<KeyLine>),
    /// The file has changed but cannot be read or has a mistake.
    Broken(String),
}

impl KeyFile {
    /// Reads a file for the first time.
    pub(crate) fn open(path: &Path) -> io::Result<(KeyFile, Vec<KeyLine>)> {
        let looks = FileFingerprint::from_path(path);
        let mut file = KeyFile {
            path: path.to_owned(),
            every: LOOK_EVERY,
            overdue: OVERDUE,
            opened: Instant::now(),
            next_look: AtomicU64::new(as_millis(LOOK_EVERY)),
            state: Mutex::new(FileState { seen: None, taken: Sha256Digest::default(), pending: None }),
        };
        let text = file.read()?;
        let lines = file.parse(&text)?;
        let seen = Some(looks).filter(FileFingerprint::has_settled);
        file.state = Mutex::new(FileState { seen, taken: digest(text.as_bytes()), pending: None });
        Ok((file, lines))
    }

    pub(crate) fn look_every(&mut self, interval: Duration) {
        self.every = interval;
        self.next_look = AtomicU64::new(as_millis(interval));
    }

    /// Adds the path of the file to an error message.
    pub(crate) fn problem_in_file(&self, problem: &str) -> String {
        format!("{}, {problem}", self.path.display())
    }

    /// Checks whether the file has changed, if a check is due.
    pub(crate) fn check_for_changes(&self) -> KeyFileChange {
        let now = as_millis(self.opened.elapsed());
        let due = self.next_look.load(Ordering::Relaxed);
        let next = now + as_millis(self.every);
        let is_mine =
            || self.next_look.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if now < due || !is_mine() {
            return KeyFileChange::No;
        }
        let looks = FileFingerprint::from_path(&self.path);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.seen.as_ref() == Some(&looks) {
            return KeyFileChange::No;
        }
        let has_settled = looks.has_settled();
        let text = self.read();
        if !has_settled && !state.is_quiet(&text, now, self.overdue) {
            // The change should not wait for a whole interval.
            self.next_look.fetch_min(now + as_millis(SETTLED), Ordering::Relaxed);
            return KeyFileChange::No;
        }
        state.pending = None;
        state.seen = Some(looks).filter(|_| has_settled);
        let lines = text.and_then(|text| {
            let before = std::mem::replace(&mut state.taken, digest(text.as_bytes()));
            if before == state.taken { Ok(None) } else { self.parse(&text).map(Some) }
        });
        match lines {
            Ok(None) => KeyFileChange::No,
            Ok(Some(lines)) => KeyFileChange::To(lines),
            Err(error) => KeyFileChange::Broken(error.to_string()),
        }
    }

    fn read(&self) -> io::Result<String> {
        let mut text = String::new();
        // Opening a named pipe would block until a program writes into it.
        let is_file = std::fs::metadata(&self.path).and_then(|metadata| {
            let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
            metadata.is_file().then_some(()).ok_or_else(wrong)
        });
        let read = is_file
            .and_then(|()| std::fs::File::open(&self.path))
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
        read.map_err(|error| {
            io::Error::new(error.kind(), self.problem_in_file(&format!("the file of API keys: {error}")))
        })?;
        if text.len() as u64 > MAX_BYTES {
            let problem = self.problem_in_file("the file of API keys is larger than 1 MiB");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        Ok(text)
    }

    fn parse(&self, text: &str) -> io::Result<Vec<KeyLine>> {
        parse(text)
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, self.problem_in_file(&problem)))
    }
}

impl FileState {
    /// Returns whether a recently modified file can be loaded: its content has been the same for a
    /// second, or the change is overdue and looks complete.
    fn is_quiet(&mut self, text: &io::Result<String>, now: u64, overdue: Duration) -> bool {
        let found = text.as_ref().map_or_else(|_| Sha256Digest::default(), |text| digest(text.as_bytes()));
        if found == self.taken {
            self.pending = None;
            return false;
        }
        let pending = self.pending.get_or_insert(PendingChange { since: now, text: found, text_since: now });
        if pending.text != found {
            (pending.text, pending.text_since) = (found, now);
        }
        // A file without keys or without a final line break is probably being written.
        let is_complete = || {
            let has_keys = |text: &String| parse(text).is_ok_and(|keys| !keys.is_empty());
            text.as_ref().is_ok_and(|text| text.ends_with('\n') && has_keys(text))
        };
        now - pending.text_since >= as_millis(SETTLED)
            || now - pending.since >= as_millis(overdue) && is_complete()
    }
}

impl FileFingerprint {
    fn from_path(path: &Path) -> FileFingerprint {
        let Ok(metadata) = std::fs::metadata(path) else { return FileFingerprint::default() };
        let looks = FileFingerprint {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            ..FileFingerprint::default()
        };
        looks.with_unix(&metadata)
    }

    #[cfg(unix)]
    fn with_unix(self, metadata: &std::fs::Metadata) -> FileFingerprint {
        use std::os::unix::fs::MetadataExt as _;
        FileFingerprint {
            inode: metadata.ino(),
            changed: Some((metadata.ctime(), metadata.ctime_nsec())),
            ..self
        }
    }

    #[cfg(not(unix))]
    fn with_unix(self, _: &std::fs::Metadata) -> FileFingerprint {
        self
    }

    /// Returns whether the file is probably complete: it was not modified within the last second. A
    /// modification time in the future is no evidence. A file that does not exist has no modification time.
    fn has_settled(&self) -> bool {
        self.modified.is_none_or(|modified| modified.elapsed().is_ok_and(|age| age >= SETTLED))
    }
}

fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 2)
}

/// Parses a file with a line `name = secret scope1 scope2` for each key.
fn parse(text: &str) -> Result<Vec<KeyLine>, String> {
    let mut keys = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let key = KeyLine::parse(text).map_err(|problem| format!("line {line}: {problem}"))?;
        keys.push(KeyLine { line: Some(line), ..key });
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the new keys, or `None` without a change.
    fn found(changed: KeyFileChange) -> Option<Vec<String>> {
        match changed {
            KeyFileChange::No => None,
            KeyFileChange::To(lines) => Some(lines.into_iter().map(|line| line.name).collect()),
            KeyFileChange::Broken(problem) => panic!("{problem}"),
        }
    }

    /// Modification time and content change continuously.
    #[test]
    fn a_file_that_is_modified_continuously_is_loaded_when_it_is_overdue() {
        let path = std::env::temp_dir().join(format!("bindpost-{}-overdue.keys", std::process::id()));
        std::fs::write(&path, "ops = first\ndev = other\n").unwrap();
        let (mut file, lines) = KeyFile::open(&path).unwrap();
        assert_eq!(lines.len(), 2);
        file.look_every(Duration::ZERO);
        file.overdue = Duration::from_millis(400);
        let begin = Instant::now();
        let mut round = 0;
        let names = loop {
            round += 1;
            // Half of the written texts are incomplete: they have no key or end in the middle of a line.
            let text = match round % 4 {
                0 => String::new(),
                1 => format!("# {round}\ndev = oth"),
                2 => format!("# {round}\n"),
                _ => format!("# {round}\ndev = other\n"),
            };
            std::fs::write(&path, text).unwrap();
            if let Some(names) = found(file.check_for_changes()) {
                break names;
            }
            assert!(begin.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(5));
        };
        let _ = std::fs::remove_file(&path);
        assert_eq!(names, ["dev"]);
        assert!(begin.elapsed() >= file.overdue);
    }

    #[test]
    fn a_new_modification_time_alone_is_no_change() {
        let path = std::env::temp_dir().join(format!("bindpost-{}-touched.keys", std::process::id()));
        std::fs::write(&path, "ops = first\n").unwrap();
        let (mut file, _) = KeyFile::open(&path).unwrap();
        file.look_every(Duration::ZERO);
        for back in [0, 5, 3, 0] {
            let then = SystemTime::now() - Duration::from_secs(back);
            std::fs::File::options().append(true).open(&path).unwrap().set_modified(then).unwrap();
            assert_eq!(found(file.check_for_changes()), None, "{back}");
        }
        let _ = std::fs::remove_file(&path);
    }
}
