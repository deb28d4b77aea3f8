//! One run of one function: read its inputs, let a worker run it, write its outputs.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::app::LogLevels;
use crate::bindings::binding_data::BindingData;
use crate::bindings::context::McpRequest;
use crate::bindings::results::ReturnValueError;
use crate::bindings::template::TemplateError;
use crate::blobs::{BlobError, BlobPath, BlobPathError, BlobStore};
use crate::custom_handler::CustomHandler;
use crate::datum::Datum;
use crate::function::{BlobBinding, DataType, Function, InputBinding, OutputBinding};
use crate::worker::{InvocationError, LogRecord, WorkerPool};

/// One run of one function, as a worker gets it.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// What the answer, the logs and a cancel name.
    pub id: Arc<str>,
    /// What runs.
    pub function: Arc<Function>,
    /// A value for each `in` binding, by its name.
    pub inputs: Vec<(String, Datum)>,
    /// What the trigger knows besides.
    pub metadata: Vec<(String, Datum)>,
    /// W3C trace context: the caller's span.
    pub trace_parent: Option<String>,
    /// W3C trace context: vendor data.
    pub trace_state: Option<String>,
}

/// What a function gave back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InvocationOutcome {
    /// Values of `out` bindings, by their names.
    pub outputs: Vec<(String, Datum)>,
    /// What it returned.
    pub returned: Datum,
}

/// Why a run of a function failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FunctionFailure {
    /// In the function or in its worker.
    #[error(transparent)]
    Worker(#[from] InvocationError),
    /// The place of a blob could not be made out.
    #[error("binding {binding:?}: {source}")]
    Path { binding: String, source: TemplateError },
    /// The place is none.
    #[error("binding {binding:?}: {source}")]
    Place { binding: String, source: BlobPathError },
    /// A blob could not be read.
    #[error("binding {binding:?} could not be read: {source}")]
    Read { binding: String, source: Box<BlobError> },
    /// A blob could not be written, though the function ran.
    #[error("the function ran, but binding {binding:?} could not be written: {source}")]
    Write { binding: String, source: Box<BlobError> },
    /// Its connection leads nowhere; functions like that are not served.
    #[error("binding {binding:?} has no store")]
    NoStore { binding: String },
    /// A required argument of a prompt is missing.
    #[error("{0}")]
    NotProvided(String),
    /// What the function wants to ask cannot be asked.
    #[error("{0}")]
    Question(String),
    /// What the function returned is not what it promised.
    #[error(transparent)]
    Result(#[from] ReturnValueError),
}

impl FunctionFailure {
    /// What a client may know: where it went wrong in the host, never what a function or a store said.
    pub(crate) fn client_message(&self) -> Option<String> {
        Some(match self {
            FunctionFailure::Worker(InvocationError::WorkerExited { .. }) => {
                "The worker exited while the function ran.".to_owned()
            }
            FunctionFailure::Worker(InvocationError::NoWorker { .. }) => "No worker is running.".to_owned(),
            FunctionFailure::Worker(InvocationError::Message { .. }) => {
                "What the function gets or returns is too large, or cannot be read.".to_owned()
            }
            FunctionFailure::Worker(_)
            | FunctionFailure::Result(_)
            | FunctionFailure::Question(_)
            | FunctionFailure::NoStore { .. } => {
                return None;
            }
            FunctionFailure::Path { binding, source } => format!("Binding {binding:?}: {source}"),
            FunctionFailure::Place { binding, source } => format!("Binding {binding:?}: {source}."),
            FunctionFailure::Read { binding, source } => {
                format!("Binding {binding:?}: {}", source.client_message())
            }
            FunctionFailure::Write { binding, source } => {
                format!("The function ran, but its output {binding:?} is lost. {}", source.client_message())
            }
            FunctionFailure::NotProvided(text) => text.clone(),
        })
    }

    /// Where in the function it happened, for the log.
    pub(crate) fn stack(&self) -> Option<&str> {
        match self {
            FunctionFailure::Worker(InvocationError::Failed { stack, .. }) => {
                Some(stack).filter(|stack| !stack.is_empty()).map(String::as_str)
            }
            _ => None,
        }
    }
}

/// What runs functions.
#[derive(Debug)]
pub(crate) enum InvocationBackend {
    /// Processes that speak the worker protocol: our own, or public ones.
    Workers { workers: WorkerPool, own: bool },
    /// A program that speaks HTTP.
    CustomHandler(CustomHandler),
}

impl InvocationBackend {
    async fn invoke(
        &self,
        invocation: Invocation,
        timeout: Option<Duration>,
        logs: impl FnMut(LogRecord) + Send,
    ) -> Result<InvocationOutcome, InvocationError> {
        match self {
            InvocationBackend::Workers { workers, .. } => {
                workers.invoke(invocation, timeout.unwrap_or(FOREVER), logs).await
            }
            // Workers run most functions; their future need not have room for this one.
            InvocationBackend::CustomHandler(handler) => {
                Box::pin(handler.invoke(invocation, timeout, logs)).await
            }
        }
    }

    /// Ends all processes at once.
    pub(crate) fn kill(&self) {
        match self {
            InvocationBackend::Workers { workers, .. } => workers.kill(),
            InvocationBackend::CustomHandler(handler) => handler.kill(),
        }
    }
}

/// Longer than anything runs.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Runs functions, with their bindings.
#[derive(Debug)]
pub(crate) struct FunctionRunner {
    pub(crate) engine: InvocationBackend,
    /// The stores that connections lead to.
    pub(crate) stores: HashMap<String, BlobStore>,
    /// How long a function may run.
    pub(crate) timeout: Option<Duration>,
    /// How much of what functions say goes to the console.
    pub(crate) log_levels: LogLevels,
}

impl FunctionRunner {
    /// Runs a function once. Its logs come as they are said; all of them before it ends.
    ///
    /// Dropping the future cancels the run: its answer is not waited for, its outputs are not written.
    pub(crate) async fn run(
        &self,
        function: &Arc<Function>,
        request: &McpRequest<'_>,
        trace: TraceContext,
        listener: &impl LogSink,
    ) -> Result<Datum, FunctionFailure> {
        let parameter = function.parameter();
        let context = request.context();
        let (mut inputs, metadata, reads, writes) = {
            let data = BindingData::new(request, &context, parameter, &function.name);
            let mut inputs = Vec::with_capacity(1 + function.inputs.len());
            let mut reads = Vec::new();
            for input in &function.inputs {
                match input {
                    InputBinding::Blob(binding) => reads.push((binding, resolve_blob_path(binding, &data)?)),
                    InputBinding::ToolProperty { name, property } => {
                        let value =
                            request.arguments().map_or(Datum::Nothing, |given| given.tool_property(property));
                        inputs.push((name.clone(), value));
                    }
                    InputBinding::PromptArgument { name, argument, required } => {
                        let given =
                            request.arguments().map(|given| given.prompt_argument(argument, *required));
                        let value = given
                            .transpose()
                            .map_err(|missing| FunctionFailure::NotProvided(missing.to_string()))?;
                        inputs.push((name.clone(), value.unwrap_or_default()));
                    }
                }
            }
            // Where outputs go is decided before the function runs: a path without its argument costs no run.
            let mut writes = Vec::with_capacity(function.outputs.len());
            for OutputBinding::Blob(binding) in &function.outputs {
                writes.push((binding, resolve_blob_path(binding, &data)?));
            }
            let metadata = match self.engine {
                InvocationBackend::Workers { own: true, .. } => data.lean_metadata(),
                _ => data.metadata(),
            };
            (inputs, metadata, reads, writes)
        };
        let read: Vec<_> =
            reads.iter().map(|(binding, path)| self.read(binding, path, &function.source.language)).collect();
        inputs.extend(try_join_all(read).await?);
        inputs.push((parameter.to_owned(), Datum::Text(context.into_string())));

        let invocation = Invocation {
            id: next_id(),
            function: function.clone(),
            inputs,
            metadata,
            trace_parent: Some(trace.parent.unwrap_or_else(new_trace)),
            trace_state: trace.state,
        };
        // Filled and emptied by this very task, so that a run without logs costs no allocation and no wake-up.
        let said = PendingLogs::default();
        let mut invoking =
            pin!(self.engine.invoke(invocation, self.timeout, |log| said.logs().push_back(log)));
        // While a log is on its way to a slow client nothing more is taken from the worker: its own queue is
        // bounded, and so is this one.
        let outcome = loop {
            let outcome = poll_fn(|task| match invoking.as_mut().poll(task) {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending if !said.logs().is_empty() => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            let outcome = outcome.await;
            while let Some(log) = said.next() {
                // Most runs say nothing; their future need not have room for it.
                Box::pin(listener.receive_log(log)).await;
            }
            if let Some(outcome) = outcome {
                break outcome;
            }
        };

        let InvocationOutcome { mut outputs, returned } = outcome?;
        let mut written = Vec::with_capacity(writes.len());
        for (binding, path) in &writes {
            let value = match outputs.iter().position(|(name, _)| *name == binding.name) {
                Some(at) => outputs.swap_remove(at).1,
                None if binding.name == RETURN => returned.clone(),
                None => continue,
            };
            if let Some(content) = blob_content(value) {
                written.push(self.write(binding, path, content));
            }
        }
        try_join_all(written).await?;
        Ok(returned)
    }

    async fn write(
        &self,
        binding: &BlobBinding,
        path: &BlobPath,
        content: Bytes,
    ) -> Result<(), FunctionFailure> {
        let written = self.store(binding)?.write(path, content).await;
        written.map_err(|source| FunctionFailure::Write {
            binding: binding.name.clone(),
            source: Box::new(source),
        })
    }

    fn store(&self, binding: &BlobBinding) -> Result<&BlobStore, FunctionFailure> {
        self.stores
            .get(&binding.connection)
            .ok_or_else(|| FunctionFailure::NoStore { binding: binding.name.clone() })
    }

    async fn read(
        &self,
        binding: &BlobBinding,
        path: &BlobPath,
        language: &str,
    ) -> Result<(String, Datum), FunctionFailure> {
        let read = self.store(binding)?.read(path).await;
        let blob = read.map_err(|source| FunctionFailure::Read {
            binding: binding.name.clone(),
            source: Box::new(source),
        })?;
        let value = match blob {
            None => Datum::Nothing,
            Some(bytes) if binding.data_type == DataType::Binary => Datum::Bytes(bytes),
            // To Python both are a stream, and bytes lose nothing.
            Some(bytes) if language == "python" && std::str::from_utf8(&bytes).is_err() => {
                Datum::Bytes(bytes)
            }
            Some(bytes) => Datum::Text(decode_text(bytes)),
        };
        Ok((binding.name.clone(), value))
    }
}

/// The name of an output that is what the function returns.
const RETURN: &str = "$return";

fn resolve_blob_path(binding: &BlobBinding, data: &BindingData<'_>) -> Result<BlobPath, FunctionFailure> {
    let name = || binding.name.clone();
    let (container, blob) =
        binding.path.resolve(data).map_err(|source| FunctionFailure::Path { binding: name(), source })?;
    BlobPath::new(&container, &blob).map_err(|source| FunctionFailure::Place { binding: name(), source })
}

/// As the platform reads texts: without a byte order mark, whatever is no UTF-8 replaced.
fn decode_text(bytes: Bytes) -> String {
    let bytes =
        bytes.strip_prefix(b"\xef\xbb\xbf").map_or_else(|| bytes.clone(), |rest| bytes.slice_ref(rest));
    match String::from_utf8(bytes.into()) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// What is written for a value; nothing for none.
fn blob_content(value: Datum) -> Option<Bytes> {
    match value {
        Datum::Nothing => None,
        // What a null of the language becomes in some workers.
        Datum::Json(json) if json.trim() == "null" => None,
        Datum::Text(text) | Datum::Json(text) => Some(text.into()),
        Datum::Bytes(bytes) => Some(bytes),
        Datum::Int(number) => Some(number.to_string().into()),
        Datum::Double(number) => Some(number.to_string().into()),
    }
}

/// Logs between the worker's side of a run and the client's.
#[derive(Default)]
struct PendingLogs(Mutex<VecDeque<LogRecord>>);

impl PendingLogs {
    fn logs(&self) -> MutexGuard<'_, VecDeque<LogRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<LogRecord> {
        self.logs().pop_front()
    }
}

/// Hears what a function says while it runs.
pub(crate) trait LogSink: Sync {
    fn receive_log(&self, log: LogRecord) -> impl Future<Output = ()> + Send;
}

/// W3C trace context of a call.
#[derive(Debug, Default)]
pub(crate) struct TraceContext {
    pub(crate) parent: Option<String>,
    pub(crate) state: Option<String>,
}

/// An id in the shape workers expect: a GUID. It is unique in this process and no secret.
fn next_id() -> Arc<str> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    /// The half that is always the same; to ask for the process costs a system call.
    static FIRST: LazyLock<String> = LazyLock::new(|| format!("{:08x}-0000-4000-8000-", std::process::id()));
    let mut id = String::with_capacity(36);
    id.push_str(&FIRST);
    push_hex(&mut id, NEXT.fetch_add(1, Ordering::Relaxed), 12);
    id.into()
}

/// A trace of its own for a call that belongs to none: functions may rely on having one. It is not sampled.
fn new_trace() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    static ORIGIN: LazyLock<u64> = LazyLock::new(|| getrandom::u64().unwrap_or(1) | 1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut trace = String::with_capacity(55);
    trace.push_str("00-");
    push_hex(&mut trace, *ORIGIN, 16);
    push_hex(&mut trace, number, 16);
    trace.push('-');
    push_hex(&mut trace, ORIGIN.rotate_left(32) ^ number, 16);
    trace.push_str("-00");
    trace
}

/// The last digits of a number in hexadecimal. What formats anything formats this for ten times as much.
fn push_hex(text: &mut String, number: u64, digits: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let all: [u8; 16] = std::array::from_fn(|at| DIGITS[(number >> (60 - 4 * at)) as usize & 15]);
    let last = all.get(16 - digits..).unwrap_or_default();
    text.push_str(std::str::from_utf8(last).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_a_function_gives_and_nothing_for_null() {
        assert_eq!(blob_content(Datum::Nothing), None);
        assert_eq!(blob_content(Datum::Json("null".to_owned())), None);
        assert_eq!(blob_content(Datum::Text(String::new())), Some(Bytes::new()));
        assert_eq!(blob_content(Datum::Json("{\"a\":1}".to_owned())), Some("{\"a\":1}".into()));
        assert_eq!(
            blob_content(Datum::Bytes(Bytes::from_static(b"\0\xff"))),
            Some(Bytes::from_static(b"\0\xff"))
        );
        assert_eq!(blob_content(Datum::Int(-7)), Some("-7".into()));
        assert_eq!(blob_content(Datum::Double(0.5)), Some("0.5".into()));
    }

    #[test]
    fn reads_texts_as_the_platform_does() {
        assert_eq!(decode_text(Bytes::from_static(b"\xef\xbb\xbfhello")), "hello");
        assert_eq!(decode_text(Bytes::from_static(b"a\xffb")), "a\u{fffd}b");
    }

    #[test]
    fn a_new_trace_is_a_traceparent() {
        let (one, other) = (new_trace(), new_trace());
        let lengths: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(lengths, [2, 32, 16, 2], "{one}");
        assert_ne!(one, other);
    }

    #[test]
    fn ids_are_guids_and_differ() {
        let (one, other) = (next_id(), next_id());
        assert!(uuid::Uuid::parse_str(&one).is_ok_and(|id| id.get_version_num() == 4), "{one}");
        assert_ne!(one, other);
    }
}
