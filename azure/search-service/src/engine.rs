//! The search engine: tantivy over the columns of an index, and the stored JSON documents.

pub(crate) mod autocomplete;
pub(crate) mod columns;
pub(crate) mod facets;
pub(crate) mod filter;
pub(crate) mod highlight;
pub(crate) mod index;
pub(crate) mod plan;
pub(crate) mod scoring;
pub(crate) mod snapshot;
pub(crate) mod store;
pub(crate) mod suggest;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
pub(crate) mod top;
pub(crate) mod watch;
