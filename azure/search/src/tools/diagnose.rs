//! `diagnoseIndexer`: groups the failures of an indexer by cause and proposes a fix for each.

mod causes;
mod checks;

use std::sync::Arc;

use bindpost_mcp_server::{Context, Entry, TaskSupport, ToolError, ToolHints};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::service::client::odata_key;
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{READS, ToolOutline, into_members, pluralized};
use crate::tools::indexer_runs::run_to_completion;
use crate::tools::indexer_runs::status::IndexerStatus;

/// Maximum number of keys in the proposed retry call.
const MAX_RETRIED: usize = 100;

pub(crate) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let read_only = shared.read_only;
    let description = "Explains what is wrong with an indexer: errors and warnings of its last runs grouped by cause with \
        the failing keys, its data source, target index, field mappings, skillset and schedule checked, a fix for each \
        finding, and the exact calls that retry the failed documents.";
    let mut properties = json!({
        "indexerName": {"type": "string", "minLength": 1},
        "clientRequestId": {"type": "string"}
    });
    if !read_only {
        properties["run"] =
            json!({"type": "boolean", "default": false, "description": "run it first and include that run"});
    }
    let hints = ToolHints { read_only, idempotent: read_only, ..READS };
    let outline = ToolOutline::new("diagnoseIndexer", description, hints, properties, &["indexerName"]);
    let entry = outline.typed(shared, diagnose).timeout(None);
    let entry = if read_only { entry } else { entry.task(TaskSupport::WhenPossible) };
    vec![entry.into()]
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiagnoseArguments {
    indexer_name: String,
    #[serde(default)]
    run: bool,
    client_request_id: Option<String>,
}

/// An indexer and the definitions that it references.
pub(crate) struct IndexerParts {
    pub(crate) indexer: Value,
    pub(crate) data_source: ReferencedDefinition,
    pub(crate) index: ReferencedDefinition,
    pub(crate) skillset: ReferencedDefinition,
}

/// A definition that the indexer references.
pub(crate) enum ReferencedDefinition {
    /// The indexer references none.
    None,
    There(Value),
    Missing(String),
    /// It could not be read, for this reason.
    Unknown(String),
}

async fn diagnose(
    shared: Arc<SearchServerState>,
    context: Context,
    arguments: DiagnoseArguments,
) -> Result<Value, ToolError> {
    let (name, id) = (arguments.indexer_name.as_str(), arguments.client_request_id.as_deref());
    let parties = IndexerParts::read(&shared, name, id).await?;
    let mut ran = Map::new();
    if arguments.run && !shared.read_only {
        // A run that cannot start is part of the report.
        match run_to_completion(&shared, &context, name).await {
            Ok(told) => ran.extend(told),
            Err(failure) => _ = ran.insert("failed".to_owned(), failure.to_json()),
        }
    }
    let status = IndexerStatus::read(&shared.client, name, id).await?;
    let causes = causes::group_by_cause(&status);
    let mut findings = checks::check(&parties, &status);
    findings.extend(causes.iter().map(causes::FailureCause::finding));
    let broken = findings.iter().filter(|finding| finding.is_error()).count();
    let summary = match (findings.len(), broken) {
        (0, _) => "No problems found.".to_owned(),
        (all, 0) => {
            format!("It works. {}.", pluralized(all as u64, "notice", "notices"))
        }
        (_, broken) => {
            let things = pluralized(broken as u64, "problem prevents", "problems prevent");
            format!("{things} it from working correctly.")
        }
    };
    let mut told = into_members(json!({
        "indexerName": name,
        "summary": summary,
        "status": status.overall(),
        "lastRun": status.last().map(|last| {
            let mut told = last.to_json();
            // The findings contain them.
            told.retain(|member, _| !matches!(member.as_str(), "errors" | "warnings" | "listed"));
            told
        }),
        "findings": findings.into_iter().map(checks::IndexerFinding::into_json).collect::<Vec<_>>(),
    }));
    if let Some(retry) = retry_calls(name, &causes) {
        told.insert("retry".to_owned(), retry);
    }
    if !ran.is_empty() {
        ran.retain(|member, _| !matches!(member.as_str(), "errors" | "warnings"));
        told.insert("ran".to_owned(), Value::Object(ran));
    }
    Ok(Value::Object(told))
}

/// Returns the calls that index the failed documents again, after the causes are fixed.
fn retry_calls(name: &str, causes: &[causes::FailureCause]) -> Option<Value> {
    let mut keys: Vec<&str> = Vec::new();
    for key in causes.iter().filter(|cause| cause.is_error).flat_map(|cause| &cause.keys) {
        if keys.len() < MAX_RETRIED && !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        return None;
    }
    // A run identifies documents by key, or files by URL if no document was created from them.
    let (ids, keys): (Vec<&str>, Vec<&str>) = keys.into_iter().partition(|key| key.contains("://"));
    let mut body = Map::new();
    if !keys.is_empty() {
        body.insert("documentKeys".to_owned(), keys.into());
    }
    if !ids.is_empty() {
        body.insert("datasourceDocumentIds".to_owned(), ids.into());
    }
    Some(json!([
        {"tool": "callOperation", "arguments": {
            "operation": "Indexers_ResetDocs", "arguments": {"indexerName": name, "body": body}}},
        {"tool": "runIndexer", "arguments": {"indexerName": name}},
    ]))
}

impl IndexerParts {
    async fn read(
        shared: &SearchServerState,
        name: &str,
        id: Option<&str>,
    ) -> Result<IndexerParts, ServiceFailure> {
        let call = shared.client.get(format!("indexers{}", odata_key(name)));
        let indexer = call.request_id(id).send().await?.body;
        let (data_source, index, skillset) = tokio::join!(
            ReferencedDefinition::read(shared, "datasources", &indexer, "dataSourceName", id),
            ReferencedDefinition::read(shared, "indexes", &indexer, "targetIndexName", id),
            ReferencedDefinition::read(shared, "skillsets", &indexer, "skillsetName", id),
        );
        Ok(IndexerParts { indexer, data_source, index, skillset })
    }
}

impl ReferencedDefinition {
    async fn read(
        shared: &SearchServerState,
        kind: &str,
        indexer: &Value,
        member: &str,
        id: Option<&str>,
    ) -> ReferencedDefinition {
        let name = indexer.get(member).and_then(Value::as_str).filter(|name| !name.is_empty());
        let Some(name) = name else { return ReferencedDefinition::None };
        let call = shared.client.get(format!("{kind}{}", odata_key(name)));
        match call.request_id(id).send().await {
            Ok(answer) => ReferencedDefinition::There(answer.body),
            Err(failure) if failure.kind == Kind::ResourceNotFound => {
                ReferencedDefinition::Missing(name.to_owned())
            }
            Err(failure) => ReferencedDefinition::Unknown(failure.message),
        }
    }
}
