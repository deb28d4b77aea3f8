//! The interface from the HTTP layer to the engine: everything except reading and writing definitions.
//!
//! The HTTP layer resolves names before a call. An index exists and its alias is resolved, and an
//! indexer, skillset, knowledge base or knowledge source exists.

use std::pin::Pin;

use bindpost_azure_search_model::ApiError;
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::budget::Budget;

use super::answer::{HttpReply, MetadataLevel};
use super::parameters;
use super::version::ApiVersion;

/// The future of a call to the engine.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = Result<T, ApiError>> + Send + 'a>>;

/// The engine. A panic in one of its futures becomes a response with status 500 and affects no other request.
///
/// The future is dropped when the client disconnects. Long work belongs in [`Budget::run_blocking`],
/// which then stops it, or finishes work that must be finished.
pub trait Backend: Send + Sync + 'static {
    /// Indexes a batch. `body` is the unparsed request body. The response is 200, or 207 if some
    /// documents failed.
    fn index_documents<'a>(
        &'a self,
        context: &'a RequestContext,
        index: &'a str,
        batch: Bytes,
    ) -> Answering<'a, HttpReply>;
    fn search<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply>;
    fn suggest<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply>;
    fn autocomplete<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply>;
    /// Looks up a document. `select` is the value of `$select`.
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
    /// Returns statistics. [`super::statistics`] has the formats of these three.
    fn index_statistics<'a>(&'a self, context: &'a RequestContext, index: &'a str) -> Answering<'a, Value>;
    fn all_index_statistics<'a>(&'a self, context: &'a RequestContext) -> Answering<'a, Value>;
    fn service_statistics<'a>(&'a self, context: &'a RequestContext) -> Answering<'a, Value>;

    /// Starts a run and does not wait for its end. An earlier run that is about to end is waited for, also by
    /// `reset_indexer`.
    fn run_indexer<'a>(&'a self, context: &'a RequestContext, name: &'a str) -> Answering<'a, ()>;
    fn reset_indexer<'a>(&'a self, context: &'a RequestContext, name: &'a str) -> Answering<'a, ()>;
    /// `request` is an object, which is empty if the request has no body. `overwrite` replaces
    /// earlier requests.
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

/// The parameters of a search, suggestion or autocompletion, in the format of POST for both methods.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchCall {
    pub index: String,
    pub parameters: Map<String, Value>,
    pub via: SearchMethod,
}

/// The HTTP method of a search. It determines the link to the next page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchMethod {
    Get,
    Post,
}

/// The parts of a request that a call may need.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// The base URL that the client used, such as `http://localhost:8080`.
    pub base: String,
    pub api_version: ApiVersion,
    pub metadata: MetadataLevel,
    /// The header `x-ms-query-source-authorization`, without `Bearer`.
    pub query_source_authorization: Option<String>,
    /// The budget of the request.
    pub budget: Budget,
}

impl RequestContext {
    /// Returns `@odata.context` for documents, if the client wants metadata.
    pub fn documents_context(&self, index: &str) -> Option<String> {
        self.context_url(|base| format!("{base}/indexes('{index}')/$metadata#docs(*)"))
    }

    /// Returns `@odata.context` for one definition.
    pub(super) fn entity_context(&self, collection: &str) -> Option<String> {
        self.context_url(|base| format!("{base}/$metadata#{collection}/$entity"))
    }

    /// Returns `@odata.context` for a list of definitions.
    pub(super) fn list_context(&self, collection: &str, select: Option<&str>) -> Option<String> {
        self.context_url(|base| match select {
            Some(select) => format!("{base}/$metadata#{collection}({select})"),
            None => format!("{base}/$metadata#{collection}"),
        })
    }

    /// Returns `@odata.context` for a value of the given type.
    pub(super) fn type_context(&self, name: &str) -> Option<String> {
        let version = self.api_version.to_string().replace('-', "_");
        self.context_url(|base| format!("{base}/$metadata#Microsoft.Azure.Search.V{version}.{name}"))
    }

    /// Returns `@odata.nextLink` for the next page of a search, with these parameters.
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
