//! Streamable HTTP and HTTP+SSE for bindpost, on hyper.
//!
//! [`Endpoint`] decodes HTTP requests into messages and encodes the responses. [`listener`] accepts and
//! limits the connections. [`bind`] and [`BoundListener::serve`] combine the two.
//!
//! Files, in reading order: `serve.rs` (bind, serve, drain; in `serve/`: `any.rs` for addresses in text, `systemd.rs`, `tls.rs`), `settings.rs`, `exposure.rs` (servers that are not served without
//! authentication), `headers.rs` (typed request headers), `guard.rs` (checks of Host and Origin; `request_guard.rs` for servers without an endpoint), `endpoint.rs` (the endpoint and its routes),
//! `endpoint/request.rs` (one request from its head to its reply, in one function). In `endpoint/`: `body.rs` (reading within limits), `protocol_mode.rs` (legacy or modern), `batch.rs`, `streaming.rs` and
//! `events.rs` (replies as event streams), `reply.rs` (other replies), `sessions.rs`, `pipes.rs` (HTTP+SSE), `mount.rs` (as a service in another server). In `auth/`:
//! `gate.rs` (authentication and authorization of a request), `identity.rs` (identity headers of platforms), `refusal.rs` (401 and 403), `api_keys.rs`, `key_file.rs`,
//! `either.rs` (two authorizers), `metadata.rs` (RFC 9728).

mod auth;
mod endpoint;
mod exposure;
mod guard;
mod headers;
mod request_guard;
mod serve;
mod settings;

pub use bindpost_net_listener as listener;

// What an authorizer takes and returns.
pub use bindpost_mcp_server::{Caller, HttpRequest, Identity, ListVisibility};

pub use auth::api_keys::ApiKeys;
pub use auth::either::EitherAuthorizer;
pub use auth::{AnonymousAccess, AnyAuthorizer, Auth, Authorizer, Denial, UNAUTHORIZED};
pub use endpoint::Endpoint;
pub use endpoint::body::{BodyChunk, ReplyBody};
pub use endpoint::events::encode_event;
pub use endpoint::mount::{MountedBody, MountedFuture};
pub use headers::McpHeaders;
pub use request_guard::RequestGuard;
#[cfg(all(feature = "systemd", target_os = "linux"))]
pub use serve::bind_systemd;
#[cfg(unix)]
pub use serve::bind_unix;
pub use serve::{AnyListener, BoundListener, bind};
pub use settings::{SessionLimits, SessionMode, Settings, SseOptions, TlsFiles};
