//! Hooks around tool calls, resource reads and prompts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindpost_mcp_server::protocol::{CallToolResult, Revision};
use bindpost_mcp_server::testing::{ElicitationRequest, TestClient, TestError};
use bindpost_mcp_server::{
    Args, Caller, Context, Identity, NextHandler, Operation, OperationResult, PromptEntry, ResourceEntry,
    Server, ServerBuilder, ServerLimits, TaskLimits, TaskSupport, TemplateEntry, ToolEntry, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Semaphore;

const BOTH: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

type HookLog = Arc<Mutex<Vec<String>>>;

/// Adds a hook that records its start and its end.
fn record(builder: ServerBuilder, log: &HookLog, label: &'static str) -> ServerBuilder {
    let log = log.clone();
    builder.around(move |operation: Operation, next: NextHandler| {
        let log = log.clone();
        async move {
            let caller = operation.caller().id().unwrap_or("anonymous").to_owned();
            let (kind, entry) = (operation.entry().kind(), operation.entry().name().to_owned());
            let line = format!("{label} {caller} {kind} {entry} {}", operation.name());
            log.lock().unwrap().push(format!("{line} starts"));
            let result = next.run(operation).await;
            log.lock().unwrap().push(format!("{label} {}", if result.is_ok() { "ok" } else { "error" }));
            result
        }
    })
}

fn builder() -> ServerBuilder {
    Server::builder("s", "1")
        .tool(ToolEntry::new("t", async || "tool"))
        .tool(ToolEntry::new("fails", async || Err::<String, _>(ToolError::new("no luck"))))
        .resource(ResourceEntry::text("test://fixed", "r", "fixed"))
        .template(TemplateEntry::new("test://{id}/x", "r", async || "templated"))
        .prompt(PromptEntry::new("p", async || "prompt"))
}

#[tokio::test]
async fn hooks_nest_in_the_order_of_their_registration() {
    let log = HookLog::default();
    let server = record(record(builder(), &log, "outer"), &log, "inner").build().unwrap();
    let mut client = TestClient::connect_as(&server, Caller::new("ada"));
    let mut seen = async |method: &str, params| {
        client.request(method, params).await.unwrap();
        std::mem::take(&mut *log.lock().unwrap())
    };
    for (method, params, line, end) in [
        ("tools/call", json!({"name": "t"}), "ada tool t t", "ok"),
        ("tools/call", json!({"name": "fails"}), "ada tool fails fails", "error"),
        ("resources/read", json!({"uri": "test://fixed"}), "ada resource test://fixed test://fixed", "ok"),
        (
            "resources/read",
            json!({"uri": "test://1/x"}),
            "ada resource template test://{id}/x test://1/x",
            "ok",
        ),
        ("prompts/get", json!({"name": "p"}), "ada prompt p p", "ok"),
    ] {
        let expected = [
            format!("outer {line} starts"),
            format!("inner {line} starts"),
            format!("inner {end}"),
            format!("outer {end}"),
        ];
        assert_eq!(seen(method, params).await, expected);
    }
    // An unknown tool and a list are not operations.
    client.request("tools/call", json!({"name": "unknown"})).await.unwrap_err();
    client.request("tools/list", json!({})).await.unwrap();
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_hook_can_replace_or_change_the_result() {
    let server = builder().around(async |operation: Operation, next: NextHandler| match operation.name() {
        "t" => Ok(CallToolResult::text("replaced").into()),
        "p" => Ok(CallToolResult::text("of another kind").into()),
        "test://fixed" => Err(ToolError::new("closed")),
        _ => match next.run(operation).await {
            Err(error) => Ok(CallToolResult::text(format!("saved from {error}")).into()),
            Ok(OperationResult::Resource(mut result)) => {
                result.contents.clear();
                Ok(result.into())
            }
            other => other,
        },
    });
    let server = server.build().unwrap();
    let mut client = TestClient::connect(&server);
    assert_eq!(client.call("t", ()).await.unwrap().text(), "replaced");
    assert_eq!(client.call("fails", ()).await.unwrap().text(), "saved from no luck");
    let read = client.request("resources/read", json!({"uri": "test://1/x"})).await.unwrap();
    assert_eq!(read["contents"], json!([]));
    let error = client.request("resources/read", json!({"uri": "test://fixed"})).await.unwrap_err();
    assert!(error.message.ends_with("closed"), "{error}");
    let error = client.request("prompts/get", json!({"name": "p"})).await.unwrap_err();
    assert!(error.message.ends_with("the result has the wrong kind"), "{error}");
}

#[tokio::test]
async fn a_panic_in_a_hook_ends_one_call() {
    let server = builder().around(async |operation: Operation, next: NextHandler| {
        assert_ne!(operation.name(), "t", "a hook that panics");
        next.run(operation).await
    });
    let server = server.build().unwrap();
    let mut client = TestClient::connect(&server);
    let error = client.request("tools/call", json!({"name": "t"})).await.unwrap_err();
    assert_eq!(error.code, -32603, "{error}");
    client.request("prompts/get", json!({"name": "p"})).await.unwrap();
}

/// Records the end of a hook that does not return.
struct DropRecord {
    log: HookLog,
    armed: bool,
}

impl Drop for DropRecord {
    fn drop(&mut self) {
        if self.armed {
            self.log.lock().unwrap().push("dropped".to_owned());
        }
    }
}

/// Adds a hook that records its start, its result, and whether it was dropped.
fn watch(builder: ServerBuilder, log: &HookLog) -> ServerBuilder {
    let log = log.clone();
    builder.around(move |operation: Operation, next: NextHandler| {
        let log = log.clone();
        async move {
            log.lock().unwrap().push("starts".to_owned());
            let mut record = DropRecord { log: log.clone(), armed: true };
            let result = next.run(operation).await;
            record.armed = false;
            log.lock().unwrap().push(if result.is_ok() { "ok" } else { "error" }.to_owned());
            result
        }
    })
}

fn take(log: &HookLog) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Consent {
    agrees: bool,
}

async fn ask(context: Context) -> Result<String, ToolError> {
    let consent: Consent = context.elicit("Do you agree?").await?.required()?;
    Ok(format!("agrees: {}", consent.agrees))
}

/// Connects a client whose user agrees to everything.
async fn connect(server: &Server, revision: Revision) -> TestClient {
    TestClient::builder(server)
        .revision(revision)
        .tasks()
        .on_elicitation(|form: ElicitationRequest| form.accept(&Consent { agrees: true }))
        .connect()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_rejected_request_does_not_reach_a_hook() {
    let log = HookLog::default();
    let add = ToolEntry::new("agree", async |Args(consent): Args<Consent>| consent.agrees.to_string());
    let server = watch(builder(), &log).tool(add.scopes(["write"])).build().unwrap();
    for revision in BOTH {
        let connect =
            |caller: Identity| TestClient::builder(&server).revision(revision).caller(caller).connect();
        let mut client = connect(Identity::new("bob").user()).await.unwrap();
        assert_eq!(client.call("agree", json!({"agrees": true})).await.unwrap_err().code(), Some(-32001));
        let mut client = connect(Identity::new("ada").user().scope("write")).await.unwrap();
        assert!(client.call("agree", json!({"agrees": 7})).await.is_err());
        assert!(client.read("test://unknown").await.is_err());
        assert_eq!(take(&log), Vec::<String>::new());
        assert_eq!(client.call("agree", json!({"agrees": true})).await.unwrap().text(), "true");
        assert_eq!(take(&log), ["starts", "ok"]);
    }
}

#[tokio::test]
async fn a_queued_call_does_not_run_its_hooks() {
    let log = HookLog::default();
    let gate = Arc::new(Semaphore::new(0));
    let closed = gate.clone();
    let wait = move || {
        let gate = closed.clone();
        async move { gate.acquire().await.map(|permit| permit.forget()).map_or("closed", |()| "open") }
    };
    let limits = ServerLimits { running_calls: 1, ..ServerLimits::default() };
    let server = watch(Server::builder("s", "1"), &log).limits(limits).tool(ToolEntry::new("wait", wait));
    let server = server.build().unwrap();
    for revision in BOTH {
        let mut client = connect(&server, revision).await;
        let first = client.start_call("wait", ()).await.unwrap();
        let second = client.start_call("wait", ()).await.unwrap();
        client.ping().await.unwrap();
        assert_eq!(take(&log), ["starts"]);
        gate.add_permits(1);
        assert_eq!(first.await.unwrap().text(), "open");
        gate.add_permits(1);
        assert_eq!(second.await.unwrap().text(), "open");
        assert_eq!(take(&log), ["ok", "starts", "ok"]);
    }
}

#[tokio::test]
async fn the_result_of_a_hook_is_checked_against_the_output_schema() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
    let counts = ToolEntry::new("counts", async || CallToolResult::structured(json!({"n": 1})));
    let server = Server::builder("s", "1").tool(counts.output_schema(schema)).around(
        async |operation: Operation, next: NextHandler| {
            next.run(operation).await?;
            Ok(CallToolResult::structured(json!({"n": "one"})).into())
        },
    );
    let mut client = TestClient::connect(&server.build().unwrap());
    let error = client.call("counts", ()).await.unwrap_err();
    assert!(error.to_string().contains("does not match its output schema"), "{error}");
}

#[tokio::test]
async fn hooks_of_a_handler_that_asks_run_once_in_a_session_and_again_in_modern_revisions() {
    let log = HookLog::default();
    let server = watch(builder(), &log).tool(ToolEntry::new("ask", ask)).build().unwrap();
    for (revision, expected) in
        BOTH.into_iter().zip([&["starts", "ok"][..], &["starts", "dropped", "starts", "ok"]])
    {
        let mut client = connect(&server, revision).await;
        assert_eq!(client.call("ask", ()).await.unwrap().text(), "agrees: true");
        assert_eq!(take(&log), expected, "{revision}");
    }
}

#[tokio::test]
async fn a_hook_can_ask_the_user() {
    let server = builder().around(async |operation: Operation, next: NextHandler| {
        let consent: Consent = operation.context().elicit("May I?").await?.required()?;
        match consent.agrees {
            true => next.run(operation).await,
            false => Err(ToolError::new("the user does not agree")),
        }
    });
    // The questions of the hook and of the handler have the same form.
    let server = server.tool(ToolEntry::new("ask", ask)).build().unwrap();
    for revision in BOTH {
        let questions = Arc::new(Mutex::new(Vec::new()));
        let asked = questions.clone();
        let client = TestClient::builder(&server).revision(revision);
        let client = client.on_elicitation(move |form: ElicitationRequest| {
            asked.lock().unwrap().push(form.message().to_owned());
            form.accept(&Consent { agrees: asked.lock().unwrap().len() < 4 })
        });
        let mut client = client.connect().await.unwrap();
        assert_eq!(client.call("ask", ()).await.unwrap().text(), "agrees: true");
        assert_eq!(client.read("test://fixed").await.unwrap().text(), "fixed");
        assert_eq!(*questions.lock().unwrap(), ["May I?", "Do you agree?", "May I?"]);
        assert_eq!(client.call("t", ()).await.unwrap_err().to_string(), "the user does not agree");
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_of_a_task_run_in_the_task() {
    let log = HookLog::default();
    let slow = async |context: Context| -> Result<String, ToolError> {
        let consent = ask(context).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        consent
    };
    let becomes_task = async |context: Context| -> Result<String, ToolError> {
        context.go_on_as_task().await;
        ask(context).await
    };
    let fails = async |context: Context| {
        context.go_on_as_task().await;
        Err::<String, _>(ToolError::new("no luck"))
    };
    let endless = async || std::future::pending::<String>().await;
    let server = watch(Server::builder("s", "1"), &log)
        .tasks(TaskLimits::default())
        .tool(ToolEntry::new("slow", slow).task(TaskSupport::WhenPossible))
        .tool(ToolEntry::new("becomes_task", becomes_task))
        .tool(ToolEntry::new("fails", fails))
        .tool(ToolEntry::new("endless", endless).task(TaskSupport::Required))
        .build()
        .unwrap();
    let mut client = connect(&server, Revision::V2026_07_28).await;
    for tool in ["slow", "becomes_task"] {
        let mut call = client.start_call(tool, ()).await.unwrap();
        assert!(call.task_id().await.is_some(), "{tool}");
        assert_eq!(call.await.unwrap().text(), "agrees: true");
        // The task waits for the answer, so that the hook runs once.
        assert_eq!(take(&log), ["starts", "ok"], "{tool}");
    }
    assert_eq!(client.call("fails", ()).await.unwrap_err().to_string(), "no luck");
    assert_eq!(take(&log), ["starts", "error"]);

    let mut call = client.start_call("endless", ()).await.unwrap();
    assert!(call.task_id().await.is_some());
    call.cancel().await;
    assert_eq!(call.await, Err(TestError::Cancelled));
    while log.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(take(&log), ["starts", "dropped"]);
}

#[tokio::test(start_paused = true)]
async fn hooks_are_dropped_when_a_call_is_cancelled_or_times_out() {
    let log = HookLog::default();
    let endless = ToolEntry::new("endless", async || std::future::pending::<String>().await);
    let server = watch(builder(), &log)
        .around(async |operation: Operation, next: NextHandler| match operation.name() {
            // The timeout includes the hook.
            "t" => std::future::pending().await,
            _ => next.run(operation).await,
        })
        .tool(endless)
        .build()
        .unwrap();
    for revision in BOTH {
        let mut client = connect(&server, revision).await;
        for tool in ["endless", "t"] {
            let error = client.call(tool, ()).await.unwrap_err();
            assert_eq!(error.to_string(), format!("{tool:?} timed out after 60 s"));
            assert_eq!(take(&log), ["starts", "dropped"]);
        }
        let mut call = client.start_call("endless", ()).await.unwrap();
        assert_eq!(take(&log), ["starts"]);
        call.cancel().await;
        assert_eq!(call.await, Err(TestError::Cancelled));
        while log.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(take(&log), ["dropped"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_waits_for_the_cancellation_cleans_up() {
    let log = HookLog::default();
    let hook_log = log.clone();
    let endless = ToolEntry::new("endless", async || std::future::pending::<String>().await);
    let server =
        Server::builder("s", "1").tool(endless).around(move |operation: Operation, next: NextHandler| {
            let log = hook_log.clone();
            async move {
                let context = operation.context().clone();
                tokio::select! {
                    result = next.run(operation) => result,
                    () = context.cancelled() => {
                        tokio::task::yield_now().await;
                        log.lock().unwrap().push("cleaned up".to_owned());
                        Err(ToolError::new("the result is dropped"))
                    }
                }
            }
        });
    let server = server.build().unwrap();
    for revision in BOTH {
        let mut client = connect(&server, revision).await;
        let mut call = client.start_call("endless", ()).await.unwrap();
        call.cancel().await;
        assert_eq!(call.await, Err(TestError::Cancelled));
        while log.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(take(&log), ["cleaned up"]);
        let error = client.call("endless", ()).await.unwrap_err();
        assert_eq!(error.to_string(), "\"endless\" timed out after 60 s");
        while log.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(take(&log), ["cleaned up"]);
    }
}

#[tokio::test]
async fn a_panic_in_a_handler_or_a_hook_drops_the_hooks_around_it() {
    let log = HookLog::default();
    let panics = ToolEntry::new("panics", async || -> String { panic!("on purpose") });
    let later = ToolEntry::new("panics_later", async || -> String {
        tokio::task::yield_now().await;
        panic!("on purpose")
    });
    let server = watch(builder(), &log)
        .tasks(TaskLimits::default())
        .around(async |operation: Operation, next: NextHandler| {
            assert_ne!(operation.name(), "t", "a hook that panics");
            next.run(operation).await
        })
        .tool(panics)
        .tool(later)
        .tool(ToolEntry::new("panics_as_task", async |context: Context| -> String {
            context.go_on_as_task().await;
            panic!("on purpose")
        }));
    let server = server.build().unwrap();
    for revision in BOTH {
        let mut client = connect(&server, revision).await;
        for tool in ["panics", "panics_later", "t", "panics_as_task"] {
            let error = client.call(tool, ()).await.unwrap_err();
            assert_eq!(error.code(), Some(-32603), "{tool}: {error}");
            assert_eq!(take(&log), ["starts", "dropped"], "{tool}");
        }
        assert_eq!(client.read("test://1/x").await.unwrap().text(), "templated");
        assert_eq!(take(&log), ["starts", "ok"]);
    }
}
