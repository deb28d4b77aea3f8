//! A custom handler: a program of the app that serves invocations over HTTP.
//!
//! [`wire`] encodes requests and parses responses. [`supervisor`] starts and restarts the process, also that of a
//! self-hosted app. This file calls it.

mod ports;
pub(crate) mod sockets;
pub(crate) mod supervisor;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, USER_AGENT};

pub use self::supervisor::HandlerStartError;
pub(crate) use self::supervisor::{HandlerLaunch, HandlerProcess, HandlerSupervisor};
use crate::invocation::{Invocation, InvocationOutcome};
use crate::worker::{InvocationError, LogRecord, ProcessExit, WorkerEvents, WorkerLimits};

/// A running custom handler. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct CustomHandler {
    supervisor: HandlerSupervisor,
}

impl CustomHandler {
    /// Starts the handler and waits until it listens.
    pub(crate) async fn start(
        launch: HandlerLaunch,
        limits: WorkerLimits,
        events: Arc<dyn WorkerEvents>,
    ) -> Result<CustomHandler, HandlerStartError> {
        Ok(CustomHandler { supervisor: HandlerSupervisor::start(launch, limits, events).await? })
    }

    /// Runs a function.
    pub(crate) async fn invoke(
        &self,
        invocation: Invocation,
        timeout: Option<Duration>,
        logs: impl FnMut(LogRecord),
    ) -> Result<InvocationOutcome, InvocationError> {
        let serving = self.supervisor.wait_until_serving().await;
        let serving = serving.ok_or_else(|| no_worker("the custom handler is not running"))?;
        let (handler, retired) = (self.clone(), serving.retirement());
        let mut asked = Box::pin(async move { handler.send_invocation(&serving, &invocation).await });
        let answered = match timeout {
            None => asked.await,
            Some(after) => match tokio::time::timeout(after, &mut asked).await {
                Ok(answered) => answered,
                Err(_) => {
                    let grace = self.supervisor.limits().cancel_grace;
                    tokio::spawn(async move {
                        if tokio::time::timeout(grace, asked).await.is_err() {
                            retired.send_replace(true);
                        }
                    });
                    return Err(InvocationError::TimedOut { after });
                }
            },
        };
        let wire::HandlerResponse { outcome, logs: said } = answered?;
        said.into_iter().for_each(logs);
        Ok(outcome)
    }

    /// Returns whether a process serves at the moment.
    pub(crate) fn is_serving(&self) -> bool {
        self.supervisor.serving().is_some()
    }

    /// Stops the process.
    pub(crate) async fn stop(&self) {
        self.supervisor.stop().await;
    }

    /// Kills the process at once.
    pub(crate) fn kill(&self) {
        self.supervisor.kill();
    }

    async fn send_invocation(
        &self,
        serving: &HandlerProcess,
        invocation: &Invocation,
    ) -> Result<wire::HandlerResponse, InvocationError> {
        let version = env!("CARGO_PKG_VERSION");
        let request = self
            .supervisor
            .client()
            .post(format!("http://{}/{}", serving.address(), invocation.function.name))
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, format!("Azure-Functions-Host/{version}"))
            .header("X-Azure-Functions-InvocationId", invocation.id.as_ref())
            .header("X-Azure-Functions-HostVersion", version)
            .body(wire::encode_request(invocation));
        let answered = async {
            let mut response = request.send().await?;
            let status = response.status();
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                if body.len() + chunk.len() > self.supervisor.limits().message {
                    return Ok((status, None));
                }
                body.extend_from_slice(&chunk);
            }
            Ok::<_, reqwest::Error>((status, Some(body)))
        };
        let (status, body) = tokio::select! {
            answered = answered => answered.map_err(|error| exit_error(serving, &error.to_string()))?,
            exit = serving.wait_for_exit() => {
                return Err(InvocationError::WorkerExited { reason: exit.to_string() });
            }
        };
        let Some(body) = body else {
            let reason = format!("the response is larger than {} bytes", self.supervisor.limits().message);
            return Err(InvocationError::Message { reason });
        };
        if !status.is_success() {
            let text =
                String::from_utf8_lossy(body.get(..body.len().min(1000)).unwrap_or_default()).into_owned();
            let message = format!("the custom handler answered {status}: {text}");
            return Err(InvocationError::Failed { message, stack: String::new() });
        }
        wire::parse_response(&body, &invocation.function)
    }
}

fn exit_error(process: &HandlerProcess, otherwise: &str) -> InvocationError {
    let reason = process.exit().map_or_else(|| otherwise.to_owned(), |exit: ProcessExit| exit.to_string());
    InvocationError::WorkerExited { reason }
}

fn no_worker(reason: &str) -> InvocationError {
    InvocationError::NoWorker { reason: reason.to_owned() }
}
