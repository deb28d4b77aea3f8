//! Timeouts and limits for workers.

use std::time::Duration;

/// Timeouts and limits for workers. The defaults are those of the Functions host, where it has one.
#[derive(Clone, Debug)]
pub struct WorkerLimits {
    /// The time from the start of a process to its first message.
    pub connect: Duration,
    /// The timeout for the response to the init request. Node's public worker configures two minutes.
    pub init: Duration,
    /// The timeout for the list of functions.
    pub index: Duration,
    /// The timeout for the responses to all load requests.
    pub load: Duration,
    /// How long an invocation waits when no worker is available.
    pub wait_for_worker: Duration,
    /// The grace period after the timeout of a cancelled or timed out invocation. A worker that has not
    /// answered by then is replaced.
    pub cancel_grace: Duration,
    /// How long the other invocations of a worker may continue while it is being replaced.
    pub drain: Duration,
    /// How long a worker may take to exit after `WorkerTerminate`.
    pub terminate: Duration,
    /// How long a worker may take to exit after SIGTERM, before SIGKILL.
    pub sigterm: Duration,
    /// The interval between two health checks of a worker, and the timeout of each.
    pub health_interval: Duration,
    /// The number of consecutive failed health checks, while invocations are pending, after which a
    /// worker is replaced.
    pub health_misses: u32,
    /// The minimum time between two process starts.
    pub start_spacing: Duration,
    /// The delay before the second restart. It doubles with each further restart. The first
    /// restart is immediate.
    pub restart_delay: Duration,
    /// The maximum restart delay.
    pub restart_delay_max: Duration,
    /// The number of restarts after crashes, for each process, within `restart_window`. Above it,
    /// the pool fails.
    pub restarts_per_process: usize,
    /// The time window for `restarts_per_process`.
    pub restart_window: Duration,
    /// The maximum size of one message in either direction, in bytes.
    pub message: usize,
    /// The maximum number of queued log records of one invocation. More are dropped and counted.
    pub waiting_logs: usize,
    /// The maximum size of those records, in bytes. More are dropped and counted.
    pub waiting_log_bytes: usize,
    /// The maximum number of console lines, or of log records outside of invocations, per second and worker.
    /// More are dropped and counted.
    pub lines_per_second: u32,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(60),
            init: Duration::from_secs(10),
            index: Duration::from_secs(60),
            load: Duration::from_secs(60),
            wait_for_worker: Duration::from_secs(10),
            cancel_grace: Duration::from_secs(5),
            drain: Duration::from_secs(25),
            terminate: Duration::from_secs(5),
            sigterm: Duration::from_secs(3),
            health_interval: Duration::from_secs(10),
            health_misses: 3,
            start_spacing: Duration::from_secs(1),
            restart_delay: Duration::from_secs(2),
            restart_delay_max: Duration::from_secs(10),
            restarts_per_process: 3,
            restart_window: Duration::from_secs(30 * 60),
            message: 128 << 20,
            waiting_logs: 1_000,
            waiting_log_bytes: 4 << 20,
            lines_per_second: 5_000,
        }
    }
}

/// The maximum length of a console line or log text, in bytes.
pub(super) const LINE: usize = 64 << 10;
/// The maximum length of a logger's name, in bytes.
pub(super) const CATEGORY: usize = 1 << 10;
/// The maximum number of processes of one app.
pub(super) const MAX_PROCESSES: usize = 10;
