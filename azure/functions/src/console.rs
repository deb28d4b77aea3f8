//! What workers tell, as log events: `worker` for their processes, `function` for what functions say.
//!
//! `logging.logLevel` of `host.json` decides how much of it.

use std::time::Duration;

use tokio::sync::watch;

use crate::app::{LogLevel, LogLevels};
use crate::worker::{ConsoleLine, ConsoleSource, Events, Level, Log, LogOrigin, WorkerAbout, WorkerNumber};

/// Passes on what workers tell, and remembers the last thing they do.
#[derive(Debug)]
pub(crate) struct Told {
    failed: watch::Sender<Option<String>>,
    levels: LogLevels,
}

impl Told {
    pub(crate) fn new(failed: watch::Sender<Option<String>>, levels: LogLevels) -> Told {
        Told { failed, levels }
    }
}

/// Writes what a function says, or, outside of any, its worker.
pub(crate) fn write(levels: &LogLevels, function: Option<&str>, log: &Log) {
    let Log { level, origin, category, message, exception } = log;
    let least = match function {
        Some(function) => levels.level(&format!("Function.{function}.User")),
        None => levels.level(category),
    };
    if severity(*level) < least {
        return;
    }
    // Public workers tell of every request they get, at the level of what users read.
    let level = match (origin, level) {
        (LogOrigin::System | LogOrigin::Metric, Level::Information) => &Level::Debug,
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
        Level::Trace => say!(tracing::Level::TRACE, name, "{message}{exception}"),
        Level::Debug => say!(tracing::Level::DEBUG, name, "{message}{exception}"),
        Level::Information => say!(tracing::Level::INFO, name, "{message}{exception}"),
        Level::Warning => say!(tracing::Level::WARN, name, "{message}{exception}"),
        Level::Error | Level::Critical => say!(tracing::Level::ERROR, name, "{message}{exception}"),
    }
}

fn severity(level: Level) -> LogLevel {
    match level {
        Level::Trace => LogLevel::Trace,
        Level::Debug => LogLevel::Debug,
        Level::Information => LogLevel::Information,
        Level::Warning => LogLevel::Warning,
        Level::Error => LogLevel::Error,
        Level::Critical => LogLevel::Critical,
    }
}

impl Events for Told {
    fn worker_started(&self, worker: WorkerNumber, about: &WorkerAbout) {
        let WorkerAbout { pid, runtime, runtime_version, .. } = about;
        tracing::debug!(target: "worker", %worker, pid, "started: {runtime} {runtime_version}");
    }

    fn worker_exited(&self, worker: WorkerNumber, reason: &str) {
        tracing::debug!(target: "worker", %worker, "exited: {reason}");
    }

    fn worker_restarting(&self, reason: &str, delay: Duration) {
        tracing::warn!(target: "worker", "{reason}; starting again in {:.1} s", delay.as_secs_f32());
    }

    fn workers_failed(&self, reason: &str) {
        tracing::error!(target: "worker", "{reason}");
        self.failed.send_replace(Some(reason.to_owned()));
    }

    fn console(&self, worker: WorkerNumber, line: ConsoleLine<'_>) {
        let text = line.text;
        match line.from {
            ConsoleSource::User => tracing::info!(target: "function", "{text}"),
            // Node's public worker says with `[error]` why it ends, and nowhere else.
            ConsoleSource::Worker => match text.split_once(']') {
                Some(("[error", text)) => tracing::error!(target: "worker", %worker, "{}", text.trim_start()),
                Some(("[warn", text)) => tracing::warn!(target: "worker", %worker, "{}", text.trim_start()),
                _ => tracing::debug!(target: "worker", %worker, "{text}"),
            },
        }
    }

    fn log(&self, _worker: WorkerNumber, log: Log) {
        write(&self.levels, None, &log);
    }

    fn dropped(&self, worker: WorkerNumber, lines: u64) {
        tracing::warn!(target: "worker", %worker, "{lines} lines were dropped: they came too fast");
    }
}
