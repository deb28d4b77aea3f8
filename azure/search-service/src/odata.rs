//! The OData expressions of search requests.

pub mod ast;
