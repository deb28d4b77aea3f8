//! HTTP+SSE, the transport of 2024-11-05.

use bindpost_mcp_http::SseOptions;
use bindpost_mcp_server::{Context, Server};

use super::*;

/// Opens an HTTP+SSE stream and returns it with the address for messages.
pub(super) async fn open_sse(server: &TestServer, change: impl Fn(Ask) -> Ask) -> (Events, String) {
    let ask = change(Ask::new("GET", "/sse").header("accept", "text/event-stream"));
    let mut stream = server.open(&ask).await;
    check_head(&stream);
    let endpoint = stream.next().await.unwrap();
    assert_eq!(endpoint.kind.as_deref(), Some("endpoint"));
    let address = endpoint.data.unwrap();
    assert!(address.starts_with("message?"), "{address}");
    (stream, format!("/{address}"))
}

pub(super) fn post(path: &str, message: Value) -> Ask {
    Ask::post(message.to_string()).with("accept", "*/*").at(path)
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
        // A call that sends messages, and one that fails.
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
async fn http_and_sse_sends_requests_on_its_stream() {
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
async fn http_and_sse_rejects_other_callers() {
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
async fn closing_an_http_and_sse_stream_closes_the_session_and_cancels_its_calls() {
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
async fn an_invalid_message_over_http_and_sse_is_reported_on_the_stream() {
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
async fn calls_over_http_and_sse_have_the_limit_of_a_session() {
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

#[tokio::test]
async fn the_address_for_messages_repeats_the_configured_parameters() {
    let sse = SseOptions { absolute: false, repeats: vec!["code".to_owned()], ping: None };
    let server = TestServer::start(Settings { sse, ..Settings::default() }).await;
    let address = greeting(&server, Ask::new("GET", "/sse?code=a%20b&other=1")).await;
    assert!(address.starts_with("message?sessionId="), "{address}");
    assert!(address.ends_with("&code=a%20b"), "{address}");
    let address = greeting(&server, Ask::new("GET", "/sse")).await;
    assert!(!address.contains("code"), "{address}");
}

#[tokio::test]
async fn the_address_for_messages_keeps_the_prefix_of_a_proxy() {
    let sse_paths = Some(("/mcp/sse".to_owned(), "/mcp/message".to_owned()));
    let server = TestServer::start(Settings { sse_paths, ..Settings::default() }).await;
    // The client has opened https://example.com/prefix/mcp/sse, from which the proxy removes the prefix.
    let address = greeting(&server, Ask::new("GET", "/mcp/sse")).await;
    assert!(address.starts_with("message?sessionId="), "{address}");
}

#[tokio::test]
async fn a_posted_message_has_the_headers_of_the_stream_and_over_them_its_own() {
    let tool = ToolEntry::new("headers", async |context: Context| {
        let headers = context.http().unwrap().headers();
        let values = |name: &str| {
            let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap());
            values.collect::<Vec<_>>().join(",")
        };
        ["x-get", "x-both", "x-post"].map(values).join(" ")
    });
    let server = Server::builder("headers", "1").tool(tool).build().unwrap();
    let server = TestServer::of(server, Settings::default()).await;
    let (mut stream, path) =
        open_sse(&server, |ask| ask.header("x-get", "1").header("x-get", "2").header("x-both", "get")).await;
    let call = || post(&path, request(1, "tools/call", json!({"name": "headers"})));
    server.send(&call().header("x-both", "post").header("x-post", "3")).await.accepted();
    assert_eq!(text_of(&stream.message().await.unwrap()["result"]), "1,2 post 3");
    server.send(&call()).await.accepted();
    assert_eq!(text_of(&stream.message().await.unwrap()["result"]), "1,2 get ");
}

#[tokio::test]
async fn the_address_for_messages_can_be_absolute() {
    let sse = SseOptions { absolute: true, ..SseOptions::default() };
    let server = TestServer::start(Settings { sse, ..Settings::default() }).await;
    let address = greeting(&server, Ask::new("GET", "/sse")).await;
    assert!(address.starts_with("http://localhost/message?sessionId="), "{address}");
    let address = greeting(&server, Ask::new("GET", "/sse").header("x-forwarded-proto", "https")).await;
    assert!(address.starts_with("https://localhost/message?sessionId="), "{address}");
}

#[tokio::test]
async fn a_client_is_pinged_while_it_is_connected() {
    let sse = SseOptions { ping: Some(Duration::from_millis(20)), ..SseOptions::default() };
    let server = TestServer::start(Settings { sse, ..Settings::default() }).await;
    let mut stream = server.open(&Ask::new("GET", "/sse")).await;
    stream.event().await.unwrap();
    for number in 1..=2 {
        let ping = stream.event().await.unwrap().message();
        assert_eq!(ping["method"], "ping");
        assert_eq!(ping["id"], format!("ping-{number}"));
    }
}

async fn greeting(server: &TestServer, ask: Ask) -> String {
    let mut stream = server.open(&ask).await;
    stream.event().await.unwrap().data.unwrap()
}

#[tokio::test]
async fn unused_pipes_do_not_block_new_clients() {
    let session_limits = SessionLimits { anonymous: 4, ..SessionLimits::default() };
    let server = TestServer::start(Settings { session_limits, ..Settings::default() }).await;
    let (mut good, path) = open_sse(&server, |ask| ask).await;
    server.send(&post(&path, initialize(LATEST))).await.accepted();
    good.message().await.unwrap();
    let mut unused = Vec::new();
    for _ in 0..10 {
        unused.push(open_sse(&server, |ask| ask).await.0);
    }
    // The oldest unused pipe was closed. The used one was not.
    assert_eq!(unused.remove(0).next().await, None);
    server.send(&post(&path, request(1, "tools/list", json!({})))).await.accepted();
    assert_eq!(good.message().await.unwrap()["id"], 1);
    // All pipes are in use, so there is no room.
    drop(unused);
    let mut used = Vec::new();
    for _ in 0..3 {
        let (mut stream, path) = open_sse(&server, |ask| ask).await;
        server.send(&post(&path, initialize(LATEST))).await.accepted();
        stream.message().await.unwrap();
        used.push(stream);
    }
    let open = Ask::new("GET", "/sse").header("accept", "text/event-stream");
    let reply = server.send(&open).await;
    reply.refused(503, 503);
    assert_eq!(reply.header("retry-after"), Some("5"));
    drop(used);
    tokio::time::sleep(A_WHILE).await;
    open_sse(&server, |ask| ask).await;
}
