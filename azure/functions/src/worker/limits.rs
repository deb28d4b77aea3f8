//! Times and sizes that the workers are held to.

use std::time::Duration;

/// Times and sizes that the workers are held to. The defaults are those of the Functions host, where it has one.
#[derive(Clone, Debug)]
pub struct WorkerLimits {
    /// From the start of a process to its first message.
    pub connect: Duration,
    /// For the answer to the init request. Node's public worker asks for two minutes.
    pub init: Duration,
    /// For the list of functions.
    pub index: Duration,
    /// For the answers to all load requests.
    pub load: Duration,
    /// How long an invocation waits when no worker is up.
    pub wait_for_worker: Duration,
    /// From the cancel of a timed out invocation until its worker is replaced, unless it answers.
    pub cancel_grace: Duration,
    /// How long the other invocations of a worker that is being replaced may go on.
    pub drain: Duration,
    /// How long a worker may take to exit after `WorkerTerminate`.
    pub terminate: Duration,
    /// How long a worker may take to exit after SIGTERM, before SIGKILL.
    pub sigterm: Duration,
    /// Between two questions after a worker's health; also the time it has to answer.
    pub health_interval: Duration,
    /// Health questions in a row without an answer, while invocations are pending, after which a worker is replaced.
    pub health_misses: u32,
    /// Between any two starts of a process.
    pub start_spacing: Duration,
    /// Before the second restart; it doubles with each further one. The first restart is at once.
    pub restart_delay: Duration,
    /// Where that doubling ends.
    pub restart_delay_max: Duration,
    /// Restarts after a crash that each process may have within `restart_window`; then the pool has failed.
    pub restarts_per_process: usize,
    /// See `restarts_per_process`.
    pub restart_window: Duration,
    /// Bytes of one message, in either direction.
    pub message: usize,
    /// Log records of one invocation that may wait; more are dropped and counted.
    pub waiting_logs: usize,
    /// Bytes of those records; more are dropped and counted.
    pub waiting_log_bytes: usize,
    /// Console lines, or log records outside invocations, per second and worker; more are dropped and counted.
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

/// The longest console line or log text that is kept, in bytes.
pub(super) const LINE: usize = 64 << 10;
/// The longest name of a logger that is kept, in bytes.
pub(super) const CATEGORY: usize = 1 << 10;
/// Processes of one app.
pub(super) const MAX_PROCESSES: usize = 10;
