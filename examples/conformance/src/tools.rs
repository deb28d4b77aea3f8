//! Tools: content, logging, progress, questions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bindpost::protocol::client::{ElicitParams, ElicitResult, SampleParams};
use bindpost::protocol::lifecycle::LogLevel;
use bindpost::protocol::{CallToolResult, Content, ResourceContents};
use bindpost::{Args, Context, PromptEntry, ServerBuilder, ToolEntry, ToolError};
use serde_json::{Value, json};

use crate::media;

/// Number of cancelled calls of `test_slow`.
pub(crate) static CANCELLED: AtomicU64 = AtomicU64::new(0);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Prompt {
    prompt: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Message {
    message: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Slow {
    seconds: f64,
}

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    let server = server
        .tool(
            ToolEntry::new("test_simple_text", async || "This is a simple text response for testing.")
                .description("Text"),
        )
        .tool(
            ToolEntry::new("test_image_content", async || Content::image(media::PNG, "image/png"))
                .description("An image"),
        )
        .tool(
            ToolEntry::new("test_audio_content", async || Content::audio(media::WAV, "audio/wav"))
                .description("Sound"),
        )
        .tool(
            ToolEntry::new("test_embedded_resource", async || {
                let text = "This is an embedded resource content.";
                let resource = ResourceContents::text("test://embedded-resource", text);
                Content::resource(resource.with_mime_type("text/plain"))
            })
            .description("A resource inside the result"),
        )
        .tool(
            ToolEntry::new("test_multiple_content_types", async || {
                let json = json!({"test": "data", "value": 123}).to_string();
                let resource = ResourceContents::text("test://mixed-content-resource", json);
                vec![
                    Content::text("Multiple content types test:"),
                    Content::image(media::PNG, "image/png"),
                    Content::resource(resource.with_mime_type("application/json")),
                ]
            })
            .description("Text, an image and a resource"),
        )
        .tool(ToolEntry::new("test_tool_with_logging", log).description("Logs three times"))
        .tool(ToolEntry::new("test_logging_tool", log).description("Logs if the client requests it"))
        .tool(ToolEntry::new("test_tool_with_progress", progress).description("Reports progress"))
        .tool(
            ToolEntry::new("test_error_handling", async || {
                CallToolResult::error("This tool intentionally returns an error for testing")
            })
            .description("Fails"),
        )
        .tool(ToolEntry::new("test_slow", slow).description("Runs for some seconds"))
        .tool(
            ToolEntry::new("test_reconnection", reconnection).description("Closes the stream in the middle"),
        )
        .tool(
            ToolEntry::new("test_x_mcp_header", async |Args(arguments): Args<Value>| {
                format!("Region: {}", arguments["region"])
            })
            .description("Repeats an argument in a header")
            .input_schema(json!({"type": "object", "properties": {
                    "region": {"type": "string", "description": "Where to run", "x-mcp-header": "Region"}}})),
        )
        .tool(
            ToolEntry::new("json_schema_2020_12_tool", async |Args(arguments): Args<Value>| {
                arguments.to_string()
            })
            .description("Has a schema with many keywords")
            .input_schema(rich_schema()),
        )
        .tool(
            ToolEntry::new("test_trigger_tool_change", trigger_tool_change).description("Changes the tools"),
        )
        .tool(
            ToolEntry::new("test_trigger_prompt_change", trigger_prompt_change)
                .description("Changes the prompts"),
        );
    add_asking(server)
}

fn add_asking(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(ToolEntry::new("test_sampling", sampling).description("Asks the model"))
        .tool(ToolEntry::new("test_elicitation", elicitation).description("Asks the user"))
        .tool(
            ToolEntry::new("test_elicitation_sep1034_defaults", async |context: Context| {
                elicit_all(&context, defaults_schema()).await
            })
            .description("Asks with defaults"),
        )
        .tool(
            ToolEntry::new("test_elicitation_sep1330_enums", async |context: Context| {
                elicit_all(&context, enums_schema()).await
            })
            .description("Asks for choices"),
        )
        .tool(
            ToolEntry::new("test_missing_capability", async |context: Context| {
                let answer = context.sample_with("sample", SampleParams::user("Hello", 10)).await?;
                Ok::<_, ToolError>(answer.text().unwrap_or_default().to_owned())
            })
            .description("Needs a model"),
        )
        .tool(
            ToolEntry::new("test_streaming_elicitation", async |context: Context| {
                context.progress(0.0, Some(1.0), None).await;
                context.log(LogLevel::Info, None, "about to ask").await;
                ask_name(&context).await
            })
            .description("Logs a message, then asks"),
        )
        .tool(
            ToolEntry::new("test_input_required_result_elicitation", async |context: Context| {
                ask_name(&context).await
            })
            .description("Asks for a name"),
        )
        .tool(
            ToolEntry::new("test_input_required_result_sampling", async |context: Context| {
                let question = SampleParams::user("What is the capital of France?", 100);
                let answer = context.sample_with("capital_question", question).await?;
                Ok::<_, ToolError>(format!("The model says: {}", answer.text().unwrap_or_default()))
            })
            .description("Asks the model"),
        )
        .tool(
            ToolEntry::new("test_input_required_result_list_roots", async |context: Context| {
                let roots = context.roots_with("client_roots").await?.roots;
                let uris: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
                Ok::<_, ToolError>(format!("Roots: {}", uris.join(", ")))
            })
            .description("Asks for the roots"),
        )
        .tool(
            ToolEntry::new("test_input_required_result_request_state", confirm)
                .description("Asks, and carries a state"),
        )
        .tool(
            ToolEntry::new("test_input_required_result_tampered_state", confirm)
                .description("Asks, and detects a changed state"),
        )
        .tool(
            ToolEntry::new("test_input_required_result_multiple_inputs", multiple_inputs)
                .description("Asks three things at once"),
        )
        .tool(
            ToolEntry::new("test_input_required_result_multi_round", multi_round)
                .description("Asks one thing after another"),
        )
        .tool(
            ToolEntry::new("test_input_required_result_capabilities", what_it_can)
                .description("Asks only what the client can answer"),
        )
}

async fn log(context: Context) -> &'static str {
    context.log(LogLevel::Info, None, "Tool execution started").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    context.log(LogLevel::Info, None, "Tool processing data").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    context.log(LogLevel::Info, None, "Tool execution completed").await;
    "Logged three times"
}

async fn progress(context: Context) -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        context.progress(done, Some(100.0), None).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    "Done"
}

async fn slow(context: Context, Args(Slow { seconds }): Args<Slow>) -> String {
    /// Counts calls that are dropped before they are done.
    struct Unfinished(bool);
    impl Drop for Unfinished {
        fn drop(&mut self) {
            if self.0 {
                CANCELLED.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    let mut unfinished = Unfinished(true);
    context.progress(0.0, Some(1.0), None).await;
    tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 60.0))).await;
    unfinished.0 = false;
    format!("Slept {seconds} s")
}

async fn reconnection(context: Context) -> &'static str {
    context.hang_up();
    tokio::time::sleep(Duration::from_millis(200)).await;
    "Reconnection test completed"
}

async fn trigger_tool_change(context: Context) -> &'static str {
    let server = context.server();
    let dynamic = ToolEntry::new("test_dynamic_tool", async || "dynamic")
        .description("Added and removed by another tool");
    if server.catalog().add_tool(dynamic).is_err() {
        server.catalog().remove_tool("test_dynamic_tool");
    }
    "Changed the tools"
}

async fn trigger_prompt_change(context: Context) -> &'static str {
    let server = context.server();
    let dynamic = PromptEntry::new("test_dynamic_prompt", async || "dynamic")
        .description("Added and removed by another tool");
    if server.catalog().add_prompt(dynamic).is_err() {
        server.catalog().remove_prompt("test_dynamic_prompt");
    }
    "Changed the prompts"
}

async fn sampling(context: Context, Args(Prompt { prompt }): Args<Prompt>) -> Result<String, ToolError> {
    let answer = context.sample_with("sample", SampleParams::user(prompt, 100)).await?;
    Ok(format!("LLM response: {}", answer.text().unwrap_or_default()))
}

async fn elicitation(
    context: Context,
    Args(Message { message }): Args<Message>,
) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"}}, "required": ["username", "email"]});
    let answer = context.elicit_with("user", ElicitParams::form(message, schema)).await?;
    Ok(format!("User response: {}", describe(&answer)))
}

async fn elicit_all(context: &Context, schema: Value) -> Result<String, ToolError> {
    let answer = context.elicit_with("fields", ElicitParams::form("Please fill in the form", schema)).await?;
    Ok(format!("Elicitation completed: {}", describe(&answer)))
}

fn describe(answer: &ElicitResult) -> String {
    let content = Value::Object(answer.content.clone().unwrap_or_default());
    format!("action={}, content={content}", answer.action.as_str())
}

fn text_field(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

async fn ask_name(context: &Context) -> Result<String, ToolError> {
    let question = ElicitParams::form("What is your name?", text_field("name"));
    let answer = context.elicit_with("user_name", question).await?;
    let name = answer.field("name").and_then(Value::as_str).unwrap_or("stranger");
    Ok(format!("Hello, {name}!"))
}

async fn confirm(context: Context) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    let answer = context.elicit_with("confirm", ElicitParams::form("Please confirm", schema)).await?;
    Ok(format!("state-ok, action={}", answer.action.as_str()))
}

async fn multiple_inputs(context: Context) -> Result<String, ToolError> {
    let (name, greeting, roots) = tokio::join!(
        context.elicit_with("user_name", ElicitParams::form("What is your name?", text_field("name"))),
        context.sample_with("greeting", SampleParams::user("Generate a greeting", 50)),
        context.roots_with("client_roots"),
    );
    let name = name?.field("name").and_then(Value::as_str).unwrap_or("stranger").to_owned();
    let greeting = greeting?.text().unwrap_or("Hello").to_owned();
    Ok(format!("{greeting} {name}, you have {} roots", roots?.roots.len()))
}

async fn multi_round(context: Context) -> Result<String, ToolError> {
    let question = ElicitParams::form("Step 1: What is your name?", text_field("name"));
    let name = context.elicit_with("step1", question).await?;
    let question = ElicitParams::form("Step 2: What is your favorite color?", text_field("color"));
    let color = context.elicit_with("step2", question).await?;
    let text = |answer: &ElicitResult, field: &str| {
        answer.field(field).and_then(Value::as_str).unwrap_or("unknown").to_owned()
    };
    Ok(format!("{} likes {}", text(&name, "name"), text(&color, "color")))
}

async fn what_it_can(context: Context) -> Result<String, ToolError> {
    let can = context.can_ask();
    if can.sampling.is_some() {
        let answer = context.sample_with("sample", SampleParams::user("Say hello", 50)).await?;
        return Ok(answer.text().unwrap_or_default().to_owned());
    }
    if can.elicits_by_form() {
        return ask_name(&context).await;
    }
    Ok("The client supports no questions".to_owned())
}

fn defaults_schema() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "description": "User status", "enum": ["active", "inactive", "pending"],
                   "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": true}},
        "required": []})
}

fn enums_schema() -> Value {
    let titled = json!([
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"}]);
    json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "description": "Select one option",
                           "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "description": "Select one option with titles", "oneOf": titled},
        "legacyEnum": {"type": "string", "description": "Select one option (legacy)",
                       "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "description": "Select multiple options", "minItems": 1, "maxItems": 3,
                          "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "description": "Select multiple options with titles", "minItems": 1,
                        "maxItems": 3, "items": {"anyOf": titled}}},
        "required": []})
}

fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"}},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "anyOf": [{"required": ["name"]}, {"required": ["address"]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false})
}
