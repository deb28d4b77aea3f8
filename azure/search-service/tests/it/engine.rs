//! An index in a folder of its own, without the service.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::{IndexDefinition, IndexSchema};
use bindpost_azure_search_service::internals::run::run;
use bindpost_azure_search_service::internals::{
    Budget, IndexPlan, IndexSnapshot, JsonBuffer, SearchIndex, SearchRequest, SynonymMaps,
};
use serde_json::{Map, Value, json};

/// An index with the key `id`, and its expected documents.
pub(crate) struct TestIndex {
    folder: PathBuf,
    index: Option<SearchIndex>,
    definition: IndexDefinition,
    pub(crate) synonyms: SynonymMaps,
    /// The uploaded documents by key.
    pub(crate) documents: BTreeMap<String, Value>,
}

/// The result of a search.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) keys: Vec<String>,
    pub(crate) scores: Vec<f32>,
    pub(crate) more: bool,
    pub(crate) count: Option<u64>,
    pub(crate) facets: Map<String, Value>,
}

impl TestIndex {
    pub(crate) fn new(definition: &Value) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("engine-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        // An interrupted run may have left the folder.
        let _ = std::fs::remove_dir_all(&folder);
        let definition = IndexDefinition::parse(definition).unwrap();
        let mut this = Self {
            folder,
            index: None,
            definition,
            synonyms: SynonymMaps::default(),
            documents: BTreeMap::new(),
        };
        this.reopen();
        this
    }

    /// Closes the index and reopens it.
    pub(crate) fn reopen(&mut self) {
        self.index = None;
        let plan = Arc::new(IndexPlan::new(self.definition.clone()).unwrap());
        self.index = Some(SearchIndex::open(&self.folder, plan).unwrap());
    }

    pub(crate) fn schema(&self) -> &IndexSchema {
        &self.definition.schema
    }

    /// Uploads documents and commits them as a segment, until tantivy merges segments.
    pub(crate) fn upload(&mut self, documents: impl IntoIterator<Item = Value>) {
        let documents: Vec<Value> = documents.into_iter().collect();
        for batch in documents.chunks(1000) {
            self.send(&json!({ "value": batch }));
        }
        for document in documents {
            let key = document["id"].as_str().unwrap().to_owned();
            self.documents.insert(key, document);
        }
        self.snapshot();
    }

    pub(crate) fn delete<'a>(&mut self, keys: impl IntoIterator<Item = &'a str>) {
        let keys: Vec<&str> = keys.into_iter().collect();
        let actions: Vec<Value> =
            keys.iter().map(|key| json!({"@search.action": "delete", "id": key})).collect();
        self.send(&json!({ "value": actions }));
        for key in keys {
            self.documents.remove(key);
        }
        self.snapshot();
    }

    fn send(&self, batch: &Value) {
        let outcomes = self.index().apply_batch(batch.to_string().as_bytes()).unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.error.is_none()), "{outcomes:?}");
    }

    pub(crate) fn snapshot(&self) -> Arc<IndexSnapshot> {
        self.index().snapshot().unwrap()
    }

    pub(crate) fn index(&self) -> &SearchIndex {
        self.index.as_ref().unwrap()
    }

    pub(crate) fn try_search(&self, body: Value) -> Result<Found, ApiError> {
        let snapshot = self.snapshot();
        let budget = Budget::unlimited();
        let found = run(&SearchRequest::parse(body)?, &snapshot, &self.synonyms, &budget)?;
        let facets = found.facets.as_ref().map(|facets| {
            let mut text = JsonBuffer::new(&budget);
            facets.write(&mut text);
            serde_json::from_slice(&text.bytes).unwrap()
        });
        let key = |number| {
            let document = snapshot.documents.read(number, |json| {
                serde_json::from_slice::<Value>(json).unwrap()["id"].as_str().unwrap().to_owned()
            });
            document.unwrap().unwrap()
        };
        Ok(Found {
            keys: found.documents.iter().map(|document| key(document.number)).collect(),
            scores: found.documents.iter().map(|document| document.score).collect(),
            more: found.more,
            count: found.count,
            facets: facets.unwrap_or_default(),
        })
    }

    pub(crate) fn search(&self, body: Value) -> Found {
        let shown = body.to_string();
        self.try_search(body).unwrap_or_else(|error| panic!("{shown}: {error}"))
    }
}

impl Drop for TestIndex {
    fn drop(&mut self) {
        self.index = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
