//! Streamable HTTP and HTTP+SSE for bindpost, on hyper.
//!
//! [`Endpoint`] turns HTTP requests into messages and back; [`listener`] keeps the connections;
//! [`bind`] and [`Bound::serve`] put the two together.

mod body;
mod endpoint;
mod era;
mod events;
mod guard;
mod headers;
mod pipes;
mod reply;
mod serve;
mod sessions;
mod settings;
mod streaming;

pub mod listener;

pub use body::{Piece, ReplyBody};
pub use endpoint::{Endpoint, Handling};
pub use events::encode_event;
pub use headers::McpHeaders;
pub use serve::{Bound, bind};
pub use settings::{Identify, SessionLimits, SessionMode, Settings};
