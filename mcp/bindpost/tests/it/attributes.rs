//! The attributes: the definition that a client sees, and the values that the function receives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bindpost::protocol::{CallToolResult, Content, PromptMessage, Resource, ResourceContents};
use bindpost::testing::TestClient;
use bindpost::{
    Args, Context, Json, Server, State, ToolError, entries, prompt, resource, resource_list, tool, tools,
};
use serde_json::{Value, json};

/// Adds two numbers.
///
/// Both of them.
#[tool]
async fn add(
    /// The first one.
    a: f64,
    #[arg(description = "The second one.", maximum = 100)] b: f64,
) -> f64 {
    a + b
}

/// Says hello.
#[tool(
    name = "say.hello",
    title = "Say hello",
    read_only,
    idempotent = true,
    open_world = false,
    timeout = Duration::from_secs(5),
    icons = ["https://example.com/hello.png"],
    meta("example.com/tag" = "x", "example.com/n" = 3),
    rename_all = "camelCase"
)]
fn hello(
    _context: Context,
    State(greeting): State<String>,
    /// Whom to greet.
    #[arg(min_length = 2, max_length = 20, pattern = "^[A-Z]")]
    first_name: String,
    #[arg(one_of = ["warm", "cold"], default = "warm")] how_so: String,
    #[arg(name = "times", minimum = 1, maximum = 3)] count: Option<u32>,
) -> String {
    format!("{greeting}, {first_name}, {how_so} x{}", count.unwrap_or(1))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pair {
    left: i64,
    right: Option<i64>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: i64,
}

/// Adds a pair.
#[tool]
async fn add_pair(Args(pair): Args<Pair>) -> Result<Sum, String> {
    match pair.left.checked_add(pair.right.unwrap_or_default()) {
        Some(sum) => Ok(Sum { sum }),
        None => Err("that is too much".to_owned()),
    }
}

/// Settings.
#[resource("config://settings", name = "Server Config", title = "Settings", anonymous, size = 2)]
fn settings() -> Json<Value> {
    Json(json!({}))
}

/// The items of a category.
#[resource("menu://categories/{category_id}/{page}", mime_type = "text/plain")]
async fn category(
    #[arg(complete = categories)] category_id: String,
    page: u32,
) -> Result<Vec<ResourceContents>, ToolError> {
    if page > 9 {
        return Err(ToolError::new("there are nine pages"));
    }
    Ok(vec![ResourceContents::text(format!("menu://{category_id}"), page.to_string())])
}

fn categories(typed: &str) -> Vec<String> {
    ["appetizers", "drinks"].into_iter().filter(|name| name.starts_with(typed)).map(str::to_owned).collect()
}

/// Any value that can be serialised.
#[resource("numbers://few")]
fn numbers() -> Vec<u32> {
    vec![1, 2, 3]
}

#[resource_list("menu")]
async fn listed() -> Vec<Resource> {
    let resource = |name: &str| Resource {
        uri: format!("menu://categories/{name}/1"),
        name: name.to_owned(),
        ..Resource::default()
    };
    vec![resource("appetizers"), resource("drinks")]
}

/// Asks for a summary.
#[prompt(title = "Summary")]
fn summary(
    /// Of what.
    subject: String,
    #[arg(complete = |typed: &str| vec![format!("{typed}!")])] tone: Option<String>,
) -> PromptMessage {
    PromptMessage::user(format!("Summarise {subject}, {}", tone.unwrap_or_else(|| "plainly".to_owned())))
}

struct Counter {
    count: AtomicU32,
    step: u32,
}

#[tools]
impl Counter {
    fn new(step: u32) -> Counter {
        Counter { count: AtomicU32::new(0), step }
    }

    /// Counts on.
    #[tool(destructive)]
    async fn count(&self, #[arg(default = 1)] times: u32) -> u32 {
        self.count.fetch_add(self.step * times, Ordering::Relaxed) + self.step * times
    }

    /// Counts nothing.
    #[bindpost::tool]
    fn nothing() -> CallToolResult {
        CallToolResult { content: vec![Content::text("nothing")], ..CallToolResult::default() }
    }

    /// What was counted.
    #[resource("count://{unit}")]
    fn counted(&self, #[arg(complete = self.units)] unit: String) -> String {
        format!("{} {unit}", self.count.load(Ordering::Relaxed))
    }

    fn units(&self, _typed: &str) -> Vec<String> {
        vec![format!("x{}", self.step)]
    }

    /// Asks how far it is.
    #[prompt]
    async fn how_far(&self) -> String {
        format!("Is {} far?", self.count.load(Ordering::Relaxed))
    }

    /// Asks for a way.
    #[prompt]
    fn way(&self, from: String, #[arg(complete = self.goals)] to: String) -> String {
        format!("From {from} to {to}")
    }

    /// Knows the value, the call, and the argument that was chosen before.
    async fn goals(&self, typed: String, context: Context) -> Result<Vec<String>, ToolError> {
        let from: Option<String> = context.argument("from")?;
        Ok(vec![format!("{typed} {} {from:?}", self.step)])
    }

    #[resource_list("count")]
    fn all(&self) -> Result<Vec<Resource>, ToolError> {
        Ok(vec![Resource {
            uri: "count://sheep".to_owned(),
            name: "sheep".to_owned(),
            ..Resource::default()
        }])
    }
}

fn server() -> Server {
    Server::builder("fixture", "1.0.0")
        .state("Hello".to_owned())
        .add(entries![add, hello, add_pair, settings, category, numbers, listed, summary])
        .add(Counter::new(2))
        .build()
        .unwrap()
}

/// Connects a client without authentication, although one of the resources is anonymous.
fn connect() -> TestClient {
    TestClient::builder(&server()).without_auth().connect_lazily()
}

async fn ask(method: &str, params: Value) -> Value {
    connect().request(method, params).await.unwrap()
}

async fn call(tool: &str, arguments: Value) -> Result<String, String> {
    let reply = connect().call(tool, arguments).await;
    reply.map(|reply| reply.text()).map_err(|error| error.to_string())
}

async fn tool_definition(name: &str) -> Value {
    let tools = ask("tools/list", json!({})).await;
    let tools = tools["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap().clone()
}

#[tokio::test]
async fn a_tool_is_described_by_its_function() {
    assert_eq!(
        tool_definition("add").await,
        json!({
            "name": "add",
            "description": "Adds two numbers.\n\nBoth of them.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "a": {"type": "number", "description": "The first one."},
                    "b": {"type": "number", "description": "The second one.", "maximum": 100},
                },
                "required": ["a", "b"],
                "additionalProperties": false,
            },
            "annotations": {
                "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": true
            },
        })
    );
    // The function itself is unchanged.
    assert_eq!(add(1.0, 2.0).await, 3.0);
}

#[tokio::test]
async fn every_option_of_a_tool_is_listed() {
    assert_eq!(
        tool_definition("say.hello").await,
        json!({
            "name": "say.hello",
            "title": "Say hello",
            "description": "Says hello.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "firstName": {
                        "type": "string", "description": "Whom to greet.",
                        "minLength": 2, "maxLength": 20, "pattern": "^[A-Z]"
                    },
                    "howSo": {"type": "string", "enum": ["warm", "cold"], "default": "warm"},
                    "times": {"type": "integer", "minimum": 1, "maximum": 3},
                },
                "required": ["firstName"],
                "additionalProperties": false,
            },
            "annotations": {
                "title": "Say hello",
                "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false
            },
            "icons": [{"src": "https://example.com/hello.png"}],
            "_meta": {"example.com/tag": "x", "example.com/n": 3},
        })
    );
}

#[tokio::test]
async fn arguments_arrive_as_their_types() {
    assert_eq!(call("add", json!({"a": 1, "b": 2.5})).await.unwrap(), "3.5");
    let hello = |arguments: Value| call("say.hello", arguments);
    assert_eq!(hello(json!({"firstName": "Ada"})).await.unwrap(), "Hello, Ada, warm x1");
    let all = json!({"firstName": "Ada", "howSo": "cold", "times": 2.0});
    assert_eq!(hello(all).await.unwrap(), "Hello, Ada, cold x2");
    // An omitted argument may be null as well.
    let nulls = json!({"firstName": "Ada", "times": null});
    assert_eq!(hello(nulls).await.unwrap(), "Hello, Ada, warm x1");
    assert_eq!(call("count", json!({})).await.unwrap(), "2");
    assert_eq!(call("count", json!({"times": 4})).await.unwrap(), "8");
    assert_eq!(call("nothing", json!({})).await.unwrap(), "nothing");
}

#[tokio::test]
async fn every_violation_is_named_at_once() {
    let broken = json!({"first_name": "Ada", "firstName": "a", "howSo": "hot", "times": 9});
    assert_eq!(
        call("say.hello", broken).await.unwrap_err(),
        "Invalid arguments for tool \"say.hello\":\n\
         - /firstName: \"a\" is shorter than 2 characters\n\
         - /firstName: \"a\" does not match \"^[A-Z]\"\n\
         - /howSo: \"hot\" is not one of \"warm\", \"cold\"\n\
         - /times: 9 is greater than the maximum of 3\n\
         - \"first_name\" is unknown; did you mean \"firstName\"?"
    );
    let error = call("add", json!({"a": "1"})).await.unwrap_err();
    assert!(
        error.contains("\"b\" is a required property") && error.contains("/a: \"1\" is not of type"),
        "{error}"
    );
}

#[tokio::test]
async fn a_value_is_structured_and_an_error_is_returned_as_text() {
    let definition = tool_definition("add_pair").await;
    assert_eq!(
        definition["outputSchema"],
        json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]})
    );
    assert_eq!(definition["inputSchema"]["required"], json!(["left"]));
    let params = json!({"name": "add_pair", "arguments": {"left": 1, "right": 2}});
    assert_eq!(
        ask("tools/call", params).await,
        json!({"content": [{"type": "text", "text": "{\"sum\":3}"}], "structuredContent": {"sum": 3}})
    );
    let much = json!({"left": i64::MAX, "right": 1});
    assert_eq!(call("add_pair", much).await.unwrap_err(), "that is too much");
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let listed = ask("resources/list", json!({})).await;
    let uris: Vec<&str> =
        listed["resources"].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect();
    let expected = [
        "config://settings",
        "numbers://few",
        "menu://categories/appetizers/1",
        "menu://categories/drinks/1",
        "count://sheep",
    ];
    assert_eq!(uris, expected);
    assert_eq!(
        listed["resources"][0],
        json!({
            "uri": "config://settings", "name": "Server Config", "title": "Settings", "description": "Settings.",
            "mimeType": "application/json", "size": 2
        })
    );
    let templates = ask("resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"][0]["name"], "category");
    assert_eq!(templates["resourceTemplates"][0]["mimeType"], "text/plain");

    let read = |uri: &'static str| ask("resources/read", json!({"uri": uri}));
    let contents = read("menu://categories/drinks/7").await;
    assert_eq!(contents["contents"], json!([{"uri": "menu://drinks", "text": "7"}]));
    let contents = read("numbers://few").await;
    let expected = json!([{"uri": "numbers://few", "mimeType": "application/json", "text": "[1,2,3]"}]);
    assert_eq!(contents["contents"], expected);
    assert_eq!(read("count://sheep").await["contents"][0]["text"], "0 sheep");

    let mut client = connect();
    for (uri, reason) in [
        ("menu://categories/drinks/10", "there are nine pages"),
        ("menu://categories/drinks/many", "invalid params for resources/read: \"page\": invalid type"),
        (
            "menu://categories/drinks/99999999999",
            "invalid params for resources/read: \"page\": invalid value",
        ),
        ("menu://categories/drinks", "resource not found"),
    ] {
        let error = client.request("resources/read", json!({"uri": uri})).await.unwrap_err();
        assert!(error.message.contains(reason), "{uri}: {error}");
    }
}

#[tokio::test]
async fn dynamically_listed_resources_are_paged() {
    let server =
        Server::builder("fixture", "1.0.0").add(entries![settings, listed]).page_size(2).build().unwrap();
    let mut client = TestClient::builder(&server).without_auth().connect_lazily();
    let first = client.request("resources/list", json!({})).await.unwrap();
    assert_eq!(first["resources"].as_array().unwrap().len(), 2);
    let cursor = first["nextCursor"].clone();
    let second = client.request("resources/list", json!({"cursor": cursor})).await.unwrap();
    assert_eq!(second["resources"].as_array().unwrap().len(), 1);
    assert_eq!(second["resources"][0]["uri"], "menu://categories/drinks/1");
    assert!(second.get("nextCursor").is_none());
    assert!(client.request("resources/list", json!({"cursor": "nonsense"})).await.is_err());
}

#[tokio::test]
async fn prompts_take_texts_and_complete_them() {
    let prompts = ask("prompts/list", json!({})).await;
    assert_eq!(
        prompts["prompts"][0],
        json!({
            "name": "summary", "title": "Summary", "description": "Asks for a summary.",
            "arguments": [
                {"name": "subject", "description": "Of what.", "required": true},
                {"name": "tone"},
            ],
        })
    );
    let got = ask("prompts/get", json!({"name": "summary", "arguments": {"subject": "whales"}})).await;
    assert_eq!(got["messages"][0]["content"]["text"], "Summarise whales, plainly");
    let got = ask("prompts/get", json!({"name": "how_far"})).await;
    assert_eq!(got["messages"][0]["content"]["text"], "Is 0 far?");

    let complete = |reference: Value, name: &str, value: &str| {
        let argument = json!({"name": name, "value": value});
        ask("completion/complete", json!({"ref": reference, "argument": argument}))
    };
    let prompt = json!({"type": "ref/prompt", "name": "summary"});
    assert_eq!(complete(prompt, "tone", "oh").await["completion"]["values"], json!(["oh!"]));
    let template = json!({"type": "ref/resource", "uri": "menu://categories/{category_id}/{page}"});
    assert_eq!(complete(template, "category_id", "d").await["completion"]["values"], json!(["drinks"]));
    let template = json!({"type": "ref/resource", "uri": "count://{unit}"});
    assert_eq!(complete(template, "unit", "").await["completion"]["values"], json!(["x2"]));
    let prompt = json!({"type": "ref/prompt", "name": "way"});
    assert_eq!(complete(prompt.clone(), "to", "h").await["completion"]["values"], json!(["h 2 None"]));
    let chosen = json!({"ref": prompt, "argument": {"name": "to", "value": "h"},
        "context": {"arguments": {"from": "here"}}});
    let completed = ask("completion/complete", chosen).await;
    assert_eq!(completed["completion"]["values"], json!([r#"h 2 Some("here")"#]));
}

/// Counts.
#[tool(name = "count")]
fn another_count() -> u32 {
    0
}

/// Another category.
#[resource("menu://categories/{one}/{two}")]
fn another_category(one: String, two: String) -> String {
    one + &two
}

/// Has a parameter without a template variable.
#[resource("menu://specials/{day}")]
fn special(week: String) -> String {
    week
}

/// Requires a state that the server does not have.
#[tool]
fn lost(State(_): State<Arc<u64>>) {}

/// Has both `Args` and a single argument.
#[tool]
fn both(Args(_): Args<Value>, more: String) -> String {
    more
}

/// Has an attribute on the context.
#[tool]
fn confused(#[arg(minimum = 1)] context: Context) -> String {
    context.name().to_owned()
}

/// Has a destructured parameter.
#[tool]
fn apart((a, b): (u8, u8)) -> u8 {
    a + b
}

/// Has an optional argument without a default.
#[tool]
fn absent(#[arg(required = false)] count: u8) -> u8 {
    count
}

/// Has a range without a value.
#[tool]
fn impossible(#[arg(minimum = 10, maximum = 5)] count: u32) -> u32 {
    count
}

/// Has an invalid default.
#[tool]
fn defaulted(#[arg(default = "huge", one_of = ["small", "large"])] size: String) -> String {
    size
}

/// Has constraints that do not fit the types.
#[tool]
fn misplaced(
    #[arg(minimum = 1, max_items = 3)] city: String,
    #[arg(max_length = 3)] count: Option<u8>,
) -> String {
    format!("{city} {count:?}")
}

#[test]
fn mistakes_across_entries_are_rejected_at_start() {
    let built = Server::builder("fixture", "1.0.0")
        .state(7_u8)
        .state(8_u8)
        .add(Counter::new(1))
        .add(entries![category, another_count, another_category, special, lost, both, confused])
        .add(entries![apart, absent, defaulted, impossible, misplaced])
        .build();
    let mistakes = built.unwrap_err().to_string();
    for expected in [
        "tool \"count\" is defined twice: mcp/bindpost/tests/it/attributes.rs:",
        "resource template \"menu://categories/{one}/{two}\": \"menu://categories/{category_id}/{page}\"",
        "covers the same URIs; keep one",
        "resource template \"menu://specials/{day}\": parameter \"week\" has no variable",
        "tool \"lost\": it needs State<alloc::sync::Arc<u64>>, which the server does not have",
        "tool \"both\": `Args<T>` takes all arguments, so \"more\" cannot be one too",
        "tool \"confused\": parameter \"context\" is not an argument",
        "tool \"apart\": a destructured parameter has no name",
        "tool \"absent\": argument \"count\" is not required, but is no `Option` and has no default",
        "tool \"impossible\": argument \"count\" accepts no value: minimum 10 is greater than maximum 5",
        "tool \"defaulted\": the default of argument \"size\" is invalid",
        "tool \"misplaced\": minimum has no effect on argument \"city\", whose type is string; `min_length` limits a text, \
         `min_items` a list; maxItems has no effect on argument \"city\", whose type is string; `max_length` limits a \
         text; maxLength has no effect on argument \"count\", whose type is integer",
        "state \"u8\": the server has a value of this type already; remove one `.state(…)`",
    ] {
        assert!(mistakes.contains(expected), "{expected} is not in:\n{mistakes}");
    }
    // Both definitions are named.
    let line = mistakes.lines().find(|line| line.contains("is defined twice")).unwrap();
    assert_eq!(line.matches("attributes.rs:").count(), 2, "{line}");
}

/// Blocks its thread.
#[tool(blocking, timeout = "50ms")]
fn waits(milliseconds: u64) -> u64 {
    std::thread::sleep(Duration::from_millis(milliseconds));
    milliseconds
}

/// Has a list with an empty default.
#[tool]
fn tagged(#[arg(default = [])] tags: Vec<String>) -> usize {
    tags.len()
}

#[tokio::test]
async fn an_empty_list_is_a_default() {
    let server = Server::builder("s", "1").add(entries![tagged]).build().unwrap();
    let mut client = TestClient::connect(&server);
    assert_eq!(
        client.list_tools().await.unwrap()[0].input_schema["properties"]["tags"]["default"],
        json!([])
    );
    assert_eq!(client.call("tagged", ()).await.unwrap().text(), "0");
    assert_eq!(client.call("tagged", json!({"tags": ["a"]})).await.unwrap().text(), "1");
}

/// Runs as a task.
#[tool(task)]
fn long() -> &'static str {
    "done"
}

#[tokio::test]
async fn a_tool_that_runs_as_a_task_enables_tasks() {
    let server = Server::builder("s", "1").add(entries![long]).build().unwrap();
    let mut client = TestClient::builder(&server).tasks().connect().await.unwrap();
    let mut call = client.start_call("long", ()).await.unwrap();
    assert!(call.task_id().await.is_some());
    assert_eq!(call.await.unwrap().text(), "done");
}

#[tokio::test]
async fn an_error_of_the_test_client_reads_well_where_a_test_returns_it() {
    let server = Server::builder("s", "1").add(entries![long]).build().unwrap();
    let error = TestClient::connect(&server).call("short", ()).await.unwrap_err();
    assert_eq!(format!("{error:?}"), "unknown tool: short (-32602)");
}

struct Conditional;

#[tools]
impl Conditional {
    /// Exists in this build.
    #[tool(blocking)]
    #[cfg(test)]
    fn there(
        &self,
        /// Not an argument, so this comment is unused.
        context: Context,
    ) -> Result<(), String> {
        if context.name() == "there" { Ok(()) } else { Err("where?".to_owned()) }
    }

    /// Does not exist in this build.
    #[tool]
    #[cfg(not(test))]
    fn not_there(&self) -> NoSuchType {
        NoSuchType
    }
}

#[tokio::test]
async fn a_function_that_blocks_has_a_thread_of_its_own() {
    let server = Server::builder("fixture", "1.0.0").add(entries![waits]).add(Conditional).build().unwrap();
    let mut client = TestClient::connect(&server);
    assert_eq!(client.call("waits", json!({"milliseconds": 1})).await.unwrap().text(), "1");
    assert!(client.call("waits", json!({"milliseconds": 2000})).await.is_err());
    assert_eq!(client.call("there", ()).await.unwrap().text(), "");
    assert!(client.call("not_there", ()).await.unwrap_err().to_string().contains("unknown tool"));
}
