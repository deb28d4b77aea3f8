//! Services whose responses are too large, too slow or missing. Each gives a prompt error without
//! confidential data.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bindpost_net_upstream::{Credential, Upstream, UpstreamError, UpstreamLimits};
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;

use crate::upstream_service::{Service, answer, get, post, quick, streamed};

#[tokio::test]
async fn an_html_page_is_an_ordinary_response() {
    let service =
        Service::start(|_, _| answer(200, &[("content-type", "text/html")], "<html>sign in</html>")).await;
    let incoming = service.upstream().send(get("/")).await.unwrap();
    assert_eq!(incoming.headers["content-type"], "text/html");
    assert_eq!(incoming.body, "<html>sign in</html>");
}

#[tokio::test]
async fn a_response_of_100_mb_is_read_up_to_the_limit() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let service = Service::start(move |_, _| {
        let (answer, pieces) = streamed(200, &[]);
        let counted = counted.clone();
        tokio::spawn(async move {
            for _ in 0..1600 {
                if pieces.send(Ok(Bytes::from_static(&[b'x'; 1 << 16]))).await.is_err() {
                    break;
                }
                counted.fetch_add(1 << 16, Ordering::SeqCst);
            }
        });
        answer
    })
    .await;
    let upstream = service.upstream_within(UpstreamLimits { body: 1 << 20, ..quick() });
    let error = upstream.send(get("/")).await.unwrap_err();
    assert!(matches!(error, UpstreamError::TooLarge(limit) if limit == 1 << 20), "{error}");
    assert!(sent.load(Ordering::SeqCst) < 50 << 20, "{sent:?}");
    assert_eq!(service.count(), 1, "a retry would be as large");
}

#[tokio::test]
async fn a_response_with_a_content_length_above_the_limit_is_not_read() {
    let service = Service::start(|_, _| {
        let (answer, pieces) = streamed(200, &[("content-length", "100000000")]);
        tokio::spawn(async move { pieces.closed().await });
        answer
    })
    .await;
    let error = service.upstream().send(get("/")).await.unwrap_err();
    assert!(matches!(error, UpstreamError::TooLarge(_)), "{error}");
}

#[tokio::test]
async fn a_response_at_the_limit_is_accepted() {
    let service = Service::start(|_, before| answer(200, &[], "x".repeat(1000 + before))).await;
    let upstream = service.upstream_within(UpstreamLimits { body: 1000, ..quick() });
    assert_eq!(upstream.send(get("/")).await.unwrap().body.len(), 1000);
    assert!(matches!(upstream.send(get("/")).await, Err(UpstreamError::TooLarge(1000))));
}

/// Returns the gzip encoding of many zeros: one literal, then copies of 258 bytes each.
fn gzip_of_zeros(copies: usize) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let (mut byte, mut filled) = (0u8, 0);
    // The last block, with the fixed codes, and a zero.
    let start = "110".chars().chain("00110000".chars());
    let copy = "1100010100000";
    let bits = start.chain(copy.chars().cycle().take(copies * copy.len())).chain("0000000".chars());
    for bit in bits {
        byte |= u8::from(bit == '1') << filled;
        filled += 1;
        if filled == 8 {
            out.push(byte);
            (byte, filled) = (0, 0);
        }
    }
    if filled > 0 {
        out.push(byte);
    }
    let length = 258 * copies + 1;
    let mut sum = u32::MAX;
    for _ in 0..length * 8 {
        sum = (sum >> 1) ^ (0xedb8_8320 * (sum & 1));
    }
    out.extend_from_slice(&(!sum).to_le_bytes());
    out.extend_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
    out
}

#[tokio::test]
async fn the_limit_applies_to_the_decompressed_response() {
    let service = Service::start(|seen, _| {
        assert!(seen.header("accept-encoding").unwrap().contains("gzip"));
        let copies = if seen.target == "/bomb" { 40_000 } else { 100 };
        answer(200, &[("content-encoding", "gzip")], gzip_of_zeros(copies))
    })
    .await;
    let upstream = service.upstream_within(UpstreamLimits { body: 1 << 20, ..quick() });
    let incoming = upstream.send(get("/small")).await.unwrap();
    assert_eq!((incoming.body.len(), incoming.body.iter().max()), (25_801, Some(&0)));
    let error = upstream.send(get("/bomb")).await.unwrap_err();
    assert!(matches!(error, UpstreamError::TooLarge(_)), "10 MB in 65 KB: {error}");
}

#[tokio::test]
async fn an_invalid_compressed_response_is_an_error() {
    let service = Service::start(|_, _| answer(200, &[("content-encoding", "gzip")], "plain text")).await;
    let error = service.upstream().send(post("/", "")).await.unwrap_err();
    assert!(error.to_string().contains("decompressed"), "{error}");
}

#[tokio::test]
async fn a_slow_response_ends_with_the_timeout() {
    let service = Service::start(|_, _| {
        let (answer, pieces) = streamed(200, &[]);
        tokio::spawn(async move {
            while pieces.send(Ok(Bytes::from_static(b"."))).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        answer
    })
    .await;
    let total = Duration::from_millis(300);
    let upstream = service.upstream_within(UpstreamLimits { total, ..quick() });
    let started = Instant::now();
    let error = upstream.send(get("/")).await.unwrap_err();
    assert!(matches!(error, UpstreamError::TimedOut(limit) if limit == total), "{error}");
    assert!(started.elapsed() >= total && started.elapsed() < Duration::from_secs(10));
    assert_eq!(error.to_string(), "the service did not answer within 0.3 s");
}

#[tokio::test]
async fn a_service_that_never_responds_ends_with_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let limits = UpstreamLimits { total: Duration::from_millis(300), ..quick() };
    let upstream = Upstream::new(&address, Credential::None, limits).unwrap();
    assert!(matches!(upstream.send(get("/")).await, Err(UpstreamError::TimedOut(_))));
}

fn bound() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}

#[tokio::test]
async fn a_refused_connection_is_an_error_without_the_address() {
    // The port is bound, so that no other process gets it, but not listening.
    let socket = bound();
    let port = socket.local_addr().unwrap().port();
    let base = format!("http://127.0.0.1:{port}/secret-folder");
    let upstream = Upstream::new(&base, Credential::None, quick()).unwrap();
    let error = upstream.send(post("/name?key=hush", "")).await.unwrap_err();
    assert_eq!(error.to_string(), "the service cannot be reached: the connection is refused");
    let whole = format!("{error:?}");
    for word in ["127.0.0.1", "secret-folder", "hush", "name", &port.to_string()] {
        assert!(!whole.contains(word), "{whole}");
    }
}

#[tokio::test]
async fn a_service_that_starts_late_is_reached_by_a_retry() {
    let socket = bound();
    let address = socket.local_addr().unwrap();
    let limits = UpstreamLimits { pause: Duration::from_millis(100), tries: 30, ..quick() };
    let upstream = Upstream::new(&format!("http://{address}"), Credential::None, limits).unwrap();
    let call = tokio::spawn(async move { upstream.send(post("/", "x")).await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let listener = socket.listen(8).unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = [0; 1024];
    let _ = stream.read(&mut request).await.unwrap();
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    assert_eq!(call.await.unwrap().unwrap().status, 204, "without a connection nothing was processed");
}

#[tokio::test]
async fn a_response_that_breaks_off_is_retried_if_the_request_is_repeatable() {
    let service = Service::start(|seen, before| {
        if seen.target == "/late" && before > 0 {
            return answer(200, &[], "whole");
        }
        let (answer, pieces) = streamed(200, &[("content-length", "100")]);
        pieces.try_send(Ok(Bytes::from_static(b"half"))).unwrap();
        pieces.try_send(Err(io::Error::other("cut"))).unwrap();
        answer
    })
    .await;
    assert_eq!(service.upstream().send(get("/late")).await.unwrap().body, "whole");
    assert_eq!(service.count(), 2);
    let error = service.upstream().send(get("/")).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Unreachable(_)) && error.to_string().contains("broke"), "{error}");
    assert_eq!(service.count(), 2 + 3);
    service.upstream().send(post("/", "x")).await.unwrap_err();
    assert_eq!(service.count(), 2 + 3 + 1);
}

#[tokio::test]
async fn responses_that_are_not_http_are_errors() {
    for said in
        ["hello\r\n\r\n", "HTTP/1.1 200 OK\r\nbad header\r\n\r\n", "HTTP/1.1 200 OK\r\na: \0\r\n\r\n", ""]
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
        });
        let upstream = Upstream::new(&address, Credential::None, quick()).unwrap();
        let error = upstream.send(post("/", "x")).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Unreachable(_)), "{said:?}: {error}");
        server.await.unwrap();
    }
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let (told, closed) = oneshot::channel();
    let told = Mutex::new(Some(told));
    let (came, arrived) = oneshot::channel();
    let came = Mutex::new(Some(came));
    let service = Service::start(move |_, _| {
        let (answer, pieces) = streamed(200, &[]);
        let (told, came) = (told.lock().unwrap().take().unwrap(), came.lock().unwrap().take().unwrap());
        pieces.try_send(Ok(Bytes::from_static(b"begun"))).unwrap();
        tokio::spawn(async move {
            came.send(()).unwrap();
            pieces.closed().await;
            told.send(()).unwrap();
        });
        answer
    })
    .await;
    let upstream = service.upstream();
    let call = tokio::spawn(async move { upstream.send(get("/")).await });
    arrived.await.unwrap();
    call.abort();
    tokio::time::timeout(Duration::from_secs(20), closed).await.unwrap().unwrap();
}
