//! The program as a child process, and a minimal HTTP client.

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
        let mut socket = TcpStream::connect(&self.address).expect("connects");
        let length = body.len();
        let host = &self.address;
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
        .expect("writes");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("reads");
        Answer::parse(&answer)
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

/// An HTTP response.
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
        Answer {
            status: status.expect("a status"),
            headers: headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// Writes a file with this text in a folder below the build folder.
pub(crate) fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::write(&path, text).expect("writes");
    path
}
