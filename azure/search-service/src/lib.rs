//! An embedded search service that speaks the REST API of Azure AI Search.
//!
//! [`SearchService::open`] opens a folder of indexes, definitions and keys; [`SearchService::serve`] serves it over HTTP.
//! `service.rs` is where to start reading.
#![allow(
    missing_docs,
    reason = "the program `bindpost` is its user; what a name does not say, a comment does"
)]

pub mod analysis;
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

pub use error::{ApiError, ErrorDetail};
pub use service::{SearchService, ServiceError, ServiceOptions};
