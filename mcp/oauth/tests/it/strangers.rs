//! Isolation of callers with the same name: two issuers that both have a subject `alice`.

use bindpost_mcp_http::Auth;
use bindpost_mcp_oauth::Issuer;
use bindpost_mcp_server::protocol::client::ElicitParams;
use bindpost_mcp_server::{Context, ResourceEntry, Server, TaskLimits, TaskSupport, ToolEntry, ToolError};
use reqwest::Method;
use serde_json::{Value, json};

use crate::issuer::{TestIssuer, within};
use crate::requests::{AUDIENCE, trusting};
use crate::talk::{Bearer, Events, Talk, TestServer, WAYS, Way};

fn server() -> Server {
    Server::builder("owned", "1.0.0")
        .tasks(TaskLimits::default())
        .tool(ToolEntry::new("time", async || "noon").anonymous())
        .tool(
            ToolEntry::new("job", async || std::future::pending::<&str>().await).task(TaskSupport::Required),
        )
        .tool(
            ToolEntry::new("open_job", async || std::future::pending::<&str>().await)
                .task(TaskSupport::Required)
                .anonymous(),
        )
        .tool(ToolEntry::new("ask", ask))
        .resource(ResourceEntry::text("menu://staff", "staff", "steak"))
        .build()
        .unwrap()
}

async fn ask(context: Context) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let answer = context.elicit_with("name", ElicitParams::form("Your name?", schema)).await?;
    Ok(answer.field("name").and_then(Value::as_str).unwrap_or_default().to_owned())
}

struct Callers {
    server: TestServer,
    alice: String,
    /// Tokens of other callers that resemble Alice's.
    others: Vec<String>,
    _issuers: [TestIssuer; 2],
}

impl Callers {
    async fn start() -> Callers {
        let issuers = [TestIssuer::start().await, TestIssuer::start().await];
        let [one, two] = &issuers;
        let tokens = trusting(one).issuer(Issuer::new(&two.url)).build().unwrap();
        let alice = one.token(json!({})).await;
        let others = vec![
            // The same subject of another issuer.
            two.token(json!({})).await,
            // Subjects that equal the id of the other Alice, or nearly.
            two.token(json!({"sub": format!("{}|alice", one.url)})).await,
            one.token(json!({"sub": "alice "})).await,
            one.token(json!({"sub": "Alice"})).await,
            one.token(json!({"sub": "|alice"})).await,
            // Claims by which other systems identify users.
            one.token(
                json!({"sub": "bob", "oid": "alice", "upn": "alice", "email": "alice", "name": "alice"}),
            )
            .await,
            // An application of that name.
            two.token(json!({"client_id": "alice", "idtyp": "app", "roles": ["Admin"]})).await,
        ];
        let server = TestServer::with_auth(server(), Auth::new(tokens).resource(AUDIENCE)).await;
        Callers { server, alice, others, _issuers: issuers }
    }

    /// Returns all other callers, including anonymous ones.
    fn strangers(&self) -> impl Iterator<Item = Bearer<'_>> {
        self.others.iter().map(|token| Some(token.as_str())).chain([None])
    }

    async fn alone(&self, method: &str, params: Value, bearer: Bearer<'_>) -> Value {
        Talk::new(&self.server, Way::Alone).ask(method, params, bearer).await.message
    }

    /// Opens a subscription and returns its first message.
    async fn listen(&self, filter: Value, bearer: Bearer<'_>) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
            "params": {"notifications": filter, "_meta": meta}});
        let request = self.server.request(Method::POST, "/mcp", bearer);
        let request = request.header("content-type", "application/json");
        let request =
            request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "subscriptions/listen");
        let response = within(request.body(message.to_string()).send()).await.unwrap();
        serde_json::from_str(&Events::of(response).next().await.unwrap()).unwrap()
    }
}

#[tokio::test]
async fn a_task_does_not_exist_for_a_namesake() {
    let callers = Callers::start().await;
    let call = json!({"name": "job", "arguments": {}});
    let made = callers.alone("tools/call", call, Some(&callers.alice)).await["result"].clone();
    assert_eq!(made["resultType"], "task", "{made}");
    let task = json!({"taskId": made["taskId"], "inputResponses": {}});
    let missing = json!({"taskId": "no such task", "inputResponses": {}});
    for stranger in callers.strangers() {
        for method in ["tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list"] {
            let refused = callers.alone(method, task.clone(), stranger).await;
            let unknown = callers.alone(method, missing.clone(), stranger).await;
            assert_eq!(refused["error"]["code"], unknown["error"]["code"], "{method} {refused}");
            let [refused, unknown] = [refused, unknown].map(|answer| answer["error"]["message"].to_string());
            let spelled = refused.replace(made["taskId"].as_str().unwrap(), "no such task");
            assert_eq!(spelled, unknown, "the response must not reveal that the task exists");
        }
        let heard = callers.listen(json!({"taskIds": [made["taskId"]]}), stranger).await;
        assert_eq!(heard["params"]["notifications"], json!({}), "{heard}");
    }
    let found = callers.alone("tasks/get", task.clone(), Some(&callers.alice)).await;
    assert_eq!(found["result"]["status"], "working", "it was not cancelled: {found}");
    let heard = callers.listen(json!({"taskIds": [made["taskId"]]}), Some(&callers.alice)).await;
    assert_eq!(heard["params"]["notifications"]["taskIds"], json!([made["taskId"]]));
}

/// A task created without credentials belongs to anonymous callers with its id, not to authenticated ones.
#[tokio::test]
async fn an_anonymous_task_does_not_exist_for_authenticated_callers() {
    let callers = Callers::start().await;
    let call = json!({"name": "open_job", "arguments": {}});
    let made = callers.alone("tools/call", call, None).await["result"].clone();
    let task = json!({"taskId": made["taskId"], "inputResponses": {}});
    for known in [&callers.alice].into_iter().chain(&callers.others) {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let refused = callers.alone(method, task.clone(), Some(known)).await;
            assert_eq!(refused["error"]["code"], -32602, "{method} {refused}");
        }
    }
    assert_eq!(callers.alone("tasks/get", task, None).await["result"]["status"], "working");
}

#[tokio::test]
async fn a_session_and_its_subscriptions_do_not_exist_for_a_namesake() {
    let callers = Callers::start().await;
    for way in WAYS.into_iter().filter(|way| *way != Way::Alone) {
        // Opened with a token, or opened without one and adopted.
        for opened_by in [Some(callers.alice.as_str()), None] {
            if way == Way::Pipe && opened_by.is_none() {
                continue;
            }
            let mut talk = Talk::open(&callers.server, way, opened_by).await;
            let staff = json!({"uri": "menu://staff"});
            let subscribed = talk.ask("resources/subscribe", staff.clone(), Some(&callers.alice)).await;
            assert_eq!(subscribed.status, 200, "{way:?}");
            for stranger in callers.strangers() {
                for method in ["resources/subscribe", "resources/unsubscribe", "ping", "tools/list"] {
                    let refused = talk.ask(method, staff.clone(), stranger).await;
                    // Reading is rejected before the session is looked up.
                    assert!(matches!(refused.status, 401 | 404), "{way:?} {method} {refused:?}");
                }
                let Way::Session(revision) = way else { continue };
                let session = talk.session.clone().unwrap();
                for method in [Method::GET, Method::DELETE] {
                    let request = callers.server.request(method, "/mcp", stranger);
                    let request =
                        request.header("mcp-session-id", &session).header("mcp-protocol-version", revision);
                    let answer = within(request.header("last-event-id", "1::0").send()).await.unwrap();
                    assert_eq!(answer.status(), 404, "{way:?}");
                }
            }
            let mine = talk.ask("resources/unsubscribe", staff, Some(&callers.alice)).await;
            assert_eq!(mine.status, 200, "{way:?}");
        }
    }
}

#[tokio::test]
async fn a_request_state_does_not_exist_for_a_namesake() {
    let callers = Callers::start().await;
    let meta = |state: &Value| {
        json!({"name": "ask", "arguments": {}, "requestState": state,
            "inputResponses": {"name": {"action": "accept", "content": {"name": "Ada"}}}})
    };
    let mut talk = Talk::new(&callers.server, Way::Alone);
    talk.capabilities = json!({"elicitation": {}});
    let asked = talk.call("ask", Some(&callers.alice)).await.message;
    let state = &asked["result"]["requestState"];
    assert!(state.is_string(), "{asked}");
    for stranger in callers.strangers() {
        let refused = talk.ask("tools/call", meta(state), stranger).await;
        assert!(refused.status == 401 || refused.message["error"]["code"] == -32602, "{refused:?}");
    }
    assert_eq!(talk.ask("tools/call", meta(state), Some(&callers.alice)).await.text(), "Ada");
}
