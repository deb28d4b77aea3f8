//! Ownership of sessions, streams, pipes, tasks and states: for Bob, Alice's do not exist.

use std::time::Duration;

use bindpost_mcp_http::{AnonymousAccess, Auth, SessionLimits};
use serde_json::json;

use super::*;
use crate::client::{Ask, LATEST, Session, TestServer, text_of};

const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

async fn server() -> TestServer {
    TestServer::of(mixed(), with_keys()).await
}

#[tokio::test]
async fn a_session_belongs_to_its_caller() {
    let server = server().await;
    for revision in SESSIONS {
        let session = server.session_of(revision, |ask| carrying(ask, ALICE)).await;
        let asks = [
            session.ping(),
            session.call(1, "time", json!({})),
            session.notify("notifications/initialized", json!({})),
            session.post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            session.get(),
            session.resume("1::0"),
            session.delete(),
        ];
        for ask in &asks {
            server.send(&carrying(ask.clone(), BOB)).await.refused(404, -32001);
            server.send(ask).await.refused(404, -32001);
            // Invalid credentials get a 401, because with valid ones it might be the sender's session.
            let refused = server.send(&carrying(ask.clone(), WRONG)).await;
            refused.refused(401, -32001);
            assert_eq!(challenge(&refused.headers).1["error"], "invalid_token");
        }
        server.send(&carrying(session.ping(), ALICE)).await.result();
        assert_eq!(server.send(&carrying(session.delete(), ALICE)).await.status, 204);
    }
    let session = server.session_of("2025-03-26", |ask| carrying(ask, ALICE)).await;
    let batch = session.post(json!([request("ping", json!({}))]).to_string());
    server.send(&carrying(batch.clone(), BOB)).await.refused(404, -32001);
    assert_eq!(server.send(&carrying(batch, ALICE)).await.status, 200);
}

#[tokio::test]
async fn only_its_caller_can_resume_a_stream() {
    let server = server().await;
    for revision in SESSIONS {
        let session = server.session_of(revision, |ask| carrying(ask, ALICE)).await;
        let mut stream = server.open(&carrying(session.call(1, "tell", json!({})), ALICE)).await;
        let first = stream.next().await.unwrap();
        stream.rest().await;
        let (number, _) = first.place();
        let resume = session.resume(&format!("{number}::0"));
        server.send(&carrying(resume.clone(), BOB)).await.refused(404, -32001);
        server.send(&resume).await.refused(404, -32001);
        let rest = server.open(&carrying(resume, ALICE)).await.rest().await;
        assert_eq!(text_of(&rest.last().unwrap()["result"]), "told", "{revision}");
    }
}

#[tokio::test]
async fn a_pipe_belongs_to_its_caller() {
    let server = server().await;
    let talk = Talk::open(&server, Way::Pipe, ALICE).await;
    let call = request("tools/call", json!({"name": "time"}));
    talk.send(&call, BOB).await.refused(404, -32001);
    talk.send(&call, NO_KEY).await.refused(404, -32001);
    talk.send(&call, WRONG).await.refused(401, -32001);
    talk.send(&call, ALICE).await.accepted();
    // An anonymous pipe is never transferred: its reader would get the responses for the new owner.
    let mut talk = Talk::open(&server, Way::Pipe, NO_KEY).await;
    talk.send(&call, ALICE).await.refused(404, -32001);
    talk.send(&request("tools/call", json!({"name": "whoami"})), ALICE).await.refused(404, -32001);
    assert_eq!(talk.call("time", NO_KEY).await.text(), "noon");
}

#[tokio::test]
async fn each_post_to_a_pipe_is_authorized() {
    let settings = crate::client::trusting(Settings::default());
    let server = TestServer::of(mixed(), settings).await;
    const PLAIN: Credentials = &[("x-caller", "u")];
    const GRANTED: Credentials = &[("x-caller", "u"), ("x-scopes", "orders.read orders.write")];
    for way in WAYS {
        let mut talk = Talk::open(&server, way, PLAIN).await;
        talk.call("write", PLAIN).await.refused(403);
        assert_eq!(talk.call("write", GRANTED).await.text(), "u", "{way:?}");
        talk.call("write", PLAIN).await.refused(403);
    }
}

#[tokio::test]
async fn an_anonymous_session_is_adopted_once() {
    let server = server().await;
    for revision in SESSIONS {
        let session = server.session(revision).await;
        server.send(&session.ping()).await.result();
        server.send(&session.call(1, "whoami", json!({}))).await.refused(401, -32001);
        let mut open = server.open(&session.get()).await;
        // The client has its token now.
        let reply = server.send(&carrying(session.call(1, "whoami", json!({})), ALICE)).await;
        assert_eq!(reply.tool_text(), "key:alice", "{revision}");
        // The open stream may have another reader, so it ends. Later messages are retained for Alice.
        assert_eq!(open.rest().await, [] as [Value; 0]);
        server.server.catalog().add_tool(ToolEntry::new(format!("{revision}-kept"), who)).unwrap();
        server.send(&session.resume("1::0")).await.refused(404, -32001);
        let mut open = server.open(&carrying(session.resume("1::0"), ALICE)).await;
        assert_eq!(open.message().await.unwrap()["method"], "notifications/tools/list_changed");
        for ask in [session.ping(), session.get(), session.resume("1::0"), session.delete()] {
            server.send(&ask).await.refused(404, -32001);
            server.send(&carrying(ask, BOB)).await.refused(404, -32001);
        }
        let mut stream = server.open(&carrying(session.get(), ALICE)).await;
        server.server.catalog().add_tool(ToolEntry::new(revision, who)).unwrap();
        assert_eq!(stream.message().await.unwrap()["method"], "notifications/tools/list_changed");
        server.send(&carrying(session.ping(), ALICE)).await.result();
    }
}

#[tokio::test]
async fn invalid_credentials_adopt_no_session() {
    let server = server().await;
    let session = server.session(LATEST).await;
    server.send(&carrying(session.ping(), WRONG)).await.result();
    server.send(&session.ping()).await.result();
    server.send(&carrying(session.ping(), ALICE)).await.result();
    server.send(&carrying(session.ping(), WRONG)).await.refused(401, -32001);
}

#[tokio::test]
async fn adopted_sessions_count_as_their_callers() {
    let session_limits = SessionLimits { per_caller: 2, anonymous: 2, ..SessionLimits::default() };
    let server = TestServer::of(mixed(), Settings { session_limits, ..with_keys() }).await;
    let adopt = async |session: &Session| server.send(&carrying(session.ping(), ALICE)).await;
    let first = server.session(LATEST).await;
    adopt(&first).await.result();
    adopt(&server.session(LATEST).await).await.result();
    // There is room for anonymous sessions again, and one more of Alice replaces her first.
    let [third, fourth] = [server.session(LATEST).await, server.session(LATEST).await];
    adopt(&third).await.result();
    adopt(&first).await.refused(404, -32001);
    server.send(&fourth.ping()).await.result();
    // While both of her sessions are in use, there is no room for another.
    let second = server.session_of(LATEST, |ask| carrying(ask, ALICE)).await;
    let _streams =
        [server.open(&carrying(third.get(), ALICE)).await, server.open(&carrying(second.get(), ALICE)).await];
    adopt(&fourth).await.refused(404, -32001);
    assert_eq!(server.send(&carrying(Ask::initialize(LATEST), ALICE)).await.status, 503);
    server.send(&carrying(fourth.ping(), BOB)).await.result();
}

/// Builds a modern request of a client with all capabilities.
fn alone(method: &str, params: Value) -> Ask {
    let capabilities = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    Ask::enveloped(method, params, capabilities)
}

#[tokio::test]
async fn a_task_belongs_to_its_caller() {
    let server = server().await;
    let made = server.send(&carrying(alone("tools/call", json!({"name": "job"})), ALICE)).await.result();
    assert_eq!(made["resultType"], "task");
    let task = json!({"taskId": made["taskId"], "inputResponses": {}});
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for stranger in [BOB, NO_KEY, WRONG] {
            let reply = server.send(&carrying(alone(method, task.clone()), stranger)).await;
            assert_eq!(reply.json()["error"]["code"], -32602, "{method}");
        }
    }
    let found = server.send(&carrying(alone("tasks/get", task), ALICE)).await.result();
    assert_eq!(found["status"], "working");
}

#[tokio::test]
async fn a_subscription_gets_only_the_tasks_of_its_caller() {
    let server = server().await;
    let made = server.send(&carrying(alone("tools/call", json!({"name": "job"})), ALICE)).await.result();
    let task = made["taskId"].clone();
    let listen = alone("subscriptions/listen", json!({"notifications": {"taskIds": [task]}}));
    let mut bob = server.open(&carrying(listen.clone(), BOB)).await;
    let mut anonymous = server.open(&listen).await;
    let mut alice = server.open(&carrying(listen, ALICE)).await;
    for stranger in [&mut bob, &mut anonymous] {
        assert_eq!(stranger.message().await.unwrap()["params"]["notifications"], json!({}));
    }
    assert_eq!(alice.message().await.unwrap()["params"]["notifications"]["taskIds"], json!([task]));
    server.send(&carrying(alone("tasks/cancel", json!({"taskId": task})), ALICE)).await.result();
    assert_eq!(alice.message().await.unwrap()["params"]["taskId"], task);
    bob.stays_silent(Duration::from_millis(100)).await;
    anonymous.stays_silent(Duration::from_millis(20)).await;
}

#[tokio::test]
async fn a_request_state_belongs_to_its_caller() {
    let server = server().await;
    let asked =
        server.send(&carrying(alone("tools/call", json!({"name": "ask_name"})), ALICE)).await.result();
    assert_eq!(asked["resultType"], "input_required");
    let retry = alone(
        "tools/call",
        json!({"name": "ask_name", "requestState": asked["requestState"],
        "inputResponses": {"name": {"action": "accept", "content": {"name": "Ada"}}}}),
    );
    server.send(&retry).await.refused(401, -32001);
    assert_eq!(server.send(&carrying(retry.clone(), BOB)).await.json()["error"]["code"], -32602);
    assert_eq!(server.send(&carrying(retry, ALICE)).await.tool_text(), "Hello, Ada!");
}

#[tokio::test]
async fn only_the_caller_can_answer_an_elicitation() {
    let server = server().await;
    let session = server.session_of(LATEST, |ask| carrying(ask, ALICE)).await;
    let mut stream = server.open(&carrying(session.call(1, "ask_name", json!({})), ALICE)).await;
    let question = stream.message().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let answer = |name: &str| {
        let result = json!({"action": "accept", "content": {"name": name}});
        session.post(json!({"jsonrpc": "2.0", "id": question["id"], "result": result}).to_string())
    };
    server.send(&carrying(answer("Bob"), BOB)).await.refused(404, -32001);
    server.send(&answer("Anonymous")).await.refused(404, -32001);
    server.send(&carrying(answer("Alice"), ALICE)).await.accepted();
    assert_eq!(text_of(&stream.message().await.unwrap()["result"]), "Hello, Alice!");
}

#[tokio::test]
async fn every_request_of_a_session_needs_credentials() {
    let server = TestServer::of(protected(), with(Auth::new(keys()).opening(AnonymousAccess::Closed))).await;
    for revision in SESSIONS {
        let session = server.session_of(revision, |ask| carrying(ask, ALICE)).await;
        for ask in [
            session.ping(),
            session.call(1, "whoami", json!({})),
            session.notify("notifications/initialized", json!({})),
            session.post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            session.get(),
            session.resume("1::0"),
            session.delete(),
        ] {
            server.send(&ask).await.refused(401, -32001);
        }
        server.send(&carrying(session.ping(), ALICE)).await.result();
    }
}

/// Clients choose the request ids, so two callers may use the same.
#[tokio::test]
async fn only_its_caller_can_cancel_a_call() {
    let server = server().await;
    // The revisions with elicitation.
    for revision in ["2025-06-18", "2025-11-25"] {
        let alice = server.session_of(revision, |ask| carrying(ask, ALICE)).await;
        let bob = server.session_of(revision, |ask| carrying(ask, BOB)).await;
        let mut stream = server.open(&carrying(alice.call(1, "ask_name", json!({})), ALICE)).await;
        let question = stream.message().await.unwrap();
        assert_eq!(question["method"], "elicitation/create", "{revision}");
        let cancel = |session: &Session| session.notify("notifications/cancelled", json!({"requestId": 1}));
        server.send(&carrying(cancel(&bob), BOB)).await.accepted();
        server.send(&carrying(cancel(&alice), BOB)).await.refused(404, -32001);
        server.send(&cancel(&alice)).await.refused(404, -32001);
        let stray =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        let stray = Ask::post(stray.to_string()).header("mcp-protocol-version", crate::client::MODERN);
        server.send(&carrying(stray, BOB)).await;
        // A session of another caller cannot answer the elicitation either.
        let result = json!({"action": "accept", "content": {"name": "Bob"}});
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result}).to_string();
        server.send(&carrying(bob.post(answer.clone()), BOB)).await;
        let own = answer.replace("Bob", "Alice");
        server.send(&carrying(alice.post(own), ALICE)).await.accepted();
        assert_eq!(text_of(&stream.message().await.unwrap()["result"]), "Hello, Alice!", "{revision}");
    }
}
