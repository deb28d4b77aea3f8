//! An HTTP client of a few lines: what comes back is looked at byte by byte, and no answer is asked for twice.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) const MCP: &str = "/runtime/webhooks/mcp";
pub(crate) const SSE: &str = "/runtime/webhooks/mcp/sse";

/// Longer than any call of a test takes, so that a call that hangs fails its test.
const LONGEST: Duration = Duration::from_secs(40);

/// Somebody who calls; each request has a connection of its own.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) address: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect(&self.address)?;
        socket.set_read_timeout(Some(LONGEST))?;
        Ok(socket)
    }

    /// Sends a request and leaves the answer to be read.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<TcpStream> {
        let mut socket = self.connect()?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        write!(socket, "{head}content-length: {}\r\n\r\n{body}", body.len())?;
        Ok(socket)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        Reply::read(self.send("GET", path, &[], "").expect("connects")).expect("an answer")
    }

    /// Posts a message to an MCP endpoint.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], message: &Value) -> io::Result<Reply> {
        Reply::read(self.send_message(path, headers, message)?)
    }

    pub(crate) fn send_message(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        message: &Value,
    ) -> io::Result<TcpStream> {
        let common =
            [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        let headers: Vec<_> = common.into_iter().chain(headers.iter().copied()).collect();
        self.send("POST", path, &headers, &message.to_string())
    }

    /// Asks for something that must succeed.
    pub(crate) fn request(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.post(MCP, &[], &message).expect("an answer").message();
        answer.get("result").cloned().unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    /// Calls a tool: its text, or the text of its error.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
        Reply::read(self.send_call(tool, arguments).expect("connects")).expect("an answer").tool_text()
    }

    /// Calls a tool and leaves the answer to be read.
    pub(crate) fn send_call(&self, tool: &str, arguments: Value) -> io::Result<TcpStream> {
        self.send_message(MCP, &[], &call(tool, arguments))
    }

    /// The process that runs functions; nothing while none does.
    pub(crate) fn worker(&self) -> Option<i32> {
        self.call("pid", json!({})).ok()?.parse().ok()
    }

    pub(crate) fn tools(&self) -> Vec<String> {
        let list = self.request("tools/list", json!({}));
        let tools = list["tools"].as_array().expect("a list");
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// The status with which the readiness question is answered.
    pub(crate) fn readiness(&self) -> u16 {
        self.get("/_/readyz").status
    }
}

/// The message that calls a tool.
pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

impl Reply {
    /// Reads until the server closes. A connection that ends early is an error.
    pub(crate) fn read(mut socket: TcpStream) -> io::Result<Reply> {
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, format!("an answer that is cut: {text:?}"));
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(cut)?;
        let head = head.to_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(cut)?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let body = match length.and_then(|length| length.parse::<usize>().ok()) {
            Some(length) if length == body.len() => body.to_owned(),
            Some(_) => return Err(cut()),
            None if head.contains("transfer-encoding: chunked") => unchunked(body).ok_or_else(cut)?,
            None => body.to_owned(),
        };
        Ok(Reply { status, head, body })
    }

    /// The one answer to the request 1, whether it came as JSON or as an event.
    pub(crate) fn message(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        let texts: Vec<&str> = match self.head.contains("text/event-stream") {
            true => self.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect(),
            false => vec![&self.body],
        };
        let messages = texts.into_iter().map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
        let mut answers: Vec<Value> = messages.filter(|message| message["id"] == 1).collect();
        assert_eq!(answers.len(), 1, "a request has exactly one answer: {self:?}");
        answers.remove(0)
    }

    /// What a tool said, or the text of its error.
    pub(crate) fn tool_text(&self) -> Result<String, String> {
        let message = self.message();
        if let Some(error) = message.get("error") {
            return Err(error.to_string());
        }
        let result = &message["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        if result["isError"] == true { Err(text) } else { Ok(text) }
    }
}

fn unchunked(mut body: &str) -> Option<String> {
    let mut whole = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n")?;
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.push_str(rest.get(..size)?);
        body = rest.get(size..)?.strip_prefix("\r\n")?;
    }
}

/// Events as they come.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    pub(crate) fn open(client: &Client, path: &str, headers: &[(&str, &str)]) -> Events {
        let headers: Vec<_> =
            [("accept", "text/event-stream")].into_iter().chain(headers.iter().copied()).collect();
        Events(BufReader::new(client.send("GET", path, &headers, "").expect("connects")))
    }

    /// The data of the next event that has some.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            // The sizes of chunks stand on lines of their own and look like nothing else here.
            if let Some(data) = line.trim_end().strip_prefix("data: ") {
                return Some(data.to_owned());
            }
        }
    }

    /// Waits for a message of this method.
    pub(crate) fn wait_for(&mut self, method: &str) -> Value {
        loop {
            let data = self.next().unwrap_or_else(|| panic!("the stream ended without {method}"));
            let message: Value = serde_json::from_str(&data).unwrap_or_default();
            if message["method"] == method {
                return message;
            }
        }
    }
}
