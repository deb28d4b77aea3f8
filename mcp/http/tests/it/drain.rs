//! Graceful shutdown: running calls are answered, and streams that would never end are ended. The test
//! with a real process and real signals is `examples/conformance/tests/process.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::time::Duration;

use bindpost_mcp_http::listener::Drain;
use bindpost_mcp_http::{Endpoint, bind};
use bindpost_mcp_server::ServerLimits;
use hyper::service::service_fn;
use serde_json::json;

use crate::client::{Ask, Client, LATEST, TestServer, attentive, fixture, text_of, within};

/// Settings with a drain deadline that no test reaches.
fn patient() -> bindpost_mcp_http::Settings {
    let mut settings = attentive();
    settings.connections.drain = Duration::from_secs(3600);
    settings.connections.drain_idle = Duration::from_secs(2);
    settings
}

#[tokio::test]
async fn a_drain_answers_running_calls() {
    let server = TestServer::start(patient()).await;
    let session = server.session(LATEST).await;
    let silent = server.send_in_background(session.call(1, "wait", json!({})));
    let modern = server.send_in_background(Ask::modern_call("wait", json!({})));
    let mut telling = server.open(&session.call(2, "tell_and_wait", json!({}))).await;
    let batch = server.session("2025-03-26").await;
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "wait"}});
    let batch = server.send_in_background(batch.post(json!([call]).to_string()));
    server.watch.has_begun(4).await;
    server.trigger.pull();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.watch.cut.available_permits(), 0);
    server.watch.go_on.add_permits(4);
    assert_eq!(silent.await.unwrap().tool_text(), "waited");
    assert_eq!(modern.await.unwrap().tool_text(), "waited");
    assert_eq!(text_of(&telling.rest().await.last().unwrap()["result"]), "waited");
    assert_eq!(text_of(&batch.await.unwrap().json()[0]["result"]), "waited");
    server.ended().await;
}

#[tokio::test]
async fn subscriptions_get_their_last_message_and_other_streams_end() {
    let server = TestServer::start(patient()).await;
    let session = server.session(LATEST).await;
    let mut unrelated = server.open(&session.get()).await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut listener = server.open(&Ask::modern("subscriptions/listen", filter)).await;
    listener.message().await.unwrap();
    let mut sse = server.open(&Ask::new("GET", "/sse")).await;
    sse.next().await.unwrap();
    server.trigger.pull();
    let last = listener.message().await.unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(1), &json!("complete")));
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    assert_eq!(listener.message().await, None);
    assert!(unrelated.rest().await.is_empty());
    assert!(sse.rest().await.is_empty());
    server.ended().await;
}

#[tokio::test]
async fn a_drain_answers_calls_over_http_and_sse() {
    let server = TestServer::start(patient()).await;
    let mut stream = server.open(&Ask::new("GET", "/sse")).await;
    let path = format!("/{}", stream.next().await.unwrap().data.unwrap());
    server.send(&Ask::initialize("2024-11-05").at(&path)).await.accepted();
    stream.message().await.unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait"}});
    server.send(&Ask::post(call.to_string()).at(&path)).await.accepted();
    server.watch.has_begun(1).await;
    server.trigger.pull();
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.watch.go_on.add_permits(1);
    let answers = stream.rest().await;
    assert_eq!(answers.len(), 1, "the response is lost");
    assert_eq!(answers[0]["id"], 7);
    server.ended().await;
}

#[tokio::test]
async fn a_stream_that_is_opened_during_the_drain_ends_too() {
    let server = TestServer::start(patient()).await;
    let session = server.session(LATEST).await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut clients = Vec::new();
    for ask in [Ask::modern("subscriptions/listen", filter), session.get(), Ask::new("GET", "/sse")] {
        let mut client = server.connect().await;
        client.send(&session.ping()).await.result();
        clients.push((client, ask));
    }
    server.trigger.pull();
    tokio::time::sleep(Duration::from_millis(200)).await;
    // A drain answers one more request on an open connection.
    for (mut client, ask) in clients {
        let reply = tokio::time::timeout(Duration::from_secs(10), client.send(&ask)).await;
        assert!(reply.is_ok(), "this stream never ends: {ask:?}");
    }
    server.ended().await;
}

#[tokio::test]
async fn a_call_during_the_drain_is_answered() {
    let server = TestServer::start(patient()).await;
    let session = server.session(LATEST).await;
    let mut client = server.connect().await;
    client.send(&session.ping()).await.result();
    server.trigger.pull();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let reply = client.send(&session.call(1, "echo", json!({}))).await;
    assert_eq!(reply.tool_text(), "{}");
    assert_eq!(reply.header("connection"), Some("close"));
    server.ended().await;
}

#[tokio::test]
async fn the_drain_deadline_cancels_a_call_that_does_not_end() {
    let mut settings = patient();
    settings.connections.drain = Duration::from_millis(500);
    let server = TestServer::start(settings).await;
    let mut client = server.connect().await;
    client.write(&Ask::modern_call("wait", json!({})).bytes()).await;
    server.watch.has_begun(1).await;
    server.trigger.pull();
    client.closed().await;
    server.watch.was_cut().await;
    within(server.ended()).await;
}

/// The listener continues with another endpoint. Requests received by the closed one must have no effect.
#[tokio::test]
async fn a_closed_endpoint_answers_running_calls_and_rejects_new_messages() {
    let (server, watch) = fixture(ServerLimits::default());
    let endpoint = Endpoint::new(server, patient());
    let bound = bind("127.0.0.1:0").await.unwrap();
    let address = bound.local_addr();
    let (trigger, drain) = Drain::new();
    let running = tokio::spawn({
        let endpoint = endpoint.clone();
        async move {
            let service = |client: bindpost_mcp_http::listener::ConnectedClient| {
                let endpoint = endpoint.clone();
                service_fn(move |request| endpoint.clone().handle_from(request, client.clone()))
            };
            bound.serve_behind(&endpoint, service, drain).await
        }
    });
    let mut caller = Client::connect(address).await;
    caller.write(&Ask::modern_call("wait", json!({})).bytes()).await;
    watch.has_begun(1).await;
    let mut pipe = Client::connect(address).await.open(&Ask::new("GET", "/sse")).await;
    pipe.next().await.unwrap();
    let mut late = Client::connect(address).await;
    let message = Ask::modern_call("echo", json!({})).bytes();
    let (first, rest) = message.split_at(message.len() - 5);
    late.write(first).await;
    // The endpoint must have read the head of the request.
    tokio::time::sleep(Duration::from_millis(300)).await;

    endpoint.close();
    late.write(rest).await;
    let refused = within(late.reply(false)).await;
    assert_eq!(
        refused.refused(503, 503)["error"]["message"],
        "the server's settings have changed; send the request again"
    );
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(pipe.rest().await.is_empty());
    watch.go_on.add_permits(1);
    assert_eq!(within(caller.reply(false)).await.tool_text(), "waited");
    trigger.pull();
    within(running).await.unwrap().unwrap();
}
