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

/// What is kept of a secret: its SHA-256, in words because these are quicker to compare.
pub(crate) type Digest = [u64; 4];

pub(crate) fn digest(secret: &[u8]) -> Digest {
    let mut digest = [0; 4];
    for (word, bytes) in digest.iter_mut().zip(Sha256::digest(secret).as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    digest
}

/// One key as somebody wrote it down; the secret is gone already.
pub(crate) struct KeyLine {
    pub(crate) name: String,
    pub(crate) digest: Digest,
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
            return Err(key.wrong("has control characters in its name"));
        }
        if secret.is_empty() {
            return Err(key.wrong("has no secret"));
        }
        if secret.trim_ascii() != secret || secret.iter().any(u8::is_ascii_control) {
            return Err(key.wrong("has a secret that no header can hold"));
        }
        Ok(key)
    }

    /// What is wrong with it.
    pub(crate) fn wrong(&self, what: &str) -> String {
        match self.line {
            None => format!("the API key {:?} {what}", self.name),
            Some(line) => format!("line {line}: the API key {:?} {what}", self.name),
        }
    }
}

/// A file of keys.
pub(crate) struct KeyFile {
    path: PathBuf,
    every: Duration,
    opened: Instant,
    /// Milliseconds after it was opened.
    next_look: AtomicU64,
    /// What it looked like when it was read; `None` if it has to be read again whatever it looks like.
    seen: Mutex<Option<Looks>>,
}

/// How one state of a file is told from another without reading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Looks {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

/// Whether a file has changed.
pub(crate) enum Changed {
    No,
    To(Vec<KeyLine>),
    /// It has, but not for the better.
    Broken(String),
}

impl KeyFile {
    /// Reads a file for the first time.
    pub(crate) fn open(path: &Path) -> io::Result<(KeyFile, Vec<KeyLine>)> {
        let looks = Looks::of(path);
        let file = KeyFile {
            path: path.to_owned(),
            every: LOOK_EVERY,
            opened: Instant::now(),
            next_look: AtomicU64::new(as_millis(LOOK_EVERY)),
            seen: Mutex::new(Some(looks).filter(Looks::has_settled)),
        };
        let lines = file.read()?;
        Ok((file, lines))
    }

    pub(crate) fn look_every(&mut self, interval: Duration) {
        self.every = interval;
        self.next_look = AtomicU64::new(as_millis(interval));
    }

    /// Where a problem is.
    pub(crate) fn at(&self, problem: &str) -> String {
        format!("{}, {problem}", self.path.display())
    }

    /// Looks whether it has changed, if it is time to.
    pub(crate) fn look(&self) -> Changed {
        let now = as_millis(self.opened.elapsed());
        let due = self.next_look.load(Ordering::Relaxed);
        let next = now + as_millis(self.every);
        let is_mine =
            || self.next_look.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if now < due || !is_mine() {
            return Changed::No;
        }
        let looks = Looks::of(&self.path);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.as_ref() == Some(&looks) || !looks.has_settled() {
            return Changed::No;
        }
        *seen = Some(looks);
        drop(seen);
        match self.read() {
            Ok(lines) => Changed::To(lines),
            Err(error) => Changed::Broken(error.to_string()),
        }
    }

    fn read(&self) -> io::Result<Vec<KeyLine>> {
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
            io::Error::new(error.kind(), self.at(&format!("the file of API keys: {error}")))
        })?;
        let invalid = |problem: &str| io::Error::new(io::ErrorKind::InvalidData, self.at(problem));
        if text.len() as u64 > MAX_BYTES {
            return Err(invalid("the file of API keys is larger than 1 MiB"));
        }
        parse(&text).map_err(|problem| invalid(&problem))
    }
}

impl Looks {
    fn of(path: &Path) -> Looks {
        let Ok(metadata) = std::fs::metadata(path) else { return Looks::default() };
        Looks { modified: metadata.modified().ok(), length: metadata.len(), inode: inode(&metadata) }
    }

    /// Whether whoever writes it is done, as far as anybody can tell.
    fn has_settled(&self) -> bool {
        // A time in the future says nothing about how long ago it was.
        let age = self.modified.and_then(|modified| modified.elapsed().ok());
        age.is_none_or(|age| age >= SETTLED)
    }
}

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> u64 {
    0
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
