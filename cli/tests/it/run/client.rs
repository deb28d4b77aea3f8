//! A small HTTP client that checks every byte of a response and never retries.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) const MCP: &str = "/runtime/webhooks/mcp";
pub(crate) const SSE: &str = "/runtime/webhooks/mcp/sse";

/// Timeout of a call. It is longer than any call of a test, so a call that hangs fails its test.
const LONGEST: Duration = Duration::from_secs(40);

/// A client that opens a new connection for each request.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) address: String,
}

/// An HTTP response.
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

    /// Sends a request and returns the connection, from which the response can be read.
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

    /// Sends a request that must succeed and returns its result.
    pub(crate) fn request(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.post(MCP, &[], &message).expect("an answer").message();
        answer.get("result").cloned().unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    /// Calls a tool. Returns its text, or the text of its error.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
        Reply::read(self.send_call(tool, arguments).expect("connects")).expect("an answer").tool_text()
    }

    /// Calls a tool and returns the connection, from which the response can be read.
    pub(crate) fn send_call(&self, tool: &str, arguments: Value) -> io::Result<TcpStream> {
        self.send_message(MCP, &[], &call(tool, arguments))
    }

    /// Returns the id of the process that runs functions, or `None` if there is none.
    pub(crate) fn worker(&self) -> Option<i32> {
        self.call("pid", json!({})).ok()?.parse().ok()
    }

    pub(crate) fn tools(&self) -> Vec<String> {
        let list = self.request("tools/list", json!({}));
        let tools = list["tools"].as_array().expect("a list");
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Returns the status of the readiness endpoint.
    pub(crate) fn readiness(&self) -> u16 {
        self.get("/_/readyz").status
    }
}

/// Returns the message that calls a tool.
pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

impl Reply {
    /// Reads until the server closes the connection. An incomplete response is an error.
    pub(crate) fn read(mut socket: TcpStream) -> io::Result<Reply> {
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, format!("incomplete response: {text:?}"));
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

    /// Returns the only response to request 1, sent as JSON or as an event.
    pub(crate) fn message(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        let texts: Vec<&str> = match self.head.contains("text/event-stream") {
            true => self.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect(),
            false => vec![&self.body],
        };
        let messages = texts.into_iter().map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
        let mut answers: Vec<Value> = messages.filter(|message| message["id"] == 1).collect();
        assert_eq!(answers.len(), 1, "a request has exactly one response: {self:?}");
        answers.remove(0)
    }

    /// Returns the text of a tool result, or the text of its error.
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

/// The events of a stream.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    pub(crate) fn open(client: &Client, path: &str, headers: &[(&str, &str)]) -> Events {
        let headers: Vec<_> =
            [("accept", "text/event-stream")].into_iter().chain(headers.iter().copied()).collect();
        Events(BufReader::new(client.send("GET", path, &headers, "").expect("connects")))
    }

    /// Returns the data of the next event with data.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            // Chunk sizes are on their own lines and differ from all other lines here.
            if let Some(data) = line.trim_end().strip_prefix("data: ") {
                return Some(data.to_owned());
            }
        }
    }

    /// Waits for a message with this method.
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
