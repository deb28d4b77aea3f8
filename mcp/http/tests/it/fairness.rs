//! Calls that wait for their turn: by caller, then by session, so that no client waits for all calls
//! of another.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use bindpost_mcp_http::Settings;
use bindpost_mcp_server::ServerLimits;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::client::{Ask, LATEST, PATIENCE, Reply, TestServer, trusting};

fn limits(running_calls: usize, waiting_calls: usize) -> ServerLimits {
    ServerLimits { running_calls, waiting_calls, ..ServerLimits::default() }
}

/// Settings with which no response becomes a stream, so that slow calls stay pending.
fn patient() -> Settings {
    Settings { stream_after: PATIENCE, ..Settings::default() }
}

async fn server(limits: ServerLimits) -> TestServer {
    TestServer::with_limits(trusting(patient()), limits).await
}

/// A call that waits until the test releases it.
fn waiting_call(caller: &str) -> Ask {
    Ask::modern_call("wait", json!({})).header("x-caller", caller)
}

fn echo(caller: &str) -> Ask {
    Ask::modern_call("echo", json!({})).header("x-caller", caller)
}

/// Sends waiting calls, and returns when this many of them are running.
async fn occupy(server: &TestServer, caller: &str, calls: usize, running: u32) -> Vec<JoinHandle<Reply>> {
    let calls = (0..calls).map(|_| server.send_in_background(waiting_call(caller))).collect();
    server.watch.has_begun(running).await;
    // The others are queued by then.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    calls
}

#[tokio::test]
async fn many_slow_calls_of_one_caller_do_not_delay_another() {
    let server = server(limits(8, 40)).await;
    let slow = occupy(&server, "alice", 30, 8).await;
    for _ in 0..20 {
        assert_eq!(server.send(&echo("bob")).await.tool_text(), "{}");
    }
    // The slots reserved for callers without a running call are not given to the same caller.
    assert_eq!(server.watch.begun.available_permits(), 0);
    server.watch.go_on.add_permits(30);
    for call in slow {
        assert_eq!(call.await.unwrap().tool_text(), "waited");
    }
}

#[tokio::test]
async fn many_slow_calls_of_one_anonymous_session_do_not_delay_another() {
    let server = TestServer::with_limits(patient(), limits(8, 40)).await;
    let [slow, quick] = [server.session(LATEST).await, server.session(LATEST).await];
    let calls: Vec<_> =
        (0..16).map(|id| server.send_in_background(slow.call(id, "wait", json!({})))).collect();
    server.watch.has_begun(8).await;
    for id in 0..20 {
        assert_eq!(server.send(&quick.call(id, "echo", json!({}))).await.tool_text(), "{}");
    }
    server.watch.go_on.add_permits(16);
    for call in calls {
        assert_eq!(call.await.unwrap().tool_text(), "waited");
    }
}

#[tokio::test]
async fn waiting_calls_are_served_in_turn_by_caller() {
    // There is only one slot, so none is reserved for callers without a running call.
    let server = server(limits(1, 40)).await;
    let slow = occupy(&server, "alice", 10, 1).await;
    let quick = server.send_in_background(echo("bob"));
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    // The running call ends, and one more call may run before Bob's.
    server.watch.go_on.add_permits(2);
    assert_eq!(quick.await.unwrap().tool_text(), "{}");
    server.watch.go_on.add_permits(8);
    for call in slow {
        assert_eq!(call.await.unwrap().tool_text(), "waited");
    }
}

#[tokio::test]
async fn a_full_queue_rejects_the_caller_that_fills_it() {
    let server = server(limits(1, 4)).await;
    let slow = occupy(&server, "alice", 5, 1).await;
    let quick = server.send_in_background(echo("bob"));
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    server.watch.go_on.add_permits(4);
    assert_eq!(quick.await.unwrap().tool_text(), "{}");
    let mut refused = 0;
    for call in slow {
        let reply = call.await.unwrap();
        if reply.status == 429 {
            assert_eq!(reply.header("retry-after"), Some("1"));
            refused += 1;
        } else {
            assert_eq!(reply.tool_text(), "waited");
        }
    }
    assert_eq!(refused, 1);
}

#[tokio::test]
async fn a_queued_call_that_is_cancelled_frees_its_place() {
    let server = server(limits(1, 1)).await;
    let slow = occupy(&server, "alice", 1, 1).await;
    for _ in 0..5 {
        let mut client = server.connect().await;
        client.write(&waiting_call("alice").bytes()).await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        drop(client);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let last = server.send_in_background(waiting_call("alice"));
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    server.watch.go_on.add_permits(2);
    assert_eq!(last.await.unwrap().tool_text(), "waited");
    for call in slow {
        assert_eq!(call.await.unwrap().tool_text(), "waited");
    }
}
