//! [`Context`]: the access of a handler to its call.

use std::borrow::Cow;
use std::sync::Arc;

use bindpost_mcp_protocol::lifecycle::{ClientCapabilities, Implementation, LogLevel};
use bindpost_mcp_protocol::{RawJson, RequestId, Revision, jsonrpc, meta};
use bytes::Bytes;
use http::HeaderName;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::auth::Caller;
use crate::call::{Call, CallTarget};
use crate::error::ToolError;
use crate::handler::signature::decode_argument;
use crate::peer::session::Session;
use crate::transport::HttpRequest;

/// A parsed header name, so that it is not parsed on each use.
static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The access of a handler to its call: the client, the caller, the arguments, progress and cancellation.
#[derive(Clone, Debug)]
pub struct Context(Arc<Call>);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams<'a> {
    progress_token: &'a RawValue,
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// The member `context` of `completion/complete`.
#[derive(Deserialize)]
struct ChosenArguments<'a> {
    #[serde(borrow)]
    arguments: &'a RawValue,
}

#[derive(Serialize)]
struct LogMessage<'a> {
    level: LogLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    logger: Option<&'a str>,
    data: &'a Value,
}

/// Returns whether a token is a string or an integer, like the id of a request.
fn is_progress_token(token: &RawJson<'_>) -> bool {
    token.decode::<RequestId>().is_ok()
}

impl Context {
    pub(crate) fn new(call: Arc<Call>) -> Context {
        Context(call)
    }

    pub(crate) fn call(&self) -> &Call {
        &self.0
    }

    /// Returns the name of the tool or prompt, or the URI of the resource.
    pub fn name(&self) -> &str {
        self.0.subject().name()
    }

    /// Returns the name or URI as the client wrote it. It can differ in case from [`Context::name`].
    pub fn requested_name(&self) -> Cow<'_, str> {
        let params = self.0.params();
        params.text("name").or_else(|| params.text("uri")).unwrap_or_default()
    }

    /// Returns the method of the request.
    pub(crate) fn method(&self) -> &'static str {
        match self.0.subject() {
            CallTarget::Tool(_) => "tools/call",
            CallTarget::Prompt(_) => "prompts/get",
            CallTarget::Resource { .. } => "resources/read",
            CallTarget::Listing => "resources/list",
            CallTarget::Completing => "completion/complete",
            CallTarget::Changes => "subscriptions/listen",
            CallTarget::TaskResult => "tasks/result",
        }
    }

    /// Returns the arguments as JSON text, exactly as the client wrote them, or `{}` if the client sent none.
    pub fn arguments_json(&self) -> &str {
        self.given_arguments_json().unwrap_or("{}")
    }

    /// Returns the arguments as JSON text, or `None` if the client sent none. In a completer these are the
    /// arguments that the user has already chosen.
    pub fn given_arguments_json(&self) -> Option<&str> {
        let params = self.0.params();
        if let CallTarget::Completing = self.0.subject() {
            let chosen = params.get("context")?.decode::<ChosenArguments<'_>>().ok()?;
            return Some(chosen.arguments.get()).filter(|json| json.starts_with('{'));
        }
        params.get("arguments").filter(|raw| raw.is_object()).map(|raw| raw.as_json())
    }

    /// Decodes one argument, or one variable of a URI. Returns `None` if it was not given.
    pub fn argument<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ToolError> {
        if let Some(text) = self.variable(name) {
            return decode_argument(name, text.into(), Some(self.method())).map(Some);
        }
        let invalid = |error: serde_json::Error| ToolError::new(format!("invalid arguments: {error}"));
        let mut arguments: Value = serde_json::from_str(self.arguments_json()).map_err(invalid)?;
        match arguments.get_mut(name).map(Value::take).filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(value) => {
                let is_text = matches!(self.0.subject(), CallTarget::Prompt(_) | CallTarget::Completing);
                decode_argument(name, value, is_text.then(|| self.method())).map(Some)
            }
        }
    }

    /// Decodes a required argument. It is an error if it was not given.
    pub fn required_argument<T: DeserializeOwned>(&self, name: &str) -> Result<T, ToolError> {
        self.argument(name)?.ok_or_else(|| ToolError::new(format!("argument {name:?} is missing")))
    }

    /// Returns the URI of the resource that is read.
    pub fn uri(&self) -> Option<&str> {
        match self.0.subject() {
            CallTarget::Resource { uri, .. } => Some(uri),
            _ => None,
        }
    }

    /// Returns a variable of the URI template.
    pub fn variable(&self, name: &str) -> Option<&str> {
        match self.0.subject() {
            CallTarget::Resource { variables, .. } => {
                variables.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.as_str())
            }
            _ => None,
        }
    }

    /// Returns all variables of the URI template, in order.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let variables = match self.0.subject() {
            CallTarget::Resource { variables, .. } => variables.as_slice(),
            _ => &[],
        };
        variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the HTTP request that carried the message. `None` on transports without HTTP, such as stdio.
    pub fn http(&self) -> Option<&HttpRequest> {
        self.0.http()
    }

    /// Returns the session id from the HTTP header `Mcp-Session-Id`.
    pub fn session_id(&self) -> Option<&str> {
        self.http()?.headers().get(&SESSION_ID)?.to_str().ok()
    }

    /// Returns a value that was added with [`ServerBuilder::state`](crate::ServerBuilder::state). The usual
    /// way is a parameter [`State<T>`](crate::State).
    pub fn state<T: 'static>(&self) -> Option<&T> {
        self.0.server().states.get()
    }

    /// Returns the revision that the client uses.
    pub fn revision(&self) -> Revision {
        self.0.revision()
    }

    /// Returns the authenticated caller.
    pub fn caller(&self) -> &Caller {
        self.0.caller()
    }

    /// Returns the id of the request.
    pub fn request_id(&self) -> &RequestId {
        self.0.id()
    }

    /// Returns the session, in legacy revisions.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.0.peer().session()
    }

    /// Returns the client's own name and version.
    pub fn client_info(&self) -> Option<Implementation> {
        match self.0.peer().session() {
            Some(session) => Some(session.client_info()),
            None => self.0.params().meta(meta::CLIENT_INFO)?.decode().ok(),
        }
    }

    /// Returns the client's own name and version as JSON text. Without a session it is the text that the
    /// client wrote.
    pub fn client_info_json(&self) -> Option<Cow<'_, str>> {
        match self.0.peer().session() {
            Some(session) => session.client_info_json().map(Cow::Owned),
            None => self
                .0
                .params()
                .meta(meta::CLIENT_INFO)
                .filter(|info| info.is_object())
                .map(|info| info.as_json().into()),
        }
    }

    /// Returns whether the client asked for log messages, with `logging/setLevel` or in the request.
    pub fn asked_for_logs(&self) -> bool {
        match self.0.peer().session() {
            Some(session) => session.requested_log_level().is_some(),
            None => self.0.log_level().is_some(),
        }
    }

    /// Returns the capabilities that the client declared.
    pub fn capabilities(&self) -> ClientCapabilities {
        self.0.capabilities()
    }

    /// Returns one member of the request's `_meta`.
    pub fn meta(&self, name: &str) -> Option<Value> {
        self.0.params().meta(name)?.decode().ok()
    }

    /// Returns the W3C `traceparent`: the span of the client.
    pub fn traceparent(&self) -> Option<Cow<'_, str>> {
        self.0.params().meta(meta::TRACEPARENT)?.as_text()
    }

    /// Returns the W3C `tracestate`: vendor-specific trace data.
    pub fn tracestate(&self) -> Option<Cow<'_, str>> {
        self.0.params().meta(meta::TRACESTATE)?.as_text()
    }

    /// Sends a progress notification if the client asked for progress. `progress` must increase
    /// with each call. A task shows the message, or else the progress and the total, as its status message.
    ///
    /// A function that blocks uses [`progress_blocking`](Context::progress_blocking).
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(message) = self.progress_message(progress, total, message) {
            self.0.send(message).await;
        }
    }

    /// Returns the progress notification, if the client asked for one. A task keeps the report instead.
    pub(crate) fn progress_message(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> Option<Bytes> {
        if let Some(task) = self.0.task() {
            task.report_progress(progress, total, message);
            return None;
        }
        let token = self.0.params().meta(meta::PROGRESS_TOKEN).filter(is_progress_token)?;
        let progress_token = token.decode::<&RawValue>().ok()?;
        let message = message.filter(|_| self.revision().has_progress_message());
        let params = ProgressParams { progress_token, progress, total, message };
        Some(jsonrpc::encode_notification("notifications/progress", Some(&params)).into())
    }

    /// Sends a log message to the client if it asked for messages of this level.
    ///
    /// A function that blocks uses [`log_blocking`](Context::log_blocking).
    pub async fn log(&self, level: LogLevel, logger: Option<&str>, data: impl Into<Value>) {
        if let Some(message) = self.log_message(level, logger, data) {
            self.0.send(message).await;
        }
    }

    /// Returns the notification with a log message, if the client asked for messages of this level.
    pub(crate) fn log_message(
        &self,
        level: LogLevel,
        logger: Option<&str>,
        data: impl Into<Value>,
    ) -> Option<Bytes> {
        if self.0.task().is_some() || self.0.log_level().is_none_or(|least| level < least) {
            return None;
        }
        let params = LogMessage { level, logger, data: &data.into() };
        Some(jsonrpc::encode_notification("notifications/message", Some(&params)).into())
    }

    /// Sends a log message of the level `debug` to the client.
    pub async fn debug(&self, data: impl Into<Value>) {
        self.log(LogLevel::Debug, None, data).await;
    }

    /// Sends a log message of the level `info` to the client.
    pub async fn info(&self, data: impl Into<Value>) {
        self.log(LogLevel::Info, None, data).await;
    }

    /// Sends a log message of the level `warning` to the client.
    pub async fn warning(&self, data: impl Into<Value>) {
        self.log(LogLevel::Warning, None, data).await;
    }

    /// Sends a log message of the level `error` to the client.
    pub async fn error(&self, data: impl Into<Value>) {
        self.log(LogLevel::Error, None, data).await;
    }

    /// Returns whether the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the call is cancelled: by the client, by a disconnect, or by a timeout.
    ///
    /// A cancelled handler is dropped at its next `.await`, so `Drop` of its values runs. A handler that
    /// waits for this future gets a tenth of a second more, to clean up in an async way. Its result is
    /// ignored.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use bindpost_mcp_server::Context;
    ///
    /// async fn render(context: Context) -> &'static str {
    ///     tokio::select! {
    ///         () = tokio::time::sleep(Duration::from_secs(60)) => "rendered",
    ///         () = context.cancelled() => {
    ///             // Stop the remote job, remove temporary files.
    ///             "cancelled"
    ///         }
    ///     }
    /// }
    /// ```
    pub async fn cancelled(&self) {
        self.0.watch_cancellation();
        self.0.cancelled().await;
    }

    /// Disconnects the call's stream. The client reconnects and resumes it (2025-11-25). This does nothing
    /// if the stream cannot be resumed.
    pub fn hang_up(&self) {
        self.0.hang_up();
    }

    /// Continues as a task if the client supports tasks. The request is answered with the task, and the
    /// client fetches the result later. This does nothing otherwise.
    pub async fn go_on_as_task(&self) {
        self.0.go_on_as_task().await;
    }

    /// Returns the server, for instance to announce changes.
    pub fn server(&self) -> crate::server::Server {
        crate::server::Server::from_shared(self.0.server().clone())
    }
}
