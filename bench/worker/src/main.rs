//! Drives one of our own language workers without the host: the same process, the same frames over a unix socket,
//! the same messages, and nothing else. What it measures is the most that a host could reach.
//!
//! worker-load --program INTERPRETER --worker FILE --app DIR --socket PATH
//!             --tool NAME --arguments JSON --marker TEXT
//!
//! Starts the worker, lets it load the app, then reads lines `CONCURRENCY WARMUP SECS` from stdin and prints one line
//! of JSON for each. The worker lives until the end of stdin, so that what its compiler has learnt is kept, as it is
//! behind a host. One thread; all answers of one read are followed by all their successors in one write.
//!
//! With `--relay yes` it is an HTTP server in front of the worker instead (`relay.rs`), and prints its port.
mod relay;

use memchr::memmem;
use serde_json::{json, Value};
use std::io::{BufRead, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const WORKER_ID: &str = "worker";
const MISSING: &str = "the worker ended";

struct Options {
    program: String,
    worker: String,
    app: String,
    socket: String,
    tool: String,
    arguments: String,
    marker: String,
    relay: bool,
}

fn main() {
    let options = options();
    let (_worker, mut stream) = start(&options);
    let function = load(&mut stream, &options);
    let request = Request::new(&function, &options);
    if options.relay {
        relay::serve(stream, &request, &options.marker);
    }
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("stdin");
        let words: Vec<f64> = line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let [concurrency, warmup, secs] = words[..] else { panic!("CONCURRENCY WARMUP SECS: {line}") };
        let seconds = Duration::from_secs_f64;
        let run = Run::new(&mut stream, &request, &options.marker, concurrency as usize);
        println!("{}", run.measure(seconds(warmup), seconds(secs)));
    }
}

fn options() -> Options {
    let mut words = std::env::args().skip(1);
    let mut given = std::collections::HashMap::new();
    while let Some(name) = words.next() {
        given.insert(name, words.next().expect("a value after each option"));
    }
    let relay = given.remove("--relay").is_some();
    let mut take = |name: &str| given.remove(name).unwrap_or_else(|| panic!("{name} is missing"));
    Options {
        program: take("--program"),
        worker: take("--worker"),
        app: take("--app"),
        socket: take("--socket"),
        tool: take("--tool"),
        arguments: take("--arguments"),
        marker: take("--marker"),
        relay,
    }
}

/// The worker's process; it ends with this value.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the worker as the host does, and waits until it has connected.
fn start(options: &Options) -> (Worker, UnixStream) {
    let _ = std::fs::remove_file(&options.socket);
    let listener = UnixListener::bind(&options.socket).expect("a socket");
    let mut command = Command::new(&options.program);
    command.arg(&options.worker).args(["--socket", &format!("unix:{}", options.socket)]);
    command.args(["--worker-id", WORKER_ID, "--request-id", "start"]).current_dir(&options.app);
    let folder = std::path::Path::new(&options.worker).parent().expect("the worker's folder");
    command.env("FUNCTIONS_WORKER_DIRECTORY", folder);
    command.env("FUNCTIONS_APPLICATION_DIRECTORY", &options.app);
    command.env("AzureWebJobsScriptRoot", &options.app);
    command.env("PYTHON_THREADPOOL_THREAD_COUNT", "1000").env("PYTHONUNBUFFERED", "1");
    // Our stdout is for figures.
    command.stdin(Stdio::null()).stdout(std::io::stderr());
    let child = Worker(command.spawn().expect("the worker"));
    let (stream, _) = listener.accept().expect("the worker's connection");
    let _ = std::fs::remove_file(&options.socket);
    (child, stream)
}

/// What the host asks before the first invocation. Returns the function behind the tool, and its trigger's parameter.
fn load(stream: &mut UnixStream, options: &Options) -> Function {
    wait_for(stream, "startStream");
    let app = &options.app;
    let hello = json!({"hostVersion": "4.0.0", "functionAppDirectory": app, "workerDirectory": ""});
    ask(stream, json!({"workerInitRequest": hello}), "workerInitResponse");
    let request = json!({"functionsMetadataRequest": {"functionAppDirectory": app}});
    let answer = ask(stream, request, "functionMetadataResponse");
    let functions = answer["functionMetadataResults"].as_array();
    let functions = functions.unwrap_or_else(|| panic!("the worker found no functions: {answer}"));
    let found = functions.iter().find_map(|function| {
        let bindings = function["rawBindings"].as_array()?.iter();
        let mut bindings = bindings.filter_map(|raw| serde_json::from_str::<Value>(raw.as_str()?).ok());
        let trigger = bindings.find(|binding| binding["toolName"] == options.tool.as_str())?;
        Some((function.clone(), trigger["name"].as_str()?.to_owned()))
    });
    let (metadata, parameter) = found.unwrap_or_else(|| panic!("no function has the tool: {answer}"));
    let id = metadata["functionId"].as_str().expect("its id").to_owned();
    let answer = ask(
        stream,
        json!({"functionLoadRequest": {"functionId": id, "metadata": metadata}}),
        "functionLoadResponse",
    );
    assert_eq!(answer["result"]["status"], 1, "{answer}");
    Function { id, parameter }
}

struct Function {
    id: String,
    parameter: String,
}

fn ask(stream: &mut UnixStream, mut request: Value, answer: &str) -> Value {
    request["requestId"] = json!("load");
    let body = request.to_string();
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend(body.bytes());
    stream.write_all(&frame).expect(MISSING);
    wait_for(stream, answer)
}

/// Reads messages until one is of this kind; the others are logs.
fn wait_for(stream: &mut UnixStream, kind: &str) -> Value {
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length).expect(MISSING);
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut body).expect(MISSING);
        let mut message: Value = serde_json::from_slice(&body).expect("JSON");
        if let Some(content) = message.get_mut(kind) {
            return content.take();
        }
    }
}

/// The frame of an invocation, as the host writes it for `tools/call`; only the number in its id changes.
struct Request {
    frame: Vec<u8>,
    number_at: usize,
}

const DIGITS: usize = 12;

impl Request {
    fn new(function: &Function, options: &Options) -> Self {
        let arguments: Value = serde_json::from_str(&options.arguments).expect("--arguments is no JSON");
        let tool = &options.tool;
        // The headers of `load`, and its client.
        let context = format!(
            concat!(
                r#"{{"name":"{tool}","arguments":{arguments},"clientinfo":{{"name":"load","version":"0.1.0"}},"#,
                r#""transport":{{"name":"http-streamable","properties":{{"headers":{{"Host":"127.0.0.1:40000","#,
                r#""Content-Type":"application/json","Accept":"application/json, text/event-stream","#,
                r#""MCP-Protocol-Version":"2026-07-28","Mcp-Method":"tools/call","Mcp-Name":"{tool}","#,
                r#""Content-Length":"300"}}}}}}}}"#
            ),
            tool = tool,
            arguments = options.arguments,
        );
        let request = json!({"invocationRequest": {
            "invocationId": "0000abcd-0000-4000-8000-000000000000",
            "functionId": function.id,
            "inputData": [{"name": function.parameter, "data": {"string": context}}],
            "triggerMetadata": {"mcptoolargs": {"json": texts(&arguments)}},
        }});
        let body = request.to_string();
        let mut frame = (body.len() as u32).to_be_bytes().to_vec();
        frame.extend(body.bytes());
        let number_at = memmem::find(&frame, b"4000-8000-").expect("the id") + 10;
        Self { frame, number_at }
    }

    fn push(&self, out: &mut Vec<u8>, number: usize) {
        let start = out.len() + self.number_at;
        out.extend_from_slice(&self.frame);
        let mut rest = number;
        for digit in out[start..start + DIGITS].iter_mut().rev() {
            *digit = b"0123456789abcdef"[rest & 15];
            rest >>= 4;
        }
    }
}

/// The arguments as trigger metadata has them: texts.
fn texts(arguments: &Value) -> String {
    let members = arguments.as_object().expect("--arguments is no object").iter();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Value::Object(members.map(|(name, value)| (name.clone(), text(value).into())).collect()).to_string()
}

struct Run<'a> {
    stream: &'a mut UnixStream,
    request: &'a Request,
    marker: memmem::Finder<'a>,
    concurrency: usize,
    /// When the invocation in each slot was sent; its number is the slot.
    sent: Vec<Instant>,
    out: Vec<u8>,
    took: Vec<u32>,
    errors: u64,
}

impl<'a> Run<'a> {
    fn new(stream: &'a mut UnixStream, request: &'a Request, marker: &'a str, concurrency: usize) -> Self {
        Self {
            stream,
            request,
            marker: memmem::Finder::new(marker),
            concurrency,
            sent: vec![Instant::now(); concurrency],
            out: Vec::new(),
            took: Vec::with_capacity(1 << 20),
            errors: 0,
        }
    }

    fn measure(mut self, warmup: Duration, secs: Duration) -> String {
        let begin = Instant::now();
        let mut start = None;
        let mut window = None;
        let mut in_flight = self.concurrency;
        (0..self.concurrency).for_each(|slot| self.begin(slot));
        self.flush();
        let mut buffer = vec![0; 1 << 18];
        let mut filled = 0;
        while in_flight > 0 {
            let read = self.stream.read(&mut buffer[filled..]).expect(MISSING);
            assert!(read > 0, "{MISSING}");
            filled += read;
            let now = Instant::now();
            match start {
                None if now - begin >= warmup => {
                    start = Some(now);
                    self.took.clear();
                }
                Some(start) if window.is_none() && now - start >= secs => window = Some(now - start),
                _ => {}
            }
            let mut at = 0;
            while let Some(header) = buffer[at..filled].first_chunk::<4>() {
                let end = at + 4 + u32::from_be_bytes(*header) as usize;
                if end > filled {
                    break;
                }
                if let Some(slot) = self.finish(&buffer[at + 4..end], now, window.is_none()) {
                    match window {
                        None => self.begin(slot),
                        Some(_) => in_flight -= 1,
                    }
                }
                at = end;
            }
            buffer.copy_within(at..filled, 0);
            filled -= at;
            self.flush();
        }
        self.report(window.unwrap_or_default())
    }

    fn begin(&mut self, slot: usize) {
        self.sent[slot] = Instant::now();
        self.request.push(&mut self.out, slot);
    }

    fn flush(&mut self) {
        self.stream.write_all(&self.out).expect(MISSING);
        self.out.clear();
    }

    /// Takes an answer. Returns the slot that it frees; none for a log.
    fn finish(&mut self, body: &[u8], now: Instant, counts: bool) -> Option<usize> {
        memmem::find(body, b"invocationResponse")?;
        let id = memmem::find(body, b"4000-8000-").expect("an answer with its id") + 10;
        let number = std::str::from_utf8(&body[id..id + DIGITS]).expect("the id");
        let slot = usize::from_str_radix(number, 16).expect("a number");
        if memmem::find(body, br#""status":1"#).is_none() || self.marker.find(body).is_none() {
            self.errors += 1;
            if self.errors == 1 {
                eprintln!("bad answer: {}", String::from_utf8_lossy(body));
            }
        }
        if counts {
            self.took.push((now - self.sent[slot]).as_nanos().min(u32::MAX.into()) as u32);
        }
        Some(slot)
    }

    /// In the words of `load`.
    fn report(mut self, window: Duration) -> String {
        self.took.sort_unstable();
        let quantile = |part: f64| match self.took.len() {
            0 => 0.0,
            many => f64::from(self.took[((many - 1) as f64 * part) as usize]) / 1000.0,
        };
        let done = self.took.len();
        let report = json!({
            "conns": self.concurrency,
            "n": done,
            "rps": done as f64 / window.as_secs_f64(),
            "p50_us": quantile(0.5),
            "p99_us": quantile(0.99),
            "errors": self.errors,
        });
        report.to_string()
    }
}
