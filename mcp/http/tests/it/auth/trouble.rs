//! Authorizers that panic, hang, or return special denials.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bindpost_mcp_http::{AnyAuthorizer, Auth, Authorizer, Denial};
use bindpost_mcp_server::{Caller, HttpRequest};
use serde_json::json;

use super::*;
use crate::client::{Ask, LATEST, TestServer, attentive};

/// Behaves as the header `x-do` demands.
#[derive(Debug, Default)]
struct Moody {
    asked: Arc<AtomicUsize>,
}

impl Authorizer for Moody {
    async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match request.header("x-do") {
            None => Err(Denial::missing()),
            Some("panic") => panic!("as asked"),
            Some("panic later") => {
                tokio::task::yield_now().await;
                panic!("as asked")
            }
            Some("hang") => std::future::pending().await,
            Some("wait") => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(Caller::new("patient"))
            }
            Some("unavailable") => Err(Denial::unavailable("the issuer does not answer")),
            Some("malformed") => Err(Denial::malformed("what is this?")),
            Some("challenge") => {
                Err(Denial::invalid("no").with_challenge("Negotiate abc, Basic realm=\"x\""))
            }
            Some("inject") => {
                Err(Denial::invalid("a\r\nset-cookie: b=c\"; x=\"y").with_challenge("bad\r\nvalue: x"))
            }
            Some("anonymous") => Ok(Caller::ANONYMOUS),
            Some(name) => Ok(Caller::new(name)),
        }
    }

    fn knows(&self, caller: &Caller) -> bool {
        assert_ne!(caller.id(), Some("unspeakable"), "as asked");
        true
    }
}

fn moody() -> Auth {
    Auth::new(Moody::default()).timeout(Duration::from_millis(100))
}

#[tokio::test]
async fn a_failing_authorizer_affects_one_request_only() {
    let server = TestServer::of(mixed(), with(moody())).await;
    for way in WAYS {
        let talk = Talk::open(&server, way, NO_KEY).await;
        let call = request("tools/call", json!({"name": "whoami"}));
        for panics in [&[("x-do", "panic")], &[("x-do", "panic later")]] as [Credentials; 2] {
            let reply = talk.send(&call, panics).await;
            reply.refused(500, -32603);
            assert!(!reply.text().contains("as asked"));
            // Anonymous entries are not served either, because the cause is not known.
            talk.send(&request("tools/call", json!({"name": "time"})), panics).await.refused(500, -32603);
        }
        for late in [&[("x-do", "hang")], &[("x-do", "unavailable")]] as [Credentials; 2] {
            let reply = talk.send(&call, late).await;
            reply.refused(503, 503);
            assert_eq!(reply.header("retry-after"), Some("5"), "{way:?}");
            assert_eq!(reply.header("www-authenticate"), None);
        }
    }
    for ask in [
        Ask::new("GET", "/mcp"),
        Ask::new("DELETE", "/mcp"),
        Ask::new("GET", "/sse"),
        Ask::initialize(LATEST),
    ] {
        server.send(&ask.header("x-do", "panic")).await.refused(500, -32603);
    }
    assert_eq!(
        server.send(&Ask::modern_call("whoami", json!({})).header("x-do", "ok")).await.tool_text(),
        "ok"
    );
}

#[tokio::test]
async fn an_authorizer_may_wait_within_its_timeout() {
    let server = TestServer::of(mixed(), with(moody())).await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, &[("x-do", "wait")]).await;
        assert_eq!(talk.call("whoami", &[("x-do", "wait")]).await.text(), "patient", "{way:?}");
    }
    let started = Instant::now();
    server.send(&Ask::modern_call("whoami", json!({})).header("x-do", "hang")).await.refused(503, 503);
    assert!(started.elapsed() >= Duration::from_millis(100));
    assert_eq!(Auth::new(Moody::default()).timeout, Duration::from_secs(10));
    // Anonymous entries do not depend on the caller.
    let time = Ask::modern_call("time", json!({}));
    for trouble in ["hang", "unavailable", "challenge"] {
        assert_eq!(server.send(&time.clone().header("x-do", trouble)).await.tool_text(), "noon");
    }
}

#[tokio::test]
async fn an_authorizer_runs_once_for_each_http_request() {
    let moody = Moody::default();
    let asked = moody.asked.clone();
    let server = TestServer::of(mixed(), with(Auth::new(moody))).await;
    let count = async |ask: Ask| {
        let before = asked.load(Ordering::SeqCst);
        server.send(&ask.header("x-do", "alice")).await;
        asked.load(Ordering::SeqCst) - before
    };
    let session = server.session_of("2025-03-26", |ask| ask.header("x-do", "alice")).await;
    let call =
        |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "whoami"}});
    for ask in [
        Ask::modern_call("whoami", json!({})),
        session.post(json!([call(1), call(2), call(3)]).to_string()),
        session.notify("notifications/initialized", json!({})),
        session.delete(),
    ] {
        assert_eq!(count(ask).await, 1);
    }
    // It does not run for public requests.
    assert_eq!(count(Ask::new("OPTIONS", "/mcp")).await, 0);
    assert_eq!(count(Ask::new("PUT", "/mcp")).await, 0);
    assert_eq!(count(Ask::new("GET", "/elsewhere")).await, 0);
    assert_eq!(count(Ask::initialize(LATEST).with("host", "evil.example.com")).await, 0);
}

#[tokio::test]
async fn a_denial_sets_text_and_challenge_but_no_other_header() {
    let server = TestServer::of(mixed(), with(moody())).await;
    let send =
        async |what: &str| server.send(&Ask::modern_call("whoami", json!({})).header("x-do", what)).await;
    let reply = send("malformed").await;
    assert_eq!(reply.refused(400, -32600)["error"]["message"], "what is this?");
    let expected =
        parameters(&[("realm", "mcp"), ("error", "invalid_request"), ("error_description", "what is this?")]);
    assert_eq!(challenge(&reply.headers).1, expected);
    let reply = send("challenge").await;
    assert_eq!(reply.header("www-authenticate"), Some("Negotiate abc, Basic realm=\"x\""));
    let reply = send("inject").await;
    reply.refused(401, -32001);
    assert_eq!(reply.header("set-cookie"), None);
    assert_eq!(challenge(&reply.headers).1["error_description"], "a  set-cookie: b=c'; x='y");
    let reply = send("anonymous").await;
    assert_eq!(reply.refused(401, -32001)["error"]["message"], "authentication is required");
}

#[tokio::test]
async fn of_two_denials_the_more_important_one_is_reported() {
    let server = TestServer::of(mixed(), with(Auth::new(keys().or(Moody::default())))).await;
    let call = || Ask::modern_call("whoami", json!({}));
    for (credentials, what, status) in [
        (ALICE, "unavailable", 200),
        (ALICE, "panic", 200),
        (WRONG, "ok", 200),
        (NO_KEY, "ok", 200),
        (WRONG, "unavailable", 503),
        (NO_KEY, "unavailable", 503),
        (WRONG, "malformed", 400),
        (WRONG, "challenge", 401),
        (NO_KEY, "anonymous", 401),
    ] {
        let reply = server.send(&carrying(call().header("x-do", what), credentials)).await;
        assert_eq!(reply.status, status, "{credentials:?} {what}");
    }
    let reply = server.send(&carrying(call(), WRONG)).await;
    assert_eq!(reply.refused(401, -32001)["error"]["message"], "the API key is not known");
    let reply = server.send(&call().header("x-do", "challenge")).await;
    assert_eq!(reply.refused(401, -32001)["error"]["message"], "no");
}

#[tokio::test]
async fn an_authorizer_that_panics_during_a_sweep_ends_no_session() {
    let auth = Auth::new(AnyAuthorizer::new(Moody::default()));
    let server = TestServer::of(mixed(), Settings { auth: Some(auth), ..attentive() }).await;
    let session = server.session_of(LATEST, |ask| ask.header("x-do", "unspeakable")).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.send(&session.ping().header("x-do", "unspeakable")).await.result();
}
