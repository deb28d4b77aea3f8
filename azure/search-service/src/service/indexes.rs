//! All indexes of a service, by name, each in a folder of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use crate::ApiError;
use crate::definition::{Change, IndexDefinition, changes};
use crate::engine::index::SearchIndex;
use crate::engine::plan::Plan;
use crate::resources::{IndexHook, Kind, Resources};
use crate::search::scope::SynonymMaps;

pub(super) struct Indexes {
    folder: PathBuf,
    open: RwLock<HashMap<String, Open>>,
    synonyms: Arc<SynonymMaps>,
}

#[derive(Clone)]
struct Open {
    index: Arc<SearchIndex>,
    folder: PathBuf,
}

impl Indexes {
    /// Opens every index that has a definition, and removes what deleted ones have left.
    pub(super) fn open(
        folder: &Path,
        resources: &Resources,
        synonyms: Arc<SynonymMaps>,
    ) -> Result<Self, ApiError> {
        let failed = |error| ApiError::internal("opening indexes", error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut folders: HashMap<String, Vec<PathBuf>> = HashMap::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('.'));
            let name = name.map(|(name, _)| name.to_owned()).unwrap_or_default();
            folders.entry(name).or_default().push(path);
        }
        let mut open = HashMap::new();
        for definition in resources.list(Kind::Index) {
            let plan = Arc::new(Plan::new(IndexDefinition::parse(&definition.value)?)?);
            let mut own = folders.remove(&definition.name).unwrap_or_default();
            // The last part of a folder's name rises with time.
            own.sort_unstable();
            let place = own.pop().unwrap_or_else(|| new_folder(folder, &definition.name));
            let index = Arc::new(SearchIndex::open(&place, plan)?);
            open.insert(definition.name.clone(), Open { index, folder: place });
            folders.insert(definition.name.clone(), own);
        }
        for left in folders.into_values().flatten() {
            remove(&left);
        }
        Ok(Self { folder: folder.to_owned(), open: RwLock::new(open), synonyms })
    }

    pub(super) fn get(&self, name: &str) -> Result<Arc<SearchIndex>, ApiError> {
        let found = self.read().get(name).map(|open| Arc::clone(&open.index));
        found.ok_or_else(|| ApiError::not_found(format!("There is no index '{name}'.")))
    }

    pub(super) fn all(&self) -> Vec<(String, Arc<SearchIndex>)> {
        let mut all: Vec<_> =
            self.read().iter().map(|(name, open)| (name.clone(), Arc::clone(&open.index))).collect();
        all.sort_by(|left, right| left.0.cmp(&right.0));
        all
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<String, Open>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<String, Open>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IndexHook for Indexes {
    fn create(&self, name: &str, definition: &Value) -> Result<Value, ApiError> {
        let definition = IndexDefinition::parse(definition)?;
        let kept = definition.json.clone();
        let plan = Arc::new(Plan::new(definition)?);
        let folder = new_folder(&self.folder, name);
        let index = Arc::new(SearchIndex::open(&folder, plan)?);
        self.write().insert(name.to_owned(), Open { index, folder });
        Ok(kept)
    }

    fn update(&self, name: &str, old: &Value, new: &Value, allow_downtime: bool) -> Result<Value, ApiError> {
        let (old, new) = (IndexDefinition::parse(old)?, IndexDefinition::parse(new)?);
        let change = changes(&old, &new, allow_downtime)?;
        let kept = new.json.clone();
        let plan = Arc::new(Plan::new(new)?);
        if change != Change::Nothing {
            self.get(name)?.replan(plan)?;
            self.synonyms.forget(name);
        }
        Ok(kept)
    }

    fn delete(&self, name: &str) -> Result<(), ApiError> {
        let open = self.write().remove(name);
        self.synonyms.forget(name);
        if let Some(open) = open {
            // Requests under way may still hold it; its files live until they are done.
            remove(&open.folder);
        }
        Ok(())
    }
}

/// A folder that no index of this name has had before: what a deleted one still writes does not meet the new one.
fn new_folder(folder: &Path, name: &str) -> PathBuf {
    let now = chrono::Utc::now().timestamp_nanos_opt().unwrap_or_default();
    folder.join(format!("{name}.{now:016x}"))
}

/// Removes a folder for good: under another name first, so that half of it is never taken for an index.
fn remove(folder: &Path) {
    let trash = folder.with_extension("deleted");
    let trash = match std::fs::rename(folder, &trash) {
        Ok(()) => trash,
        Err(_) => folder.to_owned(),
    };
    if let Err(error) = std::fs::remove_dir_all(&trash)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "a deleted index could not be removed; the next start tries again");
    }
}

use std::io;
