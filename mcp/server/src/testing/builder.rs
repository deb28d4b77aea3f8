//! [`TestClientBuilder`]: the settings of a test client.

use std::sync::Arc;

use bindpost_mcp_protocol::lifecycle::{Implementation, LogLevel};
use bindpost_mcp_protocol::{Revision, meta};
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};

use super::answers::{
    ElicitationAnswer, ElicitationRequest, QuestionHandler, SamplingAnswer, SamplingRequest,
};
use super::client::TestClient;
use super::connection::{AccessCheck, ClientSettings};
use super::failure::TestError;
use crate::auth::Caller;
use crate::server::Server;
use crate::transport::{HttpRequest, ListVisibility};

/// The settings of a [`TestClient`].
#[derive(Debug)]
#[must_use = "a client is created by `connect`"]
pub struct TestClientBuilder {
    server: Server,
    settings: ClientSettings,
    headers: http::HeaderMap,
}

impl TestClientBuilder {
    pub(super) fn new(server: &Server) -> TestClientBuilder {
        TestClientBuilder {
            server: server.clone(),
            settings: ClientSettings::default(),
            headers: http::HeaderMap::new(),
        }
    }

    /// Sets the caller. The access rules of the entries apply, as on an HTTP endpoint with authentication.
    /// `Caller::ANONYMOUS` is a request without credentials.
    ///
    /// ```
    /// # use bindpost_mcp_server::{Identity, Server, ToolEntry, testing::TestClient};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let refund = ToolEntry::new("refund", async || "refunded").scopes(["orders.write"]);
    /// let server = Server::builder("orders", "1.0.0").tool(refund).build()?;
    ///
    /// let reader = Identity::new("bob").user().scope("orders.read");
    /// let mut client = TestClient::builder(&server).caller(reader).connect().await?;
    /// let error = client.call("refund", ()).await.unwrap_err();
    /// assert_eq!(error.to_string(), "this needs the scope orders.write (-32001)");
    ///
    /// let writer = Identity::new("alice").user().scope("orders.write");
    /// let mut client = TestClient::builder(&server).caller(writer).connect().await?;
    /// assert_eq!(client.call("refund", ()).await?.text(), "refunded");
    /// # Ok(())
    /// # }
    /// ```
    pub fn caller(mut self, caller: impl Into<Caller>) -> TestClientBuilder {
        self.settings.caller = caller.into();
        if self.settings.access == AccessCheck::Automatic {
            self.settings.access = AccessCheck::Always;
        }
        self
    }

    /// Turns the access rules off, as on a server without authentication. Default: they apply if there is a
    /// caller, or if an entry has a rule of its own (`anonymous`, scopes or roles).
    pub fn without_auth(mut self) -> TestClientBuilder {
        self.settings.access = AccessCheck::Never;
        self
    }

    /// Sets which entries lists show, like the setting of an HTTP endpoint. Default: all.
    pub fn listing(mut self, listing: ListVisibility) -> TestClientBuilder {
        self.settings.listing = listing;
        self
    }

    /// Sets the revision. Default: the newest legacy revision that the server supports, or the newest modern
    /// one if it supports no other.
    pub fn revision(mut self, revision: Revision) -> TestClientBuilder {
        self.settings.revision = Some(revision);
        self
    }

    /// Answers forms and URLs for the user by a function, which may be async.
    ///
    /// ```
    /// # use bindpost_mcp_server::{Context, Server, ToolEntry, ToolError};
    /// # use bindpost_mcp_server::testing::{ElicitationRequest, TestClient};
    /// # use serde_json::json;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Table { guests: u8 }
    ///
    /// let book = ToolEntry::new("book", async |context: Context| {
    ///     let table: Table = context.elicit("Which table?").await?.required()?;
    ///     Ok::<_, ToolError>(format!("A table for {}", table.guests))
    /// });
    /// let server = Server::builder("restaurant", "1.0.0").tool(book).build()?;
    ///
    /// let mut client = TestClient::builder(&server)
    ///     .on_elicitation(|form: ElicitationRequest| {
    ///         assert_eq!((form.message(), form.fields()), ("Which table?", vec!["guests"]));
    ///         form.accept(&json!({"guests": 4}))
    ///     })
    ///     .connect()
    ///     .await?;
    /// assert_eq!(client.call("book", ()).await?.text(), "A table for 4");
    ///
    /// let mut client = TestClient::builder(&server)
    ///     .on_elicitation(async |form: ElicitationRequest| form.decline())
    ///     .connect()
    ///     .await?;
    /// assert_eq!(client.call("book", ()).await.unwrap_err().to_string(), "the user declined to answer");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A panic in the function, such as a failed assertion, continues in the test.
    pub fn on_elicitation<M>(
        mut self,
        handler: impl QuestionHandler<ElicitationRequest, ElicitationAnswer, M>,
    ) -> TestClientBuilder {
        self.settings.answers.set_elicitation(handler);
        self
    }

    /// Answers for the language model by a function, which may be async. It returns a text, a whole
    /// [`SampleResult`](bindpost_mcp_protocol::client::SampleResult), or a rejection.
    ///
    /// ```
    /// # use bindpost_mcp_server::{Context, Server, ToolEntry, ToolError};
    /// # use bindpost_mcp_server::testing::{SamplingRequest, TestClient};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sum_up = ToolEntry::new("sum_up", async |context: Context| {
    ///     let answer = context.sample("Sum up: tea, cake.").max_tokens(20).await?;
    ///     Ok::<_, ToolError>(answer.text().unwrap_or("nothing").to_owned())
    /// });
    /// let server = Server::builder("orders", "1.0.0").tool(sum_up).build()?;
    ///
    /// let mut client = TestClient::builder(&server)
    ///     .on_sampling(|request: SamplingRequest| format!("{} tokens of rest", request.max_tokens()))
    ///     .connect()
    ///     .await?;
    /// assert_eq!(client.call("sum_up", ()).await?.text(), "20 tokens of rest");
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_sampling<M>(
        mut self,
        handler: impl QuestionHandler<SamplingRequest, SamplingAnswer, M>,
    ) -> TestClientBuilder {
        self.settings.answers.set_sampling(handler);
        self
    }

    /// Sets the URIs of the client's root folders.
    pub fn roots(mut self, uris: impl IntoIterator<Item = impl Into<String>>) -> TestClientBuilder {
        self.settings.answers.set_roots(uris);
        self
    }

    /// Declares the tasks extension. A call that becomes a task is followed to its end. Only modern revisions
    /// have tasks, so the default of the revision is the newest one then.
    pub fn tasks(mut self) -> TestClientBuilder {
        self.settings.revision = self.settings.revision.or(Revision::ALL.last().copied());
        self.extension(meta::TASKS_EXTENSION, Value::Object(Map::new()))
    }

    /// Declares an extension with its settings.
    pub fn extension(mut self, name: impl Into<String>, settings: Value) -> TestClientBuilder {
        self.settings.extensions.insert(name.into(), settings);
        self
    }

    /// Sets the least severity of log messages that the client asks for. `None` asks for none. Default:
    /// `Debug`, which is all of them.
    pub fn log_level(mut self, level: impl Into<Option<LogLevel>>) -> TestClientBuilder {
        self.settings.log_level = level.into();
        self
    }

    /// Sets the name and version of the client.
    pub fn client_info(mut self, info: Implementation) -> TestClientBuilder {
        self.settings.client_info = info;
        self
    }

    /// Adds a header to the HTTP request that handlers see as
    /// [`Context::http`](crate::Context::http). Without a header there is no HTTP request.
    ///
    /// # Panics
    ///
    /// If the name or the value is not a valid header.
    pub fn header(mut self, name: &str, value: &str) -> TestClientBuilder {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => drop(self.headers.append(name, value)),
            _ => panic!("{name:?}: {value:?} is not a valid header"),
        }
        self
    }

    /// Connects the client: opens a session in legacy revisions. In modern revisions nothing is sent before
    /// the first operation.
    pub async fn connect(self) -> Result<TestClient, TestError> {
        let mut client = self.connect_lazily();
        client.open().await?;
        Ok(client)
    }

    /// Returns a client that connects with its first operation. Until then it can send raw messages, with a
    /// handshake of the test's own.
    pub fn connect_lazily(self) -> TestClient {
        let TestClientBuilder { server, mut settings, headers } = self;
        if !headers.is_empty() {
            let mut request = http::Request::new(());
            *request.method_mut() = Method::POST;
            *request.headers_mut() = headers;
            settings.http = Some(Arc::new(HttpRequest { parts: request.into_parts().0, peer: None }));
        }
        TestClient::with(&server, settings)
    }
}
