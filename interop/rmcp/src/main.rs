//! rmcp's client: `interop-rmcp initialize|discover http <what> <url> <other url>`, or `… stdio <what> <server>`.
//! `<what>` is `conformance`, and the other url that of the proxy; or a scenario, and the other url that with keys.

mod conformance;
mod report;
mod scenario;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use anyhow::{Context, ensure};
use report::Report;
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationCapability, Implementation, ProgressNotificationParam, ProtocolVersion,
    },
    service::{NotificationContext, RequestContext, RunningService},
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use tokio::process::Command;

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

    /// Every requested field is a string, and gets the same value.
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

/// The connection to a server: its mode and transport.
struct Way<'a> {
    mode: &'a str,
    transport: &'a str,
}

type Headers = BTreeMap<String, String>;

// One thread keeps notifications in the order they arrived: rmcp starts a task for each.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Report::run(async |report| {
        let [mode, transport, what, server, ref rest @ ..] = args[..] else {
            anyhow::bail!("usage: initialize|discover http <what> <url> <other url> | stdio <what> <server>")
        };
        let way = Way { mode, transport };
        let other = rest.first().copied();
        match what {
            "conformance" => conformance::run(report, &way, server, other).await,
            file => scenario::run(report, &way, file, server, other).await,
        }
    })
    .await
}

impl Way<'_> {
    fn is_modern(&self) -> bool {
        self.mode == "discover"
    }

    async fn connect(&self, server: &str, headers: &Headers) -> anyhow::Result<Client> {
        let handler = Handler::default();
        let client = match self.transport {
            "stdio" => {
                let mut command = Command::new(server);
                command.arg("--stdio");
                handler.serve_with_lifecycle(TokioChildProcess::new(command)?, self.lifecycle()?).await?
            }
            "http" => {
                let headers = headers.iter().map(|(name, value)| Ok((name.parse()?, value.parse()?)));
                let config = StreamableHttpClientTransportConfig::with_uri(server)
                    .custom_headers(headers.collect::<anyhow::Result<_>>()?);
                let transport = StreamableHttpClientTransport::from_config(config);
                handler.serve_with_lifecycle(transport, self.lifecycle()?).await?
            }
            other => anyhow::bail!("{other} is neither http nor stdio"),
        };
        let expected = if self.is_modern() { "2026-07-28" } else { "2025-11-25" };
        let info = client.peer_info().context("no peer info after the start")?;
        let revision = info.protocol_version.as_str();
        ensure!(revision == expected, "the revision is {revision}, not {expected}");
        Ok(client)
    }

    fn lifecycle(&self) -> anyhow::Result<ClientLifecycleMode> {
        Ok(match self.mode {
            "initialize" => ClientLifecycleMode::Initialize,
            "discover" => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
            other => anyhow::bail!("{other} is neither initialize nor discover"),
        })
    }
}
