//! The lists of a server for its own process: start screens, checks of their size.

use bindpost_mcp_protocol::jsonrpc::{self, INTERNAL_ERROR};
use bindpost_mcp_protocol::{ErrorObject, Message, RequestId, Revision};
use serde_json::{Map, Value, json};

use crate::auth::Caller;
use crate::catalog::cursor::ListKind;
use crate::dispatch::DispatchOutcome;
use crate::peer::Peer;
use crate::server::Server;
use crate::transport::{DeliveryTarget, ListVisibility, NoHeaders, RequestOrigin, TransportAbilities};

impl Server {
    /// Returns the definitions of a list, of all its pages, as a client of this revision receives them. With
    /// a caller, the list has only the entries that the caller may use.
    ///
    /// The error is the one that a client would receive, for example if the server has no prompts.
    ///
    /// ```
    /// # use bindpost_mcp_server::{ListKind, Server, ToolEntry, protocol::Revision};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let hello = ToolEntry::new("hello", async || "Hello!");
    /// let server = Server::builder("greeter", "1.0.0").tool(hello).build()?;
    ///
    /// let tools = server.list_definitions(ListKind::Tools, Revision::V2026_07_28, None).await?;
    /// assert_eq!(tools[0]["name"], "hello");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_definitions(
        &self,
        kind: ListKind,
        revision: Revision,
        caller: Option<&Caller>,
    ) -> Result<Vec<Value>, ErrorObject> {
        let mut definitions = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let mut page = self.list_page(kind, revision, caller, cursor).await?;
            if let Some(Value::Array(more)) = page.remove(kind.member()) {
                definitions.extend(more);
            }
            match page.remove("nextCursor") {
                Some(next) => cursor = next,
                None => return Ok(definitions),
            }
        }
    }

    /// Returns the result of one list request.
    async fn list_page(
        &self,
        kind: ListKind,
        revision: Revision,
        caller: Option<&Caller>,
        cursor: Value,
    ) -> Result<Map<String, Value>, ErrorObject> {
        let broken = || ErrorObject::new(INTERNAL_ERROR, "the list was not answered");
        let message = jsonrpc::encode_request(&RequestId::from(1), kind.method(), &json!({"cursor": cursor}));
        let Ok(Message::Request(request)) = jsonrpc::decode_one(message.into()) else { return Err(broken()) };
        let exchange = RequestOrigin {
            peer: Peer::Alone(revision),
            caller: caller.cloned().unwrap_or(Caller::ANONYMOUS),
            delivery: DeliveryTarget::None,
            abilities: TransportAbilities::NONE,
            listing: if caller.is_some() { ListVisibility::Permitted } else { ListVisibility::All },
            guarded: caller.is_some(),
            http: None,
        };
        let answer = match self.dispatch(request, exchange, &NoHeaders) {
            DispatchOutcome::Answer(answer) | DispatchOutcome::Opened(_, answer) => answer,
            DispatchOutcome::Running(call) => call.await.ok_or_else(broken)?,
        };
        match jsonrpc::decode_one(answer.into_bytes()) {
            Ok(Message::Response(response)) => {
                serde_json::from_slice(&response.outcome?).map_err(|_| broken())
            }
            _ => Err(broken()),
        }
    }
}
