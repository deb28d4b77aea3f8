//! Runs a function: reads its inputs, invokes it on a worker, writes its outputs.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::app::{LogLevels, POWERSHELL};
use crate::bindings::binding_data::BindingData;
use crate::bindings::results::ReturnValueError;
use crate::bindings::template::TemplateError;
use crate::bindings::trigger_event::TriggerEvent;
use crate::blobs::{BlobError, BlobPath, BlobPathError, BlobStore};
use crate::custom_handler::CustomHandler;
use crate::datum::Datum;
use crate::function::{BlobBinding, DataType, Function, InputBinding};
use crate::routes::request::HttpForm;
use crate::worker::{InvocationError, LogRecord, StreamSlot, WorkerPool};

/// One invocation of a function, as it is sent to a worker.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The id that the response, the logs and a cancellation refer to.
    pub id: Arc<str>,
    /// The function to invoke.
    pub function: Arc<Function>,
    /// A value for each `in` binding, by its name.
    pub inputs: Vec<(String, Datum)>,
    /// The trigger metadata.
    pub metadata: Vec<(String, Datum)>,
    /// The caller's span, as `traceparent` of W3C trace context.
    pub trace_parent: Option<String>,
    /// Vendor data, as `tracestate` of W3C trace context.
    pub trace_state: Option<String>,
    /// The request and the response are streamed: takes the address to which the request is forwarded.
    pub stream: Option<StreamSlot>,
}

/// The result of an invocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InvocationOutcome {
    /// The values of `out` bindings, by name.
    pub outputs: Vec<(String, Datum)>,
    /// The return value.
    pub returned: Datum,
}

/// The reason why an invocation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FunctionFailure {
    /// The function or its worker failed.
    #[error(transparent)]
    Worker(#[from] InvocationError),
    /// The path of a blob could not be resolved.
    #[error("binding {binding:?}: {source}")]
    Path { binding: String, source: TemplateError },
    /// The resolved path is not a valid blob path.
    #[error("binding {binding:?}: {source}")]
    Place { binding: String, source: BlobPathError },
    /// A blob could not be read.
    #[error("binding {binding:?} could not be read: {source}")]
    Read { binding: String, source: Box<BlobError> },
    /// A blob could not be written after the function ran.
    #[error("the function ran, but binding {binding:?} could not be written: {source}")]
    Write { binding: String, source: Box<BlobError> },
    /// The binding has no store. Such functions are not served.
    #[error("binding {binding:?} has no store")]
    NoStore { binding: String },
    /// A required argument of a prompt is missing.
    #[error("{0}")]
    NotProvided(String),
    /// The function's request for input is invalid.
    #[error("{0}")]
    Question(String),
    /// The return value is not a valid result.
    #[error(transparent)]
    Result(#[from] ReturnValueError),
}

impl FunctionFailure {
    /// Returns the message for clients. It names the failed step of the host, never a message of a function
    /// or a store.
    pub(crate) fn client_message(&self) -> Option<String> {
        Some(match self {
            FunctionFailure::Worker(InvocationError::WorkerExited { .. }) => {
                "The worker exited while the function ran.".to_owned()
            }
            FunctionFailure::Worker(InvocationError::NoWorker { .. }) => "No worker is running.".to_owned(),
            FunctionFailure::Worker(InvocationError::Message { .. }) => {
                "The input or the result of the function is too large or cannot be read.".to_owned()
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
                format!(
                    "The function ran, but its output {binding:?} was not written. {}",
                    source.client_message()
                )
            }
            FunctionFailure::NotProvided(text) => text.clone(),
        })
    }

    /// Returns the stack trace of the function, for the log.
    pub(crate) fn stack(&self) -> Option<&str> {
        match self {
            FunctionFailure::Worker(InvocationError::Failed { stack, .. }) => {
                Some(stack).filter(|stack| !stack.is_empty()).map(String::as_str)
            }
            _ => None,
        }
    }
}

/// The backend that runs functions.
#[derive(Debug)]
pub(crate) enum InvocationBackend {
    /// Processes that speak the worker protocol: built-in workers or public ones.
    Workers { workers: WorkerPool, own: bool },
    /// A custom handler, which speaks HTTP.
    CustomHandler(Box<CustomHandler>),
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
            // Boxed, because most functions run on workers: their future stays small.
            InvocationBackend::CustomHandler(handler) => {
                Box::pin(handler.invoke(invocation, timeout, logs)).await
            }
        }
    }

    /// Returns how the workers want to receive HTTP requests.
    pub(crate) fn http_form(&self) -> HttpForm {
        match self {
            InvocationBackend::Workers { workers, .. } => HttpForm {
                takes_bytes: workers.has_capability("RawHttpBodyBytes"),
                uses_nullable_maps: workers.has_capability("UseNullableValueDictionaryForHttp"),
                omits_empty_headers: workers.has_capability("IgnoreEmptyValuedRpcHttpHeaders"),
                spells_headers: false,
                streams: workers.streams_http(),
            },
            InvocationBackend::CustomHandler(_) => HttpForm { spells_headers: true, ..HttpForm::default() },
        }
    }

    /// Stops all processes at once.
    pub(crate) fn kill(&self) {
        match self {
            InvocationBackend::Workers { workers, .. } => workers.kill(),
            InvocationBackend::CustomHandler(handler) => handler.kill(),
        }
    }
}

/// A duration longer than any invocation.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Makes JSON text a text. The PowerShell worker sends a string that looks like JSON as JSON, and a host would format it.
fn keep_text(returned: &mut Datum) {
    if let Datum::Json(json) = returned
        && json.trim_start().starts_with(['{', '['])
    {
        *returned = Datum::Text(std::mem::take(json));
    }
}

/// Runs functions and resolves their bindings.
#[derive(Debug)]
pub(crate) struct FunctionRunner {
    pub(crate) engine: InvocationBackend,
    /// The stores, by the name of their connection.
    pub(crate) stores: HashMap<String, BlobStore>,
    /// The timeout of an invocation.
    pub(crate) timeout: Option<Duration>,
    /// The log levels for the console.
    pub(crate) log_levels: LogLevels,
}

impl FunctionRunner {
    /// Runs a function once and writes its blobs. Its logs are delivered as they arrive, and all of them before
    /// this returns. The outcome has the outputs that were not written.
    ///
    /// Dropping the future cancels the run: the result is discarded and outputs are not written.
    pub(crate) async fn run(
        &self,
        function: &Arc<Function>,
        event: TriggerEvent<'_>,
        trace: TraceContext,
        listener: &impl LogSink,
    ) -> Result<InvocationOutcome, FunctionFailure> {
        let (mut inputs, metadata, reads, writes) = {
            let data = event.data(function);
            let mut inputs = Vec::with_capacity(1 + function.inputs.len());
            let mut reads = Vec::new();
            for input in &function.inputs {
                match input {
                    InputBinding::Blob(binding) => reads.push((binding, resolve_blob_path(binding, &data)?)),
                    InputBinding::ToolProperty { name, property } => {
                        let value =
                            event.arguments().map_or(Datum::Nothing, |given| given.tool_property(property));
                        inputs.push((name.clone(), value));
                    }
                    InputBinding::PromptArgument { name, argument, required } => {
                        let given = event.arguments().map(|given| given.prompt_argument(argument, *required));
                        let value = given
                            .transpose()
                            .map_err(|missing| FunctionFailure::NotProvided(missing.to_string()))?;
                        inputs.push((name.clone(), value.unwrap_or_default()));
                    }
                }
            }
            // Output paths are resolved before the function runs, so that a missing argument fails early.
            let mut writes = Vec::with_capacity(function.outputs.len());
            for binding in function.written_blobs() {
                writes.push((binding, resolve_blob_path(binding, &data)?));
            }
            let metadata = match self.is_own_worker() {
                true => data.lean_metadata(),
                false => data.metadata(),
            };
            (inputs, metadata, reads, writes)
        };
        let read: Vec<_> =
            reads.iter().map(|(binding, path)| self.read(binding, path, &function.source.language)).collect();
        inputs.extend(try_join_all(read).await?);
        let stream = event.stream().cloned();
        inputs.push((function.parameter().to_owned(), event.into_value()));

        let invocation = Invocation {
            id: next_id(),
            function: function.clone(),
            inputs,
            metadata,
            trace_parent: Some(trace.parent.unwrap_or_else(new_trace)),
            trace_state: trace.state,
            stream,
        };
        // This task fills and empties the queue, so that a run without logs needs no allocation and no
        // wake-up.
        let said = PendingLogs::default();
        let mut invoking =
            pin!(self.engine.invoke(invocation, self.timeout, |log| said.logs().push_back(log)));
        // Backpressure: while a log is sent to a slow client, nothing more is read from the worker. Both
        // queues are bounded.
        let outcome = loop {
            let outcome = poll_fn(|task| match invoking.as_mut().poll(task) {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending if !said.logs().is_empty() => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            let outcome = outcome.await;
            while let Some(log) = said.next() {
                // Boxed, because most runs write no logs: their future stays small.
                Box::pin(listener.receive_log(log)).await;
            }
            if let Some(outcome) = outcome {
                break outcome;
            }
        };

        let mut outcome = outcome?;
        let InvocationOutcome { outputs, returned } = &mut outcome;
        if function.source.language == POWERSHELL {
            keep_text(returned);
        }
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
        Ok(outcome)
    }

    /// Returns whether a built-in worker runs the functions.
    pub(crate) fn is_own_worker(&self) -> bool {
        matches!(self.engine, InvocationBackend::Workers { own: true, .. })
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
            // Python reads both as a stream, and bytes lose nothing.
            Some(bytes) if language == "python" && std::str::from_utf8(&bytes).is_err() => {
                Datum::Bytes(bytes)
            }
            Some(bytes) => Datum::Text(decode_text(bytes)),
        };
        Ok((binding.name.clone(), value))
    }
}

/// The name of the output that receives the return value.
const RETURN: &str = "$return";

fn resolve_blob_path(binding: &BlobBinding, data: &BindingData<'_>) -> Result<BlobPath, FunctionFailure> {
    let name = || binding.name.clone();
    let (container, blob) =
        binding.path.resolve(data).map_err(|source| FunctionFailure::Path { binding: name(), source })?;
    BlobPath::new(&container, &blob).map_err(|source| FunctionFailure::Place { binding: name(), source })
}

/// Decodes text as the platform does: without a byte order mark, with invalid UTF-8 replaced.
fn decode_text(bytes: Bytes) -> String {
    let bytes =
        bytes.strip_prefix(b"\xef\xbb\xbf").map_or_else(|| bytes.clone(), |rest| bytes.slice_ref(rest));
    match String::from_utf8(bytes.into()) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// Returns the bytes to write for a value, or `None` for no value.
fn blob_content(value: Datum) -> Option<Bytes> {
    match value {
        Datum::Nothing | Datum::HttpRequest(_) => None,
        Datum::HttpResponse(response) => blob_content(response.body),
        // Some workers send a null of their language as JSON `null`.
        Datum::Json(json) if json.trim() == "null" => None,
        Datum::Text(text) | Datum::Json(text) => Some(text.into()),
        Datum::Bytes(bytes) => Some(bytes),
        Datum::Int(number) => Some(number.to_string().into()),
        Datum::Double(number) => Some(number.to_string().into()),
    }
}

/// The logs that the worker has sent and the sink has not yet received.
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

/// Receives the logs of a running function.
pub(crate) trait LogSink: Sync {
    fn receive_log(&self, log: LogRecord) -> impl Future<Output = ()> + Send;
}

/// The W3C trace context of a call.
#[derive(Debug, Default)]
pub(crate) struct TraceContext {
    pub(crate) parent: Option<String>,
    pub(crate) state: Option<String>,
}

/// Returns a new invocation id. Workers expect a GUID. It is unique in this process and not secret.
fn next_id() -> Arc<str> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    /// The constant half. It is computed once, because the process id needs a system call.
    static FIRST: LazyLock<String> = LazyLock::new(|| format!("{:08x}-0000-4000-8000-", std::process::id()));
    let mut id = String::with_capacity(36);
    id.push_str(&FIRST);
    push_hex(&mut id, NEXT.fetch_add(1, Ordering::Relaxed), 12);
    id.into()
}

/// Returns a new trace for a call without one, because functions may rely on a trace. It is not sampled.
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

/// Writes the last digits of a number in hexadecimal. The general formatter takes ten times as long.
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
    fn writes_values_and_nothing_for_null() {
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
