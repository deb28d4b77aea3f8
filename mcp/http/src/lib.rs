//! Streamable HTTP and HTTP+SSE for bindpost, on hyper.
//!
//! [`Endpoint`] turns HTTP requests into messages and back; [`listener`] keeps the connections;
//! [`bind`] and [`Bound::serve`] put the two together.

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
pub use auth::{AnyAuthorizer, Auth, Authorizer, Denial, Opening, UNAUTHORIZED};
pub use body::{Piece, ReplyBody};
pub use either::EitherOf;
pub use endpoint::Endpoint;
pub use events::encode_event;
pub use handling::Handling;
pub use headers::McpHeaders;
pub use serve::{Bound, bind};
pub use settings::{SessionLimits, SessionMode, Settings, SseOptions};
