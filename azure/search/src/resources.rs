//! Resources: the definitions of the service, its statistics, the state of its indexers, and the schemas of its interface.

mod watching;

use std::sync::Arc;

use bindpost_mcp_openapi::SchemaPurpose;
use bindpost_mcp_protocol::Resource;
use bindpost_mcp_server::{
    Context, Entry, ProtocolError, ResourceEntry, ResourceListEntry, Signature, TemplateEntry, ToolError,
};
use serde_json::{Value, json};

use crate::client::odata_key;
use crate::failure::{Kind, ServiceFailure};
use crate::front::{DefinitionKind, KINDS, hide_secrets, name_of, read_definition, read_list};
use crate::shared::SearchServerState;

pub use watching::{IndexerWatch, watch_indexers};

const JSON: &str = "application/json";
/// The scheme of the resources, and of the schemas.
const SCHEME: &str = "search";
const SCHEMAS: &str = "search-schema://{definition}";
/// Kinds whose definitions are resources, by their paths.
const SHOWN: &[&str] = &["indexes", "agents", "knowledgesources"];
/// As many of a kind as `resources/list` shows.
const MOST_LISTED: usize = 1_000;

/// The resources of this module, and the templates.
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

/// `search://indexes`: all definitions of a kind in short, and where each is whole.
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
            Ok(json!({"items": items, "note": "names only, because all is too long: read each by its uri"})
                .to_string())
        }
    };
    ResourceEntry::new(kind.resource(), kind.words, read)
        .description(format!("All {}, in short.", kind.words))
        .mime_type(JSON)
        .into()
}

/// `search://indexes/{name}`
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

/// `search://indexers/{name}/status`, which can be subscribed to.
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
            "The state of an indexer and its runs. Subscribe to hear when a run starts, goes on or ends.",
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

/// `search://servicestats` and its like.
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

/// What `resources/list` shows besides what is always there.
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
        // A key that cannot list one kind, or a service that does not have it, hides no other.
        let items = match read_list(kind, shared, Some("name,description"), None).await {
            Ok(items) => items,
            // Older versions have no `description` of an index to select.
            Err(failure) if failure.status == Some(400) => {
                read_list(kind, shared, Some("name"), None).await.unwrap_or_default()
            }
            Err(failure) => {
                tracing::debug!(kind = kind.words, failure = %failure.to_json(), "not listed");
                continue;
            }
        };
        resources.extend(items.iter().take(MOST_LISTED).map(|item| resource(kind, item)));
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

/// Where a definition is. Names are letters, digits, `-` and `_`; anything else is encoded.
fn uri_of(kind: &DefinitionKind, name: &str) -> String {
    format!("{}/{}", kind.resource(), crate::client::percent_encoded(name))
}

/// The names of indexes that begin as typed, for templates of other files.
pub(crate) async fn index_names(
    shared: Arc<SearchServerState>,
    typed: String,
) -> Result<Vec<String>, ToolError> {
    match KINDS.iter().find(|kind| kind.has_path("indexes")) {
        Some(kind) => names(kind, shared, typed).await,
        None => Ok(Vec::new()),
    }
}

/// The names of indexers that begin as typed.
pub(crate) async fn indexer_names(
    shared: Arc<SearchServerState>,
    typed: String,
) -> Result<Vec<String>, ToolError> {
    match indexers() {
        Some(kind) => names(kind, shared, typed).await,
        None => Ok(Vec::new()),
    }
}

/// The names of a kind that begin as typed, whatever the case.
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

/// What was read; what is not there is told as MCP tells it.
fn resource_body(
    context: &Context,
    answer: Result<crate::client::ServiceResponse, ServiceFailure>,
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

/// `search-schema://{definition}`: the whole of what tools show in short.
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
    .description(
        "JSON Schema of a definition of the service's interface, such as SearchIndex or SearchIndexer.",
    )
    .mime_type("application/schema+json")
    .complete("definition", move |typed| {
        let typed = typed.to_lowercase();
        let names = completer.definitions.keys().filter(|name| name.to_lowercase().starts_with(&typed));
        names.cloned().collect()
    })
    .into()
}
