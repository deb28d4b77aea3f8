//! Events of workers: their start and exit, console lines and log records.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::limits::{CATEGORY, LINE};
use super::wire::proto::RpcLog;

/// Receives the events of workers. By default, every method does nothing.
///
/// The tasks that read from workers call these methods, so an implementation must not block.
pub trait WorkerEvents: Send + Sync + 'static {
    /// A worker is ready for invocations.
    fn worker_started(&self, worker: WorkerNumber, about: &WorkerDetails) {
        let _ = (worker, about);
    }
    /// A worker's process or stream has ended, either intentionally or not.
    fn worker_exited(&self, worker: WorkerNumber, reason: &str) {
        let _ = (worker, reason);
    }
    /// A worker that exited will be replaced after a delay.
    fn worker_restarting(&self, reason: &str, delay: Duration) {
        let _ = (reason, delay);
    }
    /// Workers exited too often. No further worker is started. The host should exit with an error.
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
    /// Console lines, or log records outside of invocations, exceeded the rate limit and were dropped. They
    /// are counted separately and reported at most once a second.
    fn dropped(&self, worker: WorkerNumber, lines: u64) {
        let _ = (worker, lines);
    }
}

/// Ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvents;

impl WorkerEvents for NoEvents {}

/// The number of a worker of the app: 1, 2, 3 … in the order of their starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerNumber(pub u64);

impl fmt::Display for WorkerNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The properties that a worker reported.
#[derive(Clone, Debug, Default)]
pub struct WorkerDetails {
    /// The process id.
    pub pid: u32,
    /// `python`, `node`, `java` …
    pub runtime: String,
    pub runtime_version: String,
    pub worker_version: String,
    /// The worker's capabilities. A capability is enabled if its value is not empty.
    pub capabilities: HashMap<String, String>,
}

/// One line of a worker's console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsoleLine<'a> {
    pub text: &'a str,
    pub from: ConsoleSource,
    /// Whether it was written to stderr.
    pub stderr: bool,
}

/// The source of a console line.
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
    /// The text, truncated to 64 KiB.
    pub message: String,
    /// Message and stack of a logged exception. It contains local paths and is not sent to MCP clients.
    pub exception: Option<String>,
}

/// The severity of a log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogSeverity {
    Trace,
    Debug,
    Information,
    Warning,
    Error,
    Critical,
}

/// The source of a log record.
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

    /// Returns the total size of its texts, in bytes.
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

/// Truncates the text to at most `limit` bytes, at a character boundary.
pub(super) fn truncate_text(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.shrink_to_fit();
    }
    text
}
