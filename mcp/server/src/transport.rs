//! For authors of transports. An author of a server needs none of this: a [`Server`](crate::Server) is
//! served over HTTP or [`stdio`] as it is.
//!
//! A transport decodes a message, passes a request to [`Server::dispatch`](crate::Server::dispatch) together
//! with its [`RequestOrigin`] (the caller, the client, and where messages go), and writes the
//! [`EncodedResponse`]. It gets it at once, or from a [`RunningCall`]:
//!
//! ```
//! use bindpost_mcp_server::protocol::{Message, jsonrpc};
//! use bindpost_mcp_server::transport::{
//!     DeliveryTarget, DispatchOutcome, NoHeaders, Peer, RequestOrigin, TransportAbilities,
//! };
//! use bindpost_mcp_server::{Caller, ListVisibility, Server};
//! use bytes::Bytes;
//!
//! /// Answers one stateless request of an anonymous caller.
//! async fn answer(server: &Server, message: Bytes) -> Option<Bytes> {
//!     let Ok(Message::Request(request)) = jsonrpc::decode_one(message) else { return None };
//!     let origin = RequestOrigin {
//!         peer: Peer::from_envelope(request.params(), server.revisions()).ok()?,
//!         caller: Caller::ANONYMOUS,
//!         delivery: DeliveryTarget::None,
//!         abilities: TransportAbilities::NONE,
//!         listing: ListVisibility::All,
//!         guarded: false,
//!         http: None,
//!     };
//!     match server.dispatch(request, origin, &NoHeaders) {
//!         DispatchOutcome::Answer(response) | DispatchOutcome::Opened(_, response) => Some(response.into_bytes()),
//!         DispatchOutcome::Running(call) => Some(call.await?.into_bytes()),
//!     }
//! }
//! ```
//!
//! A transport with one client on a bidirectional connection uses a [`Pipe`], which also handles sessions,
//! batches and cancellation.

pub(crate) mod origin;
pub(crate) mod pipe;
pub mod stdio;

pub(crate) use self::origin::{HttpRequest, ListVisibility};

// A request: who sent it, and the access that it requires.
pub use self::origin::{DeliveryTarget, HeaderValues, NoHeaders, RequestOrigin, TransportAbilities};
pub use crate::auth::LackingRights;
pub use crate::auth::required::{LackingAccess, RefusedBody, RequiredAccess, UNAUTHORIZED};
pub use crate::peer::Peer;
pub use crate::peer::session::Session;

// Its answer.
pub use crate::call::answer::{EncodedResponse, RejectionKind};
pub use crate::call::{CallCanceller, RunningCall};
pub use crate::dispatch::DispatchOutcome;

// Streams of messages to a client, and the bytes held for clients.
pub use crate::budget::{ByteBudget, ByteReservation};
pub use crate::peer::stream::{MessageStream, StreamRead};

// One client on a bidirectional connection, and batches.
pub use self::pipe::{Pipe, join_batch, refuse_batch};
