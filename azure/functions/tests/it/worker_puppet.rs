//! Workers whose messages a test writes, byte by byte.
//!
//! The process that the host starts only writes its arguments to a file and waits. The test reads them,
//! connects in its place and sends any messages, over real gRPC or over frames.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bindpost_azure_functions::function::{Function, FunctionSource};
use bindpost_azure_functions::worker::proto::StreamingMessage;
use bindpost_azure_functions::worker::*;
use bytes::Bytes;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::worker_harness::{Heard, LONG, Scratch, function, quick, until};

/// The worker's side of a stream.
pub(crate) struct Puppet {
    pub(crate) framing: Framing,
    pub(crate) worker_id: String,
    address: String,
    out: UnboundedSender<Bytes>,
    heard: UnboundedReceiver<Value>,
}

/// Running workers, the puppets that act for their processes, and their only function `f`.
pub(crate) struct Stage {
    pub(crate) workers: Arc<WorkerPool>,
    pub(crate) puppets: Vec<Puppet>,
    pub(crate) function: Arc<Function>,
    pub(crate) heard: Arc<Heard>,
    pub(crate) scratch: Scratch,
}

pub(crate) fn launch(framing: Framing, scratch: &Scratch, processes: usize) -> WorkerLaunch {
    // Writes the arguments, one line each, and renames the file when it is complete.
    let script = r#"printf '%s\n' "$@" > draft.$$; mv draft.$$ arguments.$$; exec sleep 600"#;
    WorkerLaunch {
        launcher: Vec::new(),
        program: "/bin/sh".into(),
        arguments: ["-c", script, "worker"].map(Into::into).to_vec(),
        worker_path: None,
        framing,
        has_unix_sockets: true,
        app_directory: scratch.path(),
        worker_directory: scratch.path(),
        environment: Vec::new(),
        language: "puppet".into(),
        runtime_version: None,
        host_version: "4.1037.0".into(),
        indexes: true,
        processes,
        folder: None,
    }
}

impl Stage {
    pub(crate) async fn set(framing: Framing) -> Stage {
        Stage::set_with(framing, quick(), 1).await
    }

    pub(crate) async fn set_with(framing: Framing, limits: WorkerLimits, processes: usize) -> Stage {
        let scratch = Scratch::new();
        let heard = Arc::new(Heard::default());
        let starting =
            tokio::spawn(WorkerPool::start(launch(framing, &scratch, processes), limits, heard.clone()));
        let mut first = Puppet::next(framing, &scratch).await;
        first.start().await;
        first.index(&["f"]).await;
        let (workers, _) = starting.await.unwrap().unwrap();
        let workers = Arc::new(workers);
        let function = function("f", "f", FunctionSource::default());
        let loading = tokio::spawn({
            let (workers, function) = (workers.clone(), function.clone());
            async move { workers.load(vec![function]).await }
        });
        first.load().await;
        loading.await.unwrap().unwrap();
        let mut puppets = vec![first];
        while puppets.len() < processes {
            let mut next = Puppet::next(framing, &scratch).await;
            next.start().await;
            next.load().await;
            puppets.push(next);
        }
        let stage = Stage { workers, puppets, function, heard, scratch };
        until("all serve", || stage.workers.worker_details().len() == processes).await;
        stage
    }

    /// Connects the replacement of a worker that has ended.
    pub(crate) async fn replacement(&self, framing: Framing) -> Puppet {
        let mut next = Puppet::next(framing, &self.scratch).await;
        next.start().await;
        next.load().await;
        next
    }

    /// Calls the function and waits until a puppet has the request. Returns the invocation's id.
    pub(crate) fn call(&self, timeout: Duration) -> Calling {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        let id = format!("call-{}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let invocation = bindpost_azure_functions::invocation::Invocation {
            id: id.as_str().into(),
            function: self.function.clone(),
            inputs: Vec::new(),
            metadata: Vec::new(),
            trace_parent: None,
            trace_state: None,
            stream: None,
        };
        let workers = self.workers.clone();
        let logs = Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = logs.clone();
        let answer = tokio::spawn(async move {
            workers.invoke(invocation, timeout, move |log| sink.lock().unwrap().push(log)).await
        });
        Calling { id, answer, logs }
    }

    /// Runs a whole call on the first puppet, to check that it works.
    pub(crate) async fn works(&mut self) {
        let call = self.call(LONG);
        let puppet = &mut self.puppets[0];
        assert_eq!(puppet.invoked().await, call.id);
        puppet.answer(&call.id, "well");
        call.returns("well").await;
    }
}

/// A call that is in progress.
pub(crate) struct Calling {
    pub(crate) id: String,
    pub(crate) answer: tokio::task::JoinHandle<
        Result<bindpost_azure_functions::invocation::InvocationOutcome, InvocationError>,
    >,
    pub(crate) logs: Arc<std::sync::Mutex<Vec<LogRecord>>>,
}

impl Calling {
    pub(crate) async fn returns(self, text: &str) {
        let outcome = self.ends().await.unwrap();
        assert_eq!(outcome.returned, bindpost_azure_functions::datum::Datum::Text(text.into()));
    }

    pub(crate) async fn fails(self) -> InvocationError {
        self.ends().await.unwrap_err()
    }

    async fn ends(self) -> Result<bindpost_azure_functions::invocation::InvocationOutcome, InvocationError> {
        tokio::time::timeout(LONG, self.answer).await.expect("the call ends").unwrap()
    }
}

impl Puppet {
    /// Connects in the place of the next process that the host has started.
    pub(crate) async fn next(framing: Framing, scratch: &Scratch) -> Puppet {
        let arguments = arguments(&scratch.path()).await;
        let option = |name: &str| {
            let at = arguments.iter().position(|argument| argument == name).unwrap();
            arguments[at + 1].clone()
        };
        let (address, worker_id) = match framing {
            Framing::Frames => (option("--socket"), option("--worker-id")),
            Framing::Grpc => (option("--functions-uri"), option("--functions-worker-id")),
        };
        let (out, heard) = connect(framing, &address).await;
        Puppet { framing, worker_id, address, out, heard }
    }

    /// Opens another stream to the same host, which has sent nothing yet.
    pub(crate) async fn another_stream(&self) -> Puppet {
        let (out, heard) = connect(self.framing, &self.address).await;
        Puppet { framing: self.framing, worker_id: String::new(), address: self.address.clone(), out, heard }
    }

    pub(crate) fn start_stream(&self, worker_id: &str) {
        self.say(json!({"startStream": {"workerId": worker_id}}));
    }

    /// Sends its id and its capabilities.
    pub(crate) async fn start(&mut self) {
        self.start_stream(&self.worker_id.clone());
        self.hears("workerInitRequest").await;
        let capabilities = json!({"HandlesInvocationCancelMessage": "true"});
        self.say(json!({"workerInitResponse": {"capabilities": capabilities, "result": {"status": 1}}}));
    }

    pub(crate) async fn index(&mut self, ids: &[&str]) {
        self.hears("functionsMetadataRequest").await;
        let functions: Vec<Value> =
            ids.iter().map(|id| json!({"name": id, "functionId": id, "rawBindings": []})).collect();
        self.say(json!({"functionMetadataResponse": {
            "functionMetadataResults": functions, "result": {"status": 1},
        }}));
    }

    pub(crate) async fn load(&mut self) {
        let request = self.hears("functionLoadRequest").await;
        let id = &request["functionId"];
        self.say(json!({"functionLoadResponse": {"functionId": id, "result": {"status": 1}}}));
    }

    /// Waits for the request of an invocation. Returns its id.
    pub(crate) async fn invoked(&mut self) -> String {
        self.hears("invocationRequest").await["invocationId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn answer(&self, id: &str, text: &str) {
        self.say(json!({"invocationResponse": {
            "invocationId": id, "returnValue": {"string": text}, "result": {"status": 1},
        }}));
    }

    pub(crate) fn log(&self, id: &str, category: &str, message: &str) {
        self.say(json!({"rpcLog": {
            "invocationId": id, "category": category, "message": message, "level": 2,
        }}));
    }

    /// Sends a message, written with the names of the protocol.
    pub(crate) fn say(&self, message: Value) {
        let message: StreamingMessage = serde_json::from_value(message).unwrap();
        self.frame(&match self.framing {
            Framing::Frames => serde_json::to_vec(&message).unwrap(),
            Framing::Grpc => message.encode_to_vec(),
        });
    }

    /// Sends these bytes as one message.
    pub(crate) fn frame(&self, message: &[u8]) {
        self.raw(&[self.header(u32::try_from(message.len()).unwrap()).as_slice(), message].concat());
    }

    /// Returns the header of a message of this length.
    pub(crate) fn header(&self, length: u32) -> Vec<u8> {
        match self.framing {
            Framing::Frames => length.to_be_bytes().to_vec(),
            Framing::Grpc => [&[0][..], &length.to_be_bytes()].concat(),
        }
    }

    pub(crate) fn raw(&self, bytes: &[u8]) {
        // A stream that the host has ended accepts nothing.
        let _ = self.out.send(Bytes::copy_from_slice(bytes));
    }

    /// Waits for a message of this kind. Others are skipped.
    pub(crate) async fn hears(&mut self, kind: &str) -> Value {
        loop {
            let message = tokio::time::timeout(LONG, self.heard.recv()).await;
            let message = message.unwrap_or_else(|_| panic!("no {kind}"));
            let mut message = message.unwrap_or_else(|| panic!("the host ended the stream before {kind}"));
            if let Some(content) = message.get_mut(kind) {
                return content.take();
            }
        }
    }

    /// Waits until the host ends the stream.
    pub(crate) async fn is_sent_away(&mut self) -> bool {
        let end = async { while self.heard.recv().await.is_some() {} };
        tokio::time::timeout(LONG, end).await.is_ok()
    }
}

/// Returns the arguments of the next process.
async fn arguments(folder: &Path) -> Vec<String> {
    for _ in 0..3_000 {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with("arguments.") {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                std::fs::rename(entry.path(), folder.join(format!("taken.{name}"))).unwrap();
                return text.lines().map(str::to_owned).collect();
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no process was started");
}

async fn connect(framing: Framing, address: &str) -> (UnboundedSender<Bytes>, UnboundedReceiver<Value>) {
    let (out, outgoing) = unbounded_channel::<Bytes>();
    let (tell, heard) = unbounded_channel();
    match framing {
        Framing::Frames => {
            let path = address.strip_prefix("unix:").unwrap();
            let (mut read, mut write) = tokio::net::UnixStream::connect(path).await.unwrap().into_split();
            let mut outgoing = outgoing;
            tokio::spawn(async move {
                while let Some(bytes) = outgoing.recv().await {
                    if write.write_all(&bytes).await.is_err() {
                        break;
                    }
                }
            });
            tokio::spawn(async move {
                while let Ok(length) = read.read_u32().await {
                    let mut json = vec![0; length as usize];
                    if read.read_exact(&mut json).await.is_err()
                        || tell.send(serde_json::from_slice(&json).unwrap()).is_err()
                    {
                        break;
                    }
                }
            });
        }
        Framing::Grpc => {
            let uri: http::Uri = address.parse().unwrap();
            let stream = tokio::net::TcpStream::connect(uri.authority().unwrap().as_str()).await.unwrap();
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                    .await
                    .unwrap();
            tokio::spawn(connection);
            let body = UnboundedReceiverStream::new(outgoing)
                .map(|bytes| Ok::<_, std::convert::Infallible>(Frame::data(bytes)));
            let request =
                http::Request::post(format!("{address}AzureFunctionsRpcMessages.FunctionRpc/EventStream"));
            let request = request
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .body(StreamBody::new(body))
                .unwrap();
            let response = sender.send_request(request).await.unwrap();
            tokio::spawn(async move {
                // The connection stays open as long as this.
                let _sender = sender;
                let (mut body, mut bytes) = (response.into_body(), Vec::new());
                while let Some(Ok(frame)) = body.frame().await {
                    let Ok(data) = frame.into_data() else { break };
                    bytes.extend_from_slice(&data);
                    while let Some(message) = cut(&mut bytes) {
                        if tell.send(serde_json::to_value(message).unwrap()).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    }
    (out, heard)
}

/// Removes a whole message from the start of the bytes of a gRPC stream.
fn cut(bytes: &mut Vec<u8>) -> Option<StreamingMessage> {
    let length = u32::from_be_bytes(bytes.get(1..5)?.try_into().unwrap()) as usize;
    let message = StreamingMessage::decode(bytes.get(5..5 + length)?).unwrap();
    bytes.drain(..5 + length);
    Some(message)
}
