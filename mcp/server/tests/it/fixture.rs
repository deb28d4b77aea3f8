//! The servers of the conversations. The tests of the HTTP crate use this file too.
//!
//! The files in `tests/conversations` depend on the names.

use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_server::protocol::client::{ElicitParams, ElicitResult, SampleParams};
use bindpost_mcp_server::protocol::lifecycle::{Icon, LogLevel};
use bindpost_mcp_server::protocol::{
    Annotations, CallToolResult, Content, ErrorObject, GetPromptResult, Meta, PromptMessage, Resource,
    ResourceContents, Role,
};
use bindpost_mcp_server::{
    Args, AskError, CacheScope, Context, Elicitation, Handler, IntoToolResult, PromptEntry, ProtocolError,
    ResourceEntry, Server, ServerBuilder, ServerLimits, Skill, SkillSet, TaskLimits, TaskSupport,
    TemplateEntry, ToolEntry, ToolError, blocking,
};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Returns the server that a conversation names.
pub(crate) fn server(name: &str) -> Server {
    let builder = Server::builder("fixture", "1.2.3");
    let builder = match name {
        "" => resources(prompts(tasks(asking(changing(tools(builder)))))),
        "empty" => builder,
        "decorated" => decorated(builder),
        "paged" => paged(builder),
        "cached" => resources(builder).cache(Duration::from_secs(60), CacheScope::Public),
        // One running call and one queued call.
        "narrow" => asking(tools(builder)).limits(ServerLimits {
            running_calls: 1,
            waiting_calls: 1,
            ..ServerLimits::default()
        }),
        "typed" => typed(builder),
        "hosted" => hosted(builder),
        "skilled" => skilled(builder).page_size(2),
        "modest" => tools(builder).limits(ServerLimits { calls_per_session: 1, ..ServerLimits::default() }),
        other => panic!("there is no server {other:?}; add it to fixture.rs"),
    };
    builder.build().expect("the fixture is valid")
}

/// Returns a tool without arguments. Its schema is not compiled, because each conversation has its own
/// server with many tools.
fn plain<M, R, H>(name: &str, handler: H) -> ToolEntry
where
    R: IntoToolResult + 'static,
    H: Handler<M, R>,
{
    ToolEntry::new(name, handler).without_validation()
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn meta(value: Value) -> Meta {
    value.as_object().cloned().unwrap_or_default()
}

fn text_of(arguments: &Value, name: &str) -> String {
    arguments[name].as_str().unwrap_or_default().to_owned()
}

/// Adds tools that do not ask the client.
fn tools(builder: ServerBuilder) -> ServerBuilder {
    let any = json!({"type": "object"});
    builder
        .tool(
            ToolEntry::new("echo", async |Args(arguments): Args<Value>| text_of(&arguments, "text"))
                .description("Says the same")
                .input_schema(object(json!({"text": {"type": "string"}}), &["text"])),
        )
        .tool(
            ToolEntry::new("add", async |Args(arguments): Args<Value>| {
                let sum =
                    arguments["a"].as_f64().unwrap_or_default() + arguments["b"].as_f64().unwrap_or_default();
                CallToolResult::structured(json!({"sum": sum}))
            })
            .input_schema(json!({
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number", "maximum": 100}},
                "required": ["a", "b"],
                "additionalProperties": false,
            }))
            .output_schema(object(json!({"sum": {"type": "number"}}), &["sum"])),
        )
        .tool(ToolEntry::new("nothing", async || ()))
        .tool(plain("fail", async || Err::<(), _>(ToolError::new("the coffee is out"))))
        .tool(plain("refuse", async || {
            let error = ErrorObject::new(4711, "not today").with_data(json!({"try": "tomorrow"}));
            Err::<(), _>(ProtocolError::Other(error))
        }))
        .tool(plain("panic", async || -> () { panic!("on purpose") }))
        .tool(
            ToolEntry::new("slow", async |Args(arguments): Args<Value>| {
                tokio::time::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or_default())).await;
                format!("{} ms", arguments["ms"])
            })
            .input_schema(object(json!({"ms": {"type": "integer"}}), &["ms"])),
        )
        .tool(
            plain("timeout", async || tokio::time::sleep(Duration::from_secs(60)).await)
                .timeout(Duration::from_millis(50)),
        )
        .tool(plain("count", async |context: Context| {
            for step in 1..=3 {
                context.progress(f64::from(step), Some(3.0), Some(&format!("step {step}"))).await;
            }
            "counted"
        }))
        .tool(plain("log", async |context: Context| {
            context.log(LogLevel::Debug, Some("fixture"), "a detail").await;
            context.log(LogLevel::Info, Some("fixture"), json!({"a": "fact"})).await;
            context.log(LogLevel::Error, None, "an error").await;
            "logged"
        }))
        .tool(plain("rich", async || rich()))
        .tool(
            plain("structured_array", async || CallToolResult::structured(json!([1, 2, 3])))
                .output_schema(json!({"type": "array", "items": {"type": "integer"}})),
        )
        .tool(
            plain("wrong_structure", async || CallToolResult::structured(json!({"n": "x", "m": 1})))
                .output_schema(object(
                    json!({"n": {"type": "number"}, "m": {"type": "string"}}),
                    &["n", "m"],
                )),
        )
        .tool(
            plain("no_structure", async || "just text")
                .output_schema(object(json!({"n": {"type": "number"}}), &["n"])),
        )
        .tool(
            plain("fail_structured", async || Err::<(), _>(ToolError::new("no numbers today")))
                .output_schema(object(json!({"n": {"type": "number"}}), &["n"])),
        )
        .tool(
            ToolEntry::new("unchecked", async |context: Context| context.arguments_json().to_owned())
                .input_schema(object(json!({"n": {"type": "number"}}), &["n"]))
                .without_validation(),
        )
        .tool(plain("extra", async || CallToolResult {
            meta: Some(meta(json!({"example.com/cost": 3}))),
            extra: meta(json!({"x-colour": "red"})),
            ..CallToolResult::text("more than asked")
        }))
        .tool(
            ToolEntry::new("describe", async |context: Context| describe(&context).to_string())
                .input_schema(any),
        )
}

/// Returns the data of the request that a handler can read.
fn describe(context: &Context) -> Value {
    json!({
        "revision": context.revision().as_str(),
        "client": context.client_info().map(|client| client.name),
        "session": context.session().is_some(),
        "traceparent": context.traceparent(),
        "tracestate": context.tracestate(),
        "baggage": context.meta("baggage"),
        "own": context.meta("example.com/own"),
    })
}

fn rich() -> Vec<Content> {
    let mut text = Content::text("words");
    if let Content::Text(text) = &mut text {
        text.annotations = Some(annotations());
        text.meta = Some(meta(json!({"example.com/a": 1})));
    }
    let link = Resource {
        uri: "test://static".to_owned(),
        name: "static".to_owned(),
        title: Some("Static".to_owned()),
        icons: vec![icon()],
        ..Resource::default()
    };
    vec![
        text,
        Content::image(b"png", "image/png"),
        Content::audio(b"wav", "audio/wav"),
        Content::link(link),
        Content::resource(ResourceContents {
            meta: Some(meta(json!({"example.com/b": 2}))),
            ..ResourceContents::text("test://embedded", "inside").with_mime_type("text/plain")
        }),
    ]
}

fn annotations() -> Annotations {
    Annotations {
        audience: vec![Role::User],
        priority: Some(0.5),
        last_modified: Some("2026-01-02T03:04:05Z".to_owned()),
        ..Annotations::default()
    }
}

fn icon() -> Icon {
    Icon {
        src: "data:image/png;base64,aWNvbg==".to_owned(),
        mime_type: Some("image/png".to_owned()),
        ..Icon::default()
    }
}

/// Adds tools that ask the client.
fn asking(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(plain("ask_name", async |context: Context| greeting(&context).await))
        .tool(plain("ask_name_again", async |context: Context| greeting(&context).await))
        .tool(
            ToolEntry::new("ask_about", async |context: Context| greeting(&context).await)
                .input_schema(object(json!({"topic": {"type": "string"}}), &["topic"])),
        )
        .tool(plain("ask_twice", async |context: Context| {
            let name = context.elicit_with("user_name", question("name")).await?;
            let colour = context.elicit_with("colour", question("colour")).await?;
            Ok::<_, AskError>(format!("{} likes {}", field(&name, "name"), field(&colour, "colour")))
        }))
        .tool(plain("ask_both", async |context: Context| {
            let asked = async { context.elicit_with("user_name", question("name")).await };
            let sampled =
                async { context.sample_with("opinion", SampleParams::user("Any opinion?", 10)).await };
            let (name, opinion) = tokio::join!(asked, sampled);
            let (name, opinion) = (name?, opinion?);
            Ok::<_, AskError>(format!("{}: {}", field(&name, "name"), opinion.text().unwrap_or("nothing")))
        }))
        .tool(plain("ask_url", async |context: Context| {
            let answer = context
                .elicit_with("login", ElicitParams::url("Log in", "https://example.com/login"))
                .await?;
            Ok::<_, AskError>(answer.action.as_str().to_owned())
        }))
        .tool(plain("sample", async |context: Context| {
            let answer = context.sample_with("opinion", SampleParams::user("Any opinion?", 10)).await?;
            Ok::<_, AskError>(format!("{} says {}", answer.model, answer.text().unwrap_or("nothing")))
        }))
        .tool(plain("roots", async |context: Context| {
            let answer = context.roots_with("folders").await?;
            Ok::<_, AskError>(answer.roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
        }))
        .tool(plain("count_and_ask", async |context: Context| {
            context.progress(1.0, None, None).await;
            greeting(&context).await
        }))
        .tool(
            plain("ask_in_time", async |context: Context| greeting(&context).await)
                .timeout(Duration::from_millis(50)),
        )
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TableWishes {
    /// For how many people?
    #[schemars(range(min = 1, max = 12))]
    guests: u8,
    seat: SeatKind,
    #[schemars(regex(pattern = "^[A-Z]+$"))]
    voucher: Option<String>,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SeatKind {
    /// By the window
    Window,
    /// On the terrace
    Terrace,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Review {
    title: String,
    #[schemars(range(min = 1, max = 5))]
    stars: u8,
    tone: Tone,
    spoilers: Option<bool>,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Kind,
    Harsh,
}

/// Adds tools that ask the client with types and builders.
fn typed(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(plain("book", async |context: Context| {
            Ok::<_, AskError>(match context.elicit::<TableWishes>("Which table?").await? {
                Elicitation::Accepted(wishes) => {
                    format!("{:?} for {}, {:?}", wishes.seat, wishes.guests, wishes.voucher)
                }
                Elicitation::Declined => "declined".to_owned(),
                Elicitation::Cancelled => "cancelled".to_owned(),
            })
        }))
        .tool(plain("sign_in", async |context: Context| {
            context.elicit_url("Sign in", "https://example.com/login").await?.required()?;
            Ok::<_, ToolError>("opened")
        }))
        .tool(plain("not_a_form", async |context: Context| {
            let answer = context.elicit::<Vec<String>>("Which?").await?;
            Ok::<_, AskError>(answer.accepted().unwrap_or_default().concat())
        }))
        .tool(plain("summarize", async |context: Context| {
            let question =
                context.sample("Two teas.").system_prompt("Be brief.").max_tokens(20).model("small");
            let answer = question.temperature(0.5).stop_sequences(["."]).await?;
            Ok::<_, AskError>(answer.text().unwrap_or_default().to_owned())
        }))
        .tool(plain("track", async |context: Context| {
            let mut all = String::new();
            let mut parts = context.track(["a", "b"]);
            while let Some(part) = parts.next().await {
                all.push_str(part);
            }
            all
        }))
        .tool(plain("track_blocking", async |context: Context| {
            let work = move || {
                context.progress_blocking(0.5, Some(2.0), Some("begun"));
                let all: String = context.track_blocking(["a", "b"]).collect();
                context.debug_blocking("a detail");
                context.error_blocking("an error");
                all
            };
            blocking(work).await
        }))
        .tool(plain("track_stream", async |context: Context| {
            let mut all = String::new();
            // A stream that does not know its length.
            let mut left = vec!["b", "a"];
            let parts = futures_util::stream::poll_fn(move |_| std::task::Poll::Ready(left.pop()));
            let mut parts = context.track_stream(parts);
            while let Some(part) = parts.next().await {
                all.push_str(part);
            }
            all
        }))
        .prompt(PromptEntry::new("review", async |Args(review): Args<Review>| {
            let Review { title, stars, tone, spoilers } = review;
            format!("{title}: {stars} stars, {tone:?}, {spoilers:?}")
        }))
        .tool(plain("folders", async |context: Context| {
            let answer = context.roots().await?;
            Ok::<_, AskError>(answer.roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
        }))
}

async fn greeting(context: &Context) -> Result<String, AskError> {
    let answer = context.elicit_with("user_name", question("name")).await?;
    Ok(match answer.field("name") {
        Some(name) => format!("Hello, {}!", name.as_str().unwrap_or_default()),
        None => format!("The answer was {}.", answer.action.as_str()),
    })
}

fn question(field: &str) -> ElicitParams {
    let schema = object(json!({field: {"type": "string", "minLength": 1}}), &[field]);
    ElicitParams::form(format!("What is your {field}?"), schema)
}

fn field(answer: &ElicitResult, name: &str) -> String {
    answer.field(name).and_then(Value::as_str).unwrap_or("unknown").to_owned()
}

/// Adds tools that change the server.
fn changing(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(plain("add_tool", async |context: Context| {
            let late = ToolEntry::new("late", async || "better than never");
            context.server().catalog().add_tool(late).map_err(|error| error.to_string())?;
            Ok::<_, String>("added")
        }))
        .tool(plain("remove_tool", async |context: Context| {
            context.server().catalog().remove_tool("late").to_string()
        }))
        .tool(plain("add_prompt", async |context: Context| {
            let late = PromptEntry::new("late", async || "better than never");
            context.server().catalog().add_prompt(late).map_err(|error| error.to_string())?;
            Ok::<_, String>("added")
        }))
        .tool(plain("add_resource", async |context: Context| {
            let late = ResourceEntry::text("test://late", "late", "better than never");
            context.server().catalog().add_resource(late).map_err(|error| error.to_string())?;
            Ok::<_, String>("added")
        }))
        .tool(
            ToolEntry::new("touch", async |context: Context, Args(arguments): Args<Value>| {
                context.server().resource_updated(&text_of(&arguments, "uri"));
                "touched"
            })
            .input_schema(object(json!({"uri": {"type": "string"}}), &["uri"])),
        )
        .tool(plain("shut_down", async |context: Context| {
            context.server().shut_down();
            "good night"
        }))
}

/// Waits until `let_go` was called with the name of the call.
async fn until_gone(gone: Arc<watch::Sender<Vec<String>>>, context: &Context) -> Result<String, ToolError> {
    let name: String = context.required_argument("name")?;
    let _ = gone.subscribe().wait_for(|gone| gone.contains(&name)).await;
    Ok(name)
}

/// Adds tools whose calls are answered early, until `let_go` lets them end.
fn early_answers(builder: ServerBuilder) -> ServerBuilder {
    let let_go = Arc::new(watch::Sender::new(Vec::<String>::new()));
    let (waits, asks) = (let_go.clone(), let_go.clone());
    let answer_after = Duration::from_millis(50);
    builder
        .tool(ToolEntry::task_result(Duration::from_secs(2)))
        .tool(plain("let_go", move |context: Context| {
            let let_go = let_go.clone();
            async move {
                let name = context.required_argument("name")?;
                let_go.send_modify(|gone| gone.push(name));
                Ok::<_, ToolError>("gone")
            }
        }))
        .tool(
            plain("job_waits", move |context: Context| {
                let gone = waits.clone();
                async move {
                    match until_gone(gone, &context).await?.as_str() {
                        "the coffee" => Err(ToolError::new("the coffee is out")),
                        _ => Ok("done at last"),
                    }
                }
            })
            .task(TaskSupport::WhenPossible)
            .answer_after(answer_after),
        )
        .tool(
            plain("job_waits_and_asks", move |context: Context| {
                let gone = asks.clone();
                async move {
                    until_gone(gone, &context).await?;
                    context.progress(1.0, Some(2.0), Some("asking")).await;
                    Ok::<_, ToolError>(greeting(&context).await?)
                }
            })
            .task(TaskSupport::WhenPossible)
            .answer_after(answer_after),
        )
}

/// Adds tools that run as tasks.
fn tasks(builder: ServerBuilder) -> ServerBuilder {
    early_answers(builder)
        .tasks(TaskLimits::default())
        .tool(plain("job", async || "done").task(TaskSupport::WhenPossible))
        .tool(
            plain("job_forever", async |context: Context| context.cancelled().await)
                .task(TaskSupport::WhenPossible),
        )
        .tool(plain("job_only", async || "done").task(TaskSupport::Required))
        .tool(
            ToolEntry::new("job_named", async |Args(arguments): Args<Value>| text_of(&arguments, "name"))
                .input_schema(object(json!({"name": {"type": "string"}}), &["name"]))
                .task(TaskSupport::WhenPossible),
        )
        .tool(
            plain("job_fails", async || Err::<(), _>(ToolError::new("the coffee is out")))
                .task(TaskSupport::WhenPossible),
        )
        .tool(
            plain("job_breaks", async || {
                Err::<(), _>(ProtocolError::Other(ErrorObject::new(4711, "not today")))
            })
            .task(TaskSupport::WhenPossible),
        )
        .tool(
            plain("job_asks", async |context: Context| greeting(&context).await)
                .task(TaskSupport::WhenPossible),
        )
        .tool(
            plain("job_insists", async |context: Context| {
                greeting(&context).await?;
                greeting(&context).await
            })
            .task(TaskSupport::WhenPossible),
        )
        .tool(plain("job_after_name", async |context: Context| {
            let greeting = greeting(&context).await?;
            context.go_on_as_task().await;
            Ok::<_, AskError>(greeting)
        }))
        .tool(
            plain("job_counts", async |context: Context| {
                context.progress(1.0, None, None).await;
                context.log(LogLevel::Error, None, "in a task").await;
                "counted"
            })
            .task(TaskSupport::WhenPossible),
        )
        .tool(
            plain("job_reports", async |context: Context| {
                context.progress(1.0, Some(3.0), None).await;
                greeting(&context).await?;
                context.progress(2.0, Some(3.0), Some("reading")).await;
                greeting(&context).await
            })
            .task(TaskSupport::WhenPossible),
        )
}

fn resources(builder: ServerBuilder) -> ServerBuilder {
    builder
        .resource(ResourceEntry::text("test://static", "static", "always the same").mime_type("text/plain"))
        .resource(ResourceEntry::new("test://dynamic", "dynamic", async |context: Context| {
            format!("read as {}", context.uri().unwrap_or_default())
        }))
        .resource(
            ResourceEntry::new("test://binary", "binary", async || vec![0_u8, 1, 254, 255])
                .mime_type("application/octet-stream"),
        )
        .resource(ResourceEntry::new("test://folder", "folder", async || {
            vec![
                ResourceContents::text("test://folder/a", "a"),
                ResourceContents::blob("test://folder/b", b"b").with_mime_type("image/png"),
            ]
        }))
        .resource(ResourceEntry::new("test://failing", "failing", async || {
            Err::<String, _>(ToolError::new("the shelf is empty"))
        }))
        .resource(ResourceEntry::new("test://gone", "gone", async |context: Context| {
            let uri = context.uri().unwrap_or_default().to_owned();
            Err::<String, _>(ProtocolError::UnknownResource(uri))
        }))
        .resource(
            ResourceEntry::new("test://slow", "slow", async || {
                tokio::time::sleep(Duration::from_secs(60)).await;
                "never"
            })
            .timeout(Duration::from_millis(50)),
        )
        .resource(ResourceEntry::new("test://ask", "ask", async |context: Context| greeting(&context).await))
        .template(
            TemplateEntry::new("test://items/{id}", "item", async |context: Context| {
                format!("item {}", context.variable("id").unwrap_or_default())
            })
            .mime_type("text/plain")
            .complete("id", |typed: &str| {
                (0..250).map(|id| id.to_string()).filter(|id| id.starts_with(typed)).collect()
            }),
        )
        .template(TemplateEntry::new("test://files/{+path}", "file", async |context: Context| {
            format!("file {}", context.variable("path").unwrap_or_default())
        }))
        .template(TemplateEntry::new("test://search{?q,page}", "search", async |context: Context| {
            let given = |name| context.variable(name).unwrap_or("-").to_owned();
            format!("{} on page {}", given("q"), given("page"))
        }))
}

fn prompts(builder: ServerBuilder) -> ServerBuilder {
    builder
        .prompt(
            PromptEntry::new("greet", async |Args(arguments): Args<Value>| {
                format!("Greet {} {}", text_of(&arguments, "name"), text_of(&arguments, "style"))
                    .trim()
                    .to_owned()
            })
            .description("Greets a person")
            .argument("name", "Whom to greet", true)
            .argument("style", "How to greet", false)
            .complete("style", |typed: &str| {
                let styles = ["formal", "friendly", "frosty"];
                styles.into_iter().filter(|style| style.starts_with(typed)).map(str::to_owned).collect()
            }),
        )
        .prompt(PromptEntry::new("dialogue", async || GetPromptResult {
            description: Some("Two voices".to_owned()),
            messages: vec![
                PromptMessage::user("Knock, knock"),
                PromptMessage::assistant(Content::audio(b"wav", "audio/wav")),
            ],
            meta: Some(meta(json!({"example.com/mood": "silly"}))),
            ..GetPromptResult::default()
        }))
        .prompt(PromptEntry::new("fail", async || Err::<String, _>(ToolError::new("out of words"))))
        .prompt(
            PromptEntry::new("sulk", async || "text")
                .argument("mood", "How bad it is", false)
                .complete("mood", |_: &str| panic!("on purpose")),
        )
        .prompt(PromptEntry::new("panic", async || -> String { panic!("on purpose") }))
        .prompt(PromptEntry::new("ask", async |context: Context| greeting(&context).await))
}

/// Adds one entry of each kind with all members of its definition.
fn decorated(builder: ServerBuilder) -> ServerBuilder {
    let tag = || meta(json!({"example.com/tag": "x"}));
    builder
        .title("The Fixture")
        .description("Answers in tests")
        .website_url("https://example.com/fixture")
        .icons(vec![icon()])
        .instructions("Ask me anything.")
        .extension("example.com/extension", json!({"level": 3}))
        .tool(
            ToolEntry::new("decorated", async || CallToolResult::structured(json!({"n": 1})))
                .title("Decorated")
                .description("Has it all")
                .input_schema(json!({
                    "$schema": "https://json-schema.org/draft/2020-12/schema",
                    "type": "object",
                    "properties": {"n": {"$ref": "#/$defs/n"}},
                    "$defs": {"n": {"type": "integer"}},
                }))
                .output_schema(object(json!({"n": {"type": "integer"}}), &["n"]))
                .read_only()
                .idempotent()
                .destructive(false)
                .open_world(true)
                .icons(vec![icon()])
                .meta(tag()),
        )
        .tool(
            ToolEntry::new("array", async || CallToolResult::structured(json!([1])))
                .output_schema(json!({"type": "array"})),
        )
        .resource(
            ResourceEntry::text("test://decorated", "decorated", "text")
                .title("Decorated")
                .description("Has it all")
                .mime_type("text/plain")
                .size(4)
                .annotations(annotations())
                .icons(vec![icon()])
                .meta(tag()),
        )
        .template(
            TemplateEntry::new("test://decorated/{id}", "decorated", async || "text")
                .title("Decorated")
                .description("Has it all")
                .mime_type("text/plain")
                .icons(vec![icon()])
                .meta(tag())
                .complete("id", |_: &str| Vec::new()),
        )
        .prompt(
            PromptEntry::new("decorated", async || "text")
                .title("Decorated")
                .description("Has it all")
                .argument("name", "Whose", true)
                .argument("style", "How", false)
                .icons(vec![icon()])
                .meta(tag()),
        )
}

/// Adds lists with several pages, with one full page, and with less than a page.
fn paged(builder: ServerBuilder) -> ServerBuilder {
    let builder = (1..=7).fold(builder.page_size(3), |builder, number| {
        builder.tool(ToolEntry::new(format!("t{number}"), async || "text"))
    });
    let builder = (1..=3).fold(builder, |builder, number| {
        builder.resource(ResourceEntry::text(format!("test://r{number}"), format!("r{number}"), "text"))
    });
    let builder = (1..=4).fold(builder, |builder, number| {
        builder.template(TemplateEntry::new(
            format!("test://x{number}/{{id}}"),
            format!("x{number}"),
            async || "text",
        ))
    });
    let late = ToolEntry::new("add_tool", async |context: Context| {
        let late = ToolEntry::new("late", async || "text");
        context.server().catalog().add_tool(late).map_err(|error| error.to_string())?;
        Ok::<_, String>(context.server().catalog().remove_tool("t2").to_string())
    });
    builder.prompt(PromptEntry::new("p1", async || "text")).tool(late)
}

/// Adds the features for hosts of functions: names in any case and of any form, custom not-found errors, a
/// custom URI matcher, and requests to the client as JSON.
fn hosted(builder: ServerBuilder) -> ServerBuilder {
    let unknown = |error: &ProtocolError| match error {
        ProtocolError::UnknownTool(name) => Some(ErrorObject::new(-32602, format!("Unknown tool: '{name}'"))),
        ProtocolError::UnknownResource(uri) => {
            Some(ErrorObject::new(-32602, format!("Unknown resource: '{uri}'")))
        }
        _ => None,
    };
    let arguments = async |context: Context| context.arguments_json().to_owned();
    let pair = |uri: &str| {
        let (left, right) = uri.strip_prefix("pair://")?.split_once("and")?;
        Some(vec![("left".to_owned(), left.to_owned()), ("right".to_owned(), right.to_owned())])
    };
    let left_and_right =
        async |context: Context| format!("{:?} {:?}", context.variable("left"), context.variable("right"));
    builder
        .ignore_case()
        .map_not_found(unknown)
        .tool(
            plain("Say my name", async |context: Context| {
                format!("{} as {}", context.name(), context.requested_name())
            })
            .any_name(),
        )
        .tool(
            plain("broken_promise", async || CallToolResult::structured(json!({"n": "no number"})))
                .output_schema(object(json!({"n": {"type": "number"}}), &["n"]))
                .without_output_validation(),
        )
        .tool(
            ToolEntry::new("half_checked", async |Args(arguments): Args<Value>| arguments.to_string())
                .input_schema(object(json!({"n": {"type": "number"}}), &["n"]))
                .checked_by(json!({"type": "object", "properties": {"n": {"type": "number"}}})),
        )
        .tool(plain("two_names", two_names))
        .tool(plain("unclear_question", async |context: Context| {
            let question = json!({"name": {"method": "tools/call"}});
            let answers = context.ask_all(question.as_object().unwrap_or(&Meta::new())).await?;
            Ok::<String, ToolError>(Value::Object(answers).to_string())
        }))
        .resource(ResourceEntry::text("test://Readme", "readme", "read me"))
        .template(TemplateEntry::new("pair://{left}and{right}", "pair", left_and_right).matched_by(pair))
        .prompt(
            PromptEntry::new("anything", arguments).argument("text", "Some text", true).without_validation(),
        )
}

/// Asks twice under the same key, and remembers the first answer.
async fn two_names(context: Context) -> Result<String, ToolError> {
    let form = object(json!({"name": {"type": "string"}}), &["name"]);
    let question = meta(
        json!({"name": {"method": "elicitation/create", "params": {"message": "Next?", "requestedSchema": form}}}),
    );
    let mut names = match context.remembered() {
        Some(names) => names.as_array().cloned().unwrap_or_default(),
        None => {
            context.remember(json!([]));
            Vec::new()
        }
    };
    while names.len() < 2 {
        let answers = context.ask_all(&question).await?;
        names.push(answers["name"]["content"]["name"].clone());
        context.remember(json!(names));
    }
    Ok(Value::from(names).to_string())
}

/// Adds three skills. One of them is in another one, and one has a file that is not text.
pub(crate) fn skilled(builder: ServerBuilder) -> ServerBuilder {
    let manifest =
        |name: &str| format!("---\nname: {name}\ndescription: How to do {name}\n---\n\nCarefully.\n");
    let skills = SkillSet::new()
        .skill(
            Skill::new("acme/refunds")
                .file("SKILL.md", manifest("refunds"))
                .file("templates/an email.md", "Dear customer\n")
                .file("logo.png", [0x89, 0x50, 0x4e, 0x47, 0xff]),
        )
        .skill(Skill::new("acme/refunds/vouchers").file("SKILL.md", manifest("vouchers")))
        .skill(
            Skill::new("git-workflow")
                .file("SKILL.md", "---\nname: git-workflow\ndescription: Commits\nlicense: MIT\n---\n"),
        );
    builder.skills(skills)
}
