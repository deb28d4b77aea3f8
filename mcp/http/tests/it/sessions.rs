//! Sessions: ids, owners, limits, expiry, and the modes without sessions.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindpost_mcp_http::{SessionLimits, SessionMode, Settings};
use bindpost_mcp_server::ServerLimits;
use serde_json::json;

use crate::client::{Ask, Event, Events, LATEST, Session, TestServer, attentive, trusting};

async fn server() -> TestServer {
    TestServer::start(Settings::default()).await
}

fn from(caller: &'static str) -> impl Fn(Ask) -> Ask {
    move |ask| ask.header("x-caller", caller)
}

const UNKNOWN: &str = "AAAAAAAAAAAAAAAAAAAAAA";

// Ids.

#[tokio::test]
async fn ids_are_visible_ascii_and_cannot_be_guessed() {
    let server = server().await;
    let mut client = server.connect().await;
    let mut ids = HashSet::new();
    for _ in 0..100 {
        let reply = client.send(&Ask::initialize(LATEST)).await;
        let id = reply.header("mcp-session-id").unwrap().to_owned();
        assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
        // Base64 has six bits per character, so 128 bits need 22 characters.
        assert!(id.len() >= 22, "{id}");
        assert!(ids.insert(id));
    }
    // No position has the same character in all ids, as it would in a counter or a timestamp.
    for position in 0..22 {
        let letters: HashSet<u8> = ids.iter().map(|id| id.as_bytes()[position]).collect();
        assert!(letters.len() >= 4, "position {position} has {letters:?}");
    }
}

#[tokio::test]
async fn only_the_response_to_initialize_has_a_session_id() {
    let server = server().await;
    let session = server.session(LATEST).await;
    assert_eq!(server.send(&session.ping()).await.header("mcp-session-id"), None);
}

#[tokio::test]
async fn a_missing_id_is_400() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for ask in [
        session.ping(),
        session.notify("notifications/initialized", json!({})),
        session.post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        session.get(),
        session.delete(),
    ] {
        server.send(&ask.without("mcp-session-id")).await.refused(400, -32600);
    }
}

#[tokio::test]
async fn an_unknown_id_is_404_for_every_request() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let other_spelling = session.id.to_ascii_lowercase();
    let longer = format!("{}A", session.id);
    for id in [
        UNKNOWN,
        "nonsense",
        "x",
        "",
        "!!!!",
        &"A".repeat(10_000),
        &session.id[..21],
        &longer,
        &other_spelling,
    ] {
        let unknown = Session { id: id.to_owned(), revision: LATEST };
        for ask in [
            unknown.ping(),
            unknown.notify("notifications/initialized", json!({})),
            unknown.post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            unknown.get(),
            unknown.resume("1::1"),
            unknown.delete(),
        ] {
            server.send(&ask).await.refused(404, -32001);
        }
    }
    server.send(&session.ping()).await.result();
}

#[tokio::test]
async fn a_deleted_session_is_404() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let other = server.session(LATEST).await;
    let reply = server.send(&session.delete()).await;
    assert_eq!((reply.status, reply.text().as_str()), (204, ""));
    for ask in [session.ping(), session.get(), session.delete()] {
        server.send(&ask).await.refused(404, -32001);
    }
    server.send(&other.ping()).await.result();
}

#[tokio::test]
async fn deleting_a_session_cancels_its_calls() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let call = server.send_in_background(session.call(1, "wait", json!({})));
    server.watch.has_begun(1).await;
    assert_eq!(server.send(&session.delete()).await.status, 204);
    server.watch.was_cut().await;
    let reply = call.await.unwrap();
    assert!(reply.body.is_empty(), "{}", reply.text());
}

#[tokio::test]
async fn initialize_with_a_stale_id_opens_a_new_session() {
    let server = server().await;
    let session = server.session(LATEST).await;
    assert_eq!(server.send(&session.delete()).await.status, 204);
    for id in [session.id.as_str(), UNKNOWN, "nonsense"] {
        let reply = server.send(&Ask::initialize(LATEST).header("mcp-session-id", id)).await;
        assert_eq!(reply.result()["protocolVersion"], LATEST);
        let new = reply.header("mcp-session-id").unwrap();
        assert_ne!(new, id);
        let new = Session { id: new.to_owned(), revision: LATEST };
        server.send(&new.ping()).await.result();
    }
}

#[tokio::test]
async fn the_order_of_the_first_messages_does_not_matter() {
    let server = server().await;
    let reply = server.send(&Ask::initialize(LATEST)).await;
    let session = Session { id: reply.header("mcp-session-id").unwrap().to_owned(), revision: LATEST };
    server.send(&session.ping()).await.result();
    server.send(&session.request(1, "tools/list", json!({}))).await.result();
    server.send(&session.notify("notifications/initialized", json!({}))).await.accepted();
}

#[tokio::test]
async fn notifications_and_responses_get_202_without_a_body() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for body in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "no such"}}),
        json!({"jsonrpc": "2.0", "method": "no/such"}),
        json!({"jsonrpc": "2.0", "id": 99, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "no"}}),
    ] {
        server.send(&session.post(body.to_string())).await.accepted();
    }
}

// Callers.

#[tokio::test]
async fn a_session_of_another_caller_is_404() {
    let server = TestServer::start(trusting(Settings::default())).await;
    let session = server.session_of(LATEST, from("alice")).await;
    for stranger in [Some("bob"), Some("Alice"), None] {
        let as_stranger =
            |ask: Ask| stranger.map_or(ask.clone(), |stranger| ask.header("x-caller", stranger));
        for ask in [
            session.ping(),
            session.notify("notifications/cancelled", json!({"requestId": 1})),
            session.post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            session.get(),
            session.resume("1::0"),
            session.delete(),
        ] {
            server.send(&as_stranger(ask)).await.refused(404, -32001);
        }
    }
    server.send(&from("alice")(session.ping())).await.result();
}

#[tokio::test]
async fn equal_request_ids_of_two_sessions_are_independent() {
    let server = server().await;
    let [one, two] = [server.session(LATEST).await, server.session(LATEST).await];
    let first = server.send_in_background(one.call(1, "wait", json!({})));
    let second = server.send_in_background(two.call(1, "wait", json!({})));
    server.watch.has_begun(2).await;
    server.send(&one.notify("notifications/cancelled", json!({"requestId": 1}))).await.accepted();
    server.watch.was_cut().await;
    assert!(first.await.unwrap().body.is_empty());
    server.watch.go_on.add_permits(1);
    assert_eq!(second.await.unwrap().tool_text(), "waited");
}

// Limits.

fn capped(limits: SessionLimits) -> Settings {
    trusting(Settings { session_limits: limits, ..Settings::default() })
}

/// A session with an open stream. It is in use and cannot be evicted.
struct InUse {
    session: Session,
    change: fn(Ask) -> Ask,
    _stream: Events,
}

impl InUse {
    async fn open(server: &TestServer, change: fn(Ask) -> Ask) -> InUse {
        let session = server.session_of(LATEST, change).await;
        let stream = server.open(&change(session.get())).await;
        InUse { session, change, _stream: stream }
    }

    fn ping(&self) -> Ask {
        (self.change)(self.session.ping())
    }
}

fn anonymous(ask: Ask) -> Ask {
    ask
}

fn alice(ask: Ask) -> Ask {
    ask.header("x-caller", "alice")
}

fn bob(ask: Ask) -> Ask {
    ask.header("x-caller", "bob")
}

/// Checks that one more session is rejected and that the existing ones still work.
async fn is_full(server: &TestServer, open: Ask, kept: &[&InUse]) {
    let reply = server.send(&open).await;
    assert_eq!(reply.refused(503, 503)["id"], "open");
    assert_eq!(reply.header("retry-after"), Some("5"));
    assert_eq!(reply.header("mcp-session-id"), None);
    for session in kept {
        server.send(&session.ping()).await.result();
    }
}

#[tokio::test]
async fn the_total_number_of_sessions_in_use_is_limited() {
    let limits = SessionLimits { total: 3, ..SessionLimits::default() };
    let server = TestServer::start(capped(limits)).await;
    let one = InUse::open(&server, alice).await;
    let two = InUse::open(&server, bob).await;
    let three = InUse::open(&server, anonymous).await;
    is_full(&server, from("dave")(Ask::initialize(LATEST)), &[&one, &two, &three]).await;
    is_full(&server, Ask::initialize(LATEST), &[&one, &two, &three]).await;
    // Requests that need no session are served.
    server.send(&from("erin")(Ask::modern_call("echo", json!({})))).await.result();
    // A deleted session makes room for another.
    assert_eq!(server.send(&bob(two.session.delete())).await.status, 204);
    server.session_of(LATEST, from("dave")).await;
}

#[tokio::test]
async fn the_number_of_sessions_in_use_of_one_caller_is_limited() {
    let limits = SessionLimits { per_caller: 2, ..SessionLimits::default() };
    let server = TestServer::start(capped(limits)).await;
    let [one, two] = [InUse::open(&server, alice).await, InUse::open(&server, alice).await];
    is_full(&server, alice(Ask::initialize(LATEST)), &[&one, &two]).await;
    server.session_of(LATEST, bob).await;
    for _ in 0..5 {
        server.session(LATEST).await;
    }
}

#[tokio::test]
async fn the_total_number_of_anonymous_sessions_in_use_is_limited() {
    let limits = SessionLimits { anonymous: 2, ..SessionLimits::default() };
    let server = TestServer::start(capped(limits)).await;
    let [one, two] = [InUse::open(&server, anonymous).await, InUse::open(&server, anonymous).await];
    is_full(&server, Ask::initialize(LATEST), &[&one, &two]).await;
    for _ in 0..5 {
        server.session_of(LATEST, alice).await;
    }
}

#[tokio::test]
async fn a_full_store_evicts_the_session_that_was_idle_longest() {
    let limits = SessionLimits { anonymous: 3, ..SessionLimits::default() };
    let server = TestServer::start(capped(limits)).await;
    let [first, second, third] =
        [server.session(LATEST).await, server.session(LATEST).await, server.session(LATEST).await];
    let known = server.session_of(LATEST, alice).await;
    server.send(&first.ping()).await.result();
    let fourth = server.session(LATEST).await;
    server.send(&second.ping()).await.refused(404, -32001);
    for session in [first, third, fourth] {
        server.send(&session.ping()).await.result();
    }
    // The limit of one kind of caller does not affect the others.
    server.send(&alice(known.ping())).await.result();
}

#[tokio::test]
async fn a_caller_at_its_limit_evicts_its_own_session() {
    let limits = SessionLimits { per_caller: 1, ..SessionLimits::default() };
    let server = TestServer::start(capped(limits)).await;
    let others = server.session_of(LATEST, bob).await;
    let first = server.session_of(LATEST, alice).await;
    let second = server.session_of(LATEST, alice).await;
    server.send(&alice(first.ping())).await.refused(404, -32001);
    server.send(&alice(second.ping())).await.result();
    server.send(&bob(others.ping())).await.result();
}

#[tokio::test]
async fn a_session_that_only_sent_initialize_is_evicted_first() {
    let limits = SessionLimits { anonymous: 2, ..SessionLimits::default() };
    let server = TestServer::start(capped(limits)).await;
    let old = server.session(LATEST).await;
    // This session is newer, but no message followed `initialize`.
    let opened = server.send(&Ask::initialize(LATEST)).await;
    let unused = Session { id: opened.header("mcp-session-id").unwrap().to_owned(), revision: LATEST };
    server.session(LATEST).await;
    server.send(&old.ping()).await.result();
    server.send(&unused.ping()).await.refused(404, -32001);
}

#[tokio::test]
async fn a_session_has_time_for_its_second_message() {
    let limits = SessionLimits { anonymous: 8, ..SessionLimits::default() };
    let server = TestServer::start(capped(limits)).await;
    let oldest = server.session(LATEST).await;
    for _ in 0..6 {
        server.session(LATEST).await;
    }
    // The second client opens its session before the first one sends its second message.
    let opened = server.send(&Ask::initialize(LATEST)).await;
    let first = Session { id: opened.header("mcp-session-id").unwrap().to_owned(), revision: LATEST };
    server.session(LATEST).await;
    server.send(&first.ping()).await.result();
    server.send(&oldest.ping()).await.refused(404, -32001);
}

#[tokio::test]
async fn a_session_with_a_running_call_is_not_evicted() {
    let limits = SessionLimits { per_caller: 1, ..SessionLimits::default() };
    let server = TestServer::start(capped(limits)).await;
    let session = server.session_of(LATEST, alice).await;
    let call = server.send_in_background(alice(session.call(1, "wait", json!({}))));
    server.watch.has_begun(1).await;
    assert_eq!(server.send(&alice(Ask::initialize(LATEST))).await.status, 503);
    server.watch.go_on.add_permits(1);
    assert_eq!(call.await.unwrap().tool_text(), "waited");
    server.session_of(LATEST, alice).await;
}

#[tokio::test]
async fn opening_many_sessions_does_not_lock_out_other_clients() {
    let limits =
        SessionLimits { anonymous: 50, flood_delay: Duration::from_millis(1), ..SessionLimits::default() };
    let server = TestServer::start(capped(limits)).await;
    let good = server.session(LATEST).await;
    let mut attacker = server.connect().await;
    for number in 0..1_000 {
        let opened = attacker.send(&Ask::initialize(LATEST)).await;
        assert_eq!(opened.status, 200);
        if number % 2 == 0 {
            // Half of the sessions send a second message.
            let id = opened.header("mcp-session-id").unwrap().to_owned();
            attacker.send(&Session { id, revision: LATEST }.ping()).await.result();
        }
        if number % 20 == 0 {
            server.send(&good.ping()).await.result();
        }
        if number % 100 == 0 {
            let late = server.session(LATEST).await;
            server.send(&late.ping()).await.result();
        }
    }
    server.send(&good.ping()).await.result();
}

#[tokio::test]
async fn opening_sessions_too_fast_delays_the_responses() {
    let delay = Duration::from_millis(300);
    let limits = SessionLimits { anonymous: 4, flood_delay: delay, ..SessionLimits::default() };
    let server = TestServer::start(capped(limits)).await;
    let mut attacker = server.connect().await;
    for _ in 0..4 {
        assert_eq!(attacker.send(&Ask::initialize(LATEST)).await.status, 200);
    }
    let begin = Instant::now();
    let opened = attacker.send(&Ask::initialize(LATEST)).await;
    assert!(begin.elapsed() >= delay);
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    server.send(&Session { id, revision: LATEST }.ping()).await.result();
}

#[tokio::test]
async fn sixteen_calls_of_one_session_run_concurrently() {
    let server = server().await;
    let [session, other] = [server.session(LATEST).await, server.session(LATEST).await];
    let calls: Vec<_> =
        (0..16).map(|id| server.send_in_background(session.call(id, "wait", json!({})))).collect();
    server.watch.has_begun(16).await;
    let reply = server.send(&session.call(99, "wait", json!({}))).await;
    assert_eq!(reply.refused(429, 429)["id"], 99);
    assert_eq!(reply.header("retry-after"), Some("1"));
    // Other requests of the session and other sessions are not affected.
    server.send(&session.ping()).await.result();
    server.send(&session.request(1, "tools/list", json!({}))).await.result();
    assert_eq!(server.send(&other.call(1, "echo", json!({}))).await.tool_text(), "{}");
    server.watch.go_on.add_permits(16);
    for call in calls {
        assert_eq!(call.await.unwrap().tool_text(), "waited");
    }
    server.watch.go_on.add_permits(1);
    assert_eq!(server.send(&session.call(99, "wait", json!({}))).await.tool_text(), "waited");
}

#[tokio::test]
async fn a_batch_counts_each_of_its_calls() {
    let server = server().await;
    let session = server.session("2025-03-26").await;
    let batch: Vec<_> = (0..20)
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "wait"}}))
        .collect();
    let answers = server.send_in_background(session.post(json!(batch).to_string()));
    server.watch.has_begun(16).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.watch.begun.available_permits(), 0, "more than 16 calls of one session run");
    server.watch.go_on.add_permits(20);
    let answers = answers.await.unwrap().json();
    let busy = |answer: &&serde_json::Value| answer["error"]["code"] == 429;
    assert_eq!(answers.as_array().unwrap().iter().filter(busy).count(), 4, "{answers}");
}

#[tokio::test]
async fn calls_over_the_servers_limit_wait_and_then_are_429() {
    let limits = ServerLimits { running_calls: 1, waiting_calls: 1, ..ServerLimits::default() };
    let server = TestServer::with_limits(Settings::default(), limits).await;
    let first = server.send_in_background(Ask::modern_call("wait", json!({})));
    server.watch.has_begun(1).await;
    let second = server.send_in_background(Ask::modern_call("wait", json!({})));
    // The second call is queued once a third one is rejected.
    let reply = loop {
        let third = server.send_in_background(Ask::modern_call("wait", json!({})));
        tokio::time::sleep(Duration::from_millis(100)).await;
        if third.is_finished() {
            break third.await.unwrap();
        }
        third.abort();
    };
    assert_eq!(reply.refused(429, 429)["id"], 1);
    assert!(reply.header("retry-after").is_some());
    assert_eq!(server.watch.begun.available_permits(), 0);
    server.send(&Ask::modern("tools/list", json!({}))).await.result();
    server.watch.go_on.add_permits(2);
    assert_eq!(first.await.unwrap().tool_text(), "waited");
    assert_eq!(second.await.unwrap().tool_text(), "waited");
}

// Expiry. The session clock has a resolution of one second.

const SECOND: Duration = Duration::from_secs(1);

fn expiring(change: impl FnOnce(&mut SessionLimits)) -> Settings {
    let mut settings = attentive();
    change(&mut settings.session_limits);
    settings
}

#[tokio::test]
async fn an_idle_session_expires() {
    let server = TestServer::start(expiring(|limits| limits.idle = 2 * SECOND)).await;
    let [used, idle] = [server.session(LATEST).await, server.session(LATEST).await];
    for _ in 0..8 {
        tokio::time::sleep(SECOND / 2).await;
        server.send(&used.ping()).await.result();
    }
    server.send(&idle.ping()).await.refused(404, -32001);
    tokio::time::sleep(3 * SECOND).await;
    server.send(&used.ping()).await.refused(404, -32001);
}

#[tokio::test]
async fn a_session_without_a_message_after_initialize_expires_earlier() {
    let server = TestServer::start(expiring(|limits| limits.opening = SECOND)).await;
    let reply = server.send(&Ask::initialize(LATEST)).await;
    let never_used = Session { id: reply.header("mcp-session-id").unwrap().to_owned(), revision: LATEST };
    let used = server.session(LATEST).await;
    tokio::time::sleep(5 * SECOND / 2).await;
    server.send(&never_used.ping()).await.refused(404, -32001);
    server.send(&used.ping()).await.result();
}

#[tokio::test]
async fn every_session_expires_after_its_maximum_lifetime() {
    let server = TestServer::start(expiring(|limits| limits.absolute = 2 * SECOND)).await;
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.get()).await;
    for _ in 0..3 {
        tokio::time::sleep(SECOND / 4).await;
        server.send(&session.ping()).await.result();
    }
    tokio::time::sleep(5 * SECOND / 2).await;
    server.send(&session.ping()).await.refused(404, -32001);
    // Its stream has ended too.
    assert_eq!(stream.rest().await, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn a_session_with_a_running_call_never_expires() {
    let settings = expiring(|limits| {
        limits.idle = SECOND;
        limits.opening = SECOND;
        limits.absolute = SECOND;
    });
    let server = TestServer::start(settings).await;
    let session = server.session(LATEST).await;
    let call = server.send_in_background(session.call(1, "wait", json!({})));
    server.watch.has_begun(1).await;
    tokio::time::sleep(7 * SECOND / 4).await;
    server.send(&session.ping()).await.result();
    tokio::time::sleep(7 * SECOND / 4).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(call.await.unwrap().status, 200);
    assert_eq!(server.watch.cut.available_permits(), 0);
}

#[tokio::test]
async fn a_session_with_a_connected_stream_is_not_idle() {
    let server = TestServer::start(expiring(|limits| limits.idle = SECOND)).await;
    let session = server.session(LATEST).await;
    let _stream = server.open(&session.get()).await;
    tokio::time::sleep(3 * SECOND).await;
    server.send(&session.ping()).await.result();
}

#[tokio::test]
async fn the_idle_time_begins_when_the_last_stream_is_disconnected() {
    let server = TestServer::start(expiring(|limits| limits.idle = 2 * SECOND)).await;
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.get()).await;
    let Some(Event { id: Some(id), .. }) = stream.next().await else { panic!("no opening event") };
    tokio::time::sleep(3 * SECOND).await;
    // A proxy closes the connection, and the client reconnects soon after.
    drop(stream);
    tokio::time::sleep(SECOND / 2).await;
    let _stream = server.open(&session.resume(&id)).await;
}

#[tokio::test]
async fn the_idle_time_begins_when_the_last_call_ends() {
    let server = TestServer::start(expiring(|limits| limits.idle = 2 * SECOND)).await;
    let session = server.session(LATEST).await;
    let call = server.send_in_background(session.call(1, "wait", json!({})));
    server.watch.has_begun(1).await;
    tokio::time::sleep(3 * SECOND).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(call.await.unwrap().status, 200);
    tokio::time::sleep(SECOND / 2).await;
    server.send(&session.ping()).await.result();
}

// Without sessions, without streams.

fn alone(id: i64, method: &str, params: serde_json::Value) -> Ask {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    Ask::post(message.to_string()).header("mcp-protocol-version", LATEST)
}

#[tokio::test]
async fn without_sessions_no_id_is_given_and_none_is_needed() {
    let server = TestServer::start(Settings { sessions: SessionMode::Off, ..Settings::default() }).await;
    let opened = server.send(&Ask::initialize(LATEST)).await;
    assert_eq!(opened.result()["protocolVersion"], LATEST);
    assert_eq!(opened.header("mcp-session-id"), None);
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    server.send(&Ask::post(initialized)).await.accepted();
    for ask in
        [alone(1, "tools/list", json!({})), alone(1, "tools/list", json!({})).header("mcp-session-id", "x")]
    {
        assert!(server.send(&ask).await.result()["tools"].is_array());
    }
    let call = |tool| alone(1, "tools/call", json!({"name": tool}));
    assert_eq!(server.send(&call("echo")).await.tool_text(), "{}");
    // The server cannot send requests to the client.
    let refused = server.send(&call("ask_name")).await.result();
    assert_eq!(refused["isError"], true);
    for method in ["GET", "DELETE"] {
        let ask =
            Ask::new(method, "/mcp").header("accept", "text/event-stream").header("mcp-session-id", "x");
        let reply = server.send(&ask).await;
        reply.refused(405, -32600);
        assert_eq!(reply.header("allow"), Some("POST, OPTIONS"), "{method}");
    }
    server.is_well().await;
}

#[tokio::test]
async fn without_sessions_a_call_with_messages_is_streamed_without_ids() {
    let server = TestServer::start(Settings { sessions: SessionMode::Off, ..Settings::default() }).await;
    let meta = json!({"progressToken": "t"});
    let ask = alone(7, "tools/call", json!({"name": "tell_and_wait", "_meta": meta}));
    server.watch.go_on.add_permits(1);
    let mut stream = server.open(&ask).await;
    let progress = stream.event().await.unwrap();
    assert_eq!(progress.id, None);
    assert_eq!(progress.message()["method"], "notifications/progress");
    assert_eq!(stream.message().await.unwrap()["id"], 7);
    assert_eq!(stream.message().await, None);
}

#[tokio::test]
async fn sessions_can_be_optional() {
    let server = TestServer::start(Settings { sessions: SessionMode::Optional, ..Settings::default() }).await;
    assert!(server.send(&alone(1, "tools/list", json!({}))).await.result()["tools"].is_array());
    let session = server.session(LATEST).await;
    server.send(&session.ping()).await.result();
    let unknown = Session { id: UNKNOWN.to_owned(), revision: LATEST };
    server.send(&unknown.ping()).await.refused(404, -32001);
    assert_eq!(server.send(&session.delete()).await.status, 204);
}

#[tokio::test]
async fn json_only_never_streams() {
    let server = TestServer::start(Settings { json_only: true, ..Settings::default() }).await;
    let session = server.session(LATEST).await;
    let text =
        server.send(&session.call(1, "count", json!({"messages": 3, "pause_ms": 10}))).await.tool_text();
    assert_eq!(text, "said 3 things");
    for ask in [session.ping(), Ask::modern("tools/list", json!({}))] {
        server.send(&ask.with("accept", "text/event-stream")).await.result();
    }
    let wait = server.send_in_background(session.call(1, "tell_and_wait", json!({})));
    server.watch.has_begun(1).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(wait.await.unwrap().tool_text(), "waited");
    let reply = server.send(&session.get()).await;
    reply.refused(405, -32600);
    assert!(reply.header("allow").unwrap().contains("POST"));
    assert_eq!(server.send(&session.delete()).await.status, 204);
}

#[tokio::test]
async fn json_only_rejects_requests_to_the_client() {
    let server = TestServer::start(Settings { json_only: true, ..Settings::default() }).await;
    let session = server.session(LATEST).await;
    let refused = server.send(&session.call(1, "ask_name", json!({}))).await.result();
    assert_eq!(refused["isError"], true);
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("cannot be asked"), "{text}");
    // From 2026-07-28 on the request to the client is part of the result and needs no stream.
    let ask = Ask::enveloped("tools/call", json!({"name": "ask_name"}), json!({"elicitation": {}}));
    assert_eq!(server.send(&ask).await.result()["resultType"], "input_required");
}

#[tokio::test]
async fn json_only_answers_a_subscription_immediately() {
    let server = TestServer::start(Settings { json_only: true, ..Settings::default() }).await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let ask = Ask::modern("subscriptions/listen", filter);
    // A subscription without a stream would never end, so the request must get some response.
    let reply = server.send(&ask).await;
    assert!(reply.json().get("id").is_some());
}

// Many clients and sessions.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_clients_never_get_responses_of_each_other() {
    let server = Arc::new(server().await);
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..20 {
        let server = server.clone();
        clients.spawn(async move {
            let session = server.session(LATEST).await;
            let mut connection = server.connect().await;
            for id in 0..20 {
                // Every client uses the same ids and progress tokens.
                let mine = json!({"client": client, "id": id});
                let reply = connection.send(&session.call(id, "echo", mine.clone())).await;
                assert_eq!(reply.json()["id"], id);
                assert_eq!(reply.tool_text(), mine.to_string());
                let ask = Ask::modern_call("echo", mine.clone());
                assert_eq!(connection.send(&ask).await.tool_text(), mine.to_string());
                let messages = json!({"messages": client % 4, "pause_ms": 1});
                let ask = session.call(id, "count", messages).with("accept", "text/event-stream");
                let answers = server.open(&ask).await.rest().await;
                assert_eq!(answers.len(), client % 4 + 1);
                assert_eq!(answers.last().unwrap()["id"], id);
            }
            assert_eq!(connection.send(&session.delete()).await.status, 204);
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn closed_sessions_and_connections_leak_no_memory() {
    use crate::client::{ChildServer, Client};
    let settings = || (attentive(), ServerLimits::default());
    let child = ChildServer::start("sessions::closed_sessions_and_connections_leak_no_memory", settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = Client::connect(child.address).await;
        let listen = json!({"notifications": {"toolsListChanged": true}});
        let mut round = async || {
            let opened = client.send(&Ask::initialize(LATEST)).await;
            let id = opened.header("mcp-session-id").unwrap().to_owned();
            let session = Session { id, revision: LATEST };
            client.send(&session.call(1, "count", json!({"messages": 2}))).await;
            for ask in [
                session.get(),
                Ask::modern("subscriptions/listen", listen.clone()),
                Ask::new("GET", "/sse"),
                session.call(2, "tell_and_wait", json!({})),
            ] {
                Client::connect(child.address).await.open(&ask).await.next().await.unwrap();
            }
            client.send(&Ask::post("{")).await.refused(400, -32700);
            assert_eq!(client.send(&session.delete()).await.status, 204);
        };
        for _ in 0..200 {
            round().await;
        }
        let before = child.memory();
        for _ in 0..800 {
            round().await;
        }
        let each = child.memory().saturating_sub(before) / 800;
        assert!(each < 256, "each round leaks {each} bytes");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_idle_sessions_cost_at_most_1_kb_each() {
    use crate::client::{ChildServer, Client};
    const ALL: usize = 10_000;
    const FIRST: usize = 100;
    let settings = || {
        let session_limits = SessionLimits { total: ALL, anonymous: ALL, ..SessionLimits::default() };
        (Settings { session_limits, ..Settings::default() }, ServerLimits::default())
    };
    let child = ChildServer::start("sessions::ten_thousand_idle_sessions_cost_at_most_1_kb_each", settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(Client::connect(child.address).await);
        }
        // Each connection sends several requests at a time, which takes half as long.
        const AT_ONCE: usize = 25;
        let open = Ask::initialize(LATEST).bytes().repeat(AT_ONCE);
        let mut ids = Vec::new();
        let mut before = 0;
        while ids.len() < ALL {
            if ids.len() == FIRST {
                before = child.memory();
            }
            let client = &mut clients[ids.len() / AT_ONCE % 8];
            client.write(&open).await;
            let mut initialized = Vec::new();
            for _ in 0..AT_ONCE {
                let opened = client.reply(false).await;
                let id = opened.header("mcp-session-id").unwrap_or_else(|| panic!("{opened:?}")).to_owned();
                let session = Session { id: id.clone(), revision: LATEST };
                initialized.extend(session.notify("notifications/initialized", json!({})).bytes());
                ids.push(id);
            }
            client.write(&initialized).await;
            for _ in 0..AT_ONCE {
                client.reply(false).await.accepted();
            }
        }
        let opened = ids.len() - FIRST;
        let each = child.memory().saturating_sub(before) / opened;
        assert!(each <= 1024, "{each} bytes for each of {opened} sessions");

        // One more session replaces one of the first.
        clients[0].send(&Ask::initialize(LATEST)).await.result();
        let session = |id: &String| Session { id: id.clone(), revision: LATEST };
        let mut evicted = 0;
        for id in &ids[..AT_ONCE.max(FIRST)] {
            evicted += usize::from(clients[0].send(&session(id).ping()).await.status == 404);
        }
        assert_eq!(evicted, 1);
        for id in [&ids[ALL / 2], &ids[ALL - 1]] {
            clients[0].send(&session(id).ping()).await.result();
        }
    });
}
