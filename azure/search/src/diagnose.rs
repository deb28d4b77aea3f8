//! `diagnoseIndexer`: why an indexer fails, cause by cause, and what to do about each.

mod causes;
mod checks;

use std::sync::Arc;

use bindpost_mcp_server::{Context, Entry, TaskSupport, ToolError, ToolHints};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::quoted;
use crate::failure::{Failure, Kind};
use crate::indexer_runs::run_to_its_end;
use crate::indexer_runs::status::Status;
use crate::shared::Shared;
use crate::tool::{Outline, READS, counted, object};

/// As many keys as one call to retry them names.
const MOST_RETRIED: usize = 100;

pub(crate) fn entries(shared: &Arc<Shared>) -> Vec<Entry> {
    let read_only = shared.read_only;
    let description = "Explains what is wrong with an indexer: errors and warnings of its last runs grouped by cause with \
        the failing keys, its data source, target index, field mappings, skillset and schedule checked, a fix for each \
        finding, and the exact calls that retry the failed documents.";
    let mut properties = json!({
        "indexerName": {"type": "string", "minLength": 1},
        "clientRequestId": {"type": "string"}
    });
    if !read_only {
        properties["run"] = json!({"type": "boolean", "default": false, "description": "run it first, then look at that run"});
    }
    let hints = ToolHints { read_only, idempotent: read_only, ..READS };
    let outline = Outline::new("diagnoseIndexer", description, hints, properties, &["indexerName"]);
    let entry = outline.typed(shared, diagnose).timeout(None);
    let entry = if read_only { entry } else { entry.task(TaskSupport::WhenPossible) };
    vec![entry.into()]
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    indexer_name: String,
    #[serde(default)]
    run: bool,
    client_request_id: Option<String>,
}

/// Everything that an indexer consists of. What is named and not there is `Missing`.
pub(crate) struct Parties {
    pub(crate) indexer: Value,
    pub(crate) data_source: Party,
    pub(crate) index: Party,
    pub(crate) skillset: Party,
}

/// Something that the indexer names.
pub(crate) enum Party {
    /// It names none.
    None,
    There(Value),
    Missing(String),
    /// It could not be read, and why.
    Unknown(String),
}

async fn diagnose(shared: Arc<Shared>, context: Context, arguments: Arguments) -> Result<Value, ToolError> {
    let (name, id) = (arguments.indexer_name.as_str(), arguments.client_request_id.as_deref());
    let parties = Parties::read(&shared, name, id).await?;
    let mut ran = Map::new();
    if arguments.run && !shared.read_only {
        // A run that cannot even begin is one more thing to tell.
        match run_to_its_end(&shared, &context, name).await {
            Ok(told) => ran.extend(told),
            Err(failure) => _ = ran.insert("failed".to_owned(), failure.to_json()),
        }
    }
    let status = Status::read(&shared.client, name, id).await?;
    let causes = causes::group(&status);
    let mut findings = checks::check(&parties, &status);
    findings.extend(causes.iter().map(causes::Cause::finding));
    let broken = findings.iter().filter(|finding| finding.is_error()).count();
    let summary = match (findings.len(), broken) {
        (0, _) => "Nothing is wrong with it.".to_owned(),
        (all, 0) => {
            format!("It works; {} worth knowing.", counted(all as u64, "thing is", "things are"))
        }
        (_, broken) => {
            let things = counted(broken as u64, "thing keeps", "things keep");
            format!("{things} it from working as it should.")
        }
    };
    let mut told = object(json!({
        "indexerName": name,
        "summary": summary,
        "status": status.overall(),
        "lastRun": status.last().map(|last| {
            let mut told = last.told();
            // The causes tell of them.
            told.retain(|member, _| !matches!(member.as_str(), "errors" | "warnings" | "listed"));
            told
        }),
        "findings": findings.into_iter().map(checks::Finding::told).collect::<Vec<_>>(),
    }));
    if let Some(retry) = retry(name, &causes) {
        told.insert("retry".to_owned(), retry);
    }
    if !ran.is_empty() {
        ran.retain(|member, _| !matches!(member.as_str(), "errors" | "warnings"));
        told.insert("ran".to_owned(), Value::Object(ran));
    }
    Ok(Value::Object(told))
}

/// The calls that take the failed documents once more, after what is wrong with them was put right.
fn retry(name: &str, causes: &[causes::Cause]) -> Option<Value> {
    let mut keys: Vec<&str> = Vec::new();
    for key in causes.iter().filter(|cause| cause.is_error).flat_map(|cause| &cause.keys) {
        if keys.len() < MOST_RETRIED && !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        return None;
    }
    // A run tells of documents by their key, or of files by their address when no document came of them.
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

impl Parties {
    async fn read(shared: &Shared, name: &str, id: Option<&str>) -> Result<Parties, Failure> {
        let call = shared.client.get(format!("indexers{}", quoted(name)));
        let indexer = call.request_id(id).send().await?.body;
        let (data_source, index, skillset) = tokio::join!(
            Party::read(shared, "datasources", &indexer, "dataSourceName", id),
            Party::read(shared, "indexes", &indexer, "targetIndexName", id),
            Party::read(shared, "skillsets", &indexer, "skillsetName", id),
        );
        Ok(Parties { indexer, data_source, index, skillset })
    }
}

impl Party {
    async fn read(shared: &Shared, kind: &str, indexer: &Value, member: &str, id: Option<&str>) -> Party {
        let name = indexer.get(member).and_then(Value::as_str).filter(|name| !name.is_empty());
        let Some(name) = name else { return Party::None };
        let call = shared.client.get(format!("{kind}{}", quoted(name)));
        match call.request_id(id).send().await {
            Ok(answer) => Party::There(answer.body),
            Err(failure) if failure.kind == Kind::ResourceNotFound => Party::Missing(name.to_owned()),
            Err(failure) => Party::Unknown(failure.message),
        }
    }
}
