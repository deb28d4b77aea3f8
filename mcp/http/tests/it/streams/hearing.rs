//! Which stream gets a message: notifications of changes, requests to the client, subscriptions.

use super::*;

#[tokio::test]
async fn a_change_is_announced_on_the_get_stream() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut stream = server.open(&session.get()).await;
    check_head(&stream);
    change_tools(&server);
    assert!(is_tools_changed(&stream.message().await.unwrap()));
    // A change during a disconnect is announced when the client reconnects.
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
async fn two_get_streams_stay_open_and_one_of_them_gets_the_message() {
    let server = server().await;
    let session = server.session(LATEST).await;
    let mut streams = [server.open(&session.get()).await, server.open(&session.get()).await];
    for stream in &mut streams {
        assert_eq!(stream.next().await.unwrap().data.as_deref(), Some(""));
    }
    change_tools(&server);
    let mut heard = 0;
    for stream in &mut streams {
        // The stream must not have ended, which would be `Ok(None)`.
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
async fn when_one_get_stream_closes_the_other_gets_the_messages() {
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
async fn messages_of_a_call_go_only_to_its_stream() {
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
async fn a_request_to_the_client_is_sent_on_the_stream_of_its_call() {
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
async fn a_session_cannot_answer_a_request_of_another_session() {
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
async fn the_number_of_streams_of_a_session_is_limited() {
    let session_limits = SessionLimits { streams: 2, ..SessionLimits::default() };
    let server = TestServer::start(Settings { session_limits, ..Settings::default() }).await;
    let session = server.session(LATEST).await;
    let one = server.open(&session.get()).await;
    let mut two = server.open(&session.get()).await;
    two.next().await.unwrap();
    let reply = server.send(&session.get()).await;
    reply.refused(429, 429);
    assert!(reply.header("retry-after").is_some());
    // Calls are still served. A stream that cannot be resumed has no event ids.
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
    // Other sessions are not affected, and a closed stream makes room.
    let other = server.session(LATEST).await;
    server.open(&other.get()).await;
    drop(one);
    tokio::time::sleep(A_WHILE).await;
    server.open(&session.get()).await;
    two.stays_silent(A_WHILE).await;
}

#[tokio::test]
async fn a_subscription_gets_only_the_requested_notifications() {
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
