//! [`Context`]: what a handler may ask about the call it serves.

use std::borrow::Cow;
use std::sync::Arc;

use bindpost_mcp_protocol::lifecycle::{ClientCapabilities, Implementation, LogLevel};
use bindpost_mcp_protocol::{RawJson, RequestId, Revision, jsonrpc, meta};
use http::HeaderName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use crate::auth::Caller;
use crate::call::{Call, CallTarget};
use crate::error::ToolError;
use crate::handler::signature::decode_argument;
use crate::peer::session::Session;
use crate::transport::HttpRequest;

/// A name as text would have to be read each time.
static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// What a handler may ask about the call it serves: who calls, with what, and is anybody still waiting.
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

#[derive(Serialize)]
struct LogMessage<'a> {
    level: LogLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    logger: Option<&'a str>,
    data: &'a Value,
}

/// A progress token is a string or an integer, like the id of a request.
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

    /// The name of the tool or prompt, or the URI of the resource.
    pub fn name(&self) -> &str {
        self.0.subject().name()
    }

    /// The same as the client wrote it, where case does not matter.
    pub fn requested_name(&self) -> Cow<'_, str> {
        let params = self.0.params();
        params.text("name").or_else(|| params.text("uri")).unwrap_or_default()
    }

    /// The method of the request.
    pub(crate) fn method(&self) -> &'static str {
        match self.0.subject() {
            CallTarget::Tool(_) => "tools/call",
            CallTarget::Prompt(_) => "prompts/get",
            CallTarget::Resource { .. } => "resources/read",
            CallTarget::Listing => "resources/list",
            CallTarget::Completing => "completion/complete",
            CallTarget::Changes => "subscriptions/listen",
        }
    }

    /// The arguments as JSON text, exactly as the client wrote them; an absent object counts as empty.
    pub fn arguments_json(&self) -> &str {
        self.given_arguments_json().unwrap_or("{}")
    }

    /// The same; `None` if the client gave none.
    pub fn given_arguments_json(&self) -> Option<&str> {
        self.0.params().get("arguments").filter(|raw| raw.is_object()).map(|raw| raw.as_json())
    }

    /// One argument, or one variable of a URI, as a type of yours; `None` if it was not given.
    pub fn argument<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ToolError> {
        if let Some(text) = self.variable(name) {
            return decode_argument(name, text.into(), Some(self.method())).map(Some);
        }
        let invalid = |error: serde_json::Error| ToolError::new(format!("invalid arguments: {error}"));
        let mut arguments: Value = serde_json::from_str(self.arguments_json()).map_err(invalid)?;
        match arguments.get_mut(name).map(Value::take).filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(value) => {
                let is_text = matches!(self.0.subject(), CallTarget::Prompt(_));
                decode_argument(name, value, is_text.then(|| self.method())).map(Some)
            }
        }
    }

    /// The same for an argument that must be there.
    pub fn required_argument<T: DeserializeOwned>(&self, name: &str) -> Result<T, ToolError> {
        self.argument(name)?.ok_or_else(|| ToolError::new(format!("argument {name:?} is missing")))
    }

    /// The URI of the resource that is read.
    pub fn uri(&self) -> Option<&str> {
        match self.0.subject() {
            CallTarget::Resource { uri, .. } => Some(uri),
            _ => None,
        }
    }

    /// A variable of the URI template.
    pub fn variable(&self, name: &str) -> Option<&str> {
        match self.0.subject() {
            CallTarget::Resource { variables, .. } => {
                variables.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.as_str())
            }
            _ => None,
        }
    }

    /// All variables of the URI template, in order.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let variables = match self.0.subject() {
            CallTarget::Resource { variables, .. } => variables.as_slice(),
            _ => &[],
        };
        variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The HTTP request it came in: headers, cookies, method, address. `None` over a pipe.
    pub fn http(&self) -> Option<&HttpRequest> {
        self.0.http()
    }

    /// The id of the session as the client names it over HTTP.
    pub fn session_id(&self) -> Option<&str> {
        self.http()?.headers().get(&SESSION_ID)?.to_str().ok()
    }

    /// Something that was given to the server; a parameter [`State<T>`](crate::State) is the usual way.
    pub fn state<T: 'static>(&self) -> Option<&T> {
        self.0.server().states.get()
    }

    /// The revision the client speaks.
    pub fn revision(&self) -> Revision {
        self.0.revision()
    }

    /// Who calls.
    pub fn caller(&self) -> &Caller {
        self.0.caller()
    }

    /// The id of the request.
    pub fn request_id(&self) -> &RequestId {
        self.0.id()
    }

    /// The session, in revisions that have one.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.0.peer().session()
    }

    /// Who the client says it is.
    pub fn client_info(&self) -> Option<Implementation> {
        match self.0.peer().session() {
            Some(session) => Some(session.client_info()),
            None => self.0.params().meta(meta::CLIENT_INFO)?.decode().ok(),
        }
    }

    /// The same as JSON text, as the client wrote it where nothing had to be kept.
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

    /// Whether the client has asked for log messages: by `logging/setLevel` in its session, or in the request.
    pub fn asked_for_logs(&self) -> bool {
        match self.0.peer().session() {
            Some(session) => session.requested_log_level().is_some(),
            None => self.0.log_level().is_some(),
        }
    }

    /// What the client says it can do.
    pub fn capabilities(&self) -> ClientCapabilities {
        self.0.capabilities()
    }

    /// One member of the request's `_meta`.
    pub fn meta(&self, name: &str) -> Option<Value> {
        self.0.params().meta(name)?.decode().ok()
    }

    /// W3C trace context: the caller's span.
    pub fn traceparent(&self) -> Option<Cow<'_, str>> {
        self.0.params().meta(meta::TRACEPARENT)?.as_text()
    }

    /// W3C trace context: vendor data.
    pub fn tracestate(&self) -> Option<Cow<'_, str>> {
        self.0.params().meta(meta::TRACESTATE)?.as_text()
    }

    /// Tells how far the call is, if the client wants to know. `progress` must grow.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = self.0.params().meta(meta::PROGRESS_TOKEN).filter(is_progress_token) else {
            return;
        };
        // Tasks report by their status.
        if self.0.task().is_some() {
            return;
        }
        let Ok(progress_token) = token.decode::<&RawValue>() else { return };
        let message = message.filter(|_| self.revision().has_progress_message());
        let params = ProgressParams { progress_token, progress, total, message };
        self.0.send(jsonrpc::encode_notification("notifications/progress", Some(&params)).into()).await;
    }

    /// Sends a log message to the client, if it wants messages of this level.
    pub async fn log(&self, level: LogLevel, logger: Option<&str>, data: impl Into<Value>) {
        if self.0.task().is_some() || self.0.log_level().is_none_or(|least| level < least) {
            return;
        }
        let params = LogMessage { level, logger, data: &data.into() };
        self.0.send(jsonrpc::encode_notification("notifications/message", Some(&params)).into()).await;
    }

    /// Whether the caller has stopped waiting.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the caller has stopped waiting.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }

    /// Hangs up the call's stream: the client comes back for the rest (2025-11-25). Without a stream
    /// that can be taken up again this does nothing.
    pub fn hang_up(&self) {
        self.0.hang_up();
    }

    /// Goes on as a task, if the client can deal with one: the request is answered with the task now,
    /// and the result is fetched later. Does nothing otherwise.
    pub async fn go_on_as_task(&self) {
        self.0.go_on_as_task().await;
    }

    /// The server, for announcing changes.
    pub fn server(&self) -> crate::server::Server {
        crate::server::Server::from_shared(self.0.server().clone())
    }
}
