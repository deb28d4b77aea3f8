//! One invocation on one channel: what is sent, what is waited for, what comes out.

use std::collections::HashMap;
use std::sync::Arc;

use super::calls::{Answer, Call, Next};
use super::channel::Channel;
use super::error::InvocationError;
use super::events::Log;
use super::indexing::failure;
use super::proto::{InvocationRequest, InvocationResponse, ParameterBinding, RpcTraceContext, status_result};
use super::typed_data;
use crate::invocation::{Invocation, Outcome};

/// An invocation that was sent. Dropping it cancels the invocation.
pub(super) struct Running {
    channel: Arc<Channel>,
    id: Arc<str>,
    call: Arc<Call>,
    finished: bool,
}

impl Running {
    pub(super) fn new(channel: Arc<Channel>, id: Arc<str>, call: Arc<Call>) -> Self {
        Self { channel, id, call, finished: false }
    }

    /// Waits for the outcome. Every log record is handed on before.
    pub(super) async fn outcome(
        &mut self,
        logs: &mut (impl FnMut(Log) + Send),
    ) -> Result<Outcome, InvocationError> {
        loop {
            match self.call.next().await {
                Next::Log(log) => {
                    logs(log);
                    // A flood of records must not keep the timeout from being seen.
                    tokio::task::consume_budget().await;
                }
                Next::Answer(answer) => {
                    self.finished = true;
                    return match answer {
                        Answer::Response(response) => outcome(*response),
                        Answer::Spoiled(reason) => Err(InvocationError::Message { reason }),
                        Answer::WorkerExited(reason) => Err(InvocationError::WorkerExited { reason }),
                    };
                }
            }
        }
    }

    pub(super) fn id(&self) -> &Arc<str> {
        &self.id
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.finished {
            self.channel.abandon(&self.id);
        }
    }
}

pub(super) fn wire_request(invocation: Invocation) -> InvocationRequest {
    let input = |(name, datum)| ParameterBinding { name, data: Some(typed_data::input(datum)) };
    InvocationRequest {
        invocation_id: invocation.id.as_ref().to_owned(),
        function_id: invocation.function.id.clone(),
        input_data: invocation.inputs.into_iter().map(input).collect(),
        trigger_metadata: invocation
            .metadata
            .into_iter()
            .map(|(name, datum)| (name, typed_data::metadata(datum)))
            .collect(),
        trace_context: invocation.trace_parent.map(|trace_parent| RpcTraceContext {
            trace_parent,
            trace_state: invocation.trace_state.unwrap_or_default(),
            attributes: HashMap::new(),
        }),
    }
}

fn outcome(response: InvocationResponse) -> Result<Outcome, InvocationError> {
    let status = response.result.as_ref().map_or(0, |result| result.status);
    if status == status_result::Status::Cancelled as i32 {
        return Err(InvocationError::Cancelled);
    }
    if let Some(failure) = failure(response.result) {
        return Err(InvocationError::Failed { message: failure.message, stack: failure.stack });
    }
    let output = |it: ParameterBinding| (it.name, typed_data::output(it.data.unwrap_or_default()));
    Ok(Outcome {
        outputs: response.output_data.into_iter().map(output).collect(),
        returned: typed_data::output(response.return_value.unwrap_or_default()),
    })
}
