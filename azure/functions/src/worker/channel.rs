//! One stream to one worker, with either framing: requests, responses, invocations and logs.
//!
//! Responses are matched to requests by their kind and by function or invocation id. `request_id` is
//! used only for the status, because the public Python worker answers most requests with the id from
//! its command line.

pub(crate) mod calls;
pub(crate) mod invoke;
pub(crate) mod outbox;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use self::calls::{BeginInvocationError, InvocationAnswer, InvocationTable, LogQueueLimits};
use self::invoke::RunningInvocation;
use self::outbox::{CloseReason, SendError, WorkerOutbox};
use super::error::InvocationError;
use super::events::{LogRecord, WorkerEvents, WorkerNumber};
use super::http_stream::server_address;
use super::limits::WorkerLimits;
use super::process::console::RateLimiter;
use super::wire::framing::IncomingMessage;
use super::wire::indexing::{failure, load_request};
use super::wire::proto::streaming_message::Content;
use super::wire::proto::{
    FunctionLoadRequestCollection, FunctionLoadResponse, FunctionMetadataResponse, FunctionsMetadataRequest,
    InvocationCancel, InvocationResponse, StreamingMessage, WorkerInitRequest, WorkerInitResponse,
    WorkerStatusRequest, WorkerTerminate,
};
use crate::function::Function;
use crate::invocation::Invocation;

/// One stream to one worker.
pub(crate) struct WorkerChannel {
    worker: WorkerNumber,
    outbox: Arc<WorkerOutbox>,
    waiting_logs: LogQueueLimits,
    calls: InvocationTable,
    questions: Mutex<PendingRequests>,
    capabilities: OnceLock<HashMap<String, String>>,
    /// The address of the worker's HTTP server, if its HTTP functions stream.
    http_server: OnceLock<SocketAddr>,
    /// The results of load requests, by function id. An error is the reason why the worker could not load it.
    loaded: Mutex<HashMap<String, Result<(), String>>>,
    ended: watch::Sender<Option<String>>,
    events: Arc<dyn WorkerEvents>,
    meter: RateLimiter,
}

/// Requests without a response yet.
#[derive(Default)]
struct PendingRequests {
    init: Option<oneshot::Sender<WorkerInitResponse>>,
    metadata: Option<oneshot::Sender<FunctionMetadataResponse>>,
    loads: HashMap<String, oneshot::Sender<FunctionLoadResponse>>,
    status: HashMap<String, oneshot::Sender<()>>,
    ended: bool,
}

/// The stream ended before the response was received.
#[derive(Debug)]
pub(crate) struct StreamEnded;

/// Why an invocation was not started.
pub(crate) enum InvocationNotStarted {
    /// The stream ended before the invocation was sent. Another worker may run it.
    Unsent(Box<Invocation>),
    Failed(InvocationError),
}

impl From<InvocationError> for InvocationNotStarted {
    fn from(error: InvocationError) -> Self {
        Self::Failed(error)
    }
}

impl WorkerChannel {
    pub(crate) fn new(
        worker: WorkerNumber,
        outbox: Arc<WorkerOutbox>,
        limits: &WorkerLimits,
        events: Arc<dyn WorkerEvents>,
    ) -> Self {
        Self {
            worker,
            outbox,
            waiting_logs: LogQueueLimits { records: limits.waiting_logs, bytes: limits.waiting_log_bytes },
            calls: InvocationTable::default(),
            questions: Mutex::default(),
            capabilities: OnceLock::new(),
            http_server: OnceLock::new(),
            loaded: Mutex::default(),
            ended: watch::Sender::new(None),
            events,
            meter: RateLimiter::new(limits.lines_per_second),
        }
    }

    /// Sends the init request and stores the capabilities of the worker.
    pub(crate) async fn init(&self, request: WorkerInitRequest) -> Result<WorkerInitResponse, StreamEnded> {
        let answer = self.send_request(Content::WorkerInitRequest(request), |questions, sender| {
            questions.init = Some(sender);
        })?;
        let response = answer.await.map_err(|_| StreamEnded)?;
        let _ = self.capabilities.set(response.capabilities.clone());
        if let Some(uri) = response.capabilities.get("HttpUri") {
            self.set_http_server(uri);
        }
        Ok(response)
    }

    /// Returns whether the worker declared a capability. Any value that is not empty enables it.
    pub(crate) fn has_capability(&self, capability: &str) -> bool {
        self.capabilities
            .get()
            .and_then(|capabilities| capabilities.get(capability))
            .is_some_and(|value| !value.is_empty())
    }

    fn set_http_server(&self, uri: &str) {
        match server_address(uri) {
            Some(address) => drop(self.http_server.set(address)),
            None if uri.is_empty() => {}
            None => {
                let worker = self.worker;
                tracing::warn!(target: "worker", %worker, "its HTTP server {uri:?} is not on this machine, and is not used");
            }
        }
    }

    /// Returns the address of the worker's HTTP server, if its HTTP functions stream.
    pub(crate) fn http_server(&self) -> Option<SocketAddr> {
        self.http_server.get().copied()
    }

    /// Requests the list of functions. Call it only for workers that index: the public Java worker crashes
    /// on this request.
    pub(crate) async fn index(&self, app: &str) -> Result<FunctionMetadataResponse, StreamEnded> {
        let request = FunctionsMetadataRequest { function_app_directory: app.to_owned() };
        let answer = self.send_request(Content::FunctionsMetadataRequest(request), |questions, sender| {
            questions.metadata = Some(sender);
        })?;
        answer.await.map_err(|_| StreamEnded)
    }

    /// Makes the worker load functions. Failures are stored, and later invocations of those functions
    /// fail at once.
    pub(crate) async fn load(
        &self,
        functions: &[Arc<Function>],
        limit: Duration,
    ) -> Result<Vec<Result<(), String>>, StreamEnded> {
        // `None` for a function with a duplicate id, because responses could not be matched.
        let mut answers = Vec::with_capacity(functions.len());
        {
            let mut questions = self.questions();
            if questions.ended {
                return Err(StreamEnded);
            }
            for function in functions {
                let Slot::Vacant(question) = questions.loads.entry(function.id.clone()) else {
                    answers.push(None);
                    continue;
                };
                let (sender, receiver) = oneshot::channel();
                question.insert(sender);
                answers.push(Some(receiver));
            }
        }
        let requested = functions.iter().zip(&answers).filter(|(_, answer)| answer.is_some());
        let requests = requested.map(|(function, _)| load_request(function));
        if self.has_capability("SupportsLoadResponseCollection") {
            let collection = FunctionLoadRequestCollection { function_load_requests: requests.collect() };
            self.send(new_id(), Content::FunctionLoadRequestCollection(collection))
                .map_err(|_| StreamEnded)?;
        } else {
            for request in requests {
                self.send(new_id(), Content::FunctionLoadRequest(request)).map_err(|_| StreamEnded)?;
            }
        }
        let deadline = tokio::time::Instant::now() + limit;
        let mut results = Vec::with_capacity(functions.len());
        for (function, answer) in functions.iter().zip(answers) {
            let Some(answer) = answer else {
                results.push(Err(format!("another function has the same id, {:?}", function.id)));
                continue;
            };
            let result = match tokio::time::timeout_at(deadline, answer).await {
                Ok(Ok(response)) => {
                    self.set_http_server(&response.http_uri);
                    failure(response.result).map_or(Ok(()), |it| Err(it.message))
                }
                Ok(Err(_)) => return Err(StreamEnded),
                Err(_) => Err(format!("the worker did not load it within {} s", limit.as_secs_f32())),
            };
            self.loaded().insert(function.id.clone(), result.clone());
            results.push(result);
        }
        Ok(results)
    }

    /// Sends an invocation. Dropping the result cancels the invocation.
    pub(crate) fn invoke(
        self: &Arc<Self>,
        invocation: Invocation,
    ) -> Result<RunningInvocation, InvocationNotStarted> {
        self.check_loaded(&invocation.function)?;
        let call = match self.calls.begin(&invocation.id, self.waiting_logs) {
            Ok(call) => call,
            Err(BeginInvocationError::Closed) => {
                return Err(InvocationNotStarted::Unsent(Box::new(invocation)));
            }
            Err(BeginInvocationError::Duplicate) => {
                let reason = format!("invocation {} is running already", invocation.id);
                return Err(InvocationError::Message { reason }.into());
            }
        };
        let id = Arc::clone(&invocation.id);
        match self.outbox.send_invocation(invocation, self.calls.running_count()) {
            Ok(()) => Ok(RunningInvocation::new(Arc::clone(self), id, call)),
            Err(error) => {
                self.calls.forget(&id);
                let reason = error.to_string();
                Err(InvocationNotStarted::Failed(match error {
                    SendError::Ended => InvocationError::WorkerExited { reason },
                    SendError::TooLarge { .. } | SendError::Stuck => InvocationError::Message { reason },
                }))
            }
        }
    }

    fn check_loaded(&self, function: &Function) -> Result<(), InvocationError> {
        let message = match self.loaded().get(&function.id) {
            Some(Ok(())) => return Ok(()),
            Some(Err(message)) => message.clone(),
            None => "it is not a function of the app that is running now".to_owned(),
        };
        Err(InvocationError::NotLoaded { message })
    }

    /// Sends a status request and waits for the response.
    pub(crate) async fn status(&self) -> Result<(), StreamEnded> {
        let id = new_id();
        let (sender, receiver) = oneshot::channel();
        {
            let mut questions = self.questions();
            // Remove requests that timed out. The worker may never answer them.
            questions.status.retain(|_, sender| !sender.is_closed());
            questions.status.insert(id.clone(), sender);
        }
        self.send(id, Content::WorkerStatusRequest(WorkerStatusRequest {})).map_err(|_| StreamEnded)?;
        receiver.await.map_err(|_| StreamEnded)
    }

    /// Asks the worker to exit. Returns whether the worker supports this request and it was sent.
    pub(crate) fn terminate(&self, grace: Duration) -> bool {
        let request = WorkerTerminate { grace_period: Some(grace.into()) };
        self.has_capability("HandlesWorkerTerminateMessage")
            && self.send(new_id(), Content::WorkerTerminate(request)).is_ok()
    }

    /// Returns the number of running invocations, without cancelled ones.
    pub(crate) fn waiting_count(&self) -> usize {
        self.calls.waiting_count()
    }

    /// Returns the number of invocations that the worker has not answered, including cancelled ones.
    pub(crate) fn running_count(&self) -> usize {
        self.calls.running_count()
    }

    pub(crate) fn is_running(&self, invocation: &str) -> bool {
        self.calls.is_running(invocation)
    }

    /// Accepts no further invocations. Running ones continue.
    pub(crate) fn retire(&self) {
        self.calls.close();
    }

    /// Marks the stream as ended. No further invocations are accepted. Running ones fail when `fail_all` is
    /// called with the reason.
    pub(crate) fn end(&self, reason: &str) {
        self.calls.close();
        {
            // Dropping the senders ends the pending requests with an error.
            let mut questions = self.questions();
            *questions = PendingRequests { ended: true, ..PendingRequests::default() };
        }
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                *ended = Some(reason.to_owned());
            }
            first
        });
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Waits for the end of the stream and returns its reason.
    pub(crate) async fn wait_for_end(&self) -> String {
        let mut ended = self.ended.subscribe();
        match ended.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// Ends the stream from our side. Every invocation fails.
    pub(crate) fn fail_all(&self, reason: &str) {
        self.end(reason);
        self.calls.fail_all(reason);
        self.outbox.close(CloseReason::Done);
    }

    /// Handles one message of the worker.
    pub(crate) fn receive(&self, item: IncomingMessage) {
        let message = match item {
            IncomingMessage::Message(message) => *message,
            IncomingMessage::Answer(response) => return self.complete_invocation(response),
            IncomingMessage::Spoiled { invocation: Some(id), reason } => {
                return self.calls.answer(&id, InvocationAnswer::Spoiled(reason));
            }
            IncomingMessage::Spoiled { invocation: None, reason } => return self.log_error(reason),
        };
        match message.content {
            Some(Content::InvocationResponse(response)) => self.complete_invocation(Box::new(response)),
            Some(Content::RpcLog(log)) => {
                let id = log.invocation_id.clone();
                if let Err(log) = self.calls.log(&id, LogRecord::from_wire(log)) {
                    self.log(log);
                }
            }
            Some(Content::WorkerStatusResponse(_)) => {
                send_answer(self.questions().status.remove(&message.request_id), ());
            }
            Some(Content::FunctionLoadResponse(response)) => self.answer_load(response),
            Some(Content::FunctionLoadResponseCollection(collection)) => {
                collection.function_load_responses.into_iter().for_each(|it| self.answer_load(it));
            }
            Some(Content::FunctionMetadataResponse(response)) => {
                send_answer(self.questions().metadata.take(), response);
            }
            Some(Content::WorkerInitResponse(response)) => {
                send_answer(self.questions().init.take(), response)
            }
            // A second StartStream, messages that only a host sends, and unknown messages are ignored.
            _ => {}
        }
    }

    fn complete_invocation(&self, mut response: Box<InvocationResponse>) {
        let id = std::mem::take(&mut response.invocation_id);
        self.calls.answer(&id, InvocationAnswer::Response(response));
    }

    fn answer_load(&self, response: FunctionLoadResponse) {
        send_answer(self.questions().loads.remove(&response.function_id), response);
    }

    /// Reports dropped log records. This is needed when no further record arrives.
    pub(crate) fn report_dropped(&self) {
        self.report(self.meter.take_dropped());
    }

    fn report(&self, dropped: Option<u64>) {
        if let Some(dropped) = dropped {
            self.events.dropped(self.worker, dropped);
        }
    }

    fn log(&self, log: LogRecord) {
        let admitted = self.meter.admit();
        self.report(admitted.dropped_before);
        if admitted.now {
            self.events.log(self.worker, log);
        }
    }

    /// Logs an error that belongs to no invocation.
    fn log_error(&self, reason: String) {
        self.log(LogRecord {
            level: super::events::LogSeverity::Error,
            origin: super::events::LogOrigin::System,
            category: "bindpost".into(),
            message: reason,
            exception: None,
        });
    }

    /// Cancels an invocation. The worker is notified if it supports cancellation.
    pub(crate) fn abandon(&self, id: &str) {
        if self.calls.abandon(id) && self.has_capability("HandlesInvocationCancelMessage") {
            let cancel = InvocationCancel { invocation_id: id.to_owned(), grace_period: None };
            let _ = self.send(new_id(), Content::InvocationCancel(cancel));
        }
    }

    fn send_request<T>(
        &self,
        request: Content,
        keep: impl FnOnce(&mut PendingRequests, oneshot::Sender<T>),
    ) -> Result<oneshot::Receiver<T>, StreamEnded> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut questions = self.questions();
            if questions.ended {
                return Err(StreamEnded);
            }
            keep(&mut questions, sender);
        }
        self.send(new_id(), request).map_err(|_| StreamEnded)?;
        Ok(receiver)
    }

    fn send(&self, request_id: String, content: Content) -> Result<(), SendError> {
        let message = StreamingMessage { request_id, content: Some(content) };
        self.outbox.send(&message, self.calls.running_count())
    }

    fn questions(&self) -> MutexGuard<'_, PendingRequests> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loaded(&self) -> MutexGuard<'_, HashMap<String, Result<(), String>>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn send_answer<T>(question: Option<oneshot::Sender<T>>, answer: T) {
    if let Some(question) = question {
        let _ = question.send(answer);
    }
}

fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
