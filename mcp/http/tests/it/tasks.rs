//! Tasks that clients of 2025-11-25 request, over HTTP: they outlive their session, and are bounded.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_http::Settings;
use bindpost_mcp_protocol::Revision;
use bindpost_mcp_server::{Context, ListKind, Server, ServerLimits, TaskLimits, TaskSupport, ToolEntry};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::client::{Ask, LATEST, Session, TestServer, text_of, trusting};

/// Serves a tool that runs as a task until it gets a permit.
async fn server(settings: Settings, limits: ServerLimits) -> (TestServer, Arc<Semaphore>) {
    let go_on = Arc::new(Semaphore::new(0));
    let wanted = go_on.clone();
    let mine = move |_: Context| {
        let wanted = wanted.clone();
        async move {
            wanted.acquire().await.unwrap().forget();
            "mined"
        }
    };
    let server = Server::builder("mine", "1")
        .limits(limits)
        .tasks(TaskLimits::default())
        .tool(ToolEntry::new("mine", mine).task(TaskSupport::WhenPossible));
    (TestServer::of(server.build().unwrap(), settings).await, go_on)
}

fn mine(session: &Session) -> Ask {
    session.request(1, "tools/call", json!({"name": "mine", "task": {}}))
}

fn about(session: &Session, method: &str, task: &Value) -> Ask {
    session.request(2, method, json!({"taskId": task}))
}

#[tokio::test]
async fn a_task_outlives_the_session_that_requested_it() {
    let (server, go_on) = server(Settings::default(), ServerLimits::default()).await;
    let session = server.session(LATEST).await;
    let task = server.send(&mine(&session)).await.result()["task"]["taskId"].clone();
    assert_eq!(server.send(&session.delete()).await.status, 204);
    let other = server.session(LATEST).await;
    assert_eq!(server.send(&about(&other, "tasks/get", &task)).await.result()["status"], "working");
    let result = server.send_in_background(about(&other, "tasks/result", &task));
    go_on.add_permits(1);
    assert_eq!(text_of(&result.await.unwrap().result()), "mined");
}

#[tokio::test]
async fn a_list_of_tasks_has_those_of_the_caller() {
    let (server, _) = server(Settings::default(), ServerLimits::default()).await;
    let (one, other) = (server.session(LATEST).await, server.session(LATEST).await);
    let task = server.send(&mine(&one)).await.result()["task"]["taskId"].clone();
    let list = |session: &Session| session.request(3, "tasks/list", json!({}));
    let listed = server.send(&list(&one)).await.result()["tasks"].clone();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["taskId"]), (1, &task));
    // Anonymous clients cannot be told apart, so a session lists its own tasks only.
    assert_eq!(server.send(&list(&other)).await.result()["tasks"], json!([]));
}

#[tokio::test]
async fn a_task_of_another_caller_is_unknown() {
    let (server, _) = server(trusting(Settings::default()), ServerLimits::default()).await;
    let alice = server.session_of(LATEST, |ask| ask.header("x-caller", "alice")).await;
    let bob = server.session_of(LATEST, |ask| ask.header("x-caller", "bob")).await;
    let task =
        server.send(&mine(&alice).header("x-caller", "alice")).await.result()["task"]["taskId"].clone();
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let error = server.send(&about(&bob, method, &task).header("x-caller", "bob")).await.json();
        assert_eq!(error["error"]["code"], -32602, "{error}");
    }
    let list = bob.request(3, "tasks/list", json!({})).header("x-caller", "bob");
    assert_eq!(server.send(&list).await.result()["tasks"], json!([]));
    // Another session of the same caller sees it.
    let second = server.session_of(LATEST, |ask| ask.header("x-caller", "alice")).await;
    let list = second.request(3, "tasks/list", json!({})).header("x-caller", "alice");
    assert_eq!(server.send(&list).await.result()["tasks"][0]["taskId"], task);
}

#[tokio::test]
async fn requests_that_wait_for_a_task_have_the_limit_of_a_session() {
    let limits = ServerLimits { calls_per_session: 4, ..ServerLimits::default() };
    let (server, go_on) = server(Settings::default(), limits).await;
    let session = server.session(LATEST).await;
    let task = server.send(&mine(&session)).await.result()["task"]["taskId"].clone();
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(server.open(&about(&session, "tasks/result", &task)).await);
    }
    let refused = server.send(&about(&session, "tasks/result", &task)).await.json();
    assert_eq!(refused["error"]["code"], 429, "{refused}");
    go_on.add_permits(1);
    for mut stream in waiting {
        assert_eq!(text_of(&stream.message().await.unwrap()["result"]), "mined");
    }
}

#[tokio::test]
async fn a_shutdown_ends_requests_that_wait_for_a_task() {
    let (server, _) = server(Settings::default(), ServerLimits::default()).await;
    let session = server.session(LATEST).await;
    let task = server.send(&mine(&session)).await.result()["task"]["taskId"].clone();
    let mut stream = server.open(&about(&session, "tasks/result", &task)).await;
    server.trigger.pull();
    assert_eq!(stream.message().await.unwrap()["error"]["code"], 429);
    server.ended().await;
}

#[tokio::test]
async fn tasks_are_declared_in_the_form_of_each_revision() {
    let (server, _) = server(Settings::default(), ServerLimits::default()).await;
    for revision in ["2025-06-18", "2025-11-25"] {
        let opened = server.send(&Ask::initialize(revision)).await.result();
        let expected = match revision {
            "2025-11-25" => json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}),
            _ => Value::Null,
        };
        assert_eq!(opened["capabilities"]["tasks"], expected, "{revision}");
    }
    let found = server.send(&Ask::modern("server/discover", json!({}))).await.result();
    assert_eq!(found["capabilities"]["tasks"], Value::Null);
    assert_eq!(found["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"], json!({}));
    for revision in Revision::ALL {
        let tools = server.server.list_definitions(ListKind::Tools, revision, None).await.unwrap();
        let expected = match revision {
            Revision::V2025_11_25 => json!({"taskSupport": "optional"}),
            _ => Value::Null,
        };
        assert_eq!(tools[0]["execution"], expected, "{revision}");
    }
}

/// A pipe without a session has no limit of calls, so the task has one.
#[tokio::test]
async fn requests_that_wait_for_a_task_are_limited_without_a_session() {
    let (server, go_on) = server(Settings::default(), ServerLimits::default()).await;
    let mut stream = server.open(&Ask::new("GET", "/sse").header("accept", "text/event-stream")).await;
    let path = format!("/{}", stream.next().await.unwrap().data.unwrap());
    let post = async |id: usize, method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        server.send(&Ask::post(message.to_string()).at(&path)).await.accepted();
    };
    post(0, "tools/call", json!({"name": "mine", "task": {}})).await;
    let task = stream.message().await.unwrap()["result"]["task"]["taskId"].clone();
    for id in 1..=20 {
        post(id, "tasks/result", json!({"taskId": task})).await;
    }
    for id in 17..=20 {
        let refused = stream.message().await.unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(429)), "{refused}");
    }
    go_on.add_permits(1);
    for _ in 1..=16 {
        assert_eq!(text_of(&stream.message().await.unwrap()["result"]), "mined");
    }
}

#[tokio::test]
async fn an_error_does_not_repeat_a_long_task_id() {
    let (server, _) = server(Settings::default(), ServerLimits::default()).await;
    let session = server.session(LATEST).await;
    let long = json!("x".repeat(1_000_000));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = server.send(&about(&session, method, &long)).await;
        assert_eq!(refused.json()["error"]["code"], -32602);
        assert!(refused.text().len() < 2_000, "{method}: {} bytes", refused.text().len());
    }
}

/// Clients poll, so a call of `task_result` waits most of its time.
#[tokio::test]
async fn calls_that_wait_for_a_task_block_no_other_call() {
    let go_on = Arc::new(Semaphore::new(0));
    let wanted = go_on.clone();
    let mine = move |_: Context| {
        let wanted = wanted.clone();
        async move {
            wanted.acquire().await.unwrap().forget();
            "mined"
        }
    };
    let mine = ToolEntry::new("mine", mine).task(TaskSupport::WhenPossible);
    let server = Server::builder("mine", "1")
        .limits(ServerLimits { running_calls: 1, calls_per_session: 100, ..ServerLimits::default() })
        .tool(mine.answer_after(Duration::from_millis(50)))
        .tool(ToolEntry::task_result(Duration::from_secs(60)))
        .tool(ToolEntry::new("hello", async || "hello"));
    let server = TestServer::of(server.build().unwrap(), Settings::default()).await;
    let session = server.session("2025-06-18").await;
    let early = server.send(&session.call(1, "mine", json!({}))).await;
    let task = early.result()["structuredContent"]["taskId"].clone();
    let result = |id: u32| session.call(id, "task_result", json!({"taskId": task}));
    let mut waiting = Vec::new();
    for id in 0..16 {
        waiting.push(server.open(&result(id)).await);
    }
    assert_eq!(server.send(&session.call(100, "hello", json!({}))).await.tool_text(), "hello");
    // Too many calls wait, so this one does not.
    let answer = server.send(&result(101)).await.result()["structuredContent"]["status"].clone();
    assert_eq!(answer, "running");
    go_on.add_permits(1);
    for mut stream in waiting {
        assert_eq!(text_of(&stream.message().await.unwrap()["result"]), "mined");
    }
}
