//! One invocation on one channel: its request, its log records and its outcome.

use std::collections::HashMap;
use std::sync::Arc;

use super::WorkerChannel;
use super::calls::{InvocationAnswer, InvocationEvent, PendingInvocation};
use crate::invocation::{Invocation, InvocationOutcome};
use crate::worker::error::InvocationError;
use crate::worker::events::LogRecord;
use crate::worker::wire::indexing::failure;
use crate::worker::wire::proto::{
    InvocationRequest, InvocationResponse, ParameterBinding, RpcTraceContext, status_result,
};
use crate::worker::wire::typed_data;

/// An invocation that was sent. Dropping it cancels the invocation.
pub(crate) struct RunningInvocation {
    channel: Arc<WorkerChannel>,
    id: Arc<str>,
    call: Arc<PendingInvocation>,
    finished: bool,
}

impl RunningInvocation {
    pub(crate) fn new(channel: Arc<WorkerChannel>, id: Arc<str>, call: Arc<PendingInvocation>) -> Self {
        Self { channel, id, call, finished: false }
    }

    /// Waits for the outcome. All log records are passed to `logs` before it returns.
    pub(crate) async fn outcome(
        &mut self,
        logs: &mut (impl FnMut(LogRecord) + Send),
    ) -> Result<InvocationOutcome, InvocationError> {
        loop {
            match self.call.next().await {
                InvocationEvent::Log(log) => {
                    logs(log);
                    // Many records in a row must not delay the timeout.
                    tokio::task::consume_budget().await;
                }
                InvocationEvent::Answer(answer) => {
                    self.finished = true;
                    return match answer {
                        InvocationAnswer::Response(response) => outcome(*response),
                        InvocationAnswer::Spoiled(reason) => Err(InvocationError::Message { reason }),
                        InvocationAnswer::WorkerExited(reason) => {
                            Err(InvocationError::WorkerExited { reason })
                        }
                    };
                }
            }
        }
    }

    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }
}

impl Drop for RunningInvocation {
    fn drop(&mut self) {
        if !self.finished {
            self.channel.abandon(&self.id);
        }
    }
}

pub(crate) fn wire_request(invocation: Invocation) -> InvocationRequest {
    let input = |(name, datum)| ParameterBinding { name, data: Some(typed_data::encode_input(datum)) };
    InvocationRequest {
        invocation_id: invocation.id.as_ref().to_owned(),
        function_id: invocation.function.id.clone(),
        input_data: invocation.inputs.into_iter().map(input).collect(),
        trigger_metadata: invocation
            .metadata
            .into_iter()
            .map(|(name, datum)| (name, typed_data::encode_metadata(datum)))
            .collect(),
        trace_context: invocation.trace_parent.map(|trace_parent| RpcTraceContext {
            trace_parent,
            trace_state: invocation.trace_state.unwrap_or_default(),
            attributes: HashMap::new(),
        }),
    }
}

fn outcome(response: InvocationResponse) -> Result<InvocationOutcome, InvocationError> {
    let status = response.result.as_ref().map_or(0, |result| result.status);
    if status == status_result::Status::Cancelled as i32 {
        return Err(InvocationError::Cancelled);
    }
    if let Some(failure) = failure(response.result) {
        return Err(InvocationError::Failed { message: failure.message, stack: failure.stack });
    }
    let output = |it: ParameterBinding| (it.name, typed_data::decode_output(it.data.unwrap_or_default()));
    Ok(InvocationOutcome {
        outputs: response.output_data.into_iter().map(output).collect(),
        returned: typed_data::decode_output(response.return_value.unwrap_or_default()),
    })
}
