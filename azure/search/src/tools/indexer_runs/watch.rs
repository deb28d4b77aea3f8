//! Watches one run of an indexer to its end, and distinguishes it from earlier runs.

use std::collections::HashSet;
use std::time::Duration;

use bindpost_mcp_server::Context;
use chrono::{DateTime, Utc};
use tokio::time::{Instant, sleep, timeout_at};

use super::status::{Fingerprint, IndexerExecution, IndexerStatus};
use crate::service::client::SearchClient;
use crate::service::failure::{Kind, ServiceFailure};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// Maximum number of consecutive failed polls. A failed poll does not mean that the run has ended.
const PATIENT_POLLS: u32 = 5;
/// How long an earlier error of an indexer may remain visible after a run was requested.
const OLD_ERROR: Duration = Duration::from_secs(15);
/// After this time without another run, a run that seems to have ended too early is accepted as ours,
/// because clocks may differ.
const DOUBT: Duration = Duration::from_secs(20);

/// The known runs before the request of our run.
#[derive(Debug, Default)]
pub(super) struct RunBaseline {
    known: HashSet<Fingerprint>,
    /// The start of a run that was in progress. Its end is not the end of our run, unless we attach to it.
    under_way: Option<String>,
    was_broken: bool,
    /// The service's time in whole seconds when it accepted the run. A run that ended before is not
    /// ours, even if the first status did not contain it.
    taken: Option<DateTime<Utc>>,
    /// Our own reset creates an entry that is not a run. It may become visible late.
    awaits_reset: bool,
}

/// The result of waiting for a run.
#[derive(Debug)]
pub(super) enum RunOutcome {
    /// The run ended. The fingerprint identifies it in the status.
    Over(IndexerStatus, Fingerprint),
    /// The indexer is in error, and our run was not found.
    Broken(IndexerStatus),
    /// The timeout was reached. Contains the last status and our run in it.
    TimedOut(Option<IndexerStatus>, Option<Fingerprint>),
}

impl RunBaseline {
    pub(super) fn from_status(status: &IndexerStatus, was_reset: bool) -> RunBaseline {
        let last = status.last();
        RunBaseline {
            known: status.oldest_first().map(IndexerExecution::fingerprint).collect(),
            under_way: last.filter(|last| last.is_under_way()).map(|last| last.start().to_owned()),
            was_broken: status.overall() == "error",
            taken: None,
            awaits_reset: was_reset && last.is_none_or(|last| last.status() != "reset"),
        }
    }

    /// Sets the time at which the service accepted the run.
    pub(super) fn taken_at(&mut self, time: Option<DateTime<Utc>>) {
        self.taken = time;
    }

    /// Waits for the run that was already in progress.
    pub(super) fn attach(&mut self) {
        if let Some(start) = self.under_way.take() {
            self.known.retain(|(known, _, status)| *known != start || status != "inProgress");
        }
        // The current run is the attached one, whenever it ended.
        self.taken = None;
    }

    /// Returns our run: the oldest one in the status that was not known before. `waited` is the time
    /// since the request.
    fn find_our_run<'s>(
        &mut self,
        status: &'s IndexerStatus,
        waited: Duration,
    ) -> Option<IndexerExecution<'s>> {
        let mut doubtful = None;
        for execution in status.oldest_first() {
            let fingerprint = execution.fingerprint();
            if self.known.contains(&fingerprint) {
                continue;
            }
            let is_earlier = self.under_way.as_deref() == Some(execution.start());
            if is_earlier && execution.is_under_way() {
                continue;
            }
            let is_trace = self.awaits_reset && execution.status() == "reset";
            if is_earlier || is_trace {
                self.awaits_reset &= !is_trace;
                self.under_way = self.under_way.take().filter(|_| !is_earlier);
                self.known.insert(fingerprint);
                continue;
            }
            if self.ended_before(execution) {
                doubtful = doubtful.or(Some(execution));
                continue;
            }
            // Our run was found, so the doubtful one was not ours.
            self.known.extend(doubtful.map(IndexerExecution::fingerprint));
            return Some(execution);
        }
        doubtful.filter(|_| waited >= DOUBT)
    }

    /// Returns whether it ended before our run was accepted, by the clock of the service.
    fn ended_before(&self, execution: IndexerExecution<'_>) -> bool {
        let end = execution.end().and_then(|end| DateTime::parse_from_rfc3339(end).ok());
        end.zip(self.taken).is_some_and(|(end, taken)| end < taken)
    }
}

/// Polls until the run has ended or the timeout is reached. Dropping it stops polling, and the run
/// continues in the service.
pub(super) async fn follow(
    client: &SearchClient,
    context: &Context,
    indexer: &str,
    request_id: Option<&str>,
    mut before: RunBaseline,
    patience: Duration,
) -> Result<RunOutcome, ServiceFailure> {
    let asked = Instant::now();
    let deadline = asked + patience;
    let mut pause = FIRST_PAUSE;
    let mut failures = 0;
    let mut shown = 0;
    let mut latest: (Option<IndexerStatus>, Option<Fingerprint>) = (None, None);
    loop {
        // The first poll is immediate, because short runs may have ended.
        match timeout_at(deadline, IndexerStatus::read(client, indexer, request_id)).await {
            Err(_) => return Ok(RunOutcome::TimedOut(latest.0, latest.1)),
            Ok(Err(failure)) => {
                failures += 1;
                if failures >= PATIENT_POLLS || !is_transient(&failure) {
                    return Err(failure);
                }
                pause = pause.max(retry_after(&failure).unwrap_or(pause));
            }
            Ok(Ok(status)) => {
                failures = 0;
                let ours = before.find_our_run(&status, asked.elapsed());
                let fingerprint = ours.map(IndexerExecution::fingerprint);
                if let Some(run) = ours {
                    let items = run.processed() + run.failed();
                    // Progress must increase. Zero means that the run has started.
                    if items > shown || latest.1.is_none() {
                        shown = items;
                        report_progress(context, run, items).await;
                    }
                    if !run.is_under_way() {
                        let fingerprint = run.fingerprint();
                        return Ok(RunOutcome::Over(status, fingerprint));
                    }
                } else if status.overall() == "error" && (!before.was_broken || asked.elapsed() >= OLD_ERROR)
                {
                    return Ok(RunOutcome::Broken(status));
                }
                latest = (Some(status), fingerprint.or(latest.1));
            }
        }
        if timeout_at(deadline, sleep(pause)).await.is_err() {
            return Ok(RunOutcome::TimedOut(latest.0, latest.1));
        }
        pause = pause.mul_f64(1.5).min(LONGEST_PAUSE);
    }
}

async fn report_progress(context: &Context, run: IndexerExecution<'_>, items: u64) {
    let message = match (run.is_under_way(), run.failed()) {
        (true, 0) => format!("{} items indexed", run.processed()),
        (true, failed) => format!("{} items indexed, {failed} failed", run.processed()),
        (false, failed) => format!("{}: {} items indexed, {failed} failed", run.status(), run.processed()),
    };
    context.progress(f64::from(u32::try_from(items).unwrap_or(u32::MAX)), None, Some(&message)).await;
}

/// Returns whether the next poll may succeed.
pub(crate) fn is_transient(failure: &ServiceFailure) -> bool {
    matches!(failure.kind, Kind::RateLimited | Kind::ServerError)
}

/// Returns how long the service asks to wait, if it does.
pub(crate) fn retry_after(failure: &ServiceFailure) -> Option<Duration> {
    let seconds =
        failure.more.get("retryAfter")?.as_f64().filter(|seconds| (0.0..=300.0).contains(seconds))?;
    Some(Duration::from_secs_f64(seconds))
}
