//! The state of one call of a handler. [`running`] polls it.

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod elicitation;
pub(crate) mod sampling;
pub(crate) mod scheduler;
pub(crate) mod seal;
pub(crate) mod task_requests;
pub(crate) mod task_result;
pub(crate) mod tasks;

mod running;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;

use bindpost_mcp_protocol::jsonrpc::INTERNAL_ERROR;
use bindpost_mcp_protocol::lifecycle::{ClientCapabilities, Completion, LogLevel};
use bindpost_mcp_protocol::resources::ListResourcesResult;
use bindpost_mcp_protocol::{
    CallToolResult, ErrorObject, GetPromptResult, Meta, Params, ReadResourceResult, RequestId, Revision,
    ShapeForRevision, jsonrpc, meta,
};
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

pub(crate) use running::TaskStart;
pub use running::{CallCanceller, RunningCall};

use self::answer::EncodedResponse;
use self::ask::InputRequests;
use self::scheduler::{CallAdmission, CallPermit, ClientKey, ClientPart};
use self::tasks::TaskState;
use crate::auth::Caller;
use crate::catalog::completion;
use crate::catalog::tool::ToolEntry;
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::{ProtocolError, ToolError, ToolFailure, describe_chain};
use crate::peer::Peer;
use crate::peer::stream::MessageStream;
use crate::result_envelope::CachePolicy;
use crate::server::ServerState;
use crate::transport::{DeliveryTarget, HttpRequest};

/// The future of a handler.
pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = Result<HandlerOutput, ToolError>> + Send>>;

/// The output of a handler.
#[derive(Debug)]
pub(crate) enum HandlerOutput {
    Tool(CallToolResult),
    Prompt(GetPromptResult),
    Resource(ReadResourceResult),
    Listed(ListResourcesResult, CachePolicy),
    Completed(Completion),
    /// The result of a listener, which has only `_meta`.
    Listened(Meta),
    /// The result of a task, without its `_meta` and with it.
    TaskResult(Map<String, Value>, Meta),
}

/// The target of a call: an entry, or a method without one.
#[derive(Debug)]
pub(crate) enum CallTarget {
    Tool(Arc<ToolEntry>),
    Prompt(String),
    Resource {
        uri: String,
        variables: Vec<(String, String)>,
    },
    Changes,
    /// The result of a task (`tasks/result`).
    TaskResult,
    Listing,
    Completing,
}

impl CallTarget {
    pub(crate) fn name(&self) -> &str {
        match self {
            CallTarget::Tool(entry) => &entry.definition.name,
            CallTarget::Prompt(name) => name,
            CallTarget::Resource { uri, .. } => uri,
            CallTarget::Changes | CallTarget::TaskResult | CallTarget::Listing | CallTarget::Completing => "",
        }
    }
}

/// The state of one call, shared by its handler, its [`RunningCall`] and its cancellers.
#[derive(Debug)]
pub(crate) struct Call {
    server: Arc<ServerState>,
    id: RequestId,
    params: Params,
    peer: Peer,
    caller: Caller,
    delivery: DeliveryTarget,
    http: Option<Arc<HttpRequest>>,
    subject: CallTarget,
    own_stream: OnceLock<Arc<MessageStream>>,
    cancelled: AtomicBool,
    /// Whether the handler waits for the cancellation.
    watches_cancellation: AtomicBool,
    /// Whether a listener should end with its result.
    ending: AtomicBool,
    cancel_signal: Notify,
    driver: AtomicWaker,
    asks: Mutex<InputRequests>,
    /// The permit to run, while the call has one.
    place: Mutex<Option<CallPermit>>,
    wants_task: AtomicBool,
    task: OnceLock<Arc<TaskState>>,
}

impl Call {
    pub(crate) fn new(inbound: InboundRequest, subject: CallTarget) -> Arc<Call> {
        let (id, params) = inbound.request.into_parts();
        Arc::new(Call {
            server: inbound.server,
            id,
            params,
            peer: inbound.exchange.peer,
            caller: inbound.exchange.caller,
            delivery: inbound.exchange.delivery,
            http: inbound.exchange.http,
            subject,
            own_stream: OnceLock::new(),
            cancelled: AtomicBool::new(false),
            watches_cancellation: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            cancel_signal: Notify::new(),
            driver: AtomicWaker::new(),
            asks: Mutex::default(),
            place: Mutex::new(None),
            wants_task: AtomicBool::new(false),
            task: OnceLock::new(),
        })
    }

    pub(crate) fn server(&self) -> &Arc<ServerState> {
        &self.server
    }
    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }
    pub(crate) fn params(&self) -> &Params {
        &self.params
    }
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }
    pub(crate) fn http(&self) -> Option<&HttpRequest> {
        self.http.as_deref()
    }
    pub(crate) fn delivery(&self) -> &DeliveryTarget {
        &self.delivery
    }
    pub(crate) fn subject(&self) -> &CallTarget {
        &self.subject
    }
    pub(crate) fn revision(&self) -> Revision {
        self.peer.revision()
    }
    pub(crate) fn task(&self) -> Option<&Arc<TaskState>> {
        self.task.get()
    }

    /// Returns whether the client waits for the response. It does not once the request was answered
    /// with a task.
    pub(crate) fn is_awaited(&self) -> bool {
        self.task.get().is_none()
    }

    pub(crate) fn input_requests(&self) -> MutexGuard<'_, InputRequests> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        match self.peer.session() {
            Some(session) => session.capabilities(),
            None => self
                .params
                .meta(meta::CLIENT_CAPABILITIES)
                .and_then(|raw| raw.decode().ok())
                .unwrap_or_default(),
        }
    }

    /// Returns the minimum severity of log messages to send. `None` means that none are sent.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        match self.peer.session() {
            Some(session) => Some(session.log_level()),
            // Stateless requests carry the level themselves.
            None => Peer::log_level_of(&self.params).ok().flatten(),
        }
    }

    /// Returns the stream of this call. Creates it if it is made on demand.
    pub(crate) fn stream(&self) -> Option<&Arc<MessageStream>> {
        match &self.delivery {
            DeliveryTarget::None => None,
            DeliveryTarget::Shared(stream) => Some(stream),
            DeliveryTarget::OnDemand { keeps } => {
                Some(self.own_stream.get_or_init(|| match self.peer.session().filter(|_| *keeps) {
                    Some(session) => self.server.new_resumable_stream(session),
                    None => self.server.new_stream(),
                }))
            }
        }
    }

    /// Sends a message that belongs to this call. Returns `false` if it cannot be delivered.
    pub(crate) async fn send(&self, message: Bytes) -> bool {
        if self.is_cancelled() {
            return false;
        }
        let Some(stream) = self.stream() else { return false };
        // The transport checks for a stream after each poll. This handler may not be polled again before
        // the stream has room, so wake the task that polls the call.
        self.driver.wake();
        stream.send(message).await
    }

    /// Sends a message like [`send`](Call::send), on a thread that may block.
    pub(crate) fn send_blocking(&self, message: Bytes) -> bool {
        if self.is_cancelled() {
            return false;
        }
        let Some(stream) = self.stream() else { return false };
        self.driver.wake();
        stream.send_blocking(&message)
    }

    pub(crate) fn hang_up(&self) {
        if let DeliveryTarget::OnDemand { keeps: true } = self.delivery
            && let Some(stream) = self.stream()
        {
            stream.hang_up();
            self.driver.wake();
        }
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.cancel_signal.notify_waiters();
        self.driver.wake();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Records that the handler waits for the cancellation, so that it gets time to clean up.
    pub(crate) fn watch_cancellation(&self) {
        self.watches_cancellation.store(true, Ordering::Relaxed);
    }

    pub(crate) async fn cancelled(&self) {
        let signal = self.cancel_signal.notified();
        tokio::pin!(signal);
        signal.as_mut().enable();
        if !self.is_cancelled() {
            signal.await;
        }
    }

    /// Waits until the listener should end.
    pub(crate) async fn until_ending(&self) {
        let signal = self.cancel_signal.notified();
        tokio::pin!(signal);
        signal.as_mut().enable();
        if !self.ending.load(Ordering::Acquire) {
            signal.await;
        }
    }

    fn lock_permit(&self) -> MutexGuard<'_, Option<CallPermit>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_permit(&self) -> bool {
        self.lock_permit().is_some()
    }

    pub(crate) fn release_permit(&self) {
        let place = self.lock_permit().take();
        drop(place);
    }

    /// Waits for a permit to run again.
    pub(crate) async fn reacquire_permit(&self) {
        let place = match self.server.turns.readmit(self.client_key()) {
            CallAdmission::Now(place) => Some(place),
            CallAdmission::Later(waiting) => waiting.await,
            CallAdmission::Refused => None,
        };
        *self.lock_permit() = place;
    }

    /// Returns the client of the call, as the scheduler identifies it.
    fn client_key(&self) -> ClientKey {
        let address = || self.http.as_ref().and_then(|http| http.peer).map(|peer| peer.ip());
        let part = match (self.peer.session(), self.caller.is_authenticated()) {
            (Some(session), _) => ClientPart::Session(Arc::as_ptr(session).addr()),
            (None, true) => ClientPart::Any,
            (None, false) => address().map_or(ClientPart::Any, ClientPart::Address),
        };
        ClientKey { caller: self.caller.clone(), part }
    }

    /// Waits, in the handler, until the call has become a task.
    pub(crate) async fn go_on_as_task(&self) {
        if !matches!(self.subject, CallTarget::Tool(_)) || self.task.get().is_some() || !self.can_be_task() {
            return;
        }
        self.wants_task.store(true, Ordering::Release);
        let mut first = true;
        // Pending once, so that `RunningCall` sees the flag, creates the task and polls again.
        poll_fn(|context| {
            if std::mem::take(&mut first) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Rejects the request before a handler runs.
    pub(crate) fn refuse(&self, error: &ProtocolError) -> DispatchOutcome {
        DispatchOutcome::Answer(EncodedResponse::from_error(&self.id, error, self.revision()))
    }

    fn finish(&self, outcome: Result<HandlerOutput, ToolError>) -> EncodedResponse {
        let mut message = Vec::with_capacity(256);
        jsonrpc::write_result_start(&mut message, &self.id);
        match self.write_result(&mut message, outcome) {
            Ok(()) => {
                message.push(jsonrpc::RESULT_END);
                EncodedResponse::from_message(message)
            }
            Err(error) => EncodedResponse::from_error(&self.id, &error, self.revision()),
        }
    }

    /// Appends the result as JSON, in the form of the client's revision.
    fn write_result(
        &self,
        out: &mut Vec<u8>,
        outcome: Result<HandlerOutput, ToolError>,
    ) -> Result<(), ProtocolError> {
        let revision = self.revision();
        let finished = match outcome {
            Ok(finished) => finished,
            Err(error) => match error.into_failure() {
                ToolFailure::Protocol(error @ ProtocolError::MissingCapability(_))
                    if revision.has_handshake() =>
                {
                    // Legacy revisions have no error code for this, so a tool result contains the reason.
                    match self.subject {
                        CallTarget::Tool(_) => HandlerOutput::Tool(CallToolResult::error(error.to_string())),
                        _ => return Err(ProtocolError::Internal(error.to_string())),
                    }
                }
                ToolFailure::Protocol(error) => return Err(error),
                ToolFailure::Shown { shown, source } => {
                    if let Some(source) = source {
                        let error = describe_chain(&*source);
                        tracing::warn!(entry = self.subject.name(), error, "handler failed");
                    }
                    match self.subject {
                        CallTarget::Tool(_) => HandlerOutput::Tool(CallToolResult::error(shown)),
                        _ => return Err(ProtocolError::Other(ErrorObject::new(INTERNAL_ERROR, shown))),
                    }
                }
            },
        };
        match finished {
            HandlerOutput::Tool(mut result) => {
                if let CallTarget::Tool(entry) = &self.subject
                    && let Some(violations) = entry.output_violation(&result)
                {
                    let name = &entry.definition.name;
                    tracing::error!(entry = name, "result does not match the output schema:\n{violations}");
                    let text = format!(
                        "Tool {name:?} returned a result that does not match its output schema:\n{violations}"
                    );
                    result = CallToolResult::error(text);
                }
                result.shape(revision);
                let meta = result.meta.take();
                self.server.write_complete(out, revision, &result, meta, CachePolicy::Unsaid);
            }
            HandlerOutput::Prompt(mut result) => {
                result.shape(revision);
                let meta = result.meta.take();
                self.server.write_complete(out, revision, &result, meta, CachePolicy::Unsaid);
            }
            HandlerOutput::Resource(mut result) => {
                result.shape(revision);
                let meta = result.meta.take();
                let answered = self.params.get("inputResponses").or(self.params.get("requestState"));
                let cache = match answered {
                    Some(_) => CachePolicy::Never,
                    None => self.server.cache_policy(&self.caller),
                };
                self.server.write_complete(out, revision, &result, meta, cache);
            }
            HandlerOutput::Listed(mut page, cache) => {
                page.resources.iter_mut().for_each(|resource| resource.shape(revision));
                self.server.write_complete(out, revision, &page, None, cache);
            }
            HandlerOutput::Completed(completion) => {
                let result = completion::completion_result(completion);
                self.server.write_complete(out, revision, &result, None, CachePolicy::Unsaid);
            }
            HandlerOutput::TaskResult(result, meta) => {
                self.server.write_complete(out, revision, &result, Some(meta), CachePolicy::Unsaid);
            }
            HandlerOutput::Listened(meta) => {
                self.server.write_complete(out, revision, &json!({}), Some(meta), CachePolicy::Unsaid);
            }
        }
        Ok(())
    }
}
