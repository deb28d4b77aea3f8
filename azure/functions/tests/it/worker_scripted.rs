//! A worker that follows a script, over real gRPC or over frames.
//!
//! It is this test binary, which the host under test starts as a separate process. The test named `process`
//! below becomes the worker if the environment has a script. The command line after `--` is the host's.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindpost_azure_functions::worker::proto::streaming_message::Content;
use bindpost_azure_functions::worker::proto::typed_data::Data;
use bindpost_azure_functions::worker::proto::*;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;

/// The script of a worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Script {
    pub(crate) capabilities: BTreeMap<String, String>,
    /// The steps of each function. Its name is also its id.
    pub(crate) functions: BTreeMap<String, Vec<Step>>,
    /// The binding of every function, as JSON. Defaults to a tool trigger without a name.
    pub(crate) binding: Option<String>,
    /// Functions that cannot be loaded, with the error.
    pub(crate) load_failures: BTreeMap<String, String>,
    pub(crate) index_failure: Option<String>,
    pub(crate) use_function_json: bool,
    pub(crate) at_start: Vec<Step>,
    /// Exit with this code instead of connecting, from this process on (1 is the first).
    pub(crate) exit_from: Option<(usize, i32)>,
    /// Answer with the request id of the command line, as the public Python worker does.
    pub(crate) own_request_id: bool,
    pub(crate) ignore_terminate: bool,
    pub(crate) ignore_sigterm: bool,
    /// Try streams with unknown ids before the real stream, and one with the id in use after it.
    pub(crate) lies_about_its_id: bool,
    /// A recorded conversation to replay instead.
    pub(crate) replay: Option<PathBuf>,
    /// The folder for the notes of the worker.
    pub(crate) notes: PathBuf,
}

/// One step of a function. A function that ends without an answer returns the text of its input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Sleeps for this many milliseconds.
    Sleep(u64),
    /// Sleeps for the number of milliseconds in the input.
    SleepInput,
    Log(String),
    /// Sends this many numbered log records.
    Logs(usize),
    /// Sends a log record for an invocation that does not exist.
    StrayLog(String),
    /// Prints lines on stdout: their number and their length in bytes.
    Print(usize, usize),
    /// Prints this many bytes on stderr without an end of line.
    PrintWithoutEnd(usize),
    Say(String),
    Exit(i32),
    Hang,
    /// Ends the stream, but keeps running.
    Cut,
    Fail(String),
    Cancelled,
    Return(String),
    /// Returns this text as JSON.
    ReturnJson(String),
    /// Returns a text of this many bytes.
    ReturnSize(usize),
    /// Returns a list of the inputs and their kinds.
    ReturnInputs,
    ReturnPid,
    /// Returns the input as the output `file`, and bytes.
    Output,
    /// Answers an invocation that does not exist.
    StrayAnswer,
    /// Answers twice.
    Twice,
}

pub(crate) const SCRIPT: &str = "BINDPOST_TEST_SCRIPT";

/// The main function of the worker, if this process is one.
#[test]
fn process() {
    let Ok(script) = std::env::var(SCRIPT) else { return };
    let script: Script = serde_json::from_str(&script).unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work(script));
    std::process::exit(0);
}

pub(crate) fn note(folder: &Path, file: &str, line: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(folder.join(file)).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn option(name: &str) -> Option<String> {
    let mut arguments = std::env::args();
    arguments.find(|argument| argument == name)?;
    arguments.next()
}

async fn work(script: Script) {
    note(&script.notes, "starts", &std::process::id().to_string());
    let starts = std::fs::read_to_string(script.notes.join("starts")).unwrap().lines().count();
    if let Some((from, code)) = script.exit_from
        && starts >= from
    {
        eprintln!("exiting as the script says");
        std::process::exit(code);
    }
    if script.ignore_sigterm {
        let mut signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
        tokio::spawn(async move { while signal.recv().await.is_some() {} });
    }
    for step in &script.at_start {
        match step {
            Step::Say(text) => eprintln!("{text}"),
            Step::Sleep(millis) => tokio::time::sleep(Duration::from_millis(*millis)).await,
            Step::Exit(code) => std::process::exit(*code),
            Step::Hang => std::future::pending::<()>().await,
            other => panic!("{other:?} is not for the start"),
        }
    }
    let worker_id = option("--worker-id").or(option("--workerId")).unwrap();
    if script.lies_about_its_id {
        let (sender, mut receiver) = connect().await;
        let early = Content::WorkerStatusResponse(WorkerStatusResponse {});
        let _ = sender.send(StreamingMessage { request_id: String::new(), content: Some(early) });
        let _ = sender.send(start_stream("not-minted"));
        note(&script.notes, "lies", &format!("unminted: {}", receiver.recv().await.is_none()));
    }
    if let Some(replay) = &script.replay {
        return super::worker_recorded::replay(replay, &worker_id).await;
    }
    let (sender, receiver) = connect().await;
    sender.send(start_stream(&worker_id)).unwrap();
    Arc::new(Playing { script, worker_id, sender: Mutex::new(Some(sender)) }).run(receiver).await;
}

pub(crate) fn start_stream(worker_id: &str) -> StreamingMessage {
    StreamingMessage {
        request_id: "start".into(),
        content: Some(Content::StartStream(StartStream { worker_id: worker_id.into() })),
    }
}

type Link = (UnboundedSender<StreamingMessage>, UnboundedReceiver<StreamingMessage>);

/// Opens a stream to the address in the command line.
pub(crate) async fn connect() -> Link {
    match option("--socket") {
        Some(address) => connect_frames(&address).await,
        None => connect_grpc(option("--functions-uri").unwrap()).await,
    }
}

async fn connect_grpc(uri: String) -> Link {
    let (out, outgoing) = unbounded_channel();
    let (incoming, received) = unbounded_channel();
    let endpoint = tonic::transport::Endpoint::from_shared(uri).unwrap();
    let channel = endpoint.tcp_nodelay(true).connect().await.unwrap();
    let mut client = tonic::client::Grpc::new(channel)
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX);
    client.ready().await.unwrap();
    let path = "/AzureFunctionsRpcMessages.FunctionRpc/EventStream".parse().unwrap();
    let codec = tonic_prost::ProstCodec::<StreamingMessage, StreamingMessage>::default();
    let request = tonic::Request::new(UnboundedReceiverStream::new(outgoing));
    let mut stream = client.streaming(request, path, codec).await.unwrap().into_inner();
    tokio::spawn(async move {
        while let Ok(Some(message)) = stream.message().await {
            if incoming.send(message).is_err() {
                break;
            }
        }
    });
    (out, received)
}

async fn connect_frames(address: &str) -> Link {
    let path = address.strip_prefix("unix:").unwrap();
    let (mut read, mut write) = tokio::net::UnixStream::connect(path).await.unwrap().into_split();
    let (out, mut outgoing) = unbounded_channel::<StreamingMessage>();
    let (incoming, received) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(message) = outgoing.recv().await {
            let mut frame = Vec::new();
            for message in [message].into_iter().chain(std::iter::from_fn(|| outgoing.try_recv().ok())) {
                let json = serde_json::to_vec(&message).unwrap();
                frame.extend(u32::try_from(json.len()).unwrap().to_be_bytes());
                frame.extend(json);
            }
            if write.write_all(&frame).await.is_err() {
                break;
            }
        }
    });
    tokio::spawn(async move {
        let mut read = tokio::io::BufReader::new(&mut read);
        while let Ok(length) = read.read_u32().await {
            let mut json = vec![0; length as usize];
            if read.read_exact(&mut json).await.is_err()
                || incoming.send(serde_json::from_slice(&json).unwrap()).is_err()
            {
                break;
            }
        }
    });
    (out, received)
}

struct Playing {
    script: Script,
    worker_id: String,
    /// `None` after the stream is cut.
    sender: Mutex<Option<UnboundedSender<StreamingMessage>>>,
}

fn success() -> Option<StatusResult> {
    Some(StatusResult { status: 1, ..StatusResult::default() })
}

fn failure(message: &str) -> Option<StatusResult> {
    let exception = RpcException {
        message: message.into(),
        stack_trace: "  at /some/place/app.py line 1".into(),
        ..RpcException::default()
    };
    Some(StatusResult { exception: Some(exception), ..StatusResult::default() })
}

pub(crate) fn text(text: impl Into<String>) -> Option<TypedData> {
    Some(TypedData { data: Some(Data::String(text.into())) })
}

impl Playing {
    async fn run(self: Arc<Self>, mut receiver: UnboundedReceiver<StreamingMessage>) {
        while let Some(message) = receiver.recv().await {
            let id = message.request_id;
            match message.content {
                Some(Content::WorkerInitRequest(_)) => {
                    self.say(
                        &id,
                        Content::WorkerInitResponse(WorkerInitResponse {
                            capabilities: self.script.capabilities.clone().into_iter().collect(),
                            result: success(),
                            worker_metadata: Some(WorkerMetadata {
                                runtime_name: "scripted".into(),
                                runtime_version: "1".into(),
                                ..WorkerMetadata::default()
                            }),
                            ..WorkerInitResponse::default()
                        }),
                    );
                    if self.script.lies_about_its_id {
                        let (sender, mut receiver) = connect().await;
                        let _ = sender.send(start_stream(&self.worker_id));
                        note(
                            &self.script.notes,
                            "lies",
                            &format!("taken: {}", receiver.recv().await.is_none()),
                        );
                    }
                }
                Some(Content::FunctionsMetadataRequest(_)) => {
                    note(&self.script.notes, "notes", "index");
                    self.say(&id, Content::FunctionMetadataResponse(self.index()));
                }
                Some(Content::FunctionLoadRequest(request)) => {
                    let bindings = request.metadata.iter().flat_map(|metadata| &metadata.bindings);
                    let mut kinds: Vec<_> =
                        bindings.map(|(name, info)| format!("{name}={}", info.r#type)).collect();
                    kinds.sort();
                    note(&self.script.notes, "loads", &kinds.join(" "));
                    let result = match self.script.load_failures.get(&request.function_id) {
                        Some(message) => failure(message),
                        None => success(),
                    };
                    self.say(
                        &id,
                        Content::FunctionLoadResponse(FunctionLoadResponse {
                            function_id: request.function_id,
                            result,
                            ..FunctionLoadResponse::default()
                        }),
                    );
                }
                Some(Content::InvocationRequest(request)) => {
                    tokio::spawn(Arc::clone(&self).invoke(request));
                }
                Some(Content::InvocationCancel(cancel)) => {
                    note(&self.script.notes, "notes", &format!("cancel {}", cancel.invocation_id));
                }
                Some(Content::WorkerStatusRequest(_)) => {
                    let content = Some(Content::WorkerStatusResponse(WorkerStatusResponse {}));
                    self.send(StreamingMessage { request_id: id, content });
                }
                Some(Content::WorkerTerminate(_)) => {
                    note(&self.script.notes, "notes", "terminate");
                    if !self.script.ignore_terminate {
                        std::process::exit(0);
                    }
                }
                _ => {}
            }
        }
        if self.script.ignore_terminate || self.sender.lock().unwrap().is_none() {
            // The public Python worker outlives its stream.
            std::future::pending::<()>().await;
        }
    }

    fn say(&self, request_id: &str, content: Content) {
        let request_id = if self.script.own_request_id { "start" } else { request_id };
        self.send(StreamingMessage { request_id: request_id.into(), content: Some(content) });
    }

    fn send(&self, message: StreamingMessage) {
        if let Some(sender) = &*self.sender.lock().unwrap() {
            let _ = sender.send(message);
        }
    }

    fn index(&self) -> FunctionMetadataResponse {
        let functions = self.script.functions.keys().map(|name| RpcFunctionMetadata {
            name: name.clone(),
            function_id: name.clone(),
            language: "scripted".into(),
            raw_bindings: vec![self.script.binding.clone().unwrap_or_else(|| {
                r#"{"type":"mcpToolTrigger","name":"context","direction":"IN"}"#.to_owned()
            })],
            properties: HashMap::from([("worker_indexed".into(), "True".into())]),
            ..RpcFunctionMetadata::default()
        });
        FunctionMetadataResponse {
            function_metadata_results: functions.collect(),
            use_default_metadata_indexing: self.script.use_function_json,
            result: match &self.script.index_failure {
                Some(message) => failure(message),
                None => success(),
            },
        }
    }

    async fn invoke(self: Arc<Self>, request: InvocationRequest) {
        let id = request.invocation_id.clone();
        let input = request.input_data.first().and_then(|it| it.data.clone()?.data);
        let input = match input {
            Some(Data::String(text)) => text,
            _ => String::new(),
        };
        let mut response = InvocationResponse {
            invocation_id: id.clone(),
            result: success(),
            return_value: text(input.clone()),
            ..InvocationResponse::default()
        };
        let log = |invocation_id: &str, message: String| {
            self.say(
                "",
                Content::RpcLog(RpcLog {
                    invocation_id: invocation_id.into(),
                    message,
                    level: 2,
                    ..RpcLog::default()
                }),
            );
        };
        for step in &self.script.functions[&request.function_id] {
            match step {
                Step::Sleep(millis) => tokio::time::sleep(Duration::from_millis(*millis)).await,
                Step::SleepInput => tokio::time::sleep(Duration::from_millis(input.parse().unwrap())).await,
                Step::Log(message) => log(&id, message.clone()),
                Step::Logs(count) => (0..*count).for_each(|number| log(&id, number.to_string())),
                Step::StrayLog(message) => log("unknown", message.clone()),
                Step::Print(lines, size) => print_lines(*lines, *size),
                Step::PrintWithoutEnd(size) => print_without_end(*size),
                Step::Say(message) => eprintln!("{message}"),
                Step::Exit(code) => std::process::exit(*code),
                Step::Hang => std::future::pending::<()>().await,
                Step::Cut => drop(self.sender.lock().unwrap().take()),
                Step::Fail(message) => {
                    response.result = failure(message);
                    response.return_value = None;
                }
                Step::Cancelled => {
                    response.result = Some(StatusResult { status: 2, ..StatusResult::default() })
                }
                Step::Return(value) => response.return_value = text(value),
                Step::ReturnJson(value) => {
                    response.return_value = Some(TypedData { data: Some(Data::Json(value.clone())) });
                }
                Step::ReturnSize(size) => response.return_value = text("x".repeat(*size)),
                Step::ReturnPid => response.return_value = text(std::process::id().to_string()),
                Step::ReturnInputs => response.return_value = text(inputs(&request)),
                Step::Output => {
                    response.output_data =
                        vec![ParameterBinding { name: "file".into(), data: text(input.clone()) }];
                    let bytes = Data::Bytes(bytes::Bytes::from_static(b"\0\x01\xff"));
                    response.return_value = Some(TypedData { data: Some(bytes) });
                }
                Step::StrayAnswer => {
                    let stray = InvocationResponse { invocation_id: "unknown".into(), ..response.clone() };
                    self.say("", Content::InvocationResponse(stray));
                }
                Step::Twice => self.say("", Content::InvocationResponse(response.clone())),
            }
        }
        self.say("", Content::InvocationResponse(response));
    }
}

fn inputs(request: &InvocationRequest) -> String {
    let kind = |data: &Option<TypedData>| match data {
        None => "absent",
        Some(TypedData { data: None }) => "empty",
        Some(TypedData { data: Some(Data::String(_)) }) => "string",
        Some(TypedData { data: Some(Data::Json(_)) }) => "json",
        Some(TypedData { data: Some(Data::Bytes(_)) }) => "bytes",
        Some(_) => "other",
    };
    let mut seen: Vec<_> =
        request.input_data.iter().map(|it| format!("{}={}", it.name, kind(&it.data))).collect();
    let metadata: BTreeMap<_, _> = request.trigger_metadata.iter().collect();
    seen.extend(metadata.iter().map(|(name, data)| format!("{name}:{}", kind(&Some((*data).clone())))));
    seen.extend(request.trace_context.iter().map(|it| it.trace_parent.clone()));
    seen.join(" ")
}

fn print_lines(lines: usize, size: usize) {
    let mut line = vec![b'x'; size];
    line.push(b'\n');
    let block = line.repeat((1 << 20) / line.len() + 1);
    let mut left = lines * line.len();
    let mut stdout = std::io::stdout().lock();
    while left > 0 {
        let part = block.len().min(left);
        stdout.write_all(&block[..part]).unwrap();
        left -= part;
    }
    stdout.flush().unwrap();
}

fn print_without_end(size: usize) {
    let block = vec![b'y'; 1 << 20];
    let mut stderr = std::io::stderr().lock();
    for _ in 0..size >> 20 {
        stderr.write_all(&block).unwrap();
    }
}
