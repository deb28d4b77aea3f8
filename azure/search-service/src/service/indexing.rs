//! Indexers at work: what is defined meets the runner.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::Utc;
use serde_json::{Map, Value, json};

use super::ServiceError;
use super::indexes::Indexes;
use crate::ApiError;
use crate::definition::Schema;
use crate::indexers::scheduler::runs_when_created;
use crate::indexers::{
    DataSourceDefinition, IndexerDefinition, Indexers, Job, Limits, Outcome, Places, RedbState, Skillset,
    Target,
};
use crate::resources::{Definition, Kind, Resources};

pub(super) struct Indexing {
    indexers: Arc<Indexers>,
    resources: Arc<Resources>,
    indexes: Arc<Indexes>,
    /// By name, parsed once for the clock.
    defined: Mutex<BTreeMap<String, IndexerDefinition>>,
}

impl Indexing {
    pub(super) fn open(
        data: &Path,
        folders: &[PathBuf],
        resources: Arc<Resources>,
        indexes: Arc<Indexes>,
    ) -> Result<Arc<Self>, ServiceError> {
        let blobs = data.join("blobs");
        std::fs::create_dir_all(&blobs)
            .map_err(|source| ServiceError::Folder { folder: blobs.clone(), source })?;
        let file = data.join("indexers.redb");
        let state = RedbState::open(&file);
        let state = state.map_err(|error| ServiceError::Indexers { file, reason: error.to_string() })?;
        let places = Places { blobs, allowed: folders.to_vec() };
        let mut defined = BTreeMap::new();
        for indexer in resources.list(Kind::Indexer) {
            match IndexerDefinition::parse(&indexer.value) {
                Ok(definition) => _ = defined.insert(indexer.name.clone(), definition),
                // A run that is asked for says the same.
                Err(error) => {
                    tracing::error!(indexer = indexer.name, %error, "an indexer is not scheduled");
                }
            }
        }
        Ok(Arc::new(Self {
            indexers: Indexers::new(Arc::new(state), places, Limits::default()),
            resources,
            indexes,
            defined: Mutex::new(defined),
        }))
    }

    pub(super) fn indexers(&self) -> &Arc<Indexers> {
        &self.indexers
    }

    /// An indexer was created or changed.
    pub(super) fn defined(&self, definition: &Definition, created: bool) {
        // It was checked before it was kept.
        let Ok(indexer) = IndexerDefinition::parse(&definition.value) else { return };
        let runs = created && runs_when_created(&indexer, Utc::now());
        self.lock().insert(definition.name.clone(), indexer);
        if runs && let Err(error) = self.start(&definition.value) {
            self.note(&definition.name, &error);
        }
    }

    pub(super) fn deleted(&self, name: &str) {
        self.lock().remove(name);
        self.indexers.forget(name);
    }

    /// Starts a run that somebody asked for.
    pub(super) fn run(&self, name: &str) -> Result<(), ApiError> {
        let definition = self.resources.find(Kind::Indexer, name)?;
        self.start(&definition.value)
    }

    /// Starts what the schedules say.
    pub(super) fn tick(&self) {
        let due: Vec<String> = {
            let defined = self.lock();
            let all: Vec<IndexerDefinition> = defined.values().cloned().collect();
            let due = self.indexers.due(&all, Utc::now());
            due.map(|names| names.into_iter().map(str::to_owned).collect()).unwrap_or_default()
        };
        for name in due {
            if let Err(error) = self.run(&name) {
                self.note(&name, &error);
            }
        }
    }

    pub(super) fn stop(&self) {
        self.indexers.cancel_all();
    }

    /// Documents of every indexer with this skillset are taken again by its next run.
    pub(super) fn reset_skills(&self, skillset: &str, request: &Value) -> Result<(), ApiError> {
        let definition = self.resources.find(Kind::Skillset, skillset)?;
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
        for indexer in self.resources.list(Kind::Indexer) {
            if indexer.value.get("skillsetName").and_then(Value::as_str) == Some(skillset) {
                self.indexers.reset(&indexer.name)?;
            }
        }
        Ok(())
    }

    fn start(&self, definition: &Value) -> Result<(), ApiError> {
        let job = self.job(definition)?;
        // Whoever wants to know how it went asks for the status.
        drop(self.indexers.start(job)?);
        Ok(())
    }

    /// Everything that a run needs, as it is defined now.
    fn job(&self, definition: &Value) -> Result<Job, ApiError> {
        let indexer = IndexerDefinition::parse(definition)?;
        let text = |member: &str| definition.get(member).and_then(Value::as_str).unwrap_or_default();
        let source = self.resources.find(Kind::DataSource, text("dataSourceName"))?;
        let skillset = match text("skillsetName") {
            "" => None,
            name => Some(Skillset::parse(&self.resources.find(Kind::Skillset, name)?.value)?),
        };
        let index = self.resources.find_index(text("targetIndexName"))?;
        let target = Arc::new(IndexTarget { name: index.name.clone(), indexes: Arc::clone(&self.indexes) });
        Ok(Job { indexer, source: DataSourceDefinition::parse(&source.value)?, skillset, target })
    }

    /// A run that could not even begin is seen in the status.
    fn note(&self, name: &str, error: &ApiError) {
        if let Err(error) = self.indexers.fail(name, error) {
            tracing::warn!(indexer = name, %error, "a failed run could not be noted");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, IndexerDefinition>> {
        self.defined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index that a run writes to.
struct IndexTarget {
    name: String,
    indexes: Arc<Indexes>,
}

impl Target for IndexTarget {
    fn schema(&self) -> Result<Arc<Schema>, ApiError> {
        Ok(Arc::new(self.indexes.get(&self.name)?.plan().definition.schema.clone()))
    }

    fn apply(&self, actions: Vec<Map<String, Value>>) -> Result<Vec<Outcome>, ApiError> {
        let batch = json!({"value": actions}).to_string();
        let outcomes = self.indexes.get(&self.name)?.apply_what_fits(batch.as_bytes())?;
        let outcome = |outcome: crate::documents::Outcome| Outcome {
            ok: outcome.error.is_none(),
            status: outcome.status.as_u16(),
            message: outcome.error,
            key: outcome.key,
        };
        Ok(outcomes.into_iter().map(outcome).collect())
    }
}
