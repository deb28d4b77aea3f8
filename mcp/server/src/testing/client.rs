//! [`TestClient`]: an in-memory client.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::jsonrpc::INTERNAL_ERROR;
use bindpost_mcp_protocol::{ErrorObject, Revision};
use bytes::Bytes;
use serde_json::{Value, json};

use super::ConversationTransport;
use crate::auth::Caller;
use crate::peer::stream::{MessageStream, StreamRead};
use crate::server::Server;
use crate::transport::pipe::Pipe;

/// How long running calls may continue after the end of the input.
const DRAIN: Duration = Duration::from_secs(5);

/// A client of a server in the same process, connected by a [`Pipe`].
#[derive(Debug)]
pub struct TestClient {
    pipe: Pipe,
    out: Arc<MessageStream>,
    reader: Option<u64>,
    last_id: u64,
}

impl TestClient {
    /// Returns a new anonymous client. It has not sent any message yet.
    pub fn connect(server: &Server) -> TestClient {
        TestClient::connect_as(server, Caller::ANONYMOUS)
    }

    /// Returns a new client with an identity.
    pub fn connect_as(server: &Server, caller: Caller) -> TestClient {
        let out = server.new_stream();
        let reader = out.attach(None);
        TestClient { pipe: Pipe::new(server.clone(), out.clone(), caller), out, reader, last_id: 0 }
    }

    /// Sends a message as JSON text. It may be invalid.
    pub async fn send(&mut self, message: impl Into<Bytes>) {
        self.pipe.receive(message.into()).await;
    }

    /// Sends a request and waits for its result. Messages that arrive before the result are discarded.
    ///
    /// ```
    /// # use bindpost_mcp_server::{Server, ToolEntry, testing::TestClient};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Server::builder("s", "1").tool(ToolEntry::new("hello", async || "Hello!")).build()?;
    /// let mut client = TestClient::connect(&server);
    /// let result = client.request("tools/call", serde_json::json!({"name": "hello"})).await?;
    /// assert_eq!(result["content"][0]["text"], "Hello!");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        self.last_id += 1;
        let id = format!("request-{}", self.last_id);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(message.to_string()).await;
        loop {
            let Some(answer) = self.next().await else {
                return Err(ErrorObject::new(INTERNAL_ERROR, "the server ended the stream"));
            };
            let mut answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
            if answer["id"] != id {
                continue;
            }
            return match answer.get_mut("error").map(Value::take) {
                None => Ok(answer["result"].take()),
                Some(error) => Err(serde_json::from_value(error)
                    .unwrap_or_else(|_| ErrorObject::new(INTERNAL_ERROR, "the error is invalid"))),
            };
        }
    }

    /// Calls a tool. Returns the text of its result, or of its error.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<String, String> {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
        let result = result.map_err(|error| error.to_string())?;
        let texts = result["content"].as_array().into_iter().flatten();
        let texts: Vec<&str> = texts.filter_map(|content| content["text"].as_str()).collect();
        let text = texts.join("\n");
        if result["isError"] == true { Err(text) } else { Ok(text) }
    }

    /// Waits for the server's next message. Returns `None` at the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        let reader = self.reader?;
        match poll_fn(|context| self.out.poll_pop(context, reader)).await {
            StreamRead::Message { message, .. } => Some(message),
            StreamRead::End | StreamRead::HangUp | StreamRead::Replaced => None,
        }
    }

    /// Ends the input and waits until all requests are answered.
    pub async fn end_input(&mut self) {
        self.pipe.drain(DRAIN).await;
        self.out.end();
    }
}

impl ConversationTransport for TestClient {
    const NAME: &'static str = "memory";

    async fn send(&mut self, message: &str, _: Revision) -> io::Result<()> {
        TestClient::send(self, message.to_owned()).await;
        Ok(())
    }

    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        Ok(self.next().await)
    }

    async fn end_input(&mut self) -> io::Result<()> {
        TestClient::end_input(self).await;
        Ok(())
    }
}
