//! Invalid, huge, slow and truncated bodies: each gets a response, and the next client is served.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::time::{Duration, Instant};

use bindpost_mcp_http::Settings;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::{Ask, LATEST, MODERN, PATIENCE, TestServer, attentive, within};

async fn server() -> TestServer {
    TestServer::start(Settings::default()).await
}

/// A call of `echo` with these arguments, unchanged.
fn echo(arguments: &str) -> Ask {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = format!(r#"{{"name":"echo","arguments":{arguments},"_meta":{meta}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    Ask::modern_call("echo", json!({})).body(body)
}

#[tokio::test]
async fn invalid_json_is_a_parse_error() {
    let server = server().await;
    for body in [
        "",
        " ",
        "{",
        "}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}{}",
        "{'jsonrpc':'2.0'}",
        "{\"jsonrpc\":\"2.0\",\"id\":01,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",}",
        "{\"a\":NaN}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\\x\"}",
        "\u{feff}{}",
        "nul",
        "// hello\n{}",
    ] {
        server.send(&Ask::post(body)).await.refused(400, -32700);
    }
    server.is_well().await;
}

#[tokio::test]
async fn json_that_is_not_a_message_is_an_invalid_request() {
    let server = server().await;
    for body in [
        json!(7),
        json!("hello"),
        json!(null),
        json!([]),
        json!({}),
        json!({"jsonrpc": "2.0"}),
        json!({"jsonrpc": "2.0", "id": 1}),
        json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}),
        json!({"jsonrpc": 2.0, "id": 1, "method": "ping"}),
        json!({"id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": 7}),
        json!({"jsonrpc": "2.0", "id": 1, "method": null}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": null}),
        json!({"jsonrpc": "2.0", "id": null, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": {}, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": ""}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": "x"}),
        json!({"JSONRPC": "2.0", "ID": 1, "METHOD": "ping"}),
    ] {
        server.send(&Ask::post(body.to_string())).await.refused(400, -32600);
    }
    server.is_well().await;
}

#[tokio::test]
async fn rejects_duplicate_members_at_every_level() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for body in [
        // The message.
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        // Its parameters.
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"wait"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{},"_meta":{}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"a":1,"a":1},"name":"echo"}}"#,
        // Its arguments, and below.
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":[{"b":1,"b":2}]}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"\u0061":2}}}"#,
    ] {
        assert_eq!(server.send(&session.post(body)).await.refused(400, -32600)["id"], 1, "{body}");
    }
    // Objects with many members use another algorithm.
    let mut many: Vec<String> = (0..5_000).map(|number| format!("\"k{number}\":0")).collect();
    assert!(server.send(&echo(&format!("{{{}}}", many.join(",")))).await.tool_text().contains("k4999"));
    many.push("\"k17\":1".to_owned());
    server.send(&echo(&format!("{{{}}}", many.join(",")))).await.refused(400, -32600);
    server.is_well().await;
}

#[tokio::test]
async fn member_names_are_compared_exactly() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for params in [
        r#"{"Name":"echo"}"#,
        r#"{"name\u0000":"echo"}"#,
        r#"{"name ":"echo"}"#,
        r#"{"name":"ECHO"}"#,
        r#"{"name":"echo\u0000"}"#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        server.send(&session.post(body)).await.refused(200, -32602);
    }
}

#[tokio::test]
async fn deep_nesting_is_a_parse_error_and_does_not_overflow_the_stack() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let deep = "[".repeat(100_000);
    let closed = format!("{deep}{}", "]".repeat(100_000));
    let objects = "{\"a\":".repeat(100_000);
    for ask in [
        Ask::post(deep.clone()),
        Ask::post(closed.clone()),
        Ask::post(objects.clone()),
        session.post(closed.clone()),
        echo(&format!("{{\"a\":{closed}}}")),
        echo(&format!("{{\"a\":{objects}")),
        session.post(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{closed}}}"#)),
        session.post(format!(r#"{{"jsonrpc":"2.0","method":"x","params":{{"a":{closed}}}}}"#)),
        session.post(format!(r#"{{"jsonrpc":"2.0","id":{closed},"method":"x"}}"#)),
        session.post(format!(r#"{{"x":{closed},"jsonrpc":"2.0","id":1,"method":"ping"}}"#)),
    ] {
        server.send(&ask).await.refused(400, -32700);
    }
    // The maximum depth includes the message, its parameters and its arguments.
    let fits = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
    assert_eq!(server.send(&echo(&fits)).await.tool_text(), fits);
    server.is_well().await;
}

#[tokio::test]
async fn invalid_utf_8_lone_surrogates_and_nul_are_parse_errors() {
    let server = server().await;
    for inside in [
        &b"\xff"[..],
        b"\xc3",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\x00",
        br"\ud800",
        br"\udc00",
        br"\ud800x",
        br"\ud800\u0041",
        br"\u12",
    ] {
        let mut body = br#"{"jsonrpc":"2.0","id":1,"method":""#.to_vec();
        body.extend_from_slice(inside);
        body.extend_from_slice(br#""}"#);
        server.send(&Ask::post(body)).await.refused(400, -32700);
    }
    // Valid escapes are accepted.
    let text = server.send(&echo(r#"{"a":"\u0000\ud83d\ude00é"}"#)).await.tool_text();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"a": "\0😀é"}));
    server.is_well().await;
}

#[tokio::test]
async fn huge_numbers_are_harmless() {
    let server = server().await;
    for number in ["1e999", "-1e999", "1e-999", "123456789012345678901234567890", "0.1e1"] {
        let status = server.send(&echo(&format!("{{\"a\":{number}}}"))).await.status;
        assert!(status == 200 || status == 400, "{number}: {status}");
    }
    server.is_well().await;
}

#[tokio::test]
async fn a_compressed_body_is_415() {
    let server = server().await;
    for encoding in ["gzip", "deflate", "br", "GZIP", "gzip, identity", "identity, gzip"] {
        let ask = Ask::post(b"\x1f\x8b\x08\x00".to_vec()).header("content-encoding", encoding);
        server.send(&ask).await.refused(415, -32600);
    }
    server.send(&echo("{}").header("content-encoding", "identity")).await.result();
    server.is_well().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_before_it_is_sent() {
    let server = TestServer::start(Settings { max_body: 1_000, ..Settings::default() }).await;
    for length in ["1001", "4294967296", "9223372036854775807"] {
        for expect in ["", "expect: 100-continue\r\n"] {
            let mut client = server.connect().await;
            let head = format!(
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: {length}\r\n{expect}\r\n"
            );
            client.write(head.as_bytes()).await;
            let reply = client.reply(false).await;
            reply.refused(413, -32600);
            assert_eq!(reply.header("connection"), Some("close"));
            assert!(reply.text().contains("1000"), "{}", reply.text());
        }
    }
    server.is_well().await;
}

#[tokio::test]
async fn the_limit_is_exact() {
    let plain = echo("{}");
    let length = plain.bytes().windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let length = plain.bytes().len() - length;
    let server = TestServer::start(Settings { max_body: length, ..Settings::default() }).await;
    server.send(&plain).await.result();
    server.send(&echo("{ }")).await.refused(413, -32600);

    let chunked = |body: &[u8]| {
        let mut bytes = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
            transfer-encoding: chunked\r\n\r\n"
            .to_vec();
        for piece in body.chunks(7) {
            bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        bytes
    };
    for (extra, status) in [(0, 400), (1, 413)] {
        let mut client = server.connect().await;
        client.write(&chunked(&vec![b' '; length + extra])).await;
        assert_eq!(client.reply(false).await.status, status);
    }
}

/// The head of a POST with a chunked body.
const CHUNKED: &[u8] = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
    transfer-encoding: chunked\r\n\r\n";

#[cfg(target_os = "linux")]
#[test]
fn a_gigabyte_without_a_length_is_413_and_is_not_stored() {
    use crate::client::{ChildServer, Client};
    let settings = || (Settings::default(), bindpost_mcp_server::ServerLimits::default());
    let child =
        ChildServer::start("bad_input::a_gigabyte_without_a_length_is_413_and_is_not_stored", settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // The first body has the maximum size, so that its memory is not part of the measured growth.
        let fits = format!("{{\"a\":\"{}\"}}", "x".repeat(3 << 20));
        assert_eq!(child.send(&echo(&fits)).await.status, 200);
        let before = child.memory();

        let mut client = Client::connect(child.address).await;
        client.write(CHUNKED).await;
        let mut piece = format!("{:x}\r\n", 1 << 20).into_bytes();
        piece.extend_from_slice(&vec![b' '; 1 << 20]);
        piece.extend_from_slice(b"\r\n");
        let (mut sent, mut answered_after) = (0, None);
        let mut most = before;
        while sent < 1 << 30 {
            let (reading, mut writing) = client.stream.split();
            tokio::select! {
                biased;
                readable = reading.readable(), if answered_after.is_none() => {
                    readable.unwrap();
                    answered_after = Some(sent);
                }
                written = writing.write_all(&piece) => {
                    if written.is_err() {
                        break;
                    }
                    sent += 1 << 20;
                }
            }
            most = most.max(child.memory());
        }
        let reply = client.reply(false).await;
        reply.refused(413, -32600);
        // The limit and the two socket buffers.
        let answered_after = answered_after.unwrap_or(sent);
        assert!(answered_after < 32 << 20, "the response came after {answered_after} bytes");
        let grown = most.saturating_sub(before);
        assert!(grown < 16 << 20, "the memory has grown by {grown} bytes");
        assert_eq!(child.send(&echo("{}")).await.status, 200);
    });
}

#[tokio::test]
async fn a_slow_body_is_408() {
    let timeout = Duration::from_millis(300);
    let server = TestServer::start(Settings { body_timeout: timeout, ..attentive() }).await;
    for start in [&b""[..], b"{\"jsonrpc\":"] {
        let mut client = server.connect().await;
        let mut bytes = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
            content-length: 100\r\n\r\n"
            .to_vec();
        bytes.extend_from_slice(start);
        let began = Instant::now();
        client.write(&bytes).await;
        let reply = client.reply(false).await;
        reply.refused(408, -32600);
        assert_eq!(reply.header("connection"), Some("close"));
        assert!(began.elapsed() >= timeout - Duration::from_millis(10), "{:?}", began.elapsed());
        client.closed().await;
    }
    server.is_well().await;
}

#[tokio::test]
async fn a_body_that_arrives_byte_by_byte_is_408() {
    let timeout = Duration::from_millis(500);
    let server = TestServer::start(Settings { body_timeout: timeout, ..attentive() }).await;
    let mut client = server.connect().await;
    client.write(CHUNKED).await;
    let began = Instant::now();
    let (mut reading, mut writing) = client.stream.split();
    let mut answer = [0; 12];
    loop {
        assert!(began.elapsed() < PATIENCE, "the time for the body is not limited");
        tokio::select! {
            read = reading.read_exact(&mut answer) => {
                read.unwrap();
                break;
            }
            () = tokio::time::sleep(Duration::from_millis(20)) => writing.write_all(b"1\r\n \r\n").await.unwrap(),
        }
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
    server.is_well().await;
}

#[tokio::test]
async fn a_body_below_the_minimum_speed_is_408_before_the_timeout() {
    // After five seconds a body has to arrive at 1 KiB per second.
    let server = TestServer::start(Settings { body_timeout: Duration::from_secs(3600), ..attentive() }).await;
    let mut client = server.connect().await;
    client.write(CHUNKED).await;
    let (mut reading, mut writing) = client.stream.split();
    let mut answer = [0; 12];
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < PATIENCE, "the time for the body is not limited");
        tokio::select! {
            read = reading.read_exact(&mut answer) => {
                read.unwrap();
                break;
            }
            () = tokio::time::sleep(Duration::from_millis(100)) => writing.write_all(b"1\r\n \r\n").await.unwrap(),
        }
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
    server.is_well().await;
}

#[tokio::test]
async fn an_incomplete_request_does_not_affect_other_clients() {
    let server = server().await;
    let whole = echo("{}").bytes();
    for cut in [1, 10, whole.len() / 2, whole.len() - 100, whole.len() - 1] {
        let mut client = server.connect().await;
        client.write(&whole[..cut]).await;
        drop(client);
        // The same with an orderly shutdown of the connection.
        let mut client = server.connect().await;
        client.write(&whole[..cut]).await;
        within(client.stream.shutdown()).await.unwrap();
        let mut rest = Vec::new();
        let _ = within(client.stream.read_to_end(&mut rest)).await;
        let rest = String::from_utf8_lossy(&rest);
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 4"), "{rest}");
    }
    server.is_well().await;
}

#[tokio::test]
async fn a_rejected_body_is_not_read_as_the_next_request() {
    let server = server().await;
    let hidden = "DELETE /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for ask in [
        Ask::post(hidden).with("content-type", "text/plain"),
        Ask::post(hidden).header("content-encoding", "gzip"),
        Ask::post(hidden).at("/nothing"),
        Ask::post(hidden).header("origin", "http://evil.example.com"),
        Ask::new("PUT", "/mcp").body(hidden),
        Ask::new("GET", "/mcp").body(hidden),
    ] {
        let mut client = server.connect().await;
        let reply = client.send(&ask).await;
        assert!(reply.status >= 400, "{reply:?}");
        if reply.header("connection") == Some("close") {
            client.closed().await;
        } else {
            // The next response on the connection is that of the next request.
            assert_eq!(client.send(&echo("{}")).await.tool_text(), "{}");
        }
    }
}

#[tokio::test]
async fn rejects_ambiguous_lengths_and_smuggled_requests() {
    let server = server().await;
    for head in [
        "content-length: 0\r\ncontent-length: 10\r\n",
        "content-length: 0, 10\r\n",
        "content-length: -1\r\n",
        "content-length: +1\r\n",
        "content-length: 1x\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding: nonsense\r\n",
    ] {
        let mut client = server.connect().await;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{head}\r\n\
             GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n"
        );
        client.write(head.as_bytes()).await;
        assert_eq!(client.reply(false).await.status, 400, "{head}");
        client.closed().await;
    }
    server.is_well().await;
}

#[tokio::test]
async fn the_size_of_the_client_info_is_limited() {
    let server = server().await;
    let ask = Ask::initialize(LATEST).edit(|message| {
        message["params"]["clientInfo"]["name"] = json!("x".repeat(100_000));
    });
    let reply = server.send(&ask).await;
    assert_eq!(reply.refused(200, -32602)["id"], "open");
    assert_eq!(reply.header("mcp-session-id"), None);
    server.is_well().await;
}

#[tokio::test]
async fn the_server_works_after_a_thousand_invalid_requests() {
    let server = server().await;
    let mut client = server.connect().await;
    for number in 0..1_000 {
        let body = match number % 4 {
            0 => "{".to_owned(),
            1 => "[]".to_owned(),
            2 => format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"no/such"}}"#),
            _ => "[".repeat(1_000),
        };
        assert_eq!(client.send(&Ask::post(body)).await.status, 400);
    }
    client.send(&echo("{}")).await.result();
    server.is_well().await;
}

#[tokio::test]
async fn slow_bodies_do_not_block_new_clients() {
    let mut settings = attentive();
    settings.connections.connections_per_address = Some(4);
    let server = TestServer::start(settings).await;
    let call = server.send_in_background(Ask::modern_call("wait", json!({})));
    server.watch.has_begun(1).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut client = server.connect().await;
        client.write(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n").await;
        client.write(b"content-length: 100000\r\n\r\n{\"jsonrpc\"").await;
        slow.push(client);
        // Wait until the server expects the rest.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for _ in 0..5 {
        server.is_well().await;
    }
    // A complete request is never evicted for new clients.
    server.watch.go_on.add_permits(1);
    assert_eq!(call.await.unwrap().tool_text(), "waited");
}
