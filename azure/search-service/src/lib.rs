//! An embedded search service that speaks the REST API of Azure AI Search.
#![allow(
    missing_docs,
    reason = "the program `bindpost` is its user; what a name does not say, a comment does"
)]

pub mod definition;
pub mod engine;
mod error;
pub mod odata;
pub mod syntax;

pub use error::{ApiError, ErrorDetail};
