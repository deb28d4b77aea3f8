//! The memory budget that request bodies, retained messages of streams and unread responses share.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::time::Duration;

use bindpost_mcp_http::Settings;
use bindpost_mcp_server::ServerLimits;
use serde_json::json;

#[cfg(target_os = "linux")]
use crate::client::ChildServer;
use crate::client::{Ask, Client, LATEST, Session, TestServer, within};

const MIB: usize = 1 << 20;

fn limits(held_bytes: usize) -> ServerLimits {
    ServerLimits { held_bytes, ..ServerLimits::default() }
}

fn large_bodies() -> Settings {
    Settings { max_body: 16 * MIB, ..Settings::default() }
}

/// A call with a body of about this size.
fn large_call(bytes: usize) -> Vec<u8> {
    Ask::modern_call("echo", json!({"text": "x".repeat(bytes)})).bytes()
}

/// Waits until the budget is unused.
async fn is_empty(server: &TestServer) {
    within(async {
        while server.server.budget().used() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Waits until the used budget no longer changes, and returns it.
async fn settles(server: &TestServer) -> usize {
    let mut before = usize::MAX;
    within(async {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = server.server.budget().used();
            if now == before {
                return now;
            }
            before = now;
        }
    })
    .await
}

#[tokio::test]
async fn incomplete_bodies_share_the_budget() {
    let server = TestServer::with_limits(large_bodies(), limits(8 * MIB)).await;
    let body = large_call(2 * MIB);
    let mut slow = Vec::new();
    for _ in 0..10 {
        let mut client = server.connect().await;
        client.write(&body[..MIB]).await;
        slow.push(client);
    }
    let kept = settles(&server).await;
    assert!(kept >= 4 * MIB, "only {kept} bytes are reserved");
    assert!(kept <= 8 * MIB, "{kept} bytes are reserved");
    // A quarter is left for ordinary calls, even if their bodies arrive in several chunks.
    let mut client = server.connect().await;
    let small = large_call(10_000);
    client.write(&small[..5_000]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.write(&small[5_000..]).await;
    assert_eq!(within(client.reply(false)).await.status, 200);
    // One more large body is rejected with a Retry-After header, without reading the rest.
    let mut client = server.connect().await;
    client.write(&body[..MIB]).await;
    let reply = within(client.reply(false)).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("5")), "{}", reply.text());
    reply.refused(503, 503);
    drop(slow);
    is_empty(&server).await;
    let mut client = server.connect().await;
    client.write(&body).await;
    assert_eq!(within(client.reply(false)).await.status, 200);
}

/// Opens a session with a stream that was read to its end and retains about 1 MiB. Returns the session
/// and the id of the first event.
async fn retain_stream(server: &TestServer) -> (Session, String) {
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.call(1, "flood", json!({"megabytes": 1}))).await;
    let first = stream.event().await.unwrap().id.unwrap();
    within(stream.rest()).await;
    (session, first)
}

#[tokio::test]
async fn the_oldest_retained_streams_are_dropped() {
    let server = TestServer::with_limits(Settings::default(), limits(8 * MIB)).await;
    let mut retained = Vec::new();
    for _ in 0..12 {
        retained.push(retain_stream(&server).await);
        assert!(server.server.budget().used() <= 8 * MIB, "{}", server.server.budget().used());
    }
    let (oldest, first) = &retained[0];
    assert_eq!(server.send(&oldest.resume(first)).await.status, 400);
    let (newest, first) = &retained[11];
    assert_eq!(within(server.open(&newest.resume(first)).await.rest()).await.len(), 17);
    // The session of a dropped stream still works.
    server.send(&oldest.ping()).await.result();
    for (session, _) in &retained {
        assert_eq!(server.send(&session.delete()).await.status, 204);
    }
    is_empty(&server).await;
}

#[tokio::test]
async fn a_body_replaces_retained_streams() {
    let server = TestServer::with_limits(large_bodies(), limits(8 * MIB)).await;
    for _ in 0..5 {
        retain_stream(&server).await;
    }
    let body = large_call(3 * MIB);
    let mut client = server.connect().await;
    client.write(&body[..body.len() - 1]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.write(&body[body.len() - 1..]).await;
    assert_eq!(within(client.reply(false)).await.status, 200);
}

#[tokio::test]
async fn unread_responses_share_the_budget() {
    let server = TestServer::with_limits(large_bodies(), limits(32 * MIB)).await;
    let mut unread = Vec::new();
    // More than the socket buffers hold.
    for _ in 0..2 {
        let mut client = Client::with_small_window(server.address).await;
        client.write(&large_call(6 * MIB)).await;
        unread.push(client);
    }
    let kept = settles(&server).await;
    assert!(kept >= 12 * MIB, "only {kept} bytes are reserved");
    drop(unread);
    is_empty(&server).await;
    server.is_well().await;
}

#[tokio::test]
async fn calls_are_rejected_while_the_budget_is_exhausted() {
    let server = TestServer::with_limits(Settings::default(), limits(MIB)).await;
    let session = server.session(LATEST).await;
    let all = server.server.budget().reserve_anyway(MIB);
    for ask in [Ask::modern_call("echo", json!({})), session.call(1, "echo", json!({}))] {
        let reply = server.send(&ask).await;
        assert_eq!(reply.header("retry-after"), Some("5"));
        reply.refused(503, 503);
    }
    // Requests that need no budget still work.
    server.send(&session.ping()).await.result();
    server.send(&session.request(1, "tools/list", json!({}))).await.result();
    drop(all);
    server.is_well().await;
}

#[cfg(target_os = "linux")]
#[test]
fn many_large_bodies_use_bounded_memory() {
    const TEST: &str = "budget::many_large_bodies_use_bounded_memory";
    let child = ChildServer::start(TEST, || (large_bodies(), limits(32 * MIB)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        child.send(&Ask::modern_call("echo", json!({}))).await;
        let before = child.memory();
        let body = large_call(8 * MIB);
        let mut slow = Vec::new();
        for _ in 0..40 {
            let mut client = Client::connect(child.address).await;
            // The connection of a rejected client may be closed before it has sent everything.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut client.stream, &body[..7 * MIB]).await;
            slow.push(client);
        }
        let grown = child.memory().saturating_sub(before);
        assert!(grown <= 80 * MIB, "{} MiB for 280 MiB of bodies", grown / MIB);
        assert_eq!(child.send(&Ask::modern_call("echo", json!({}))).await.status, 200);
    });
}
