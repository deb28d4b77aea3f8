//! What is kept for clients has one budget: bodies, pasts of streams, answers that are not read.

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

/// A call whose body is about this large.
fn large_call(bytes: usize) -> Vec<u8> {
    Ask::modern_call("echo", json!({"text": "x".repeat(bytes)})).bytes()
}

/// Waits until nothing is kept.
async fn is_empty(server: &TestServer) {
    within(async {
        while server.server.budget().used() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Waits until what is kept does not change any more.
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
async fn bodies_that_are_being_received_share_the_budget() {
    let server = TestServer::with_limits(large_bodies(), limits(8 * MIB)).await;
    let body = large_call(2 * MIB);
    let mut slow = Vec::new();
    for _ in 0..10 {
        let mut client = server.connect().await;
        client.write(&body[..MIB]).await;
        slow.push(client);
    }
    let kept = settles(&server).await;
    assert!(kept >= 4 * MIB, "only {kept} bytes are counted");
    assert!(kept <= 8 * MIB, "{kept} bytes are kept");
    // A quarter is left for ordinary calls, even those that come in pieces.
    let mut client = server.connect().await;
    let small = large_call(10_000);
    client.write(&small[..5_000]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.write(&small[5_000..]).await;
    assert_eq!(within(client.reply(false)).await.status, 200);
    // One more large one is told to come back, and what is left of it does not matter.
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

/// A session with a stream that was read to its end, and keeps about 1 MiB of it: the session and the first event.
async fn keeps_a_past(server: &TestServer) -> (Session, String) {
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.call(1, "flood", json!({"megabytes": 1}))).await;
    let first = stream.event().await.unwrap().id.unwrap();
    within(stream.rest()).await;
    (session, first)
}

#[tokio::test]
async fn the_oldest_pasts_of_streams_make_room() {
    let server = TestServer::with_limits(Settings::default(), limits(8 * MIB)).await;
    let mut pasts = Vec::new();
    for _ in 0..12 {
        pasts.push(keeps_a_past(&server).await);
        assert!(server.server.budget().used() <= 8 * MIB, "{}", server.server.budget().used());
    }
    let (oldest, first) = &pasts[0];
    assert_eq!(server.send(&oldest.resume(first)).await.status, 400);
    let (newest, first) = &pasts[11];
    assert_eq!(within(server.open(&newest.resume(first)).await.rest()).await.len(), 17);
    // The session of a stream whose past was dropped goes on.
    server.send(&oldest.ping()).await.result();
    for (session, _) in &pasts {
        assert_eq!(server.send(&session.delete()).await.status, 204);
    }
    is_empty(&server).await;
}

#[tokio::test]
async fn a_body_makes_old_pasts_go() {
    let server = TestServer::with_limits(large_bodies(), limits(8 * MIB)).await;
    for _ in 0..5 {
        keeps_a_past(&server).await;
    }
    let body = large_call(3 * MIB);
    let mut client = server.connect().await;
    client.write(&body[..body.len() - 1]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.write(&body[body.len() - 1..]).await;
    assert_eq!(within(client.reply(false)).await.status, 200);
}

#[tokio::test]
async fn answers_that_are_not_read_share_the_budget() {
    let server = TestServer::with_limits(large_bodies(), limits(32 * MIB)).await;
    let mut unread = Vec::new();
    // More than the buffers of the sockets take.
    for _ in 0..2 {
        let mut client = Client::with_small_window(server.address).await;
        client.write(&large_call(6 * MIB)).await;
        unread.push(client);
    }
    let kept = settles(&server).await;
    assert!(kept >= 12 * MIB, "only {kept} bytes are counted");
    drop(unread);
    is_empty(&server).await;
    server.is_well().await;
}

#[tokio::test]
async fn calls_are_refused_while_the_budget_is_used_up() {
    let server = TestServer::with_limits(Settings::default(), limits(MIB)).await;
    let session = server.session(LATEST).await;
    let all = server.server.budget().reserve_anyway(MIB);
    for ask in [Ask::modern_call("echo", json!({})), session.call(1, "echo", json!({}))] {
        let reply = server.send(&ask).await;
        assert_eq!(reply.header("retry-after"), Some("5"));
        reply.refused(503, 503);
    }
    // What keeps nothing goes on.
    server.send(&session.ping()).await.result();
    server.send(&session.request(1, "tools/list", json!({}))).await.result();
    drop(all);
    server.is_well().await;
}

#[cfg(target_os = "linux")]
#[test]
fn a_flood_of_large_bodies_takes_bounded_memory() {
    const TEST: &str = "budget::a_flood_of_large_bodies_takes_bounded_memory";
    let child = ChildServer::start(TEST, || (large_bodies(), limits(32 * MIB)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        child.send(&Ask::modern_call("echo", json!({}))).await;
        let before = child.memory();
        let body = large_call(8 * MIB);
        let mut slow = Vec::new();
        for _ in 0..40 {
            let mut client = Client::connect(child.address).await;
            // A refused client may find its connection closed before it has sent everything.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut client.stream, &body[..7 * MIB]).await;
            slow.push(client);
        }
        let grown = child.memory().saturating_sub(before);
        assert!(grown <= 80 * MIB, "{} MiB for 280 MiB of bodies", grown / MIB);
        assert_eq!(child.send(&Ask::modern_call("echo", json!({}))).await.status, 200);
    });
}
