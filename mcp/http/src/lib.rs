//! Streamable HTTP and HTTP+SSE for bindpost, on hyper.
//!
//! [`Endpoint`] turns HTTP requests into messages and back; [`listener`] keeps the connections;
//! [`bind`] and [`BoundListener::serve`] put the two together.

mod auth;
mod endpoint;
mod guard;
mod headers;
mod serve;
mod settings;

pub mod listener;

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
