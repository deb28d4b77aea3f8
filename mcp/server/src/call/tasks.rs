//! Tasks: calls that outlive their request, in a bounded store, and the methods of the tasks extension. The methods of
//! 2025-11-25 are in `task_requests.rs`, the tool for clients without tasks in `task_result.rs`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bindpost_mcp_protocol::tasks::{LegacyTask, Task, TaskStatus};
use bindpost_mcp_protocol::{ErrorObject, meta};
use serde_json::{Map, Value, json};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};

use crate::auth::Caller;
use crate::budget::ByteReservation;
use crate::call::Call;
use crate::call::ask::AskError;
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::ProtocolError;
use crate::handler::schema::shorten;
use crate::peer::session::{Session, declares_extension};
use crate::peer::subscriptions::{ChangeNotification, SubscriptionHub};
use crate::transport::HeaderValues;

/// The limits of the tasks extension.
#[derive(Clone, Copy, Debug)]
pub struct TaskLimits {
    /// The maximum number of tasks.
    pub tasks: usize,
    /// The maximum number of tasks of one caller.
    pub tasks_per_caller: usize,
    /// How long a task exists after its creation.
    pub lifetime: Duration,
    /// The interval at which a client should poll a task.
    pub poll_interval: Duration,
}

impl Default for TaskLimits {
    fn default() -> TaskLimits {
        TaskLimits {
            tasks: 1_000,
            tasks_per_caller: 100,
            lifetime: Duration::from_secs(600),
            poll_interval: Duration::from_millis(500),
        }
    }
}

/// The tasks of a server.
#[derive(Debug)]
pub(crate) struct TaskStore {
    limits: TaskLimits,
    hub: Arc<SubscriptionHub>,
    kept: Mutex<HashMap<String, Arc<TaskState>>>,
}

/// One task with its owner and its call.
#[derive(Debug)]
pub(crate) struct TaskState {
    caller: Caller,
    hub: Arc<SubscriptionHub>,
    call: Weak<Call>,
    /// The session in which the task was requested, in 2025-11-25.
    session: Option<Weak<Session>>,
    born: Instant,
    lifetime: Duration,
    state: Mutex<TaskRecord>,
    /// Wakes those who wait for a change.
    changed: Notify,
    /// Each request that waits for the end holds a clone.
    waiters: Arc<()>,
}

/// The maximum number of requests that wait for the end of one task. Their clients may not have sessions, which limit
/// other calls.
const MOST_WAITERS: usize = 16;

#[derive(Debug)]
struct TaskRecord {
    shown: Task,
    /// The bytes of the server's budget that the result uses.
    held: Option<ByteReservation>,
    waiting: HashMap<String, PendingQuestion>,
}

/// A question of a handler that waits for its answer.
#[derive(Debug)]
struct PendingQuestion {
    answer: oneshot::Sender<Result<Value, AskError>>,
    /// Whether the client is asked now, by a `tasks/result` request.
    is_taken: bool,
}

/// A question of a task that one request asks the client. If it is dropped without an answer, another request may ask it.
pub(crate) struct TakenQuestion {
    task: Arc<TaskState>,
    key: String,
    pub(crate) request: Value,
}

impl TakenQuestion {
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Passes the answer to the handler.
    pub(crate) fn answer(self, answer: Result<Value, AskError>) {
        self.task.answer([(self.key.clone(), answer)]);
    }
}

impl Drop for TakenQuestion {
    fn drop(&mut self) {
        if let Some(question) = self.task.state().waiting.get_mut(&self.key) {
            question.is_taken = false;
        }
    }
}

impl TaskStore {
    pub(crate) fn new(limits: TaskLimits, hub: Arc<SubscriptionHub>) -> TaskStore {
        TaskStore { limits, hub, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<String, Arc<TaskState>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a task for a call. Expired tasks are removed first. A full store rejects new tasks.
    pub(crate) fn make(&self, call: &Arc<Call>) -> Result<Arc<TaskState>, ProtocolError> {
        let now = timestamp();
        let shown = Task {
            task_id: crate::server::random_id(),
            status: TaskStatus::Working,
            status_message: None,
            created_at: now.clone(),
            last_updated_at: now,
            ttl_ms: Some(self.limits.lifetime.as_millis() as u64),
            poll_interval_ms: Some(self.limits.poll_interval.as_millis() as u64),
            input_requests: Map::new(),
            result: None,
            error: None,
        };
        let id = shown.task_id.clone();
        let task = Arc::new(TaskState {
            caller: call.caller().clone(),
            hub: self.hub.clone(),
            call: Arc::downgrade(call),
            // A client that has not requested the task does not know its notifications.
            session: call.peer().session().filter(|_| call.can_be_task()).map(Arc::downgrade),
            born: Instant::now(),
            lifetime: self.limits.lifetime,
            state: Mutex::new(TaskRecord { shown, held: None, waiting: HashMap::new() }),
            changed: Notify::new(),
            waiters: Arc::new(()),
        });
        let mut kept = self.kept();
        kept.retain(|_, task| !task.has_expired());
        let of_caller = kept.values().filter(|other| other.caller == task.caller).count();
        if kept.len() >= self.limits.tasks || of_caller >= self.limits.tasks_per_caller {
            return Err(ProtocolError::Busy { retry_after_seconds: 5 });
        }
        kept.insert(id, task.clone());
        Ok(task)
    }

    /// Returns the tasks that this caller started, oldest first. Anonymous callers cannot be told apart, so they see
    /// only those of their session.
    pub(crate) fn list(&self, caller: &Caller, session: Option<&Arc<Session>>) -> Vec<Task> {
        let kept = self.kept();
        let mut own: Vec<&Arc<TaskState>> = kept
            .values()
            .filter(|task| task.caller == *caller && !task.has_expired())
            .filter(|task| caller.is_authenticated() || session.is_some_and(|session| task.is_of(session)))
            .collect();
        own.sort_by_key(|task| task.born);
        own.into_iter().map(|task| task.to_task()).collect()
    }

    /// Returns the task with this id, if it belongs to this caller and has not expired.
    pub(crate) fn find(&self, id: &str, caller: &Caller) -> Option<Arc<TaskState>> {
        let task = self.kept().get(id).cloned()?;
        (task.caller == *caller && !task.has_expired()).then_some(task)
    }

    pub(crate) fn belongs_to(&self, id: &str, caller: &Caller) -> bool {
        self.find(id, caller).is_some()
    }
}

impl TaskState {
    fn state(&self) -> MutexGuard<'_, TaskRecord> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_expired(&self) -> bool {
        self.born.elapsed() > self.lifetime
    }

    pub(crate) fn lifetime(&self) -> Duration {
        self.lifetime
    }

    pub(crate) fn to_task(&self) -> Task {
        self.state().shown.clone()
    }

    fn is_of(&self, session: &Arc<Session>) -> bool {
        self.session.as_ref().is_some_and(|own| std::ptr::eq(own.as_ptr(), Arc::as_ptr(session)))
    }

    /// Returns the permission to wait for the end, unless too many requests wait. It lasts until it is dropped.
    pub(crate) fn wait_permit(&self) -> Option<Arc<()>> {
        let permit = self.waiters.clone();
        // The task itself has one.
        (Arc::strong_count(&self.waiters) <= MOST_WAITERS + 1).then_some(permit)
    }

    /// Waits for the next change after the first poll of the returned future, or after it was enabled.
    pub(crate) fn next_change(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Changes the task and notifies its listeners. Returns `false` if it has ended, and does nothing then.
    fn change(&self, change: impl FnOnce(&mut TaskRecord)) -> bool {
        let shown = {
            let mut state = self.state();
            if state.shown.status.is_terminal() {
                return false;
            }
            change(&mut state);
            state.shown.last_updated_at = timestamp();
            state.shown.clone()
        };
        self.changed.notify_waiters();
        self.hub.announce(&ChangeNotification::Task(&shown));
        if let Some(session) = &self.session {
            self.hub.announce(&ChangeNotification::TaskOfSession(session, &shown));
        }
        true
    }

    /// Requests input from the client and waits for the answer. It is an error if the task ends first.
    pub(crate) async fn request_input(
        &self,
        key: &str,
        method: &'static str,
        question: &Value,
    ) -> Result<Value, AskError> {
        let (sender, answer) = oneshot::channel();
        self.change(|state| {
            let pending = PendingQuestion { answer: sender, is_taken: false };
            state.waiting.insert(key.to_owned(), pending);
            let request = json!({"method": method, "params": question});
            state.shown.input_requests.insert(key.to_owned(), request);
            state.shown.status = TaskStatus::InputRequired;
        });
        answer.await.unwrap_or(Err(AskError::NoAnswer))
    }

    /// Returns a question that no other request asks now.
    pub(crate) fn take_question(self: &Arc<TaskState>) -> Option<TakenQuestion> {
        let mut state = self.state();
        let (key, question) = state.waiting.iter_mut().find(|(_, question)| !question.is_taken)?;
        question.is_taken = true;
        let key = key.clone();
        let request = state.shown.input_requests.get(&key).cloned().unwrap_or_default();
        drop(state);
        Some(TakenQuestion { task: self.clone(), key, request })
    }

    /// Delivers answers to the handler. Unknown keys are ignored.
    pub(crate) fn answer(&self, answers: impl IntoIterator<Item = (String, Result<Value, AskError>)>) {
        self.change(|state| {
            for (key, answer) in answers {
                if let Some(question) = state.waiting.remove(&key) {
                    state.shown.input_requests.remove(&key);
                    let _ = question.answer.send(answer);
                }
            }
            if state.waiting.is_empty() && state.shown.status == TaskStatus::InputRequired {
                state.shown.status = TaskStatus::Working;
            }
        });
    }

    /// Shows the progress of the handler as the status message.
    pub(crate) fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let text = match (message, total) {
            (Some(message), _) => shorten(message),
            (None, Some(total)) => format!("{progress} of {total}"),
            (None, None) => return,
        };
        if self.state().shown.status_message.as_ref() != Some(&text) {
            self.change(|state| state.shown.status_message = Some(text));
        }
    }

    /// Ends the task. `held` reserves the bytes of the result.
    pub(crate) fn finish(&self, outcome: Result<Value, ErrorObject>, held: ByteReservation) {
        self.change(|state| {
            state.held = Some(held);
            state.waiting.clear();
            state.shown.input_requests.clear();
            // The last step of a handler that has ended says nothing.
            state.shown.status_message = None;
            match outcome {
                Ok(result) => {
                    state.shown.status = TaskStatus::Completed;
                    state.shown.result = Some(result);
                }
                Err(error) => {
                    state.shown.status = TaskStatus::Failed;
                    state.shown.status_message = Some(error.message.clone());
                    state.shown.error = Some(error);
                }
            }
        });
    }

    /// Marks the task as cancelled, unless it has ended. Returns whether it did.
    pub(crate) fn mark_cancelled(&self) -> bool {
        self.change(|state| {
            state.waiting.clear();
            state.shown.input_requests.clear();
            state.shown.status_message = None;
            state.shown.status = TaskStatus::Cancelled;
        })
    }

    /// Cancels the task and its handler. Returns `false` if it had ended.
    pub(crate) fn cancel(&self) -> bool {
        let is_cancelled = self.mark_cancelled();
        if let Some(call) = self.call.upgrade() {
            call.cancel();
        }
        is_cancelled
    }
}

/// Returns the task that a request names, after the checks that all three methods share.
pub(crate) fn find_named_task(
    inbound: &InboundRequest,
    method: &str,
) -> Result<Arc<TaskState>, ProtocolError> {
    let params = inbound.request.params();
    let capabilities = params.meta(meta::CLIENT_CAPABILITIES).and_then(|raw| raw.decode().ok());
    // In 2025-11-25 only the server declares tasks of its own requests.
    if !inbound.revision().has_handshake()
        && !declares_extension(&capabilities.unwrap_or_default(), meta::TASKS_EXTENSION)
    {
        let required = json!({"extensions": {meta::TASKS_EXTENSION: {}}});
        return Err(ProtocolError::MissingCapability(required));
    }
    let Some(id) = params.text("taskId") else {
        return Err(ProtocolError::invalid_params(method, "`taskId` must be a string"));
    };
    let tasks = inbound.server.tasks.as_ref();
    let task = tasks.and_then(|tasks| tasks.find(&id, &inbound.exchange.caller));
    task.ok_or_else(|| ProtocolError::invalid_params(method, format!("unknown task: {}", shorten(&id))))
}

/// `tasks/get`
pub(crate) fn get(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    match find_named_task(&inbound, "tasks/get") {
        Ok(task) if inbound.revision().has_handshake() => inbound.answer(LegacyTask::from(&task.to_task())),
        Ok(task) => inbound.answer(task.to_task()),
        Err(error) => inbound.refuse(&error),
    }
}

/// `tasks/update`
pub(crate) fn update(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    let task = match find_named_task(&inbound, "tasks/update") {
        Ok(task) => task,
        Err(error) => return inbound.refuse(&error),
    };
    match inbound.request.params().get("inputResponses").map(|raw| raw.decode()) {
        Some(Ok(answers)) => {
            let answers: Map<String, Value> = answers;
            task.answer(answers.into_iter().map(|(key, answer)| (key, Ok(answer))));
            inbound.answer(json!({}))
        }
        _ => {
            let reason = "`inputResponses` must be an object with one answer per key";
            inbound.refuse(&ProtocolError::invalid_params("tasks/update", reason))
        }
    }
}

/// `tasks/cancel`
pub(crate) fn cancel(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    match find_named_task(&inbound, "tasks/cancel") {
        Ok(task) => {
            let is_cancelled = task.cancel();
            if !inbound.revision().has_handshake() {
                return inbound.answer(json!({}));
            }
            // 2025-11-25 rejects this for a task that has ended, and answers with the task.
            if !is_cancelled {
                let reason = "the task has ended and cannot be cancelled";
                return inbound.refuse(&ProtocolError::invalid_params("tasks/cancel", reason));
            }
            inbound.answer(LegacyTask::from(&task.to_task()))
        }
        Err(error) => inbound.refuse(&error),
    }
}

/// Returns the current time as RFC 3339 with milliseconds.
fn timestamp() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format_timestamp(since.as_secs(), since.subsec_millis())
}

fn format_timestamp(seconds: u64, millis: u32) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 1970-03-01 in the proleptic Gregorian calendar, counted from March so that the leap
    // day is the last of its year.
    let shifted = days as i64 + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_rfc_3339() {
        assert_eq!(format_timestamp(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(format_timestamp(951_782_399, 7), "2000-02-28T23:59:59.007Z");
        assert_eq!(format_timestamp(951_782_400, 0), "2000-02-29T00:00:00.000Z");
        assert_eq!(format_timestamp(1_785_196_800, 0), "2026-07-28T00:00:00.000Z");
    }
}
