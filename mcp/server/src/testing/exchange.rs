//! One operation of a test client from its request to its result: answers to `input_required` rounds, and
//! tasks. [`PendingCall`] is a tool call that runs meanwhile.

use std::collections::HashSet;
use std::future::{Future, IntoFuture};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindpost_mcp_protocol::CallToolResult;
use bindpost_mcp_protocol::tasks::{Task, TaskStatus};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use super::connection::{ClientConnection, SentRequest};
use super::failure::{CAPABILITIES, TestError};
use super::reply::{LogRecord, ProgressUpdate, ToolReply};

/// The maximum number of rounds with questions of one operation.
const MAX_ROUNDS: usize = 16;

/// What is known about an operation while it runs.
#[derive(Debug, Default)]
pub(super) struct OperationRecord {
    /// The ids of its requests, one for each round. They are its progress tokens too.
    ids: Vec<String>,
    task: Option<String>,
    cancelled: bool,
    over: bool,
}

/// The record of an operation, shared with its handle.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedRecord(Arc<Mutex<OperationRecord>>);

impl SharedRecord {
    fn lock(&self) -> MutexGuard<'_, OperationRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }
}

impl ClientConnection {
    /// Runs an operation to its end.
    pub(super) async fn run<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<T, TestError> {
        let record = SharedRecord::default();
        let sent = self.begin(method, &params, &record).await;
        decode_result(method, self.complete(method, params, sent, &record).await?)
    }

    /// Sends the first request of an operation.
    async fn begin(&self, method: &'static str, params: &Value, record: &SharedRecord) -> SentRequest {
        let sent = self.send_request(method, params.clone()).await;
        record.lock().ids.push(sent.id.clone());
        sent
    }

    /// Waits for the result of an operation. Answers the server's questions and follows a task.
    async fn complete(
        &self,
        method: &'static str,
        mut params: Value,
        mut sent: SentRequest,
        record: &SharedRecord,
    ) -> Result<Value, TestError> {
        let mut rounds = 0;
        loop {
            let mut result = self.response_unless(&sent, || record.is_cancelled()).await?;
            match result["resultType"].as_str() {
                Some("task") => return self.follow_task(decode_result(method, result)?, record).await,
                Some("input_required") => {}
                _ => return Ok(result),
            }
            let questions = result["inputRequests"].as_object().cloned().unwrap_or_default();
            if rounds == MAX_ROUNDS {
                return Err(TestError::TooManyRounds { rounds, questions: name_questions(&questions) });
            }
            rounds += 1;
            let answers = self.answer_all(&questions, record).await?;
            if let Value::Object(params) = &mut params {
                params.insert("requestState".to_owned(), result["requestState"].take());
                params.insert("inputResponses".to_owned(), answers.into());
            }
            sent = self.begin(method, &params, record).await;
        }
    }

    /// Answers the questions of one round, in order.
    async fn answer_all(
        &self,
        questions: &Map<String, Value>,
        record: &SharedRecord,
    ) -> Result<Map<String, Value>, TestError> {
        let answering = async {
            let mut answers = Map::new();
            for (key, question) in questions {
                let method = question["method"].as_str().unwrap_or_default();
                if !self.settings.answers.answers(method)
                    && let Some(known) = CAPABILITIES.iter().find(|capability| capability.method == method)
                {
                    return Err(known.unanswered());
                }
                let params = question.get("params").cloned().unwrap_or_else(|| json!({}));
                // A rejection has no form in `inputResponses`, so the client gives up.
                let answer = self.settings.answers.answer(method, params).await;
                answers.insert(key.clone(), answer.map_err(TestError::Protocol)?);
            }
            Ok(answers)
        };
        tokio::select! {
            biased;
            answers = answering => answers,
            cancelled = self.wait_for(|_| record.is_cancelled().then_some(())) => {
                cancelled?;
                Err(TestError::Cancelled)
            }
        }
    }

    /// Waits for the end of a task, and answers its questions. The server announces each change, so
    /// that the client needs no timer.
    async fn follow_task(&self, task: Task, record: &SharedRecord) -> Result<Value, TestError> {
        let id = task.task_id;
        record.lock().task = Some(id.clone());
        self.notify();
        let (listener, _) = self.listen(json!({"taskIds": [id]})).await?;
        let mut answered = HashSet::new();
        let known = self.request("tasks/get", json!({"taskId": id})).await?;
        let mut task: Task = decode_result("tasks/get", known)?;
        let outcome = loop {
            match task.status {
                TaskStatus::Completed => break Ok(task.result.unwrap_or_default()),
                TaskStatus::Cancelled => break Err(TestError::Cancelled),
                TaskStatus::Failed => {
                    break Err(task.error.map_or(TestError::Disconnected, TestError::Protocol));
                }
                TaskStatus::Working | TaskStatus::InputRequired => {}
            }
            let mut questions = task.input_requests;
            questions.retain(|key, _| answered.insert(key.clone()));
            if !questions.is_empty() {
                if answered.len() > MAX_ROUNDS {
                    let questions = name_questions(&questions);
                    break Err(TestError::TooManyRounds { rounds: MAX_ROUNDS, questions });
                }
                let answers = match self.answer_all(&questions, record).await {
                    Ok(answers) => answers,
                    Err(error) => break Err(error),
                };
                self.request("tasks/update", json!({"taskId": id, "inputResponses": answers})).await?;
            }
            task = self.wait_for(|state| state.tasks.remove(&id)).await?;
        };
        self.cancel_request(&listener).await;
        outcome
    }
}

/// A tool call that runs while the test continues.
///
/// Await it to get its result. The client answers the server's questions meanwhile.
///
/// ```
/// # use bindpost_mcp_server::{Context, Server, ToolEntry, testing::{TestClient, TestError}};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let copy = ToolEntry::new("copy", async |context: Context| {
///     context.progress(1.0, Some(2.0), Some("one file")).await;
///     std::future::pending::<String>().await
/// });
/// let server = Server::builder("files", "1.0.0").tool(copy).build()?;
///
/// let mut client = TestClient::connect(&server);
/// let mut call = client.start_call("copy", ()).await?;
/// let update = call.next_progress().await.unwrap();
/// assert_eq!((update.progress, update.total, update.message.as_deref()), (1.0, Some(2.0), Some("one file")));
/// call.cancel().await;
/// assert_eq!(call.await, Err(TestError::Cancelled));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "await the call to get its result"]
pub struct PendingCall {
    connection: Arc<ClientConnection>,
    record: SharedRecord,
    running: JoinHandle<Result<ToolReply, TestError>>,
    /// The number of logs before the call.
    first_log: usize,
    seen_progress: usize,
    seen_logs: usize,
}

/// Marks a call as over when it ends, also by a panic in a closure.
struct OverMark {
    connection: Arc<ClientConnection>,
    record: SharedRecord,
}

impl Drop for OverMark {
    fn drop(&mut self) {
        self.record.lock().over = true;
        self.connection.notify();
    }
}

impl PendingCall {
    /// Starts a call. The server has the request when this returns.
    pub(super) async fn start(connection: &Arc<ClientConnection>, params: Value) -> PendingCall {
        const METHOD: &str = "tools/call";
        let record = SharedRecord::default();
        let first_log = connection.lock().logs.len();
        let sent = connection.begin(METHOD, &params, &record).await;
        let running = {
            let (connection, record) = (connection.clone(), record.clone());
            async move {
                let _over = OverMark { connection: connection.clone(), record: record.clone() };
                let result = connection.complete(METHOD, params, sent, &record).await?;
                connection.tool_reply(decode_result(METHOD, result)?)
            }
        };
        let connection = connection.clone();
        let running = tokio::spawn(running);
        PendingCall { connection, record, running, first_log, seen_progress: 0, seen_logs: 0 }
    }

    /// Cancels the call. Its result is [`TestError::Cancelled`], unless the server has answered already.
    ///
    /// The client sends `notifications/cancelled`, or `tasks/cancel` if the call has become a task.
    pub async fn cancel(&mut self) {
        let (id, task) = {
            let record = self.record.lock();
            (record.ids.last().cloned(), record.task.clone())
        };
        match (task, id) {
            (Some(task), _) => {
                // The task is over if the server does not know it.
                let _ = self.connection.request("tasks/cancel", json!({"taskId": task})).await;
            }
            (None, Some(id)) => self.connection.cancel_request(&id).await,
            (None, None) => {}
        }
        self.record.lock().cancelled = true;
        self.connection.notify();
    }

    /// Returns the progress that the call has reported so far.
    pub fn progress(&self) -> Vec<ProgressUpdate> {
        let record = self.record.lock();
        let state = self.connection.lock();
        let own = state.progress.iter().filter(|(token, _)| record.ids.contains(token));
        own.map(|(_, update)| update.clone()).collect()
    }

    /// Returns the log messages that came since the call started. With several calls at once, they may
    /// belong to another one.
    pub fn logs(&self) -> Vec<LogRecord> {
        self.connection.lock().logs.iter().skip(self.first_log).cloned().collect()
    }

    /// Waits for the next progress of the call. Returns `None` once the call has ended.
    pub async fn next_progress(&mut self) -> Option<ProgressUpdate> {
        let (record, seen) = (self.record.clone(), self.seen_progress);
        let next = self.connection.wait_for(|state| {
            let record = record.lock();
            let mut own = state.progress.iter().filter(|(token, _)| record.ids.contains(token));
            match own.nth(seen) {
                Some((_, update)) => Some(Some(update.clone())),
                None => record.over.then_some(None),
            }
        });
        let next = next.await.ok().flatten();
        self.seen_progress += usize::from(next.is_some());
        next
    }

    /// Waits for the next log message. Returns `None` once the call has ended.
    pub async fn next_log(&mut self) -> Option<LogRecord> {
        let (record, position) = (self.record.clone(), self.first_log + self.seen_logs);
        let next = self.connection.wait_for(|state| match state.logs.get(position) {
            Some(log) => Some(Some(log.clone())),
            None => record.lock().over.then_some(None),
        });
        let next = next.await.ok().flatten();
        self.seen_logs += usize::from(next.is_some());
        next
    }

    /// Waits until the server has made the call a task. Returns the id of the task, or `None` if the call
    /// ends without one.
    pub async fn task_id(&mut self) -> Option<String> {
        let record = self.record.clone();
        let task = self.connection.wait_for(|_| {
            let record = record.lock();
            match &record.task {
                Some(id) => Some(Some(id.clone())),
                None => record.over.then_some(None),
            }
        });
        task.await.ok().flatten()
    }
}

impl IntoFuture for PendingCall {
    type Output = Result<ToolReply, TestError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.running.await {
                Ok(outcome) => outcome,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    Err(_) => Err(TestError::Disconnected),
                },
            }
        })
    }
}

impl ClientConnection {
    /// Returns the reply of a tool, or the error if it failed.
    pub(super) fn tool_reply(&self, result: CallToolResult) -> Result<ToolReply, TestError> {
        let reply = ToolReply::new(result);
        if !reply.is_error() {
            return Ok(reply);
        }
        let text = reply.text();
        let missing = CAPABILITIES.iter().find(|capability| {
            capability.is_missing_in_text(&text) && !self.settings.answers.answers(capability.method)
        });
        Err(missing.map_or(TestError::Tool(reply), |capability| capability.unanswered()))
    }
}

pub(super) fn decode_result<T: DeserializeOwned>(method: &str, result: Value) -> Result<T, TestError> {
    serde_json::from_value(result)
        .map_err(|error| TestError::invalid(format!("the result of {method}"), error))
}

fn name_questions(questions: &Map<String, Value>) -> String {
    let names = questions.iter().map(|(key, question)| {
        question["params"]["message"].as_str().map_or_else(|| key.clone(), str::to_owned)
    });
    names.collect::<Vec<_>>().join("; ")
}
