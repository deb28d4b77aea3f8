//! The two syntaxes of search texts: simple and full Lucene.

pub mod tree;
