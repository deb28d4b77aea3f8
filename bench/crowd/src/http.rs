//! A minimal HTTP/1.1 client for the load generator: one connection, one request at a time, responses as a
//! whole or by events.
use serde_json::Value;
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The timeout of a response, after which it is lost. Calls may wait 10 s for a worker, and a stream may be
/// silent for 15 s.
const PATIENCE: Duration = Duration::from_secs(40);

/// The reason why an action failed.
#[derive(Debug)]
pub struct Trouble(pub String);

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub type Checked<T> = Result<T, Trouble>;

/// Fails with a message, formatted as by `format!`.
macro_rules! trouble {
    ($($text:tt)*) => { Err(crate::http::Trouble(format!($($text)*))) };
}
pub(crate) use trouble;

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    rest: BodyRest,
    /// Bytes of the body that do not form a whole event yet.
    events: Vec<u8>,
}

/// The remaining body of the current response.
enum BodyRest {
    Nothing,
    Bytes(usize),
    Chunks,
}

#[derive(Debug)]
pub struct Head {
    pub status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    #[cfg(test)]
    pub fn new(status: u16, headers: &[(&str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Self { status, headers: headers.collect() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// One event of a stream.
#[derive(Debug, Default)]
pub struct Event {
    pub id: Option<String>,
    pub name: Option<String>,
    pub data: String,
}

impl Event {
    pub fn message(&self) -> Checked<Value> {
        serde_json::from_str(&self.data)
            .map_err(|error| Trouble(format!("an event is not JSON ({error}): {}", self.data)))
    }
}

/// A complete response: its body, or the messages of its events.
#[derive(Debug)]
pub struct Reply {
    pub head: Head,
    pub messages: Vec<Value>,
}

impl Connection {
    pub async fn open(port: u16) -> Checked<Self> {
        match timeout(PATIENCE, TcpStream::connect(("127.0.0.1", port))).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                Ok(Self { stream, buffer: Vec::new(), rest: BodyRest::Nothing, events: Vec::new() })
            }
            Ok(Err(error)) => trouble!("no connection: {error}"),
            Err(_) => trouble!("no connection within {} s", PATIENCE.as_secs()),
        }
    }

    /// Sends a request, or a part of one.
    pub async fn send(&mut self, bytes: &[u8]) -> Checked<()> {
        match timeout(PATIENCE, self.stream.write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => trouble!("could not send: {error}"),
            Err(_) => trouble!("the server reads no bytes for {} s", PATIENCE.as_secs()),
        }
    }

    /// Sends a request and reads its whole response. Opens a new connection if the server closes this one.
    pub async fn exchange(&mut self, port: u16, request: &[u8]) -> Checked<Reply> {
        if !self.buffer.is_empty() {
            return trouble!("unexpected bytes: {}", text(&self.buffer));
        }
        self.send(request).await?;
        let reply = self.reply().await?;
        if reply.head.closes() {
            *self = Self::open(port).await?;
        }
        Ok(reply)
    }

    /// Reads the whole response.
    pub async fn reply(&mut self) -> Checked<Reply> {
        let head = self.head().await?;
        let mut messages = Vec::new();
        if head.is_stream() {
            while let Some(event) = self.event().await? {
                if !event.data.is_empty() {
                    messages.push(event.message()?);
                }
            }
        } else {
            let body = self.whole_body().await?;
            if !body.is_empty() {
                match serde_json::from_slice(&body) {
                    Ok(message) => messages.push(message),
                    Err(error) => {
                        return trouble!("status {}, not JSON ({error}): {}", head.status, text(&body))
                    }
                }
            }
        }
        Ok(Reply { head, messages })
    }

    /// Reads the head of the response.
    pub async fn head(&mut self) -> Checked<Head> {
        let end = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if !self.fill().await? {
                return match text(&self.buffer) {
                    came if came.is_empty() => {
                        trouble!("the server closed the connection without a response")
                    }
                    came => {
                        trouble!("the server closed the connection within the head of a response: {came}")
                    }
                };
            }
        };
        let bytes: Vec<u8> = self.buffer.drain(..end).collect();
        let lines = String::from_utf8_lossy(&bytes);
        let Some(status) = lines.get(9..12).and_then(|status| status.parse().ok()) else {
            return trouble!("not an HTTP response: {}", text(&bytes));
        };
        let headers = lines.lines().skip(1).filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        let head = Head { status, headers: headers.collect() };
        self.rest = if head.header("transfer-encoding") == Some("chunked") {
            BodyRest::Chunks
        } else {
            match head.header("content-length").and_then(|length| length.parse().ok()) {
                None | Some(0) => BodyRest::Nothing,
                Some(length) => BodyRest::Bytes(length),
            }
        };
        Ok(head)
    }

    pub async fn whole_body(&mut self) -> Checked<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await? {
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Returns the next event, or `None` at the end of the stream. Comments are skipped.
    pub async fn event(&mut self) -> Checked<Option<Event>> {
        let mut pending = std::mem::take(&mut self.events);
        loop {
            if let Some(at) = find(&pending, b"\n\n") {
                let block: Vec<u8> = pending.drain(..at + 2).collect();
                let event = parse_event(&String::from_utf8_lossy(&block));
                if event.id.is_none() && event.name.is_none() && event.data.is_empty() {
                    continue;
                }
                self.events = pending;
                return Ok(Some(event));
            }
            match self.piece().await? {
                Some(piece) => pending.extend_from_slice(&piece),
                None if pending.is_empty() => return Ok(None),
                None => return trouble!("the stream ends within an event: {}", text(&pending)),
            }
        }
    }

    /// Returns the next bytes of the body, or `None` at its end.
    async fn piece(&mut self) -> Checked<Option<Vec<u8>>> {
        match self.rest {
            BodyRest::Nothing => Ok(None),
            BodyRest::Bytes(length) => {
                if self.buffer.is_empty() && !self.fill().await? {
                    return trouble!("the body ends {length} bytes too early");
                }
                let taken = length.min(self.buffer.len());
                self.rest = if taken == length { BodyRest::Nothing } else { BodyRest::Bytes(length - taken) };
                Ok(Some(self.buffer.drain(..taken).collect()))
            }
            BodyRest::Chunks => self.chunk().await,
        }
    }

    async fn chunk(&mut self) -> Checked<Option<Vec<u8>>> {
        loop {
            if let Some(line) = find(&self.buffer, b"\r\n") {
                let size = String::from_utf8_lossy(&self.buffer[..line]).into_owned();
                let Ok(size) = usize::from_str_radix(size.trim(), 16) else {
                    return trouble!("invalid chunk size: {size:?}");
                };
                if self.buffer.len() >= line + 2 + size + 2 {
                    let chunk = self.buffer[line + 2..line + 2 + size].to_vec();
                    self.buffer.drain(..line + 2 + size + 2);
                    if size == 0 {
                        self.rest = BodyRest::Nothing;
                        return Ok(None);
                    }
                    return Ok(Some(chunk));
                }
            }
            if !self.fill().await? {
                return trouble!("the body ends within a chunk");
            }
        }
    }

    /// Reads available bytes. Returns `false` at the end of the connection.
    async fn fill(&mut self) -> Checked<bool> {
        match timeout(PATIENCE, self.stream.read_buf(&mut self.buffer)).await {
            Ok(Ok(read)) => Ok(read > 0),
            Ok(Err(error)) => trouble!("could not read: {error}"),
            Err(_) => trouble!("no bytes for {} s", PATIENCE.as_secs()),
        }
    }
}

fn parse_event(block: &str) -> Event {
    let mut event = Event::default();
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => event.id = Some(value.to_owned()),
            "event" => event.name = Some(value.to_owned()),
            "data" => {
                if !event.data.is_empty() {
                    event.data.push('\n');
                }
                event.data += value;
            }
            _ => {}
        }
    }
    event
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

/// Returns the beginning of the received bytes, for an error message.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_events_with_ids_and_several_lines() {
        let event = parse_event("id: 3::7\nevent: message\ndata: {\ndata: }\n\n");
        assert_eq!((event.id.as_deref(), event.name.as_deref()), (Some("3::7"), Some("message")));
        assert_eq!(event.data, "{\n}");
    }
}
