//! The file of API keys: its lines, and when it is read again.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest as _, Sha256};

/// The largest file.
const MAX_BYTES: u64 = 1024 * 1024;
/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A file that was written less than this ago may not be complete yet.
const SETTLED: Duration = Duration::from_secs(1);
/// A file that is written all the time is read all the same, this long after it changed.
const OVERDUE: Duration = Duration::from_secs(15);

/// What is kept of a secret: its SHA-256, in words because these are quicker to compare.
pub(crate) type Sha256Digest = [u64; 4];

pub(crate) fn digest(secret: &[u8]) -> Sha256Digest {
    let mut digest = [0; 4];
    for (word, bytes) in digest.iter_mut().zip(Sha256::digest(secret).as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    digest
}

/// One key as somebody wrote it down; the secret is gone already.
pub(crate) struct KeyLine {
    pub(crate) name: String,
    pub(crate) digest: Sha256Digest,
    pub(crate) scopes: Vec<String>,
    /// Where it is in the file.
    line: Option<usize>,
}

impl KeyLine {
    /// Checks a key; otherwise tells what to change, without the secret.
    pub(crate) fn new(name: String, secret: &[u8], scopes: Vec<String>) -> Result<KeyLine, String> {
        let key = KeyLine { name, digest: digest(secret), scopes, line: None };
        if key.name.is_empty() {
            return Err("an API key has no name".to_owned());
        }
        if key.name.chars().any(char::is_control) {
            return Err(key.describe_problem("has control characters in its name"));
        }
        if secret.is_empty() {
            return Err(key.describe_problem("has no secret"));
        }
        if secret.trim_ascii() != secret || secret.iter().any(u8::is_ascii_control) {
            return Err(key.describe_problem("has a secret that no header can hold"));
        }
        Ok(key)
    }

    /// What is wrong with it.
    pub(crate) fn describe_problem(&self, what: &str) -> String {
        match self.line {
            None => format!("the API key {:?} {what}", self.name),
            Some(line) => format!("line {line}: the API key {:?} {what}", self.name),
        }
    }
}

/// A file of keys.
///
/// The program that changes it may not be done when it is looked at. So a change is taken once the file has been quiet for
/// a second: by its time of modification, or, where something touches it all the time, by what is in it. If even
/// that changes all the time, it is taken when it is overdue, as long as it looks complete.
pub(crate) struct KeyFile {
    path: PathBuf,
    every: Duration,
    overdue: Duration,
    opened: Instant,
    /// Milliseconds after it was opened.
    next_look: AtomicU64,
    state: Mutex<FileState>,
}

/// What is known of a file.
struct FileState {
    /// What it looked like when it was quiet and read; `None` if it has to be read again whatever it looks like.
    seen: Option<FileFingerprint>,
    /// What was in it when it was taken.
    taken: Sha256Digest,
    /// A change that may not be complete yet.
    pending: Option<PendingChange>,
}

/// A change of a file that may not be complete yet. The times are milliseconds after the file was opened.
struct PendingChange {
    since: u64,
    text: Sha256Digest,
    text_since: u64,
}

/// How one state of a file is told from another without reading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FileFingerprint {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
    /// When anything about it changed, its time of modification included: no program can set this.
    changed: Option<(i64, i64)>,
}

/// Whether a file has changed.
pub(crate) enum KeyFileChange {
    No,
    To(Vec<KeyLine>),
    /// It has, but not for the better.
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

    /// Where a problem is.
    pub(crate) fn problem_in_file(&self, problem: &str) -> String {
        format!("{}, {problem}", self.path.display())
    }

    /// Looks whether it has changed, if it is time to.
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
            // A change should not wait for the next look, however rare looks are.
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
        // Opening a pipe would wait for somebody to write into it.
        let is_file = std::fs::metadata(&self.path).and_then(|metadata| {
            let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file");
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
    /// Whether the file can be taken although it was written just now: what is in it has been the same for a
    /// while, or it is overdue and looks complete.
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
        // A list without keys, or with half a line at its end, is what writing it begins with.
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

    /// Whether it is written completely, as far as its time of modification tells. One in the future does not; a
    /// file that does not exist has none.
    fn has_settled(&self) -> bool {
        self.modified.is_none_or(|modified| modified.elapsed().is_ok_and(|age| age >= SETTLED))
    }
}

fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 2)
}

/// A line `name = secret scope1 scope2` for each key.
fn parse(text: &str) -> Result<Vec<KeyLine>, String> {
    let mut keys = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let Some((name, rest)) = text.split_once('=') else {
            return Err(format!(
                "line {line}: a key is written `name = secret` or `name = secret scope1 scope2`"
            ));
        };
        let mut words = rest.split_whitespace();
        let secret = words.next().unwrap_or_default();
        let scopes = words.take_while(|word| !word.starts_with('#')).map(str::to_owned).collect();
        let mut key = KeyLine::new(name.trim().to_owned(), secret.as_bytes(), scopes)
            .map_err(|problem| format!("line {line}: {problem}"))?;
        key.line = Some(line);
        keys.push(key);
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each look finds: the names of the keys, or nothing new.
    fn found(changed: KeyFileChange) -> Option<Vec<String>> {
        match changed {
            KeyFileChange::No => None,
            KeyFileChange::To(lines) => Some(lines.into_iter().map(|line| line.name).collect()),
            KeyFileChange::Broken(problem) => panic!("{problem}"),
        }
    }

    /// No moment is ever quiet, by its time or by what is in it.
    #[test]
    fn a_file_that_is_written_all_the_time_is_read_when_it_is_overdue() {
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
            // Half of what is written is not complete: it begins, or ends, in the middle of a line.
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
    fn a_file_that_is_only_touched_has_not_changed() {
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
