//! Test support: an in-memory client, and conversations that run over any transport.
//!
//! The module needs the feature `testing`, which belongs into the dev-dependencies:
//!
//! ```toml
//! [dev-dependencies]
//! bindpost = { version = "0.1", features = ["testing"] }
//! ```
//!
//! # A client
//!
//! [`TestClient`] is one client of a server in the same process, without a socket. It calls tools with values
//! of any type, and needs no handshake or message by hand:
//!
//! ```
//! # use bindpost_mcp_server::{Args, Json, ResourceEntry, Server, ToolEntry, testing::TestClient};
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! # use serde_json::json;
//! #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
//! struct Order { id: u32 }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let get_order = ToolEntry::new("get_order", async |Args(order): Args<Order>| Json(order));
//! let menu = ResourceEntry::text("menu://today", "menu", "soup");
//! let server = Server::builder("orders", "1.0.0").tool(get_order).resource(menu).build()?;
//!
//! let mut client = TestClient::connect(&server);
//! let order: Order = client.call_as("get_order", json!({"id": 7})).await?;
//! assert_eq!(order, Order { id: 7 });
//! assert_eq!(client.call("get_order", json!({"id": 7})).await?.text(), r#"{"id":7}"#);
//! assert_eq!(client.read("menu://today").await?.text(), "soup");
//! assert_eq!(client.list_tools().await?.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! [`TestClient::builder`] has the settings: the caller, the revision, and the answers to the server's
//! questions. The same test runs for legacy and modern revisions:
//!
//! ```
//! # use bindpost_mcp_server::{Context, Identity, Server, ToolEntry, ToolError};
//! # use bindpost_mcp_server::protocol::Revision;
//! # use bindpost_mcp_server::testing::{ElicitationRequest, SamplingRequest, TestClient};
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Refund { amount: u32 }
//!
//! /// Asks the user for the amount and the model for a text.
//! async fn refund(context: Context) -> Result<String, ToolError> {
//!     let refund: Refund = context.elicit("How much?").await?.required()?;
//!     context.info("asked").await;
//!     let answer = context.sample("Write an apology.").await?;
//!     context.progress(1.0, Some(1.0), None).await;
//!     Ok(format!("{}: {}", refund.amount, answer.text().unwrap_or_default()))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let refund = ToolEntry::new("refund", refund).scopes(["orders.write"]);
//! let server = Server::builder("orders", "1.0.0").tool(refund).build()?;
//!
//! for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
//!     let mut client = TestClient::builder(&server)
//!         .revision(revision)
//!         .caller(Identity::new("alice").user().scope("orders.write"))
//!         .on_elicitation(|form: ElicitationRequest| {
//!             assert_eq!(form.message(), "How much?");
//!             form.accept(&Refund { amount: 5 })
//!         })
//!         .on_sampling(|_: SamplingRequest| "Sorry!")
//!         .connect()
//!         .await?;
//!     assert_eq!(client.call("refund", ()).await?.text(), "5: Sorry!");
//!     assert_eq!(client.progress()[0].progress, 1.0);
//!     assert_eq!(client.logs()[0].data, "asked");
//! }
//!
//! // A caller without the scope is refused, as over HTTP.
//! let bob = Identity::new("bob").user();
//! let mut client = TestClient::builder(&server).caller(bob).connect().await?;
//! let error = client.call("refund", ()).await.unwrap_err();
//! assert_eq!(error.to_string(), "this needs the scope orders.write (-32001)");
//! # Ok(())
//! # }
//! ```
//!
//! | To test | Use |
//! |---|---|
//! | tools | [`call`](TestClient::call), [`call_as`](TestClient::call_as); errors are a [`TestError`] |
//! | resources, prompts, completions | [`read`](TestClient::read), [`get_prompt`](TestClient::get_prompt), [`complete_prompt`](TestClient::complete_prompt), [`complete_template`](TestClient::complete_template) |
//! | definitions | [`list_tools`](TestClient::list_tools) and the other lists, [`snapshot_lists`](TestClient::snapshot_lists) |
//! | elicitation, sampling, roots | [`on_elicitation`](TestClientBuilder::on_elicitation), [`on_sampling`](TestClientBuilder::on_sampling), [`roots`](TestClientBuilder::roots) |
//! | progress, logs | [`progress`](TestClient::progress), [`logs`](TestClient::logs), or one by one on a [`PendingCall`] |
//! | cancellation | [`start_call`](TestClient::start_call), then [`cancel`](PendingCall::cancel) |
//! | tasks | [`tasks`](TestClientBuilder::tasks): a call that becomes a task is followed to its end |
//! | changes | [`subscribe`](TestClient::subscribe), [`watch_lists`](TestClient::watch_lists), [`next_change`](TestClient::next_change) |
//! | access rules | [`caller`](TestClientBuilder::caller), [`listing`](TestClientBuilder::listing), [`without_auth`](TestClientBuilder::without_auth) |
//! | raw messages | [`request`](TestClient::request), [`send`](TestClient::send), [`next`](TestClient::next) |
//!
//! The client needs a tokio runtime of any flavor. It has no timer, so tests can pause the clock
//! (`#[tokio::test(start_paused = true)]`).
//!
//! # Conversations
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

mod answers;
mod builder;
mod client;
mod connection;
mod conversation;
mod exchange;
mod failure;
mod matching;
mod play;
mod reply;

use std::future::Future;
use std::io;

use bindpost_mcp_protocol::Revision;
use bytes::Bytes;

pub use answers::{
    AsyncAnswer, ElicitationAnswer, ElicitationRequest, QuestionHandler, SamplingAnswer, SamplingRequest,
    SyncAnswer,
};
pub use builder::TestClientBuilder;
pub use client::TestClient;
pub use exchange::PendingCall;
pub use failure::TestError;
pub use reply::{LogRecord, ProgressUpdate, PromptReply, ResourceReply, ServerChange, ToolReply};

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
