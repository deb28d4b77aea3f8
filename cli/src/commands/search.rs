//! `bindpost search`: Azure AI Search, or the embedded search service, as an MCP server.

mod code;
mod greeting;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{anyhow, bail};
use bindpost::stdio;
use bindpost_azure_hosting::identity::EntraCredential;
use bindpost_azure_search::{
    EmbeddedOptions, EmbeddedService, Kind, SearchClient, SearchServer, ServedFolder, ServerOverview,
    ServiceFailure, TOKEN_RESOURCE, ToolSet, api, api_key_credential, is_local, remote_client, sample,
};
use bindpost_mcp_openapi::{Credential, Document, LoadOptions};
use serde_json::Value;

use self::greeting::{IndexRow, SearchStartScreen, StartWarning};
use super::{PORT, bind, check_access_flags, settings};
use crate::flags::{OfferedTools, SearchFlags};

/// Environment variables of the service's key, in order of precedence.
const KEYS: [&str; 2] = ["AZURE_SEARCH_API_KEY", "AZURE_SEARCH_KEY"];

/// Serves, or runs the subcommand.
pub(crate) async fn run(mut flags: SearchFlags) -> anyhow::Result<ExitCode> {
    match flags.action.take() {
        Some(action) => code::run(action).await,
        None => serve(flags).await.map(|()| ExitCode::SUCCESS),
    }
}

async fn serve(flags: SearchFlags) -> anyhow::Result<()> {
    let begin = Instant::now();
    // The port is bound first, so that a port in use fails at once.
    let bound = match flags.http.stdio {
        true => None,
        false => {
            check_access_flags(&flags.http)?;
            Some(bind(&flags.http, PORT).await?)
        }
    };
    let document = document(&flags).await?;
    let (client, embedded) = service(&flags).await?;
    let mut warnings = description_warnings(&document.warnings);
    let mut made = Vec::new();
    if let (Some(embedded), false) = (&embedded, flags.no_sample) {
        let sample = sample::install(embedded.client(), embedded.data()).await;
        match sample {
            Ok(sample) => made = sample.map(|sample| sample.made).unwrap_or_default(),
            Err(error) => warnings.push(StartWarning::from_text(&error.to_string(), None)),
        }
    }
    let operations = document.operations.len();
    let mut server = SearchServer::builder(client.clone())
        .document(document)
        .tools(match flags.tools {
            OfferedTools::Query => ToolSet::Query,
            OfferedTools::Read => ToolSet::Read,
            OfferedTools::Manage => ToolSet::Manage,
            OfferedTools::All => ToolSet::All,
        })
        .read_only(flags.read_only)
        .confirms(!flags.without_confirmation)
        .answer_bytes(flags.answer_budget);
    if let Some(folder) = &flags.folder {
        server = server.folder(served_folder(folder, &flags, &client));
    }
    let server = server.build()?;
    let indexes = indexes(&client).await.unwrap_or_else(|failure| {
        warnings.push(index_list_warning(&flags, &failure));
        Vec::new()
    });
    let served = match bound {
        None => {
            for warning in &warnings {
                tracing::warn!("{}", warning.line());
            }
            stdio::serve_stdio(server.server()).await
        }
        Some(bound) => {
            let overview = ServerOverview::from_server(server.server()).await;
            let facts = SearchStartScreen {
                mcp: format!("http://{}", bound.local_addr()),
                endpoint: client.upstream().base().trim_end_matches('/').to_owned(),
                embedded: embedded.as_ref(),
                api_version: &flags.api_version,
                read_only: flags.read_only || matches!(flags.tools, OfferedTools::Query | OfferedTools::Read),
                operations: matches!(flags.tools, OfferedTools::All).then_some(operations),
                overview,
                indexes,
                made,
                warnings,
                ready_ms: begin.elapsed().as_millis(),
            };
            greeting::print_start_screen(&facts, flags.json)?;
            bound.serve(server.server().clone(), settings(&flags.http)).await
        }
    };
    if let Some(embedded) = embedded {
        embedded.stop().await?;
    }
    Ok(served?)
}

/// Loads the API description: the built-in one, or that of `--spec`.
async fn document(flags: &SearchFlags) -> anyhow::Result<Document> {
    let (spec, roots) = (flags.spec.clone(), flags.spec_root.clone());
    let read = tokio::task::spawn_blocking(move || match spec.is_empty() {
        true => api::document(),
        false => Document::load(&spec, &LoadOptions { roots, ..LoadOptions::default() }),
    });
    Ok(read.await??)
}

/// Returns warnings for the parts of the description that were skipped. Only the first few are
/// returned, because one missing file causes many.
fn description_warnings(passed_over: &[String]) -> Vec<StartWarning> {
    let (shown, rest) = passed_over.split_at(passed_over.len().min(3));
    let mut warnings: Vec<StartWarning> =
        shown.iter().map(|text| StartWarning::from_text(text, None)).collect();
    if !rest.is_empty() {
        warnings.push(StartWarning::from_text(
            &format!("{} more parts of the description were skipped", rest.len()),
            None,
        ));
    }
    warnings
}

/// Opens the service of `--endpoint`, or starts the embedded service.
async fn service(flags: &SearchFlags) -> anyhow::Result<(SearchClient, Option<EmbeddedService>)> {
    open_service(flags.endpoint.as_deref(), &flags.api_version, &flags.data, flags.service_port).await
}

/// Opens the service at a URL, or starts the embedded service with its data folder.
async fn open_service(
    endpoint: Option<&str>,
    api_version: &str,
    data: &Path,
    port: u16,
) -> anyhow::Result<(SearchClient, Option<EmbeddedService>)> {
    if let Some(endpoint) = endpoint {
        return Ok((remote_client(endpoint, credential(endpoint)?, api_version)?, None));
    }
    let options = EmbeddedOptions { data: data.to_owned(), port };
    // The message of the error contains its sources already.
    let embedded = EmbeddedService::start(options).await.map_err(|error| anyhow!("{error}"))?;
    Ok((embedded.client_of_version(api_version), Some(embedded)))
}

/// Returns the folder of `--folder` for the tools. Its journals are those of the commands.
fn served_folder(folder: &Path, flags: &SearchFlags, client: &SearchClient) -> ServedFolder {
    let service = match &flags.endpoint {
        Some(_) => client.upstream().base().trim_end_matches('/').to_owned(),
        None => {
            std::fs::canonicalize(&flags.data).unwrap_or_else(|_| flags.data.clone()).display().to_string()
        }
    };
    ServedFolder { root: folder.to_owned(), secrets: code::secrets(), service }
}

/// Returns the credential for the service: a key from the environment, or else Entra ID for a remote service.
fn credential(endpoint: &str) -> anyhow::Result<Credential> {
    let key = KEYS.iter().filter_map(|name| std::env::var(name).ok()).find(|key| !key.trim().is_empty());
    if let Some(key) = key {
        return Ok(api_key_credential(key.trim()));
    }
    if !is_local(endpoint) {
        let lookup = |name: &str| std::env::var(name).ok();
        let tokens = EntraCredential::for_resource(TOKEN_RESOURCE, &lookup);
        return Ok(Credential::Source(Arc::new(tokens.map_err(|error| anyhow!("{error}"))?)));
    }
    bail!(
        "--endpoint {endpoint}: no key for this service\n  \
         fix: export AZURE_SEARCH_API_KEY=KEY  (from the keys.json in the service's data folder)"
    )
}

/// Lists the indexes with their document counts. API versions without `indexstats` return the names only.
async fn indexes(client: &SearchClient) -> Result<Vec<IndexRow>, ServiceFailure> {
    let rows = |body: &Value| -> Vec<IndexRow> {
        let all = body["value"].as_array().into_iter().flatten();
        all.filter_map(|index| {
            let name = index["name"].as_str()?.to_owned();
            Some(IndexRow { name, documents: index["documentCount"].as_u64() })
        })
        .collect()
    };
    match client.get("indexstats").send().await {
        Ok(answer) => Ok(rows(&answer.body)),
        Err(failure) if matches!(failure.kind, Kind::ResourceNotFound | Kind::InvalidRequest) => {
            let answer = client.get("indexes").query("$select", "name").send().await?;
            Ok(rows(&answer.body))
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the warning for a failed index list. The server starts anyway, because the
/// failure may be temporary.
fn index_list_warning(flags: &SearchFlags, failure: &ServiceFailure) -> StartWarning {
    let fix = match (failure.kind, failure.status) {
        (Kind::Unauthorized, _) => {
            "set AZURE_SEARCH_API_KEY to an admin key of this service; a query key can only search"
        }
        (_, None) => "check --endpoint and the network connection to it",
        (Kind::InvalidRequest | Kind::ResourceNotFound, _) => "check --endpoint and --api-version",
        _ => "try again later",
    };
    let place = flags.endpoint.as_deref().unwrap_or("the embedded service");
    let status = failure.status.map(|status| format!(" ({status})")).unwrap_or_default();
    StartWarning::from_text(
        &format!("cannot list the indexes of {place}{status}: {}", failure.message),
        Some(fix),
    )
}
