//! [`TestClient`]: an in-memory client.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::jsonrpc::{INTERNAL_ERROR, METHOD_NOT_FOUND};
use bindpost_mcp_protocol::lifecycle::Completion;
use bindpost_mcp_protocol::{ErrorObject, Prompt, Resource, ResourceTemplate, Revision, Tool};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::task::AbortHandle;

use super::ConversationTransport;
use super::builder::TestClientBuilder;
use super::connection::{AccessCheck, ClientConnection, ClientSettings};
use super::exchange::{PendingCall, decode_result};
use super::failure::TestError;
use super::reply::{LogRecord, ProgressUpdate, PromptReply, ResourceReply, ServerChange, ToolReply};
use crate::auth::Caller;
use crate::peer::stream::StreamRead;
use crate::server::Server;
#[cfg(doc)]
use crate::transport::Pipe;

/// How long running calls may continue after the end of the input.
const DRAIN: Duration = Duration::from_secs(5);

/// A client of a server in the same process, connected by a [`Pipe`].
///
/// It answers questions, follows tasks and collects progress and logs. The [module](super) shows each of
/// it in an example.
#[derive(Debug)]
pub struct TestClient {
    connection: Arc<ClientConnection>,
    reader: Option<u64>,
    /// The task that reads the messages, from the first typed operation on.
    driver: Option<AbortHandle>,
    opened: bool,
}

impl TestClient {
    /// Returns a new anonymous client. It sends nothing before the first operation.
    ///
    /// The server is one without authentication. If one of its entries is marked `anonymous` or requires
    /// scopes or roles, the access rules apply: such a server is meant to be served with authentication.
    pub fn connect(server: &Server) -> TestClient {
        TestClient::with(server, ClientSettings::default())
    }

    /// Returns a new client with an identity. The access rules of the entries apply.
    pub fn connect_as(server: &Server, caller: impl Into<Caller>) -> TestClient {
        let settings =
            ClientSettings { caller: caller.into(), access: AccessCheck::Always, ..Default::default() };
        TestClient::with(server, settings)
    }

    /// Returns the settings of a new client.
    pub fn builder(server: &Server) -> TestClientBuilder {
        TestClientBuilder::new(server)
    }

    pub(super) fn with(server: &Server, settings: ClientSettings) -> TestClient {
        let connection = Arc::new(ClientConnection::new(server, settings));
        let reader = connection.out().attach(None);
        TestClient { connection, reader, driver: None, opened: false }
    }

    /// Returns the revision that the client uses.
    pub fn revision(&self) -> Revision {
        self.connection.revision
    }

    /// Starts to read messages in the background, and opens the session in legacy revisions.
    pub(super) async fn open(&mut self) -> Result<(), TestError> {
        if self.opened {
            return Ok(());
        }
        let connection = &self.connection;
        if !connection.supports_revision() {
            return Err(TestError::UnsupportedRevision(connection.revision));
        }
        if let Some(reader) = self.reader.take() {
            self.driver = Some(tokio::spawn(connection.clone().drive(reader)).abort_handle());
        }
        // A test may have sent its own `initialize`.
        if connection.revision.has_handshake() && !connection.lock().initialized {
            let hello = json!({
                "protocolVersion": connection.revision.as_str(),
                "capabilities": connection.capabilities(),
                "clientInfo": connection.settings.client_info,
            });
            connection.request("initialize", hello).await?;
            connection.send_notification("notifications/initialized", &json!({})).await;
            if let Some(level) = connection.settings.log_level {
                connection.request("logging/setLevel", json!({"level": level})).await?;
            }
        }
        self.opened = true;
        Ok(())
    }

    async fn run<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        params: Value,
    ) -> Result<T, TestError> {
        self.open().await?;
        self.connection.run(method, params).await
    }

    /// Calls a tool with arguments of any type. `()` means no arguments. A tool that fails is an error,
    /// [`TestError::Tool`].
    ///
    /// ```
    /// # use bindpost_mcp_server::{Args, Server, ToolEntry, testing::TestClient};
    /// # use serde_json::json;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Greeting { name: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let hello = ToolEntry::new("hello", async |Args(to): Args<Greeting>| format!("Hello, {}!", to.name));
    /// # let server = Server::builder("s", "1").tool(hello).build()?;
    /// let mut client = TestClient::connect(&server);
    /// let reply = client.call("hello", json!({"name": "Ada"})).await?;
    /// assert_eq!(reply.text(), "Hello, Ada!");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call(&mut self, tool: &str, arguments: impl Serialize) -> Result<ToolReply, TestError> {
        let params = named_params(tool, arguments)?;
        let result = self.run("tools/call", params).await?;
        self.connection.tool_reply(result)
    }

    /// Calls a tool and decodes its result: the structured content, or else the text.
    ///
    /// ```
    /// # use bindpost_mcp_server::{Args, Json, Server, ToolEntry, testing::TestClient};
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, JsonSchema)]
    /// struct OrderId { id: u32 }
    /// #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    /// struct Order { id: u32, total: f64 }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let get = async |Args(of): Args<OrderId>| Json(Order { id: of.id, total: 9.5 });
    /// let server = Server::builder("orders", "1.0.0").tool(ToolEntry::new("get_order", get)).build()?;
    ///
    /// let mut client = TestClient::connect(&server);
    /// let order: Order = client.call_as("get_order", OrderId { id: 7 }).await?;
    /// assert_eq!(order, Order { id: 7, total: 9.5 });
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call_as<T: DeserializeOwned>(
        &mut self,
        tool: &str,
        arguments: impl Serialize,
    ) -> Result<T, TestError> {
        self.call(tool, arguments).await?.decode()
    }

    /// Starts to call a tool, and returns without waiting for its result. The server has the request then.
    pub async fn start_call(
        &mut self,
        tool: &str,
        arguments: impl Serialize,
    ) -> Result<PendingCall, TestError> {
        let params = named_params(tool, arguments)?;
        self.open().await?;
        Ok(PendingCall::start(&self.connection, params).await)
    }

    /// Reads a resource.
    pub async fn read(&mut self, uri: &str) -> Result<ResourceReply, TestError> {
        self.run("resources/read", json!({"uri": uri})).await.map(ResourceReply::new)
    }

    /// Gets a prompt with arguments of any type. `()` means no arguments.
    pub async fn get_prompt(
        &mut self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<PromptReply, TestError> {
        self.run("prompts/get", named_params(name, arguments)?).await.map(PromptReply::new)
    }

    /// Completes an argument of a prompt. `chosen` are the arguments that the user has chosen already, or
    /// `()`.
    ///
    /// ```
    /// # use bindpost_mcp_server::{PromptEntry, Server, testing::TestClient};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let greet = PromptEntry::new("greet", async || "Greet them.")
    ///     .argument("language", "The language", true)
    ///     .completer("language", |typed: &str| -> Vec<String> {
    ///         ["english", "estonian"].iter().filter(|it| it.starts_with(typed)).map(|it| it.to_string()).collect()
    ///     });
    /// let server = Server::builder("greeter", "1.0.0").prompt(greet).build()?;
    ///
    /// let mut client = TestClient::connect(&server);
    /// let completion = client.complete_prompt("greet", "language", "es", ()).await?;
    /// assert_eq!(completion.values, ["estonian"]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn complete_prompt(
        &mut self,
        prompt: &str,
        argument: &str,
        typed: &str,
        chosen: impl Serialize,
    ) -> Result<Completion, TestError> {
        self.complete(json!({"type": "ref/prompt", "name": prompt}), argument, typed, chosen).await
    }

    /// Completes a variable of a resource template. `chosen` are the variables that the user has chosen
    /// already, or `()`.
    pub async fn complete_template(
        &mut self,
        uri_template: &str,
        variable: &str,
        typed: &str,
        chosen: impl Serialize,
    ) -> Result<Completion, TestError> {
        self.complete(json!({"type": "ref/resource", "uri": uri_template}), variable, typed, chosen).await
    }

    async fn complete(
        &mut self,
        reference: Value,
        argument: &str,
        typed: &str,
        chosen: impl Serialize,
    ) -> Result<Completion, TestError> {
        let mut params = json!({"ref": reference, "argument": {"name": argument, "value": typed}});
        if let Some(chosen) = to_arguments(chosen)? {
            params["context"] = json!({"arguments": chosen});
        }
        let mut result: Value = self.run("completion/complete", params).await?;
        decode_result("completion/complete", result["completion"].take())
    }

    /// Lists the tools, all pages.
    pub async fn list_tools(&mut self) -> Result<Vec<Tool>, TestError> {
        self.list("tools/list", "tools").await
    }

    /// Lists the resources, all pages.
    pub async fn list_resources(&mut self) -> Result<Vec<Resource>, TestError> {
        self.list("resources/list", "resources").await
    }

    /// Lists the resource templates, all pages.
    pub async fn list_templates(&mut self) -> Result<Vec<ResourceTemplate>, TestError> {
        self.list("resources/templates/list", "resourceTemplates").await
    }

    /// Lists the prompts, all pages.
    pub async fn list_prompts(&mut self) -> Result<Vec<Prompt>, TestError> {
        self.list("prompts/list", "prompts").await
    }

    async fn list<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        member: &str,
    ) -> Result<Vec<T>, TestError> {
        let mut all = Vec::new();
        let mut params = json!({});
        loop {
            let mut page: Value = self.run(method, params.clone()).await?;
            let entries: Vec<T> = decode_result(method, page[member].take())?;
            all.extend(entries);
            match page["nextCursor"].take() {
                Value::Null => return Ok(all),
                cursor => params["cursor"] = cursor,
            }
        }
    }

    /// Returns all lists as JSON text, for snapshot tests. A list that the server does not offer is left
    /// out. The text is the same for the same definitions, and each entry has its own lines.
    ///
    /// ```
    /// # use bindpost_mcp_server::{Server, ToolEntry, testing::TestClient};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let hello = ToolEntry::new("hello", async || "Hello!").description("Greets the world");
    /// let server = Server::builder("greeter", "1.0.0").tool(hello).build()?;
    ///
    /// let mut client = TestClient::connect(&server);
    /// let lists = client.snapshot_lists().await?;
    /// assert!(lists.contains(r#""description": "Greets the world""#), "{lists}");
    /// // With the crate insta: insta::assert_snapshot!(lists);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn snapshot_lists(&mut self) -> Result<String, TestError> {
        let mut lists = Map::new();
        for (method, member) in [
            ("tools/list", "tools"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("prompts/list", "prompts"),
        ] {
            match self.list::<Value>(method, member).await {
                Ok(entries) => drop(lists.insert(member.to_owned(), entries.into())),
                Err(error) if error.code() == Some(METHOD_NOT_FOUND) => {}
                Err(error) => return Err(error),
            }
        }
        serde_json::to_string_pretty(&lists).map_err(|error| TestError::invalid("the lists", error))
    }

    /// Subscribes to a resource. [`TestClient::next_change`] waits for its changes.
    ///
    /// ```
    /// # use bindpost_mcp_server::{ResourceEntry, Server, testing::{ServerChange, TestClient}};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let menu = ResourceEntry::text("menu://today", "menu", "soup");
    /// let server = Server::builder("kitchen", "1.0.0").resource(menu).build()?;
    ///
    /// let mut client = TestClient::connect(&server);
    /// client.subscribe("menu://today").await?;
    /// server.resource_updated("menu://today");
    /// assert_eq!(client.next_change().await?, ServerChange::Resource("menu://today".to_owned()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn subscribe(&mut self, uri: &str) -> Result<(), TestError> {
        self.open().await?;
        if self.connection.revision.has_handshake() {
            return self.connection.request("resources/subscribe", json!({"uri": uri})).await.map(drop);
        }
        let (id, filter) = self.connection.listen(json!({"resourceSubscriptions": [uri]})).await?;
        if filter.resource_subscriptions.is_empty() {
            self.connection.cancel_request(&id).await;
            return Err(TestError::invalid(format!("the subscription to {uri}"), "no resource has this URI"));
        }
        let replaced = self.connection.lock().listeners.insert(uri.to_owned(), id);
        if let Some(id) = replaced {
            self.connection.cancel_request(&id).await;
        }
        Ok(())
    }

    /// Ends the subscription to a resource.
    pub async fn unsubscribe(&mut self, uri: &str) -> Result<(), TestError> {
        self.open().await?;
        if self.connection.revision.has_handshake() {
            return self.connection.request("resources/unsubscribe", json!({"uri": uri})).await.map(drop);
        }
        let listener = self.connection.lock().listeners.remove(uri);
        if let Some(id) = listener {
            self.connection.cancel_request(&id).await;
        }
        Ok(())
    }

    /// Asks for changes of the lists. [`TestClient::next_change`] waits for them. In legacy revisions every
    /// session gets them.
    pub async fn watch_lists(&mut self) -> Result<(), TestError> {
        self.open().await?;
        if !self.connection.revision.has_handshake() {
            let lists =
                json!({"toolsListChanged": true, "resourcesListChanged": true, "promptsListChanged": true});
            self.connection.listen(lists).await?;
        }
        Ok(())
    }

    /// Waits for the next change that the server announces: of a list, or of a subscribed resource. After ten
    /// seconds without one it is an error.
    pub async fn next_change(&mut self) -> Result<ServerChange, TestError> {
        self.open().await?;
        let next = self.connection.wait_for(|state| state.changes.pop_front());
        tokio::time::timeout(Duration::from_secs(10), next)
            .await
            .unwrap_or_else(|_| Err(TestError::invalid("the announced changes", "none came within 10 s")))
    }

    /// Checks that the server answers: by `ping`, or by `server/discover` in modern revisions.
    pub async fn ping(&mut self) -> Result<(), TestError> {
        self.open().await?;
        let method = if self.connection.revision.has_handshake() { "ping" } else { "server/discover" };
        self.connection.request(method, json!({})).await.map(drop)
    }

    /// Returns the progress of all calls so far.
    pub fn progress(&self) -> Vec<ProgressUpdate> {
        self.connection.lock().progress.iter().map(|(_, update)| update.clone()).collect()
    }

    /// Returns the log messages so far.
    pub fn logs(&self) -> Vec<LogRecord> {
        self.connection.lock().logs.clone()
    }

    /// Sends a message as JSON text. It may be invalid. The access rules apply.
    pub async fn send(&mut self, message: impl Into<Bytes>) {
        self.connection.deliver(message.into()).await;
    }

    /// Sends one request of any method and waits for its result. Messages that arrive before the result are
    /// discarded.
    ///
    /// A client that has not run a typed operation yet sends the request as it is, without a session. After
    /// that the request gets the envelope of a modern revision. `input_required` results are returned.
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
        let ended = || ErrorObject::new(INTERNAL_ERROR, "the server ended the stream");
        if self.driver.is_some() {
            let sent = self.connection.send_request(method, params).await;
            let outcome = self.connection.outcome_unless(&sent, || false).await;
            self.connection.clear_inbox();
            return outcome.map_err(|_| ended())?;
        }
        let id = self.connection.new_id();
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(message.to_string()).await;
        loop {
            let answer = self.next().await.ok_or_else(ended)?;
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

    /// Waits for the server's next message. Returns `None` at the end.
    ///
    /// After the first typed operation these are the messages that do not belong to one.
    pub async fn next(&mut self) -> Option<Bytes> {
        let Some(reader) = self.reader else { return self.connection.next_message().await };
        match poll_fn(|context| self.connection.out().poll_pop(context, reader)).await {
            StreamRead::Message { message, .. } => Some(message),
            StreamRead::End | StreamRead::HangUp | StreamRead::Replaced => None,
        }
    }

    /// Ends the input and waits until all requests are answered.
    pub async fn end_input(&mut self) {
        self.connection.drain(DRAIN).await;
    }
}

impl Drop for TestClient {
    fn drop(&mut self) {
        self.connection.close();
        if let Some(driver) = &self.driver {
            driver.abort();
        }
    }
}

/// Returns the parameters of a call: a name and its arguments.
fn named_params(name: &str, arguments: impl Serialize) -> Result<Value, TestError> {
    let mut params = json!({"name": name});
    if let Some(arguments) = to_arguments(arguments)? {
        params["arguments"] = arguments;
    }
    Ok(params)
}

/// Returns arguments as JSON, or `None` without arguments.
fn to_arguments(arguments: impl Serialize) -> Result<Option<Value>, TestError> {
    let arguments =
        serde_json::to_value(arguments).map_err(|error| TestError::invalid("the arguments", error))?;
    Ok(Some(arguments).filter(|arguments| !arguments.is_null()))
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
