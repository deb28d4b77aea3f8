//! What the embedded search service and the MCP server for Azure AI Search both speak: index definitions, OData
//! expressions, query syntaxes and errors. There is no I/O in this crate.
//!
//! Files, in reading order: `definition/` (an index definition, parsed and checked), `odata/` (`$filter` and `$orderby`),
//! `syntax/` (the simple and the full query syntax, synonym maps), `error.rs` (errors in the format of Azure AI Search).

#![allow(
    missing_docs,
    reason = "only the search crates use this crate; items have comments where names do not suffice"
)]

pub mod definition;
mod error;
pub mod odata;
pub mod syntax;

pub use error::{ApiError, ErrorDetail, ParameterError, RequestObject, is_disk_full};
