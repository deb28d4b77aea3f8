//! The MCP server over a search service: everything that the other files offer, put together.

use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_openapi::{AsksIf, Bridge, BridgeError, CursorSigner, Document, DocumentError, Upstream};
use bindpost_mcp_server::testing::TestClient as MemoryClient;
use bindpost_mcp_server::{BuildError, Entry, Server, TaskLimits, ToolHints};
use serde_json::{Map, Value, json};

use crate::client::SearchClient;
use crate::resources::IndexerWatch;
use crate::shared::SearchServerState;
use crate::tool::{DESTROYS, READS};
use crate::{
    api, diagnose, evaluate, explain, filter, front, index_change, indexer_runs, profile, prompts, resources,
};

/// As much as one answer holds unless told otherwise, in bytes of JSON.
pub const ANSWER_BYTES: usize = 64 * 1024;
/// As much as `tools/list` should hold, in bytes of JSON.
pub const LIST_BYTES: usize = 40 * 1024;

/// What a model reads first.
const INSTRUCTIONS: &str = "\
Search over indexes of documents. Start with listIndexes, then profileIndex of the one that fits: it shows the fields, \
what each can do, and examples of values. Make filters with buildFilter, which names the field that is wrong, and ask \
with searchDocuments; explainSearch says why a document is found or missing. Longer lists have a nextCursor: hand it \
back as cursor. Definitions have an etag: hand it back to change only what you have seen. What no tool of its own does \
is an operation: findOperations, describeOperation, callOperation.";

const REPLACES: ToolHints = ToolHints { destructive: false, ..DESTROYS };

/// What the verb alone does not tell, whichever document is used: POSTs that only read, those that destroy, PUTs that
/// add to what was there.
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

/// Besides DELETEs, what the tools of the other files ask about, too: what throws away work that takes long to do again,
/// batches that delete, changes that take an index offline, definitions that are replaced whole.
const ASK_FIRST: &[(&str, AsksIf)] = &[
    ("Indexers_Reset", |_| true),
    ("Indexers_ResetDocs", |_| true),
    ("Indexers_Resync", |_| true),
    ("Skillsets_ResetSkills", |_| true),
    ("SynonymMaps_CreateOrUpdate", may_replace),
    ("Skillsets_CreateOrUpdate", may_replace),
    ("Documents_Index", |arguments| {
        let batch = arguments.get("body").and_then(|body| body.get("value")).and_then(Value::as_array);
        batch.is_some_and(|documents| front::deletions(documents) > 0)
    }),
    ("Indexes_CreateOrUpdate", |arguments| {
        arguments.get("allowIndexDowntime").is_some_and(|allowed| *allowed != Value::Bool(false))
    }),
];

/// Whether a PUT may write over what is there: unless its condition says that there must be nothing.
fn may_replace(arguments: &Map<String, Value>) -> bool {
    let mut conditions = arguments.iter().filter(|(name, _)| name.eq_ignore_ascii_case("if-none-match"));
    !conditions.any(|(_, value)| value == "*")
}

/// An MCP server over a search service; see [`SearchServer::builder`]. Subscriptions are looked after until it is dropped.
pub struct SearchServer {
    server: Server,
    _watch: IndexerWatch,
}

impl SearchServer {
    /// Starts a server over this service.
    pub fn builder(client: SearchClient) -> SearchServerBuilder {
        SearchServerBuilder {
            client,
            document: None,
            read_only: false,
            confirms: true,
            answer_bytes: ANSWER_BYTES,
        }
    }

    /// The server, for a transport to serve.
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
    answer_bytes: usize,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum SearchServerError {
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("the operating system gives no random bytes for cursors")]
    Cursors,
    #[error("{0}")]
    Operations(#[from] BridgeError),
    #[error("{0}")]
    Entries(#[from] BuildError),
}

impl SearchServerBuilder {
    /// Another description of the interface than the built-in one.
    pub fn document(mut self, document: Document) -> Self {
        self.document = Some(document);
        self
    }

    /// Offers nothing that changes the service.
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Whether the user is asked before something is destroyed; yes unless told.
    pub fn confirms(mut self, yes: bool) -> Self {
        self.confirms = yes;
        self
    }

    /// As much as one answer may hold, in bytes of JSON.
    pub fn answer_bytes(mut self, bytes: usize) -> Self {
        self.answer_bytes = bytes;
        self
    }

    /// The server. It has to be built on a runtime, where indexers that clients subscribed to are looked at.
    pub fn build(self) -> Result<SearchServer, SearchServerError> {
        let document = match self.document {
            Some(document) => document,
            None => api::document()?,
        };
        let shared = Arc::new(SearchServerState {
            client: self.client,
            document: Arc::new(document),
            cursors: CursorSigner::new().map_err(|_| SearchServerError::Cursors)?,
            read_only: self.read_only,
            confirms: self.confirms,
            answer_bytes: self.answer_bytes,
        });
        let mut entries = own_entries(&shared);
        entries.extend(operations(&shared)?);
        let server = Server::builder("bindpost-search", env!("CARGO_PKG_VERSION"))
            .title("Azure AI Search")
            .description("Search, understand and look after indexes of Azure AI Search.")
            .instructions(INSTRUCTIONS)
            .tasks(TaskLimits::default())
            .offer_all()
            .add(entries);
        let server = server.build()?;
        let _watch = resources::watch_indexers(&server, &shared);
        Ok(SearchServer { server, _watch })
    }
}

/// The tools, resources and prompts that are made by hand, in the order in which lists show them: what is called most
/// comes first.
pub fn own_entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let known = Arc::new(front::IndexCache::default());
    let files = [
        front::search_entries(shared, &known),
        profile::entries(shared),
        filter::entries(shared),
        explain::entries(shared),
        front::document_entries(shared, &known),
        evaluate::entries(shared),
        front::analysis(shared),
        index_change::entries(shared),
        indexer_runs::entries(shared),
        diagnose::entries(shared),
        front::definitions(shared),
        resources::entries(shared),
        prompts::entries(shared),
    ];
    files.into_iter().flatten().collect()
}

/// All operations of the document, through three tools: find, describe, call.
fn operations(shared: &Arc<SearchServerState>) -> Result<Vec<Entry>, SearchServerError> {
    let upstream = Upstream::clone(shared.client.upstream());
    let mut bridge = Bridge::builder(shared.document.clone(), upstream)
        .scheme("search")
        // However few they are: the tools in front are those of the other files.
        .list_budget(0)
        .answer_budget(shared.answer_bytes)
        .confirms(shared.confirms)
        .conceals(|operation, answer| {
            // Documents are data and are left as they are.
            if !operation.path.contains("/docs") {
                front::hide_secrets(answer);
            }
        })
        // They name the service's address.
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

/// What a server offers, as a client sees it.
#[derive(Clone, Debug, Default)]
pub struct ServerOverview {
    /// Definitions of tools.
    pub tools: Vec<Value>,
    /// URIs of resources, and of templates.
    pub resources: Vec<String>,
    pub templates: Vec<String>,
    /// Names of prompts.
    pub prompts: Vec<String>,
    /// The size of `tools/list`, in bytes of JSON.
    pub list_bytes: usize,
}

impl ServerOverview {
    /// Asks the server for its lists, in memory, as any client would.
    pub async fn from_server(server: &Server) -> ServerOverview {
        let tools = list(server, "tools/list").await;
        let members = |list: &Value, name: &str, member: &str| -> Vec<String> {
            let items = list[name].as_array().into_iter().flatten();
            items.filter_map(|item| item[member].as_str().map(str::to_owned)).collect()
        };
        let resources = list(server, "resources/list").await;
        let templates = list(server, "resources/templates/list").await;
        let prompts = list(server, "prompts/list").await;
        ServerOverview {
            resources: members(&resources, "resources", "uri"),
            templates: members(&templates, "resourceTemplates", "uriTemplate"),
            prompts: members(&prompts, "prompts", "name"),
            list_bytes: tools.to_string().len(),
            tools: tools["tools"].as_array().cloned().unwrap_or_default(),
        }
    }
}

async fn list(server: &Server, method: &str) -> Value {
    let mut client = MemoryClient::connect(server);
    let asked = async {
        client.send(json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string()).await;
        client.next().await
    };
    // Lists of resources ask the service, which may be far away or not there at all.
    let answer = tokio::time::timeout(Duration::from_secs(10), asked).await;
    let answer: Value =
        answer.ok().flatten().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    answer["result"].clone()
}
