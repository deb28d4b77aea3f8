//! Where documents are found: tantivy over the columns of an index, and the stored JSON behind it.

pub mod columns;
