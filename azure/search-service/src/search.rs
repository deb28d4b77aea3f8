//! Searches an index: parses requests, runs them and writes responses.

pub mod answer;
pub(crate) mod parameters;
pub(crate) mod request;
pub mod run;
pub(crate) mod scope;
pub mod typing;
mod vectors;
