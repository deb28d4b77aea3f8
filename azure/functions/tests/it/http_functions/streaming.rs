//! Functions of Node that stream their requests and responses: `app.setup({ enableHttpStream: true })`.

use std::fs;

use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::*;
use crate::client::Way;

fn launch() -> Launch {
    Launch::copy_of("tests/apps/http-stream-node").node("4.16.5")
}

/// Returns the next text of a response.
pub(super) async fn next(body: &mut Incoming) -> Option<String> {
    let frame = within(body.frame()).await?.unwrap();
    Some(String::from_utf8(frame.into_data().unwrap().into()).unwrap())
}

pub(super) async fn open(address: SocketAddr, path: &str) -> http::Response<Incoming> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::builder().uri(path).header("host", address.to_string());
    within(sender.send_request(request.body(Full::new(Bytes::new())).unwrap())).await.unwrap()
}

#[tokio::test]
async fn both_bodies_stream() {
    let host = launch().serve();
    let stream = TcpStream::connect(host.address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (chunks, received) = mpsc::channel::<Result<Frame<Bytes>, std::convert::Infallible>>(1);
    let request = Request::builder()
        .method("POST")
        .uri("/api/echo/a%20b?q=1")
        .header("host", host.address.to_string())
        .header("x-test", "yes")
        .header("x-ms-invocation-id", "forged")
        .body(StreamBody::new(ReceiverStream::new(received)))
        .unwrap();
    let (response, ()) = within(async {
        tokio::join!(sender.send_request(request), async {
            chunks.send(Ok(Frame::data(Bytes::from_static(b"one")))).await.unwrap();
        })
    })
    .await;
    let response = response.unwrap();
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(response.status(), 201);
    assert_eq!(header("x-id").as_deref(), Some("a b"));
    assert_eq!(header("x-test").as_deref(), Some("yes"));
    assert_eq!(header("x-url"), Some(format!("http://{}/api/echo/a%20b?q=1", host.address)));
    assert_eq!(header("set-cookie").as_deref(), Some("a=b; Path=/"));
    assert_eq!(header("x-ms-invocation-id"), None);
    let mut body = response.into_body();
    // The answer to the first chunk arrives before the second chunk is sent.
    assert_eq!(next(&mut body).await.as_deref(), Some("ONE"));
    chunks.send(Ok(Frame::data(Bytes::from_static(b"two")))).await.unwrap();
    assert_eq!(next(&mut body).await.as_deref(), Some("TWO"));
    drop(chunks);
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test]
async fn a_response_arrives_line_by_line() {
    let host = launch().serve();
    let response = open(host.address, "/api/lines").await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    assert_eq!(next(&mut body).await.as_deref(), Some("data: first\n\n"));
    fs::write(host.file("go"), "").unwrap();
    assert_eq!(next(&mut body).await.as_deref(), Some("data: second\n\n"));
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test]
async fn failures_and_plain_responses_work_as_without_streaming() {
    let host = launch().serve();
    let failing = get(&host, "/api/failing").await;
    assert_eq!((failing.status, failing.text()), (500, ""));
    for number in 0..20 {
        let body = format!("body {number}");
        let answer = send(host.address, "POST", "/api/plain", &[], body.clone()).await;
        assert_eq!(answer.text(), format!("POST {body}"));
    }
    assert_eq!(get(&host, "/api/plain").await.text(), "GET ");
    let mut client = host.client(Way::LATEST).await;
    assert_eq!(client.text("greet", json!({})).await, "Hello from a tool.");
}

#[tokio::test]
async fn a_client_that_disconnects_frees_its_place() {
    let limits = r#"{"version": "2.0", "extensions": {"http": {"maxOutstandingRequests": 1}}}"#;
    let host = launch().file("host.json", limits).serve();
    let mut response = open(host.address, "/api/lines").await;
    assert_eq!(next(response.body_mut()).await.as_deref(), Some("data: first\n\n"));
    assert_eq!(get(&host, "/api/plain").await.status, 429);
    drop(response);
    within(async { while get(&host, "/api/plain").await.status != 200 {} }).await;
}

#[tokio::test]
async fn every_worker_has_a_server_of_its_own() {
    let host = launch().options(|options| options.processes = Some(2)).serve();
    let answers = (0..40).map(|number| send(host.address, "POST", "/api/plain", &[], format!("{number}")));
    let answers = futures_util::future::join_all(answers).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!((answer.status, answer.text()), (200, format!("POST {number}").as_str()));
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_rejected() {
    let host = launch().setting("FUNCTIONS_REQUEST_BODY_SIZE_LIMIT", "1000").serve();
    assert_eq!(send(host.address, "POST", "/api/plain", &[], vec![b'a'; 1000]).await.status, 200);
    assert_eq!(send(host.address, "POST", "/api/plain", &[], vec![b'a'; 1001]).await.status, 413);
}
