//! The search service that the tools call: its client, credentials and failures, and the embedded service.

pub mod api;
pub(crate) mod client;
pub(crate) mod embedded;
pub(crate) mod failure;
pub(crate) mod remote;
pub mod sample;
