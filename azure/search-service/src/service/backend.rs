//! What the HTTP side asks of the engine, answered.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::indexes::Indexes;
use super::indexing::Indexing;
use crate::ApiError;
use crate::analysis;
use crate::budget::{Budget, Lane, Text};
use crate::documents::{self, Selection};
use crate::engine::index::SearchIndex;
use crate::engine::snapshot::Snapshot;
use crate::http::statistics::{self, Size};
use crate::http::{Answering, Backend, Context, Reply, SearchCall};
use crate::knowledge;
use crate::resources::{Change, Kind, Resources};
use crate::search::request::SearchRequest;
use crate::search::scope::SynonymMaps;
use crate::search::{answer, run, typing};
use crate::syntax::synonyms::Synonyms;

pub(super) struct Engine {
    resources: Arc<Resources>,
    indexes: Arc<Indexes>,
    indexing: Arc<Indexing>,
    synonyms: Arc<SynonymMaps>,
}

impl Engine {
    pub(super) fn new(
        resources: Arc<Resources>,
        indexes: Arc<Indexes>,
        indexing: Arc<Indexing>,
        synonyms: Arc<SynonymMaps>,
    ) -> Self {
        Self { resources, indexes, indexing, synonyms }
    }

    /// Reads what is defined, and follows every change of it.
    pub(super) fn watch(&self) {
        for map in self.resources.list(Kind::SynonymMap) {
            set_synonyms(&self.synonyms, &map.name, &map.value);
        }
        let synonyms = Arc::clone(&self.synonyms);
        // It holds the definitions, which hold the watcher: a service that is dropped must give its files back.
        let indexing = Arc::downgrade(&self.indexing);
        self.resources.watch(move |change| {
            let Some(indexing) = indexing.upgrade() else { return };
            let (now, gone) = match change {
                Change::Created(now) | Change::Updated { new: now, .. } => (Some(now), None),
                Change::Deleted(gone) => (None, Some(gone)),
            };
            match (now, gone) {
                (Some(map), _) if map.kind == Kind::SynonymMap => {
                    set_synonyms(&synonyms, &map.name, &map.value)
                }
                (_, Some(map)) if map.kind == Kind::SynonymMap => synonyms.set(&map.name, None),
                (Some(indexer), _) if indexer.kind == Kind::Indexer => {
                    indexing.defined(indexer, matches!(change, Change::Created(_)));
                }
                (_, Some(indexer)) if indexer.kind == Kind::Indexer => indexing.deleted(&indexer.name),
                _ => {}
            }
        });
    }

    pub(super) fn maintain(&self, stop: &dyn Fn() -> bool) {
        for (name, index) in self.indexes.all() {
            if let Err(error) = index.maintain(stop)
                && error.status != StatusCode::NOT_FOUND
            {
                tracing::warn!(index = name, %error, "upkeep of an index failed");
            }
        }
        self.indexing.tick();
    }

    pub(super) fn stop(&self) {
        self.indexing.stop();
    }

    fn size(index: &SearchIndex) -> Result<Size, ApiError> {
        let (storage_bytes, vector_bytes) = index.sizes()?;
        let documents = index.documents()?.1.count()?;
        Ok(Size { documents, storage_bytes, vector_bytes })
    }

    fn sizes(indexes: &Indexes) -> Result<Vec<(String, Size)>, ApiError> {
        indexes.all().into_iter().map(|(name, index)| Ok((name, Self::size(&index)?))).collect()
    }
}

fn set_synonyms(maps: &SynonymMaps, name: &str, definition: &Value) {
    // The rules were checked when they came.
    let rules = definition.get("synonyms").and_then(Value::as_str).unwrap_or_default();
    maps.set(name, Synonyms::parse(rules).ok());
}

/// Does the work of a request when it is its turn.
fn off_the_loop<'a, T: Send + 'static>(
    lane: Lane,
    context: &'a Context,
    work: impl FnOnce(&Budget) -> Result<T, ApiError> + Send + 'static,
) -> Answering<'a, T> {
    let budget = context.budget.clone();
    Box::pin(async move {
        let of_work = budget.clone();
        budget.work(lane, move || work(&of_work)).await
    })
}

/// Searches an index as it is when the request comes. What has to be committed first is committed for all, and is not
/// charged to the time of the request that happens to wait for it.
fn on_snapshot<'a, T: Send + 'static>(
    context: &'a Context,
    index: Result<Arc<SearchIndex>, ApiError>,
    work: impl FnOnce(&Snapshot, &Budget) -> Result<T, ApiError> + Send + 'static,
) -> Answering<'a, T> {
    Box::pin(async move {
        let index = index?;
        let snapshot = match index.ready() {
            Some(snapshot) => snapshot,
            None => off_the_loop(Lane::Write, context, move |_| index.snapshot()).await?,
        };
        off_the_loop(Lane::Search, context, move |budget| work(&snapshot, budget)).await
    })
}

/// What a batch takes while it is read and written, for each byte of it.
const BATCH_BYTES: usize = 2;

impl Backend for Engine {
    fn index_documents<'a>(
        &'a self,
        context: &'a Context,
        index: &'a str,
        batch: Bytes,
    ) -> Answering<'a, Reply> {
        let index = self.indexes.get(index);
        off_the_loop(Lane::Write, context, move |budget| {
            let _memory = budget.hold(batch.len().saturating_mul(BATCH_BYTES));
            let (status, body) = documents::answer(&index?.apply_batch(&batch)?);
            Ok(Reply::raw(status, body))
        })
    }

    fn search<'a>(&'a self, context: &'a Context, call: SearchCall) -> Answering<'a, Reply> {
        let index = self.indexes.get(&call.index);
        let (synonyms, given) = (Arc::clone(&self.synonyms), context.clone());
        on_snapshot(context, index, move |snapshot, budget| {
            let SearchCall { index: name, parameters, via } = call;
            let request = SearchRequest::parse(Value::Object(parameters))?;
            let found = run::run(&request, snapshot, &synonyms, budget)?;
            let next = |next: &Map<String, Value>| given.next_link(&name, via, next);
            let context = given.of_documents(&name);
            let answer = answer::write(&request, &found, snapshot, context.as_deref(), &next, budget)?;
            let status = if answer.partial { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
            Ok(Reply::raw(status, answer.body))
        })
    }

    fn suggest<'a>(&'a self, context: &'a Context, call: SearchCall) -> Answering<'a, Reply> {
        let (index, synonyms) = (self.indexes.get(&call.index), Arc::clone(&self.synonyms));
        on_snapshot(context, index, move |snapshot, budget| {
            let body = typing::suggest(&Value::Object(call.parameters), snapshot, &synonyms, budget)?;
            Ok(Reply::raw(StatusCode::OK, body))
        })
    }

    fn autocomplete<'a>(&'a self, context: &'a Context, call: SearchCall) -> Answering<'a, Reply> {
        let (index, synonyms) = (self.indexes.get(&call.index), Arc::clone(&self.synonyms));
        on_snapshot(context, index, move |snapshot, budget| {
            let body = typing::complete(&Value::Object(call.parameters), snapshot, &synonyms, budget)?;
            Ok(Reply::raw(StatusCode::OK, body))
        })
    }

    fn lookup<'a>(
        &'a self,
        context: &'a Context,
        index: &'a str,
        key: &'a str,
        select: Option<&'a str>,
    ) -> Answering<'a, Reply> {
        let found = self.indexes.get(index);
        let shown =
            context.of_documents(index).map(|context| context.replace("#docs(*)", "#docs(*)/$entity"));
        let (index, key, select) = (index.to_owned(), key.to_owned(), select.map(str::to_owned));
        off_the_loop(Lane::Read, context, move |budget| {
            let (plan, documents) = found?.documents()?;
            let schema = &plan.definition.schema;
            let selection = match select.as_deref().map(str::trim).filter(|select| !select.is_empty()) {
                Some(select) => Selection::parse(select, schema)?,
                None => Selection::all(schema),
            };
            let missing =
                || ApiError::not_found(format!("The index '{index}' has no document with the key '{key}'."));
            let number = documents.number(&key)?.ok_or_else(missing)?;
            let mut answer = Text::new(budget);
            let body = &mut answer.bytes;
            body.push(b'{');
            if let Some(context) = shown {
                body.extend_from_slice(format!("\"@odata.context\":{},", Value::from(context)).as_bytes());
            }
            let start = body.len();
            let read = documents.read(number, |json| {
                let _memory = budget.hold(json.len());
                selection.write(json, body);
            });
            read?.ok_or_else(missing)?;
            if body.len() == start && start > 1 {
                body.pop();
            }
            body.push(b'}');
            answer.settle();
            Ok(Reply::raw(StatusCode::OK, answer))
        })
    }

    fn count<'a>(&'a self, context: &'a Context, index: &'a str) -> Answering<'a, u64> {
        let index = self.indexes.get(index);
        off_the_loop(Lane::Read, context, move |_| Ok(index?.documents()?.1.count()?))
    }

    fn analyze<'a>(&'a self, context: &'a Context, index: &'a str, request: Value) -> Answering<'a, Reply> {
        let index = self.indexes.get(index);
        off_the_loop(Lane::Search, context, move |budget| {
            let tokens = analysis::analyze(&request, &index?.plan().analyzers, budget)?;
            Ok(Reply::raw(StatusCode::OK, tokens))
        })
    }

    fn index_statistics<'a>(&'a self, context: &'a Context, index: &'a str) -> Answering<'a, Value> {
        let index = self.indexes.get(index);
        off_the_loop(Lane::Read, context, move |_| Ok(statistics::of_index(Self::size(&*index?)?)))
    }

    fn all_index_statistics<'a>(&'a self, context: &'a Context) -> Answering<'a, Value> {
        let indexes = Arc::clone(&self.indexes);
        off_the_loop(Lane::Read, context, move |_| {
            let sizes = Self::sizes(&indexes)?;
            Ok(statistics::of_indexes(sizes.iter().map(|(name, size)| (name.as_str(), *size))))
        })
    }

    fn service_statistics<'a>(&'a self, context: &'a Context) -> Answering<'a, Value> {
        let (indexes, resources) = (Arc::clone(&self.indexes), Arc::clone(&self.resources));
        off_the_loop(Lane::Read, context, move |_| {
            let total = Self::sizes(&indexes)?.into_iter().map(|(_, size)| size).sum();
            Ok(statistics::of_service(&resources, total))
        })
    }

    // What indexers remember is on disk.

    fn run_indexer<'a>(&'a self, context: &'a Context, name: &'a str) -> Answering<'a, ()> {
        let (indexing, name) = (Arc::clone(&self.indexing), name.to_owned());
        off_the_loop(Lane::Write, context, move |_| indexing.run(&name))
    }

    fn reset_indexer<'a>(&'a self, context: &'a Context, name: &'a str) -> Answering<'a, ()> {
        let (indexing, name) = (Arc::clone(&self.indexing), name.to_owned());
        off_the_loop(Lane::Write, context, move |_| indexing.indexers().reset(&name))
    }

    fn reset_documents<'a>(
        &'a self,
        context: &'a Context,
        name: &'a str,
        request: Value,
        overwrite: bool,
    ) -> Answering<'a, ()> {
        let (indexing, name) = (Arc::clone(&self.indexing), name.to_owned());
        off_the_loop(Lane::Write, context, move |_| {
            indexing.indexers().reset_docs(&name, &request, overwrite)
        })
    }

    fn resync_indexer<'a>(&'a self, name: &'a str, request: Value) -> Answering<'a, ()> {
        Box::pin(async move { self.indexing.indexers().resync(name, &request) })
    }

    fn indexer_status<'a>(&'a self, context: &'a Context, name: &'a str) -> Answering<'a, Value> {
        let (indexing, name) = (Arc::clone(&self.indexing), name.to_owned());
        off_the_loop(Lane::Read, context, move |_| indexing.indexers().status(&name))
    }

    fn reset_skills<'a>(
        &'a self,
        context: &'a Context,
        skillset: &'a str,
        request: Value,
    ) -> Answering<'a, ()> {
        let (indexing, skillset) = (Arc::clone(&self.indexing), skillset.to_owned());
        off_the_loop(Lane::Write, context, move |_| indexing.reset_skills(&skillset, &request))
    }

    fn retrieve<'a>(
        &'a self,
        context: &'a Context,
        knowledge_base: &'a str,
        request: Value,
    ) -> Answering<'a, Reply> {
        let bases = context.api_version.as_str() >= "2025-11-01";
        let base = self.resources.find(Kind::KnowledgeBase, knowledge_base);
        let (resources, indexes, synonyms) =
            (Arc::clone(&self.resources), Arc::clone(&self.indexes), Arc::clone(&self.synonyms));
        off_the_loop(Lane::Search, context, move |budget| {
            let find = |name: &str| indexes.get(&resources.find_index(name)?.name)?.snapshot();
            let answer =
                knowledge::retrieve(&base?.value, &request, bases, &resources, &synonyms, &find, budget)?;
            Reply::json(StatusCode::OK, &answer)
        })
    }

    fn knowledge_source_status<'a>(&'a self, name: &'a str) -> Answering<'a, Value> {
        Box::pin(async move {
            let source = self.resources.find(Kind::KnowledgeSource, name)?;
            let kind = source.value.get("kind").cloned().unwrap_or_default();
            Ok(json!({"kind": kind, "synchronizationStatus": "active", "synchronizationInterval": null}))
        })
    }
}
