//! [`ClientConnection`]: the connection of a test client, which its calls share.
//!
//! Until the first typed operation the client reads the server's messages itself, one by one. After that a
//! task reads them: it delivers responses to those who wait, records notifications, and answers the server's
//! questions.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindpost_mcp_protocol::jsonrpc::{self, INTERNAL_ERROR};
use bindpost_mcp_protocol::lifecycle::{Implementation, LogLevel, SubscriptionFilter};
use bindpost_mcp_protocol::tasks::Task;
use bindpost_mcp_protocol::{DecodeError, DecodedBody, ErrorObject, Message, Revision, meta};
use bytes::Bytes;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::answers::ClientAnswers;
use super::failure::{CAPABILITIES, TestError};
use super::reply::{LogRecord, ProgressUpdate, ServerChange};
use crate::auth::Caller;
use crate::auth::required::UNAUTHORIZED;
use crate::peer::stream::{MessageStream, StreamRead};
use crate::server::Server;
use crate::transport::pipe::Pipe;
use crate::transport::{HttpRequest, ListVisibility};

/// When the access rules of entries apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AccessCheck {
    /// If an entry has a rule of its own.
    #[default]
    Automatic,
    Always,
    Never,
}

/// How a client was built.
#[derive(Clone, Debug)]
pub(super) struct ClientSettings {
    pub(super) caller: Caller,
    pub(super) access: AccessCheck,
    pub(super) listing: ListVisibility,
    pub(super) http: Option<Arc<HttpRequest>>,
    pub(super) revision: Option<Revision>,
    pub(super) client_info: Implementation,
    pub(super) extensions: Map<String, Value>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) answers: ClientAnswers,
}

impl Default for ClientSettings {
    fn default() -> ClientSettings {
        ClientSettings {
            caller: Caller::ANONYMOUS,
            access: AccessCheck::default(),
            listing: ListVisibility::All,
            http: None,
            revision: None,
            client_info: Implementation::new("test", "1.0.0"),
            extensions: Map::new(),
            log_level: Some(LogLevel::Debug),
            answers: ClientAnswers::default(),
        }
    }
}

/// The connection of a test client to its server.
#[derive(Debug)]
pub(super) struct ClientConnection {
    server: Server,
    pub(super) settings: ClientSettings,
    pub(super) revision: Revision,
    out: Arc<MessageStream>,
    /// `None` once the client was dropped.
    pipe: tokio::sync::Mutex<Option<Pipe>>,
    last_id: AtomicU64,
    state: Mutex<ClientState>,
    changed: Notify,
}

/// What the client has received.
#[derive(Debug, Default)]
pub(super) struct ClientState {
    /// The responses to requests of the client. `None` while it waits.
    responses: HashMap<String, Option<Result<Value, ErrorObject>>>,
    /// The progress of all calls, with the token of the call.
    pub(super) progress: Vec<(String, ProgressUpdate)>,
    pub(super) logs: Vec<LogRecord>,
    pub(super) changes: VecDeque<ServerChange>,
    /// What the server acknowledged, by the id of the listener.
    acknowledged: HashMap<String, SubscriptionFilter>,
    /// The listeners for subscribed resources.
    pub(super) listeners: HashMap<String, String>,
    /// The newest states of tasks that were announced.
    pub(super) tasks: HashMap<String, Task>,
    /// Messages that belong to no request.
    inbox: VecDeque<Bytes>,
    /// Whether `initialize` was sent.
    pub(super) initialized: bool,
    /// Whether no more messages come.
    ended: bool,
    /// Whether the client was dropped.
    closed: bool,
    /// The panic of a closure, which continues in the test.
    panic: Option<Box<dyn Any + Send>>,
}

/// A request that was sent.
#[derive(Debug)]
pub(super) struct SentRequest {
    pub(super) id: String,
    /// Whether the caller may not send it.
    denied: bool,
}

impl ClientConnection {
    pub(super) fn new(server: &Server, settings: ClientSettings) -> ClientConnection {
        let out = server.new_stream();
        let pipe = Pipe::new(server.clone(), out.clone(), settings.caller.clone());
        let served = server.revisions();
        let newest = served.last().copied();
        let with_handshake = served.iter().rev().copied().find(|revision| revision.has_handshake());
        let revision = settings.revision.or(with_handshake).or(newest);
        ClientConnection {
            server: server.clone(),
            settings,
            revision: revision.unwrap_or(Revision::LATEST_WITH_HANDSHAKE),
            out,
            pipe: tokio::sync::Mutex::new(Some(pipe)),
            last_id: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(super) fn out(&self) -> &Arc<MessageStream> {
        &self.out
    }

    pub(super) fn supports_revision(&self) -> bool {
        self.server.revisions().contains(&self.revision)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn notify(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn new_id(&self) -> String {
        format!("request-{}", self.last_id.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Ends the input of the server and waits until all requests are answered.
    pub(super) async fn drain(&self, most: std::time::Duration) {
        if let Some(pipe) = &mut *self.pipe.lock().await {
            pipe.drain(most).await;
        }
        self.out.end();
    }

    /// Disconnects from the server.
    pub(super) fn close(&self) {
        {
            let mut state = self.lock();
            (state.ended, state.closed) = (true, true);
        }
        self.notify();
        if let Ok(mut pipe) = self.pipe.try_lock() {
            *pipe = None;
        }
    }

    /// Sends a message, unless the caller may not send it. Returns whether it was denied. A denied request
    /// is answered as over HTTP.
    pub(super) async fn deliver(&self, message: Bytes) -> bool {
        let decoded = jsonrpc::decode(message);
        let guarded = self.enforces_access();
        if guarded && let Some(error) = self.refuse(&decoded) {
            let is_silent =
                matches!(&decoded, Ok(DecodedBody::One(Message::Notification(_) | Message::Response(_))));
            if !is_silent {
                self.out.send(error).await;
            }
            return true;
        }
        if let Ok(DecodedBody::One(Message::Request(request))) = &decoded
            && request.method() == "initialize"
        {
            self.lock().initialized = true;
        }
        let mut pipe = self.pipe.lock().await;
        if let Some(pipe) = &mut *pipe {
            pipe.set_access(self.settings.listing, guarded, self.settings.http.clone());
            pipe.receive_decoded(decoded).await;
        }
        // The client may have been dropped meanwhile.
        if self.lock().closed {
            *pipe = None;
        }
        false
    }

    fn enforces_access(&self) -> bool {
        match self.settings.access {
            AccessCheck::Always => true,
            AccessCheck::Never => false,
            AccessCheck::Automatic => self.server.shared().catalog.snapshot().has_access_rules(),
        }
    }

    /// Returns the error for a body that the caller may not send.
    fn refuse(&self, body: &Result<DecodedBody, DecodeError>) -> Option<Bytes> {
        let caller = &self.settings.caller;
        let refused = self.server.refuse_body(caller, body, || self.server.has_anonymous_entries())?;
        let error = ErrorObject::new(UNAUTHORIZED, refused.lacking_access(caller).to_string());
        Some(jsonrpc::encode_error(refused.id, &error).into())
    }

    /// Sends a request with the envelope that the revision requires. The response is delivered to
    /// [`ClientConnection::response`].
    pub(super) async fn send_request(&self, method: &str, mut params: Value) -> SentRequest {
        let id = self.new_id();
        self.add_meta(&id, method, &mut params);
        self.lock().responses.insert(id.clone(), None);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let denied = self.deliver(message.to_string().into()).await;
        SentRequest { id, denied }
    }

    pub(super) async fn send_notification(&self, method: &str, params: &Value) {
        self.deliver(jsonrpc::encode_notification(method, Some(params)).into()).await;
    }

    /// Adds the members of `_meta` that the revision requires, and a token for progress. Members that are
    /// there are not replaced.
    pub(super) fn add_meta(&self, id: &str, method: &str, params: &mut Value) {
        let Value::Object(params) = params else { return };
        let mut added = Map::new();
        if matches!(method, "tools/call" | "resources/read" | "prompts/get") {
            added.insert(meta::PROGRESS_TOKEN.to_owned(), id.into());
        }
        if !self.revision.has_handshake() {
            added.insert(meta::PROTOCOL_VERSION.to_owned(), self.revision.as_str().into());
            added.insert(meta::CLIENT_INFO.to_owned(), json!(self.settings.client_info));
            added.insert(meta::CLIENT_CAPABILITIES.to_owned(), self.capabilities());
            if let Some(level) = self.settings.log_level {
                added.insert(meta::LOG_LEVEL.to_owned(), json!(level));
            }
        }
        if added.is_empty() {
            return;
        }
        if let Value::Object(known) = params.entry("_meta").or_insert_with(|| json!({})) {
            for (name, value) in added {
                known.entry(name).or_insert(value);
            }
        }
    }

    /// Returns the capabilities of the client.
    pub(super) fn capabilities(&self) -> Value {
        let mut capabilities = Map::new();
        self.settings.answers.declare(&mut capabilities);
        if !self.settings.extensions.is_empty() {
            capabilities.insert("extensions".to_owned(), self.settings.extensions.clone().into());
        }
        capabilities.into()
    }

    /// Waits for the response to a request.
    pub(super) async fn response(&self, sent: &SentRequest) -> Result<Value, TestError> {
        self.response_unless(sent, || false).await
    }

    /// Waits for the response to a request, or until the call is cancelled.
    pub(super) async fn response_unless(
        &self,
        sent: &SentRequest,
        cancelled: impl Fn() -> bool,
    ) -> Result<Value, TestError> {
        self.outcome_unless(sent, cancelled).await?.map_err(|error| self.explain(error, sent))
    }

    /// Waits for the response to a request as the server sent it, or until the call is cancelled.
    pub(super) async fn outcome_unless(
        &self,
        sent: &SentRequest,
        cancelled: impl Fn() -> bool,
    ) -> Result<Result<Value, ErrorObject>, TestError> {
        let outcome = self.wait_for(|state| match state.responses.get_mut(&sent.id) {
            Some(slot) if slot.is_some() => state.responses.remove(&sent.id).flatten().map(Ok),
            _ => cancelled().then_some(Err(TestError::Cancelled)),
        });
        outcome.await?
    }

    fn explain(&self, error: ErrorObject, sent: &SentRequest) -> TestError {
        if sent.denied {
            return TestError::Denied { error, anonymous: !self.settings.caller.is_authenticated() };
        }
        let missing = CAPABILITIES.iter().find(|capability| {
            capability.is_missing_in(&error) && !self.settings.answers.answers(capability.method)
        });
        match missing {
            Some(capability) => capability.unanswered(),
            None => TestError::Protocol(error),
        }
    }

    /// Sends a request and waits for its result.
    pub(super) async fn request(&self, method: &str, params: Value) -> Result<Value, TestError> {
        let sent = self.send_request(method, params).await;
        self.response(&sent).await
    }

    /// Waits until the server has acknowledged a listener. Returns its id and what it listens to.
    pub(super) async fn listen(&self, filter: Value) -> Result<(String, SubscriptionFilter), TestError> {
        let sent = self.send_request("subscriptions/listen", json!({"notifications": filter})).await;
        let acknowledged = self.wait_for(|state| {
            if let Some(filter) = state.acknowledged.get(&sent.id) {
                return Some(Some(filter.clone()));
            }
            matches!(state.responses.get(&sent.id), Some(Some(_))).then_some(None)
        });
        match acknowledged.await? {
            Some(filter) => Ok((sent.id, filter)),
            None => {
                self.response(&sent).await?;
                Err(TestError::Disconnected)
            }
        }
    }

    /// Ends a request without waiting for its response.
    pub(super) async fn cancel_request(&self, id: &str) {
        self.send_notification("notifications/cancelled", &json!({"requestId": id})).await;
    }

    /// Waits until a value is there.
    pub(super) async fn wait_for<T>(
        &self,
        mut ready: impl FnMut(&mut ClientState) -> Option<T>,
    ) -> Result<T, TestError> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let panic = {
                let mut state = self.lock();
                if let Some(value) = ready(&mut state) {
                    return Ok(value);
                }
                let panic = state.panic.take();
                if panic.is_none() && state.ended {
                    return Err(TestError::Disconnected);
                }
                panic
            };
            if let Some(panic) = panic {
                resume_unwind(panic);
            }
            changed.await;
        }
    }

    /// Waits for the next message that belongs to no request.
    pub(super) async fn next_message(&self) -> Option<Bytes> {
        self.wait_for(|state| state.inbox.pop_front()).await.ok()
    }

    pub(super) fn clear_inbox(&self) {
        self.lock().inbox.clear();
    }

    /// Reads all messages of the server until the end.
    pub(super) async fn drive(self: Arc<Self>, reader: u64) {
        let mut answering = JoinSet::new();
        while let StreamRead::Message { message, .. } =
            poll_fn(|context| self.out.poll_pop(context, reader)).await
        {
            while answering.try_join_next().is_some() {}
            if let Some(question) = self.receive(message) {
                answering.spawn(self.clone().answer(question));
            }
            self.notify();
        }
        self.lock().ended = true;
        self.notify();
    }

    /// Records a message. Returns it if it is a request of the server.
    fn receive(&self, message: Bytes) -> Option<ReceivedMessage> {
        let mut state = self.lock();
        let Ok(mut received) = serde_json::from_slice::<ReceivedMessage>(&message) else {
            state.inbox.push_back(message);
            return None;
        };
        if received.method.is_some() && received.id.is_some() {
            return Some(received);
        }
        if let Some(slot) =
            received.id.as_ref().and_then(Value::as_str).and_then(|id| state.responses.get_mut(id))
        {
            *slot = Some(received.take_outcome());
            return None;
        }
        if let Some(method) = &received.method {
            state.record(method, &received.params);
        }
        state.inbox.push_back(message);
        None
    }

    /// Answers a request of the server.
    async fn answer(self: Arc<Self>, question: ReceivedMessage) {
        let method = question.method.unwrap_or_default();
        let answer = self.settings.answers.answer(&method, question.params);
        match AssertUnwindSafe(answer).catch_unwind().await {
            Ok(Ok(result)) => {
                let answer = json!({"jsonrpc": "2.0", "id": question.id, "result": result});
                self.deliver(answer.to_string().into()).await;
            }
            Ok(Err(error)) => {
                let answer = json!({"jsonrpc": "2.0", "id": question.id, "error": error});
                self.deliver(answer.to_string().into()).await;
            }
            Err(panic) => {
                self.lock().panic = Some(panic);
                self.notify();
            }
        }
    }
}

impl ClientState {
    /// Records a notification.
    fn record(&mut self, method: &str, params: &Value) {
        let subscription = || params["_meta"][meta::SUBSCRIPTION_ID].as_str().map(str::to_owned);
        match method {
            "notifications/progress" => {
                let token = params["progressToken"].as_str().unwrap_or_default().to_owned();
                if let Ok(update) = ProgressUpdate::deserialize(params) {
                    self.progress.push((token, update));
                }
            }
            "notifications/message" => self.logs.extend(LogRecord::deserialize(params)),
            "notifications/tools/list_changed" => self.changes.push_back(ServerChange::Tools),
            "notifications/resources/list_changed" => self.changes.push_back(ServerChange::Resources),
            "notifications/prompts/list_changed" => self.changes.push_back(ServerChange::Prompts),
            "notifications/resources/updated" => {
                let uri = params["uri"].as_str().unwrap_or_default();
                self.changes.push_back(ServerChange::Resource(uri.to_owned()));
            }
            "notifications/subscriptions/acknowledged" => {
                let filter = SubscriptionFilter::deserialize(&params["notifications"]);
                if let (Some(id), Ok(filter)) = (subscription(), filter) {
                    self.acknowledged.insert(id, filter);
                }
            }
            "notifications/tasks" => {
                if let Ok(task) = Task::deserialize(params) {
                    self.tasks.insert(task.task_id.clone(), task);
                }
            }
            _ => {}
        }
    }
}

/// A message of the server.
#[derive(Debug, Deserialize)]
struct ReceivedMessage {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Option<Value>,
}

impl ReceivedMessage {
    fn take_outcome(&mut self) -> Result<Value, ErrorObject> {
        match self.error.take() {
            None => Ok(self.result.take()),
            Some(error) => Err(serde_json::from_value(error)
                .unwrap_or_else(|_| ErrorObject::new(INTERNAL_ERROR, "the error is invalid"))),
        }
    }
}
