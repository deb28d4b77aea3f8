//! Tests of forwarding, with raw sockets on both sides.

use std::convert::Infallible;

use bindpost_mcp_http::listener::{ConnectionLimits, Drain, DrainTrigger, serve};
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::service::service_fn;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A front that forwards all requests to one server.
struct Front {
    address: SocketAddr,
    end: DrainTrigger,
}

impl Front {
    async fn to(target: SocketAddr, options: ForwardOptions) -> Front {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let forwarder = Forwarder::new(target, options);
        let (end, drain) = Drain::new();
        let service = move |client: ConnectedClient| {
            let forwarder = forwarder.clone();
            service_fn(move |request| {
                let (forwarder, client) = (forwarder.clone(), client.clone());
                async move {
                    Ok::<_, Infallible>(match forwarder.forward(request, &client).await {
                        Ok(response) => response.map(Either::Left),
                        Err(error) => {
                            let text = Full::new(Bytes::from(error.to_string()));
                            let mut response = Response::new(Either::Right(text));
                            *response.status_mut() = error.status();
                            response
                        }
                    })
                }
            })
        };
        tokio::spawn(serve(listener, service, ConnectionLimits::default(), drain));
        Front { address, end }
    }

    /// Connects a client and sends this.
    async fn send(&self, text: &str) -> Peer {
        let mut peer = Peer::new(TcpStream::connect(self.address).await.unwrap());
        peer.write(text).await;
        peer
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.end.pull();
        self.end.pull();
    }
}

/// One end of a connection.
struct Peer {
    stream: TcpStream,
    /// What was read and not yet returned.
    read: Vec<u8>,
}

impl Peer {
    fn new(stream: TcpStream) -> Peer {
        stream.set_nodelay(true).unwrap();
        Peer { stream, read: Vec::new() }
    }

    async fn accept(listener: &TcpListener) -> Peer {
        Peer::new(listener.accept().await.unwrap().0)
    }

    async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads up to and including this text.
    async fn until(&mut self, end: &str) -> String {
        loop {
            let found = self.read.windows(end.len()).position(|part| part == end.as_bytes());
            if let Some(at) = found {
                let rest = self.read.split_off(at + end.len());
                let text = std::mem::replace(&mut self.read, rest);
                return String::from_utf8(text).unwrap();
            }
            let text = String::from_utf8_lossy(&self.read).into_owned();
            assert!(self.more().await, "the connection ended before {end:?}, after {text:?}");
        }
    }

    /// Reads to the end of the connection.
    async fn rest(&mut self) -> String {
        while self.more().await {}
        String::from_utf8(std::mem::take(&mut self.read)).unwrap()
    }

    async fn more(&mut self) -> bool {
        let mut part = [0; 4096];
        match self.stream.read(&mut part).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.read.extend_from_slice(&part[..count]);
                true
            }
        }
    }
}

const HEAD_END: &str = "\r\n\r\n";
const EMPTY: &str = "HTTP/1.1 204 No Content\r\n\r\n";

async fn server() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn has(head: &str, line: &str) -> bool {
    head.split("\r\n").any(|found| found.eq_ignore_ascii_case(line))
}

#[tokio::test]
async fn path_query_method_and_headers_arrive_unchanged() {
    let (listener, target) = server().await;
    let front = Front::to(target, ForwardOptions::default()).await;
    let mut client = front
        .send(
            "PATCH /a/../b%2Fc//d?x=%20&y=a+b& HTTP/1.1\r\nHost: public.example:8443\r\nAuthorization: Bearer t\r\n\
             Accept: text/event-stream\r\nCookie: a=1\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\
             X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Prefix: /evil\r\nForwarded: for=6.6.6.6\r\nExpect: nothing\r\n\
             Content-Length: 4\r\n\r\nbody",
        )
        .await;
    let mut server = Peer::accept(&listener).await;
    let head = server.until(HEAD_END).await;
    assert!(head.starts_with("PATCH /a/../b%2Fc//d?x=%20&y=a+b& HTTP/1.1\r\n"), "{head}");
    for line in [
        &format!("host: {target}"),
        "authorization: Bearer t",
        "accept: text/event-stream",
        "cookie: a=1",
        "content-length: 4",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-host: public.example:8443",
        "x-forwarded-proto: http",
    ] {
        assert!(has(&head, line), "{line} is not in {head}");
    }
    for name in ["x-hop", "connection", "forwarded:", "x-forwarded-prefix", "expect", "6.6.6.6"] {
        assert!(!head.to_lowercase().contains(name), "{name} is in {head}");
    }
    server.until("body").await;
    server
        .write(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nSet-Cookie: b=2\r\nSet-Cookie: c=3\r\n\
             Keep-Alive: timeout=5\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        )
        .await;
    let head = client.until(HEAD_END).await;
    assert!(head.starts_with("HTTP/1.1 307 Temporary Redirect\r\n"), "{head}");
    for line in ["location: /elsewhere", "set-cookie: b=2", "set-cookie: c=3", "content-length: 2"] {
        assert!(has(&head, line), "{line} is not in {head}");
    }
    assert!(!head.contains("close") && !head.contains("timeout"), "{head}");
    client.until("ok").await;
}

#[tokio::test]
async fn trusted_forwarded_headers_are_kept_and_extended() {
    let (listener, target) = server().await;
    let options = ForwardOptions { trusts_forwarded: true, ..ForwardOptions::default() };
    let front = Front::to(target, options).await;
    let _client = front
        .send(
            "GET / HTTP/1.1\r\nHost: inner\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: outer\r\n\
             X-Forwarded-Proto: https\r\n\r\n",
        )
        .await;
    let head = Peer::accept(&listener).await.until(HEAD_END).await;
    for line in ["x-forwarded-for: 1.2.3.4, 127.0.0.1", "x-forwarded-host: outer", "x-forwarded-proto: https"]
    {
        assert!(has(&head, line), "{line} is not in {head}");
    }
}

#[tokio::test]
async fn each_chunk_of_a_response_arrives_before_the_next_is_sent() {
    let (listener, target) = server().await;
    let front = Front::to(target, ForwardOptions::default()).await;
    let mut client = front.send("GET /sse HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut server = Peer::accept(&listener).await;
    server.until(HEAD_END).await;
    server
        .write(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
             9\r\ndata: 1\n\n\r\n",
        )
        .await;
    client.until("data: 1\n\n").await;
    server.write("9\r\ndata: 2\n\n\r\n").await;
    client.until("data: 2\n\n").await;
    server.write("0\r\n\r\n").await;
    client.until("0\r\n\r\n").await;
}

#[tokio::test]
async fn each_chunk_of_a_request_arrives_before_the_next_is_sent() {
    let (listener, target) = server().await;
    let front = Front::to(target, ForwardOptions::default()).await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = front.send(&format!("{head}3\r\none\r\n")).await;
    let mut server = Peer::accept(&listener).await;
    let head = server.until(HEAD_END).await;
    assert!(has(&head, "transfer-encoding: chunked"), "{head}");
    server.until("one").await;
    client.write("3\r\ntwo\r\n").await;
    server.until("two").await;
    // The response may begin before the request has ended.
    server.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n").await;
    client.until("early").await;
    client.write("5\r\nthree\r\n0\r\n\r\n").await;
    server.until("three\r\n0\r\n\r\n").await;
    server.write("0\r\n\r\n").await;
    client.until("0\r\n\r\n").await;
}

#[tokio::test]
async fn the_server_learns_that_a_client_has_left_its_stream() {
    let (listener, target) = server().await;
    let front = Front::to(target, ForwardOptions::default()).await;
    let mut client = front.send("GET /sse HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut server = Peer::accept(&listener).await;
    server.until(HEAD_END).await;
    server.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n").await;
    client.until("one").await;
    drop(client);
    // Nothing more is sent.
    assert_eq!(server.rest().await, "");
}

#[tokio::test]
async fn the_server_learns_that_a_client_has_left_before_the_response() {
    let (listener, target) = server().await;
    let front = Front::to(target, ForwardOptions::default()).await;
    let client = front.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}").await;
    let mut server = Peer::accept(&listener).await;
    server.until("{}").await;
    drop(client);
    assert_eq!(server.rest().await, "");
}

#[tokio::test]
async fn a_response_that_stops_in_the_middle_is_incomplete_for_the_client() {
    let (listener, target) = server().await;
    let front = Front::to(target, ForwardOptions::default()).await;
    for head in ["Transfer-Encoding: chunked\r\n\r\n3\r\n", "Content-Length: 100\r\n\r\n"] {
        let mut client = front.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut server = Peer::accept(&listener).await;
        server.until(HEAD_END).await;
        server.write(&format!("HTTP/1.1 200 OK\r\n{head}one")).await;
        client.until("one").await;
        drop(server);
        assert!(!client.rest().await.contains("0\r\n\r\n"));
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_or_too_slow_is_rejected() {
    let (listener, target) = server().await;
    let uploads = UploadLimits { bytes: 4, waiting: Duration::from_millis(100), bytes_per_second: 1 << 20 };
    let front = Front::to(target, ForwardOptions { uploads, ..ForwardOptions::default() }).await;
    // The declared length suffices.
    let mut client = front.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n").await;
    assert!(client.until(HEAD_END).await.starts_with("HTTP/1.1 413 "));
    client.until("larger than 4 bytes").await;

    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = front.send(&format!("{chunked}5\r\nabcde\r\n")).await;
    assert!(client.until(HEAD_END).await.starts_with("HTTP/1.1 413 "));
    assert!(!Peer::accept(&listener).await.rest().await.contains("0\r\n\r\n"));

    let mut client = front.send(&format!("{chunked}1\r\na\r\n")).await;
    assert!(client.until(HEAD_END).await.starts_with("HTTP/1.1 408 "));
    assert!(!Peer::accept(&listener).await.rest().await.contains("0\r\n\r\n"));
}

#[tokio::test]
async fn a_refused_connection_is_tried_again() {
    let (listener, target) = server().await;
    drop(listener);
    let front = Front::to(target, ForwardOptions::default()).await;
    let mut client = front.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let listener = TcpListener::bind(target).await.unwrap();
    let mut server = Peer::accept(&listener).await;
    server.until(HEAD_END).await;
    server.write(EMPTY).await;
    assert!(client.until(HEAD_END).await.starts_with("HTTP/1.1 204 "));

    drop((listener, server));
    let mut client = front.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(client.until(HEAD_END).await.starts_with("HTTP/1.1 502 "));
}

#[tokio::test]
async fn an_idle_connection_is_used_again_unless_the_server_has_closed_it() {
    let (listener, target) = server().await;
    let front = Front::to(target, ForwardOptions::default()).await;
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut client = front.send(request).await;
    let mut server = Peer::accept(&listener).await;
    for _ in 0..3 {
        server.until(HEAD_END).await;
        server.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        client.until("ok").await;
        // The connection is ready a moment after the end of the response.
        tokio::time::sleep(Duration::from_millis(20)).await;
        client.write(request).await;
    }
    server.until(HEAD_END).await;
    server.write(EMPTY).await;
    client.until(HEAD_END).await;
    drop(server);
    client.write(request).await;
    let mut server = Peer::accept(&listener).await;
    server.until(HEAD_END).await;
    server.write(EMPTY).await;
    assert!(client.until(HEAD_END).await.starts_with("HTTP/1.1 204 "));
}

#[tokio::test]
async fn a_server_of_http_1_0_is_served_as_any_other() {
    let (listener, target) = server().await;
    let front = Front::to(target, ForwardOptions::default()).await;
    let mut client = front.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut server = Peer::accept(&listener).await;
    server.until(HEAD_END).await;
    server.write("HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n").await;
    drop(server);
    let head = client.until(HEAD_END).await;
    assert!(head.starts_with("HTTP/1.1 200 ") && has(&head, "content-length: 7"), "{head}");

    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut server = Peer::accept(&listener).await;
    server.until(HEAD_END).await;
    server.write("HTTP/1.0 200 OK\r\n\r\nto the end").await;
    drop(server);
    let head = client.until(HEAD_END).await;
    assert!(head.starts_with("HTTP/1.1 200 ") && has(&head, "transfer-encoding: chunked"), "{head}");
    client.until("to the end\r\n0\r\n\r\n").await;
}

#[tokio::test]
async fn connect_is_rejected() {
    let (_listener, target) = server().await;
    let front = Front::to(target, ForwardOptions::default()).await;
    let mut client = front.send("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n").await;
    assert!(client.until(HEAD_END).await.starts_with("HTTP/1.1 405 "));
}
