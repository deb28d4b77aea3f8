//! An embedded search service that speaks the REST API of Azure AI Search.
//!
//! [`SearchService::open`] opens a folder of indexes, definitions and keys. [`SearchService::serve`]
//! serves it over HTTP. Start reading at `service.rs`. `docs/search-service.md` describes the features.
//!
//! Files, in reading order: `service/` (open, serve, upkeep), `http/` (routes, keys, responses), `resources/` and `definition/`
//! (definitions of indexes and other resources), `documents/` (batches), `analysis/` (analyzers), `syntax/` and `odata/` (query
//! languages), `engine/` (one index: store, full text, snapshots), `vectors/`, `search/` (one request), `indexers/`,
//! `knowledge.rs`, `budget/` (memory and time of a request), `keys.rs`, `files.rs`, `database.rs`, `error.rs`.
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

pub mod analysis;
pub mod budget;
mod database;
pub mod definition;
pub mod documents;
pub mod engine;
mod error;
mod files;
pub mod http;
pub mod indexers;
pub mod keys;
mod knowledge;
pub mod odata;
pub mod resources;
pub mod search;
mod service;
pub mod syntax;
pub mod vectors;

pub use bindpost_net_listener::bind;
pub use budget::RequestLimits;
pub use error::{ApiError, ErrorDetail};
pub use service::{SearchService, ServiceError, ServiceOptions, Upkeep};
