//! The service over HTTP, on connections that stay open.
use memchr::memmem;
use serde_json::{json, Value};
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::corpus::{Corpus, FIELDS};
use crate::figures;

const INDEX: &str = "documents";
const VERSION: &str = "2024-07-01";
const BATCH: usize = 1000;

/// Sends documents. All of them are durable afterwards.
pub fn upload(port: u16, documents: usize) -> Value {
    let corpus = Corpus::new();
    let mut connection = Connection::open(port);
    let definition = format!(r#"{{"name":"{INDEX}","fields":{FIELDS}}}"#);
    connection.send("PUT", &format!("/indexes/{INDEX}"), &definition);
    let mut bytes = 0;
    for first in (0..documents).step_by(BATCH) {
        let mut batch = String::from(r#"{"value":["#);
        for number in first..documents.min(first + BATCH) {
            if number > first {
                batch.push(',');
            }
            let json = corpus.document(number).json();
            bytes += json.len();
            batch += r#"{"@search.action":"upload","#;
            batch += &json[1..];
        }
        batch += "]}";
        connection.send("POST", &format!("/indexes/{INDEX}/docs/index"), &batch);
    }
    json!({"bytes_each": bytes / documents.max(1)})
}

/// Counts what can be found.
pub fn count(port: u16) -> Value {
    let mut connection = Connection::open(port);
    let found =
        connection.send("POST", &format!("/indexes/{INDEX}/docs/search"), r#"{"count":true,"top":0}"#);
    let found: Value = serde_json::from_slice(found).expect("JSON");
    json!({"documents": found["@odata.count"]})
}

pub fn search(port: u16, queries: usize, concurrency: usize) -> Value {
    let corpus = Corpus::new();
    let path = format!("/indexes/{INDEX}/docs/search");
    let searches = figures::searches(
        queries,
        concurrency,
        || Connection::open(port),
        |connection, number| {
            let answer = connection.send("POST", &path, &corpus.query(number).json());
            memmem::find_iter(answer, "\"@search.score\":").count()
        },
    );
    searches.json()
}

struct Connection {
    stream: TcpStream,
    port: u16,
    received: Vec<u8>,
}

impl Connection {
    fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, port, received: Vec::new() }
    }

    /// Sends a request and returns the body of its answer.
    fn send(&mut self, verb: &str, path: &str, body: &str) -> &[u8] {
        let head = format!(
            "{verb} {path}?api-version={VERSION} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        self.stream.write_all((head + body).as_bytes()).expect("a request");
        self.received.clear();
        let mut whole = None;
        while whole.is_none_or(|(_, end)| self.received.len() < end) {
            let length = self.received.len();
            self.received.resize(length + 64 * 1024, 0);
            let read = self.stream.read(&mut self.received[length..]).expect("an answer");
            assert!(read > 0, "the service has closed the connection");
            self.received.truncate(length + read);
            whole = whole.or_else(|| bounds(&self.received));
        }
        let (start, end) = whole.expect("an answer");
        let said = &self.received[..end];
        assert!(said.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(said));
        &self.received[start..end]
    }
}

/// Where the body of an answer starts and ends, once its head is complete.
fn bounds(received: &[u8]) -> Option<(usize, usize)> {
    let start = memmem::find(received, b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&received[..start]).expect("a head of text");
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().expect("a length"))
    });
    Some((start, start + length.unwrap_or(0)))
}
