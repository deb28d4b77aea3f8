//! The search engine: tantivy over the columns of an index, and the stored JSON documents.

pub mod autocomplete;
pub mod columns;
pub mod facets;
pub mod filter;
pub mod highlight;
pub mod index;
pub mod plan;
pub mod scoring;
pub mod snapshot;
pub mod store;
pub mod suggest;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;
pub mod top;
pub mod watch;
