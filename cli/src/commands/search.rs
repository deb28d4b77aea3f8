//! `bindpost search`: Azure AI Search, or the embedded search service, as an MCP server.

mod greeting;

use std::sync::Arc;
use std::time::Instant;

use anyhow::{anyhow, bail};
use bindpost::http::{self, BoundListener, Settings};
use bindpost::stdio;
use bindpost_azure_search::{
    EmbeddedOptions, EmbeddedService, EntraCredential, Kind, SearchClient, SearchServer, ServerOverview,
    ServiceFailure, api, api_key_credential, is_local, remote_client, sample,
};
use bindpost_mcp_openapi::{Credential, Document, LoadOptions};
use serde_json::Value;

use self::greeting::{IndexRow, SearchStartScreen, StartWarning};
use super::check_access_flags;
use crate::flags::SearchFlags;

/// Where the key of a service is looked for, the first first.
const KEYS: [&str; 2] = ["AZURE_SEARCH_API_KEY", "AZURE_SEARCH_KEY"];

pub(crate) async fn run(flags: SearchFlags) -> anyhow::Result<()> {
    let begin = Instant::now();
    // Bound before anything is opened: a port that is taken shows at once.
    let bound = match flags.stdio {
        true => None,
        false => Some(bind(&flags).await?),
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
    let server = SearchServer::builder(client.clone())
        .document(document)
        .read_only(flags.read_only)
        .confirms(!flags.without_confirmation)
        .answer_bytes(flags.answer_budget)
        .build()?;
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
                read_only: flags.read_only,
                operations,
                overview,
                indexes,
                made,
                warnings,
                ready_ms: begin.elapsed().as_millis(),
            };
            greeting::print_start_screen(&facts, flags.json)?;
            bound.serve(server.server().clone(), settings(flags)).await
        }
    };
    if let Some(embedded) = embedded {
        embedded.stop().await?;
    }
    Ok(served?)
}

async fn bind(flags: &SearchFlags) -> anyhow::Result<BoundListener> {
    check_access_flags(&flags.host, flags.without_auth, &flags.allow_host, &flags.allow_origin)?;
    http::bind((flags.host.as_str(), flags.port))
        .await
        .map_err(|error| anyhow!("{error}\n  fix: choose another port with --port N, or --port 0 for any"))
}

fn settings(flags: SearchFlags) -> Settings {
    Settings {
        allowed_hosts: flags.allow_host,
        allowed_origins: flags.allow_origin,
        open_to_all: flags.without_auth,
        ..Settings::default()
    }
}

/// What the service's interface is: the built-in description, or the user's.
async fn document(flags: &SearchFlags) -> anyhow::Result<Document> {
    let (spec, roots) = (flags.spec.clone(), flags.spec_root.clone());
    let read = tokio::task::spawn_blocking(move || match spec.is_empty() {
        true => api::document(),
        false => Document::load(&spec, &LoadOptions { roots, ..LoadOptions::default() }),
    });
    Ok(read.await??)
}

/// What was passed over in the description: the first few, since one missing file makes many alike.
fn description_warnings(passed_over: &[String]) -> Vec<StartWarning> {
    let (shown, rest) = passed_over.split_at(passed_over.len().min(3));
    let mut warnings: Vec<StartWarning> =
        shown.iter().map(|text| StartWarning::from_text(text, None)).collect();
    if !rest.is_empty() {
        warnings.push(StartWarning::from_text(
            &format!("{} more places of the description are left open", rest.len()),
            None,
        ));
    }
    warnings
}

/// The service that is named, or the embedded one.
async fn service(flags: &SearchFlags) -> anyhow::Result<(SearchClient, Option<EmbeddedService>)> {
    if let Some(endpoint) = &flags.endpoint {
        return Ok((remote_client(endpoint, credential(endpoint)?, &flags.api_version)?, None));
    }
    let options = EmbeddedOptions { data: flags.data.clone(), port: flags.service_port };
    // These errors tell their causes themselves.
    let embedded = EmbeddedService::start(options).await.map_err(|error| anyhow!("{error}"))?;
    Ok((embedded.client_of_version(&flags.api_version), Some(embedded)))
}

/// Who we are at the service: a key of the environment.
fn credential(endpoint: &str) -> anyhow::Result<Credential> {
    let key = KEYS.iter().filter_map(|name| std::env::var(name).ok()).find(|key| !key.trim().is_empty());
    if let Some(key) = key {
        return Ok(api_key_credential(key.trim()));
    }
    if !is_local(endpoint) {
        let lookup = |name: &str| std::env::var(name).ok();
        let tokens = EntraCredential::from_variables(&lookup).map_err(|error| anyhow!("{error}"))?;
        return Ok(Credential::Source(Arc::new(tokens)));
    }
    bail!(
        "--endpoint {endpoint}: there is no key for this service\n  \
         fix: export AZURE_SEARCH_API_KEY=KEY  (from the keys.json in the service's data folder)"
    )
}

/// The indexes with their numbers of documents. Versions that do not count all at once tell the names.
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

/// The service did not tell its indexes. The server serves all the same: what is wrong may be over soon.
fn index_list_warning(flags: &SearchFlags, failure: &ServiceFailure) -> StartWarning {
    let fix = match (failure.kind, failure.status) {
        (Kind::Unauthorized, _) => {
            "put an admin key of this very service into AZURE_SEARCH_API_KEY; query keys only search"
        }
        (_, None) => "check --endpoint, and that this machine reaches it",
        (Kind::InvalidRequest | Kind::ResourceNotFound, _) => "check --endpoint and --api-version",
        _ => "try again in a while",
    };
    let place = flags.endpoint.as_deref().unwrap_or("the embedded service");
    let status = failure.status.map(|status| format!(" ({status})")).unwrap_or_default();
    StartWarning::from_text(
        &format!("{place} does not tell its indexes{status}: {}", failure.message),
        Some(fix),
    )
}
