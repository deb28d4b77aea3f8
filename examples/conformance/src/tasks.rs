//! Tools whose calls may continue as tasks.

use std::time::Duration;

use bindpost::protocol::client::ElicitParams;
use bindpost::{Args, Context, ProtocolError, ServerBuilder, TaskSupport, ToolEntry, ToolError};
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    name: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Compute {
    seconds: f64,
    #[serde(default)]
    label: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Delete {
    filename: String,
}

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(
            ToolEntry::new("greet", async |Args(Greet { name }): Args<Greet>| format!("Hello, {name}!"))
                .description("Greets at once"),
        )
        .tool(
            ToolEntry::new("slow_compute", async |Args(Compute { seconds, label }): Args<Compute>| {
                tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 60.0))).await;
                format!("Computed {label} in {seconds} s")
            })
            .description("Computes for a while")
            .task(TaskSupport::WhenPossible),
        )
        .tool(
            ToolEntry::new("failing_job", async || {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Err::<String, _>(ToolError::new("The job failed as intended."))
            })
            .description("Fails after a second")
            .task(TaskSupport::Required),
        )
        .tool(
            ToolEntry::new("protocol_error_job", async || {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Err::<String, _>(ToolError::from(ProtocolError::Internal("the job failed".into())))
            })
            .description("Fails with a protocol error")
            .task(TaskSupport::WhenPossible),
        )
        .tool(
            ToolEntry::new("confirm_delete", confirm_delete)
                .description("Asks before it deletes")
                .task(TaskSupport::WhenPossible),
        )
        .tool(
            ToolEntry::new("multi_input", multi_input)
                .description("Asks two things at once")
                .task(TaskSupport::WhenPossible),
        )
        .tool(
            ToolEntry::new("test_tool_with_task", ask_then_task)
                .description("Asks for a name, then continues as a task"),
        )
}

async fn confirm_delete(
    context: Context,
    Args(Delete { filename }): Args<Delete>,
) -> Result<String, ToolError> {
    let schema =
        json!({"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]});
    let question = ElicitParams::form(format!("Delete {filename}?"), schema);
    let answer = context.elicit_with("confirm", question).await?;
    Ok(match answer.field("confirm") {
        Some(Value::Bool(true)) => format!("Deleted {filename}"),
        _ => format!("Kept {filename}"),
    })
}

async fn multi_input(context: Context) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let (first, second) = tokio::join!(
        context.elicit_with("first", ElicitParams::form("First name?", schema.clone())),
        context.elicit_with("second", ElicitParams::form("Second name?", schema)),
    );
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(format!("Got {} and {}", text(first?.field("name")), text(second?.field("name"))))
}

async fn ask_then_task(context: Context) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let answer = context.elicit_with("user_name", ElicitParams::form("What is your name?", schema)).await?;
    let name = answer.field("name").and_then(Value::as_str).unwrap_or("stranger").to_owned();
    context.go_on_as_task().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(format!("Hello, {name}, from a task!"))
}
