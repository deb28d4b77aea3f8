//! For tests: a client in memory, and conversations that replay over any transport.
//!
//! [`TestClient`] is one client on a [`Pipe`](crate::Pipe), without a process or a socket:
//!
//! ```
//! # use bindpost_mcp_server::{Server, ToolEntry, testing::Client};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hello = ToolEntry::new("hello", async || "Hello!");
//! let server = Server::builder("greeter", "1.0.0").tool(hello).build()?;
//!
//! let mut client = Client::connect(&server);
//! client.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello"}}"#).await;
//! let answer = client.next().await.unwrap_or_default();
//! assert_eq!(answer, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Hello!"}]}}"#);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Conversation`] is a text file of messages sent and messages expected. It is played for each of
//! its revisions, over everything that implements [`ConversationTransport`]:
//!
//! ```text
//! # An unknown tool is a protocol error, not a tool result.
//! revisions all
//! --> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}
//! <-- {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool: nope"}}
//! ```
//!
//! The first line says what the conversation shows. Directives follow, each on a line of its own:
//!
//! | Directive | Means |
//! |---|---|
//! | `revisions all` | played for these: `all`, `legacy` (those with a handshake), `modern` (those without), dates, `2025-06-18+` (and newer), `2025-03-26-` (and older) |
//! | `transports pipes` | played over these only: `memory`, `stdio`, `sse`, `http`; `pipes` are the first three; a comment should say why |
//! | `server paged` | which server answers: a word for whoever connects, see [`Conversation::server`] |
//! | `client {"roots":{}}` | the capabilities of the client; none unless told |
//! | `raw` | the file says everything itself, see below |
//!
//! Then come the steps, in order:
//!
//! | Step | Means |
//! |---|---|
//! | `--> {…}` | send this |
//! | `<-- {…}` | the next message is this |
//! | `<~~ {…}` | with the `<~~` lines around it: the next messages are these, in any order |
//! | `<-- nothing` | no message comes for a tenth of a second |
//! | `http 404` | over HTTP, the last message sent was answered with this status |
//! | `end of input` | the client sends nothing more; needs a pipe |
//!
//! A step may be for some only: `<-- [legacy] {…}`, `--> [2025-06-18+ http] {…}`. A line that starts with
//! a space goes on with the one before it. After the last step nothing unexpected may be left.
//!
//! A message matches if it is the same JSON; a batch matches in any order. In the expectation `"$any"`
//! stands for anything, `"$string"` and `"$integer"` for any of these, and `"$save:name"` keeps what is
//! there. Later, in both directions, `"$saved:name"` is what was kept, and `"$tampered:name"` is the same
//! text with one character changed. `"$saved:revision"` is there from the start.
//!
//! Unless the file says `raw`, the runner does what every client does. With a handshake it opens the
//! session first. Without one it puts the envelope into each request, checks that each result carries
//! what all results of that era carry (its type, who the server is, on lists and reads how long they
//! hold) and takes exactly that away before it compares: one expectation serves both eras.

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

/// One client's end of a transport, as a conversation needs it.
pub trait ConversationTransport {
    /// The word that `transports` and the filters of lines use.
    const NAME: &'static str;

    /// Sends a message of a client that speaks this revision. Done when a later one can no longer
    /// overtake it.
    fn send(&mut self, message: &str, revision: Revision) -> impl Future<Output = io::Result<()>> + Send;

    /// The next message from the server, whichever way it comes; `None` when there will be none.
    /// Nothing is lost when the future is dropped.
    fn receive(&mut self) -> impl Future<Output = io::Result<Option<Bytes>>> + Send;

    /// Says that nothing more will be sent.
    fn end_input(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        async { Err(io::Error::new(io::ErrorKind::Unsupported, "this transport has no end of input")) }
    }

    /// The HTTP status that the last message sent was answered with.
    fn status(&self) -> Option<u16> {
        None
    }
}
