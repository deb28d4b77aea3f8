//! Streamable HTTP and HTTP+SSE for bindpost, on hyper.
//!
//! [`Endpoint`] decodes HTTP requests into messages and encodes the responses. [`listener`] accepts and
//! limits the connections. [`bind`] and [`BoundListener::serve`] combine the two.

mod auth;
mod endpoint;
mod guard;
mod headers;
mod serve;
mod settings;

pub use bindpost_net_listener as listener;

pub use auth::api_keys::ApiKeys;
pub use auth::either::EitherAuthorizer;
pub use auth::{AnonymousAccess, AnyAuthorizer, Auth, Authorizer, Denial, UNAUTHORIZED};
pub use endpoint::Endpoint;
pub use endpoint::body::{BodyChunk, ReplyBody};
pub use endpoint::events::encode_event;
pub use endpoint::request::RequestFuture;
pub use headers::McpHeaders;
pub use serve::{BoundListener, bind};
pub use settings::{SessionLimits, SessionMode, Settings, SseOptions};
