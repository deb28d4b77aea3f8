//! Streams end when the credentials they were opened with expire.

use super::sse::{open_sse, post};
use super::*;

const LIFE: Duration = Duration::from_millis(600);

fn alice(ask: Ask) -> Ask {
    ask.header("x-caller", "alice")
}

/// Alice with a token that expires soon.
fn expiring(ask: Ask) -> Ask {
    alice(ask).header("x-expires-ms", &LIFE.as_millis().to_string())
}

async fn server() -> TestServer {
    TestServer::start(trusting(Settings::default())).await
}

/// Waits for the end of a stream, and checks that it did not end before the token expired.
async fn ends_in_time(mut stream: Events, opened: Instant) -> Vec<Value> {
    let rest = within(stream.rest()).await;
    assert!(opened.elapsed() >= LIFE, "ended after {:?}", opened.elapsed());
    rest
}

#[tokio::test]
async fn a_session_stream_ends_with_its_token_and_resumes_with_a_new_one() {
    let server = server().await;
    let session = server.session_of(LATEST, alice).await;
    let opened = Instant::now();
    let mut stream = server.open(&expiring(session.get())).await;
    let first = stream.next().await.unwrap();
    assert_eq!(ends_in_time(stream, opened).await, Vec::<Value>::new());
    // The session outlives the token, and no message is lost.
    change_tools(&server);
    let mut stream = server.open(&alice(session.resume(first.id.as_ref().unwrap()))).await;
    assert!(is_tools_changed(&stream.message().await.unwrap()));
    stream.stays_silent(2 * LIFE).await;
}

#[tokio::test]
async fn a_subscription_gets_its_last_message_when_its_token_expires() {
    let server = server().await;
    let listen = Ask::modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let opened = Instant::now();
    let stream = server.open(&expiring(listen)).await;
    let messages = ends_in_time(stream, opened).await;
    assert_eq!(messages.first().unwrap()["method"], "notifications/subscriptions/acknowledged");
    assert!(messages.last().unwrap()["result"].is_object(), "{messages:?}");
}

#[tokio::test]
async fn an_http_and_sse_stream_ends_with_its_token() {
    let server = server().await;
    let opened = Instant::now();
    let (stream, path) = open_sse(&server, expiring).await;
    ends_in_time(stream, opened).await;
    server.send(&alice(post(&path, initialize(LATEST)))).await.refused(404, -32001);
}

#[tokio::test]
async fn a_call_that_was_authorized_runs_to_its_end() {
    let server = server().await;
    let session = server.session_of(LATEST, alice).await;
    let mut streams = Vec::new();
    for call in [session.call(1, "tell_and_wait", json!({})), Ask::modern_call("tell_and_wait", json!({}))] {
        streams.push(server.open(&expiring(call)).await);
    }
    server.watch.has_begun(2).await;
    tokio::time::sleep(2 * LIFE).await;
    server.watch.go_on.add_permits(2);
    for mut stream in streams {
        assert_eq!(text_of(&stream.rest().await.last().unwrap()["result"]), "waited");
    }
}
