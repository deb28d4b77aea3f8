//! Every rule over real HTTP, once for each revision.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bindpost_mcp_oauth::OAuthLimits;
use reqwest::Method;
use serde_json::{Value, json};

use crate::issuer::{TestIssuer, within};
use crate::requests::{AUDIENCE, limited, now_and, tokens};
use crate::talk::{Events, Talk, TestServer, WAYS, Way, mixed, protected};

const METADATA: &str = "https://api.example/.well-known/oauth-protected-resource/mcp";

async fn start() -> (TestIssuer, TestServer) {
    let issuer = TestIssuer::start().await;
    let server = TestServer::start(mixed(), &tokens(&issuer)).await;
    (issuer, server)
}

#[tokio::test]
async fn an_anonymous_tool_needs_no_token() {
    let (issuer, server) = start().await;
    let alice = issuer.token(json!({})).await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, None).await;
        assert_eq!(talk.call("time", None).await.text(), "noon", "{way:?}");
        let mut talk = Talk::open(&server, way, Some(&alice)).await;
        assert_eq!(talk.call("time", Some(&alice)).await.text(), "noon", "{way:?}");
        assert_eq!(talk.call("whoami", Some(&alice)).await.text(), "alice", "{way:?}");
    }
}

#[tokio::test]
async fn a_missing_token_gets_a_challenge() {
    let (_issuer, server) = start().await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, None).await;
        for (tool, scope) in [("whoami", None), ("write", Some("orders.read orders.write"))] {
            let refused = talk.call(tool, None).await;
            assert_eq!(refused.message["id"], 7, "{way:?}");
            let challenge = refused.refused(401);
            assert_eq!(challenge.get("resource_metadata").map(String::as_str), Some(METADATA), "{way:?}");
            assert_eq!(challenge.get("realm").map(String::as_str), Some("mcp"), "{way:?}");
            assert_eq!(challenge.get("scope").map(String::as_str), scope, "{way:?}");
            // Without a token there is no `invalid_token` error.
            assert!(!challenge.contains_key("error"), "{challenge:?}");
        }
    }
}

#[tokio::test]
async fn a_protected_server_rejects_the_first_request() {
    let issuer = TestIssuer::start().await;
    let server = TestServer::start(protected(), &tokens(&issuer)).await;
    let [alice, other] =
        [issuer.token(json!({})).await, issuer.token(json!({"aud": "https://other.example"})).await];
    for way in WAYS {
        let challenge = Talk::new(&server, way).opening(None).await.refused(401);
        assert_eq!(challenge["resource_metadata"], METADATA, "{way:?}");
        let challenge = Talk::new(&server, way).opening(Some(&other)).await.refused(401);
        assert_eq!(challenge["error"], "invalid_token", "{way:?}");
        let mut talk = Talk::open(&server, way, Some(&alice)).await;
        assert_eq!(talk.call("whoami", Some(&alice)).await.text(), "alice", "{way:?}");
        // A session id is not a credential.
        assert!(matches!(talk.call("whoami", None).await.status, 401 | 404), "{way:?}");
    }
}

#[tokio::test]
async fn invalid_tokens_get_invalid_token() {
    let (issuer, server) = start().await;
    let good = issuer.token(json!({})).await;
    let mut bad = Vec::new();
    for (order, description) in [
        (json!({"trick": "none", "header": {"alg": "none"}}), "the token is not valid"),
        (json!({"trick": "hmac", "header": {"alg": "HS256"}}), "the token is not valid"),
        (json!({"trick": "stranger"}), "the token is not valid"),
        (json!({"trick": "swapped"}), "the token is not valid"),
        (json!({"header": {"kid": "unknown"}}), "the token is not valid"),
        (json!({"header": {"typ": "id+jwt"}}), "the token is not valid"),
        (json!({"claims": {"exp": now_and(-61)}}), "the token has expired"),
        (json!({"claims": {"exp": now_and(600).to_string()}}), "the token is not valid"),
        (json!({"claims": {"exp": null}}), "the token is not valid"),
        (json!({"claims": {"nbf": now_and(600)}}), "the token is not valid yet"),
        (json!({"claims": {"iss": "https://other.example"}}), "the token is not valid"),
        (json!({"claims": {"aud": "https://other.example/mcp"}}), "the token is for another audience"),
        (json!({"claims": {"aud": null}}), "the token is for another audience"),
        (json!({"claims": {"padding": "x".repeat(17 << 10)}}), "the token is not valid"),
    ] {
        bad.push((issuer.mint(order.clone()).await, description, order));
    }
    bad.push(("opaque".to_owned(), "the token is not valid", json!(null)));
    for way in WAYS {
        let mut talk = Talk::open(&server, way, Some(&good)).await;
        for (token, description, order) in &bad {
            let refused = talk.call("whoami", Some(token)).await;
            assert!(!refused.message.to_string().contains(token), "the token is repeated");
            let challenge = refused.refused(401);
            assert_eq!(challenge["error"], "invalid_token", "{way:?} {order}");
            assert_eq!(&challenge["error_description"], description, "{way:?} {order}");
            assert_eq!(challenge["resource_metadata"], METADATA, "{way:?} {order}");
        }
        assert_eq!(talk.call("whoami", Some(&good)).await.text(), "alice", "{way:?}");
    }
}

#[tokio::test]
async fn missing_scopes_are_403_with_all_required_scopes() {
    let (issuer, server) = start().await;
    let [none, half, all] = [
        issuer.token(json!({})).await,
        issuer.token(json!({"scp": "orders.read"})).await,
        issuer.token(json!({"scope": "orders.write openid orders.read"})).await,
    ];
    let [app, other_app] = [
        issuer
            .token(json!({"sub": "app", "client_id": "app", "roles": ["Report.All", "orders.read", "orders.write"]}))
            .await,
        issuer.token(json!({"sub": "app", "client_id": "app", "roles": ["Other"]})).await,
    ];
    for way in WAYS {
        let mut talk = Talk::open(&server, way, Some(&none)).await;
        for token in [&none, &half] {
            let challenge = talk.call("write", Some(token)).await.refused(403);
            assert_eq!(challenge["error"], "insufficient_scope", "{way:?}");
            assert_eq!(challenge["scope"], "orders.read orders.write", "{way:?}");
            assert_eq!(challenge["resource_metadata"], METADATA, "{way:?}");
        }
        assert_eq!(talk.call("write", Some(&all)).await.text(), "alice", "{way:?}");
        // An application has no scopes, even if its roles have their names. It may use entries with
        // its roles.
        let mut talk = Talk::open(&server, way, Some(&app)).await;
        talk.call("write", Some(&app)).await.refused(403);
        assert_eq!(talk.call("report", Some(&app)).await.text(), "app", "{way:?}");
        talk.call("report", Some(&other_app)).await.refused(403);
    }
}

#[tokio::test]
async fn a_token_is_read_only_from_the_authorization_header() {
    let (issuer, server) = start().await;
    let alice = issuer.token(json!({})).await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, None).await;
        talk.query = format!("access_token={alice}");
        talk.call("whoami", None).await.refused(401);
        talk.query.clear();
        talk.headers = vec![("authorization", "Basic YTpi")];
        assert!(!talk.call("whoami", None).await.refused(401).contains_key("error"), "{way:?}");
        for broken in ["Bearer", "Bearer a b", "Bearer \"a\""] {
            talk.headers = vec![("authorization", broken)];
            // A malformed header is rejected even if no token is needed.
            for tool in ["whoami", "time"] {
                assert_eq!(talk.call(tool, None).await.status, 400, "{way:?} {broken}");
            }
        }
        talk.headers = vec![("authorization", "Bearer a")];
        assert_eq!(talk.call("whoami", Some(&alice)).await.status, 400, "{way:?}: two headers");
    }
}

#[tokio::test]
async fn the_metadata_names_the_issuer() {
    let (issuer, server) = start().await;
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let response = within(server.request(Method::GET, path, None).send()).await.unwrap();
        assert_eq!(response.status(), 200);
        let metadata: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        assert_eq!(metadata["resource"], AUDIENCE);
        assert_eq!(metadata["authorization_servers"], json!([issuer.url]));
        assert_eq!(metadata["bearer_methods_supported"], json!(["header"]));
    }
}

/// F28, for each revision with new keys.
#[tokio::test]
async fn keys_rotate() {
    for way in WAYS {
        let issuer = TestIssuer::start().await;
        let refresh = Duration::from_millis(300);
        let steady = TestServer::start(mixed(), &tokens(&issuer)).await;
        let restless =
            TestServer::start(mixed(), &limited(&issuer, OAuthLimits { refresh, ..OAuthLimits::default() }))
                .await;
        let old = issuer.token(json!({})).await;
        let mut talk = Talk::open(&steady, way, Some(&old)).await;
        assert_eq!(talk.call("whoami", Some(&old)).await.text(), "alice");
        assert_eq!(issuer.fetches().await, 1);
        issuer.control(json!({"add": [{"kid": "rsa-2"}]})).await;
        let new = issuer.mint(json!({"key": "rsa-2"})).await;
        assert_eq!(talk.call("whoami", Some(&new)).await.text(), "alice", "{way:?}");
        assert_eq!(talk.call("whoami", Some(&old)).await.text(), "alice", "{way:?}");
        assert_eq!(issuer.fetches().await, 2, "{way:?}");

        let mut talk = Talk::open(&restless, way, Some(&old)).await;
        assert_eq!(talk.call("whoami", Some(&old)).await.text(), "alice", "{way:?}");
        issuer.control(json!({"remove": ["rsa-1"]})).await;
        tokio::time::sleep(refresh * 2).await;
        let challenge = talk.call("whoami", Some(&old)).await.refused(401);
        assert_eq!(challenge["error"], "invalid_token", "{way:?}");
        let mut talk = Talk::open(&restless, way, Some(&new)).await;
        assert_eq!(talk.call("whoami", Some(&new)).await.text(), "alice", "{way:?}");
    }
}

/// Fault F29: the issuer is down.
#[tokio::test]
async fn known_keys_work_while_the_issuer_is_down() {
    let mut issuer = TestIssuer::start().await;
    let server = TestServer::start(mixed(), &tokens(&issuer)).await;
    let cold = TestServer::start(mixed(), &tokens(&issuer)).await;
    let [alice, bob] = [issuer.token(json!({})).await, issuer.token(json!({"sub": "bob"})).await];
    let unknown = issuer.mint(json!({"header": {"kid": "unknown"}})).await;
    assert_eq!(
        Talk::open(&server, Way::Alone, None).await.call("whoami", Some(&alice)).await.text(),
        "alice"
    );
    issuer.stop().await;
    for way in WAYS {
        let mut talk = Talk::open(&server, way, Some(&alice)).await;
        assert_eq!(talk.call("whoami", Some(&alice)).await.text(), "alice", "{way:?}");
        let challenge = talk.call("whoami", Some(&unknown)).await.refused(401);
        assert_eq!(challenge["error"], "invalid_token", "{way:?}");
        // A new token, signed by a known key.
        let mut talk = Talk::open(&server, way, Some(&bob)).await;
        assert_eq!(talk.call("whoami", Some(&bob)).await.text(), "bob", "{way:?}");
        // Without known keys the token cannot be verified. Anonymous entries do not need the issuer.
        let mut talk = Talk::open(&cold, way, None).await;
        let refused = talk.call("whoami", Some(&alice)).await;
        assert_eq!((refused.status, refused.headers.contains_key("retry-after")), (503, true), "{way:?}");
        assert_eq!(talk.call("time", None).await.text(), "noon", "{way:?}");
    }
}

/// F30 over HTTP. `keys.rs` has more cases.
#[tokio::test]
async fn made_up_key_ids_do_not_affect_other_callers() {
    let (issuer, server) = start().await;
    let alice = issuer.token(json!({})).await;
    let (_, rest) = alice.split_once('.').unwrap();
    for way in WAYS {
        let mut talk = Talk::open(&server, way, Some(&alice)).await;
        for number in 0..100 {
            let header = json!({"alg": "RS256", "kid": format!("{way:?} {number}")}).to_string();
            let token = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header));
            talk.call("whoami", Some(&token)).await.refused(401);
        }
        assert_eq!(talk.call("whoami", Some(&alice)).await.text(), "alice", "{way:?}");
    }
    let fetches = issuer.fetches().await;
    assert!(fetches <= 2, "{fetches} fetches");
}

#[tokio::test]
async fn a_session_belongs_to_its_caller() {
    let (issuer, server) = start().await;
    let [alice, bob] = [issuer.token(json!({})).await, issuer.token(json!({"sub": "bob"})).await];
    // Another token of the same subject is the same caller.
    let renewed = issuer.token(json!({"exp": now_and(1200), "scope": "orders.read"})).await;
    let expired = issuer.token(json!({"exp": now_and(-61)})).await;
    for way in WAYS.into_iter().filter(|way| *way != Way::Alone) {
        let mut talk = Talk::open(&server, way, Some(&alice)).await;
        for (tool, stranger) in [("whoami", Some(&*bob)), ("time", Some(&*bob)), ("time", None)] {
            let refused = talk.call(tool, stranger).await;
            assert_eq!((refused.status, &refused.message["error"]["code"]), (404, &json!(-32001)), "{way:?}");
        }
        talk.call("time", Some(&expired)).await.refused(401);
        assert_eq!(talk.call("whoami", Some(&renewed)).await.text(), "alice", "{way:?}");
        let Way::Session(revision) = way else { continue };
        let session = talk.session.clone().unwrap();
        let named = |method: Method, bearer: Option<&str>| {
            let request = server.request(method, "/mcp", bearer);
            request.header("mcp-session-id", &session).header("mcp-protocol-version", revision)
        };
        for method in [Method::GET, Method::DELETE] {
            for (bearer, status) in [(Some(&*bob), 404), (None, 404), (Some(&*expired), 401)] {
                let answer = within(named(method.clone(), bearer).send()).await.unwrap();
                assert_eq!(answer.status(), status, "{revision} {method}");
            }
        }
        let mine = within(named(Method::GET, Some(&alice)).send()).await.unwrap();
        assert_eq!(mine.status(), 200, "{revision}");
        drop(mine);
        let ended = within(named(Method::DELETE, Some(&alice)).send()).await.unwrap();
        assert_eq!(ended.status(), 204, "{revision}");
    }
}

#[tokio::test]
async fn only_its_caller_can_resume_a_stream() {
    let (issuer, server) = start().await;
    let [alice, bob] = [issuer.token(json!({})).await, issuer.token(json!({"sub": "bob"})).await];
    for way in WAYS {
        let Way::Session(revision) = way else { continue };
        let talk = Talk::open(&server, way, Some(&alice)).await;
        let session = talk.session.clone().unwrap();
        let named = |method: Method, bearer: Option<&str>| {
            let request = server.request(method, "/mcp", bearer);
            request.header("mcp-session-id", &session).header("mcp-protocol-version", revision)
        };
        let call = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call",
            "params": {"name": "tell", "_meta": {"progressToken": 1}}});
        let post = named(Method::POST, Some(&alice)).header("content-type", "application/json");
        let mut events = Events::of(within(post.body(call.to_string()).send()).await.unwrap());
        let mut seen = Vec::new();
        while let Some((id, data)) = events.next_with_id().await {
            seen.push((id.unwrap(), data));
        }
        let last = seen.last().unwrap();
        assert!(last.1.contains("told"), "{seen:?}");
        // The event id has the number of the stream and the number before the first message.
        let (stream, _) = last.0.split_once("::").unwrap();
        let from = format!("{stream}::0");
        for stranger in [Some(&*bob), None] {
            let answer = named(Method::GET, stranger).header("last-event-id", &from).send();
            assert_eq!(within(answer).await.unwrap().status(), 404, "{revision}");
        }
        let mine = named(Method::GET, Some(&alice)).header("last-event-id", &from).send();
        let mut events = Events::of(within(mine).await.unwrap());
        let mut found = false;
        while let Some(data) = events.next().await {
            found |= data.contains("told");
        }
        assert!(found, "{revision}");
    }
}

#[tokio::test]
async fn a_task_belongs_to_its_caller() {
    let (issuer, server) = start().await;
    let [alice, bob] = [issuer.token(json!({})).await, issuer.token(json!({"sub": "bob"})).await];
    let mut talk = Talk::open(&server, Way::Alone, Some(&alice)).await;
    let made = talk.call("job", Some(&alice)).await.message["result"].clone();
    assert_eq!(made["resultType"], "task", "{made}");
    let task = json!({"taskId": made["taskId"], "inputResponses": {}});
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for stranger in [Some(&*bob), None] {
            let refused = talk.ask(method, task.clone(), stranger).await;
            assert_eq!(refused.message["error"]["code"], -32602, "{method}: {refused:?}");
        }
    }
    let found = talk.ask("tasks/get", task, Some(&alice)).await;
    assert_eq!(found.message["result"]["status"], "working");
}

/// F31: the sessions and streams of a caller end when the key that signed its token is revoked.
#[tokio::test]
async fn revoking_a_key_ends_sessions_and_streams() {
    for way in WAYS.into_iter().filter(|way| *way != Way::Alone) {
        let issuer = TestIssuer::start().await;
        let limits = OAuthLimits { refresh: Duration::from_millis(300), ..OAuthLimits::default() };
        let server = TestServer::start(mixed(), &limited(&issuer, limits)).await;
        let alice = issuer.token(json!({})).await;
        let bob = issuer.mint(json!({"key": "ec-1", "claims": {"sub": "bob"}})).await;
        let [mut hers, mut his] =
            [open_stream(&server, way, &alice).await, open_stream(&server, way, &bob).await];
        issuer.control(json!({"remove": ["rsa-1"]})).await;
        // No client sends a request.
        within(async { while hers.0.next().await.is_some() {} }).await;
        assert_eq!(his.1.call("whoami", Some(&bob)).await.text(), "bob", "{way:?}");
    }
}

/// Opens a stream that stays open, and returns it with its conversation.
async fn open_stream<'a>(server: &'a TestServer, way: Way, token: &str) -> (Events, Talk<'a>) {
    let mut talk = Talk::open(server, way, Some(token)).await;
    match (way, &talk.session) {
        (Way::Session(revision), Some(session)) => {
            let request = server.request(Method::GET, "/mcp", Some(token));
            let request = request.header("mcp-session-id", session).header("mcp-protocol-version", revision);
            (Events::of(within(request.send()).await.unwrap()), talk)
        }
        _ => {
            let (events, _) = talk.pipe.take().unwrap();
            (events, Talk::open(server, way, Some(token)).await)
        }
    }
}
