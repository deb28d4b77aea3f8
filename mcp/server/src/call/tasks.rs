//! The tasks extension: calls that outlive their request, in a bounded store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bindpost_mcp_protocol::tasks::{Task, TaskStatus};
use bindpost_mcp_protocol::{ErrorObject, meta};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::auth::Caller;
use crate::budget::ByteReservation;
use crate::call::Call;
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::ProtocolError;
use crate::peer::session::declares_extension;
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
    born: Instant,
    lifetime: Duration,
    state: Mutex<TaskRecord>,
}

#[derive(Debug)]
struct TaskRecord {
    shown: Task,
    /// The bytes of the server's budget that the result uses.
    held: Option<ByteReservation>,
    waiting: HashMap<String, oneshot::Sender<Value>>,
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
            born: Instant::now(),
            lifetime: self.limits.lifetime,
            state: Mutex::new(TaskRecord { shown, held: None, waiting: HashMap::new() }),
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

    /// Returns the task with this id, if it belongs to this caller and has not expired.
    fn find(&self, id: &str, caller: &Caller) -> Option<Arc<TaskState>> {
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

    /// Changes the task unless it has ended, and notifies its listeners.
    fn change(&self, change: impl FnOnce(&mut TaskRecord)) {
        let shown = {
            let mut state = self.state();
            if state.shown.status.is_terminal() {
                return;
            }
            change(&mut state);
            state.shown.last_updated_at = timestamp();
            state.shown.clone()
        };
        self.hub.announce(&ChangeNotification::Task(&shown));
    }

    /// Requests input from the client and waits for `tasks/update`. Returns `None` if the task ends first.
    pub(crate) async fn request_input(
        &self,
        key: &str,
        method: &'static str,
        question: &Value,
    ) -> Option<Value> {
        let (sender, answer) = oneshot::channel();
        self.change(|state| {
            state.waiting.insert(key.to_owned(), sender);
            let request = json!({"method": method, "params": question});
            state.shown.input_requests.insert(key.to_owned(), request);
            state.shown.status = TaskStatus::InputRequired;
        });
        answer.await.ok()
    }

    /// Delivers answers to the handler. Unknown keys are ignored.
    fn update(&self, answers: Map<String, Value>) {
        self.change(|state| {
            for (key, answer) in answers {
                if let Some(sender) = state.waiting.remove(&key) {
                    state.shown.input_requests.remove(&key);
                    let _ = sender.send(answer);
                }
            }
            if state.waiting.is_empty() && state.shown.status == TaskStatus::InputRequired {
                state.shown.status = TaskStatus::Working;
            }
        });
    }

    /// Ends the task. `held` reserves the bytes of the result.
    pub(crate) fn finish(&self, outcome: Result<Value, ErrorObject>, held: ByteReservation) {
        self.change(|state| {
            state.held = Some(held);
            state.waiting.clear();
            state.shown.input_requests.clear();
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

    pub(crate) fn mark_cancelled(&self) {
        self.change(|state| {
            state.waiting.clear();
            state.shown.input_requests.clear();
            state.shown.status = TaskStatus::Cancelled;
        });
    }
}

/// Returns the task that a request names, after the checks that all three methods share.
fn find_named_task(inbound: &InboundRequest, method: &str) -> Result<Arc<TaskState>, ProtocolError> {
    let params = inbound.request.params();
    let capabilities = params.meta(meta::CLIENT_CAPABILITIES).and_then(|raw| raw.decode().ok());
    if !declares_extension(&capabilities.unwrap_or_default(), meta::TASKS_EXTENSION) {
        let required = json!({"extensions": {meta::TASKS_EXTENSION: {}}});
        return Err(ProtocolError::MissingCapability(required));
    }
    let Some(id) = params.text("taskId") else {
        return Err(ProtocolError::invalid_params(method, "`taskId` must be a string"));
    };
    let tasks = inbound.server.tasks.as_ref();
    let task = tasks.and_then(|tasks| tasks.find(&id, &inbound.exchange.caller));
    task.ok_or_else(|| ProtocolError::invalid_params(method, format!("unknown task: {id}")))
}

/// `tasks/get`
pub(crate) fn get(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    match find_named_task(&inbound, "tasks/get") {
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
            task.update(answers);
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
            task.mark_cancelled();
            if let Some(call) = task.call.upgrade() {
                call.cancel();
            }
            inbound.answer(json!({}))
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
