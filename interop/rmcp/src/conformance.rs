//! The checks with the fixtures of `examples/conformance`.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rmcp::{
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, ContentBlock, GetPromptRequestParams,
        ReadResourceRequestParams, ResourceContents,
    },
    service::PeerRequestOptions,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{ANSWER, Client, Headers, Way, report::Report};

/// Runs the checks. `proxy_url` is the proxy of `cargo xtask interop`. There is none on stdio.
pub async fn run(
    report: &mut Report,
    way: &Way<'_>,
    server: &str,
    proxy_url: Option<&str>,
) -> anyhow::Result<()> {
    let client = way.connect(server, &Headers::new()).await?;
    report.ok("connect");
    report.check("list", list(&client)).await;
    report.check("call", simple_call(&client)).await;
    report.check("progress", progress(&client)).await;
    report.check("elicitation", elicitation(&client, way)).await;
    report.check("read", read(&client)).await;
    report.check("prompt", prompt(&client)).await;
    report.check("cancel", cancel(&client)).await;
    // From 2026-07-28 on a stream cannot be resumed: a dropped connection is a cancelled call.
    if let Some(proxy_url) = proxy_url.filter(|_| !way.is_modern()) {
        let client = way.connect(proxy_url, &Headers::new()).await?;
        report.check("hang-up", hang_up(&client)).await;
        report.check("cut", progress(&client)).await;
        client.cancel().await?;
    }
    client.cancel().await?;
    Ok(())
}

async fn list(client: &Client) -> anyhow::Result<()> {
    let tools = client.list_all_tools().await?;
    let resources = client.list_all_resources().await?;
    let prompts = client.list_all_prompts().await?;
    ensure!(tools.iter().any(|tool| tool.name == "test_simple_text"), "test_simple_text is not listed");
    ensure!(resources.iter().any(|it| it.uri == "test://static-text"), "test://static-text is not listed");
    ensure!(
        prompts.iter().any(|prompt| prompt.name == "test_simple_prompt"),
        "test_simple_prompt is not listed"
    );
    Ok(())
}

async fn simple_call(client: &Client) -> anyhow::Result<()> {
    let text = call(client, "test_simple_text", json!({})).await?;
    same(&text, "This is a simple text response for testing.")
}

/// Checks that the same three events arrive after the proxy of `cargo xtask interop` has closed the connection: no
/// event was lost or duplicated.
async fn progress(client: &Client) -> anyhow::Result<()> {
    call(client, "test_tool_with_progress", json!({})).await?;
    let seen = std::mem::take(&mut *client.service().progress.lock().expect("no check panics"));
    ensure!(seen == [0.0, 50.0, 100.0], "progress was {seen:?}");
    Ok(())
}

async fn elicitation(client: &Client, way: &Way<'_>) -> anyhow::Result<()> {
    if way.is_modern() {
        let text = call(client, "test_input_required_result_elicitation", json!({})).await?;
        same(&text, &format!("Hello, {ANSWER}!"))
    } else {
        let text = call(client, "test_elicitation", json!({ "message": "Who is there?" })).await?;
        ensure!(text.starts_with("User response: ") && text.contains(ANSWER), "the answer is not in: {text}");
        Ok(())
    }
}

async fn read(client: &Client) -> anyhow::Result<()> {
    same(&text_of(client, "test://static-text").await?, "This is the content of the static text resource.")
}

async fn prompt(client: &Client) -> anyhow::Result<()> {
    let prompt = client.get_prompt(GetPromptRequestParams::new("test_simple_prompt")).await?;
    let message = prompt.messages.first().context("the prompt has no message")?;
    same(text(&message.content)?, "This is a simple prompt for testing.")
}

async fn cancel(client: &Client) -> anyhow::Result<()> {
    let before = cancelled_count(client).await?;
    let request =
        ClientRequest::CallToolRequest(CallToolRequest::new(params("test_slow", json!({ "seconds": 30 }))));
    let running = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    // The call must have reached the server before it can be cancelled there.
    sleep(Duration::from_millis(500)).await;
    running.cancel(Some("no longer needed".into())).await?;
    let asked = Instant::now();
    while cancelled_count(client).await? != before + 1 {
        ensure!(asked.elapsed() < Duration::from_secs(5), "test://cancelled-count is still {before}");
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// The server ends the stream of a call early. The result arrives by GET with Last-Event-ID.
async fn hang_up(client: &Client) -> anyhow::Result<()> {
    call(client, "test_reconnection", json!({})).await.map(drop)
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> anyhow::Result<String> {
    let result = client.call_tool(params(tool, arguments)).await?;
    ensure!(result.is_error != Some(true), "{tool} ended as an error");
    Ok(text(result.content.first().context("the result has no content")?)?.to_owned())
}

fn params(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

fn text(content: &ContentBlock) -> anyhow::Result<&str> {
    Ok(&content.as_text().context("the content is not text")?.text)
}

async fn cancelled_count(client: &Client) -> anyhow::Result<u32> {
    Ok(text_of(client, "test://cancelled-count").await?.parse()?)
}

async fn text_of(client: &Client, uri: &str) -> anyhow::Result<String> {
    let read = client.read_resource(ReadResourceRequestParams::new(uri)).await?;
    match read.contents.into_iter().next() {
        Some(ResourceContents::TextResourceContents { text, .. }) => Ok(text),
        other => anyhow::bail!("{uri} is not text: {other:?}"),
    }
}

fn same(actual: &str, expected: &str) -> anyhow::Result<()> {
    ensure!(actual == expected, "{actual:?} is not {expected:?}");
    Ok(())
}
