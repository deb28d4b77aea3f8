//! `testing::TestClient`: each feature, in legacy and modern revisions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindpost_mcp_server::protocol::Revision;
use bindpost_mcp_server::protocol::lifecycle::{Implementation, LogLevel};
use bindpost_mcp_server::testing::{
    ElicitationRequest, LogRecord, ProgressUpdate, SamplingRequest, ServerChange, TestClient,
    TestClientBuilder, TestError,
};
use bindpost_mcp_server::{
    Args, Caller, Context, Elicitation, Identity, Json, ListVisibility, PromptEntry, ResourceEntry, Server,
    ServerBuilder, TaskLimits, TaskSupport, TemplateEntry, ToolEntry, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const BOTH: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Order {
    id: u32,
    items: Vec<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Table {
    guests: u8,
}

async fn book(context: Context) -> Result<String, ToolError> {
    match context.elicit::<Table>("Which table?").await? {
        Elicitation::Accepted(table) => Ok(format!("a table for {}", table.guests)),
        Elicitation::Declined => Ok("no table".to_owned()),
        Elicitation::Cancelled => Err(ToolError::new("the user closed the form")),
    }
}

async fn sum_up(context: Context) -> Result<String, ToolError> {
    let answer = context.sample("Sum up: tea.").system_prompt("Be short.").max_tokens(20).await?;
    Ok(format!("{} says {}", answer.model, answer.text().unwrap_or_default()))
}

async fn copy(context: Context) -> &'static str {
    context.debug("starts").await;
    for step in 1..=2 {
        context.progress(f64::from(step), Some(2.0), Some(&format!("file {step}"))).await;
    }
    context.log(LogLevel::Warning, Some("disk"), json!({"free": 3})).await;
    "copied"
}

fn builder() -> ServerBuilder {
    Server::builder("s", "1")
        .tool(ToolEntry::new("same", async |Args(order): Args<Order>| Json(order)))
        .tool(ToolEntry::new("double", async |Args(table): Args<Table>| table.guests * 2))
        .tool(ToolEntry::new("fails", async || Err::<String, _>(ToolError::new("no luck"))))
        .tool(ToolEntry::new("book", book))
        .tool(ToolEntry::new("sum_up", sum_up))
        .tool(ToolEntry::new("copy", copy))
        .tool(ToolEntry::new("folders", async |context: Context| -> Result<String, ToolError> {
            let roots = context.roots().await?.roots;
            Ok(roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(" "))
        }))
        .tool(ToolEntry::new("sign_in", async |context: Context| -> Result<String, ToolError> {
            let answer = context.elicit_url("Sign in", "https://sign.in.example/").await?;
            Ok(format!("{answer:?}"))
        }))
        .resource(ResourceEntry::text("test://text", "text", "a text"))
        .resource(ResourceEntry::new("test://bytes", "bytes", async || vec![0_u8, 159, 146, 150]))
        .template(
            TemplateEntry::new("test://orders/{id}", "orders", async |context: Context| {
                Json(json!({"id": context.variable("id").and_then(|id| id.parse::<u32>().ok()), "items": []}))
            })
            .completer("id", |typed: &str| vec![format!("{typed}1"), format!("{typed}2")]),
        )
        .prompt(
            PromptEntry::new("greet", async |context: Context| -> Result<String, ToolError> {
                Ok(format!("Greet {}.", context.required_argument::<String>("name")?))
            })
            .argument("name", "The name", true)
            .argument("city", "The city", false)
            .completer("name", async |typed: String, context: Context| {
                let city: Option<String> = context.argument("city").unwrap_or_default();
                vec![format!("{typed} of {}", city.as_deref().unwrap_or("nowhere"))]
            }),
        )
}

fn server() -> Server {
    builder().build().unwrap()
}

/// Connects a client of this revision with the answers that `change` adds.
async fn connect(
    server: &Server,
    revision: Revision,
    change: impl FnOnce(TestClientBuilder) -> TestClientBuilder,
) -> TestClient {
    change(TestClient::builder(server).revision(revision)).connect().await.unwrap()
}

#[tokio::test]
async fn tools_are_called_with_typed_values() {
    for revision in BOTH {
        let mut client = connect(&server(), revision, |client| client).await;
        assert_eq!(client.revision(), revision);
        let order = Order { id: 7, items: vec!["tea".to_owned()] };
        assert_eq!(client.call_as::<Order>("same", &order).await.unwrap(), order);
        let reply = client.call("same", &order).await.unwrap();
        assert_eq!(reply.structured::<Order>().unwrap(), order);
        assert_eq!(serde_json::from_str::<Order>(&reply.text()).unwrap(), order);
        assert_eq!((reply.content().len(), reply.is_error()), (1, false));
        assert_eq!(client.call_as::<u8>("double", Table { guests: 4 }).await.unwrap(), 8);
        assert_eq!(client.call_as::<String>("copy", ()).await.unwrap(), "copied");
        let error = client.call_as::<u8>("copy", ()).await.unwrap_err();
        assert!(error.to_string().starts_with("the text \"copied\": expected value"), "{error}");
    }
}

#[tokio::test]
async fn errors_of_tools_and_of_the_protocol_differ() {
    for revision in BOTH {
        let mut client = connect(&server(), revision, |client| client).await;
        let TestError::Tool(reply) = client.call("fails", ()).await.unwrap_err() else { panic!() };
        assert!(reply.is_error() && reply.text() == "no luck");
        let error = client.call("unknown", ()).await.unwrap_err();
        assert_eq!(
            (error.code(), error.to_string()),
            (Some(-32602), "unknown tool: unknown (-32602)".into())
        );
        let error = client.read("test://unknown").await.unwrap_err();
        assert_eq!(error.error_object().unwrap().data, Some(json!({"uri": "test://unknown"})));
    }
}

#[tokio::test]
async fn resources_prompts_and_completions_are_typed() {
    for revision in BOTH {
        let mut client = connect(&server(), revision, |client| client).await;
        assert_eq!(client.read("test://text").await.unwrap().text(), "a text");
        let bytes = client.read("test://bytes").await.unwrap();
        assert_eq!((bytes.bytes().unwrap(), bytes.text()), (vec![0, 159, 146, 150], String::new()));
        let order = client.read("test://orders/7").await.unwrap();
        assert_eq!(order.decode::<Order>().unwrap(), Order { id: 7, items: vec![] });
        assert_eq!(order.mime_type(), Some("application/json"));

        let prompt = client.get_prompt("greet", json!({"name": "Ada"})).await.unwrap();
        assert_eq!((prompt.text(), prompt.messages().len()), ("Greet Ada.".to_owned(), 1));

        let names = client.complete_prompt("greet", "name", "Al", ()).await.unwrap();
        assert_eq!(names.values, ["Al of nowhere"]);
        let names = client.complete_prompt("greet", "name", "Al", json!({"city": "Oslo"})).await.unwrap();
        assert_eq!(names.values, ["Al of Oslo"]);
        let ids = client.complete_template("test://orders/{id}", "id", "4", ()).await.unwrap();
        assert_eq!(ids.values, ["41", "42"]);
        client.ping().await.unwrap();
    }
}

#[tokio::test]
async fn lists_have_all_pages() {
    for revision in BOTH {
        let server = builder().page_size(2).build().unwrap();
        let mut client = connect(&server, revision, |client| client).await;
        let names: Vec<String> =
            client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["same", "double", "fails", "book", "sum_up", "copy", "folders", "sign_in"]);
        assert_eq!(client.list_resources().await.unwrap().len(), 2);
        assert_eq!(client.list_templates().await.unwrap()[0].uri_template, "test://orders/{id}");
        assert_eq!(client.list_prompts().await.unwrap()[0].arguments.len(), 2);
        let lists: Value = serde_json::from_str(&client.snapshot_lists().await.unwrap()).unwrap();
        assert_eq!(lists["tools"].as_array().unwrap().len(), 8);
        assert_eq!(lists["prompts"][0]["name"], "greet");
    }
}

#[tokio::test]
async fn a_snapshot_has_the_offered_lists_only() {
    let entry = || ToolEntry::new("hello", async || "Hello!").description("Greets");
    let server = Server::builder("s", "1").tool(entry()).build().unwrap();
    let expected = r#"{
  "tools": [
    {
      "description": "Greets",
      "inputSchema": {
        "properties": {},
        "type": "object"
      },
      "name": "hello"
    }
  ]
}"#;
    for revision in BOTH {
        let mut client = connect(&server, revision, |client| client).await;
        let mut lists = client.snapshot_lists().await.unwrap();
        // The definition itself is not the subject of this test.
        lists = lists.replace("        \"additionalProperties\": false,\n", "");
        assert_eq!(lists, expected);
        assert_eq!(client.list_prompts().await.unwrap_err().code(), Some(-32601));
    }
}

#[tokio::test]
async fn closures_answer_forms() {
    for revision in BOTH {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let mut client = connect(&server(), revision, |client| {
            client.on_elicitation(move |form: ElicitationRequest| {
                assert_eq!(
                    (form.message(), form.fields(), form.url()),
                    ("Which table?", vec!["guests"], None)
                );
                assert_eq!(form.schema().unwrap()["required"], json!(["guests"]));
                match count.fetch_add(1, Ordering::Relaxed) {
                    0 => form.accept(&Table { guests: 4 }),
                    1 => form.decline(),
                    _ => form.cancel(),
                }
            })
        })
        .await;
        assert_eq!(client.call("book", ()).await.unwrap().text(), "a table for 4");
        assert_eq!(client.call("book", ()).await.unwrap().text(), "no table");
        assert_eq!(client.call("book", ()).await.unwrap_err().to_string(), "the user closed the form");
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }
}

#[tokio::test]
async fn closures_may_be_async_or_change_their_state() {
    for revision in BOTH {
        let mut client = connect(&server(), revision, |client| {
            let mut count = 0;
            client
                .on_elicitation(async |form: ElicitationRequest| {
                    tokio::task::yield_now().await;
                    assert_eq!(form.url(), Some("https://sign.in.example/"));
                    form.accept(&())
                })
                .on_sampling(move |request: SamplingRequest| {
                    count += 1;
                    assert_eq!((request.system_prompt(), request.max_tokens()), (Some("Be short."), 20));
                    format!("{} ({count})", request.text())
                })
                .roots(["file:///a", "file:///b"])
        })
        .await;
        assert_eq!(client.call("sign_in", ()).await.unwrap().text(), "Accepted(())");
        assert_eq!(client.call("sum_up", ()).await.unwrap().text(), "test-model says Sum up: tea. (1)");
        assert_eq!(client.call("sum_up", ()).await.unwrap().text(), "test-model says Sum up: tea. (2)");
        assert_eq!(client.call("folders", ()).await.unwrap().text(), "file:///a file:///b");
    }
}

#[tokio::test]
async fn a_missing_closure_is_named() {
    for revision in BOTH {
        let mut client = connect(&server(), revision, |client| client).await;
        for (tool, question, add) in [
            ("book", "elicitation", "on_elicitation"),
            ("sign_in", "elicitation", "on_elicitation"),
            ("sum_up", "sampling", "on_sampling"),
            ("folders", "roots", "roots"),
        ] {
            let error = client.call(tool, ()).await.unwrap_err();
            assert_eq!(error, TestError::Unanswered { question, add }, "{tool}");
            assert!(error.to_string().contains(&format!("add `.{add}(…)`")), "{error}");
        }
    }
}

#[tokio::test]
async fn an_invalid_answer_is_reported() {
    let answer = |form: ElicitationRequest| form.accept(&json!({"guests": "many"}));
    for revision in BOTH {
        let mut client = connect(&server(), revision, |client| client.on_elicitation(answer)).await;
        let error = client.call("book", ()).await.unwrap_err().to_string();
        let expected = "the client's answer is not valid:\n- /guests: \"many\" is not of type \"integer\"";
        assert_eq!(error, expected);
    }
}

#[tokio::test]
async fn a_handler_that_asks_without_an_end_is_reported() {
    let ask = async |context: Context| -> Result<String, ToolError> {
        loop {
            context.elicit::<Table>("Which table?").await?.required()?;
        }
    };
    let server = Server::builder("s", "1").tool(ToolEntry::new("t", ask)).build().unwrap();
    let answer = |form: ElicitationRequest| form.accept(&json!({"guests": 2}));
    let mut client = connect(&server, Revision::V2026_07_28, |client| client.on_elicitation(answer)).await;
    let error = client.call("t", ()).await.unwrap_err();
    assert_eq!(error, TestError::TooManyRounds { rounds: 16, questions: "Which table?".to_owned() });
}

#[tokio::test]
async fn a_rejected_sampling_request_reaches_the_handler_or_the_test() {
    let reject = |request: SamplingRequest| request.reject("not today");
    let mut client = connect(&server(), Revision::V2025_11_25, |client| client.on_sampling(reject)).await;
    let error = client.call("sum_up", ()).await.unwrap_err();
    assert!(matches!(&error, TestError::Tool(reply) if reply.text().contains("not today")), "{error}");
    let mut client = connect(&server(), Revision::V2026_07_28, |client| client.on_sampling(reject)).await;
    assert_eq!(client.call("sum_up", ()).await.unwrap_err().code(), Some(-1));
}

#[tokio::test]
async fn a_panic_in_a_closure_continues_in_the_test() {
    for revision in BOTH {
        let failing = move |_: ElicitationRequest| -> bindpost_mcp_server::testing::ElicitationAnswer {
            panic!("an assertion about {revision}")
        };
        let server = server();
        for started in [false, true] {
            let mut client = connect(&server, revision, |client| client.on_elicitation(failing)).await;
            let call = tokio::spawn(async move {
                if started {
                    let mut call = client.start_call("book", ()).await.unwrap();
                    assert_eq!(call.next_progress().await, None);
                    call.await
                } else {
                    client.call("book", ()).await
                }
            });
            let panic = call.await.unwrap_err().into_panic();
            let text = panic.downcast_ref::<String>().unwrap();
            assert_eq!(*text, format!("an assertion about {revision}"));
        }
    }
}

fn update(progress: f64, message: &str) -> ProgressUpdate {
    ProgressUpdate { progress, total: Some(2.0), message: Some(message.to_owned()) }
}

fn log(level: LogLevel, logger: Option<&str>, data: Value) -> LogRecord {
    LogRecord { level, logger: logger.map(str::to_owned), data }
}

#[tokio::test]
async fn progress_and_logs_are_collected() {
    for revision in BOTH {
        let server = server();
        let mut client = connect(&server, revision, |client| client).await;
        client.call("copy", ()).await.unwrap();
        assert_eq!(client.progress(), [update(1.0, "file 1"), update(2.0, "file 2")]);
        let expected = [
            log(LogLevel::Debug, None, json!("starts")),
            log(LogLevel::Warning, Some("disk"), json!({"free": 3})),
        ];
        assert_eq!(client.logs(), expected);

        let mut call = client.start_call("copy", ()).await.unwrap();
        assert_eq!(call.next_log().await, Some(expected[0].clone()));
        assert_eq!(call.next_progress().await, Some(update(1.0, "file 1")));
        assert_eq!(call.next_progress().await, Some(update(2.0, "file 2")));
        assert_eq!(call.next_progress().await, None);
        assert_eq!((call.progress().len(), call.logs().len()), (2, 2));
        assert_eq!(call.await.unwrap().text(), "copied");
        assert_eq!((client.progress().len(), client.logs().len()), (4, 4));

        let mut client = connect(&server, revision, |client| client.log_level(LogLevel::Error)).await;
        client.call("copy", ()).await.unwrap();
        assert_eq!(client.logs(), []);
    }
    // Without a builder too.
    let mut client = TestClient::connect(&server());
    client.call("copy", ()).await.unwrap();
    assert_eq!((client.progress().len(), client.logs().len()), (2, 2));
}

/// A tool that counts its ends.
fn endless(ends: &Arc<Mutex<Vec<&'static str>>>) -> ToolEntry {
    struct EndMark(Arc<Mutex<Vec<&'static str>>>);
    impl Drop for EndMark {
        fn drop(&mut self) {
            self.0.lock().unwrap().push("dropped");
        }
    }
    let ends = ends.clone();
    ToolEntry::new("endless", move |context: Context| {
        let mark = EndMark(ends.clone());
        async move {
            let _mark = mark;
            context.progress(1.0, None, None).await;
            std::future::pending::<String>().await
        }
    })
    .timeout(Duration::from_secs(3600))
}

#[tokio::test(start_paused = true)]
async fn a_started_call_is_cancelled() {
    for revision in BOTH {
        let ends = Arc::default();
        let server = builder().tool(endless(&ends)).build().unwrap();
        let mut client = connect(&server, revision, |client| client).await;
        let mut first = client.start_call("endless", ()).await.unwrap();
        let second = client.start_call("endless", ()).await.unwrap();
        first.next_progress().await.unwrap();
        // Another operation runs meanwhile.
        client.read("test://text").await.unwrap();
        first.cancel().await;
        assert_eq!(first.progress().len(), 1);
        assert_eq!(first.await, Err(TestError::Cancelled));
        while ends.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(*ends.lock().unwrap(), ["dropped"]);
        // The other one times out, an hour later on the paused clock.
        assert_eq!(second.await.unwrap_err().to_string(), "\"endless\" timed out after 3600 s");
    }
}

#[tokio::test]
async fn a_call_that_asks_is_cancelled_while_the_user_thinks() {
    for revision in BOTH {
        let asked = Arc::new(tokio::sync::Notify::new());
        let signal = asked.clone();
        let think = move |_: ElicitationRequest| {
            signal.notify_one();
            std::future::pending::<bindpost_mcp_server::testing::ElicitationAnswer>()
        };
        let mut client = connect(&server(), revision, |client| client.on_elicitation(think)).await;
        let mut call = client.start_call("book", ()).await.unwrap();
        asked.notified().await;
        call.cancel().await;
        assert_eq!(call.await, Err(TestError::Cancelled));
        client.ping().await.unwrap();
    }
}

#[tokio::test]
async fn a_call_ends_with_its_client() {
    for revision in BOTH {
        let ends = Arc::default();
        let server = builder().tool(endless(&ends)).build().unwrap();
        let mut client = connect(&server, revision, |client| client).await;
        let call = client.start_call("endless", ()).await.unwrap();
        drop(client);
        assert_eq!(call.await, Err(TestError::Disconnected));
        while ends.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn changes_are_awaited() {
    for revision in BOTH {
        let server = server();
        let mut client = connect(&server, revision, |client| client).await;
        client.subscribe("test://text").await.unwrap();
        client.watch_lists().await.unwrap();
        assert!(client.subscribe("test://unknown").await.is_err());
        server.resource_updated("test://bytes");
        server.resource_updated("test://text");
        assert_eq!(client.next_change().await.unwrap(), ServerChange::Resource("test://text".to_owned()));
        server.catalog().add_tool(ToolEntry::new("new", async || "")).unwrap();
        assert_eq!(client.next_change().await.unwrap(), ServerChange::Tools);
        client.unsubscribe("test://text").await.unwrap();
        // The cancellation of a listener is handled in the background.
        while server.is_watched("test://text") {
            tokio::task::yield_now().await;
        }
    }
}

fn with_tasks() -> Server {
    let job = |name: &str| {
        ToolEntry::new(name, async |context: Context| -> Result<String, ToolError> {
            context.go_on_as_task().await;
            let table = context.elicit::<Table>("How many?").await?.required()?;
            tokio::time::sleep(Duration::from_secs(60)).await;
            match table.guests {
                0 => Err(ToolError::new("no guests")),
                guests => Ok(format!("{guests} guests")),
            }
        })
    };
    builder().tasks(TaskLimits::default()).tool(job("job")).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_task_is_followed_to_its_end() {
    let server = with_tasks();
    let guests = Arc::new(AtomicUsize::new(3));
    let number = guests.clone();
    let mut client = connect(&server, Revision::V2026_07_28, |client| {
        let answer =
            move |form: ElicitationRequest| form.accept(&json!({"guests": number.load(Ordering::Relaxed)}));
        client.tasks().on_elicitation(answer)
    })
    .await;
    assert_eq!(client.call("job", ()).await.unwrap().text(), "3 guests");
    let mut call = client.start_call("job", ()).await.unwrap();
    assert!(call.task_id().await.is_some());
    assert_eq!(call.await.unwrap().text(), "3 guests");
    guests.store(0, Ordering::Relaxed);
    assert_eq!(client.call("job", ()).await.unwrap_err().to_string(), "no guests");
    let mut call = client.start_call("job", ()).await.unwrap();
    assert!(call.task_id().await.is_some());
    call.cancel().await;
    assert_eq!(call.await, Err(TestError::Cancelled));
    // Without the extension it is an ordinary call.
    let answer = |form: ElicitationRequest| form.accept(&Table { guests: 2 });
    let mut plain = connect(&server, Revision::V2026_07_28, |client| client.on_elicitation(answer)).await;
    let mut call = plain.start_call("job", ()).await.unwrap();
    assert_eq!(call.task_id().await, None);
    assert_eq!(call.await.unwrap().text(), "2 guests");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_needs_a_task_names_the_missing_setting() {
    let job = ToolEntry::new("job", async || "done").task(TaskSupport::Required);
    let server = Server::builder("s", "1").tasks(TaskLimits::default()).tool(job).build().unwrap();
    let mut client = connect(&server, Revision::V2026_07_28, |client| client).await;
    let error = client.call("job", ()).await.unwrap_err();
    assert!(error.to_string().contains("add `.tasks(…)`"), "{error}");
    let mut client = connect(&server, Revision::V2026_07_28, TestClientBuilder::tasks).await;
    assert_eq!(client.call("job", ()).await.unwrap().text(), "done");
}

#[tokio::test]
async fn a_revision_that_the_server_does_not_support_is_an_error() {
    let server = builder().revisions([Revision::V2026_07_28]).build().unwrap();
    let client = TestClient::builder(&server).revision(Revision::V2025_11_25).connect().await;
    assert_eq!(client.unwrap_err(), TestError::UnsupportedRevision(Revision::V2025_11_25));
    // The default revision is one that the server supports.
    let mut client = TestClient::connect(&server);
    assert_eq!(client.revision(), Revision::V2026_07_28);
    assert_eq!(client.call("copy", ()).await.unwrap().text(), "copied");
}

#[tokio::test]
async fn handlers_see_the_client_and_its_headers() {
    let seen = ToolEntry::new("seen", async |context: Context| {
        let client = context.client_info().map(|info| info.name).unwrap_or_default();
        let tenant = context.http().and_then(|http| http.header("x-tenant")).unwrap_or("none");
        format!("{client} {} {tenant}", context.caller().id().unwrap_or("anonymous"))
    });
    let server = Server::builder("s", "1").tool(seen).build().unwrap();
    for revision in BOTH {
        let mut client = connect(&server, revision, |client| {
            let info = Implementation::new("editor", "2");
            client.caller(Caller::new("ada")).client_info(info).header("X-Tenant", "north")
        })
        .await;
        assert_eq!(client.call("seen", ()).await.unwrap().text(), "editor ada north");
        let mut client = connect(&server, revision, |client| client).await;
        assert_eq!(client.call("seen", ()).await.unwrap().text(), "test anonymous none");
    }
}

/// A server with an entry for each kind of rule.
fn guarded() -> Server {
    Server::builder("s", "1")
        .tool(ToolEntry::new("open", async || "open").anonymous())
        .tool(ToolEntry::new("known", async || "known"))
        .tool(ToolEntry::new("read", async || "read").scopes(["orders.read"]))
        .tool(ToolEntry::new("clean", async || "clean").roles(["Cleaner"]))
        .resource(ResourceEntry::text("test://secret", "secret", "42").scopes(["orders.read"]))
        .prompt(PromptEntry::new("known", async || "known"))
        .build()
        .unwrap()
}

#[tokio::test]
async fn access_rules_apply_as_over_http() {
    let alice = || Caller::from(Identity::new("alice").user().scope("orders.read"));
    let bob = || Caller::from(Identity::new("bob").user());
    let robot = || Caller::from(Identity::new("robot").application().role("Cleaner"));
    let server = guarded();
    for revision in BOTH {
        for (caller, tools, secret) in [
            (Caller::ANONYMOUS, [true, false, false, false], false),
            (bob(), [true, true, false, false], false),
            (alice(), [true, true, true, false], true),
            (robot(), [true, true, false, true], false),
        ] {
            let mut client = connect(&server, revision, |client| client.caller(caller.clone())).await;
            for (tool, may) in ["open", "known", "read", "clean"].into_iter().zip(tools) {
                let outcome = client.call(tool, ()).await;
                assert_eq!(outcome.is_ok(), may, "{caller:?} {tool}");
                assert!(may || outcome.unwrap_err().code() == Some(-32001));
            }
            assert_eq!(client.read("test://secret").await.is_ok(), secret, "{caller:?}");
            assert_eq!(client.get_prompt("known", ()).await.is_ok(), caller.is_authenticated());
            // Lists show everything unless the endpoint is configured otherwise.
            assert_eq!(client.list_tools().await.unwrap().len(), 4);
            let mut client = connect(&server, revision, |client| {
                client.caller(caller.clone()).listing(ListVisibility::Permitted)
            })
            .await;
            let visible = tools.iter().filter(|may| **may).count();
            assert_eq!(client.list_tools().await.unwrap().len(), visible, "{caller:?}");
        }
        let mut client = connect(&server, revision, |client| client.caller(bob())).await;
        let error = client.call("read", ()).await.unwrap_err();
        assert_eq!(error.to_string(), "this needs the scope orders.read (-32001)");
        assert!(matches!(error, TestError::Denied { anonymous: false, .. }));
    }
    assert!(TestClient::connect_as(&server, bob()).call("read", ()).await.is_err());
    assert!(TestClient::connect_as(&server, alice()).call("read", ()).await.is_ok());
}

#[tokio::test]
async fn a_plain_client_respects_a_server_with_rules() {
    let server = guarded();
    let mut client = TestClient::connect(&server);
    assert_eq!(client.call("open", ()).await.unwrap().text(), "open");
    let error = client.call("known", ()).await.unwrap_err();
    assert!(matches!(error, TestError::Denied { anonymous: true, .. }));
    let text = error.to_string();
    assert!(
        text.starts_with("authentication is required (-32001)") && text.contains(".without_auth()"),
        "{text}"
    );
    // Raw messages too.
    let error = client.request("tools/call", json!({"name": "read"})).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-32001, "authentication is required"));

    let mut client = TestClient::builder(&server).without_auth().connect().await.unwrap();
    assert_eq!(client.call("read", ()).await.unwrap().text(), "read");
    // With a caller, rules or not, an entry without a rule needs authentication.
    let plain = self::server();
    assert!(TestClient::connect(&plain).call("copy", ()).await.is_ok());
    let anonymous = TestClient::builder(&plain).caller(Caller::ANONYMOUS).connect().await;
    assert_eq!(anonymous.unwrap_err().code(), Some(-32001));
    assert!(TestClient::connect_as(&plain, Caller::new("ada")).call("copy", ()).await.is_ok());
}

#[tokio::test]
async fn a_raw_request_returns_what_the_server_said() {
    let mut client = connect(&server(), Revision::V2026_07_28, |client| client).await;
    let error = client.request("tools/call", json!({"name": "book"})).await.unwrap_err();
    assert_eq!(
        (error.code, error.data),
        (-32021, Some(json!({"requiredCapabilities": {"elicitation": {}}})))
    );
    let answer = |form: ElicitationRequest| form.decline();
    let mut client = connect(&server(), Revision::V2026_07_28, |client| client.on_elicitation(answer)).await;
    let result = client.request("tools/call", json!({"name": "book"})).await.unwrap();
    assert_eq!(result["resultType"], "input_required");
}

#[tokio::test]
async fn raw_messages_and_typed_operations_can_be_mixed() {
    let mut client = TestClient::connect(&server());
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
    client.request("initialize", hello).await.unwrap();
    // The session that the test has opened is used.
    assert_eq!(client.call("copy", ()).await.unwrap().text(), "copied");
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    while let Some(message) = client.next().await {
        if !message.starts_with(br#"{"jsonrpc":"2.0","method":"notifications/"#) {
            assert_eq!(message, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
            break;
        }
    }
    client.end_input().await;
    assert_eq!(client.next().await, None);
}
