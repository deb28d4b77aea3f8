//! Tests of whole runs over folders. The index is a map.

mod changes;
mod folders;
mod limits;
mod modes;
mod schedules;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::{fs, process};

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::field::{FieldType, IndexField, IndexSchema, PrimitiveType};
use serde_json::{Map, Value, json};

use super::*;

/// A folder that is deleted when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("bindpost-indexers-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("blobs/docs")).unwrap();
        Self(path)
    }

    /// Writes a file of the container `docs`.
    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.0.join("blobs/docs").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.0.join("blobs/docs").join(name)).unwrap();
    }

    fn places(&self) -> AllowedFolders {
        AllowedFolders { blobs: self.0.join("blobs"), allowed: Vec::new() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Hook = Box<dyn Fn() + Send + Sync>;

/// An index in memory. It rejects documents with the title "refuse".
#[derive(Default)]
struct Index {
    documents: Mutex<BTreeMap<String, Map<String, Value>>>,
    batches: Mutex<Vec<usize>>,
    /// Called before each batch.
    hook: Option<Hook>,
}

impl Index {
    fn keys(&self) -> Vec<String> {
        self.documents.lock().unwrap().keys().cloned().collect()
    }

    fn all(&self) -> Vec<Value> {
        self.documents.lock().unwrap().values().cloned().map(Value::Object).collect()
    }
}

impl DocumentSink for Index {
    fn schema(&self) -> Result<Arc<IndexSchema>, ApiError> {
        let mut id = IndexField::new("id", FieldType::One(PrimitiveType::String));
        id.key = true;
        let one = |name, primitive| IndexField::new(name, FieldType::One(primitive));
        let fields = vec![
            id,
            one("title", PrimitiveType::String),
            one("content", PrimitiveType::String),
            one("count", PrimitiveType::Int32),
            one("day", PrimitiveType::DateTimeOffset),
            IndexField::new("tags", FieldType::Many(PrimitiveType::String)),
            one("metadata_storage_name", PrimitiveType::String),
            one("metadata_storage_size", PrimitiveType::Int64),
        ];
        Ok(Arc::new(IndexSchema::new(fields).unwrap()))
    }

    fn apply(&self, actions: Vec<Map<String, Value>>) -> Result<Vec<IndexerActionOutcome>, ApiError> {
        if let Some(hook) = &self.hook {
            hook();
        }
        self.batches.lock().unwrap().push(actions.len());
        let mut documents = self.documents.lock().unwrap();
        let outcomes = actions.into_iter().map(|mut action| {
            let key = action["id"].as_str().unwrap().to_owned();
            let kind = action.remove("@search.action").unwrap();
            let ok = action.get("title") != Some(&json!("refuse"));
            if kind == "delete" {
                documents.remove(&key);
            } else if ok {
                documents.entry(key.clone()).or_default().extend(action);
            }
            let message = (!ok).then(|| "refused".to_owned());
            IndexerActionOutcome { key, ok, status: if ok { 200 } else { 400 }, message }
        });
        Ok(outcomes.collect())
    }
}

/// An indexer `ix` over the container `docs`, with its index.
struct Bench {
    folder: Folder,
    index: Arc<Index>,
    indexers: Arc<IndexerScheduler>,
    indexer: Value,
    source: Value,
    skillset: Option<Value>,
}

impl Bench {
    fn new(configuration: Value) -> Self {
        Self::with(configuration, Index::default(), IndexerLimits::default())
    }

    fn with(configuration: Value, index: Index, limits: IndexerLimits) -> Self {
        let folder = Folder::new();
        let indexers = IndexerScheduler::new(
            Arc::new(RedbState::open(&folder.0.join("state.redb")).unwrap()),
            folder.places(),
            limits,
        );
        let indexer = json!({"name": "ix", "dataSourceName": "ds", "targetIndexName": "idx",
            "parameters": {"configuration": configuration}});
        let source = json!({"name": "ds", "type": "azureblob", "container": {"name": "docs"},
            "credentials": {"connectionString": "UseDevelopmentStorage=true"}});
        Self { folder, index: Arc::new(index), indexers, indexer, source, skillset: None }
    }

    fn tolerate(mut self) -> Self {
        self.indexer["parameters"]["maxFailedItems"] = json!(-1);
        self.indexer["parameters"]["maxFailedItemsPerBatch"] = json!(-1);
        self
    }

    fn job(&self) -> IndexerJob {
        IndexerJob {
            indexer: IndexerDefinition::parse(&self.indexer).unwrap(),
            source: DataSourceDefinition::parse(&self.source).unwrap(),
            skillset: self.skillset.as_ref().map(|json| Skillset::parse(json).unwrap()),
            target: Arc::clone(&self.index) as Arc<dyn DocumentSink>,
        }
    }

    fn run(&self) -> status::ExecutionResult {
        self.indexers.reserve_run(self.job()).unwrap().run()
    }

    /// Runs the indexer and expects success.
    fn succeed(&self) -> u64 {
        let result = self.run();
        assert_eq!(result.status, status::ExecutionStatus::Success, "{result:?}");
        assert_eq!(result.items_failed, 0, "{result:?}");
        result.items_processed
    }

    fn status(&self) -> Value {
        self.indexers.status("ix").unwrap()
    }
}
