//! Requests to other HTTP services.
//!
//! An [`Upstream`] is a service: its address, its credential and its limits. It retries transient failures,
//! follows redirects below its address, and masks its credential in responses. Its requests may also be answered in this
//! process, by a [`RequestHandler`].
//!
//! Files, in reading order: `upstream.rs` (the client), `address.rs` and `reserved.rs` (the addresses that requests may
//! go to), `handler.rs`, `secret.rs`, `credential.rs`, `retry.rs`, `failure.rs`, `mask.rs`, `tls.rs` (the TLS of
//! every HTTP client).

mod address;
mod credential;
mod failure;
mod handler;
mod mask;
mod reserved;
mod retry;
mod secret;
mod tls;
mod upstream;

pub use address::{is_dot_segment, is_loopback, is_path_traversal};
pub use credential::{Credential, CredentialSource};
pub use failure::{UpstreamError, error_chain};
pub use handler::{HandlerFuture, RequestHandler};
pub use mask::is_invisible;
pub use retry::{RetryPolicy, RetryState, retry_after};
pub use secret::Secret;
pub use tls::client_builder;
pub use upstream::{Redirects, Upstream, UpstreamBuilder, UpstreamLimits, UpstreamRequest, UpstreamResponse};
