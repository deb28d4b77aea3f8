//! The program of the first chapter, started as its reader starts it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test may fail wherever it likes")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The address that the chapter names.
const ADDRESS: &str = "127.0.0.1:7071";

struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn call() -> std::io::Result<String> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count_words",
        "arguments":{"text":"to be"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut stream = TcpStream::connect(ADDRESS)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let length = body.len();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {ADDRESS}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: count_words\r\n\
         content-length: {length}\r\n\r\n{body}"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

#[test]
fn the_first_server_answers_on_the_address_of_the_chapter() {
    if TcpListener::bind(ADDRESS).is_err_and(|error| error.kind() == ErrorKind::AddrInUse) {
        eprintln!("skipped: another program uses {ADDRESS}");
        return;
    }
    let _program = Program(Command::new(env!("CARGO_BIN_EXE_guide")).spawn().unwrap());
    let deadline = Instant::now() + Duration::from_secs(20);
    let response = loop {
        match call() {
            Ok(response) => break response,
            Err(error) if Instant::now() > deadline => panic!("no answer: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    assert!(response.contains(r#""text":"2""#), "{response}");
}
