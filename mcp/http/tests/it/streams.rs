//! Streams: when a response is a stream, the form of its events, and how it is resumed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

mod batches;
mod disconnects;
mod expiry;
mod hearing;
mod sse;

use std::time::{Duration, Instant};

use bindpost_mcp_http::{SessionLimits, Settings};
use bindpost_mcp_server::ToolEntry;
use serde_json::{Value, json};

use crate::client::{Ask, Client, Event, Events, LATEST, TestServer, attentive, text_of, trusting, within};

/// Long enough to detect an unexpected message.
const A_WHILE: Duration = Duration::from_millis(200);

async fn server() -> TestServer {
    TestServer::start(Settings::default()).await
}

/// A modern call that requests log messages of all levels.
fn telling(tool: &str, arguments: Value) -> Ask {
    let meta = json!({"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"});
    Ask::modern("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}))
}

/// Changes the list of tools, which causes one notification for each subscriber.
fn change_tools(server: &TestServer) {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let entry = ToolEntry::new(format!("extra_{number}"), async || "extra");
    server.server.catalog().add_tool(entry).unwrap();
}

fn is_tools_changed(message: &Value) -> bool {
    message["method"] == "notifications/tools/list_changed"
}

/// Checks the headers that every stream has.
fn check_head(stream: &Events) {
    assert_eq!(stream.head.status, 200);
    assert_eq!(stream.head.header("content-type"), Some("text/event-stream"));
    assert_eq!(stream.head.header("cache-control"), Some("no-cache"));
    assert_eq!(stream.head.header("x-accel-buffering"), Some("no"));
    assert_eq!(stream.head.header("content-encoding"), None);
}

fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    let id = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn initialize(revision: &str) -> Value {
    let params = json!({"protocolVersion": revision, "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"}});
    request(0, "initialize", params)
}

// The form of a response.

#[tokio::test]
async fn a_call_without_messages_is_answered_with_json() {
    let server = server().await;
    let session = server.session(LATEST).await;
    assert_eq!(server.send(&session.call(1, "echo", json!({}))).await.tool_text(), "{}");
    let wait = server.send_in_background(session.call(1, "wait", json!({})));
    server.watch.has_begun(1).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(wait.await.unwrap().tool_text(), "waited");
}

#[tokio::test]
async fn a_call_with_messages_is_answered_with_a_stream() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let ask = session.call(5, "count", json!({"messages": 3})).header("accept-encoding", "gzip, deflate");
    let mut stream = server.open(&ask).await;
    check_head(&stream);
    let opening = stream.next().await.unwrap();
    assert_eq!((opening.retry.as_deref(), opening.data.as_deref()), (Some("3000"), Some("")));
    let (number, zero) = opening.place();
    assert_eq!(zero, 0);
    for said in 1..=3 {
        let event = stream.next().await.unwrap();
        assert_eq!(event.place(), (number, said));
        assert_eq!((event.kind.as_deref(), event.retry.as_deref()), (Some("message"), None));
        assert_eq!(event.message()["method"], "notifications/message");
        assert_eq!(event.message()["params"]["data"], said);
    }
    let last = stream.next().await.unwrap();
    assert_eq!(last.place(), (number, 4));
    assert_eq!(last.message()["id"], 5);
    assert_eq!(text_of(&last.message()["result"]), "said 3 things");
    assert_eq!(stream.next().await, None);
    // The connection can be reused.
    stream.into_client().send(&session.ping()).await.result();
}

#[tokio::test]
async fn every_stream_of_a_session_has_its_own_number() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut numbers = Vec::new();
    for ask in [session.call(1, "count", json!({})), session.get(), session.call(2, "count", json!({}))] {
        numbers.push(server.open(&ask).await.next().await.unwrap().place().0);
    }
    numbers.dedup();
    assert_eq!(numbers.len(), 3, "{numbers:?}");
}

#[tokio::test]
async fn only_2025_11_25_opens_a_stream_with_an_empty_event() {
    let server = server().await;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let session = server.session(revision).await;
        let mut stream = server.open(&session.call(1, "count", json!({"messages": 1}))).await;
        let first = stream.next().await.unwrap();
        assert_eq!(first.message()["method"], "notifications/message", "{revision}");
        assert_eq!(first.retry, None);
        let mut stream = server.open(&session.get()).await;
        stream.stays_silent(A_WHILE).await;
    }
    let session = server.session(LATEST).await;
    let opening = server.open(&session.get()).await.next().await.unwrap();
    assert_eq!((opening.data.as_deref(), opening.retry.as_deref()), (Some(""), Some("3000")));
}

#[tokio::test]
async fn the_retry_time_is_what_the_settings_say() {
    let server =
        TestServer::start(Settings { retry: Duration::from_millis(250), ..Settings::default() }).await;
    let session = server.session(LATEST).await;
    let opening = server.open(&session.get()).await.next().await.unwrap();
    assert_eq!(opening.retry.as_deref(), Some("250"));
}

#[tokio::test]
async fn a_modern_stream_has_no_ids_and_ends_with_the_answer() {
    let server = server().await;
    let mut stream = server.open(&telling("count", json!({"messages": 2}))).await;
    check_head(&stream);
    assert_eq!(stream.head.header("mcp-session-id"), None);
    for said in 1..=2 {
        let event = stream.next().await.unwrap();
        assert_eq!((event.id.as_deref(), event.retry.as_deref()), (None, None));
        assert_eq!(event.message()["params"]["data"], said);
    }
    let last = stream.next().await.unwrap().message();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(1), &json!("complete")));
    assert_eq!(stream.next().await, None);
    // Without a log level no message is sent, and the response is JSON.
    server.send(&Ask::modern_call("count", json!({"messages": 2}))).await.result();
}

#[tokio::test]
async fn a_client_that_names_streams_first_gets_one_that_can_be_resumed() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let ask = session.call(1, "echo", json!({})).with("accept", "text/event-stream, application/json");
    let mut stream = server.open(&ask).await;
    let opening = stream.next().await.unwrap();
    let answer = stream.next().await.unwrap();
    assert_eq!(answer.message()["id"], 1);
    assert_eq!(stream.next().await, None);
    let again = server.open(&session.resume(opening.id.as_ref().unwrap())).await.rest().await;
    assert_eq!(again, [answer.message()]);
    server.send(&session.resume(answer.id.as_ref().unwrap())).await.refused(405, -32600);
}

#[tokio::test]
async fn a_slow_call_is_answered_with_a_stream() {
    let settings = Settings { stream_after: Duration::from_millis(100), ..Settings::default() };
    let server = TestServer::start(settings).await;
    let session = server.session(LATEST).await;
    for ask in [session.call(1, "wait", json!({})), Ask::modern_call("wait", json!({}))] {
        let mut stream = server.open(&ask).await;
        check_head(&stream);
        server.watch.has_begun(1).await;
        server.watch.go_on.add_permits(1);
        let answer = stream.message().await.unwrap();
        assert_eq!(text_of(&answer["result"]), "waited");
        assert_eq!(stream.message().await, None);
    }
    // A client that accepts only JSON waits for JSON.
    let call = session.call(1, "wait", json!({})).with("accept", "application/json");
    let call = server.send_in_background(call);
    server.watch.has_begun(1).await;
    tokio::time::sleep(A_WHILE).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(call.await.unwrap().tool_text(), "waited");
}

#[tokio::test]
async fn every_idle_stream_sends_keep_alive_comments() {
    let short = Duration::from_millis(50);
    let settings = Settings { keep_alive: short, stream_after: short, ..Settings::default() };
    let server = TestServer::start(settings).await;
    let session = server.session(LATEST).await;
    let listen = Ask::modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let sse = Ask::new("GET", "/sse").header("accept", "text/event-stream");
    for ask in [
        session.get(),
        session.call(1, "wait", json!({})),
        session.call(1, "tell_and_wait", json!({})),
        Ask::modern_call("wait", json!({})),
        listen,
        sse,
    ] {
        let mut stream = server.open(&ask).await;
        let mut comments = 0;
        while comments < 3 {
            let event = within(stream.next()).await.unwrap();
            comments += usize::from(event.comment);
            assert!(!event.comment || event == Event { comment: true, ..Event::default() }, "{event:?}");
        }
    }
}

#[tokio::test]
async fn a_get_works_with_every_accept_header_that_allows_streams() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for accept in
        ["text/event-stream", "*/*", "application/json, text/event-stream", "Text/Event-Stream;q=0.9"]
    {
        check_head(&server.open(&session.get().with("accept", accept)).await);
    }
    check_head(&server.open(&session.get().without("accept")).await);
}

// Resuming a stream.

/// Makes a call with five messages and disconnects after the second. Returns the session and the number
/// of the stream.
async fn cut_after_two(server: &TestServer) -> (crate::client::Session, u32) {
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.call(9, "count", json!({"messages": 5, "pause_ms": 20}))).await;
    let (number, _) = stream.next().await.unwrap().place();
    for said in 1..=2 {
        assert_eq!(stream.next().await.unwrap().place(), (number, said));
    }
    (session, number)
}

/// Returns the numbers of the remaining events of a stream. The last one must be the response.
async fn left(stream: &mut Events, number: u32) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some(event) = stream.event().await {
        let (of, at) = event.place();
        assert_eq!(of, number);
        assert_eq!(event.retry, None);
        match at {
            6 => assert_eq!(event.message()["id"], 9),
            at => assert_eq!(event.message()["params"]["data"], at),
        }
        numbers.push(at);
    }
    numbers
}

#[tokio::test]
async fn an_interrupted_stream_resumes_after_the_last_event() {
    let server = server().await;
    let (session, number) = cut_after_two(&server).await;
    let mut stream = server.open(&session.resume(&format!("{number}::2"))).await;
    check_head(&stream);
    assert_eq!(left(&mut stream, number).await, [3, 4, 5, 6]);
    // It can be resumed after any event that is retained.
    for (after, rest) in [(0, vec![1, 2, 3, 4, 5, 6]), (3, vec![4, 5, 6]), (5, vec![6])] {
        let mut stream = server.open(&session.resume(&format!("{number}::{after}"))).await;
        assert_eq!(left(&mut stream, number).await, rest);
    }
}

#[tokio::test]
async fn a_disconnect_does_not_cancel_a_call_of_a_session() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for tool in ["tell_and_wait", "hang_up"] {
        let mut stream = server.open(&session.call(3, tool, json!({}))).await;
        let opening = stream.next().await.unwrap();
        server.watch.has_begun(1).await;
        drop(stream);
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(server.watch.cut.available_permits(), 0, "{tool}");
        let mut stream = server.open(&session.resume(opening.id.as_ref().unwrap())).await;
        server.watch.go_on.add_permits(1);
        let rest = stream.rest().await;
        assert_eq!(text_of(&rest.last().unwrap()["result"]), "waited");
        assert_eq!(rest.last().unwrap()["id"], 3);
    }
}

#[tokio::test]
async fn a_result_is_retained_for_a_client_that_reconnects_later() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.call(3, "tell_and_wait", json!({}))).await;
    let opening = stream.next().await.unwrap();
    server.watch.has_begun(1).await;
    drop(stream);
    server.watch.go_on.add_permits(1);
    tokio::time::sleep(A_WHILE).await;
    let rest = server.open(&session.resume(opening.id.as_ref().unwrap())).await.rest().await;
    let kinds: Vec<&str> =
        rest.iter().map(|message| message["method"].as_str().unwrap_or("answer")).collect();
    assert_eq!(kinds, ["notifications/message", "notifications/progress", "answer"]);
}

#[tokio::test]
async fn a_call_may_close_its_connection_and_the_client_reconnects() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.call(3, "hang_up", json!({}))).await;
    let opening = stream.next().await.unwrap();
    assert_eq!(stream.next().await, None);
    let mut stream = server.open(&session.resume(opening.id.as_ref().unwrap())).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(text_of(&stream.message().await.unwrap()["result"]), "waited");
    assert_eq!(stream.message().await, None);
}

#[tokio::test]
async fn a_second_reader_replaces_the_first() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut first = server.open(&session.call(3, "tell_and_wait", json!({}))).await;
    let opening = first.next().await.unwrap();
    server.watch.has_begun(1).await;
    let mut second = server.open(&session.resume(opening.id.as_ref().unwrap())).await;
    // The first reader ends without the response.
    assert!(first.rest().await.iter().all(|message| message.get("id").is_none()));
    server.watch.go_on.add_permits(1);
    assert_eq!(second.rest().await.last().unwrap()["id"], 3);
}

#[tokio::test]
async fn resuming_a_completely_delivered_stream_is_405() {
    let server = server().await;
    let (session, number) = cut_after_two(&server).await;
    let mut stream = server.open(&session.resume(&format!("{number}::2"))).await;
    left(&mut stream, number).await;
    let reply = server.send(&session.resume(&format!("{number}::6"))).await;
    reply.refused(405, -32600);
    assert!(reply.header("allow").is_some());
}

#[tokio::test]
async fn resuming_the_stream_of_a_cancelled_call_is_405() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.call(3, "tell_and_wait", json!({}))).await;
    server.watch.has_begun(1).await;
    stream.next().await.unwrap();
    stream.next().await.unwrap();
    let progress = stream.next().await.unwrap();
    assert_eq!(progress.message()["method"], "notifications/progress");
    server.send(&session.notify("notifications/cancelled", json!({"requestId": 3}))).await.accepted();
    server.watch.was_cut().await;
    assert_eq!(stream.next().await, None);
    server.send(&session.resume(progress.id.as_ref().unwrap())).await.refused(405, -32600);
}

#[tokio::test]
async fn unknown_or_invalid_event_ids_are_400() {
    let server = server().await;
    let (session, number) = cut_after_two(&server).await;
    let mut stream = server.open(&session.resume(&format!("{number}::2"))).await;
    left(&mut stream, number).await;
    for id in [
        format!("{number}::7"),
        format!("{number}::99"),
        format!("{number}::-1"),
        format!("{number}::"),
        format!("{number}:2"),
        format!("{number}::2::3"),
        format!("{number}::2x"),
        format!("{}::0", number + 1),
        "0::0".to_owned(),
        "4294967296::0".to_owned(),
        "::".to_owned(),
        "nonsense".to_owned(),
        "x".repeat(10_000),
    ] {
        server.send(&session.resume(&id)).await.refused(400, -32602);
    }
    server.is_well().await;
}

#[tokio::test]
async fn the_largest_possible_event_id_is_400() {
    let server = server().await;
    let (session, number) = cut_after_two(&server).await;
    server.send(&session.resume(&format!("{number}::18446744073709551615"))).await.refused(400, -32602);
}

#[tokio::test]
async fn an_event_id_never_replays_events_of_another_session() {
    let server = server().await;
    let (_, number) = cut_after_two(&server).await;
    let other = server.session(LATEST).await;
    for after in 0..=2 {
        server.send(&other.resume(&format!("{number}::{after}"))).await.refused(400, -32602);
    }
    // If the session has a stream with the same number, its own events are replayed.
    let mut stream = server.open(&other.call("mine", "count", json!({"messages": 1}))).await;
    assert_eq!(stream.next().await.unwrap().place().0, number);
    stream.rest().await;
    let rest = server.open(&other.resume(&format!("{number}::0"))).await.rest().await;
    assert_eq!((rest.len(), &rest[1]["id"]), (2, &json!("mine")));
}

#[tokio::test]
async fn an_event_id_of_another_caller_is_404() {
    let server = TestServer::start(trusting(Settings::default())).await;
    let session = server.session_of(LATEST, |ask| ask.header("x-caller", "alice")).await;
    let ask = session.call(1, "count", json!({})).header("x-caller", "alice");
    server.open(&ask).await.rest().await;
    server.send(&session.resume("1::0").header("x-caller", "bob")).await.refused(404, -32001);
    let resume = session.resume("1::0").header("x-caller", "alice");
    assert_eq!(server.open(&resume).await.rest().await.len(), 4);
}

#[tokio::test]
async fn an_abandoned_stream_is_removed() {
    let mut settings = attentive();
    settings.session_limits.stream_kept = Duration::from_millis(100);
    let server = TestServer::start(settings).await;
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.call(1, "count", json!({}))).await;
    let opening = stream.next().await.unwrap();
    stream.rest().await;
    drop(stream);
    tokio::time::sleep(3 * A_WHILE).await;
    server.send(&session.resume(opening.id.as_ref().unwrap())).await.refused(400, -32602);
    // A stream to which a call still writes is not removed.
    let mut stream = server.open(&session.call(1, "tell_and_wait", json!({}))).await;
    let opening = stream.next().await.unwrap();
    server.watch.has_begun(1).await;
    drop(stream);
    tokio::time::sleep(3 * A_WHILE).await;
    let mut stream = server.open(&session.resume(opening.id.as_ref().unwrap())).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(stream.rest().await.last().unwrap()["id"], 1);
}
