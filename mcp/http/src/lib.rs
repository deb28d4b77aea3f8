//! Streamable HTTP and HTTP+SSE for bindpost, on hyper.
//!
//! [`Endpoint`] turns HTTP requests into messages and back; [`listener`] keeps the connections;
//! [`bind`] and [`BoundListener::serve`] put the two together.

mod api_keys;
mod auth;
mod batch;
mod body;
mod either;
mod endpoint;
mod era;
mod events;
mod gate;
mod guard;
mod handling;
mod headers;
mod key_file;
mod metadata;
mod pipes;
mod refusal;
mod reply;
mod serve;
mod sessions;
mod settings;
mod streaming;

pub mod listener;

pub use api_keys::ApiKeys;
pub use auth::{AnonymousAccess, AnyAuthorizer, Auth, Authorizer, Denial, UNAUTHORIZED};
pub use body::{BodyChunk, ReplyBody};
pub use either::EitherAuthorizer;
pub use endpoint::Endpoint;
pub use events::encode_event;
pub use handling::RequestFuture;
pub use headers::McpHeaders;
pub use serve::{BoundListener, bind};
pub use settings::{SessionLimits, SessionMode, Settings, SseOptions};
