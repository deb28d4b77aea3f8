//! One call of a handler: its state. What drives it is in [`running`].

mod running;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;

use bindpost_mcp_protocol::lifecycle::{ClientCapabilities, Completion, LogLevel};
use bindpost_mcp_protocol::resources::ListResourcesResult;
use bindpost_mcp_protocol::{
    CallToolResult, GetPromptResult, Meta, Params, ReadResourceResult, RequestId, Revision, Shape, jsonrpc,
    meta,
};
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use serde_json::json;
use tokio::sync::Notify;

pub use running::{Canceller, Running};

use crate::answer::Answer;
use crate::ask::Asks;
use crate::auth::Caller;
use crate::dispatch::{Dispatch, Inbound};
use crate::error::{Failure, ProtocolError, ToolError};
use crate::peer::Peer;
use crate::prompt;
use crate::server::{Cache, Shared};
use crate::stream::Stream;
use crate::tasks::TaskState;
use crate::tool::ToolEntry;
use crate::transport::{Delivery, HttpRequest};
use crate::turns::{ClientKey, ClientPart, Place, Turn};

/// A handler at work.
pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = Result<Finished, ToolError>> + Send>>;

/// What a handler ends with.
#[derive(Debug)]
pub(crate) enum Finished {
    Tool(CallToolResult),
    Prompt(GetPromptResult),
    Resource(ReadResourceResult),
    Listed(ListResourcesResult),
    Completed(Completion),
    /// A listener's graceful end: nothing but `_meta`.
    Listened(Meta),
}

/// What a call is about.
#[derive(Debug)]
pub(crate) enum Subject {
    Tool(Arc<ToolEntry>),
    Prompt(String),
    Resource { uri: String, variables: Vec<(String, String)> },
    Changes,
    Listing,
    Completing,
}

impl Subject {
    pub(crate) fn name(&self) -> &str {
        match self {
            Subject::Tool(entry) => &entry.definition.name,
            Subject::Prompt(name) => name,
            Subject::Resource { uri, .. } => uri,
            Subject::Changes | Subject::Listing | Subject::Completing => "",
        }
    }
}

/// The state of one call, shared by its handler, its driver and whoever may cancel it.
#[derive(Debug)]
pub(crate) struct Call {
    server: Arc<Shared>,
    id: RequestId,
    params: Params,
    peer: Peer,
    caller: Caller,
    delivery: Delivery,
    http: Option<Arc<HttpRequest>>,
    subject: Subject,
    own_stream: OnceLock<Arc<Stream>>,
    cancelled: AtomicBool,
    /// A listener is asked to come to its graceful end.
    ending: AtomicBool,
    cancel_signal: Notify,
    driver: AtomicWaker,
    asks: Mutex<Asks>,
    /// Its place among the running calls, while it has one.
    place: Mutex<Option<Place>>,
    wants_task: AtomicBool,
    task: OnceLock<Arc<TaskState>>,
}

impl Call {
    pub(crate) fn new(inbound: Inbound, subject: Subject) -> Arc<Call> {
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
            ending: AtomicBool::new(false),
            cancel_signal: Notify::new(),
            driver: AtomicWaker::new(),
            asks: Mutex::default(),
            place: Mutex::new(None),
            wants_task: AtomicBool::new(false),
            task: OnceLock::new(),
        })
    }

    pub(crate) fn server(&self) -> &Arc<Shared> {
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
    pub(crate) fn delivery(&self) -> &Delivery {
        &self.delivery
    }
    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }
    pub(crate) fn revision(&self) -> Revision {
        self.peer.revision()
    }
    pub(crate) fn task(&self) -> Option<&Arc<TaskState>> {
        self.task.get()
    }

    /// Whether a client waits for the answer to this request. It does not once it was answered by a task.
    pub(crate) fn is_awaited(&self) -> bool {
        self.task.get().is_none()
    }

    pub(crate) fn asks(&self) -> MutexGuard<'_, Asks> {
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

    /// The least severe log message that is sent; `None` for none at all.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        match self.peer.session() {
            Some(session) => Some(session.log_level()),
            // Without a session nobody set a level; 2026-07-28 says it in the request.
            None => Peer::log_level_of(&self.params).ok().flatten(),
        }
    }

    /// The stream of this call, made now if it is made on demand.
    pub(crate) fn stream(&self) -> Option<&Arc<Stream>> {
        match &self.delivery {
            Delivery::None => None,
            Delivery::Shared(stream) => Some(stream),
            Delivery::OnDemand { keeps } => {
                Some(self.own_stream.get_or_init(|| match self.peer.session().filter(|_| *keeps) {
                    Some(session) => self.server.kept_stream(session),
                    None => self.server.new_stream(),
                }))
            }
        }
    }

    /// Sends a message that belongs to this call. `false`: nobody reads.
    pub(crate) async fn send(&self, message: Bytes) -> bool {
        if self.is_cancelled() {
            return false;
        }
        let Some(stream) = self.stream() else { return false };
        // The transport looks for a stream after each poll, and this handler may not be polled again
        // before there is room: wake its driver.
        self.driver.wake();
        stream.send(message).await
    }

    pub(crate) fn hang_up(&self) {
        if let Delivery::OnDemand { keeps: true } = self.delivery
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

    pub(crate) async fn cancelled(&self) {
        let signal = self.cancel_signal.notified();
        tokio::pin!(signal);
        signal.as_mut().enable();
        if !self.is_cancelled() {
            signal.await;
        }
    }

    /// Waits until the listener should come to its graceful end.
    pub(crate) async fn until_ending(&self) {
        let signal = self.cancel_signal.notified();
        tokio::pin!(signal);
        signal.as_mut().enable();
        if !self.ending.load(Ordering::Acquire) {
            signal.await;
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<Place>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn release_place(&self) {
        let place = self.place().take();
        drop(place);
    }

    /// Takes a place among the running calls again.
    pub(crate) async fn take_place(&self) {
        let place = match self.server.turns.enter_again(self.client_key()) {
            Turn::Now(place) => Some(place),
            Turn::Later(waiting) => waiting.await,
            Turn::Refused => None,
        };
        *self.place() = place;
    }

    /// Whose call it is, as far as turns go.
    fn client_key(&self) -> ClientKey {
        let address = || self.http.as_ref().and_then(|http| http.peer).map(|peer| peer.ip());
        let part = match (self.peer.session(), self.caller.is_authenticated()) {
            (Some(session), _) => ClientPart::Session(Arc::as_ptr(session).addr()),
            (None, true) => ClientPart::Any,
            (None, false) => address().map_or(ClientPart::Any, ClientPart::Address),
        };
        ClientKey { caller: self.caller.clone(), part }
    }

    /// Waits, in the handler, until its driver has made a task of the call.
    pub(crate) async fn go_on_as_task(&self) {
        if !matches!(self.subject, Subject::Tool(_)) || self.task.get().is_some() || !self.can_be_task() {
            return;
        }
        self.wants_task.store(true, Ordering::Release);
        let mut first = true;
        // Pending once: the driver sees the wish, makes the task and polls again.
        poll_fn(|context| {
            if std::mem::take(&mut first) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Refuses before a handler runs.
    pub(crate) fn refuse(&self, error: &ProtocolError) -> Dispatch {
        Dispatch::Answer(Answer::refused(&self.id, error, self.revision()))
    }

    fn finish(&self, outcome: Result<Finished, ToolError>) -> Answer {
        let mut message = Vec::with_capacity(256);
        jsonrpc::write_result_start(&mut message, &self.id);
        match self.write_result(&mut message, outcome) {
            Ok(()) => {
                message.push(jsonrpc::RESULT_END);
                Answer::whole(message)
            }
            Err(error) => Answer::refused(&self.id, &error, self.revision()),
        }
    }

    /// Appends the result as JSON, shaped for the peer's revision.
    fn write_result(
        &self,
        out: &mut Vec<u8>,
        outcome: Result<Finished, ToolError>,
    ) -> Result<(), ProtocolError> {
        let revision = self.revision();
        let finished = match outcome {
            Ok(finished) => finished,
            Err(error) => match error.into_failure() {
                Failure::Protocol(error @ ProtocolError::MissingCapability(_))
                    if revision.has_handshake() =>
                {
                    // The code for this is newer than the revision; the model can read why.
                    match self.subject {
                        Subject::Tool(_) => Finished::Tool(CallToolResult::error(error.to_string())),
                        _ => return Err(ProtocolError::Internal(error.to_string())),
                    }
                }
                Failure::Protocol(error) => return Err(error),
                Failure::Shown { shown, source } => {
                    if let Some(source) = source {
                        tracing::warn!(entry = self.subject.name(), error = %source, "handler failed");
                    }
                    match self.subject {
                        Subject::Tool(_) => Finished::Tool(CallToolResult::error(shown)),
                        _ => return Err(ProtocolError::Internal(shown)),
                    }
                }
            },
        };
        match finished {
            Finished::Tool(mut result) => {
                if let Subject::Tool(entry) = &self.subject
                    && let Some(violations) = entry.broken_promise(&result)
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
                self.server.write_complete(out, revision, &result, meta, Cache::Unsaid);
            }
            Finished::Prompt(mut result) => {
                result.shape(revision);
                let meta = result.meta.take();
                self.server.write_complete(out, revision, &result, meta, Cache::Unsaid);
            }
            Finished::Resource(mut result) => {
                result.shape(revision);
                let meta = result.meta.take();
                let answered = self.params.get("inputResponses").or(self.params.get("requestState"));
                let cache = if answered.is_some() { Cache::Never } else { Cache::AsSet };
                self.server.write_complete(out, revision, &result, meta, cache);
            }
            Finished::Listed(mut page) => {
                page.resources.iter_mut().for_each(|resource| resource.shape(revision));
                self.server.write_complete(out, revision, &page, None, Cache::AsSet);
            }
            Finished::Completed(completion) => {
                let result = prompt::answer(completion);
                self.server.write_complete(out, revision, &result, None, Cache::Unsaid);
            }
            Finished::Listened(meta) => {
                self.server.write_complete(out, revision, &json!({}), Some(meta), Cache::Unsaid);
            }
        }
        Ok(())
    }
}
