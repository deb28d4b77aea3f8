//! Requests to a self-hosted app: what is forwarded, who may send it, and how bodies stream. The server is the fixture app
//! `tests/apps/self-hosted-plain`.

use std::net::SocketAddr;
use std::time::Duration;

use bindpost_azure_functions::KeyRequirement;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Request};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::client::within;
use crate::served::{Launch, Served};

fn plain() -> Launch {
    Launch::copy_of("tests/apps/self-hosted-plain")
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Sends a request on a connection of its own. Returns the response when its head has arrived.
async fn begin(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: BoxBody<Bytes, std::convert::Infallible>,
) -> http::Response<Incoming> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request = request.header("host", address.to_string());
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    within(sender.send_request(request.body(body).unwrap())).await.unwrap()
}

async fn send(host: &Served, method: &str, path: &str, headers: &[(&str, &str)], body: Bytes) -> Answer {
    let response = begin(host.address, method, path, headers, Full::new(body).boxed()).await;
    let (head, body) = response.into_parts();
    let body = within(body.collect()).await.unwrap().to_bytes();
    Answer { status: head.status.as_u16(), headers: head.headers, body }
}

async fn get(host: &Served, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(host, "GET", path, headers, Bytes::new()).await
}

async fn status(host: &Served, path: &str, headers: &[(&str, &str)]) -> u16 {
    get(host, path, headers).await.status
}

#[tokio::test]
async fn the_server_gets_the_request_with_the_headers_of_the_platform() {
    let host = plain().serve();
    let forged = [
        ("host", "localhost:1234"),
        ("x-ms-client-principal-name", "forged"),
        ("x-azure-functions-invocationid", "forged"),
        ("x-forwarded-for", "10.0.0.1"),
        ("connection", "x-mine"),
        ("x-mine", "1"),
        ("x-functions-key", "kept"),
    ];
    let answer = get(&host, "/a%2Fb/ä?q=1&code=x".replace('ä', "%C3%A4").as_str(), &forged).await;
    assert_eq!(answer.status, 200);
    let got = answer.json();
    assert_eq!((&got["method"], &got["path"]), (&json!("GET"), &json!("/a%2Fb/%C3%A4?q=1&code=x")));
    let headers = got["headers"].as_object().unwrap();
    let one = |name: &str| headers.get(name).map(|values| values[0].as_str().unwrap()).unwrap_or_default();
    assert!(one("host").starts_with("127.0.0.1:"), "{headers:?}");
    assert_eq!((one("x-forwarded-host"), one("x-forwarded-proto")), ("localhost:1234", "http"));
    assert_eq!((one("x-forwarded-for"), one("x-functions-key")), ("127.0.0.1", "kept"));
    let id = one("x-azure-functions-invocationid");
    assert!(id.len() == 36 && id == one("x-ms-invocation-id"), "{headers:?}");
    assert!(one("x-azure-functions-hostversion").starts_with("4."), "{headers:?}");
    for gone in ["x-ms-client-principal-name", "x-mine", "connection"] {
        assert!(!headers.contains_key(gone), "{gone}: {headers:?}");
    }
    // The response loses the headers of the connection to the server.
    assert_eq!((answer.header("x-public"), answer.header("x-private")), (Some("for the client"), None));
    assert_eq!(answer.header("connection"), None);
}

#[tokio::test]
async fn the_identity_headers_of_a_trusted_platform_are_forwarded() {
    let host = plain().door(|door| door.trusts_platform = true).serve();
    let identity = [("x-ms-client-principal-name", "ada"), ("x-forwarded-for", "10.0.0.1")];
    let headers = get(&host, "/a", &identity).await.json()["headers"].clone();
    assert_eq!(headers["x-ms-client-principal-name"], json!(["ada"]));
    assert_eq!(headers["x-forwarded-for"], json!(["10.0.0.1, 127.0.0.1"]));
}

#[tokio::test]
async fn our_own_paths_are_not_forwarded() {
    let host = plain().serve();
    for path in ["/_/healthz", "/_/readyz", "/admin/host/ping"] {
        let answer = get(&host, path, &[]).await;
        assert_eq!((answer.status, answer.json()), (200, json!({"status": "ok"})), "{path}");
        assert_eq!(send(&host, "POST", path, &[], Bytes::new()).await.status, 405, "{path}");
    }
    assert_eq!(status(&host, "/_/other", &[]).await, 404);
    // The root page is that of the server, which has none.
    let root = get(&host, "/", &[]).await;
    assert_eq!((root.status, root.header("x-public")), (404, Some("for the client")));
    assert_eq!(get(&host, "/admin/other", &[]).await.json()["path"], "/admin/other");
}

#[tokio::test]
async fn every_usual_method_is_forwarded() {
    let host = plain().serve();
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS"] {
        assert_eq!(send(&host, method, "/a", &[], Bytes::new()).await.json()["method"], method);
    }
    assert_eq!(send(&host, "TRACE", "/a", &[], Bytes::new()).await.status, 404);
}

#[tokio::test]
async fn a_key_is_required_by_the_level_of_the_route() {
    let host = json!({
        "version": "2.0",
        "configurationProfile": "mcp-custom-handler",
        "customHandler": {
            "description": {"defaultExecutablePath": "python3", "arguments": ["server.py"]},
            "http": {"routes": [
                {"route": "mcp/{*rest}"},
                {"route": "open", "authorizationLevel": "ANONYMOUS"},
                {"route": "inner", "authorizationLevel": "admin"},
            ]},
        },
    });
    let keys = "_master = m\ndefault = h\nmcp_extension = s\nhttp-handler1.a = one\nhttp-handler2.a = two\n";
    let launch = plain().file("host.json", &host.to_string()).file(".bindpost/keys", keys);
    let host = launch.door(|door| door.keys = KeyRequirement::AsTheLevelSays).serve();
    for (path, key, expected) in [
        ("/mcp/a", None, 401),
        ("/mcp/a", Some("wrong"), 401),
        ("/mcp/a", Some("m"), 200),
        ("/mcp/a", Some("h"), 200),
        ("/mcp/a", Some("s"), 200),
        ("/mcp/a", Some("one"), 200),
        ("/mcp/a", Some("two"), 401),
        ("/open", None, 200),
        ("/inner", Some("m"), 200),
        ("/inner", Some("h"), 401),
        ("/inner", Some("s"), 401),
        ("/other", Some("m"), 404),
        // The path of the platform is that of the route.
        ("/runtime/webhooks/mcp/a", None, 401),
        ("/runtime/webhooks/mcp/a", Some("s"), 200),
        ("/_/readyz", None, 200),
    ] {
        let header: Vec<(&str, &str)> = key.map(|key| ("x-functions-key", key)).into_iter().collect();
        assert_eq!(status(&host, path, &header).await, expected, "{path} {key:?}");
    }
    assert_eq!(status(&host, "/mcp/a?code=s", &[]).await, 200);
    // A refused body is not read: the connection is closed.
    let refused = send(&host, "POST", "/mcp/a", &[], Bytes::from(vec![0; 1 << 20])).await;
    assert_eq!((refused.status, refused.header("connection")), (401, Some("close")));
}

/// Without `--host` and `--allow-host` only this machine can reach the app.
#[tokio::test]
async fn on_the_loopback_no_key_is_required() {
    let host = plain().serve();
    assert_eq!(status(&host, "/a", &[]).await, 200);
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_rejected() {
    let host = plain()
        .file("local.settings.json", r#"{"Host": {"CORS": "https://page.example"}}"#)
        .door(|door| door.allowed_hosts.push("app.example".to_owned()))
        .serve();
    for (name, origin, expected) in [
        ("evil.example", None, 403),
        ("app.example", None, 200),
        ("localhost", Some("http://localhost:3000"), 200),
        ("localhost", Some("https://evil.example"), 403),
        ("localhost", Some("null"), 403),
        ("localhost", Some("https://page.example"), 200),
        // A page of the server itself.
        ("app.example", Some("https://app.example"), 200),
    ] {
        let headers = [("host", name), ("origin", origin.unwrap_or_default())];
        let headers = if origin.is_some() { &headers[..] } else { &headers[..1] };
        assert_eq!(status(&host, "/a", headers).await, expected, "{name} {origin:?}");
    }
    let preflight = [("origin", "https://page.example"), ("access-control-request-method", "POST")];
    let answer = send(&host, "OPTIONS", "/mcp", &preflight, Bytes::new()).await;
    assert_eq!((answer.status, answer.header("access-control-allow-methods")), (204, Some("POST")));
    let answer = get(&host, "/a", &[("origin", "https://page.example")]).await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://page.example"));
}

#[tokio::test]
async fn large_bodies_pass_in_both_directions() {
    let host = plain().serve();
    let body: Vec<u8> = (0..20 << 20).map(|at: u32| (at % 251) as u8).collect();
    let answer = send(&host, "POST", "/double", &[], Bytes::from(body.clone())).await;
    assert_eq!((answer.status, answer.body.len()), (200, body.len() * 2));
    assert!(answer.body[..body.len()] == body && answer.body[body.len()..] == body);
}

#[tokio::test]
async fn bodies_beyond_the_limit_are_rejected() {
    let host = plain().setting("FUNCTIONS_REQUEST_BODY_SIZE_LIMIT", "1000000").serve();
    let fits = send(&host, "POST", "/length", &[], Bytes::from(vec![0; 1_000_000])).await;
    assert_eq!((fits.status, fits.json()), (200, json!({"length": 1_000_000})));
    let declared = send(&host, "POST", "/length", &[], Bytes::from(vec![0; 1_000_001])).await;
    assert_eq!((declared.status, declared.header("connection")), (413, Some("close")));
    // A length that is not declared is counted.
    let chunks = (0..11).map(|_| Ok(Frame::data(Bytes::from(vec![0; 100_000]))));
    let body = StreamBody::new(stream::iter(chunks)).boxed();
    let counted = begin(host.address, "POST", "/length", &[], body).await;
    assert_eq!(counted.status(), 413);
}

async fn next_chunk(body: &mut Incoming) -> Option<Bytes> {
    within(body.frame()).await.map(|frame| frame.unwrap().into_data().unwrap())
}

#[tokio::test]
async fn both_directions_stream_at_the_same_time() {
    let host = plain().serve();
    let (sender, receiver) = mpsc::unbounded_channel::<Bytes>();
    let chunks = stream::unfold(receiver, |mut receiver| async {
        let chunk = receiver.recv().await?;
        Some((Ok(Frame::data(chunk)), receiver))
    });
    sender.send("one".into()).unwrap();
    let body = StreamBody::new(chunks);
    let response = begin(host.address, "POST", "/duplex", &[], http_body_util::BodyExt::boxed(body)).await;
    let mut body = response.into_body();
    // Each part is answered before the next one is sent.
    assert_eq!(next_chunk(&mut body).await.unwrap(), "ONE");
    sender.send("two".into()).unwrap();
    assert_eq!(next_chunk(&mut body).await.unwrap(), "TWO");
    drop(sender);
    assert_eq!(next_chunk(&mut body).await, None);
}

#[tokio::test]
async fn the_server_learns_that_its_client_has_disconnected() {
    let host = plain().serve();
    let body = Full::new(Bytes::new()).boxed();
    let mut events = begin(host.address, "GET", "/events", &[], body).await.into_body();
    assert_eq!(next_chunk(&mut events).await.unwrap(), "data: 0\n\n");
    assert_eq!(next_chunk(&mut events).await.unwrap(), "data: 1\n\n");
    drop(events);
    within(async {
        while !host.file("disconnected.txt").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_without_mcp_is_reported_and_served() {
    let host = plain().serve();
    let report = serde_json::to_value(&host.report).unwrap();
    let problem = "nothing answers MCP requests at /mcp: HTTP 404";
    assert_eq!(report["server"], json!({"sessions": false, "problem": problem}));
    assert_eq!((&report["tools"], &report["worker"]["kind"]), (&json!([]), &json!("self-hosted")));
    assert!(report["worker"]["place"].as_str().unwrap().ends_with(" server.py"), "{report}");
    assert_eq!(report["warnings"], json!([]));
}
