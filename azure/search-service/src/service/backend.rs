//! Implements the calls of the HTTP layer.

use std::sync::Arc;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::syntax::synonyms::SynonymRules;
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::indexes::IndexRegistry;
use super::indexing::IndexerService;
use crate::analysis;
use crate::budget::{Budget, JsonBuffer, WorkKind};
use crate::documents::{self, FieldSelection};
use crate::engine::index::SearchIndex;
use crate::engine::snapshot::IndexSnapshot;
use crate::http::statistics::{self, IndexSize};
use crate::http::{Answering, Backend, HttpReply, RequestContext, SearchCall};
use crate::knowledge::{self, RetrievalFormat};
use crate::resources::{ResourceChange, ResourceKind, ResourceRegistry};
use crate::search::request::SearchRequest;
use crate::search::scope::SynonymMaps;
use crate::search::{answer, run, typing};

pub(super) struct SearchBackend {
    resources: Arc<ResourceRegistry>,
    indexes: Arc<IndexRegistry>,
    indexing: Arc<IndexerService>,
    synonyms: Arc<SynonymMaps>,
}

impl SearchBackend {
    pub(super) fn new(
        resources: Arc<ResourceRegistry>,
        indexes: Arc<IndexRegistry>,
        indexing: Arc<IndexerService>,
        synonyms: Arc<SynonymMaps>,
    ) -> Self {
        Self { resources, indexes, indexing, synonyms }
    }

    /// Reads the current definitions and follows later changes.
    pub(super) fn follow_definitions(&self) {
        for map in self.resources.list(ResourceKind::SynonymMap) {
            set_synonyms(&self.synonyms, &map.name, &map.value);
        }
        let synonyms = Arc::clone(&self.synonyms);
        // A weak reference avoids a cycle with the definitions and their watcher. A dropped service must
        // close its files.
        let indexing = Arc::downgrade(&self.indexing);
        self.resources.watch(move |change| {
            let Some(indexing) = indexing.upgrade() else { return };
            let (current, deleted) = match change {
                ResourceChange::Created(current) | ResourceChange::Updated { new: current, .. } => {
                    (Some(current), None)
                }
                ResourceChange::Deleted(deleted) => (None, Some(deleted)),
            };
            match (current, deleted) {
                (Some(map), _) if map.kind == ResourceKind::SynonymMap => {
                    set_synonyms(&synonyms, &map.name, &map.value)
                }
                (_, Some(map)) if map.kind == ResourceKind::SynonymMap => synonyms.set(&map.name, None),
                (Some(indexer), _) if indexer.kind == ResourceKind::Indexer => {
                    indexing.indexer_changed(indexer, matches!(change, ResourceChange::Created(_)));
                }
                (_, Some(indexer)) if indexer.kind == ResourceKind::Indexer => {
                    indexing.indexer_deleted(&indexer.name)
                }
                _ => {}
            }
        });
    }

    pub(super) fn maintain(&self, stop: &dyn Fn() -> bool) {
        for (name, index) in self.indexes.all() {
            if let Err(error) = index.maintain(stop)
                && error.status != StatusCode::NOT_FOUND
            {
                tracing::warn!(index = name, %error, "maintenance of an index failed");
            }
        }
        self.indexing.start_due_runs();
    }

    pub(super) fn stop(&self) {
        self.indexing.stop();
    }

    fn size(index: &SearchIndex) -> Result<IndexSize, ApiError> {
        let (storage_bytes, vector_bytes) = index.sizes()?;
        let documents = index.documents()?.1.count()?;
        Ok(IndexSize { documents, storage_bytes, vector_bytes })
    }

    fn sizes(indexes: &IndexRegistry) -> Result<Vec<(String, IndexSize)>, ApiError> {
        indexes.all().into_iter().map(|(name, index)| Ok((name, Self::size(&index)?))).collect()
    }
}

fn set_synonyms(maps: &SynonymMaps, name: &str, definition: &Value) {
    // The rules were checked when the map was created.
    let rules = definition.get("synonyms").and_then(Value::as_str).unwrap_or_default();
    maps.set(name, SynonymRules::parse(rules).ok());
}

/// Runs the work of a request on a blocking thread.
fn run_on_blocking_thread<'a, T: Send + 'static>(
    lane: WorkKind,
    context: &'a RequestContext,
    work: impl FnOnce(&Budget) -> Result<T, ApiError> + Send + 'static,
) -> Answering<'a, T> {
    let budget = context.budget.clone();
    Box::pin(async move {
        let of_work = budget.clone();
        budget.run_blocking(lane, move || work(&of_work)).await
    })
}

/// Searches the current state of an index. A pending commit is made first. Its time does not count
/// against the time limit of the request.
fn on_snapshot<'a, T: Send + 'static>(
    context: &'a RequestContext,
    index: Result<Arc<SearchIndex>, ApiError>,
    work: impl FnOnce(&IndexSnapshot, &Budget) -> Result<T, ApiError> + Send + 'static,
) -> Answering<'a, T> {
    Box::pin(async move {
        let index = index?;
        let snapshot = match index.ready_snapshot() {
            Some(snapshot) => snapshot,
            None => run_on_blocking_thread(WorkKind::Write, context, move |_| index.snapshot()).await?,
        };
        run_on_blocking_thread(WorkKind::Search, context, move |budget| work(&snapshot, budget)).await
    })
}

/// The memory of a batch while it is parsed and written, for each byte of its body.
const BATCH_BYTES: usize = 2;

impl Backend for SearchBackend {
    fn index_documents<'a>(
        &'a self,
        context: &'a RequestContext,
        index: &'a str,
        batch: Bytes,
    ) -> Answering<'a, HttpReply> {
        let index = self.indexes.get(index);
        run_on_blocking_thread(WorkKind::Write, context, move |budget| {
            let _memory = budget.reserve_memory(batch.len().saturating_mul(BATCH_BYTES));
            let (status, body) = documents::indexing_response(&index?.apply_batch(&batch)?);
            Ok(HttpReply::raw(status, body))
        })
    }

    fn search<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply> {
        let index = self.indexes.get(&call.index);
        let (synonyms, given) = (Arc::clone(&self.synonyms), context.clone());
        on_snapshot(context, index, move |snapshot, budget| {
            let SearchCall { index: name, parameters, via } = call;
            let request = SearchRequest::parse(Value::Object(parameters))?;
            let found = run::run(&request, snapshot, &synonyms, budget)?;
            let next = |next: &Map<String, Value>| given.next_link(&name, via, next);
            let context = given.documents_context(&name);
            let answer = answer::write(&request, &found, snapshot, context.as_deref(), &next, budget)?;
            let status = if answer.partial { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
            Ok(HttpReply::raw(status, answer.body))
        })
    }

    fn suggest<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply> {
        let (index, synonyms) = (self.indexes.get(&call.index), Arc::clone(&self.synonyms));
        on_snapshot(context, index, move |snapshot, budget| {
            let body = typing::suggest(&Value::Object(call.parameters), snapshot, &synonyms, budget)?;
            Ok(HttpReply::raw(StatusCode::OK, body))
        })
    }

    fn autocomplete<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply> {
        let (index, synonyms) = (self.indexes.get(&call.index), Arc::clone(&self.synonyms));
        on_snapshot(context, index, move |snapshot, budget| {
            let body = typing::complete(&Value::Object(call.parameters), snapshot, &synonyms, budget)?;
            Ok(HttpReply::raw(StatusCode::OK, body))
        })
    }

    fn lookup<'a>(
        &'a self,
        context: &'a RequestContext,
        index: &'a str,
        key: &'a str,
        select: Option<&'a str>,
    ) -> Answering<'a, HttpReply> {
        let found = self.indexes.get(index);
        let shown =
            context.documents_context(index).map(|context| context.replace("#docs(*)", "#docs(*)/$entity"));
        let (index, key, select) = (index.to_owned(), key.to_owned(), select.map(str::to_owned));
        run_on_blocking_thread(WorkKind::Read, context, move |budget| {
            let (plan, documents) = found?.documents()?;
            let schema = &plan.definition.schema;
            let selection = match select.as_deref().map(str::trim).filter(|select| !select.is_empty()) {
                Some(select) => FieldSelection::parse(select, schema)?,
                None => FieldSelection::all(schema),
            };
            let missing =
                || ApiError::not_found(format!("The index '{index}' has no document with the key '{key}'."));
            let number = documents.number(&key)?.ok_or_else(missing)?;
            let mut answer = JsonBuffer::new(budget);
            let body = &mut answer.bytes;
            body.push(b'{');
            if let Some(context) = shown {
                body.extend_from_slice(format!("\"@odata.context\":{},", Value::from(context)).as_bytes());
            }
            let start = body.len();
            let read = documents.read(number, |json| {
                let _memory = budget.reserve_memory(json.len());
                selection.write(json, body);
            });
            read?.ok_or_else(missing)?;
            if body.len() == start && start > 1 {
                body.pop();
            }
            body.push(b'}');
            answer.account_growth();
            Ok(HttpReply::raw(StatusCode::OK, answer))
        })
    }

    fn count<'a>(&'a self, context: &'a RequestContext, index: &'a str) -> Answering<'a, u64> {
        let index = self.indexes.get(index);
        run_on_blocking_thread(WorkKind::Read, context, move |_| Ok(index?.documents()?.1.count()?))
    }

    fn analyze<'a>(
        &'a self,
        context: &'a RequestContext,
        index: &'a str,
        request: Value,
    ) -> Answering<'a, HttpReply> {
        let index = self.indexes.get(index);
        run_on_blocking_thread(WorkKind::Search, context, move |budget| {
            let tokens = analysis::analyze(&request, &index?.plan().analyzers, budget)?;
            Ok(HttpReply::raw(StatusCode::OK, tokens))
        })
    }

    fn index_statistics<'a>(&'a self, context: &'a RequestContext, index: &'a str) -> Answering<'a, Value> {
        let index = self.indexes.get(index);
        run_on_blocking_thread(WorkKind::Read, context, move |_| {
            Ok(statistics::index_statistics(Self::size(&*index?)?))
        })
    }

    fn all_index_statistics<'a>(&'a self, context: &'a RequestContext) -> Answering<'a, Value> {
        let indexes = Arc::clone(&self.indexes);
        run_on_blocking_thread(WorkKind::Read, context, move |_| {
            let sizes = Self::sizes(&indexes)?;
            Ok(statistics::all_index_statistics(sizes.iter().map(|(name, size)| (name.as_str(), *size))))
        })
    }

    fn service_statistics<'a>(&'a self, context: &'a RequestContext) -> Answering<'a, Value> {
        let (indexes, resources) = (Arc::clone(&self.indexes), Arc::clone(&self.resources));
        run_on_blocking_thread(WorkKind::Read, context, move |_| {
            let total = Self::sizes(&indexes)?.into_iter().map(|(_, size)| size).sum();
            Ok(statistics::service_statistics(&resources, total))
        })
    }

    // The state of indexers is on disk, so these calls may block.

    fn run_indexer<'a>(&'a self, context: &'a RequestContext, name: &'a str) -> Answering<'a, ()> {
        let indexing = &self.indexing;
        Box::pin(async move {
            indexing.wait_for_end(name).await;
            let (indexing, name) = (Arc::clone(indexing), name.to_owned());
            run_on_blocking_thread(WorkKind::Write, context, move |_| indexing.run(&name)).await
        })
    }

    fn reset_indexer<'a>(&'a self, context: &'a RequestContext, name: &'a str) -> Answering<'a, ()> {
        let indexing = &self.indexing;
        Box::pin(async move {
            indexing.wait_for_end(name).await;
            let (indexing, name) = (Arc::clone(indexing), name.to_owned());
            run_on_blocking_thread(WorkKind::Write, context, move |_| indexing.indexers().reset(&name)).await
        })
    }

    fn reset_documents<'a>(
        &'a self,
        context: &'a RequestContext,
        name: &'a str,
        request: Value,
        overwrite: bool,
    ) -> Answering<'a, ()> {
        let (indexing, name) = (Arc::clone(&self.indexing), name.to_owned());
        run_on_blocking_thread(WorkKind::Write, context, move |_| {
            indexing.indexers().reset_docs(&name, &request, overwrite)
        })
    }

    fn resync_indexer<'a>(&'a self, name: &'a str, request: Value) -> Answering<'a, ()> {
        Box::pin(async move { self.indexing.indexers().resync(name, &request) })
    }

    fn indexer_status<'a>(&'a self, context: &'a RequestContext, name: &'a str) -> Answering<'a, Value> {
        let (indexing, name) = (Arc::clone(&self.indexing), name.to_owned());
        run_on_blocking_thread(WorkKind::Read, context, move |_| indexing.indexers().status(&name))
    }

    fn reset_skills<'a>(
        &'a self,
        context: &'a RequestContext,
        skillset: &'a str,
        request: Value,
    ) -> Answering<'a, ()> {
        let indexing = &self.indexing;
        Box::pin(async move {
            for indexer in indexing.users_of(skillset) {
                indexing.wait_for_end(&indexer).await;
            }
            let (indexing, skillset) = (Arc::clone(indexing), skillset.to_owned());
            let reset = move |_: &Budget| indexing.reset_skills(&skillset, &request);
            run_on_blocking_thread(WorkKind::Write, context, reset).await
        })
    }

    fn retrieve<'a>(
        &'a self,
        context: &'a RequestContext,
        knowledge_base: &'a str,
        request: Value,
    ) -> Answering<'a, HttpReply> {
        let version = &context.api_version;
        let format = match (version.has_knowledge_bases(), version.has_knowledge_sources()) {
            (true, _) => RetrievalFormat::KnowledgeBases,
            (false, true) => RetrievalFormat::Agents,
            (false, false) => RetrievalFormat::TargetIndexes,
        };
        let base = self.resources.find(ResourceKind::KnowledgeBase, knowledge_base);
        let (resources, indexes, synonyms) =
            (Arc::clone(&self.resources), Arc::clone(&self.indexes), Arc::clone(&self.synonyms));
        run_on_blocking_thread(WorkKind::Search, context, move |budget| {
            let find = |name: &str| indexes.get(&resources.find_index(name)?.name)?.snapshot();
            let answer =
                knowledge::retrieve(&base?.value, &request, format, &resources, &synonyms, &find, budget)?;
            HttpReply::json(StatusCode::OK, &answer)
        })
    }

    fn knowledge_source_status<'a>(&'a self, name: &'a str) -> Answering<'a, Value> {
        Box::pin(async move {
            let source = self.resources.find(ResourceKind::KnowledgeSource, name)?;
            let kind = source.value.get("kind").cloned().unwrap_or_default();
            Ok(json!({"kind": kind, "synchronizationStatus": "active", "synchronizationInterval": null}))
        })
    }
}
