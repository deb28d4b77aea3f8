//! What workers have to tell besides the answers of invocations.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::limits::{CATEGORY, LINE};
use super::wire::proto::RpcLog;

/// Hears what happens to the workers. Every method does nothing unless it is implemented.
///
/// The calls come from the tasks that read from workers: an implementation must be quick and must not wait.
pub trait WorkerEvents: Send + Sync + 'static {
    /// A worker is ready for invocations.
    fn worker_started(&self, worker: WorkerNumber, about: &WorkerDetails) {
        let _ = (worker, about);
    }
    /// A worker's process or stream has ended, wanted or not.
    fn worker_exited(&self, worker: WorkerNumber, reason: &str) {
        let _ = (worker, reason);
    }
    /// A worker that ended will be replaced, after a delay.
    fn worker_restarting(&self, reason: &str, delay: Duration) {
        let _ = (reason, delay);
    }
    /// Workers ended too often; there will be no further start. The host should exit with an error.
    fn workers_failed(&self, reason: &str) {
        let _ = reason;
    }
    /// A line on a worker's stdout or stderr.
    fn console(&self, worker: WorkerNumber, line: ConsoleLine<'_>) {
        let _ = (worker, line);
    }
    /// A log record that belongs to no running invocation.
    fn log(&self, worker: WorkerNumber, log: LogRecord) {
        let _ = (worker, log);
    }
    /// Console lines, or log records outside invocations, above the rate were dropped. Both are counted apart, and
    /// reported once a second.
    fn dropped(&self, worker: WorkerNumber, lines: u64) {
        let _ = (worker, lines);
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvents;

impl WorkerEvents for NoEvents {}

/// Which worker of the app: 1, 2, 3 … in the order of their starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerNumber(pub u64);

impl fmt::Display for WorkerNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a worker said about itself.
#[derive(Clone, Debug, Default)]
pub struct WorkerDetails {
    /// The id of the process.
    pub pid: u32,
    /// `python`, `node`, `java` …
    pub runtime: String,
    pub runtime_version: String,
    pub worker_version: String,
    /// What the worker can do. A capability counts if its value is not empty, whatever it says.
    pub capabilities: HashMap<String, String>,
}

/// One line of a worker's console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsoleLine<'a> {
    pub text: &'a str,
    pub from: ConsoleSource,
    /// Whether it came on stderr.
    pub stderr: bool,
}

/// Who wrote a console line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleSource {
    /// The functions of the app.
    User,
    /// The worker itself.
    Worker,
}

/// One log record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    pub level: LogSeverity,
    pub origin: LogOrigin,
    /// The logger's name, at most 1 KiB.
    pub category: String,
    /// At most 64 KiB; the rest is cut off.
    pub message: String,
    /// Message and stack of an exception that was logged. Not for MCP clients: it holds local paths.
    pub exception: Option<String>,
}

/// How much a log record matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogSeverity {
    Trace,
    Debug,
    Information,
    Warning,
    Error,
    Critical,
}

/// Who wrote a log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOrigin {
    /// The function.
    User,
    /// The worker.
    System,
    /// A metric in the shape of a log record.
    Metric,
}

impl LogRecord {
    pub(super) fn from_wire(log: RpcLog) -> Self {
        let level = match log.level {
            0 => LogSeverity::Trace,
            1 => LogSeverity::Debug,
            3 => LogSeverity::Warning,
            4 => LogSeverity::Error,
            5 => LogSeverity::Critical,
            _ => LogSeverity::Information,
        };
        let origin = match log.log_category {
            1 => LogOrigin::System,
            2 => LogOrigin::Metric,
            _ => LogOrigin::User,
        };
        let exception = log
            .exception
            .filter(|it| !it.message.is_empty() || !it.stack_trace.is_empty())
            .map(|it| truncate_text(format!("{}\n{}", it.message, it.stack_trace), LINE));
        Self {
            level,
            origin,
            category: truncate_text(log.category, CATEGORY),
            message: truncate_text(log.message, LINE),
            exception,
        }
    }

    /// The bytes of its texts.
    pub(super) fn size(&self) -> usize {
        self.category.len() + self.message.len() + self.exception.as_ref().map_or(0, String::len)
    }

    pub(super) fn dropped_notice(count: u64) -> Self {
        Self {
            level: LogSeverity::Warning,
            origin: LogOrigin::System,
            category: "bindpost".into(),
            message: format!(
                "{count} log records of this invocation were dropped: they came faster than they could be passed on"
            ),
            exception: None,
        }
    }
}

/// The text, shortened to at most `limit` bytes at a character's border.
pub(super) fn truncate_text(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.shrink_to_fit();
    }
    text
}
