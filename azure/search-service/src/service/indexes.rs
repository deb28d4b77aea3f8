//! All indexes of a service by name, each in its own folder.
//!
//! A folder is named `NAME.TIME`, and `NAME.TIME.deleted` while it is being deleted. An index that cannot
//! be opened keeps its name and its files. Requests to it are rejected, and the other indexes are served.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::{IndexDefinition, IndexUpdateKind, compare_definitions};
use http::StatusCode;
use serde_json::Value;

use crate::engine::index::SearchIndex;
use crate::engine::plan::IndexPlan;
use crate::resources::{IndexHook, ResourceKind, ResourceRegistry};
use crate::search::scope::SynonymMaps;

pub(super) struct IndexRegistry {
    folder: PathBuf,
    open: RwLock<HashMap<String, IndexSlot>>,
    synonyms: Arc<SynonymMaps>,
}

struct IndexSlot {
    /// `None` if the index could not be opened.
    index: Option<Arc<SearchIndex>>,
    folder: PathBuf,
}

/// The suffix of a folder while it is being deleted.
const DELETED: &str = ".deleted";

impl IndexRegistry {
    /// Opens every defined index, and deletes the remains of deleted indexes.
    pub(super) fn open(
        folder: &Path,
        resources: &ResourceRegistry,
        synonyms: Arc<SynonymMaps>,
    ) -> Result<Self, ApiError> {
        let failed = |error| ApiError::internal("opening indexes", error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut folders = IndexFolders::read(folder).map_err(failed)?;
        folders.deleted.iter().for_each(|deleted| remove_all(deleted));
        let mut open = HashMap::new();
        for definition in resources.list(ResourceKind::Index) {
            let name = &definition.name;
            let (place, older) = folders.take_folders(name);
            let place = place.unwrap_or_else(|| new_folder(folder, name));
            // A crash during the creation of an index leaves an older folder, and so does a lost definition.
            for older in older {
                tracing::warn!(folder = %older.display(), "found an older folder of an index\n  fix: delete it if it is not needed");
            }
            let index = match open_index(&place, &definition.value) {
                Ok(index) => Some(Arc::new(index)),
                Err(error) => {
                    tracing::error!(
                        index = name, folder = %place.display(), %error,
                        "an index cannot be opened, and requests to it are rejected\n  fix: restore its folder from \
                         a backup and restart, or delete the index and load its documents again"
                    );
                    None
                }
            };
            open.insert(name.clone(), IndexSlot { index, folder: place });
        }
        // A crash during the creation or deletion of an index leaves these folders. If the definitions
        // were lost, they are the only copy of the documents.
        for left in folders.undefined() {
            tracing::warn!(folder = %left.display(), "found an index folder without a definition\n  fix: delete it if it is not needed");
        }
        Ok(Self { folder: folder.to_owned(), open: RwLock::new(open), synonyms })
    }

    pub(super) fn get(&self, name: &str) -> Result<Arc<SearchIndex>, ApiError> {
        match self.read().get(name) {
            Some(IndexSlot { index: Some(index), .. }) => Ok(Arc::clone(index)),
            Some(IndexSlot { index: None, .. }) => Err(ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "IndexUnavailable",
                format!(
                    "The index '{name}' could not be opened when the service started. See its log for the cause. Restore \
                     the index from a backup and restart the service, or delete the index and load its documents again."
                ),
            )),
            None => Err(ApiError::not_found(format!("The index '{name}' does not exist."))),
        }
    }

    /// Returns all usable indexes.
    pub(super) fn all(&self) -> Vec<(String, Arc<SearchIndex>)> {
        let open = self.read();
        let usable =
            open.iter().filter_map(|(name, open)| Some((name.clone(), Arc::clone(open.index.as_ref()?))));
        let mut all: Vec<_> = usable.collect();
        all.sort_by(|left, right| left.0.cmp(&right.0));
        all
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<String, IndexSlot>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<String, IndexSlot>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IndexHook for IndexRegistry {
    fn create(&self, name: &str, definition: &Value) -> Result<Value, ApiError> {
        let definition = IndexDefinition::parse(definition)?;
        let kept = definition.json.clone();
        let plan = Arc::new(IndexPlan::new(definition)?);
        let folder = new_folder(&self.folder, name);
        let index = match SearchIndex::open(&folder, plan) {
            Ok(index) => Some(Arc::new(index)),
            Err(error) => {
                remove(&folder);
                return Err(error);
            }
        };
        self.write().insert(name.to_owned(), IndexSlot { index, folder });
        Ok(kept)
    }

    fn check(&self, name: &str, old: &Value, new: &Value, allow_downtime: bool) -> Result<Value, ApiError> {
        self.get(name)?;
        let (old, new) = (IndexDefinition::parse(old)?, IndexDefinition::parse(new)?);
        compare_definitions(&old, &new, allow_downtime)?;
        let kept = new.json.clone();
        IndexPlan::new(new)?;
        Ok(kept)
    }

    fn update(&self, name: &str, old: &Value, new: &Value) -> Result<(), ApiError> {
        let (old, new) = (IndexDefinition::parse(old)?, IndexDefinition::parse(new)?);
        // The change was already checked.
        if compare_definitions(&old, &new, true)? != IndexUpdateKind::Nothing {
            self.get(name)?.replan(Arc::new(IndexPlan::new(new)?))?;
            self.synonyms.forget(name);
        }
        Ok(())
    }

    fn delete(&self, name: &str) -> Result<(), ApiError> {
        let open = self.write().remove(name);
        self.synonyms.forget(name);
        if let Some(open) = open {
            if let Some(index) = &open.index {
                index.close();
            }
            // Running requests may still use the index. Its files exist until they finish.
            remove(&open.folder);
        }
        Ok(())
    }
}

/// The folders of indexes, by name and ordered by time.
struct IndexFolders {
    found: HashMap<String, Vec<PathBuf>>,
    /// Folders that were being deleted.
    deleted: Vec<PathBuf>,
}

impl IndexFolders {
    /// Reads the folders. Folders with other names are ignored.
    fn read(folder: &Path) -> io::Result<Self> {
        let mut found: HashMap<String, Vec<PathBuf>> = HashMap::new();
        let mut deleted = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let kept = name.strip_suffix(DELETED);
            let Some((index, time)) = kept.unwrap_or(name).split_once('.') else { continue };
            if time.len() != 16 || !time.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                continue;
            }
            match kept {
                Some(_) => deleted.push(path),
                None => found.entry(index.to_owned()).or_default().push(path),
            }
        }
        found.values_mut().for_each(|folders| folders.sort_unstable());
        Ok(Self { found, deleted })
    }

    /// Returns the newest folder of an index, and the older ones.
    fn take_folders(&mut self, name: &str) -> (Option<PathBuf>, Vec<PathBuf>) {
        let mut folders = self.found.remove(name).unwrap_or_default();
        (folders.pop(), folders)
    }

    fn undefined(&self) -> impl Iterator<Item = &PathBuf> {
        self.found.values().flatten()
    }
}

/// Opens one index. A damaged file may cause a panic, which must not affect the other indexes.
fn open_index(folder: &Path, definition: &Value) -> Result<SearchIndex, ApiError> {
    let open = || SearchIndex::open(folder, Arc::new(IndexPlan::new(IndexDefinition::parse(definition)?)?));
    catch_unwind(AssertUnwindSafe(open))
        .unwrap_or_else(|_| Err(ApiError::internal("opening an index", "a panic")))
}

/// Returns a folder that no index of this name has used before, so that late writes of a deleted index do
/// not affect the new one. It sorts after all other folders of this name, even if the system clock was
/// set back.
fn new_folder(folder: &Path, name: &str) -> PathBuf {
    let time = |path: &PathBuf| u64::from_str_radix(path.extension()?.to_str()?, 16).ok();
    let newest = IndexFolders::read(folder)
        .ok()
        .and_then(|mut folders| folders.take_folders(name).0.as_ref().and_then(time));
    let now =
        chrono::Utc::now().timestamp_nanos_opt().and_then(|now| u64::try_from(now).ok()).unwrap_or_default();
    let time = now.max(newest.map_or(0, |newest| newest.saturating_add(1)));
    folder.join(format!("{name}.{time:016x}"))
}

/// Deletes a folder. It is renamed first, so that a partly deleted folder is never opened as an index.
fn remove(folder: &Path) {
    let mut trash = OsString::from(folder);
    trash.push(DELETED);
    match std::fs::rename(folder, &trash) {
        Ok(()) => remove_all(Path::new(&trash)),
        Err(_) => remove_all(folder),
    }
}

fn remove_all(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "a deleted index could not be removed from disk; the next start retries");
    }
}

#[cfg(test)]
mod tests;
