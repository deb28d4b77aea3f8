//! `runIndexer` starts a run of an indexer and waits for its end. `getIndexerStatus` returns its status
//! and history.

pub(crate) mod status;
pub(crate) mod watch;

use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_openapi::count_fitting;
use bindpost_mcp_protocol::lifecycle::LogLevel;
use bindpost_mcp_server::{Context, Entry, TaskSupport, ToolEntry, ToolError, ToolHints};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::status::{Fingerprint, IndexerExecution, IndexerStatus};
use self::watch::{RunBaseline, RunOutcome, follow};
use crate::service::client::{ServiceResponse, odata_key};
use crate::service::failure::ServiceFailure;
use crate::shared::SearchServerState;
use crate::tools::builder::{DESTROYS, READS, ToolOutline, into_members};

/// Default timeout. It is shorter than the ten minutes that a task is kept, so that the result can
/// still be fetched.
const PATIENCE: Duration = Duration::from_secs(570);
/// Default number of earlier runs in `getIndexerStatus`.
const HISTORY: usize = 3;

/// Returns both tools. `runIndexer` is omitted in read-only mode.
pub(crate) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let mut entries = Vec::new();
    if !shared.read_only {
        entries.push(run_tool(shared).into());
    }
    entries.push(status_tool(shared).into());
    entries
}

fn run_tool(shared: &Arc<SearchServerState>) -> ToolEntry {
    let description = "Runs an indexer now and waits for its end, with progress: items done and failed, the first errors \
        and warnings. If it runs already, waits for that run. A failed run is an error with the same JSON.";
    let properties = json!({
        "indexerName": {"type": "string", "minLength": 1},
        "wait": {"type": "boolean", "default": true, "description": "false: only start it"},
        "reset": {"type": "boolean", "default": false,
            "description": "reset change tracking and index everything again, after confirmation if the client supports it"},
        "timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": 86400,
            "description": "stop waiting after this time (default 570); the run continues"},
        "clientRequestId": {"type": "string"}
    });
    let hints = ToolHints { destructive: false, idempotent: false, ..DESTROYS };
    ToolOutline::new("runIndexer", description, hints, properties, &["indexerName"])
        .typed(shared, run)
        .task(TaskSupport::WhenPossible)
        .timeout(None)
}

fn status_tool(shared: &Arc<SearchServerState>) -> ToolEntry {
    let description = "State of an indexer: the current or last run, with counts, errors and warnings, and \
        earlier runs. To find out why runs fail use diagnoseIndexer.";
    let properties = json!({
        "indexerName": {"type": "string", "minLength": 1},
        "history": {"type": "integer", "minimum": 0, "maximum": 50, "description": "number of earlier runs (default 3)"},
        "clientRequestId": {"type": "string"}
    });
    ToolOutline::new("getIndexerStatus", description, READS, properties, &["indexerName"])
        .typed(shared, report_status)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunArguments {
    indexer_name: String,
    wait: Option<bool>,
    reset: Option<bool>,
    timeout_seconds: Option<u64>,
    client_request_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusArguments {
    indexer_name: String,
    history: Option<usize>,
    client_request_id: Option<String>,
}

async fn run(
    shared: Arc<SearchServerState>,
    context: Context,
    arguments: RunArguments,
) -> Result<Value, ToolError> {
    let (name, id) = (arguments.indexer_name.as_str(), arguments.client_request_id.as_deref());
    let resets = arguments.reset.unwrap_or(false);
    if resets {
        let question = format!(
            "Reset the indexer \"{name}\" and run it? Its change tracking is deleted, and every item is indexed again."
        );
        shared.confirm(&context, &question).await?;
    }
    let patience = arguments.timeout_seconds.map_or(PATIENCE, Duration::from_secs);
    let run = IndexerRunRequest { shared: &shared, context: &context, name, id, patience };
    let mut told = match arguments.wait.unwrap_or(true) {
        true => run.start_and_wait(resets).await?,
        false => run.start_only(resets).await?,
    };
    if matches!(told.get("status").and_then(Value::as_str), Some("transientFailure" | "error")) {
        told.extend(id.map(|id| ("clientRequestId".to_owned(), id.into())));
        return Err(ToolError::new(format!("{:#}", Value::Object(told))));
    }
    Ok(Value::Object(told))
}

/// Runs an indexer to its end and returns the result, for other tools.
pub(crate) async fn run_to_completion(
    shared: &SearchServerState,
    context: &Context,
    name: &str,
) -> Result<Map<String, Value>, ServiceFailure> {
    IndexerRunRequest { shared, context, name, id: None, patience: PATIENCE }.start_and_wait(false).await
}

/// The request of one run.
struct IndexerRunRequest<'a> {
    shared: &'a SearchServerState,
    context: &'a Context,
    name: &'a str,
    id: Option<&'a str>,
    patience: Duration,
}

impl IndexerRunRequest<'_> {
    async fn start_only(&self, resets: bool) -> Result<Map<String, Value>, ServiceFailure> {
        self.reset(resets).await?;
        let attached = self.start().await?.is_none();
        let next = format!("call getIndexerStatus with indexerName \"{}\" to see its progress", self.name);
        Ok(into_members(
            json!({"indexerName": self.name, "status": "started", "attached": attached, "next": next}),
        ))
    }

    async fn start_and_wait(&self, resets: bool) -> Result<Map<String, Value>, ServiceFailure> {
        let client = &self.shared.client;
        self.reset(resets).await?;
        let mut before =
            RunBaseline::from_status(&IndexerStatus::read(client, self.name, self.id).await?, resets);
        let attached = match self.start().await? {
            Some(answer) => {
                before.taken_at(service_time(&answer));
                false
            }
            None => {
                before.attach();
                let text = format!("The indexer {:?} is already running; waiting for that run.", self.name);
                self.context.log(LogLevel::Info, Some("runIndexer"), text).await;
                true
            }
        };
        let unwatched = UnwatchedRunNotice(self.name);
        let followed = follow(client, self.context, self.name, self.id, before, self.patience).await;
        std::mem::forget(unwatched);
        let followed = followed.map_err(|failure| {
            failure.with("started", "the run was requested and may continue; call getIndexerStatus to see it")
        });
        let mut told = match followed? {
            RunOutcome::Over(status, run) => execution_json(&status, &run),
            RunOutcome::Broken(status) => {
                let mut told = status.last().map(IndexerExecution::to_json).unwrap_or_default();
                told.insert("status".to_owned(), "error".into());
                told
            }
            RunOutcome::TimedOut(status, run) => self.timed_out(status, run),
        };
        told.insert("indexerName".to_owned(), self.name.into());
        told.insert("attached".to_owned(), attached.into());
        Ok(told)
    }

    async fn reset(&self, resets: bool) -> Result<(), ServiceFailure> {
        if resets {
            let path = format!("indexers{}/search.reset", odata_key(self.name));
            let call = self.shared.client.call(http::Method::POST, path);
            call.request_id(self.id).send().await?;
        }
        Ok(())
    }

    /// Starts the run. Returns `None` if one is running already.
    async fn start(&self) -> Result<Option<ServiceResponse>, ServiceFailure> {
        let path = format!("indexers{}/search.run", odata_key(self.name));
        let call = self.shared.client.call(http::Method::POST, path);
        match call.request_id(self.id).send().await {
            Ok(answer) => Ok(Some(answer)),
            Err(failure) if failure.status == Some(409) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the known state of a run that continues after the timeout. This is not a failure.
    fn timed_out(&self, status: Option<IndexerStatus>, run: Option<Fingerprint>) -> Map<String, Value> {
        let known = status.zip(run).map(|(status, run)| execution_json(&status, &run));
        let mut told = known.unwrap_or_else(|| into_members(json!({"status": "pending"})));
        told.insert("timedOut".to_owned(), true.into());
        let next = format!(
            "the run continues; call getIndexerStatus with indexerName \"{}\", or runIndexer again to wait for it",
            self.name
        );
        told.insert("next".to_owned(), next.into());
        told
    }
}

/// Logs that a run continues without being watched. It is forgotten if the run was watched to its end.
struct UnwatchedRunNotice<'a>(&'a str);

impl Drop for UnwatchedRunNotice<'_> {
    fn drop(&mut self) {
        tracing::info!(
            indexer = self.0,
            "the call was cancelled; the indexer run continues in the service and is no longer watched"
        );
    }
}

fn execution_json(status: &IndexerStatus, run: &Fingerprint) -> Map<String, Value> {
    let run = status.oldest_first().find(|execution| execution.fingerprint() == *run);
    run.map(IndexerExecution::to_json).unwrap_or_default()
}

/// Returns the time of the response by the clock of the service.
fn service_time(answer: &ServiceResponse) -> Option<DateTime<Utc>> {
    let date = answer.headers.get(http::header::DATE)?.to_str().ok()?;
    DateTime::parse_from_rfc2822(date).ok().map(|date| date.to_utc())
}

async fn report_status(
    shared: Arc<SearchServerState>,
    _: Context,
    arguments: StatusArguments,
) -> Result<Value, ToolError> {
    let (name, id) = (arguments.indexer_name.as_str(), arguments.client_request_id.as_deref());
    let status = IndexerStatus::read(&shared.client, name, id).await?;
    let last = status.last();
    // A last run that has ended is also in the history.
    let earlier =
        status.history().filter(|run| last.is_none_or(|last| last.fingerprint() != run.fingerprint()));
    let history: Vec<Value> = earlier
        .take(arguments.history.unwrap_or(HISTORY))
        .map(|run| {
            let mut told = run.to_json();
            // Earlier runs are shown without empty members.
            told.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
            Value::Object(told)
        })
        .collect();
    let history = history.get(..count_fitting(&history, shared.answer_bytes / 2)).unwrap_or_default();
    Ok(json!({
        "indexerName": name,
        "status": status.overall(),
        "isRunning": last.is_some_and(IndexerExecution::is_under_way),
        "lastResult": last.map(IndexerExecution::to_json),
        "history": history,
        "nextMode": status.mode(),
    }))
}
