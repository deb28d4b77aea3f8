//! Resources: definitions, statistics, the status of indexers, and the schemas of the API.

mod watching;

use std::sync::Arc;

use bindpost_mcp_openapi::SchemaPurpose;
use bindpost_mcp_protocol::Resource;
use bindpost_mcp_server::{
    Context, Entry, ProtocolError, ResourceEntry, ResourceListEntry, Signature, TemplateEntry, ToolError,
};
use serde_json::{Value, json};

use crate::service::client::odata_key;
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::everyday::{DefinitionKind, KINDS, hide_secrets, name_of, read_definition, read_list};

pub use watching::{IndexerWatch, watch_indexers};

const JSON: &str = "application/json";
/// The scheme of the resources, and of the schemas.
const SCHEME: &str = "search";
const SCHEMAS: &str = "search-schema://{definition}";
/// Kinds whose definitions are resources, by path.
const SHOWN: &[&str] = &["indexes", "agents", "knowledgesources"];
/// Maximum number of definitions of a kind in `resources/list`.
const MAX_LISTED: usize = 1_000;

/// Returns the resources and templates of this module.
pub(crate) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for kind in shown_kinds() {
        entries.push(collection(kind, shared));
        entries.push(definition(kind, shared));
    }
    entries.push(status(shared));
    let service = "Counters and limits of the service: documents, indexes, indexers, storage.";
    entries.push(statistics("servicestats", "service statistics", service, shared));
    let indexes = "Number of documents and bytes of every index.";
    entries.push(statistics("indexstats", "index statistics", indexes, shared));
    entries.push(listing(shared));
    entries.push(schemas(shared));
    entries
}

fn shown_kinds() -> impl Iterator<Item = &'static DefinitionKind> {
    KINDS.iter().filter(|kind| SHOWN.iter().any(|path| kind.has_path(path)))
}

/// `search://indexes`: all definitions of a kind in brief form, with the URI of each.
fn collection(kind: &'static DefinitionKind, shared: &Arc<SearchServerState>) -> Entry {
    let shared = shared.clone();
    let read = move || {
        let shared = shared.clone();
        async move {
            let mut items = read_list(kind, &shared, None, None).await?;
            for item in &mut items {
                item["uri"] = uri_of(kind, name_of(item)).into();
            }
            let whole = json!({"items": items}).to_string();
            if whole.len() <= shared.answer_bytes {
                return Ok::<String, ToolError>(whole);
            }
            let told = |item: &Value| {
                let name = name_of(item);
                json!({"name": name, "description": item.get("description"), "uri": uri_of(kind, name)})
            };
            let items: Vec<Value> = items.iter().map(told).collect();
            Ok(json!({"items": items, "note": "names only, because the result would be too long; read each by its uri"})
                .to_string())
        }
    };
    ResourceEntry::new(kind.resource(), kind.words, read)
        .description(format!("All {}, in brief.", kind.words))
        .mime_type(JSON)
        .into()
}

/// `search://indexes/{name}`: one definition.
fn definition(kind: &'static DefinitionKind, shared: &Arc<SearchServerState>) -> Entry {
    let (reader, completer) = (shared.clone(), shared.clone());
    let name = kind.word.split_once(' ').map_or(kind.word, |(_, word)| word);
    TemplateEntry::new(format!("{}/{{name}}", kind.resource()), name, move |context: Context| {
        let shared = reader.clone();
        async move {
            let name = context.variable("name").unwrap_or_default();
            resource_body(&context, read_definition(kind, &shared, name, None).await)
                .map(|answer| answer.to_string())
        }
    })
    .description(format!("The definition of {}: {}.", kind.word, kind.about))
    .mime_type(JSON)
    .complete_with("name", move |typed| names(kind, completer.clone(), typed))
    .into()
}

/// `search://indexers/{name}/status`, which supports subscriptions.
fn status(shared: &Arc<SearchServerState>) -> Entry {
    let (reader, completer) = (shared.clone(), shared.clone());
    let entry =
        TemplateEntry::new("search://indexers/{name}/status", "indexer status", move |context: Context| {
            let shared = reader.clone();
            async move {
                let name = context.variable("name").unwrap_or_default();
                let path = format!("indexers{}/search.status", odata_key(name));
                resource_body(&context, shared.client.get(path).send().await).map(|answer| answer.to_string())
            }
        })
        .description(
            "The state of an indexer and its runs. Subscribe to be notified when a run starts, makes progress or ends.",
        )
        .mime_type(JSON);
    match indexers() {
        Some(kind) => entry.complete_with("name", move |typed| names(kind, completer.clone(), typed)).into(),
        None => entry.into(),
    }
}

fn indexers() -> Option<&'static DefinitionKind> {
    KINDS.iter().find(|kind| kind.has_path("indexers"))
}

/// `search://servicestats` and `search://indexstats`.
fn statistics(path: &'static str, name: &str, description: &str, shared: &Arc<SearchServerState>) -> Entry {
    let shared = shared.clone();
    ResourceEntry::new(format!("{SCHEME}://{path}"), name, move || {
        let shared = shared.clone();
        async move {
            let answer = shared.client.get(path).send().await?;
            Ok::<String, ToolError>(answer.body.to_string())
        }
    })
    .description(description)
    .mime_type(JSON)
    .into()
}

/// Adds the definitions to `resources/list`.
fn listing(shared: &Arc<SearchServerState>) -> Entry {
    let shared = shared.clone();
    ResourceListEntry::with_signature(SCHEME, Signature::new(), move |_| {
        let shared = shared.clone();
        async move { Ok(list_resources(&shared).await) }
    })
    .into()
}

async fn list_resources(shared: &SearchServerState) -> Vec<Resource> {
    let mut resources = Vec::new();
    for kind in shown_kinds().chain(indexers()) {
        // A kind that the key cannot list, or that the service does not have, is skipped.
        let items = match read_list(kind, shared, Some("name,description"), None).await {
            Ok(items) => items,
            // Older API versions have no `description` of an index.
            Err(failure) if failure.status == Some(400) => {
                read_list(kind, shared, Some("name"), None).await.unwrap_or_default()
            }
            Err(failure) => {
                tracing::debug!(kind = kind.words, failure = %failure.to_json(), "not listed");
                continue;
            }
        };
        resources.extend(items.iter().take(MAX_LISTED).map(|item| resource(kind, item)));
    }
    resources
}

fn resource(kind: &DefinitionKind, item: &Value) -> Resource {
    let name = name_of(item);
    let (uri, about) = match kind.has_path("indexers") {
        true => {
            (format!("{}/status", uri_of(kind, name)), "The state of an indexer and its runs.".to_owned())
        }
        false => (uri_of(kind, name), format!("The definition of {}.", kind.word)),
    };
    let own = item.get("description").and_then(Value::as_str).filter(|text| !text.is_empty());
    Resource {
        uri,
        name: name.to_owned(),
        description: Some(own.map_or(about, str::to_owned)),
        mime_type: Some(JSON.to_owned()),
        ..Resource::default()
    }
}

/// Returns the URI of a definition. Names consist of letters, digits, `-` and `_`.
/// Other characters are encoded.
fn uri_of(kind: &DefinitionKind, name: &str) -> String {
    format!("{}/{}", kind.resource(), crate::service::client::percent_encoded(name))
}

/// Returns the names of indexes with this prefix, for the templates of other modules.
pub(crate) async fn index_names(
    shared: Arc<SearchServerState>,
    typed: String,
) -> Result<Vec<String>, ToolError> {
    match KINDS.iter().find(|kind| kind.has_path("indexes")) {
        Some(kind) => names(kind, shared, typed).await,
        None => Ok(Vec::new()),
    }
}

/// Returns the names of indexers with this prefix.
pub(crate) async fn indexer_names(
    shared: Arc<SearchServerState>,
    typed: String,
) -> Result<Vec<String>, ToolError> {
    match indexers() {
        Some(kind) => names(kind, shared, typed).await,
        None => Ok(Vec::new()),
    }
}

/// Returns the names of a kind with this prefix, without regard to case.
async fn names(
    kind: &'static DefinitionKind,
    shared: Arc<SearchServerState>,
    typed: String,
) -> Result<Vec<String>, ToolError> {
    let items = read_list(kind, &shared, Some("name"), None).await?;
    let typed = typed.to_lowercase();
    let names = items.iter().map(name_of).filter(|name| name.to_lowercase().starts_with(&typed));
    Ok(names.map(str::to_owned).collect())
}

/// Returns the content of a resource. A missing definition becomes the MCP error for unknown resources.
fn resource_body(
    context: &Context,
    answer: Result<crate::service::client::ServiceResponse, ServiceFailure>,
) -> Result<Value, ToolError> {
    match answer {
        Ok(mut answer) => {
            hide_secrets(&mut answer.body);
            Ok(answer.body)
        }
        Err(failure) if failure.kind == Kind::ResourceNotFound => {
            Err(ProtocolError::UnknownResource(context.uri().unwrap_or_default().to_owned()).into())
        }
        Err(failure) => Err(failure.into()),
    }
}

/// `search-schema://{definition}`: the complete schemas that tools show in brief.
fn schemas(shared: &Arc<SearchServerState>) -> Entry {
    let (reader, completer) = (shared.document.clone(), shared.document.clone());
    TemplateEntry::new(SCHEMAS, "schema", move |context: Context| {
        let document = reader.clone();
        async move {
            let name = context.variable("definition").unwrap_or_default();
            match document.definitions.get(name) {
                Some(schema) => Ok(document.whole_schema(schema, SchemaPurpose::Input).to_string()),
                None => Err(ToolError::from(ProtocolError::UnknownResource(
                    context.uri().unwrap_or_default().to_owned(),
                ))),
            }
        }
    })
    .description("JSON Schema of a definition of the service's API, such as SearchIndex or SearchIndexer.")
    .mime_type("application/schema+json")
    .complete("definition", move |typed| {
        let typed = typed.to_lowercase();
        let names = completer.definitions.keys().filter(|name| name.to_lowercase().starts_with(&typed));
        names.cloned().collect()
    })
    .into()
}
