//! Writes the events and logs of workers as log events, with the target `worker` for their processes and
//! `function` for the logs of functions.
//!
//! `logging.logLevel` of `host.json` sets the level.

use std::time::Duration;

use tokio::sync::watch;

use crate::app::{LogLevel, LogLevels};
use crate::invocation::{FunctionFailure, LogSink};
use crate::worker::{
    ConsoleLine, ConsoleSource, LogOrigin, LogRecord, LogSeverity, WorkerDetails, WorkerEvents, WorkerNumber,
};

/// Logs the events of workers, and stores the reason if they fail permanently.
#[derive(Debug)]
pub(crate) struct EventLogger {
    failed: watch::Sender<Option<String>>,
    levels: LogLevels,
}

impl EventLogger {
    pub(crate) fn new(failed: watch::Sender<Option<String>>, levels: LogLevels) -> EventLogger {
        EventLogger { failed, levels }
    }
}

/// Writes a log record of a function or, without a function, of its worker.
pub(crate) fn write(levels: &LogLevels, function: Option<&str>, log: &LogRecord) {
    let LogRecord { level, origin, category, message, exception } = log;
    let least = match function {
        Some(function) => levels.level(&format!("Function.{function}.User")),
        None => levels.level(category),
    };
    if severity(*level) < least {
        return;
    }
    // Public workers log every request they get at a level that users see.
    let level = match (origin, level) {
        (LogOrigin::System | LogOrigin::Metric, LogSeverity::Information) => &LogSeverity::Debug,
        _ => level,
    };
    let name = function.unwrap_or_default();
    let exception = exception.as_deref().map(|text| format!("\n{text}")).unwrap_or_default();
    macro_rules! say {
        ($($said:tt)*) => {
            match origin {
                LogOrigin::User => tracing::event!(target: "function", $($said)*),
                LogOrigin::System | LogOrigin::Metric => tracing::event!(target: "worker", $($said)*),
            }
        };
    }
    match level {
        LogSeverity::Trace => say!(tracing::Level::TRACE, name, "{message}{exception}"),
        LogSeverity::Debug => say!(tracing::Level::DEBUG, name, "{message}{exception}"),
        LogSeverity::Information => say!(tracing::Level::INFO, name, "{message}{exception}"),
        LogSeverity::Warning => say!(tracing::Level::WARN, name, "{message}{exception}"),
        LogSeverity::Error | LogSeverity::Critical => {
            say!(tracing::Level::ERROR, name, "{message}{exception}")
        }
    }
}

/// Writes the failure of a function to the log.
pub(crate) fn log_failure(function: &str, failure: &FunctionFailure) {
    match failure.stack() {
        Some(stack) => tracing::error!(target: "function", function, "failed: {failure}\n{stack}"),
        None => tracing::error!(target: "function", function, "failed: {failure}"),
    }
}

/// Writes the logs of a function to the console.
pub(crate) struct ConsoleLogSink<'a> {
    pub(crate) levels: &'a LogLevels,
    pub(crate) function: &'a str,
}

impl LogSink for ConsoleLogSink<'_> {
    async fn receive_log(&self, log: LogRecord) {
        write(self.levels, Some(self.function), &log);
    }
}

fn severity(level: LogSeverity) -> LogLevel {
    match level {
        LogSeverity::Trace => LogLevel::Trace,
        LogSeverity::Debug => LogLevel::Debug,
        LogSeverity::Information => LogLevel::Information,
        LogSeverity::Warning => LogLevel::Warning,
        LogSeverity::Error => LogLevel::Error,
        LogSeverity::Critical => LogLevel::Critical,
    }
}

impl WorkerEvents for EventLogger {
    fn worker_started(&self, worker: WorkerNumber, about: &WorkerDetails) {
        let WorkerDetails { pid, runtime, runtime_version, .. } = about;
        tracing::debug!(target: "worker", %worker, pid, "started: {runtime} {runtime_version}");
    }

    fn worker_exited(&self, worker: WorkerNumber, reason: &str) {
        tracing::debug!(target: "worker", %worker, "exited: {reason}");
    }

    fn worker_restarting(&self, reason: &str, delay: Duration) {
        tracing::warn!(target: "worker", "{reason}; restarting in {:.1} s", delay.as_secs_f32());
    }

    fn workers_failed(&self, reason: &str) {
        tracing::error!(target: "worker", "{reason}");
        self.failed.send_replace(Some(reason.to_owned()));
    }

    fn console(&self, worker: WorkerNumber, line: ConsoleLine<'_>) {
        let text = line.text;
        match line.from {
            ConsoleSource::User => tracing::info!(target: "function", "{text}"),
            // The public Node worker prints the reason for its exit only here, after `[error]`.
            ConsoleSource::Worker => match text.split_once(']') {
                Some(("[error", text)) => tracing::error!(target: "worker", %worker, "{}", text.trim_start()),
                Some(("[warn", text)) => tracing::warn!(target: "worker", %worker, "{}", text.trim_start()),
                _ => tracing::debug!(target: "worker", %worker, "{text}"),
            },
        }
    }

    fn log(&self, _worker: WorkerNumber, log: LogRecord) {
        write(&self.levels, None, &log);
    }

    fn dropped(&self, worker: WorkerNumber, lines: u64) {
        tracing::warn!(target: "worker", %worker, "{lines} lines were dropped: they came too fast");
    }
}
