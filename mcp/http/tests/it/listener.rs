//! The listener, tested with raw sockets: timeouts, limits on connections, drain.
//!
//! No test depends on speed. The tests wait up to [`PATIENCE`] for expected events, and compare events
//! that must not happen before a limit with that limit.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::convert::Infallible;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bindpost_mcp_http::listener::{
    self, ConnectedClient, ConnectionLimits, Drain, DrainTrigger, SentHeaderNames, drain_on_signal, serve,
};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderName, Request, Response, StatusCode, Version};
use http_body::{Body, Frame};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A timeout that no step reaches, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const LIMIT: Duration = Duration::from_millis(300);
/// More than two socket buffers hold.
const LARGE: usize = 32 << 20;
/// The tolerance of timers: an event may be observed this much earlier than its limit.
const SLACK: Duration = Duration::from_millis(10);

/// Limits that no test reaches, checked at short intervals.
fn lax() -> ConnectionLimits {
    let never = Duration::from_secs(3600);
    ConnectionLimits {
        header_read: never,
        keep_alive_idle: never,
        blocked_write: never,
        sweep: Duration::from_millis(20),
        drain: never,
        drain_idle: Duration::from_millis(20),
        ..ConnectionLimits::default()
    }
}

#[tokio::test]
async fn closes_a_connection_with_an_incomplete_head() {
    let server = Server::start(ConnectionLimits { header_read: LIMIT, ..lax() }).await;
    let mut client = server.connect().await;
    let began = Instant::now();
    client.send("GET / HTTP/1.1\r\nho").await;
    client.closed().await;
    assert!(began.elapsed() >= LIMIT - SLACK, "cut after {:?}", began.elapsed());
}

#[tokio::test]
async fn closes_a_connection_whose_head_arrives_byte_by_byte() {
    let server = Server::start(ConnectionLimits { header_read: LIMIT, ..lax() }).await;
    let mut client = server.connect().await;
    client.send("GET / HTTP/1.1\r\nhost: ").await;
    let began = Instant::now();
    while client.stream.write_all(b"a").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(began.elapsed() < PATIENCE, "the time for the head is not limited");
    }
}

#[tokio::test]
async fn closes_a_connection_with_an_incomplete_second_head() {
    let server = Server::start(ConnectionLimits { header_read: LIMIT, ..lax() }).await;
    let mut client = server.connect().await;
    assert_eq!(client.get("/").await.status, 200);
    client.send("GET / HTTP/1.1\r\nho").await;
    client.closed().await;
}

#[tokio::test]
async fn closes_a_connection_without_data() {
    let server = Server::start(ConnectionLimits { header_read: LIMIT, ..lax() }).await;
    server.connect().await.closed().await;
}

#[tokio::test]
async fn closes_a_connection_with_an_incomplete_http2_preface() {
    let server = Server::start(ConnectionLimits { header_read: LIMIT, ..lax() }).await;
    let mut client = server.connect().await;
    client.send("PRI * HTTP/2.0\r\n").await;
    client.closed().await;
}

#[tokio::test]
async fn an_idle_connection_has_its_own_limit() {
    let idle = 3 * LIMIT;
    let server = Server::start(ConnectionLimits { header_read: LIMIT, keep_alive_idle: idle, ..lax() }).await;
    let mut client = server.connect().await;
    // The body is sent separately and is not part of a head.
    client.send("POST /echo HTTP/1.1\r\ncontent-length: 2\r\n\r\n").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.send("ab").await;
    assert_eq!(client.response().await.body, "ab");
    tokio::time::sleep(2 * LIMIT).await;
    let began = Instant::now();
    assert_eq!(client.get("/").await.status, 200);
    client.closed().await;
    assert!(began.elapsed() >= idle - SLACK, "cut after {:?}", began.elapsed());
}

#[tokio::test]
async fn an_unread_body_does_not_keep_a_connection_open() {
    let server = Server::start(ConnectionLimits { keep_alive_idle: LIMIT, ..lax() }).await;
    let mut client = server.connect().await;
    client.send("POST /keep-body HTTP/1.1\r\ncontent-length: 4\r\n\r\nab").await;
    assert_eq!(client.response().await.status, 200);
    client.closed().await;
}

#[tokio::test]
async fn a_slow_head_within_the_limit_is_served() {
    let server =
        Server::start(ConnectionLimits { header_read: PATIENCE, keep_alive_idle: LIMIT, ..lax() }).await;
    let mut client = server.connect().await;
    for piece in ["G", "ET / HT", "TP/1.1\r\nhost", ": here\r\n", "\r\n"] {
        client.send(piece).await;
        tokio::time::sleep(LIMIT / 3).await;
    }
    assert_eq!(client.response().await.status, 200);
}

#[tokio::test]
async fn a_running_request_has_no_timeout() {
    let limits =
        ConnectionLimits { header_read: LIMIT, keep_alive_idle: LIMIT, blocked_write: LIMIT, ..lax() };
    let server = Server::start(limits).await;
    let mut slow_body = server.connect().await;
    slow_body.send("POST /echo HTTP/1.1\r\ncontent-length: 4\r\n\r\nab").await;
    let mut slow_handler = server.connect().await;
    slow_handler.send("GET /wait HTTP/1.1\r\n\r\n").await;
    tokio::time::sleep(3 * LIMIT).await;
    slow_body.send("cd").await;
    server.state.go_on.add_permits(1);
    for (mut client, body) in [(slow_body, "abcd"), (slow_handler, "waited")] {
        let response = client.response().await;
        assert_eq!(response.body, body);
        assert!(!response.head.contains("connection: close"), "{}", response.head);
        assert_eq!(client.get("/").await.status, 200);
    }
}

#[tokio::test]
async fn closes_the_connection_of_a_client_that_does_not_read() {
    let server =
        Server::start(ConnectionLimits { blocked_write: LIMIT, keep_alive_idle: LIMIT, ..lax() }).await;
    let mut client = server.connect_with_small_window().await;
    client.send("GET /endless HTTP/1.1\r\n\r\n").await;
    within(server.state.endless_ended.acquire()).await.unwrap().forget();
    let taken = server.state.endless_bytes.load(Ordering::Relaxed);
    // Only slightly more than the two socket buffers hold.
    assert!(taken < 16 << 20, "{taken} bytes of the body were read");
}

#[tokio::test]
async fn a_client_that_reads_slowly_is_served() {
    let server =
        Server::start(ConnectionLimits { blocked_write: 2 * LIMIT, keep_alive_idle: LIMIT, ..lax() }).await;
    let mut client = server.connect().await;
    client.send("GET /endless HTTP/1.1\r\n\r\n").await;
    let began = Instant::now();
    let mut piece = vec![0; 1 << 20];
    while began.elapsed() < 6 * LIMIT {
        within(client.stream.read_exact(&mut piece)).await.unwrap();
        tokio::time::sleep(LIMIT / 10).await;
    }
}

#[tokio::test]
async fn a_connection_with_an_unread_response_is_not_idle() {
    let server = Server::start(ConnectionLimits { keep_alive_idle: LIMIT, ..lax() }).await;
    let mut client = server.connect().await;
    client.send("GET /large HTTP/1.1\r\n\r\n").await;
    tokio::time::sleep(3 * LIMIT).await;
    assert_eq!(client.response().await.body.len(), LARGE);
    assert_eq!(client.get("/").await.status, 200);
}

#[tokio::test]
async fn the_response_to_a_rejected_body_is_delivered() {
    let server = Server::start(lax()).await;
    let mut client = server.connect().await;
    let body = vec![b'a'; 16 << 20];
    client.send(&format!("POST /refuse HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len())).await;
    within(client.stream.write_all(&body)).await.unwrap();
    assert_eq!(client.response().await.status, 413);
    client.closed().await;
}

#[tokio::test]
async fn closes_a_connection_that_stays_open_after_its_last_response() {
    let server = Server::start(ConnectionLimits { header_read: LIMIT, ..lax() }).await;
    let mut client = server.connect().await;
    client.send("GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await;
    assert_eq!(client.response().await.status, 200);
    // The client ignores `connection: close` until its writes fail.
    let began = Instant::now();
    while client.stream.write_all(b"a").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(began.elapsed() < PATIENCE, "the client can stay connected indefinitely");
    }
}

#[tokio::test]
async fn a_drain_completes_a_running_request() {
    let server = Server::start(lax()).await;
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\n\r\n").await;
    server.entered().await;
    server.trigger.pull();
    server.refuses_connections().await;
    server.state.go_on.add_permits(1);
    let response = client.response().await;
    assert_eq!(response.body, "waited");
    assert!(response.head.contains("connection: close"), "{}", response.head);
    client.closed().await;
    server.ended().await;
}

#[tokio::test]
async fn a_drain_completes_a_response_that_has_begun() {
    let server = Server::start(lax()).await;
    let mut client = server.connect().await;
    client.send("GET /until-drained HTTP/1.1\r\n\r\n").await;
    let head = client.head().await;
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    server.trigger.pull();
    let mut rest = String::new();
    within(client.stream.read_to_string(&mut rest)).await.unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    server.ended().await;
}

#[tokio::test]
async fn a_drain_answers_one_more_request_on_an_idle_connection() {
    let server = Server::start(ConnectionLimits { drain_idle: PATIENCE, ..lax() }).await;
    let mut client = server.connect().await;
    assert!(!client.get("/").await.head.contains("connection: close"));
    server.trigger.pull();
    server.refuses_connections().await;
    let response = client.get("/").await;
    assert_eq!(response.status, 200);
    assert!(response.head.contains("connection: close"), "{}", response.head);
    client.closed().await;
    server.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_under_load_loses_no_request() {
    let server = Server::start(ConnectionLimits { drain_idle: PATIENCE, ..lax() }).await;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let mut client = server.connect().await;
        clients.spawn(async move {
            // Fails if a request gets no response.
            while !client.get("/").await.head.contains("connection: close") {}
        });
    }
    tokio::time::sleep(LIMIT).await;
    server.trigger.pull();
    while let Some(client) = within(clients.join_next()).await {
        client.unwrap();
    }
    server.ended().await;
}

#[tokio::test]
async fn a_drain_closes_idle_connections() {
    let server = Server::start(lax()).await;
    let mut silent = server.connect().await;
    let mut idle = server.connect().await;
    assert_eq!(idle.get("/").await.status, 200);
    server.trigger.pull();
    silent.closed().await;
    idle.closed().await;
    server.ended().await;
}

#[tokio::test]
async fn a_drain_answers_clients_it_has_not_accepted_yet() {
    let server = Server::start(ConnectionLimits { drain_idle: PATIENCE, ..lax() }).await;
    // Blocking calls, so that the listener does not run in between on this single thread.
    let mut client = std::net::TcpStream::connect(server.address).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    server.trigger.pull();
    server.ended().await;
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

#[tokio::test]
async fn the_drain_has_a_deadline() {
    let server = Server::start(ConnectionLimits { drain: LIMIT, ..lax() }).await;
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\n\r\n").await;
    server.entered().await;
    let began = Instant::now();
    server.trigger.pull();
    client.closed().await;
    assert!(began.elapsed() >= LIMIT - SLACK, "cut after {:?}", began.elapsed());
    server.ended().await;
}

#[tokio::test]
async fn a_second_trigger_closes_all_connections_immediately() {
    let server = Server::start(lax()).await;
    let mut client = server.connect().await;
    client.send("GET /wait HTTP/1.1\r\n\r\n").await;
    server.entered().await;
    server.trigger.pull();
    server.refuses_connections().await;
    server.trigger.pull();
    client.closed().await;
    server.ended().await;
}

#[tokio::test]
async fn dropping_the_listener_closes_its_connections() {
    let server = Server::start(lax()).await;
    let mut client = server.connect().await;
    assert_eq!(client.get("/").await.status, 200);
    server.running.abort();
    client.closed().await;
}

#[cfg(unix)]
#[tokio::test]
async fn signals_trigger_the_drain() {
    let (trigger, drain) = Drain::new();
    let mut signals = std::pin::pin!(drain_on_signal(trigger));
    assert!((&mut signals).now_or_never().is_none());
    let kill = || std::process::Command::new("kill").arg(std::process::id().to_string()).status().unwrap();

    assert!(kill().success());
    tokio::select! {
        _ = &mut signals => panic!("one signal must not end the drain"),
        () = within(drain.begun()) => {}
    }
    assert!(drain.has_begun());
    assert!(kill().success());
    within(signals).await.unwrap();
    within(drain.ended()).await;
}

#[tokio::test]
async fn a_client_over_the_limit_gets_503_while_all_others_have_running_requests() {
    let server = Server::start(ConnectionLimits { connections: 1, ..lax() }).await;
    let mut first = server.connect().await;
    first.send("GET /wait HTTP/1.1\r\n\r\n").await;
    server.entered().await;
    let refused = server.connect().await.get("/").await;
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("retry-after: 5"), "{}", refused.head);
    server.state.go_on.add_permits(1);
    assert_eq!(first.response().await.status, 200);
    drop(first);
    server.recovers().await;
}

#[tokio::test]
async fn connections_of_one_address_are_limited() {
    let server = Server::start(ConnectionLimits { connections_per_address: Some(1), ..lax() }).await;
    let mut first = server.connect().await;
    first.send("GET /wait HTTP/1.1\r\n\r\n").await;
    server.entered().await;
    assert_eq!(server.connect().await.get("/").await.status, 503);
    // All of 127.0.0.0/8 is loopback on Linux only.
    if cfg!(target_os = "linux") {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut other = Client { stream: within(socket.connect(server.address)).await.unwrap() };
        assert_eq!(other.get("/").await.status, 200);
    }
    drop(first);
    server.recovers().await;
}

/// Limits with only the total limit and with only the limit per address.
fn capped(most: usize) -> [ConnectionLimits; 2] {
    let per_address = ConnectionLimits { connections_per_address: Some(most), ..lax() };
    [per_address, ConnectionLimits { connections: most, ..lax() }]
}

#[tokio::test]
async fn incomplete_heads_do_not_block_new_clients() {
    for limits in capped(4) {
        let server = Server::start(limits).await;
        let mut good = server.connect().await;
        good.send("GET /wait HTTP/1.1\r\n\r\n").await;
        server.entered().await;
        let mut half = Vec::new();
        for number in 0..40 {
            let mut client = server.connect().await;
            // No data, a part of a line, a part of a head, a part of the preface.
            let part = ["", "GE", "GET / HTTP/1.1\r\nhost: a\r\n", "PRI * HTTP/2.0\r\n"][number % 4];
            client.send(part).await;
            half.push(client);
        }
        for _ in 0..5 {
            assert_eq!(server.connect().await.get("/").await.status, 200);
        }
        // The oldest connection was closed.
        half.remove(0).closed().await;
        server.state.go_on.add_permits(1);
        assert_eq!(good.response().await.status, 200);
    }
}

#[tokio::test]
async fn an_incomplete_second_head_does_not_block_new_clients() {
    for limits in capped(2) {
        let server = Server::start(limits).await;
        let mut half = [server.connect().await, server.connect().await];
        for client in &mut half {
            assert_eq!(client.get("/").await.status, 200);
            client.send("GET / HTTP/1.1\r\nho").await;
        }
        // Wait until the server has read it.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(server.connect().await.get("/").await.status, 200);
        half[0].closed().await;
    }
}

#[tokio::test]
async fn a_new_connection_is_not_evicted_by_the_next_one() {
    // Sweeps are rare, so that all connections are new.
    for limits in capped(4).map(|limits| ConnectionLimits { sweep: Duration::from_secs(600), ..limits }) {
        let server = Server::start(limits).await;
        let mut half = Vec::new();
        for _ in 0..4 {
            let mut client = server.connect().await;
            client.send("GET / HT").await;
            half.push(client);
        }
        // Wait until the server has read them.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut new = [server.connect().await, server.connect().await, server.connect().await];
        for client in &mut new {
            assert_eq!(client.get("/").await.status, 200);
            // A recently used connection is not idle either.
            assert_eq!(client.get("/").await.status, 200);
        }
    }
}

#[tokio::test]
async fn an_idle_connection_is_evicted_by_a_new_client() {
    for limits in capped(2) {
        let server = Server::start(limits).await;
        let mut idle = [server.connect().await, server.connect().await];
        for client in &mut idle {
            assert_eq!(client.get("/").await.status, 200);
            // Longer than a few sweeps, so that the connections are idle and have an order.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        assert_eq!(server.connect().await.get("/").await.status, 200);
        let [mut first, mut second] = idle;
        first.closed().await;
        assert_eq!(second.get("/").await.status, 200);
    }
}

/// The operating system completes connections while the backlog has room, even before they are accepted.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_burst_of_clients_waits_to_be_accepted() {
    let bound = bindpost_mcp_http::bind("127.0.0.1:0").await.unwrap();
    let mut waiting = Vec::new();
    for number in 0..800 {
        let connecting =
            tokio::time::timeout(Duration::from_millis(900), TcpStream::connect(bound.local_addr()));
        waiting.push(
            connecting.await.unwrap_or_else(|_| panic!("{number} clients filled the backlog")).unwrap(),
        );
    }
}

#[tokio::test]
async fn the_limit_per_address_can_be_off() {
    let server = Server::start(ConnectionLimits { connections_per_address: None, ..lax() }).await;
    let mut clients = Vec::new();
    for _ in 0..300 {
        let mut client = server.connect().await;
        assert_eq!(client.get("/").await.status, 200);
        clients.push(client);
    }
}

#[tokio::test]
async fn a_panic_ends_one_connection() {
    let server = Server::start(lax()).await;
    let mut bystander = server.connect().await;
    assert_eq!(bystander.get("/").await.status, 200);
    let mut client = server.connect().await;
    client.send("GET /panic HTTP/1.1\r\n\r\n").await;
    client.closed().await;
    assert_eq!(bystander.get("/").await.status, 200);
    server.trigger.pull();
    server.ended().await;
}

#[tokio::test]
async fn the_service_gets_the_address_of_the_client() {
    let server = Server::start(lax()).await;
    let mut client = server.connect().await;
    let address = client.stream.local_addr().unwrap();
    assert_eq!(client.get("/address").await.body, address.to_string());
}

#[tokio::test]
async fn a_service_gets_header_names_as_they_were_sent() {
    let names = |request: &Request<Incoming>, sent: Option<SentHeaderNames>| {
        let spelled = |name: &HeaderName| {
            sent.as_ref().and_then(|sent| sent.spelling_of(name.as_str())).unwrap_or("?").to_owned()
        };
        request.headers().keys().map(spelled).collect::<Vec<_>>().join(" ")
    };
    for (header_names, expected) in
        [(true, ["hOST X-oNe content-LENGTH", "HOST last"]), (false, ["? ? ?", "? ?"])]
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (trigger, drain) = Drain::new();
        let make = move |client: ConnectedClient| {
            service_fn(move |request| {
                let names = Bytes::from(names(&request, client.next_header_names()));
                async move { Ok::<_, Infallible>(Response::new(Full::new(names))) }
            })
        };
        let limits = ConnectionLimits { header_names, ..lax() };
        let running = tokio::spawn(serve(listener, make, limits, drain));
        let mut client = Client { stream: within(TcpStream::connect(address)).await.unwrap() };
        // The body looks like a head. Both requests are sent at once, and hyper skips the body.
        let first =
            "POST / HTTP/1.1\r\nhOST: a\r\nX-oNe: 1\r\ncontent-LENGTH: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        client.send(&format!("{first}GET / HTTP/1.1\r\nHOST: a\r\nlast: 1\r\n\r\n")).await;
        for expected in expected {
            assert_eq!(client.response().await.body, expected);
        }
        drop(trigger);
        running.abort();
    }
}

#[tokio::test]
async fn garbage_gets_400() {
    let server = Server::start(lax()).await;
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"[..],
        b"hello there\r\n\r\n",
        b"GET / HTTP/1.1\r\n\0: \r\n\r\n",
    ] {
        let mut client = server.connect().await;
        within(client.stream.write_all(garbage)).await.unwrap();
        assert_eq!(client.response().await.status, 400);
        client.closed().await;
    }
}

#[tokio::test]
async fn a_head_over_the_limit_gets_431() {
    let server = Server::start(lax()).await;
    let mut client = server.connect().await;
    client.send(&format!("GET / HTTP/1.1\r\nx: {}", "a".repeat(80 << 10))).await;
    assert_eq!(client.response().await.status, 431);
    client.closed().await;

    let mut client = server.connect().await;
    client.send(&format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(60 << 10))).await;
    assert_eq!(client.response().await.status, 200);
}

#[tokio::test]
async fn more_than_100_header_fields_get_431() {
    let server = Server::start(lax()).await;
    for (fields, status) in [(100, 200), (101, 431)] {
        let mut client = server.connect().await;
        client.send(&format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(fields))).await;
        assert_eq!(client.response().await.status, status, "{fields} fields");
    }
    let server = Server::start(ConnectionLimits { max_headers: 10, ..lax() }).await;
    let mut client = server.connect().await;
    client.send(&format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(11))).await;
    assert_eq!(client.response().await.status, 431);
}

#[tokio::test]
async fn a_method_that_begins_like_the_http2_preface_is_http1() {
    let server = Server::start(lax()).await;
    let mut client = server.connect().await;
    client.send("PR").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.send("OPFIND / HTTP/1.1\r\n\r\n").await;
    assert_eq!(client.response().await.status, 200);
}

#[tokio::test]
async fn http2_with_prior_knowledge_is_served() {
    let server = Server::start(lax()).await;
    let (mut client, _running) = server.http2().await;
    for _ in 0..3 {
        let (head, body) = within(client.send_request(get("/"))).await.unwrap().into_parts();
        assert_eq!((head.status, head.version), (StatusCode::OK, Version::HTTP_2));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "hello");
    }
    let many = (0..50).map(|_| client.send_request(get("/")));
    for response in within(futures_util::future::join_all(many)).await {
        assert_eq!(response.unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_running_http2_request_survives_limits_and_drain() {
    let server =
        Server::start(ConnectionLimits { header_read: LIMIT, keep_alive_idle: LIMIT, ..lax() }).await;
    let (mut client, running) = server.http2().await;
    let response = tokio::spawn(client.send_request(get("/wait")));
    server.entered().await;
    tokio::time::sleep(3 * LIMIT).await;
    server.trigger.pull();
    server.refuses_connections().await;
    server.state.go_on.add_permits(1);
    let response = within(response).await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!response.headers().contains_key("connection"));
    assert_eq!(response.collect().await.unwrap().to_bytes(), "waited");
    within(running).await.unwrap().unwrap();
    server.ended().await;
}

#[tokio::test]
async fn an_idle_http2_connection_is_closed() {
    // Responses to pings are not activity, because the client's library sends them automatically.
    let ping = Duration::from_millis(20);
    let server = Server::start(ConnectionLimits { keep_alive_idle: LIMIT, h2_ping: ping, ..lax() }).await;
    let (mut client, running) = server.http2().await;
    assert_eq!(within(client.send_request(get("/"))).await.unwrap().status(), StatusCode::OK);
    within(running).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_drain_deadline_closes_http2_connections_too() {
    let server = Server::start(ConnectionLimits { drain: LIMIT, ..lax() }).await;
    let (mut client, _running) = server.http2().await;
    let response = tokio::spawn(client.send_request(get("/wait")));
    server.entered().await;
    server.trigger.pull();
    assert!(within(response).await.unwrap().is_err());
    let state = server.state.clone();
    server.ended().await;
    // The handler runs in a separate task, which must not outlive the connection.
    within(async {
        while Arc::strong_count(&state) > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Runs this test again in a child process that may open few files, and connects to the listener there.
#[cfg(target_os = "linux")]
#[test]
fn survives_a_lack_of_descriptors() {
    const PORT: &str = "BINDPOST_TEST_LACK_OF_DESCRIPTORS";
    const NAME: &str = "listener::survives_a_lack_of_descriptors";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if std::env::var_os(PORT).is_some() {
        runtime.block_on(async {
            let server = Server::start(lax()).await;
            println!("\nport {}", server.address.port());
            within(server.running).await.unwrap().unwrap();
        });
        return;
    }

    let mut child = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 40; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(PORT, "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = io::BufRead::lines(io::BufReader::new(child.stdout.take().unwrap()));
    let port = lines.find_map(|line| line.unwrap().strip_prefix("port ").map(|port| port.parse().unwrap()));
    let address = SocketAddr::from(([127, 0, 0, 1], port.unwrap()));

    runtime.block_on(async {
        let mut clients = Vec::new();
        for _ in 0..60 {
            let mut client = Client { stream: within(TcpStream::connect(address)).await.unwrap() };
            client.send("GET / HTTP/1.1\r\n\r\n").await;
            clients.push(client);
        }
        // More than the child can accept, so the last ones wait until the first are closed.
        let mut unlucky = clients.split_off(30);
        for client in &mut clients[..20] {
            assert_eq!(client.response().await.status, 200);
        }
        let early = tokio::time::timeout(LIMIT, unlucky[29].response()).await;
        assert!(early.is_err(), "the child has more descriptors than it should");
        drop(clients);
        for mut client in unlucky {
            assert_eq!(client.response().await.status, 200);
        }
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A listener with a service for the tests, on its own port.
struct Server {
    address: SocketAddr,
    trigger: DrainTrigger,
    running: JoinHandle<io::Result<()>>,
    state: Arc<State>,
}

struct State {
    drain: Drain,
    /// A permit for each `/wait` that has begun.
    entered: Semaphore,
    /// A permit for each `/wait` that may continue.
    go_on: Semaphore,
    /// A permit for each `/endless` that has ended.
    endless_ended: Semaphore,
    endless_bytes: AtomicUsize,
    /// The bodies of `/keep-body`.
    bodies: Mutex<Vec<Incoming>>,
}

impl Server {
    async fn start(limits: ConnectionLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (trigger, drain) = Drain::new();
        let state = Arc::new(State {
            drain: drain.clone(),
            entered: Semaphore::new(0),
            go_on: Semaphore::new(0),
            endless_ended: Semaphore::new(0),
            endless_bytes: AtomicUsize::new(0),
            bodies: Mutex::default(),
        });
        let shared = state.clone();
        let make = move |client: listener::ConnectedClient| {
            let (state, address) = (shared.clone(), client.address().unwrap());
            service_fn(move |request| answer(request, address, state.clone()))
        };
        let running = tokio::spawn(serve(listener, make, limits, drain));
        Self { address, trigger, running, state }
    }

    async fn connect(&self) -> Client {
        Client { stream: within(TcpStream::connect(self.address)).await.unwrap() }
    }

    async fn connect_with_small_window(&self) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 << 10).unwrap();
        Client { stream: within(socket.connect(self.address)).await.unwrap() }
    }

    async fn http2(&self) -> (http2::SendRequest<Empty<Bytes>>, JoinHandle<hyper::Result<()>>) {
        let stream = TokioIo::new(self.connect().await.stream);
        let (client, connection) = within(http2::handshake(TokioExecutor::new(), stream)).await.unwrap();
        (client, tokio::spawn(connection))
    }

    async fn entered(&self) {
        within(self.state.entered.acquire()).await.unwrap().forget();
    }

    /// Waits until the listening socket is closed.
    async fn refuses_connections(&self) {
        within(async {
            while TcpStream::connect(self.address).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Waits until a new client is served.
    async fn recovers(&self) {
        within(async {
            while self.connect().await.get("/").await.status != 200 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    async fn ended(self) {
        within(self.running).await.unwrap().unwrap();
    }
}

/// A raw HTTP/1 client.
struct Client {
    stream: TcpStream,
}

struct Received {
    status: u16,
    head: String,
    body: String,
}

impl Client {
    async fn send(&mut self, text: &str) {
        within(self.stream.write_all(text.as_bytes())).await.unwrap();
    }

    async fn get(&mut self, path: &str) -> Received {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
        self.response().await
    }

    async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(within(self.stream.read_u8()).await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    async fn response(&mut self) -> Received {
        let head = self.head().await;
        let status = head[9..12].parse().unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        within(self.stream.read_exact(&mut body)).await.unwrap();
        Received { status, head, body: String::from_utf8(body).unwrap() }
    }

    /// Waits until the server has closed the connection, without another response.
    async fn closed(&mut self) {
        let mut rest = Vec::new();
        match within(self.stream.read_to_end(&mut rest)).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
}

async fn answer(
    request: Request<Incoming>,
    address: SocketAddr,
    state: Arc<State>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let text = |text: String| Full::from(text).boxed();
    let mut status = StatusCode::OK;
    let body = match request.uri().path() {
        "/wait" => {
            state.entered.add_permits(1);
            state.go_on.acquire().await.unwrap().forget();
            text("waited".into())
        }
        "/echo" => text(String::from_utf8(request.collect().await.unwrap().to_bytes().into()).unwrap()),
        "/keep-body" => {
            state.bodies.lock().unwrap().push(request.into_body());
            text("kept".into())
        }
        "/refuse" => {
            status = StatusCode::PAYLOAD_TOO_LARGE;
            text("too large".into())
        }
        "/large" => text("a".repeat(LARGE)),
        "/endless" => Endless(state).boxed(),
        "/until-drained" => UntilDrained(Box::pin(state.drain.begun())).boxed(),
        "/address" => text(address.to_string()),
        "/panic" => panic!("as asked"),
        _ => text("hello".into()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    Ok(response)
}

/// An endless body that counts the bytes that are read from it.
struct Endless(Arc<State>);

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static PIECE: [u8; 16 << 10] = [b'a'; 16 << 10];
        self.0.endless_bytes.fetch_add(PIECE.len(), Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&PIECE)))))
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.0.endless_ended.add_permits(1);
    }
}

/// A body that ends when the drain begins, as event streams have to.
struct UntilDrained(Pin<Box<dyn Future<Output = ()> + Send + Sync>>);

impl Body for UntilDrained {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.as_mut().poll(cx).map(|()| None)
    }
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://localhost{path}")).body(Empty::new()).unwrap()
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("timed out")
}
