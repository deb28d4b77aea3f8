//! [`RunningCall`]: the future that runs a call, with its admission, timeout and cancellation.
//!
//! Most handlers finish at the first poll. Therefore the timer, the stream and the entry in the session's
//! list of running calls are created only when a call has to wait.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use bindpost_mcp_protocol::tasks::Task;
use bindpost_mcp_protocol::{RequestId, jsonrpc};
use futures_util::FutureExt as _;
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::Sleep;
use tracing::{Instrument as _, Span};

use super::{Call, CallTarget, HandlerFuture, HandlerOutput};
use crate::budget::ByteReservation;
use crate::call::answer::EncodedResponse;
use crate::call::scheduler::{CallAdmission, PermitFuture};
use crate::call::tasks::TaskState;
use crate::call::{task_requests, task_result};
use crate::dispatch::DispatchOutcome;
use crate::error::{ProtocolError, ToolError};
use crate::handler::context::Context;
use crate::peer::stream::MessageStream;
use crate::result_envelope::CachePolicy;

/// The approximate number of bytes in memory for each byte of JSON text.
const VALUE_SIZE: usize = 4;

/// The time that a cancelled handler gets to clean up, if it waits for the cancellation.
const CLEANUP_TIME: Duration = Duration::from_millis(100);

/// A running call. Poll it to its end, or drop it to cancel it.
///
/// Its output is `None` if the call was cancelled, because a cancelled request gets no response.
#[derive(Debug)]
pub struct RunningCall {
    call: Arc<Call>,
    method: &'static str,
    stage: CallStage,
    timeout: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    task_start: TaskStart,
    /// Fires when the call should be answered before its end.
    early: Option<Pin<Box<Sleep>>>,
    noted: bool,
    /// The bytes of the request that are held while the call waits.
    held: Option<ByteReservation>,
    span: Span,
    started: Option<Instant>,
}

/// Whether and when a call becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStart {
    /// Never by itself. Its handler may decide so.
    Never,
    AtOnce,
    /// When it has run for this time. The client does not know tasks and gets a result that says so.
    After(Duration),
}

enum CallStage {
    /// The call is queued, and the handler has not started.
    Waiting(Box<PermitFuture>, Option<HandlerFuture>),
    Working(HandlerFuture),
    Over,
}

impl std::fmt::Debug for CallStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CallStage::Waiting(..) => "Waiting",
            CallStage::Working(_) => "Working",
            CallStage::Over => "Over",
        })
    }
}

impl RunningCall {
    /// Starts a handler when the scheduler admits it.
    pub(crate) fn start(
        call: Arc<Call>,
        method: &'static str,
        timeout: Option<Duration>,
        task_start: TaskStart,
        make: impl FnOnce(Context) -> HandlerFuture,
    ) -> DispatchOutcome {
        if call.server.budget.is_exhausted() {
            return call.refuse(&ProtocolError::Overloaded { retry_after_seconds: 5 });
        }
        if let Some(session) = call.peer.session()
            && session.running_calls() >= call.server.limits.calls_per_session
        {
            return call.refuse(&ProtocolError::Busy { retry_after_seconds: 1 });
        }
        if call.revision().asks_by_result()
            && let Err(error) = call.resume(method)
        {
            return call.refuse(&error);
        }
        let handler = make(Context::new(call.clone()));
        let stage = match call.server.turns.admit(|| call.client_key()) {
            CallAdmission::Now(place) => {
                *call.lock_permit() = Some(place);
                CallStage::Working(handler)
            }
            CallAdmission::Later(waiting) => CallStage::Waiting(Box::new(waiting), Some(handler)),
            CallAdmission::Refused => return call.refuse(&ProtocolError::Busy { retry_after_seconds: 1 }),
        };
        DispatchOutcome::Running(RunningCall::with(call, method, timeout, task_start, stage))
    }

    /// Starts a listener. It needs no permit and has no timeout.
    pub(crate) fn start_listener(
        call: Arc<Call>,
        method: &'static str,
        make: impl FnOnce(Arc<Call>) -> HandlerFuture,
    ) -> DispatchOutcome {
        let handler = make(call.clone());
        let stage = CallStage::Working(handler);
        DispatchOutcome::Running(RunningCall::with(call, method, None, TaskStart::Never, stage))
    }

    fn with(
        call: Arc<Call>,
        method: &'static str,
        timeout: Option<Duration>,
        task_start: TaskStart,
        stage: CallStage,
    ) -> RunningCall {
        let span = tracing::info_span!(
            "request",
            method,
            entry = call.subject.name(),
            revision = call.revision().as_str(),
            caller = call.caller.kind().as_str(),
        );
        let started = (!span.is_disabled()).then(Instant::now);
        if !span.is_disabled() {
            tracing::debug!(parent: &span, arguments = call.params.as_json(), "started");
        }
        RunningCall {
            call,
            method,
            stage,
            timeout,
            timer: None,
            task_start,
            early: None,
            noted: false,
            held: None,
            span,
            started,
        }
    }

    /// Returns the id of the request.
    pub fn id(&self) -> &RequestId {
        &self.call.id
    }

    /// Returns the call's own stream, if a message was sent already.
    pub fn stream(&self) -> Option<&Arc<MessageStream>> {
        self.call.own_stream.get()
    }

    /// Returns the call's own stream. Creates it if necessary.
    pub fn open_stream(&self) -> Option<&Arc<MessageStream>> {
        self.call.stream()
    }

    /// Returns a handle that can cancel the call.
    pub fn canceller(&self) -> CallCanceller {
        CallCanceller(Arc::downgrade(&self.call))
    }

    /// Returns whether the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// Lets a handler that waits for the cancellation clean up in the background. It keeps its permit, so
    /// that cancelled calls do not exceed the limit of running ones.
    fn let_clean_up(&mut self) {
        if !self.call.watches_cancellation.load(Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        if let CallStage::Working(handler) = std::mem::replace(&mut self.stage, CallStage::Over) {
            let permit = self.call.lock_permit().take();
            let cleaning_up = async move {
                let handler = AssertUnwindSafe(handler).catch_unwind();
                let _ = tokio::time::timeout(CLEANUP_TIME, handler).await;
                drop(permit);
            };
            runtime.spawn(cleaning_up.instrument(self.span.clone()));
        }
    }

    fn mark_over(&mut self, outcome: &str) {
        self.stage = CallStage::Over;
        self.timer = None;
        self.call.release_permit();
        if let Some(started) = self.started {
            let ms = started.elapsed().as_secs_f64() * 1000.0;
            tracing::info!(parent: &self.span, outcome, duration_ms = ms, "finished");
        }
    }

    fn finish_call(&mut self, outcome: Result<HandlerOutput, ToolError>) -> Poll<Option<EncodedResponse>> {
        let word = match &outcome {
            Ok(HandlerOutput::Tool(result)) if result.is_error => "tool error",
            Ok(_) => "ok",
            Err(_) => "error",
        };
        if let Some(task) = self.call.task.get() {
            let mut result = Vec::new();
            let outcome = match self.call.write_result(&mut result, outcome) {
                Ok(()) => Ok(serde_json::from_slice(&result).unwrap_or(Value::Null)),
                Err(error) => Err(error.to_object(self.call.revision())),
            };
            task.finish(outcome, self.call.server.budget.reserve_anyway(VALUE_SIZE * result.len()));
            self.mark_over(word);
            return Poll::Ready(None);
        }
        let answer = self.call.finish(outcome);
        self.mark_over(word);
        Poll::Ready(Some(answer))
    }

    /// Ends the round if the handler wants input from the client or wants to become a task.
    fn finish_round(&mut self) -> Option<Poll<Option<EncodedResponse>>> {
        if self.call.task.get().is_some() {
            return None;
        }
        if !self.call.input_requests().wanted.is_empty() {
            let answer = match self.call.input_required(self.method) {
                Ok(result) => self.encode("input_required", &result),
                Err(error) => EncodedResponse::from_error(&self.call.id, &error, self.call.revision()),
            };
            self.mark_over("input required");
            return Some(Poll::Ready(Some(answer)));
        }
        if self.call.wants_task.load(Ordering::Acquire) {
            return Some(self.become_task());
        }
        None
    }

    /// Moves the handler into the background and answers with the task.
    fn become_task(&mut self) -> Poll<Option<EncodedResponse>> {
        let tasks = self.call.server.tasks.clone();
        let made = tasks.map(|tasks| tasks.make(&self.call));
        let task = match made {
            Some(Ok(task)) => task,
            Some(Err(error)) => return self.finish_call(Err(error.into())),
            None => {
                let error = ProtocolError::Internal("tasks are not enabled".to_owned());
                return self.finish_call(Err(error.into()));
            }
        };
        let answer = self.encode_task(&task.to_task());
        self.move_to_background(task);
        Poll::Ready(Some(answer))
    }

    /// Answers a call that takes long, for a client that does not know tasks, and moves the handler into the background.
    /// Returns `None` if that is not possible now.
    fn answer_early(&mut self) -> Option<EncodedResponse> {
        // A client that is asked knows that the call is running.
        if self.call.input_requests().open > 0 {
            return None;
        }
        let task = self.call.server.tasks.clone()?.make(&self.call).ok()?;
        let answer = self.call.finish(Ok(HandlerOutput::Tool(task_result::running(&task.to_task()))));
        self.move_to_background(task);
        Some(answer)
    }

    /// Lets the handler continue as a task.
    fn move_to_background(&mut self, task: Arc<TaskState>) {
        let lifetime = task.lifetime();
        let _ = self.call.task.set(task);
        // The task store has its own limit, so a task does not hold a permit.
        self.call.release_permit();
        let in_background = RunningCall {
            call: self.call.clone(),
            method: self.method,
            stage: std::mem::replace(&mut self.stage, CallStage::Over),
            timeout: Some(lifetime),
            timer: None,
            task_start: TaskStart::Never,
            early: None,
            noted: false,
            held: self.held.take(),
            span: self.span.clone(),
            started: self.started.take(),
        };
        tokio::spawn(in_background);
    }

    /// Encodes the answer to a call that became a task.
    fn encode_task(&self, task: &Task) -> EncodedResponse {
        if !self.call.revision().has_handshake() {
            return self.encode("task", task);
        }
        let mut message = Vec::with_capacity(512);
        jsonrpc::write_result_start(&mut message, &self.call.id);
        let (revision, result) = (self.call.revision(), task_requests::created_task(task));
        self.call.server.write_complete(&mut message, revision, &result, None, CachePolicy::Unsaid);
        message.push(jsonrpc::RESULT_END);
        EncodedResponse::from_message(message)
    }

    fn encode(&self, result_type: &str, result: &impl Serialize) -> EncodedResponse {
        let mut message = Vec::with_capacity(512);
        jsonrpc::write_result_start(&mut message, &self.call.id);
        self.call.server.write_typed(&mut message, result_type, result);
        message.push(jsonrpc::RESULT_END);
        EncodedResponse::from_message(message)
    }

    /// Registers the call for cancellation and starts its timeout, the first time it has to wait.
    ///
    /// Returns `false` if the byte budget for waiting calls is exhausted.
    fn register_once(&mut self) -> bool {
        if !std::mem::replace(&mut self.noted, true) {
            if self.held.is_none() {
                self.held = self.call.server.budget.reserve(self.call.params.size());
                if self.held.is_none() {
                    return false;
                }
            }
            if let Some(place) = &mut *self.call.lock_permit() {
                place.record_holder(|| self.call.client_key());
            }
            if let Some(session) = self.call.peer.session() {
                session.add_running_call(&self.call);
            }
            self.timer = self.timeout.map(|timeout| Box::pin(tokio::time::sleep(timeout)));
            self.start_early_timer();
        }
        true
    }
}

impl RunningCall {
    fn start_early_timer(&mut self) {
        if let TaskStart::After(time) = self.task_start {
            self.early = Some(Box::pin(tokio::time::sleep(time)));
        }
    }
}

impl Future for RunningCall {
    type Output = Option<EncodedResponse>;

    fn poll(self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Option<EncodedResponse>> {
        let this = self.get_mut();
        let span = this.span.clone();
        let _entered = span.enter();
        loop {
            if this.call.is_cancelled() {
                if let Some(task) = this.call.task.get() {
                    task.mark_cancelled();
                }
                this.let_clean_up();
                this.mark_over("cancelled");
                return Poll::Ready(None);
            }
            if this.task_start == TaskStart::AtOnce {
                this.task_start = TaskStart::Never;
                return this.become_task();
            }
            match &mut this.stage {
                CallStage::Over => return Poll::Ready(None),
                CallStage::Waiting(turn, handler) => match Pin::new(&mut **turn).poll(context) {
                    Poll::Ready(Some(place)) => {
                        *this.call.lock_permit() = Some(place);
                        this.stage = handler.take().map_or(CallStage::Over, CallStage::Working);
                        continue;
                    }
                    Poll::Ready(None) => {
                        return this.finish_call(Err(ProtocolError::Busy { retry_after_seconds: 1 }.into()));
                    }
                    Poll::Pending => {}
                },
                CallStage::Working(handler) => {
                    match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context))) {
                        Ok(Poll::Ready(outcome)) => return this.finish_call(outcome),
                        Ok(Poll::Pending) => {
                            if let Some(end) = this.finish_round() {
                                return end;
                            }
                        }
                        Err(panic) => {
                            let what = panic_text(&*panic);
                            tracing::error!(entry = this.call.subject.name(), "handler panicked: {what}");
                            let error = ProtocolError::Internal("the handler panicked".to_owned());
                            return this.finish_call(Err(error.into()));
                        }
                    }
                }
            }
            if !this.register_once() {
                return this.finish_call(Err(ProtocolError::Overloaded { retry_after_seconds: 5 }.into()));
            }
            this.call.driver.register(context.waker());
            if this.call.is_cancelled() {
                continue;
            }
            if let Some(early) = &mut this.early
                && early.as_mut().poll(context).is_ready()
            {
                if let Some(answer) = this.answer_early() {
                    return Poll::Ready(Some(answer));
                }
                this.start_early_timer();
                continue;
            }
            if let Some(timer) = &mut this.timer
                && timer.as_mut().poll(context).is_ready()
            {
                let timeout = this.timeout.unwrap_or_default();
                if this.call.task.get().is_some() {
                    // The task has expired, so its result cannot be fetched.
                    this.call.cancel();
                    continue;
                }
                if this.call.input_requests().open > 0 {
                    // The timeout does not include the time in which the user answers.
                    this.timer = Some(Box::pin(tokio::time::sleep(timeout)));
                    continue;
                }
                this.call.cancelled.store(true, Ordering::Release);
                this.call.cancel_signal.notify_waiters();
                this.let_clean_up();
                let text = format!("timed out after {} s", timeout.as_secs_f64());
                return this.finish_call(Err(match this.call.subject {
                    CallTarget::Tool(_) => ToolError::new(format!("{:?} {text}", this.call.subject.name())),
                    _ => ProtocolError::Internal(text).into(),
                }));
            }
            return Poll::Pending;
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if !matches!(self.stage, CallStage::Over) {
            // The transport gave up the call, for instance because the client disconnected. Work that the
            // handler spawned can see the cancellation.
            self.call.cancel();
            self.let_clean_up();
            self.mark_over("dropped");
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// A handle that can cancel a call.
#[derive(Debug, Clone)]
pub struct CallCanceller(std::sync::Weak<Call>);

impl CallCanceller {
    /// Cancels the call if it still runs and has this id. Returns whether it did.
    pub fn cancel_if(&self, id: &RequestId) -> bool {
        match self.0.upgrade().filter(|call| call.id == *id && call.is_awaited()) {
            Some(call) => {
                call.cancel();
                true
            }
            None => false,
        }
    }

    /// Ends the call with its result if it is a listener, or waits for a task. Other calls continue.
    pub fn end_listening(&self) {
        if let Some(call) = self.0.upgrade() {
            call.ending.store(true, Ordering::Release);
            if matches!(call.subject, CallTarget::Changes | CallTarget::TaskResult) {
                call.cancel_signal.notify_waiters();
            }
        }
    }

    /// Returns whether the call has ended.
    pub fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }
}
