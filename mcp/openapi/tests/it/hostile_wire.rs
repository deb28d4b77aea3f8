//! A service that violates HTTP. Each call ends in time, with a result or an error that names the problem.

use std::time::{Duration, Instant};

use bindpost_mcp_openapi::{Bridge, Credential, Upstream, UpstreamLimits};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::bridge_pets::{call, connect, document};

const SOON: Duration = Duration::from_secs(20);

/// Starts a service that reads a request, sends `first` once and then `again` until the connection ends.
/// Returns its address.
async fn saying(first: Vec<u8>, again: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let (first, again) = (first.clone(), again.clone());
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = socket.read(&mut request).await;
                let mut result = socket.write_all(&first).await;
                while result.is_ok() && !again.is_empty() {
                    result = socket.write_all(&again).await;
                }
            });
        }
    });
    address
}

/// Returns the result of `getStatus`, which must arrive in time.
async fn status_of(address: &str) -> Value {
    let limits = UpstreamLimits { total: Duration::from_secs(3), tries: 1, ..UpstreamLimits::default() };
    let upstream = Upstream::new(address, Credential::None, limits).unwrap();
    let mut client = connect(&Bridge::builder(document(), upstream).build().unwrap()).await;
    let begun = Instant::now();
    let result = call(&mut client, "getStatus", json!({})).await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(result.to_string().len() < 200_000, "{} bytes", result.to_string().len());
    result
}

#[tokio::test]
async fn endless_response_heads_are_errors() {
    for (what, first, again) in [
        ("early hints", "", "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n".repeat(100)),
        ("continue", "", "HTTP/1.1 100 Continue\r\n\r\n".repeat(100)),
        ("headers", "HTTP/1.1 200 OK\r\n", "x-a: b\r\n".repeat(100)),
        ("one header", "HTTP/1.1 200 OK\r\nx-a: ", "b".repeat(10_000)),
        ("a status", "HTTP/1.1 200 ", "O".repeat(10_000)),
        ("nothing at all", "\r\n", "\r\n".repeat(100)),
        ("no HTTP", "SSH-2.0-OpenSSH\r\n", "x".repeat(100)),
    ] {
        let result = status_of(&saying(first.into(), again.into()).await).await;
        assert_eq!(result["isError"], true, "{what}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("server_error") && !text.contains("127.0.0.1"), "{what}: {text}");
    }
}

#[tokio::test]
async fn wrong_content_lengths_are_errors_or_limit_the_body() {
    let json = "content-type: application/json\r\n";
    for (head, body, fine) in [
        ("content-length: 2\r\n", "{}{\"surplus\": 1}", true),
        ("content-length: 200\r\nconnection: close\r\n", "{}", false),
        ("content-length: 99999999999999\r\n", "{}", false),
        ("content-length: -1\r\n", "{}", false),
        ("content-length: 2\r\ncontent-length: 3\r\n", "{} ", false),
        ("transfer-encoding: chunked\r\n", "ffffffffffffffff1\r\n{}\r\n0\r\n\r\n", false),
        ("transfer-encoding: chunked\r\n", "2\r\n{}\r\nxx\r\n", false),
        ("transfer-encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n", true),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{json}{head}\r\n{body}");
        let result = status_of(&saying(answer.into(), Vec::new()).await).await;
        assert_eq!(result["isError"] != true, fine, "{head}{body}: {result}");
        assert!(!result.to_string().contains("surplus"), "{head}{body}: {result}");
    }
}

#[tokio::test]
async fn endless_chunks_and_trailers_are_errors() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    for (first, again) in [
        (format!("{head}2\r\n{{}}\r\n0\r\n"), "x-a: b\r\n".repeat(100)),
        (format!("{head}1;"), "a=b;".repeat(1_000)),
        (head.to_owned(), "1\r\n \r\n".repeat(1_000)),
    ] {
        let result = status_of(&saying(first.clone().into(), again.into()).await).await;
        assert_eq!(result["isError"], true, "{first}: {result}");
    }
}

#[tokio::test]
async fn wrong_media_types_and_charsets_do_no_harm() {
    let body = "{\"a\": \"\u{e9}\"}";
    for media in [
        "application/json; charset=utf-7",
        "application/json; charset=\"unknown",
        "application/json;;;=;",
        "text/plain; charset=utf-16",
        "image/png",
        "multipart/mixed; boundary=",
        "text/html",
        "application/\u{7f}",
    ] {
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let result = status_of(&saying(answer.into(), Vec::new()).await).await;
        assert!(result["content"].is_array(), "{media}: {result}");
    }
    for encoding in ["gzip", "br", "deflate", "gzip, gzip", "identity"] {
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: {encoding}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let result = status_of(&saying(answer.into(), Vec::new()).await).await;
        assert!(result["content"].is_array(), "{encoding}: {result}");
    }
}
