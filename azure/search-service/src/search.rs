//! Searches an index: parses requests, runs them and writes responses.

pub mod answer;
pub mod parameters;
pub mod request;
pub mod run;
pub mod scope;
pub mod typing;
mod vectors;
