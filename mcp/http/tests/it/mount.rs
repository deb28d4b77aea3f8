//! An endpoint as a tower service in a server of another library.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::convert::Infallible;
use std::marker::PhantomPinned;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bindpost_mcp_http::{ApiKeys, Auth, Endpoint, MountedBody, Settings, TlsFiles};
use bindpost_mcp_server::{Server, ServerLimits, ToolEntry};
use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::client::{Ask, LATEST, Session, fixture, text_of, within};
use crate::logs::Warnings;

fn endpoint(settings: Settings) -> Endpoint {
    Endpoint::new(fixture(ServerLimits::default()).0, settings)
}

async fn send(endpoint: &Endpoint, ask: &Ask) -> Response<MountedBody> {
    endpoint.clone().call(ask.request().map(|body| Full::new(Bytes::from(body)))).await.unwrap()
}

async fn body(reply: Response<MountedBody>) -> Value {
    let body = within(reply.into_body().collect()).await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&body)))
}

fn echo() -> Ask {
    Ask::modern_call("echo", json!({"a": 1}))
}

/// Routers such as axum's `nest_service` remove the path of the endpoint, others keep it.
#[tokio::test]
async fn the_path_may_be_removed_by_the_router() {
    let endpoint = endpoint(Settings::default());
    for path in ["/", "/mcp", "/mcp/"] {
        let reply = body(send(&endpoint, &echo().at(path)).await).await;
        assert_eq!(text_of(&reply["result"]), r#"{"a":1}"#, "{path}");
    }
    let reply = send(&endpoint, &echo().at("/other")).await;
    assert_eq!(reply.status(), 404);
    // The app may have mounted it anywhere, so the path of the settings is not named.
    assert_eq!(
        body(reply).await["error"]["message"],
        "not found; the MCP endpoint of this app is at another path"
    );
    assert_eq!(send(&endpoint, &Ask::new("PUT", "/")).await.status(), 405);
}

/// Our own listener knows every path, so `/` is not the endpoint there.
#[tokio::test]
async fn the_own_listener_serves_the_path_only() {
    let server = crate::client::TestServer::start(Settings::default()).await;
    let refused = server.send(&echo().at("/")).await;
    assert_eq!(refused.refused(404, -32600)["error"]["message"], "not found; the MCP endpoint is /mcp");
}

#[tokio::test]
async fn sessions_work_and_expire_without_a_listener() {
    let mut settings = Settings::default();
    settings.session_limits.idle = Duration::from_millis(50);
    settings.session_limits.sweep = Duration::from_millis(10);
    let endpoint = endpoint(settings);
    let opened = send(&endpoint, &Ask::initialize(LATEST).at("/")).await;
    let id = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let session = Session { id, revision: LATEST };
    assert_eq!(body(send(&endpoint, &session.ping()).await).await["result"], json!({}));
    within(async {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if send(&endpoint, &session.ping()).await.status() == 404 {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn http_sse_is_served_only_below_the_path() {
    let by_default = endpoint(Settings::default());
    for path in ["/sse", "/mcp/sse", "/message"] {
        assert_eq!(send(&by_default, &Ask::new("GET", path)).await.status(), 404, "{path}");
    }
    let below = ("/mcp/sse".to_owned(), "/mcp/message".to_owned());
    let endpoint = endpoint(Settings { sse_paths: Some(below), ..Settings::default() });
    for path in ["/sse", "/mcp/sse"] {
        let reply = send(&endpoint, &Ask::new("GET", path)).await;
        assert_eq!(reply.status(), 200, "{path}");
        let first = within(reply.into_body().frame()).await.unwrap().unwrap().into_data().unwrap();
        let first = String::from_utf8(first.to_vec()).unwrap();
        assert!(first.starts_with("event: endpoint\ndata: message?sessionId="), "{first}");
    }
    assert_eq!(send(&endpoint, &Ask::new("GET", "/message")).await.status(), 405);
    assert_eq!(send(&endpoint, &Ask::post("{}").at("/message")).await.status(), 400);
}

#[tokio::test]
async fn a_drain_ends_open_streams() {
    let endpoint = endpoint(Settings::default());
    let opened = send(&endpoint, &Ask::initialize(LATEST)).await;
    let id = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let stream = send(&endpoint, &Session { id, revision: LATEST }.get()).await;
    assert_eq!(stream.status(), 200);
    endpoint.drain();
    within(stream.into_body().collect()).await.unwrap();
}

/// An empty body that is not `Unpin`.
struct PinnedBody(PhantomPinned);

impl Body for PinnedBody {
    type Data = BytesMut;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BytesMut>, Infallible>>> {
        Poll::Ready(None)
    }
}

#[tokio::test]
async fn a_body_need_not_be_unpin() {
    let endpoint = endpoint(Settings::default());
    let request = echo().request().map(|_| PinnedBody(PhantomPinned));
    // The body is empty, which the endpoint reads and rejects.
    assert_eq!(endpoint.clone().call(request).await.unwrap().status(), 400);
    let request = echo().request().map(|body| Full::new(BytesMut::from(body.as_slice())));
    assert_eq!(endpoint.clone().call(request).await.unwrap().status(), 200);
}

#[tokio::test]
async fn extensions_and_the_address_reach_the_handler() {
    #[derive(Clone)]
    struct Tenant(&'static str);
    let who = ToolEntry::new("who", async |context: bindpost_mcp_server::Context| {
        let http = context.http().unwrap();
        format!("{} {}", http.parts.extensions.get::<Tenant>().unwrap().0, http.peer.unwrap())
    });
    let server = Server::builder("test", "1.0.0").tool(who).build().unwrap();
    let mut endpoint = Endpoint::new(server, Settings { open_to_all: true, ..Settings::default() });
    let mut request: Request<Full<Bytes>> =
        Ask::modern_call("who", json!({})).request().map(|body| Full::new(Bytes::from(body)));
    request.extensions_mut().insert(Tenant("blue"));
    request.extensions_mut().insert("192.0.2.7:4000".parse::<SocketAddr>().unwrap());
    let reply = body(endpoint.call(request).await.unwrap()).await;
    assert_eq!(text_of(&reply["result"]), "blue 192.0.2.7:4000");
}

/// A response above 64 KiB counts towards the memory budget, and its bytes arrive all the same.
#[tokio::test]
async fn large_responses_arrive_whole() {
    let endpoint = endpoint(Settings::default());
    let text = "x".repeat(200_000);
    let reply = body(send(&endpoint, &Ask::modern_call("echo", json!({"text": text}))).await).await;
    assert_eq!(text_of(&reply["result"]), json!({"text": text}).to_string());
}

/// The app accepts the connections, so the certificate would not be used.
#[tokio::test]
async fn tls_of_a_mounted_endpoint_is_reported() {
    let look_every = Duration::from_secs(5);
    let tls = Some(TlsFiles { certificate: "cert.pem".into(), key: "key.pem".into(), look_every });
    let endpoint = endpoint(Settings { tls, open_to_all: true, ..Settings::default() });
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    for _ in 0..2 {
        assert_eq!(send(&endpoint, &echo()).await.status(), 200);
    }
    let logged = std::mem::take(&mut *warnings.0.lock().unwrap());
    assert!(logged.len() == 1 && logged[0].contains("so nothing is encrypted"), "{logged:?}");
    let address: SocketAddr = "127.0.0.1:7071".parse().unwrap();
    let error = endpoint.check_address(&address).unwrap_err().to_string();
    assert!(
        error.starts_with("`Settings::tls` (options `tls.certificate`") && error.contains("fix:"),
        "{error}"
    );
}

#[test]
fn a_mistake_in_the_keys_of_a_mounted_endpoint_is_an_error() {
    let auth = Some(Auth::new(ApiKeys::new().key("till", "")));
    let endpoint = endpoint(Settings { auth, ..Settings::default() });
    let address: SocketAddr = "127.0.0.1:7071".parse().unwrap();
    let error = endpoint.check_address(&address).unwrap_err().to_string();
    assert_eq!(error, "the API key \"till\" has no secret");
}

/// A mounted endpoint cannot refuse to start, so it refuses every request.
#[tokio::test]
async fn a_public_endpoint_without_authentication_serves_no_request() {
    let hosts = |host: &str| Settings { allowed_hosts: vec![host.to_owned()], ..Settings::default() };
    let proxied = Settings { behind_proxy: true, ..Settings::default() };
    for settings in [hosts("api.example.com"), hosts("*"), proxied] {
        let public = endpoint(settings.clone());
        let problem = public.exposure_problem().expect("a problem");
        assert!(
            ["Settings::auth", "open_to_all", "fix:"].iter().all(|part| problem.contains(part)),
            "{problem}"
        );
        for ask in [echo(), echo().at("/"), Ask::initialize(LATEST), Ask::new("GET", "/_/healthz")] {
            let reply = send(&public, &ask).await;
            assert_eq!(reply.status(), 503);
            let reply = body(reply).await;
            assert!(reply["error"]["message"].as_str().unwrap().contains("authentication"), "{reply}");
        }
        let open = endpoint(Settings { open_to_all: true, ..settings.clone() });
        let keys = Auth::new(ApiKeys::new().key("till", "till-secret"));
        let guarded = endpoint(Settings { auth: Some(keys), ..settings });
        for (endpoint, credentials) in [(open, "none"), (guarded, "till-secret")] {
            assert_eq!(endpoint.exposure_problem(), None);
            assert_eq!(send(&endpoint, &echo().header("x-api-key", credentials)).await.status(), 200);
        }
    }
    let local = endpoint(hosts("localhost:7071"));
    assert_eq!(local.exposure_problem(), None);
    assert_eq!(send(&local, &echo()).await.status(), 200);
}

#[tokio::test]
async fn without_authentication_clients_of_other_machines_are_refused() {
    let local = endpoint(Settings::default());
    let open = endpoint(Settings { open_to_all: true, ..Settings::default() });
    for (address, status) in [
        ("127.0.0.1:1", 200),
        ("[::1]:1", 200),
        ("[::ffff:127.0.0.1]:1", 200),
        ("10.0.0.1:1", 403),
        ("[::ffff:10.0.0.1]:1", 403),
        ("[2001:db8::1]:1", 403),
    ] {
        let request = || {
            let mut request = echo().request().map(|body| Full::new(Bytes::from(body)));
            request.extensions_mut().insert(address.parse::<SocketAddr>().unwrap());
            request
        };
        assert_eq!(local.clone().call(request()).await.unwrap().status(), status, "{address}");
        assert_eq!(open.clone().call(request()).await.unwrap().status(), 200, "{address}");
    }
}
