//! Test support: an in-memory client, and conversations that run over any transport.
//!
//! The module needs the feature `testing`, which belongs into the dev-dependencies:
//!
//! ```toml
//! [dev-dependencies]
//! bindpost = { version = "0.1", features = ["testing"] }
//! ```
//!
//! [`TestClient`] is one client on a [`Pipe`](crate::transport::Pipe), without a process or a socket:
//!
//! ```
//! # use bindpost_mcp_server::{Server, ToolEntry, testing::TestClient};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hello = ToolEntry::new("hello", async || "Hello!");
//! let server = Server::builder("greeter", "1.0.0").tool(hello).build()?;
//!
//! let mut client = TestClient::connect(&server);
//! client.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello"}}"#).await;
//! let answer = client.next().await.unwrap_or_default();
//! assert_eq!(answer, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Hello!"}]}}"#);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Conversation`] is a text file of sent and expected messages. It runs for each of its revisions, over
//! every [`ConversationTransport`]:
//!
//! ```text
//! # An unknown tool is a protocol error, not a tool result.
//! revisions all
//! --> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}
//! <-- {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool: nope"}}
//! ```
//!
//! The first line describes the behaviour that the conversation shows. Directives follow, each on
//! its own line:
//!
//! | Directive | Meaning |
//! |---|---|
//! | `revisions all` | the revisions: `all`, `legacy` (with a handshake), `modern` (stateless), dates, `2025-06-18+` (and newer), `2025-03-26-` (and older) |
//! | `transports pipes` | the transports: `memory`, `stdio`, `sse`, `http`, or `pipes` for the first three; a comment should give the reason; default: all |
//! | `server paged` | the name of the server that answers, see [`Conversation::server`] |
//! | `client {"roots":{}}` | the capabilities of the client; default: none |
//! | `raw` | the runner adds and removes nothing, see below |
//!
//! Then the steps follow, in order:
//!
//! | Step | Meaning |
//! |---|---|
//! | `--> {…}` | send this message |
//! | `<-- {…}` | expect this message next |
//! | `<~~ {…}` | together with adjacent `<~~` lines: expect these messages next, in any order |
//! | `<-- nothing` | expect no message for a tenth of a second |
//! | `http 404` | over HTTP, expect this status for the last sent message |
//! | `end of input` | end the client's input; needs a pipe |
//!
//! A filter limits a step to some revisions or transports: `<-- [legacy] {…}` or
//! `--> [2025-06-18+ http] {…}`. A line that starts with a space continues the line before it. After the last
//! step no message may be left.
//!
//! A message matches if it is equal as JSON. A batch matches in any order. In an expected message `"$any"`
//! matches every value, `"$string"` and `"$integer"` match values of this type, and `"$save:name"` matches
//! every value and saves it. In later messages, sent or expected, `"$saved:name"` is the saved value, and
//! `"$tampered:name"` is the saved text with one character changed. `"$saved:revision"` is predefined.
//!
//! Without `raw`, the runner does what every client does. In legacy revisions it opens the session first.
//! In modern revisions it adds the envelope to each request. It also checks that each result has the common
//! members of all modern results: the result type, the server info, and on lists and reads the cache
//! members. It removes them before it compares, so one expectation works for legacy and modern revisions.

mod client;
mod conversation;
mod matching;
mod play;

use std::future::Future;
use std::io;

use bindpost_mcp_protocol::Revision;
use bytes::Bytes;

pub use client::TestClient;
pub use conversation::{Conversation, ConversationParseError};
pub use play::{ConversationFailure, ConversationReport, play_all};

/// The client side of a transport, for conversations.
pub trait ConversationTransport {
    /// The name of the transport in the directive `transports` and in filters.
    const NAME: &'static str;

    /// Sends a message of a client that uses this revision. Completes when a later message can no longer
    /// overtake it.
    fn send(&mut self, message: &str, revision: Revision) -> impl Future<Output = io::Result<()>> + Send;

    /// Receives the next message from the server. Returns `None` at the end. No message is lost if the
    /// future is dropped.
    fn receive(&mut self) -> impl Future<Output = io::Result<Option<Bytes>>> + Send;

    /// Ends the input of the server.
    fn end_input(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        async { Err(io::Error::new(io::ErrorKind::Unsupported, "this transport has no end of input")) }
    }

    /// Returns the HTTP status of the response to the last sent message.
    fn status(&self) -> Option<u16> {
        None
    }
}
