//! What workers tell, as log events: `worker` for their processes, `function` for what functions say.

use std::time::Duration;

use tokio::sync::watch;

use crate::worker::{ConsoleLine, ConsoleSource, Events, Level, Log, WorkerAbout, WorkerNumber};

/// Passes on what workers tell, and remembers the last thing they do.
#[derive(Debug)]
pub(crate) struct Told {
    failed: watch::Sender<Option<String>>,
}

impl Told {
    pub(crate) fn new(failed: watch::Sender<Option<String>>) -> Told {
        Told { failed }
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
        tracing::warn!(target: "worker", "{reason}; starting again in {} s", delay.as_secs_f32());
    }

    fn workers_failed(&self, reason: &str) {
        tracing::error!(target: "worker", "{reason}");
        self.failed.send_replace(Some(reason.to_owned()));
    }

    fn console(&self, worker: WorkerNumber, line: ConsoleLine<'_>) {
        let text = line.text;
        match line.from {
            ConsoleSource::User => tracing::info!(target: "function", "{text}"),
            ConsoleSource::Worker => tracing::debug!(target: "worker", %worker, "{text}"),
        }
    }

    fn log(&self, worker: WorkerNumber, log: Log) {
        let Log { level, category, message, exception, .. } = log;
        let exception = exception.unwrap_or_default();
        match level {
            Level::Trace | Level::Debug => {
                tracing::debug!(target: "worker", %worker, category, "{message}{exception}")
            }
            Level::Information => tracing::info!(target: "worker", %worker, category, "{message}{exception}"),
            Level::Warning => tracing::warn!(target: "worker", %worker, category, "{message}{exception}"),
            Level::Error | Level::Critical => {
                tracing::error!(target: "worker", %worker, category, "{message}{exception}");
            }
        }
    }

    fn dropped(&self, worker: WorkerNumber, lines: u64) {
        tracing::warn!(target: "worker", %worker, "{lines} lines were dropped: they came too fast");
    }
}
