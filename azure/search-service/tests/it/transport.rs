//! Tests of TLS, timeouts, the maximum number of connections, and shutdown.

use std::time::Duration;

use bindpost_azure_search_service::internals::connection_limits;
use bindpost_net_listener::ConnectionLimits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::{PATIENCE, Server, Setup, VERSION, trust};

#[tokio::test]
async fn tls_works_for_clients_that_trust_the_authority() {
    let server = Server::with(Setup { tls: true, ..Setup::default() }).await.with_index().await;
    let read = server.send("GET", "/indexes('hotels')", None).await;
    assert_eq!(read.json()["@odata.context"], format!("{}/$metadata#indexes/$entity", server.base));
    assert!(server.base.starts_with("https://localhost:"));
    let target = format!("https://127.0.0.1:{}/indexes?{VERSION}", server.port);
    assert_eq!(server.client.get(&target).send().await.unwrap().status(), 200);
    let stranger = Server::with(Setup { tls: true, ..Setup::default() }).await;
    let other = trust(stranger.authority.as_deref().unwrap());
    let distrusting =
        bindpost_net_upstream::client_builder().no_proxy().tls_certs_only([other]).build().unwrap();
    assert!(distrusting.get(&target).send().await.is_err());
}

/// Reads until the server closes the connection.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut text)).await.unwrap();
    String::from_utf8(text).unwrap()
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(("127.0.0.1", server.port)).await.unwrap()
}

#[tokio::test]
async fn slow_heads_are_disconnected() {
    let limits = ConnectionLimits { header_read: Duration::from_millis(200), ..connection_limits() };
    let server = Server::with(Setup { limits, ..Setup::default() }).await.with_index().await;
    let mut slow = connect(&server).await;
    slow.write_all(b"GET / HT").await.unwrap();
    assert_eq!(until_closed(&mut slow).await, "");
    // A slow response is not disconnected.
    let answer = server.send("GET", "/indexes('hotels')/docs?search=slow", None).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn clients_that_do_not_read_are_disconnected() {
    let limits = ConnectionLimits { blocked_write: Duration::from_millis(200), ..connection_limits() };
    let setup = Setup { limits, most_body_bytes: 32 << 20, ..Setup::default() };
    let server = Server::with(setup).await.with_index().await;
    let mut deaf = connect(&server).await;
    // The test engine echoes the request, so the response is larger than all buffers of the system.
    let body = serde_json::json!({"search": "x".repeat(12 << 20)}).to_string();
    let target = format!("/indexes('hotels')/docs/search.post.search?{VERSION}");
    let length = body.len();
    let head = format!("POST {target} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
    deaf.write_all(head.as_bytes()).await.unwrap();
    deaf.write_all(body.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    // Buffered data arrives, and then the connection is closed.
    let mut received = Vec::new();
    let _ = timeout(PATIENCE, deaf.read_to_end(&mut received)).await.unwrap();
    assert!(received.len() < 12 << 20, "{}", received.len());
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let limits = ConnectionLimits {
        header_read: Duration::from_millis(200),
        keep_alive_idle: Duration::from_millis(200),
        ..connection_limits()
    };
    let server = Server::with(Setup { limits, ..Setup::default() }).await.with_index().await;
    assert_eq!(until_closed(&mut connect(&server).await).await, "");
    let mut used = connect(&server).await;
    used.write_all(b"GET /nope HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(until_closed(&mut used).await.starts_with("HTTP/1.1 404"));
    let answer = server.send("GET", "/indexes('hotels')/docs?search=slow", None).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_connection_above_the_maximum_gets_503() {
    let limits = ConnectionLimits { connections: 1, ..connection_limits() };
    let server = Server::with(Setup { limits, ..Setup::default() }).await;
    let mut first = connect(&server).await;
    first.write_all(b"GET /nope HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    first.read_u8().await.unwrap();
    let mut second = connect(&server).await;
    let refusal = until_closed(&mut second).await;
    assert!(refusal.starts_with("HTTP/1.1 503"), "{refusal}");
}

#[tokio::test]
async fn half_sent_heads_do_not_block_new_clients() {
    let limits = ConnectionLimits { connections: 4, sweep: Duration::from_millis(20), ..connection_limits() };
    let server = Server::with(Setup { limits, ..Setup::default() }).await.with_index().await;
    let mut half_sent = Vec::new();
    for _ in 0..12 {
        let mut stream = connect(&server).await;
        stream.write_all(b"GET / HT").await.unwrap();
        half_sent.push(stream);
    }
    let mut good = connect(&server).await;
    good.write_all(b"GET /nope HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(until_closed(&mut good).await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn stopping_lets_requests_finish() {
    let mut server = Server::start().await.with_index().await;
    let target = format!("{}/indexes('hotels')/docs?search=slow&{VERSION}", server.base);
    let request = tokio::spawn(server.client.get(target).send());
    timeout(PATIENCE, server.searching.notified()).await.unwrap();
    server.stop();
    assert_eq!(request.await.unwrap().unwrap().status(), 200);
    timeout(PATIENCE, &mut server.serving).await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", server.port)).await.is_err());
}

#[tokio::test]
async fn stopping_disconnects_unfinished_requests() {
    let limits = ConnectionLimits { drain: Duration::from_millis(300), ..connection_limits() };
    let mut server = Server::with(Setup { limits, ..Setup::default() }).await.with_index().await;
    let target = format!("{}/indexes('hotels')/docs?search=forever&{VERSION}", server.base);
    let request = tokio::spawn(server.client.get(target).send());
    timeout(PATIENCE, server.searching.notified()).await.unwrap();
    server.stop();
    timeout(PATIENCE, &mut server.serving).await.unwrap().unwrap().unwrap();
    assert!(request.await.unwrap().is_err());
}

#[tokio::test]
async fn six_hundred_clients_can_connect_at_once() {
    let listener = bindpost_azure_search_service::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut waiting = Vec::new();
    // No connection is accepted. All of them wait in the backlog.
    for number in 0..600 {
        let connecting = timeout(Duration::from_secs(20), TcpStream::connect(("127.0.0.1", port)));
        let connected = connecting.await.unwrap_or_else(|_| panic!("client {number} cannot connect"));
        waiting.push(connected.unwrap());
    }
}
