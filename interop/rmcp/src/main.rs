//! rmcp's client: `interop-rmcp initialize|discover http <url> <url of the proxy>`, or `… stdio <server>`.
//! The fixtures are those of `examples/conformance`.

mod report;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use report::Report;
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
        ContentBlock, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
        GetPromptRequestParams, Implementation, ProgressNotificationParam, ProtocolVersion,
        ReadResourceRequestParams, ResourceContents,
    },
    service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use tokio::{process::Command, time::sleep};

const ANSWER: &str = "Ada";

type Client = RunningService<RoleClient, Handler>;

#[derive(Clone, Default)]
struct Handler {
    progress: Arc<Mutex<Vec<f64>>>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new());
        ClientConfig::new(capabilities, Implementation::new("interop-rmcp", "1.0.0"))
    }

    /// Every field asked for is a string, and gets the same answer.
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { requested_schema, .. } = request else {
            return Err(ErrorData::invalid_params("only forms are expected here", None));
        };
        let content =
            requested_schema.properties.keys().map(|field| (field.clone(), json!(ANSWER))).collect();
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content)))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().expect("no check panics").push(params.progress);
    }
}

// One thread keeps notifications in the order they arrived: rmcp starts a task for each.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Report::run(async |report| match args[..] {
        [mode, "stdio", server] => {
            let server = TokioChildProcess::new({
                let mut command = Command::new(server);
                command.arg("--stdio");
                command
            })?;
            let client = Handler::default().serve_with_lifecycle(server, lifecycle(mode)?).await?;
            conversation(report, &client, mode).await;
            client.cancel().await?;
            Ok(())
        }
        [mode, "http", url, proxy_url] => {
            let client = connect(url, mode).await?;
            conversation(report, &client, mode).await;
            // From 2026-07-28 on a stream cannot be resumed: a dropped connection is a cancelled call.
            if mode == "initialize" {
                let client = connect(proxy_url, mode).await?;
                report.check("hang-up", hang_up(&client)).await;
                report.check("cut", progress(&client)).await;
                client.cancel().await?;
            }
            client.cancel().await?;
            Ok(())
        }
        _ => {
            anyhow::bail!("usage: initialize|discover http <url> <url of the proxy> | stdio <server>")
        }
    })
    .await
}

fn lifecycle(mode: &str) -> anyhow::Result<ClientLifecycleMode> {
    Ok(match mode {
        "initialize" => ClientLifecycleMode::Initialize,
        "discover" => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
        other => anyhow::bail!("{other} is neither initialize nor discover"),
    })
}

async fn connect(url: &str, mode: &str) -> anyhow::Result<Client> {
    let transport = StreamableHttpClientTransport::from_uri(url);
    Ok(Handler::default().serve_with_lifecycle(transport, lifecycle(mode)?).await?)
}

async fn conversation(report: &mut Report, client: &Client, mode: &str) {
    report.check("connect", revision(client, mode)).await;
    report.check("list", list(client)).await;
    report.check("call", simple_call(client)).await;
    report.check("progress", progress(client)).await;
    report.check("elicitation", elicitation(client, mode)).await;
    report.check("read", read(client)).await;
    report.check("prompt", prompt(client)).await;
    report.check("cancel", cancel(client)).await;
}

async fn revision(client: &Client, mode: &str) -> anyhow::Result<()> {
    let expected = if mode == "discover" { "2026-07-28" } else { "2025-11-25" };
    let info = client.peer_info().context("no peer info after the start")?;
    same(info.protocol_version.as_str(), expected)
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

/// After the proxy of `cargo xtask interop` has dropped the connection in the middle, the same three events prove
/// that nothing was lost and nothing came twice.
async fn progress(client: &Client) -> anyhow::Result<()> {
    call(client, "test_tool_with_progress", json!({})).await?;
    let seen = std::mem::take(&mut *client.service().progress.lock().expect("no check panics"));
    ensure!(seen == [0.0, 50.0, 100.0], "progress was {seen:?}");
    Ok(())
}

async fn elicitation(client: &Client, mode: &str) -> anyhow::Result<()> {
    if mode == "discover" {
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
    // The call has to be on its way, or there is nothing to cancel at the server.
    sleep(Duration::from_millis(500)).await;
    running.cancel(Some("no longer needed".into())).await?;
    let asked = Instant::now();
    while cancelled_count(client).await? != before + 1 {
        ensure!(asked.elapsed() < Duration::from_secs(5), "test://cancelled-count is still {before}");
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// The server ends the stream of a call early; the result comes by GET with Last-Event-ID.
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
