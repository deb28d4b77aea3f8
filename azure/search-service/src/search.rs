//! Searching an index: requests in, answers out.

pub mod answer;
pub mod parameters;
pub mod request;
pub mod run;
pub mod scope;
pub mod typing;
mod vectors;
