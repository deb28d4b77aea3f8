use std::sync::Arc;

use rmcp::model::*;
use rmcp::service::{RequestContext, RoleClient, RunningService};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, ServiceExt, object};
use serde_json::{Value, json};

use crate::open::{Library, Shared};

/// A client whose user fills in the form of `reserve`.
struct User;

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::from_build_env())
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let content = json!({ "email": "a@b.example", "weeks": 2, "pick_up": "locker" });
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }
}

type Client = RunningService<RoleClient, User>;

async fn connect(lifecycle: ClientLifecycleMode) -> anyhow::Result<Client> {
    let (server, client) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let running = Library::new(Arc::<Shared>::default()).serve(server).await?;
        running.waiting().await.map_err(anyhow::Error::from)
    });
    Ok(User.serve_with_lifecycle(client, lifecycle).await?)
}

async fn call(client: &Client, name: &'static str, arguments: JsonObject) -> anyhow::Result<String> {
    let result = client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await?;
    let text = result.content.first().and_then(|content| content.as_text());
    Ok(text.map(|text| text.text.clone()).unwrap_or_default())
}

/// Whether calls work, and questions.
async fn works(lifecycle: ClientLifecycleMode) -> anyhow::Result<(bool, bool)> {
    let client = connect(lifecycle).await?;
    let sum = call(&client, "add", object!({ "a": 1, "b": 2 })).await?;
    let reserved = call(&client, "reserve", object!({ "book": "Dune" })).await?;
    client.cancel().await?;
    Ok((sum == "3", reserved == "Dune 2 locker"))
}

pub async fn run() -> Value {
    let discover = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let legacy = works(ClientLifecycleMode::Initialize).await.unwrap_or_default();
    let modern = works(discover).await.unwrap_or_default();
    json!({
        "call": legacy.0,
        "elicitation": legacy.1 && modern.1,
        // Scopes are middleware of HTTP, which a client in memory does not pass.
        "scopes": false,
        "revisions": legacy.0 && modern.0,
    })
}
