//! The response of `search.status`: an indexer's runs.

use chrono::DateTime;
use serde_json::{Map, Value, json};

use crate::service::client::{SearchClient, odata_key};
use crate::service::failure::ServiceFailure;

/// Maximum length of a message in characters. Services put whole stack traces into messages.
const LONGEST_MESSAGE: usize = 1000;
/// Maximum number of errors and warnings of a run.
const MAX_MESSAGES: usize = 10;

/// A response of `search.status`.
#[derive(Clone, Debug)]
pub(crate) struct IndexerStatus(Value);

/// One run in the response: in progress, ended, or the entry of a reset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexerExecution<'a>(&'a Value);

/// Identifies a run. Times alone may be equal, because a service may round to seconds.
pub(crate) type Fingerprint = (String, String, String);

impl IndexerStatus {
    /// Requests the status from the service.
    pub(crate) async fn read(
        client: &SearchClient,
        indexer: &str,
        request_id: Option<&str>,
    ) -> Result<IndexerStatus, ServiceFailure> {
        let call = client.get(format!("indexers{}/search.status", odata_key(indexer)));
        Ok(IndexerStatus(call.request_id(request_id).send().await?.body))
    }

    /// Returns `running`, `error` or `unknown`: the status of the indexer, not of a run.
    pub(crate) fn overall(&self) -> &str {
        text(&self.0, "status")
    }

    /// Returns the current run, or else the last one.
    pub(crate) fn last(&self) -> Option<IndexerExecution<'_>> {
        self.0.get("lastResult").filter(|last| last.is_object()).map(IndexerExecution)
    }

    /// Returns the runs that have ended, newest first.
    pub(crate) fn history(&self) -> impl DoubleEndedIterator<Item = IndexerExecution<'_>> {
        self.0.get("executionHistory").and_then(Value::as_array).into_iter().flatten().map(IndexerExecution)
    }

    /// Returns all known runs, oldest first. The last one may occur twice.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = IndexerExecution<'_>> {
        self.history().rev().chain(self.last())
    }

    /// Returns the mode of the next run: all changes, or only reset documents.
    pub(crate) fn mode(&self) -> Option<&str> {
        self.0.pointer("/currentState/mode").and_then(Value::as_str)
    }
}

impl<'a> IndexerExecution<'a> {
    pub(crate) fn fingerprint(self) -> Fingerprint {
        (self.start().to_owned(), self.end().unwrap_or_default().to_owned(), self.status().to_owned())
    }

    /// Returns `inProgress`, `success`, `transientFailure` or `reset`.
    pub(crate) fn status(self) -> &'a str {
        text(self.0, "status")
    }

    pub(crate) fn is_under_way(self) -> bool {
        self.status() == "inProgress"
    }

    pub(crate) fn start(self) -> &'a str {
        text(self.0, "startTime")
    }

    pub(crate) fn end(self) -> Option<&'a str> {
        self.0.get("endTime").and_then(Value::as_str)
    }

    pub(crate) fn processed(self) -> u64 {
        self.0.get("itemsProcessed").and_then(Value::as_u64).unwrap_or(0)
    }

    pub(crate) fn failed(self) -> u64 {
        self.0.get("itemsFailed").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Returns whether it indexed only documents that were reset.
    pub(crate) fn is_retry(self) -> bool {
        text(self.0, "mode") == "indexingResetDocs" || text(self.0, "statusDetail") == "resetDocs"
    }

    /// Returns why the run as a whole failed.
    pub(crate) fn message(self) -> Option<&'a str> {
        self.0.get("errorMessage").and_then(Value::as_str).filter(|message| !message.is_empty())
    }

    pub(crate) fn errors(self) -> impl Iterator<Item = ExecutionIssue<'a>> {
        self.items("errors", "errorMessage")
    }

    pub(crate) fn warnings(self) -> impl Iterator<Item = ExecutionIssue<'a>> {
        self.items("warnings", "message")
    }

    fn items(self, list: &str, message: &'static str) -> impl Iterator<Item = ExecutionIssue<'a>> {
        let items = self.0.get(list).and_then(Value::as_array).into_iter().flatten();
        items.map(move |item| ExecutionIssue { json: item, message: text(item, message) })
    }

    /// Returns the duration, if the run has ended.
    pub(crate) fn seconds(self) -> Option<f64> {
        let start = DateTime::parse_from_rfc3339(self.start()).ok()?;
        let end = DateTime::parse_from_rfc3339(self.end()?).ok()?;
        let milliseconds = end.signed_duration_since(start).num_milliseconds();
        Some(f64::from(i32::try_from(milliseconds).unwrap_or(i32::MAX)) / 1000.0)
    }

    /// Returns the run as JSON: counts, times, and the first errors and warnings.
    pub(crate) fn to_json(self) -> Map<String, Value> {
        let mut told = Map::new();
        let mut put = |name: &str, value: Value| _ = told.insert(name.to_owned(), value);
        put("status", self.status().into());
        put("itemsProcessed", self.processed().into());
        put("itemsFailed", self.failed().into());
        put("startTime", self.start().into());
        put("endTime", self.end().into());
        put("durationSeconds", self.seconds().into());
        if let Some(message) = self.message() {
            put("errorMessage", cut(message).into());
        }
        put("errors", self.errors().take(MAX_MESSAGES).map(ExecutionIssue::to_json).collect());
        put("warnings", self.warnings().take(MAX_MESSAGES).map(ExecutionIssue::to_json).collect());
        let (errors, warnings) = (self.errors().count(), self.warnings().count());
        if errors > MAX_MESSAGES || warnings > MAX_MESSAGES {
            put("listed", json!({"errors": errors, "warnings": warnings}));
        }
        told
    }
}

/// An error or a warning about one item of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExecutionIssue<'a> {
    json: &'a Value,
    pub(crate) message: &'a str,
}

impl<'a> ExecutionIssue<'a> {
    /// Returns the key of the document, or the URL of the item.
    pub(crate) fn key(self) -> Option<&'a str> {
        self.json.get("key").and_then(Value::as_str).filter(|key| !key.is_empty())
    }

    /// Returns the step of the run in which it happened.
    pub(crate) fn name(self) -> Option<&'a str> {
        self.json.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
    }

    /// Returns the position within the item, such as the row of a file.
    pub(crate) fn details(self) -> Option<&'a str> {
        self.json.get("details").and_then(Value::as_str).filter(|details| !details.is_empty())
    }

    fn to_json(self) -> Value {
        let mut told = Map::new();
        let members = ["key", "name", "statusCode", "details"];
        told.insert("message".to_owned(), cut(self.message).into());
        for member in members {
            if let Some(value) = self.json.get(member).filter(|value| !value.is_null()) {
                let value = value.as_str().map_or_else(|| value.clone(), |text| cut(text).into());
                told.insert(member.to_owned(), value);
            }
        }
        Value::Object(told)
    }
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST_MESSAGE).collect()
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}
