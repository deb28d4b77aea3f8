//! The MCP server of a search service, built from the entries of the other modules.

use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_openapi::{AsksIf, Bridge, BridgeError, CursorSigner, Document, DocumentError, Upstream};
use bindpost_mcp_server::protocol::Revision;
use bindpost_mcp_server::{BuildError, Entry, ListKind, Server, TaskLimits, ToolHints};
use serde_json::{Map, Value, json};

use crate::resources::IndexerWatch;
use crate::service::api;
use crate::service::client::SearchClient;
use crate::shared::SearchServerState;
use crate::tools::builder::{DESTROYS, READS};
use crate::tools::search_folder::{self, ServedFolder};
use crate::tools::tool_set::ToolSet;
use crate::tools::{diagnose, evaluate, everyday, explain, filter, index_change, indexer_runs, profile};
use crate::{prompts, resources};

/// Default maximum size of one result, in bytes of JSON.
pub const ANSWER_BYTES: usize = 64 * 1024;
/// Maximum size of `tools/list`, in bytes of JSON.
pub const LIST_BYTES: usize = 40 * 1024;

/// Instructions for the model.
const INSTRUCTIONS: &str = "\
Search over indexes of documents. Start with listIndexes, then profileIndex of a suitable one: it shows the fields, \
their attributes and example values. Build filters with buildFilter, which reports invalid fields, and search \
with searchDocuments; explainSearch explains why a document is found or missing. Longer lists have a nextCursor: send it \
back as cursor. Definitions have an etag: send it back to change only the version you have read.";
/// The instruction for the tools for every operation.
const OPERATIONS: &str =
    "Everything else is an operation of the API: findOperations, describeOperation, callOperation.";

const REPLACES: ToolHints = ToolHints { destructive: false, ..DESTROYS };

/// Hints that the HTTP method alone does not determine, in any API description: POSTs that only read,
/// POSTs that delete, and PUTs that do not remove data.
const OVERRIDES: &[(&str, ToolHints)] = &[
    ("Documents_SearchPost", READS),
    ("Documents_SuggestPost", READS),
    ("Documents_AutocompletePost", READS),
    ("Indexes_Analyze", READS),
    ("KnowledgeRetrieval_Retrieve", READS),
    ("Documents_Index", ToolHints { idempotent: false, ..DESTROYS }),
    ("Indexers_Reset", DESTROYS),
    ("Indexers_ResetDocs", DESTROYS),
    ("Indexers_Resync", DESTROYS),
    ("Skillsets_ResetSkills", DESTROYS),
    ("KnowledgeAgents_CreateOrUpdate", REPLACES),
    ("KnowledgeSources_CreateOrUpdate", REPLACES),
    ("DataSources_CreateOrUpdate", REPLACES),
    ("Indexers_CreateOrUpdate", REPLACES),
    ("Aliases_CreateOrUpdate", REPLACES),
];

/// Operations that need confirmation besides DELETEs, as in the tools of the other modules: resets of
/// long work, batches that delete, changes that take an index offline, and updates that replace a
/// complete definition.
const ASK_FIRST: &[(&str, AsksIf)] = &[
    ("Indexers_Reset", |_| true),
    ("Indexers_ResetDocs", |_| true),
    ("Indexers_Resync", |_| true),
    ("Skillsets_ResetSkills", |_| true),
    ("SynonymMaps_CreateOrUpdate", may_replace),
    ("Skillsets_CreateOrUpdate", may_replace),
    ("Documents_Index", |arguments| {
        let batch = arguments.get("body").and_then(|body| body.get("value")).and_then(Value::as_array);
        batch.is_some_and(|documents| everyday::deletions(documents) > 0)
    }),
    ("Indexes_CreateOrUpdate", |arguments| {
        arguments.get("allowIndexDowntime").is_some_and(|allowed| *allowed != Value::Bool(false))
    }),
];

/// Returns whether a PUT may overwrite an existing definition: unless its condition
/// requires that none exists.
fn may_replace(arguments: &Map<String, Value>) -> bool {
    let mut conditions = arguments.iter().filter(|(name, _)| name.eq_ignore_ascii_case("if-none-match"));
    !conditions.any(|(_, value)| value == "*")
}

/// An MCP server of a search service; see [`SearchServer::builder`]. Subscriptions are served until it
/// is dropped.
pub struct SearchServer {
    server: Server,
    _watch: IndexerWatch,
}

impl SearchServer {
    /// Returns a builder of a server for this service.
    pub fn builder(client: SearchClient) -> SearchServerBuilder {
        SearchServerBuilder {
            client,
            document: None,
            read_only: false,
            confirms: true,
            tools: ToolSet::default(),
            answer_bytes: ANSWER_BYTES,
            folder: None,
        }
    }

    /// Returns the server, for a transport to serve.
    pub fn server(&self) -> &Server {
        &self.server
    }
}

/// Builds a [`SearchServer`].
#[derive(Debug)]
pub struct SearchServerBuilder {
    client: SearchClient,
    document: Option<Document>,
    read_only: bool,
    confirms: bool,
    tools: ToolSet,
    answer_bytes: usize,
    folder: Option<ServedFolder>,
}

/// An error while the server is built.
#[derive(Debug, thiserror::Error)]
pub enum SearchServerError {
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("cannot read random bytes for cursors from the operating system")]
    Cursors,
    #[error("{0}")]
    Operations(#[from] BridgeError),
    #[error("{0}")]
    Entries(#[from] BuildError),
}

impl SearchServerBuilder {
    /// Replaces the built-in API description.
    pub fn document(mut self, document: Document) -> Self {
        self.document = Some(document);
        self
    }

    /// Serves only tools that do not change the service.
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Sets which tools and prompts are offered. The default is [`ToolSet::All`].
    pub fn tools(mut self, tools: ToolSet) -> Self {
        self.tools = tools;
        self
    }

    /// Sets whether the user must confirm deletions and replacements. The default is true.
    pub fn confirms(mut self, yes: bool) -> Self {
        self.confirms = yes;
        self
    }

    /// Sets the maximum size of one result, in bytes of JSON.
    pub fn answer_bytes(mut self, bytes: usize) -> Self {
        self.answer_bytes = bytes;
        self
    }

    /// Adds tools for a folder of definitions.
    pub fn folder(mut self, folder: ServedFolder) -> Self {
        self.folder = Some(folder);
        self
    }

    /// Builds the server. Must be called within a tokio runtime, which polls the indexers with subscribers.
    pub fn build(self) -> Result<SearchServer, SearchServerError> {
        let document = match self.document {
            Some(document) => document,
            None => api::document()?,
        };
        let shared = Arc::new(SearchServerState {
            client: self.client,
            document: Arc::new(document),
            cursors: CursorSigner::new().map_err(|_| SearchServerError::Cursors)?,
            read_only: self.read_only || self.tools.only_reads(),
            confirms: self.confirms,
            answer_bytes: self.answer_bytes,
        });
        let mut entries = own_entries(&shared);
        if let Some(folder) = self.folder {
            entries.extend(search_folder::entries(&shared, folder));
        }
        entries.retain(|entry| self.tools.has(entry));
        if self.tools.has_operations() {
            entries.extend(operations(&shared)?);
        }
        let server = Server::builder("bindpost-search", env!("CARGO_PKG_VERSION"))
            .title("Azure AI Search")
            .description("Search, analyze and manage indexes of Azure AI Search.")
            .instructions(match self.tools {
                ToolSet::All => format!("{INSTRUCTIONS} {OPERATIONS}"),
                _ => INSTRUCTIONS.to_owned(),
            })
            .tasks(TaskLimits::default())
            .offer_all()
            .add(entries);
        let server = server.build()?;
        let _watch = resources::watch_indexers(&server, &shared);
        Ok(SearchServer { server, _watch })
    }
}

/// Returns the handwritten tools, resources and prompts in the order of the lists: the most used first.
pub fn own_entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let known = Arc::new(everyday::IndexCache::default());
    let files = [
        everyday::search_entries(shared, &known),
        profile::entries(shared),
        filter::entries(shared),
        explain::entries(shared),
        everyday::document_entries(shared, &known),
        evaluate::entries(shared),
        everyday::analysis(shared),
        index_change::entries(shared),
        indexer_runs::entries(shared),
        diagnose::entries(shared),
        everyday::definitions(shared),
        resources::entries(shared),
        prompts::entries(shared),
    ];
    files.into_iter().flatten().collect()
}

/// Returns three tools for all operations of the API description: find, describe, call.
fn operations(shared: &Arc<SearchServerState>) -> Result<Vec<Entry>, SearchServerError> {
    let upstream = Upstream::clone(shared.client.upstream());
    let mut bridge = Bridge::builder(shared.document.clone(), upstream)
        .scheme("search")
        // Three tools even for few operations, because the main tools are those of the other modules.
        .list_budget(0)
        .answer_budget(shared.answer_bytes)
        .confirms(shared.confirms)
        .conceals(|operation, answer| {
            // Documents are data and are not changed.
            if !operation.path.contains("/docs") {
                everyday::hide_secrets(answer);
            }
        })
        // They contain the URL of the service.
        .hides(["@odata.context", "@odata.nextLink"])
        .fixed("api-version", shared.client.api_version())
        .fixed("Prefer", "return=representation");
    if shared.read_only {
        bridge = bridge.read_only();
    }
    for (operation, hints) in OVERRIDES {
        if shared.document.operation(operation).is_some() {
            bridge = bridge.hints(*operation, *hints);
        }
    }
    for (operation, asks) in ASK_FIRST {
        if shared.document.operation(operation).is_some() {
            bridge = bridge.asks_if(*operation, *asks);
        }
    }
    Ok(bridge.build()?.tools())
}

/// The lists of a server as a client receives them.
#[derive(Clone, Debug, Default)]
pub struct ServerOverview {
    /// Definitions of the tools.
    pub tools: Vec<Value>,
    /// URIs of the resources and of the templates.
    pub resources: Vec<String>,
    pub templates: Vec<String>,
    /// Names of the prompts.
    pub prompts: Vec<String>,
    /// Size of `tools/list`, in bytes of JSON.
    pub list_bytes: usize,
}

impl ServerOverview {
    /// Lists the entries of the server.
    pub async fn from_server(server: &Server) -> ServerOverview {
        let tools = list(server, ListKind::Tools).await;
        let members = |list: Vec<Value>, member: &str| -> Vec<String> {
            list.iter().filter_map(|item| item[member].as_str().map(str::to_owned)).collect()
        };
        ServerOverview {
            resources: members(list(server, ListKind::Resources).await, "uri"),
            templates: members(list(server, ListKind::Templates).await, "uriTemplate"),
            prompts: members(list(server, ListKind::Prompts).await, "name"),
            list_bytes: json!({"tools": tools}).to_string().len(),
            tools,
        }
    }
}

async fn list(server: &Server, kind: ListKind) -> Vec<Value> {
    let listed = server.list_definitions(kind, Revision::LATEST_WITH_HANDSHAKE, None);
    // Lists of resources call the service, which may be slow or unreachable.
    let listed = tokio::time::timeout(Duration::from_secs(10), listed).await;
    listed.ok().and_then(Result::ok).unwrap_or_default()
}
