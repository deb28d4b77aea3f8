//! The program as a child process, and a minimal HTTP client.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// The running program.
pub(crate) struct Orders {
    child: Child,
    pub(crate) address: String,
}

impl Orders {
    pub(crate) fn start(arguments: &[&str]) -> Orders {
        Orders::start_with(arguments, |_| {})
    }

    pub(crate) fn start_with(arguments: &[&str], change: impl FnOnce(&mut Command)) -> Orders {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orders"));
        command.args(arguments).stderr(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().expect("orders runs");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let address = lines
            .find_map(|line| Some(line.split_once("http://")?.1.split('/').next()?.to_owned()))
            .expect("it prints its address");
        // Its further output is read, so that it does not block.
        std::thread::spawn(move || lines.for_each(drop));
        Orders { child, address }
    }

    pub(crate) fn post(&self, headers: &str, body: &str) -> Answer {
        self.request("POST", "/mcp", headers, body)
    }

    pub(crate) fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        send(&self.address, method, path, &format!("Host: {}\r\n{headers}", self.address), body)
    }

    pub(crate) fn call_method(&self, method: &str, params: Value, headers: &str) -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.post(
            &format!("Content-Type: application/json\r\nMCP-Protocol-Version: 2025-11-25\r\n{headers}"),
            &body,
        )
    }

    pub(crate) fn call_tool(&self, tool: &str, arguments: Value, headers: &str) -> Answer {
        self.call_method("tools/call", json!({"name": tool, "arguments": arguments}), headers)
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends one request and reads the response to its end. The headers include that of the host.
pub(crate) fn send(address: &str, method: &str, path: &str, headers: &str, body: &str) -> Answer {
    let mut socket = begin(address, method, path, headers, body);
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("reads");
    Answer::parse(&answer)
}

/// Sends one request and returns the connection.
pub(crate) fn begin(address: &str, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).expect("connects");
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n");
    socket.write_all(format!("{head}{body}").as_bytes()).expect("writes");
    socket
}

/// Decodes a chunked body, as far as it is complete.
pub(crate) fn unchunked(body: &str) -> String {
    let mut whole = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).expect("the size of a chunk");
        whole.push_str(after.get(..size).expect("a whole chunk"));
        rest = after.get(size + 2..).unwrap_or_default();
    }
    whole
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    fn parse(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers: Vec<_> = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        let mut answer = Answer { status: status.expect("a status"), headers, body: body.to_owned() };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunked(&answer.body);
        }
        answer
    }

    /// Returns the messages of an event stream, or the one message of a JSON response.
    pub(crate) fn messages(&self) -> Vec<Value> {
        if self.header("content-type") != Some("text/event-stream") {
            return vec![self.json()];
        }
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }
}

pub(crate) fn free_port() -> u16 {
    // Not a port that the system gives to the sockets of parallel tests.
    let random = RandomState::new().build_hasher().finish() % 12_000;
    let mut ports = (0..12_000).map(|step| 20_000 + ((random + step) % 12_000) as u16);
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

/// Writes a file with this text in a folder below the build folder.
pub(crate) fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::write(&path, text).expect("writes");
    path
}
