//! Streams: when an answer is one, what its events look like, how it is taken up again, who hears what;
//! HTTP+SSE and batches.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::time::{Duration, Instant};

use bindpost_mcp_http::{SessionLimits, Settings};
use bindpost_mcp_server::ToolEntry;
use serde_json::{Value, json};

use crate::client::{Ask, Client, Event, Events, LATEST, TestServer, attentive, text_of, trusting, within};

/// Long enough for what should not come to come.
const A_WHILE: Duration = Duration::from_millis(200);

async fn server() -> TestServer {
    TestServer::start(Settings::default()).await
}

/// A modern call that wants to hear everything.
fn telling(tool: &str, arguments: Value) -> Ask {
    let meta = json!({"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"});
    Ask::modern("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}))
}

/// Changes the tools, so that whoever wants to know of it hears of it once.
fn change_tools(server: &TestServer) {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let entry = ToolEntry::new(format!("extra_{number}"), async || "extra");
    server.server.catalog().add_tool(entry).unwrap();
}

fn is_tools_changed(message: &Value) -> bool {
    message["method"] == "notifications/tools/list_changed"
}

/// Checks what the head of every stream says.
fn check_head(stream: &Events) {
    assert_eq!(stream.head.status, 200);
    assert_eq!(stream.head.header("content-type"), Some("text/event-stream"));
    assert_eq!(stream.head.header("cache-control"), Some("no-cache"));
    assert_eq!(stream.head.header("x-accel-buffering"), Some("no"));
    assert_eq!(stream.head.header("content-encoding"), None);
}

// What an answer is.

#[tokio::test]
async fn a_call_that_says_nothing_is_answered_in_json() {
    let server = server().await;
    let session = server.session(LATEST).await;
    assert_eq!(server.send(&session.call(1, "echo", json!({}))).await.tool_text(), "{}");
    let wait = server.send_in_background(session.call(1, "wait", json!({})));
    server.watch.has_begun(1).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(wait.await.unwrap().tool_text(), "waited");
}

#[tokio::test]
async fn a_call_that_says_something_is_answered_by_a_stream() {
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
    // The connection goes on.
    stream.into_client().send(&session.ping()).await.result();
}

#[tokio::test]
async fn every_stream_of_a_session_has_a_number_of_its_own() {
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
    // Without a level nothing is logged, and the answer is JSON.
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
async fn a_long_silence_turns_the_answer_into_a_stream() {
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
    // Who reads JSON only waits for JSON.
    let call = session.call(1, "wait", json!({})).with("accept", "application/json");
    let call = server.send_in_background(call);
    server.watch.has_begun(1).await;
    tokio::time::sleep(A_WHILE).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(call.await.unwrap().tool_text(), "waited");
}

#[tokio::test]
async fn every_long_stream_says_that_it_is_alive() {
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
async fn a_get_is_a_stream_for_all_who_can_read_one() {
    let server = server().await;
    let session = server.session(LATEST).await;
    for accept in
        ["text/event-stream", "*/*", "application/json, text/event-stream", "Text/Event-Stream;q=0.9"]
    {
        check_head(&server.open(&session.get().with("accept", accept)).await);
    }
    check_head(&server.open(&session.get().without("accept")).await);
}

// Taking up a stream again.

/// A call that has said five things and was cut after the second: its session, the number of the
/// stream, and everything the stream holds.
async fn cut_after_two(server: &TestServer) -> (crate::client::Session, u32) {
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.call(9, "count", json!({"messages": 5, "pause_ms": 20}))).await;
    let (number, _) = stream.next().await.unwrap().place();
    for said in 1..=2 {
        assert_eq!(stream.next().await.unwrap().place(), (number, said));
    }
    (session, number)
}

/// What a stream has left: the numbers of its events, the last of which must be the answer.
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
async fn a_cut_stream_goes_on_where_it_was_cut() {
    let server = server().await;
    let (session, number) = cut_after_two(&server).await;
    let mut stream = server.open(&session.resume(&format!("{number}::2"))).await;
    check_head(&stream);
    assert_eq!(left(&mut stream, number).await, [3, 4, 5, 6]);
    // Any place it has had, for as long as it is kept.
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
async fn a_result_waits_for_a_client_that_comes_back_later() {
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
async fn a_call_may_hang_up_and_the_client_comes_back() {
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
async fn a_second_reader_takes_over() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut first = server.open(&session.call(3, "tell_and_wait", json!({}))).await;
    let opening = first.next().await.unwrap();
    server.watch.has_begun(1).await;
    let mut second = server.open(&session.resume(opening.id.as_ref().unwrap())).await;
    // The first ends without the answer.
    assert!(first.rest().await.iter().all(|message| message.get("id").is_none()));
    server.watch.go_on.add_permits(1);
    assert_eq!(second.rest().await.last().unwrap()["id"], 3);
}

#[tokio::test]
async fn nothing_is_left_of_a_stream_that_arrived_whole() {
    let server = server().await;
    let (session, number) = cut_after_two(&server).await;
    let mut stream = server.open(&session.resume(&format!("{number}::2"))).await;
    left(&mut stream, number).await;
    let reply = server.send(&session.resume(&format!("{number}::6"))).await;
    reply.refused(405, -32600);
    assert!(reply.header("allow").is_some());
}

#[tokio::test]
async fn nothing_is_left_of_a_cancelled_call() {
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
async fn event_ids_that_are_unknown_or_broken_are_400() {
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
async fn the_largest_event_id_there_can_be_is_400() {
    let server = server().await;
    let (session, number) = cut_after_two(&server).await;
    server.send(&session.resume(&format!("{number}::18446744073709551615"))).await.refused(400, -32602);
}

#[tokio::test]
async fn an_event_id_never_replays_another_sessions_events() {
    let server = server().await;
    let (_, number) = cut_after_two(&server).await;
    let other = server.session(LATEST).await;
    for after in 0..=2 {
        server.send(&other.resume(&format!("{number}::{after}"))).await.refused(400, -32602);
    }
    // With a stream of the same number, it is its own events that are replayed.
    let mut stream = server.open(&other.call("mine", "count", json!({"messages": 1}))).await;
    assert_eq!(stream.next().await.unwrap().place().0, number);
    stream.rest().await;
    let rest = server.open(&other.resume(&format!("{number}::0"))).await.rest().await;
    assert_eq!((rest.len(), &rest[1]["id"]), (2, &json!("mine")));
}

#[tokio::test]
async fn another_callers_event_id_is_404() {
    let server = TestServer::start(trusting(Settings::default())).await;
    let session = server.session_of(LATEST, |ask| ask.header("x-caller", "alice")).await;
    let ask = session.call(1, "count", json!({})).header("x-caller", "alice");
    server.open(&ask).await.rest().await;
    server.send(&session.resume("1::0").header("x-caller", "bob")).await.refused(404, -32001);
    let resume = session.resume("1::0").header("x-caller", "alice");
    assert_eq!(server.open(&resume).await.rest().await.len(), 4);
}

#[tokio::test]
async fn a_stream_nobody_comes_back_to_is_forgotten() {
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
    // One that a call still writes to is not.
    let mut stream = server.open(&session.call(1, "tell_and_wait", json!({}))).await;
    let opening = stream.next().await.unwrap();
    server.watch.has_begun(1).await;
    drop(stream);
    tokio::time::sleep(3 * A_WHILE).await;
    let mut stream = server.open(&session.resume(opening.id.as_ref().unwrap())).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(stream.rest().await.last().unwrap()["id"], 1);
}

// Who hears what.

#[tokio::test]
async fn a_change_is_told_on_the_stream_for_it() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.get()).await;
    check_head(&stream);
    change_tools(&server);
    assert!(is_tools_changed(&stream.message().await.unwrap()));
    // Cut in between, it is told when the client comes back.
    change_tools(&server);
    let last = stream.event().await.unwrap();
    drop(stream);
    tokio::time::sleep(A_WHILE).await;
    change_tools(&server);
    let mut stream = server.open(&session.resume(last.id.as_ref().unwrap())).await;
    assert!(is_tools_changed(&stream.message().await.unwrap()));
    stream.stays_silent(A_WHILE).await;
}

#[tokio::test]
async fn two_streams_do_not_push_each_other_out_and_one_of_them_is_told() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut streams = [server.open(&session.get()).await, server.open(&session.get()).await];
    for stream in &mut streams {
        assert_eq!(stream.next().await.unwrap().data.as_deref(), Some(""));
    }
    change_tools(&server);
    let mut heard = 0;
    for stream in &mut streams {
        // Silence is no end: an end would be `Ok(None)`.
        if let Ok(event) = tokio::time::timeout(2 * A_WHILE, stream.event()).await {
            assert!(is_tools_changed(&event.unwrap().message()));
            heard += 1;
        }
    }
    assert_eq!(heard, 1);
    for stream in &mut streams {
        stream.stays_silent(A_WHILE).await;
    }
}

#[tokio::test]
async fn when_the_stream_that_is_told_goes_the_other_one_is_told() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut older = server.open(&session.get()).await;
    let newer = server.open(&session.get()).await;
    drop(newer);
    tokio::time::sleep(A_WHILE).await;
    change_tools(&server);
    assert!(is_tools_changed(&within(older.message()).await.unwrap()));
}

#[tokio::test]
async fn what_belongs_to_a_call_goes_to_its_stream_only() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut unrelated = server.open(&session.get()).await;
    unrelated.next().await.unwrap();
    let mut one = server.open(&session.call("one", "tell_and_wait", json!({}))).await;
    let mut two = server.open(&session.call("two", "tell_and_wait", json!({}))).await;
    server.watch.has_begun(2).await;
    server.watch.go_on.add_permits(2);
    for (stream, id) in [(&mut one, "one"), (&mut two, "two")] {
        let messages = stream.rest().await;
        assert_eq!(messages.len(), 3);
        assert_eq!(messages[1]["params"]["progressToken"], id);
        assert_eq!(messages[2]["id"], id);
    }
    unrelated.stays_silent(A_WHILE).await;
}

#[tokio::test]
async fn a_question_goes_to_the_stream_of_its_call_and_the_answer_by_post() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut unrelated = server.open(&session.get()).await;
    unrelated.next().await.unwrap();
    let mut stream = server.open(&session.call(1, "ask_name", json!({}))).await;
    let question = stream.message().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let content = json!({"name": "Ada"});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": content}});
    server.send(&session.post(answer.to_string())).await.accepted();
    assert_eq!(text_of(&stream.message().await.unwrap()["result"]), "Hello, Ada!");
    assert_eq!(stream.message().await, None);
    unrelated.stays_silent(A_WHILE).await;
}

#[tokio::test]
async fn a_session_cannot_answer_another_sessions_question() {
    let server = server().await;
    let [session, other] = [server.session(LATEST).await, server.session(LATEST).await];
    let mut stream = server.open(&session.call(1, "ask_name", json!({}))).await;
    let question = stream.message().await.unwrap();
    let answer = |name: &str| {
        let content = json!({"name": name});
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}})
    };
    server.send(&other.post(answer("Eve").to_string())).await.accepted();
    server.send(&session.post(answer("Ada").to_string())).await.accepted();
    assert_eq!(text_of(&stream.message().await.unwrap()["result"]), "Hello, Ada!");
}

#[tokio::test]
async fn deleting_a_session_ends_its_streams() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut unrelated = server.open(&session.get()).await;
    let mut call = server.open(&session.call(1, "tell_and_wait", json!({}))).await;
    server.watch.has_begun(1).await;
    assert_eq!(server.send(&session.delete()).await.status, 204);
    server.watch.was_cut().await;
    assert!(unrelated.rest().await.is_empty());
    assert!(call.rest().await.iter().all(|message| message.get("id").is_none()));
}

#[tokio::test]
async fn one_session_keeps_so_many_streams_and_no_more() {
    let session_limits = SessionLimits { streams: 2, ..SessionLimits::default() };
    let server = TestServer::start(Settings { session_limits, ..Settings::default() }).await;
    let session = server.session(LATEST).await;
    let one = server.open(&session.get()).await;
    let mut two = server.open(&session.get()).await;
    two.next().await.unwrap();
    let reply = server.send(&session.get()).await;
    reply.refused(429, 429);
    assert!(reply.header("retry-after").is_some());
    // Calls are served all the same; a stream that is not kept has no ids to come back with.
    assert_eq!(server.send(&session.call(1, "echo", json!({}))).await.tool_text(), "{}");
    let mut call = server.open(&session.call(2, "tell_and_wait", json!({}))).await;
    let said = call.next().await.unwrap();
    assert_eq!((said.message()["method"].as_str(), said.id), (Some("notifications/message"), None));
    server.watch.go_on.add_permits(1);
    loop {
        let event = call.next().await.unwrap();
        assert_eq!(event.id, None);
        if event.message()["id"] == 2 {
            break;
        }
    }
    // Other sessions are not concerned, and a free place is free again.
    let other = server.session(LATEST).await;
    server.open(&other.get()).await;
    drop(one);
    tokio::time::sleep(A_WHILE).await;
    server.open(&session.get()).await;
    two.stays_silent(A_WHILE).await;
}

#[tokio::test]
async fn a_listener_hears_what_it_asked_for_and_nothing_else() {
    let server = server().await;
    let listen = |id: Value, filter: Value| {
        Ask::modern("subscriptions/listen", json!({"notifications": filter}))
            .edit(|message| message["id"] = id)
    };
    let tag = "io.modelcontextprotocol/subscriptionId";
    let mut tools = server.open(&listen(json!("listen:0"), json!({"toolsListChanged": true}))).await;
    check_head(&tools);
    let mut prompts = server.open(&listen(json!(0), json!({"promptsListChanged": true}))).await;
    for (stream, id) in [(&mut tools, json!("listen:0")), (&mut prompts, json!(0))] {
        let first = stream.next().await.unwrap();
        assert_eq!(first.id, None);
        assert_eq!(first.message()["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first.message()["params"]["_meta"][tag], id);
    }
    change_tools(&server);
    let message = tools.message().await.unwrap();
    assert!(is_tools_changed(&message));
    assert_eq!(message["params"]["_meta"][tag], "listen:0");
    tools.stays_silent(A_WHILE).await;
    prompts.stays_silent(A_WHILE).await;
}

// Disconnects and slow readers.

#[tokio::test]
async fn a_disconnect_cancels_a_modern_call() {
    let settings = Settings { stream_after: Duration::from_millis(50), ..Settings::default() };
    let streaming = TestServer::start(settings).await;
    let waiting = server().await;
    for (server, ask) in [
        // Before there is an answer, when it has become a stream, and when it was one from the start.
        (&waiting, Ask::modern_call("wait", json!({}))),
        (&streaming, Ask::modern_call("wait", json!({}))),
        (&streaming, telling("tell_and_wait", json!({}))),
    ] {
        let mut client = server.connect().await;
        client.write(&ask.bytes()).await;
        server.watch.has_begun(1).await;
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(server.watch.cut.available_permits(), 0);
        let began = Instant::now();
        drop(client);
        server.watch.was_cut().await;
        // The promise is 500 ms; a busy machine gets more.
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        server.is_well().await;
    }
}

#[tokio::test]
async fn a_disconnect_cancels_its_own_call_only() {
    let server = server().await;
    // The same id, as every client counts from one.
    let mut gone = server.connect().await;
    gone.write(&telling("tell_and_wait", json!({})).bytes()).await;
    let mut stays = server.open(&telling("tell_and_wait", json!({}))).await;
    server.watch.has_begun(2).await;
    drop(gone);
    server.watch.was_cut().await;
    server.watch.go_on.add_permits(1);
    assert_eq!(text_of(&stays.rest().await.last().unwrap()["result"]), "waited");
    assert_eq!(server.watch.cut.available_permits(), 0);
}

#[tokio::test]
async fn a_disconnect_before_the_answer_does_not_cancel_a_call_of_a_session() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut client = server.connect().await;
    client.write(&session.call(1, "wait", json!({})).bytes()).await;
    server.watch.has_begun(1).await;
    drop(client);
    tokio::time::sleep(2 * A_WHILE).await;
    assert_eq!(server.watch.cut.available_permits(), 0);
    server.watch.go_on.add_permits(1);
    server.send(&session.ping()).await.result();
}

#[tokio::test]
async fn a_disconnect_cancels_no_call_of_a_session_whatever_the_client_reads() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let of_batches = server.session("2025-03-26").await;
    let batch = json!([request(1, "tools/call", json!({"name": "wait"}))]).to_string();
    for ask in [session.call(1, "wait", json!({})).with("accept", "application/json"), of_batches.post(batch)]
    {
        let mut client = server.connect().await;
        client.write(&ask.bytes()).await;
        server.watch.has_begun(1).await;
        drop(client);
        tokio::time::sleep(2 * A_WHILE).await;
        assert_eq!(server.watch.cut.available_permits(), 0, "{ask:?}");
    }
}

#[tokio::test]
async fn a_modern_cancellation_notice_cancels_nothing() {
    let server = server().await;
    let call = server.send_in_background(Ask::modern_call("wait", json!({})));
    server.watch.has_begun(1).await;
    // Over HTTP, ids are no names: every client has a request 1.
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let ask = Ask::post(notice.to_string()).header("mcp-protocol-version", "2026-07-28");
    server.send(&ask).await.accepted();
    tokio::time::sleep(A_WHILE).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(call.await.unwrap().tool_text(), "waited");
}

/// Lets a tool say 100 MB to a client that takes a byte now and then, and watches the memory.
#[cfg(target_os = "linux")]
fn flood(test: &str, ask: impl AsyncFnOnce(&crate::client::ChildServer) -> Ask) -> Value {
    use crate::client::ChildServer;
    use tokio::io::AsyncReadExt as _;

    let child = ChildServer::start(test, || {
        let mut settings = attentive();
        settings.connections.blocked_write = Duration::from_millis(500);
        let mut limits = bindpost_mcp_server::Limits::default();
        limits.stream.blocked = Duration::from_millis(500);
        (settings, limits)
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ask = ask(&child).await;
        let watched = async || -> Value {
            let text = child.send(&Ask::modern_call("watched", json!({}))).await.tool_text();
            serde_json::from_str(&text).unwrap()
        };
        assert_eq!(watched().await, json!({"done": 0, "cut": 0}));
        let before = child.memory();
        let mut client = Client::with_small_window(child.address).await;
        client.write(&ask.bytes()).await;
        let began = Instant::now();
        let mut most = before;
        let watched = loop {
            let _ = tokio::time::timeout(Duration::from_millis(100), client.stream.read_u8()).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            most = most.max(child.memory());
            let watched = watched().await;
            if watched != json!({"done": 0, "cut": 0}) {
                break watched;
            }
            assert!(began.elapsed() < crate::client::PATIENCE, "the reader was not given up");
        };
        let grown = most.max(child.memory()) - before;
        assert!(grown < 32 << 20, "the memory has grown by {grown} bytes");
        watched
    })
}

#[cfg(target_os = "linux")]
#[test]
fn a_slow_reader_of_a_modern_call_is_given_up_and_the_call_is_cancelled() {
    let test = "streams::a_slow_reader_of_a_modern_call_is_given_up_and_the_call_is_cancelled";
    let watched = flood(test, async |_| telling("flood", json!({"megabytes": 100})));
    assert_eq!(watched, json!({"done": 0, "cut": 1}));
}

#[cfg(target_os = "linux")]
#[test]
fn a_slow_reader_of_a_session_is_given_up_and_the_call_goes_on() {
    let test = "streams::a_slow_reader_of_a_session_is_given_up_and_the_call_goes_on";
    let watched = flood(test, async |child| {
        let opened = child.send(&Ask::initialize(LATEST)).await;
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        let session = crate::client::Session { id, revision: LATEST };
        session.call(1, "flood", json!({"megabytes": 100}))
    });
    assert_eq!(watched, json!({"done": 1, "cut": 0}));
}

#[tokio::test]
async fn a_reader_that_keeps_up_gets_everything() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.call(1, "flood", json!({"megabytes": 20}))).await;
    let messages = stream.rest().await;
    assert_eq!(messages.len(), 20 * 16 + 1);
    assert_eq!(text_of(&messages.last().unwrap()["result"]), "flooded");
}

// HTTP+SSE.

/// An open HTTP+SSE stream and where to post.
async fn open_sse(server: &TestServer, change: impl Fn(Ask) -> Ask) -> (Events, String) {
    let ask = change(Ask::new("GET", "/sse").header("accept", "text/event-stream"));
    let mut stream = server.open(&ask).await;
    check_head(&stream);
    let endpoint = stream.next().await.unwrap();
    assert_eq!(endpoint.kind.as_deref(), Some("endpoint"));
    let path = endpoint.data.unwrap();
    assert!(path.starts_with("/message?"), "{path}");
    (stream, path)
}

fn post(path: &str, message: Value) -> Ask {
    Ask::post(message.to_string()).with("accept", "*/*").at(path)
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

#[tokio::test]
async fn http_and_sse_answers_on_its_stream() {
    let server = server().await;
    for revision in ["2024-11-05", LATEST] {
        let (mut stream, path) = open_sse(&server, |ask| ask).await;
        let mut client = server.connect().await;
        client.send(&post(&path, initialize(revision))).await.accepted();
        let opened = stream.next().await.unwrap();
        assert_eq!((opened.kind.as_deref(), opened.id.as_deref()), (Some("message"), None));
        assert_eq!(opened.message()["result"]["protocolVersion"], revision);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.send(&post(&path, initialized)).await.accepted();
        let list = post(&path, request("list", "tools/list", json!({})));
        client.send(&list.header("mcp-protocol-version", revision)).await.accepted();
        let listed = stream.message().await.unwrap();
        assert_eq!(listed["id"], "list");
        assert!(listed["result"]["tools"].is_array());
        // A call that speaks, and one that fails.
        let params = json!({"name": "tell_and_wait", "_meta": {"progressToken": "t"}});
        server.watch.go_on.add_permits(1);
        client.send(&post(&path, request(7, "tools/call", params))).await.accepted();
        assert_eq!(stream.message().await.unwrap()["method"], "notifications/message");
        assert_eq!(stream.message().await.unwrap()["method"], "notifications/progress");
        assert_eq!(stream.message().await.unwrap()["id"], 7);
        client.send(&post(&path, request(8, "no/such", json!({})))).await.accepted();
        assert_eq!(stream.message().await.unwrap()["error"]["code"], -32601);
        change_tools(&server);
        assert!(is_tools_changed(&stream.message().await.unwrap()));
    }
}

#[tokio::test]
async fn http_and_sse_asks_on_its_stream() {
    let server = server().await;
    let (mut stream, path) = open_sse(&server, |ask| ask).await;
    let mut client = server.connect().await;
    client.send(&post(&path, initialize(LATEST))).await.accepted();
    stream.message().await.unwrap();
    client.send(&post(&path, request(1, "tools/call", json!({"name": "ask_name"})))).await.accepted();
    let question = stream.message().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let result = json!({"action": "accept", "content": {"name": "Ada"}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    client.send(&post(&path, answer)).await.accepted();
    assert_eq!(text_of(&stream.message().await.unwrap()["result"]), "Hello, Ada!");
}

#[tokio::test]
async fn http_and_sse_refuses_strangers() {
    let server = TestServer::start(trusting(Settings::default())).await;
    let (_stream, path) = open_sse(&server, |ask| ask.header("x-caller", "alice")).await;
    let ping = || request(1, "ping", json!({}));
    server.send(&post(&path, ping()).header("x-caller", "bob")).await.refused(404, -32001);
    server.send(&post(&path, ping())).await.refused(404, -32001);
    server.send(&post(&path, ping()).header("x-caller", "alice")).await.accepted();
    for path in ["/message?sessionId=AAAAAAAAAAAAAAAAAAAAAA", "/message?sessionId=", "/message?sessionId=%00"]
    {
        server.send(&post(path, ping())).await.refused(404, -32001);
    }
    for path in ["/message", "/message?", "/message?SessionId=x"] {
        server.send(&post(path, ping())).await.refused(400, -32600);
    }
}

#[tokio::test]
async fn closing_an_http_and_sse_stream_closes_the_session_and_cancels() {
    let server = server().await;
    let (mut stream, path) = open_sse(&server, |ask| ask).await;
    server.send(&post(&path, initialize("2024-11-05"))).await.accepted();
    stream.message().await.unwrap();
    server.send(&post(&path, request(1, "tools/call", json!({"name": "wait"})))).await.accepted();
    server.watch.has_begun(1).await;
    drop(stream);
    server.watch.was_cut().await;
    server.send(&post(&path, request(2, "ping", json!({})))).await.refused(404, -32001);
}

#[tokio::test]
async fn a_bad_message_over_http_and_sse_is_told_on_the_stream() {
    let server = server().await;
    let (mut stream, path) = open_sse(&server, |ask| ask).await;
    let bad = Ask::post("{").at(&path);
    let status = server.send(&bad).await.status;
    if status == 202 {
        assert_eq!(stream.message().await.unwrap()["error"]["code"], -32700);
    } else {
        assert_eq!(status, 400);
    }
    server.send(&post(&path, initialize("2024-11-05"))).await.accepted();
    assert_eq!(stream.message().await.unwrap()["id"], 0);
}

#[tokio::test]
async fn http_and_sse_streams_have_a_cap() {
    let session_limits = SessionLimits { anonymous: 2, ..SessionLimits::default() };
    let server = TestServer::start(Settings { session_limits, ..Settings::default() }).await;
    let (one, _) = open_sse(&server, |ask| ask).await;
    let (_two, _) = open_sse(&server, |ask| ask).await;
    let ask = Ask::new("GET", "/sse").header("accept", "text/event-stream");
    let reply = server.send(&ask).await;
    reply.refused(503, 503);
    assert_eq!(reply.header("retry-after"), Some("5"));
    drop(one);
    tokio::time::sleep(A_WHILE).await;
    open_sse(&server, |ask| ask).await;
}

#[tokio::test]
async fn calls_over_http_and_sse_are_capped_like_those_of_any_session() {
    let server = server().await;
    let (mut stream, path) = open_sse(&server, |ask| ask).await;
    let mut client = server.connect().await;
    client.send(&post(&path, initialize("2024-11-05"))).await.accepted();
    stream.message().await.unwrap();
    for id in 0..20 {
        client.send(&post(&path, request(id, "tools/call", json!({"name": "wait"})))).await.accepted();
    }
    for _ in 0..4 {
        assert_eq!(stream.message().await.unwrap()["error"]["code"], 429);
    }
    server.watch.has_begun(16).await;
    assert_eq!(server.watch.begun.available_permits(), 0);
}

#[tokio::test]
async fn a_batch_over_http_and_sse_counts_each_of_its_calls() {
    let server = server().await;
    let (mut stream, path) = open_sse(&server, |ask| ask).await;
    server.send(&post(&path, initialize("2025-03-26"))).await.accepted();
    stream.message().await.unwrap();
    let batch: Vec<Value> = (0..20).map(|id| request(id, "tools/call", json!({"name": "wait"}))).collect();
    server.send(&post(&path, json!(batch))).await.accepted();
    server.watch.has_begun(16).await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(server.watch.begun.available_permits(), 0, "more than 16 calls of one session run");
}

// Batches.

#[tokio::test]
async fn a_batch_of_2025_03_26_is_answered_by_an_array() {
    let server = server().await;
    let session = server.session("2025-03-26").await;
    let batch = json!([
        request(1, "ping", json!({})),
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
        request("two", "tools/call", json!({"name": "count", "arguments": {"messages": 2, "pause_ms": 10}})),
        request(3, "no/such", json!({})),
        7,
        json!({"jsonrpc": "2.0", "id": 99, "result": {}}),
    ]);
    let answers = server.send(&session.post(batch.to_string())).await;
    assert_eq!(answers.status, 200);
    let answers = answers.json();
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 4);
    let of = |id: Value| answers.iter().find(|answer| answer.get("id") == Some(&id)).unwrap();
    assert_eq!(of(json!(1))["result"], json!({}));
    assert_eq!(text_of(&of(json!("two"))["result"]), "said 2 things");
    assert_eq!(of(json!(3))["error"]["code"], -32601);
    let unreadable = answers.iter().find(|answer| answer.get("id").is_none()).unwrap();
    assert_eq!(unreadable["error"]["code"], -32600);
}

#[tokio::test]
async fn a_batch_without_a_request_is_accepted() {
    let server = server().await;
    let session = server.session("2025-03-26").await;
    let batch = json!([
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 99, "result": {}})
    ]);
    server.send(&session.post(batch.to_string())).await.accepted();
}

#[tokio::test]
async fn batches_are_refused_where_they_do_not_belong() {
    let server = server().await;
    let ping = || request(1, "ping", json!({}));
    for revision in ["2024-11-05", "2025-06-18", LATEST] {
        let session = server.session(revision).await;
        server.send(&session.post(json!([ping()]).to_string())).await.refused(400, -32600);
    }
    let session = server.session("2025-03-26").await;
    server.send(&session.post("[]")).await.refused(400, -32600);
    server
        .send(&session.post(json!([ping(), initialize("2025-03-26")]).to_string()))
        .await
        .refused(400, -32600);
    server.send(&Ask::post(json!([ping()]).to_string())).await.refused(400, -32600);
    server.send(&Ask::post(json!([initialize("2025-03-26")]).to_string())).await.refused(400, -32600);
    let mut unknown = session.clone();
    unknown.id = "AAAAAAAAAAAAAAAAAAAAAA".to_owned();
    server.send(&unknown.post(json!([ping()]).to_string())).await.refused(404, -32001);
    server.send(&session.ping()).await.result();
}
