//! The worker protocol on the wire: framing, both transports, and the conversion between wire types and ours
//! (`typed_data.rs`, `http_data.rs`, `indexing.rs`).

pub(crate) mod framing;
pub(crate) mod grpc;
pub(crate) mod http_data;
pub(crate) mod indexing;
pub(crate) mod invocation_json;
pub(crate) mod message;
pub(crate) mod parts;
/// The generated message types, for tests that act as a worker.
#[doc(hidden)]
pub mod proto;
pub(crate) mod socket;
pub(crate) mod typed_data;
