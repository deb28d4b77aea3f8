//! What the HTTP side asks of the engine: everything that is not reading and writing definitions.
//!
//! Names have been looked up before a call: an index exists and an alias is resolved, an indexer, skillset,
//! knowledge base or source exists.

use std::pin::Pin;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::ApiError;
use crate::budget::Budget;

use super::answer::{HttpReply, MetadataLevel};
use super::parameters;

/// A future that answers a call.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = Result<T, ApiError>> + Send + 'a>>;

/// The engine. A panic in one of its futures is answered 500 and ends nothing else.
///
/// A client that goes away drops the future. Work belongs into [`Budget::run_blocking`], which ends it then, or finishes what must
/// be finished.
pub trait Backend: Send + Sync + 'static {
    /// A batch as it was sent, not parsed yet. Answers 200, or 207 when some documents failed.
    fn index_documents<'a>(
        &'a self,
        context: &'a RequestContext,
        index: &'a str,
        batch: Bytes,
    ) -> Answering<'a, HttpReply>;
    fn search<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply>;
    fn suggest<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply>;
    fn autocomplete<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply>;
    /// `select` as in the option `$select`.
    fn lookup<'a>(
        &'a self,
        context: &'a RequestContext,
        index: &'a str,
        key: &'a str,
        select: Option<&'a str>,
    ) -> Answering<'a, HttpReply>;
    fn count<'a>(&'a self, context: &'a RequestContext, index: &'a str) -> Answering<'a, u64>;
    fn analyze<'a>(
        &'a self,
        context: &'a RequestContext,
        index: &'a str,
        request: Value,
    ) -> Answering<'a, HttpReply>;
    /// See [`super::statistics`] for the shapes of these three.
    fn index_statistics<'a>(&'a self, context: &'a RequestContext, index: &'a str) -> Answering<'a, Value>;
    fn all_index_statistics<'a>(&'a self, context: &'a RequestContext) -> Answering<'a, Value>;
    fn service_statistics<'a>(&'a self, context: &'a RequestContext) -> Answering<'a, Value>;

    /// Starts a run and does not wait for it.
    fn run_indexer<'a>(&'a self, context: &'a RequestContext, name: &'a str) -> Answering<'a, ()>;
    fn reset_indexer<'a>(&'a self, context: &'a RequestContext, name: &'a str) -> Answering<'a, ()>;
    /// `request` is an object, empty if there was no body; `overwrite` takes earlier requests back.
    fn reset_documents<'a>(
        &'a self,
        context: &'a RequestContext,
        name: &'a str,
        request: Value,
        overwrite: bool,
    ) -> Answering<'a, ()>;
    fn resync_indexer<'a>(&'a self, name: &'a str, request: Value) -> Answering<'a, ()>;
    fn indexer_status<'a>(&'a self, context: &'a RequestContext, name: &'a str) -> Answering<'a, Value>;
    fn reset_skills<'a>(
        &'a self,
        context: &'a RequestContext,
        skillset: &'a str,
        request: Value,
    ) -> Answering<'a, ()>;

    fn retrieve<'a>(
        &'a self,
        context: &'a RequestContext,
        knowledge_base: &'a str,
        request: Value,
    ) -> Answering<'a, HttpReply>;
    fn knowledge_source_status<'a>(&'a self, name: &'a str) -> Answering<'a, Value>;
}

/// A search, suggestion or autocompletion, in the shape of POST whichever way it came.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchCall {
    pub index: String,
    pub parameters: Map<String, Value>,
    pub via: SearchMethod,
}

/// How a search came, and so how its next page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchMethod {
    Get,
    Post,
}

/// What a call may need to know of its request.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// Where the client found the service: `http://localhost:8080`.
    pub base: String,
    pub api_version: String,
    pub metadata: MetadataLevel,
    /// The header `x-ms-query-source-authorization`, without `Bearer`.
    pub query_source_authorization: Option<String>,
    /// What the request may take.
    pub budget: Budget,
}

impl RequestContext {
    /// `@odata.context` of an answer with documents, if the client wants it.
    pub fn documents_context(&self, index: &str) -> Option<String> {
        self.context_url(|base| format!("{base}/indexes('{index}')/$metadata#docs(*)"))
    }

    /// `@odata.context` of one definition.
    pub(super) fn entity_context(&self, collection: &str) -> Option<String> {
        self.context_url(|base| format!("{base}/$metadata#{collection}/$entity"))
    }

    /// `@odata.context` of a list of definitions.
    pub(super) fn list_context(&self, collection: &str, select: Option<&str>) -> Option<String> {
        self.context_url(|base| match select {
            Some(select) => format!("{base}/$metadata#{collection}({select})"),
            None => format!("{base}/$metadata#{collection}"),
        })
    }

    /// `@odata.context` of a value of this type.
    pub(super) fn type_context(&self, name: &str) -> Option<String> {
        let version = self.api_version.replace('-', "_");
        self.context_url(|base| format!("{base}/$metadata#Microsoft.Azure.Search.V{version}.{name}"))
    }

    /// `@odata.nextLink` of a search that goes on with these parameters.
    pub fn next_link(&self, index: &str, via: SearchMethod, next: &Map<String, Value>) -> String {
        let (base, version) = (&self.base, &self.api_version);
        match via {
            SearchMethod::Post => {
                format!("{base}/indexes('{index}')/docs/search.post.search?api-version={version}")
            }
            SearchMethod::Get => {
                let options = parameters::to_options(next);
                format!("{base}/indexes('{index}')/docs?api-version={version}{options}")
            }
        }
    }

    fn context_url(&self, write: impl FnOnce(&str) -> String) -> Option<String> {
        (self.metadata != MetadataLevel::None).then(|| write(&self.base))
    }
}
