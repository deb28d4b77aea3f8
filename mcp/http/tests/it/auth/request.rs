//! The HTTP request as a handler sees it, untrusted headers, session ids for logs only, and the start
//! checks of a server without authentication.

use std::collections::HashSet;

use bindpost_mcp_http::listener::{ConnectedClient, Drain};
use bindpost_mcp_http::{AnyListener, Auth, Endpoint, SessionMode, bind};
use bindpost_mcp_server::Context;
use serde_json::json;

use super::*;
use crate::client::{Ask, LATEST, TestServer, within};

/// Describes the HTTP request that a handler sees.
pub(super) async fn describe(context: Context) -> String {
    let Some(http) = context.http() else { return "no HTTP".to_owned() };
    json!({
        "method": http.method(),
        "path": http.uri().path(),
        "name": http.query("name"),
        "test": http.header("x-test"),
        "cookie": http.cookie("flavour"),
        "peer": http.peer.map(|peer| peer.ip().to_string()),
        "user": http.header("x-platform-user-name"),
        "headers": http.headers().keys().filter(|name| name.as_str().starts_with("x-platform")).count(),
        "session": context.session_id(),
    })
    .to_string()
}

fn described(answer: &Answer) -> Value {
    serde_json::from_str(answer.text()).unwrap()
}

const EXTRAS: Credentials = &[
    ("x-test", "some value"),
    ("cookie", "a=b; flavour=\"sweet\""),
    ("x-platform-user", "e30="),
    ("X-PLATFORM-USER-NAME", "mallory"),
    ("x-platform-user-id", "1"),
    ("x-platform-user-issuer", "idp"),
    ("x-platform-token-access", "token"),
    ("x-platform-token-access", "token"),
    ("x-platform-other", "stays"),
];

/// Settings with the identity headers of a platform.
fn on_platform(settings: Settings) -> Settings {
    Settings { identity_headers: vec!["x-platform-user".into(), "X-Platform-Token-".into()], ..settings }
}

#[tokio::test]
async fn a_handler_sees_the_request() {
    for settings in [Settings::default(), with_keys()] {
        let server = TestServer::of(mixed(), on_platform(settings)).await;
        for way in WAYS {
            let mut talk = Talk::open(&server, way, NO_KEY).await;
            let seen = described(&talk.call("http", EXTRAS).await);
            let path = if way == Way::Pipe { "/message" } else { "/mcp" };
            let expected = json!({"method": "POST", "path": path, "name": null, "test": "some value",
                "cookie": "sweet", "peer": "127.0.0.1", "user": null, "headers": 1,
                "session": talk.session});
            assert_eq!(seen, expected, "{way:?}");
        }
        let ask = Ask::modern_call("http", json!({})).at("/mcp?name=value&x=y");
        assert!(server.send(&ask).await.tool_text().contains(r#""name":"value""#));
        let batch = json!([request("tools/call", json!({"name": "http"}))]);
        let talk = Talk::open(&server, Way::Session("2025-03-26"), NO_KEY).await;
        assert!(talk.send(&batch, EXTRAS).await.text().contains("some value"));
    }
}

#[tokio::test]
async fn platform_identity_headers_are_trusted_only_if_configured() {
    let settings = on_platform(Settings { trust_platform_identity: true, ..Settings::default() });
    let server = TestServer::of(mixed(), settings).await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, NO_KEY).await;
        let seen = described(&talk.call("http", EXTRAS).await);
        assert_eq!((&seen["user"], &seen["headers"]), (&json!("mallory"), &json!(6)), "{way:?}");
    }
}

#[tokio::test]
async fn an_authorizer_sees_the_same_request_as_handlers() {
    use bindpost_mcp_http::{Authorizer, Denial};
    use bindpost_mcp_server::{Caller, HttpRequest};

    #[derive(Debug)]
    struct Platform;
    impl Authorizer for Platform {
        async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
            let name = request.header("x-platform-user-name").ok_or_else(Denial::missing)?;
            assert_eq!(request.peer.unwrap().ip().to_string(), "127.0.0.1");
            Ok(Caller::new(name))
        }

        fn identity_headers(&self) -> Vec<String> {
            vec!["x-platform-user".to_owned()]
        }
    }
    let call = carrying(Ask::modern_call("whoami", json!({})), EXTRAS);
    let server = TestServer::of(mixed(), with(Auth::new(Platform))).await;
    server.send(&call).await.refused(401, -32001);
    let trusting = Settings { trust_platform_identity: true, ..with(Auth::new(Platform)) };
    let server = TestServer::of(mixed(), trusting).await;
    assert_eq!(server.send(&call).await.tool_text(), "mallory");
}

#[tokio::test]
async fn the_ids_of_stateless_sessions_have_no_meaning() {
    let settings = || Settings { sessions: SessionMode::Stateless, ..with_keys() };
    let (here, there) =
        (TestServer::of(mixed(), settings()).await, TestServer::of(mixed(), settings()).await);
    let mut ids = HashSet::new();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let opened = here.send(&Ask::initialize(revision)).await;
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        assert!(id.len() >= 22);
        let session = crate::client::Session { id: id.clone(), revision };
        // Any instance accepts any session id of any caller.
        for server in [&here, &there] {
            for credentials in [NO_KEY, ALICE, BOB] {
                let ask = session.call(1, "http", json!({}));
                let seen = server.send(&carrying(ask, credentials)).await.tool_text();
                assert!(seen.contains(&id), "{seen}");
                assert_eq!(server.send(&carrying(session.ping(), credentials)).await.result(), json!({}));
            }
            let no_id = "what was never handed out";
            assert_eq!(server.send(&session.ping().with("mcp-session-id", no_id)).await.result(), json!({}));
            assert_eq!(server.send(&session.ping().without("mcp-session-id")).await.result(), json!({}));
            assert_eq!(
                server.send(&carrying(session.call(1, "whoami", json!({})), ALICE)).await.tool_text(),
                "key:alice"
            );
            server.send(&session.call(1, "whoami", json!({}))).await.refused(401, -32001);
            server.send(&session.notify("notifications/initialized", json!({}))).await.accepted();
            assert_eq!(server.send(&session.get()).await.refused(405, -32600)["id"], Value::Null);
            assert_eq!(server.send(&session.delete()).await.header("allow"), Some("POST, OPTIONS"));
        }
        assert!(ids.insert(id));
    }
    let discover = Ask::modern("server/discover", json!({})).header("mcp-session-id", "x");
    here.send(&discover).await.result();
}

#[tokio::test]
async fn without_an_authorizer_only_loopback_addresses_are_served() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let Ok(bound) = bind(address).await else { continue };
        let (_trigger, drain) = Drain::new();
        let refused = within(bound.serve_until(mixed(), Settings::default(), drain)).await.unwrap_err();
        let text = refused.to_string();
        assert!(
            ["127.0.0.1", "Settings::auth", "Settings::open_to_all"].iter().all(|fix| text.contains(fix)),
            "{text}"
        );
        for settings in [with_keys(), Settings { open_to_all: true, ..Settings::default() }] {
            let bound = bind(address).await.unwrap();
            let port = bound.local_addr().port();
            let (trigger, drain) = Drain::new();
            let running = tokio::spawn(bound.serve_until(mixed(), settings, drain));
            let mut client = crate::client::Client::connect(([127, 0, 0, 1], port).into()).await;
            assert_eq!(client.send(&Ask::modern_call("time", json!({}))).await.tool_text(), "noon");
            trigger.pull();
            trigger.pull();
            within(running).await.unwrap().unwrap();
        }
    }
}

/// An allowed host that is not of the loopback interface means that other machines send requests.
#[tokio::test]
async fn without_an_authorizer_no_public_hosts_are_served() {
    let hosts = |hosts: &[&str]| hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>();
    let refused = async |settings: Settings| {
        let bound = bind("127.0.0.1:0").await.unwrap();
        let (trigger, drain) = Drain::new();
        trigger.pull();
        within(bound.serve_until(mixed(), settings, drain)).await.err().map(|error| error.to_string())
    };
    for public in [&["*"][..], &["localhost", "api.example.com"], &["10.0.0.1:7071"], &["localhost.example"]]
    {
        let allowed_hosts = hosts(public);
        let settings = Settings { allowed_hosts, ..Settings::default() };
        let text = refused(settings.clone()).await.expect("the server must not start");
        let said = [*public.last().unwrap(), "allowed_hosts", "Settings::auth", "Settings::open_to_all"];
        assert!(said.iter().all(|part| text.contains(part)), "{text}");
        assert_eq!(refused(Settings { open_to_all: true, ..settings.clone() }).await, None);
        assert_eq!(refused(Settings { auth: with_keys().auth, ..settings }).await, None);
    }
    let behind = Settings { behind_proxy: true, ..Settings::default() };
    let text = refused(behind.clone()).await.expect("the server must not start");
    assert!(["behind_proxy", "Settings::auth"].iter().all(|part| text.contains(part)), "{text}");
    assert_eq!(refused(Settings { open_to_all: true, ..behind.clone() }).await, None);
    assert_eq!(refused(Settings { auth: with_keys().auth, ..behind }).await, None);
    for own in [&[][..], &["localhost:7071", "127.0.0.1", "[::1]:80", "LOCALHOST"]] {
        assert_eq!(refused(Settings { allowed_hosts: hosts(own), ..Settings::default() }).await, None);
    }
}

/// The child process serves on every kind of socket. In the test run itself this does nothing.
#[test]
fn the_child_process_is_a_custom_handler() {
    if std::env::var_os(CUSTOM_HANDLER).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let drained = || {
            let (trigger, drain) = Drain::new();
            trigger.pull();
            drain
        };
        let path = std::env::temp_dir().join(format!("bindpost-handler-{}.sock", std::process::id()));
        let unix = format!("unix:{}", path.display());
        for settings in
            [Settings::default(), Settings { open_to_all: true, ..Settings::default() }, with_keys()]
        {
            let mut problems = Vec::new();
            let endpoint = Endpoint::new(mixed(), settings.clone());
            problems.push(endpoint.exposure_problem().map(str::to_owned));
            let tcp = bind("127.0.0.1:0").await.unwrap();
            problems.push(
                tcp.serve_until(mixed(), settings.clone(), drained()).await.err().map(|e| e.to_string()),
            );
            let behind = bind("127.0.0.1:0").await.unwrap();
            let make = |client: ConnectedClient| {
                let endpoint = endpoint.clone();
                hyper::service::service_fn(move |request| {
                    endpoint.clone().handle_from(request, client.clone())
                })
            };
            problems.push(behind.serve_behind(&endpoint, make, drained()).await.err().map(|e| e.to_string()));
            let socket = AnyListener::bind(&unix, 0o600).await.unwrap();
            problems.push(
                socket.serve_until(mixed(), settings.clone(), drained()).await.err().map(|e| e.to_string()),
            );
            for problem in problems {
                let guarded = settings.auth.is_some() || settings.open_to_all;
                assert_eq!(problem.is_none(), guarded, "{problem:?}");
                assert!(
                    problem
                        .is_none_or(|text| text.contains(CUSTOM_HANDLER) && text.contains("Settings::auth"))
                );
            }
        }
    });
}

/// The variable by which the host of a custom handler starts it.
const CUSTOM_HANDLER: &str = "FUNCTIONS_CUSTOMHANDLER_PORT";

/// A program that reads the port of the custom handler itself must not be open to all.
#[test]
fn a_custom_handler_is_not_served_without_authentication() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "auth::request::the_child_process_is_a_custom_handler", "--nocapture"])
        .env(CUSTOM_HANDLER, "8080")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

#[tokio::test]
async fn an_origin_can_be_required() {
    let settings = Settings { require_origin: true, ..Settings::default() };
    let server = TestServer::of(mixed(), settings).await;
    for ask in [
        Ask::initialize(LATEST),
        Ask::new("GET", "/sse"),
        Ask::new("DELETE", "/mcp"),
        Ask::modern_call("time", json!({})),
    ] {
        server.send(&ask).await.refused(403, -32600);
    }
    server.send(&Ask::initialize(LATEST).header("origin", "http://localhost:3000")).await.result();
}
