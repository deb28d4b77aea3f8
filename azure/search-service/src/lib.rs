//! An embedded search service that speaks the REST API of Azure AI Search.
//!
//! [`SearchService::open`] opens a folder of indexes, definitions and keys. [`SearchService::serve`]
//! serves it over HTTP. Start reading at `service.rs`. `docs/search-service.md` describes the features.
//!
//! Files, in reading order: `service/` (open, serve, upkeep), `http/` (routes, keys, responses), `resources/` (definitions of
//! indexes and other resources), `documents/` (batches), `analysis/` (analyzers), `engine/` (one index: store, full text,
//! snapshots), `vectors/`, `search/` (one request), `indexers/`, `knowledge.rs`, `budget/` (memory and time of a request),
//! `keys.rs`, `files.rs`, `database.rs`. Index definitions, query languages and errors are in `azure/search-model`.
//!
//! ```no_run
//! use bindpost_azure_search_service::{SearchService, ServiceOptions, bind};
//! use tokio::sync::oneshot;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let service = SearchService::open(ServiceOptions::new("search-data"))?;
//! let key = service.keys().and_then(|keys| keys.admin_keys().first()).cloned();
//! // Scheduled indexers and large sets of vectors need this thread. It ends when it is dropped.
//! let _upkeep = service.start_upkeep()?;
//! let listener = bind("127.0.0.1:0").await?;
//! let url = format!("http://{}", listener.local_addr()?);
//! let (stop, stopped) = oneshot::channel::<()>();
//! let serving = tokio::spawn(async move {
//!     let until = async {
//!         let _ = stopped.await;
//!     };
//!     service.serve(listener, until).await
//! });
//! // Clients send requests to `url`, with `key` in the `api-key` header.
//! # let _ = (url, key);
//! let _ = stop.send(());
//! serving.await??;
//! # Ok(())
//! # }
//! ```
#![allow(
    missing_docs,
    reason = "only the program `bindpost` uses this crate; items have comments where names do not suffice"
)]

mod analysis;
mod budget;
mod database;
mod documents;
mod engine;
mod files;
mod http;
mod indexers;
mod keys;
mod knowledge;
mod resources;
mod search;
mod service;
mod vectors;

pub use bindpost_net_listener::bind;
pub use budget::RequestLimits;
pub use http::certificate::TlsCertificates;
pub use keys::ApiKeys;
pub use service::{SearchService, ServiceError, ServiceOptions, Upkeep};

/// Parts of the service, for the fuzz targets and the tests of this crate only.
#[doc(hidden)]
pub mod internals {
    pub use crate::budget::{Budget, JsonBuffer};
    pub use crate::documents::{
        DocumentAction, DocumentShape, merge, parse_batch, parse_date, read_document, write_date,
    };
    pub use crate::engine::index::SearchIndex;
    pub use crate::engine::plan::IndexPlan;
    pub use crate::engine::snapshot::IndexSnapshot;
    pub use crate::engine::text::{SearchField, TextSearch};
    pub use crate::http::{
        Answering, Backend, HttpReply, HttpService, RequestContext, SearchCall, certificate,
        connection_limits, serve, statistics,
    };
    pub use crate::resources::{ResourceKind, ResourceRegistry};
    pub use crate::search::request::SearchRequest;
    pub use crate::search::scope::SynonymMaps;
    pub use crate::search::{answer, run, typing};
}
