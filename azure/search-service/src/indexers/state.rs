//! What an indexer remembers between runs: which blobs it has seen, and how its runs ended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::status::ExecutionResult;

/// A blob as it was when its documents were last written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobState {
    pub modified: i64,
    pub size: u64,
    pub keys: Vec<String>,
    /// False when the blob had so many documents that only the first keys were kept.
    pub all_keys: bool,
}

/// What is remembered about an indexer as a whole.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Newest first.
    pub history: Vec<ExecutionResult>,
    /// Document keys, and addresses of blobs, that the next run must take again.
    pub reset_keys: BTreeSet<String>,
    pub reset_blobs: BTreeSet<String>,
    pub tracking: Option<String>,
    /// The last run could not even begin: only a new definition helps.
    pub broken: bool,
    /// When the schedule last started a run, in milliseconds since 1970.
    pub last_start: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StateError(pub String);

impl From<io::Error> for StateError {
    fn from(source: io::Error) -> Self {
        Self(source.to_string())
    }
}

impl From<serde_json::Error> for StateError {
    fn from(source: serde_json::Error) -> Self {
        Self(source.to_string())
    }
}

/// Where the state of indexers is kept. Calls may block.
pub trait StateStore: Send + Sync {
    fn blob(&self, indexer: &str, name: &str) -> Result<Option<BlobState>, StateError>;
    /// Writes all changes or none; `None` removes a blob.
    fn save(&self, indexer: &str, changes: Vec<(String, Option<BlobState>)>) -> Result<(), StateError>;
    /// Names of all known blobs, sorted.
    fn names(&self, indexer: &str) -> Result<Vec<String>, StateError>;
    /// Forgets all blobs; the record stays.
    fn clear(&self, indexer: &str) -> Result<(), StateError>;
    fn record(&self, indexer: &str) -> Result<Record, StateError>;
    fn save_record(&self, indexer: &str, record: &Record) -> Result<(), StateError>;
    /// The indexer was deleted.
    fn remove(&self, indexer: &str) -> Result<(), StateError>;
}

/// For tests and for services that keep nothing on disk.
#[derive(Default)]
pub struct MemoryState {
    indexers: Mutex<BTreeMap<String, Kept>>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    blobs: BTreeMap<String, BlobState>,
    record: Record,
}

impl MemoryState {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.indexers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateStore for MemoryState {
    fn blob(&self, indexer: &str, name: &str) -> Result<Option<BlobState>, StateError> {
        Ok(self.lock().get(indexer).and_then(|kept| kept.blobs.get(name).cloned()))
    }

    fn save(&self, indexer: &str, changes: Vec<(String, Option<BlobState>)>) -> Result<(), StateError> {
        let mut indexers = self.lock();
        let kept = indexers.entry(indexer.to_owned()).or_default();
        for (name, state) in changes {
            match state {
                Some(state) => kept.blobs.insert(name, state),
                None => kept.blobs.remove(&name),
            };
        }
        Ok(())
    }

    fn names(&self, indexer: &str) -> Result<Vec<String>, StateError> {
        Ok(self.lock().get(indexer).map(|kept| kept.blobs.keys().cloned().collect()).unwrap_or_default())
    }

    fn clear(&self, indexer: &str) -> Result<(), StateError> {
        if let Some(kept) = self.lock().get_mut(indexer) {
            kept.blobs.clear();
        }
        Ok(())
    }

    fn record(&self, indexer: &str) -> Result<Record, StateError> {
        Ok(self.lock().get(indexer).map(|kept| kept.record.clone()).unwrap_or_default())
    }

    fn save_record(&self, indexer: &str, record: &Record) -> Result<(), StateError> {
        self.lock().entry(indexer.to_owned()).or_default().record = record.clone();
        Ok(())
    }

    fn remove(&self, indexer: &str) -> Result<(), StateError> {
        self.lock().remove(indexer);
        Ok(())
    }
}

/// One JSON file per indexer. Every write rewrites the file: for folders of some thousand blobs.
pub struct FileState {
    folder: PathBuf,
    memory: MemoryState,
}

impl FileState {
    pub fn open(folder: &Path) -> Result<Self, StateError> {
        fs::create_dir_all(folder)?;
        let mut indexers = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name =
                path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".json"));
            if let Some(name) = name.and_then(decode_name) {
                indexers.insert(name, serde_json::from_slice(&fs::read(&path)?)?);
            }
        }
        Ok(Self { folder: folder.to_owned(), memory: MemoryState { indexers: Mutex::new(indexers) } })
    }

    fn write(&self, indexer: &str) -> Result<(), StateError> {
        // The lock is held while writing, so that an older state never replaces a newer one.
        let indexers = self.memory.lock();
        let Some(kept) = indexers.get(indexer) else { return Ok(()) };
        let path = self.folder.join(file_name(indexer));
        let beside = path.with_extension("new");
        fs::write(&beside, serde_json::to_vec(kept)?)?;
        fs::rename(&beside, &path)?;
        Ok(())
    }
}

impl StateStore for FileState {
    fn blob(&self, indexer: &str, name: &str) -> Result<Option<BlobState>, StateError> {
        self.memory.blob(indexer, name)
    }

    fn save(&self, indexer: &str, changes: Vec<(String, Option<BlobState>)>) -> Result<(), StateError> {
        self.memory.save(indexer, changes)?;
        self.write(indexer)
    }

    fn names(&self, indexer: &str) -> Result<Vec<String>, StateError> {
        self.memory.names(indexer)
    }

    fn clear(&self, indexer: &str) -> Result<(), StateError> {
        self.memory.clear(indexer)?;
        self.write(indexer)
    }

    fn record(&self, indexer: &str) -> Result<Record, StateError> {
        self.memory.record(indexer)
    }

    fn save_record(&self, indexer: &str, record: &Record) -> Result<(), StateError> {
        self.memory.save_record(indexer, record)?;
        self.write(indexer)
    }

    fn remove(&self, indexer: &str) -> Result<(), StateError> {
        self.memory.remove(indexer)?;
        match fs::remove_file(self.folder.join(file_name(indexer))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Hexadecimal, because names may differ by case only and file systems may not tell such names apart.
fn file_name(indexer: &str) -> String {
    let mut name: String = indexer.bytes().map(|byte| format!("{byte:02x}")).collect();
    name.push_str(".json");
    name
}

fn decode_name(name: &str) -> Option<String> {
    let bytes: Option<Vec<u8>> = name
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    String::from_utf8(bytes?).ok()
}
