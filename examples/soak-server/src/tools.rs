//! The tools of the soak test. The caller of each tool can compute the expected result.

use std::time::Duration;

use bindpost::protocol::client::ElicitParams;
use bindpost::{Args, Context, ServerBuilder, TaskSupport, TemplateEntry, ToolEntry, ToolError};
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Slow {
    text: String,
    ms: u64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Progress {
    text: String,
    messages: u32,
    /// Milliseconds between two messages.
    ms: u64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Payload {
    text: String,
    bytes: usize,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Changed {
    uri: String,
}

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(
            ToolEntry::new("echo", async |Args(Text { text }): Args<Text>| text)
                .description("Repeats a text at once"),
        )
        .tool(ToolEntry::new("slow", slow).description("Repeats a text after some milliseconds"))
        .tool(ToolEntry::new("progress", progress).description("Reports progress, then repeats a text"))
        .tool(ToolEntry::new("payload", payload).description("Answers with a text of this many bytes"))
        .tool(ToolEntry::new("upload", upload).description("Returns the length and a checksum of a text"))
        .tool(
            ToolEntry::new("job", slow)
                .description("Repeats a text after some milliseconds, as a task where possible")
                .task(TaskSupport::WhenPossible),
        )
        .tool(ToolEntry::new("ask", ask).description("Asks the user for a name"))
        .tool(
            ToolEntry::new("change", change).description("Notifies subscribers that a resource has changed"),
        )
        .template(
            TemplateEntry::new("soak://items/{id}", "item", async |context: Context| {
                format!("item {}", context.variable("id").unwrap_or_default())
            })
            .description("An item to read and to subscribe to")
            .mime_type("text/plain"),
        )
}

async fn slow(Args(Slow { text, ms }): Args<Slow>) -> String {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    text
}

async fn progress(context: Context, Args(Progress { text, messages, ms }): Args<Progress>) -> String {
    for message in 1..=messages {
        context.progress(f64::from(message), Some(f64::from(messages)), None).await;
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    text
}

async fn payload(Args(Payload { text, bytes }): Args<Payload>) -> String {
    text.chars().cycle().take(bytes).collect()
}

async fn upload(Args(Text { text }): Args<Text>) -> String {
    let sum = text.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{} bytes, {sum:08x}", text.len())
}

async fn ask(context: Context, Args(Text { text }): Args<Text>) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let answer = context.elicit_with("name", ElicitParams::form("What is your name?", schema)).await?;
    let name = answer.field("name").and_then(Value::as_str).unwrap_or_default();
    Ok(format!("{text}, {name}"))
}

async fn change(context: Context, Args(Changed { uri }): Args<Changed>) -> String {
    context.server().resource_updated(&uri);
    uri
}
