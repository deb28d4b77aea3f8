//! Clients that disconnect or read slowly, and what happens to their calls.

use super::*;

#[tokio::test]
async fn a_disconnect_cancels_a_modern_call() {
    let settings = Settings { stream_after: Duration::from_millis(50), ..Settings::default() };
    let streaming = TestServer::start(settings).await;
    let waiting = server().await;
    for (server, ask) in [
        // Before the response, after it has become a stream, and when it was a stream from the start.
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
        // The guarantee is 500 ms. A busy machine may need more.
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        server.is_well().await;
    }
}

#[tokio::test]
async fn a_disconnect_cancels_only_its_own_call() {
    let server = server().await;
    // Both have the same id, because every client counts from one.
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
async fn a_disconnect_cancels_no_call_of_a_session_with_any_accept_header() {
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
async fn a_modern_cancellation_notification_has_no_effect() {
    let server = server().await;
    let call = server.send_in_background(Ask::modern_call("wait", json!({})));
    server.watch.has_begun(1).await;
    // Over HTTP a request id does not identify a call, because every client has a request 1.
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let ask = Ask::post(notice.to_string()).header("mcp-protocol-version", "2026-07-28");
    server.send(&ask).await.accepted();
    tokio::time::sleep(A_WHILE).await;
    server.watch.go_on.add_permits(1);
    assert_eq!(call.await.unwrap().tool_text(), "waited");
}

/// Lets a tool send 100 MB to a client that reads very slowly, and checks the memory.
#[cfg(target_os = "linux")]
fn flood(test: &str, ask: impl AsyncFnOnce(&crate::client::ChildServer) -> Ask) -> Value {
    use crate::client::ChildServer;
    use tokio::io::AsyncReadExt as _;

    let child = ChildServer::start(test, || {
        let mut settings = attentive();
        settings.connections.blocked_write = Duration::from_millis(500);
        let mut limits = bindpost_mcp_server::ServerLimits::default();
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
            assert!(began.elapsed() < crate::client::PATIENCE, "the slow reader was not disconnected");
        };
        let grown = most.max(child.memory()) - before;
        assert!(grown < 32 << 20, "the memory has grown by {grown} bytes");
        watched
    })
}

#[cfg(target_os = "linux")]
#[test]
fn a_slow_reader_of_a_modern_call_is_disconnected_and_the_call_cancelled() {
    let test = "streams::disconnects::a_slow_reader_of_a_modern_call_is_disconnected_and_the_call_cancelled";
    let watched = flood(test, async |_| telling("flood", json!({"megabytes": 100})));
    assert_eq!(watched, json!({"done": 0, "cut": 1}));
}

#[cfg(target_os = "linux")]
#[test]
fn a_slow_reader_of_a_session_is_disconnected_and_the_call_continues() {
    let test = "streams::disconnects::a_slow_reader_of_a_session_is_disconnected_and_the_call_continues";
    let watched = flood(test, async |child| {
        let opened = child.send(&Ask::initialize(LATEST)).await;
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        let session = crate::client::Session { id, revision: LATEST };
        session.call(1, "flood", json!({"megabytes": 100}))
    });
    assert_eq!(watched, json!({"done": 1, "cut": 0}));
}

#[tokio::test]
async fn a_fast_reader_gets_all_messages() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.call(1, "flood", json!({"megabytes": 20}))).await;
    let messages = stream.rest().await;
    assert_eq!(messages.len(), 20 * 16 + 1);
    assert_eq!(text_of(&messages.last().unwrap()["result"]), "flooded");
}
