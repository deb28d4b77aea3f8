//! Request smuggling: requests that two servers could parse in two ways. A proxy may have forwarded the hidden
//! request as a part of a body. It must never run, and the connection must not be reused if the end of a
//! request is ambiguous.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::time::Duration;

use bindpost_mcp_http::Settings;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::{Ask, TestServer};

/// The time to wait for a response. It is short, because some connections stay silent.
const SILENCE: Duration = Duration::from_millis(500);

/// The hidden request, which must not run. The fixture records its call.
fn hidden() -> Vec<u8> {
    Ask::modern_call("wait", json!({})).bytes()
}

/// The head of a call of `echo` with these framing headers.
fn head(framing: &str) -> Vec<u8> {
    let ask = Ask::modern_call("echo", json!({}));
    let bytes = String::from_utf8(ask.body(Vec::new()).bytes()).unwrap();
    let lines: Vec<&str> = bytes.split("\r\n").filter(|line| !line.starts_with("content-length")).collect();
    let head = lines.join("\r\n");
    format!("{}\r\n{framing}\r\n\r\n", head.trim_end()).into_bytes()
}

fn body() -> Vec<u8> {
    let bytes = Ask::modern_call("echo", json!({})).bytes();
    let at = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    bytes[at + 4..].to_vec()
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut chunks = format!("{:x}\r\n", body.len()).into_bytes();
    chunks.extend_from_slice(body);
    chunks.extend_from_slice(b"\r\n0\r\n\r\n");
    chunks
}

/// Sends the bytes and returns the status of every answer that comes, until the connection is closed
/// or silent.
async fn answers(server: &TestServer, bytes: &[u8]) -> Vec<u16> {
    let mut client = server.connect().await;
    // The server may have closed before it has read everything.
    let _ = client.stream.write_all(bytes).await;
    let mut received = Vec::new();
    let _ = tokio::time::timeout(SILENCE, client.stream.read_to_end(&mut received)).await;
    let text = String::from_utf8_lossy(&received);
    text.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].parse().unwrap()).collect()
}

/// Checks that the request is rejected or is the last one of its connection, and that the hidden one
/// never runs.
#[track_caller]
fn is_harmless(server: &TestServer, what: &str, answers: &[u16]) {
    assert!(answers.len() <= 1, "{what}: {answers:?}");
    assert_eq!(server.watch.begun.available_permits(), 0, "{what}: the hidden request has run");
}

#[tokio::test]
async fn a_request_with_two_lengths_hides_no_other_request() {
    let server = TestServer::start(Settings::default()).await;
    let (body, hidden) = (body(), hidden());
    let mut both = chunked(&body);
    both.extend_from_slice(&hidden);
    let plain = [body.clone(), hidden.clone()].concat();
    for (framing, rest) in [
        (format!("content-length: {}\r\ntransfer-encoding: chunked", both.len()), &both),
        (format!("transfer-encoding: chunked\r\ncontent-length: {}", both.len()), &both),
        (format!("content-length: {}\r\ncontent-length: {}", body.len(), plain.len()), &plain),
        (format!("content-length: {}\r\ncontent-length: {}", plain.len(), body.len()), &plain),
        (format!("content-length: {}, {}", body.len(), plain.len()), &plain),
        (format!("content-length: +{}", body.len()), &plain),
        (format!("content-length: {}x", body.len()), &plain),
        (format!("content-length: 0x{:x}", body.len()), &plain),
        (format!("content-length: -{}", body.len()), &plain),
        ("content-length: 18446744073709551617".to_owned(), &plain),
        ("content-length:".to_owned(), &plain),
        (format!("content-length : {}", body.len()), &plain),
        (format!("content-length: {}\r\ntransfer-encoding : chunked", plain.len()), &plain),
        ("transfer-encoding: xchunked".to_owned(), &both),
        ("transfer-encoding: chunked, identity".to_owned(), &both),
        ("transfer-encoding: identity".to_owned(), &both),
        ("transfer-encoding: chunked\r\ntransfer-encoding: identity".to_owned(), &both),
        ("transfer-encoding: \"chunked\"".to_owned(), &both),
        ("transfer-encoding: chunked\u{b}".to_owned(), &both),
        ("transfer-encoding:\u{0}chunked".to_owned(), &both),
    ] {
        let bytes = [head(&framing), rest.clone()].concat();
        let answers = answers(&server, &bytes).await;
        is_harmless(&server, &framing, &answers);
        // With a length and chunks, the chunks are used and the connection is closed.
        let has_both = framing.contains("transfer-encoding: chunked\r\n")
            || framing.ends_with("\r\ntransfer-encoding: chunked");
        assert!(has_both || answers != [200], "{framing}");
    }
    server.is_well().await;
}

#[tokio::test]
async fn invalid_chunks_hide_no_request() {
    let server = TestServer::start(Settings::default()).await;
    let (body, hidden) = (String::from_utf8(body()).unwrap(), String::from_utf8(hidden()).unwrap());
    let size = format!("{:x}", body.len());
    for chunks in [
        format!("0x{size}\r\n{body}\r\n0\r\n\r\n{hidden}"),
        format!("+{size}\r\n{body}\r\n0\r\n\r\n{hidden}"),
        format!("-1\r\n{body}\r\n0\r\n\r\n{hidden}"),
        format!("{size} {size}\r\n{body}\r\n0\r\n\r\n{hidden}"),
        format!("fffffffffffffffff\r\n{body}\r\n0\r\n\r\n{hidden}"),
        format!("{size}\r\n{body}0\r\n\r\n{hidden}"),
        format!("{size}\r\n{body}xx0\r\n\r\n{hidden}"),
        format!("\r\n{size}\r\n{body}\r\n0\r\n\r\n{hidden}"),
        format!("{size}\n{body}\r\n0\r\n\r\n{hidden}"),
        format!("{size};a\n{body}\r\n0\r\n\r\n{hidden}"),
        format!("{size}\r\n{body}\r\n0\r\nx: y\n\n{hidden}"),
    ] {
        let bytes = [head("transfer-encoding: chunked"), chunks.clone().into_bytes()].concat();
        let answers = answers(&server, &bytes).await;
        is_harmless(&server, &chunks, &answers);
    }
    server.is_well().await;
}

#[tokio::test]
async fn odd_heads_hide_no_request() {
    let server = TestServer::start(Settings::default()).await;
    let (body, hidden) = (body(), hidden());
    let plain = [body.clone(), hidden].concat();
    let length = format!("content-length: {}", body.len());
    for framing in [
        // A folded line, a bare CR, a NUL, a name with a space.
        format!("x-a: b\r\n {length}"),
        format!("x-a: b\r{length}"),
        format!("x-a: \0b\r\n{length}"),
        format!("x a: b\r\n{length}"),
        // A `connection` header does not remove the length.
        format!("connection: content-length\r\nupgrade: h2c\r\nx-a\r\n{length}"),
    ] {
        let answers = answers(&server, &[head(&framing), plain.clone()].concat()).await;
        is_harmless(&server, &framing, &answers);
    }
    // HTTP/1.0 has no chunks.
    let old = String::from_utf8(head("transfer-encoding: chunked")).unwrap().replace("HTTP/1.1", "HTTP/1.0");
    let bytes = [old.into_bytes(), chunked(&body), Ask::modern_call("wait", json!({})).bytes()].concat();
    is_harmless(&server, "chunks of HTTP/1.0", &answers(&server, &bytes).await);
    server.is_well().await;
}

#[tokio::test]
async fn the_body_of_a_request_without_one_is_not_the_next_request() {
    let server = TestServer::start(Settings::default()).await;
    let hidden = hidden();
    for method in
        ["GET /mcp", "DELETE /mcp", "OPTIONS /mcp", "HEAD /mcp", "PUT /mcp", "POST /elsewhere", "GET /sse/x"]
    {
        let length = hidden.len();
        let head = format!("{method} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
        let answers = answers(&server, &[head.into_bytes(), hidden.clone()].concat()).await;
        is_harmless(&server, method, &answers);
        assert_eq!(answers.len(), 1, "{method}");
    }
    server.is_well().await;
}

#[tokio::test]
async fn the_host_of_an_absolute_uri_is_checked() {
    let server = TestServer::start(Settings::default()).await;
    for (address, host) in [
        ("http://evil.example/mcp", "localhost"),
        ("http://localhost@evil.example/mcp", "localhost"),
        ("/mcp", "evil.example"),
    ] {
        let ask = Ask::modern_call("echo", json!({})).at(address).with("host", host);
        let reply = server.send(&ask).await;
        assert!([400, 403].contains(&reply.status), "{address} {host}: {}", reply.status);
    }
    server.is_well().await;
}
