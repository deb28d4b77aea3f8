//! Tests of request smuggling. A request whose end is ambiguous is rejected and its connection closed, so
//! that nothing after it is read as a request.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::{PATIENCE, Server, VERSION};

/// Sends bytes and returns everything that arrives until the server closes the connection or waits for more.
async fn exchange(server: &Server, sent: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    // Closes the sending side. A valid request has been answered by then.
    let _ = stream.shutdown().await;
    let mut received = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut received)).await.unwrap();
    String::from_utf8(received).unwrap()
}

fn statuses(received: &str) -> Vec<&str> {
    received.split("HTTP/1.").skip(1).filter_map(|answer| answer.split(' ').nth(1)).collect()
}

/// A request that must never be answered on its own. Only a smuggled request asks for it.
const HIDDEN: &str =
    "GET /indexes('hotels')/docs?search=hidden&api-version=2025-09-01 HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test]
async fn requests_with_an_ambiguous_end_are_rejected_and_the_connection_closed() {
    let server = Server::start().await.with_index().await;
    let target = format!("/indexes('hotels')/docs/search.post.search?{VERSION}");
    for (name, head, body) in [
        ("length and chunks", "content-length: 4\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
        ("chunks and length", "transfer-encoding: chunked\r\ncontent-length: 4\r\n", "0\r\n\r\n"),
        ("two lengths", "content-length: 2\r\ncontent-length: 9\r\n", "{}"),
        ("a list of lengths", "content-length: 2, 9\r\n", "{}"),
        ("a length with a sign", "content-length: +2\r\n", "{}"),
        ("a negative length", "content-length: -1\r\n", ""),
        ("a length that is no number", "content-length: 0x2\r\n", "{}"),
        ("a length beyond all numbers", "content-length: 99999999999999999999999\r\n", "{}"),
        ("chunks within something", "transfer-encoding: chunked, identity\r\n", "0\r\n\r\n"),
        ("an unknown encoding", "transfer-encoding: xchunked\r\n", "0\r\n\r\n"),
        ("a space before the colon", "content-length : 2\r\n", "{}"),
        ("a space before the colon of chunks", "transfer-encoding : chunked\r\ncontent-length: 0\r\n", ""),
        ("a folded line", "x-folded: a\r\n content-length: 2\r\ncontent-length: 0\r\n", ""),
        ("a folded encoding", "transfer-encoding:\r\n chunked\r\ncontent-length: 0\r\n", ""),
        ("a name with a control character", "content-\u{1}length: 2\r\n", "{}"),
        ("a value with a return", "x-value: a\rcontent-length: 2\r\ncontent-length: 0\r\n", ""),
        ("a value with a null", "x-value: a\0b\r\ncontent-length: 0\r\n", ""),
    ] {
        let sent = format!("POST {target} HTTP/1.1\r\nhost: localhost\r\n{head}\r\n{body}{HIDDEN}");
        let received = exchange(&server, &sent).await;
        assert!(!received.contains("hidden"), "{name}: {received}");
        let statuses = statuses(&received);
        let refused = statuses.iter().all(|status| status.starts_with('4'));
        assert!(refused && statuses.len() <= 1, "{name}: {received}");
    }
}

#[tokio::test]
async fn chunks_with_a_wrong_size_are_rejected() {
    let server = Server::start().await.with_index().await;
    let target = format!("/indexes('hotels')/docs/search.post.search?{VERSION}");
    for (name, body) in [
        ("no size", "\r\n{}\r\n0\r\n\r\n"),
        ("a size with a sign", "+2\r\n{}\r\n0\r\n\r\n"),
        ("a size with a prefix", "0x2\r\n{}\r\n0\r\n\r\n"),
        ("a size beyond all numbers", "fffffffffffffffff\r\n{}\r\n0\r\n\r\n"),
        ("more than the size", "1\r\n{}\r\n0\r\n\r\n"),
        ("no end of a chunk", "2\r\n{}0\r\n\r\n"),
        ("a line feed alone", "2\n{}\r\n0\r\n\r\n"),
        ("an endless extension", &format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "x".repeat(100_000))),
    ] {
        let sent = format!(
            "POST {target} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{body}{HIDDEN}"
        );
        let received = exchange(&server, &sent).await;
        assert!(!received.contains("hidden"), "{name}: {received}");
        assert!(statuses(&received).len() <= 1, "{name}: {received}");
        assert!(!received.starts_with("HTTP/1.1 2"), "{name}: {received}");
    }
    // Trailers end a body like an empty line does, and are not headers.
    let sent = format!(
        "POST {target} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n\
         2\r\n{{}}\r\n0\r\ncontent-length: 5\r\n\r\n"
    );
    assert_eq!(statuses(&exchange(&server, &sent).await), ["200"]);
}

#[tokio::test]
async fn old_and_unusual_request_forms_are_unambiguous() {
    let server = Server::start().await.with_index().await;
    let list = format!("/indexes?{VERSION}");
    // HTTP/1.0 has no chunks.
    let sent = format!(
        "POST {list} HTTP/1.0\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"
    );
    let received = exchange(&server, &sent).await;
    assert!(!received.contains("hidden"), "{received}");
    assert!(statuses(&received).iter().all(|status| status.starts_with('4')), "{received}");
    // Some servers accept a line feed alone as the end of a line. Here it must be one valid request or none.
    let received = exchange(&server, &format!("GET {list} HTTP/1.1\nhost: localhost\n\n")).await;
    assert!(matches!(statuses(&received).as_slice(), ["200" | "400"]), "{received}");
    // The absolute form may name another host than the header. It is then ambiguous which host is meant.
    for (target, host, status) in [
        ("localhost", "rebound.example.com", "400"),
        ("rebound.example.com", "localhost", "400"),
        ("rebound.example.com", "rebound.example.com", "403"),
        ("localhost", "localhost", "200"),
    ] {
        let sent = format!("GET http://{target}{list} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        let received = exchange(&server, &sent).await;
        assert_eq!(statuses(&received), [status], "http://{target}, host {host}: {received}");
    }
    for head in ["", "host: localhost\r\nhost: rebound.example.com\r\n"] {
        let received = exchange(&server, &format!("GET {list} HTTP/1.1\r\n{head}\r\n")).await;
        assert_eq!(statuses(&received), ["400"], "{head:?}: {received}");
    }
    // Two requests in one packet are two requests.
    let one = format!("GET {list} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(statuses(&exchange(&server, &format!("{one}{one}")).await), ["200", "200"]);
}
