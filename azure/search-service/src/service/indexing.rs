//! Connects the definitions of indexers with the scheduler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::IndexSchema;
use chrono::Utc;
use serde_json::{Map, Value, json};

use super::ServiceError;
use super::indexes::IndexRegistry;
use crate::indexers::scheduler::runs_when_created;
use crate::indexers::{
    AllowedFolders, DataSourceDefinition, DocumentSink, IndexerActionOutcome, IndexerDefinition, IndexerJob,
    IndexerLimits, IndexerScheduler, RedbState, Skillset,
};
use crate::resources::{ResourceDefinition, ResourceKind, ResourceRegistry};

/// How long a request to run or reset an indexer waits for the end of the run before it.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct IndexerService {
    indexers: Arc<IndexerScheduler>,
    resources: Arc<ResourceRegistry>,
    indexes: Arc<IndexRegistry>,
    /// Parsed definitions by name, for the schedules.
    defined: Mutex<BTreeMap<String, IndexerDefinition>>,
}

impl IndexerService {
    pub(super) fn open(
        data: &Path,
        folders: &[PathBuf],
        resources: Arc<ResourceRegistry>,
        indexes: Arc<IndexRegistry>,
    ) -> Result<Arc<Self>, ServiceError> {
        let blobs = data.join("blobs");
        std::fs::create_dir_all(&blobs)
            .map_err(|source| ServiceError::Folder { folder: blobs.clone(), source })?;
        let file = data.join("indexers.redb");
        let state = RedbState::open(&file);
        let state = state.map_err(|error| ServiceError::Indexers { file, reason: error.to_string() })?;
        let places = AllowedFolders { blobs, allowed: folders.to_vec() };
        let mut defined = BTreeMap::new();
        for indexer in resources.list(ResourceKind::Indexer) {
            match IndexerDefinition::parse(&indexer.value) {
                Ok(definition) => _ = defined.insert(indexer.name.clone(), definition),
                // A requested run returns the same error.
                Err(error) => {
                    tracing::error!(indexer = indexer.name, %error, "an indexer is not scheduled, because its definition is invalid");
                }
            }
        }
        Ok(Arc::new(Self {
            indexers: IndexerScheduler::new(Arc::new(state), places, IndexerLimits::default()),
            resources,
            indexes,
            defined: Mutex::new(defined),
        }))
    }

    pub(super) fn indexers(&self) -> &Arc<IndexerScheduler> {
        &self.indexers
    }

    /// Handles a created or changed indexer.
    pub(super) fn indexer_changed(&self, definition: &ResourceDefinition, created: bool) {
        // The definition was checked before it was stored.
        let Ok(indexer) = IndexerDefinition::parse(&definition.value) else { return };
        let runs = created && runs_when_created(&indexer, Utc::now());
        self.lock().insert(definition.name.clone(), indexer);
        if runs && let Err(error) = self.start(&definition.value) {
            self.record_failed_start(&definition.name, &error);
        }
    }

    pub(super) fn indexer_deleted(&self, name: &str) {
        self.lock().remove(name);
        self.indexers.forget(name);
    }

    /// Waits for the run of an indexer that is about to end. An indexer runs when it is created, and scripts send the
    /// next request at once.
    pub(super) async fn wait_for_end(&self, name: &str) {
        self.indexers.wait_for_end(name, PATIENCE).await;
    }

    /// Returns the names of the indexers with this skillset.
    pub(super) fn users_of(&self, skillset: &str) -> Vec<String> {
        let uses = |indexer: &ResourceDefinition| {
            indexer.value.get("skillsetName").and_then(Value::as_str) == Some(skillset)
        };
        let all = self.resources.list(ResourceKind::Indexer).into_iter();
        all.filter(|indexer| uses(indexer)).map(|indexer| indexer.name.clone()).collect()
    }

    /// Starts a run on request.
    pub(super) fn run(&self, name: &str) -> Result<(), ApiError> {
        let definition = self.resources.find(ResourceKind::Indexer, name)?;
        self.start(&definition.value)
    }

    /// Starts the runs that are due by their schedules.
    pub(super) fn start_due_runs(&self) {
        let due: Vec<String> = {
            let defined = self.lock();
            let all: Vec<IndexerDefinition> = defined.values().cloned().collect();
            let due = self.indexers.due_indexers(&all, Utc::now());
            due.map(|names| names.into_iter().map(str::to_owned).collect()).unwrap_or_default()
        };
        for name in due {
            if let Err(error) = self.run(&name) {
                self.record_failed_start(&name, &error);
            }
        }
    }

    pub(super) fn stop(&self) {
        self.indexers.cancel_all();
    }

    /// Resets every indexer with this skillset. Its next run processes all documents again.
    pub(super) fn reset_skills(&self, skillset: &str, request: &Value) -> Result<(), ApiError> {
        let definition = self.resources.find(ResourceKind::Skillset, skillset)?;
        let known = definition.value.get("skills").and_then(Value::as_array);
        let is_known = |name: &str| {
            known.into_iter().flatten().any(|skill| skill.get("name").and_then(Value::as_str) == Some(name))
        };
        let names = request.get("skillNames").and_then(Value::as_array);
        for name in names.into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            if !is_known(name) {
                return Err(ApiError::parameter(
                    "skillNames",
                    format!("The skillset '{skillset}' has no skill '{name}'."),
                ));
            }
        }
        self.users_of(skillset).iter().try_for_each(|indexer| self.indexers.reset(indexer))
    }

    fn start(&self, definition: &Value) -> Result<(), ApiError> {
        let job = self.job(definition)?;
        // The result is available from the status.
        drop(self.indexers.start(job)?);
        Ok(())
    }

    /// Collects the current definitions for a run.
    fn job(&self, definition: &Value) -> Result<IndexerJob, ApiError> {
        let indexer = IndexerDefinition::parse(definition)?;
        let text = |member: &str| definition.get(member).and_then(Value::as_str).unwrap_or_default();
        let source = self.resources.find(ResourceKind::DataSource, text("dataSourceName"))?;
        let skillset = match text("skillsetName") {
            "" => None,
            name => Some(Skillset::parse(&self.resources.find(ResourceKind::Skillset, name)?.value)?),
        };
        let index = self.resources.find_index(text("targetIndexName"))?;
        let target = Arc::new(IndexTarget { name: index.name.clone(), indexes: Arc::clone(&self.indexes) });
        Ok(IndexerJob { indexer, source: DataSourceDefinition::parse(&source.value)?, skillset, target })
    }

    /// Records a run that could not start, for the status.
    fn record_failed_start(&self, name: &str, error: &ApiError) {
        if let Err(error) = self.indexers.record_failed_start(name, error) {
            tracing::warn!(indexer = name, %error, "a failed run could not be recorded");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, IndexerDefinition>> {
        self.defined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index that a run writes to.
struct IndexTarget {
    name: String,
    indexes: Arc<IndexRegistry>,
}

impl DocumentSink for IndexTarget {
    fn schema(&self) -> Result<Arc<IndexSchema>, ApiError> {
        Ok(Arc::new(self.indexes.get(&self.name)?.plan().definition.schema.clone()))
    }

    fn apply(&self, actions: Vec<Map<String, Value>>) -> Result<Vec<IndexerActionOutcome>, ApiError> {
        let batch = json!({"value": actions}).to_string();
        let outcomes = self.indexes.get(&self.name)?.apply_valid_items(batch.as_bytes())?;
        let outcome = |outcome: crate::documents::IndexingResult| IndexerActionOutcome {
            ok: outcome.error.is_none(),
            status: outcome.status.as_u16(),
            message: outcome.error,
            key: outcome.key,
        };
        Ok(outcomes.into_iter().map(outcome).collect())
    }
}
