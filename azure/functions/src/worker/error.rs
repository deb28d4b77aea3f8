//! The errors of worker starts and of invocations.

use std::fmt;
use std::io;
use std::time::Duration;

/// Why a worker did not start. The message ends with the cause: the app's error, or the last lines of the
/// worker's console.
#[derive(Debug, thiserror::Error)]
pub enum WorkerStartError {
    #[error("cannot listen for workers: {0}")]
    Listen(#[source] io::Error),
    #[error("cannot start `{command}`: {source}")]
    Spawn { command: String, source: io::Error },
    #[error("the worker exited ({status}) before it was ready\n  command: {command}{console}")]
    Exited { command: String, status: String, console: ConsoleTail },
    #[error("the worker did not {step} within {} s\n  command: {command}{console}", after.as_secs_f32())]
    TimedOut { command: String, step: StartStep, after: Duration, console: ConsoleTail },
    #[error("the worker closed its stream before it could {step}\n  command: {command}{console}")]
    HungUp { command: String, step: StartStep, console: ConsoleTail },
    /// The worker reported an error, mostly of the app. The command would explain nothing.
    #[error("the worker could not {step}{}", console.before(message))]
    Refused { step: StartStep, message: String, stack: String, console: ConsoleTail },
    #[error("the workers are being stopped")]
    Stopping,
}

impl WorkerStartError {
    /// Returns the reason without commands, paths and console lines, for callers of the app.
    pub fn brief(&self) -> String {
        match self {
            Self::Listen(_) => "the host cannot listen for workers".into(),
            Self::Spawn { source, .. } => format!("it cannot be started: {}", source.kind()),
            Self::Exited { status, .. } => format!("{status}, before it was ready"),
            Self::TimedOut { step, after, .. } => {
                format!("it did not {step} within {} s", after.as_secs_f32())
            }
            Self::HungUp { step, .. } => format!("it closed its stream before it could {step}"),
            Self::Refused { step, .. } => format!("it could not {step}"),
            Self::Stopping => "the workers are being stopped".into(),
        }
    }
}

/// A step of the start of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartStep {
    Connect,
    Init,
    Index,
    Load,
}

impl fmt::Display for StartStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect to the host",
            Self::Init => "initialize",
            Self::Index => "list its functions",
            Self::Load => "load its functions",
        })
    }
}

/// The last lines of a worker's console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsoleTail(pub Vec<String>);

impl ConsoleTail {
    /// Returns the lines, if there are any, and then the message.
    fn before(&self, message: &str) -> String {
        match self.0.is_empty() {
            true => format!(": {message}"),
            false => format!("{self}\n  {message}"),
        }
    }
}

impl fmt::Display for ConsoleTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("\n  it wrote nothing to its console");
        }
        f.write_str("\n  the last lines of its console:")?;
        self.0.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// Why an invocation did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvocationError {
    /// The function ran and failed. `stack` contains local paths and is only for the log.
    #[error("{message}")]
    Failed { message: String, stack: String },
    /// The worker exited while the function ran. The function may have had effects, so it is not retried.
    #[error("worker exited: {reason}")]
    WorkerExited { reason: String },
    #[error("the function did not answer within {} s", after.as_secs_f32())]
    TimedOut { after: Duration },
    /// The worker could not load the function. No request was sent.
    #[error("the function is not loaded: {message}")]
    NotLoaded { message: String },
    /// No worker was available in time.
    #[error("no worker is running: {reason}")]
    NoWorker { reason: String },
    /// The worker reported that the invocation was cancelled.
    #[error("the invocation was cancelled")]
    Cancelled,
    /// The request or the response exceeds the maximum message size, or the response cannot be decoded.
    #[error("{reason}")]
    Message { reason: String },
}
