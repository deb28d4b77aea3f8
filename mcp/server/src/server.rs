//! [`Server`]: the builder users start from, and what all calls share.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bindpost_mcp_protocol::jsonrpc::{UNSUPPORTED_PROTOCOL_VERSION, write_json};
use bindpost_mcp_protocol::lifecycle::{
    DiscoverResult, Icon, Implementation, InitializeResult, ListCapability, ResourcesCapability,
    ServerCapabilities,
};
use bindpost_mcp_protocol::{ErrorObject, Meta, Revision, ShapeForRevision, meta};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::budget::ByteBudget;
use crate::call::scheduler::CallScheduler;
use crate::call::seal::StateSealer;
use crate::call::tasks::{TaskLimits, TaskStore};
use crate::catalog::entry::IntoEntries;
use crate::catalog::prompt::PromptEntry;
use crate::catalog::resource::{ResourceEntry, TemplateEntry};
use crate::catalog::resource_list::ResourceListEntry;
use crate::catalog::tool::ToolEntry;
use crate::catalog::{Catalog, CatalogError, CatalogSnapshot};
use crate::error::ProtocolError;
use crate::handler::extract::StateMap;
use crate::peer::session::Session;
use crate::peer::stream::{MessageStream, StreamLimits};
use crate::peer::subscriptions::{ChangeNotification, SubscriptionHub};

/// How much a server does at once, and for how long.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// How long a call may take, unless its entry says otherwise; `None` for as long as it likes.
    pub call_timeout: Option<Duration>,
    /// Calls that run at once. For every four there is one place more, for a client that has no call running.
    pub running_calls: usize,
    /// Calls that wait for their turn; more are refused. Callers are served in turn, and so are the sessions of one
    /// caller. When the queue is full, the client with most calls in it gives one up for a client with fewer.
    pub waiting_calls: usize,
    /// Calls of one session that are under way at once.
    pub calls_per_session: usize,
    /// How much a stream holds.
    pub stream: StreamLimits,
    /// Bytes that are kept for clients, all together: bodies that are being received, bodies of calls that wait,
    /// streams with their pasts, results of tasks, large answers. Beyond them the oldest pasts are dropped, and then
    /// what would keep more is refused.
    pub held_bytes: usize,
    /// Requests that listen for changes at once.
    pub listeners: usize,
    /// Of one caller we know.
    pub listeners_per_caller: usize,
    /// How long a client may take between two rounds of one request.
    pub state_lifetime: Duration,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            call_timeout: Some(Duration::from_secs(60)),
            running_calls: 100,
            waiting_calls: 200,
            calls_per_session: 16,
            stream: StreamLimits::default(),
            held_bytes: 256 * 1024 * 1024,
            listeners: 1_000,
            listeners_per_caller: 100,
            state_lifetime: Duration::from_secs(600),
        }
    }
}

/// What a result says about keeping it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CachePolicy {
    /// Nothing: its kind says nothing.
    Unsaid,
    /// What the server was told.
    AsSet,
    /// It must not be kept: it is an answer to answers.
    Never,
}

/// Who may keep a list or a resource, and share it (2026-07-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheScope {
    /// Everybody gets the same.
    Public,
    /// For this caller only.
    Private,
}

/// An MCP server: a catalog and everything needed to answer requests. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<ServerState>,
}

/// What all calls share.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) catalog: Catalog,
    pub(crate) states: Arc<StateMap>,
    /// The revisions that are spoken, oldest first.
    pub(crate) revisions: Vec<Revision>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) limits: ServerLimits,
    pub(crate) hub: Arc<SubscriptionHub>,
    pub(crate) sealer: StateSealer,
    pub(crate) tasks: Option<Arc<TaskStore>>,
    pub(crate) turns: Arc<CallScheduler>,
    pub(crate) budget: Arc<ByteBudget>,
    stamp: Arc<ResultEnvelope>,
    opening: HandshakeResults,
    shutdown: watch::Sender<bool>,
    pub(crate) wording: Option<NotFoundFormatter>,
}

/// How a server says that something is not there.
pub(crate) struct NotFoundFormatter(pub(crate) Box<Word>);

type Word = dyn Fn(&ProtocolError) -> Option<ErrorObject> + Send + Sync;

impl std::fmt::Debug for NotFoundFormatter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NotFoundFormatter")
    }
}

/// The answers to `initialize` and `server/discover`, encoded once.
#[derive(Debug)]
struct HandshakeResults {
    initialize: [Bytes; Revision::ALL.len()],
    discover: Bytes,
}

impl Server {
    /// Starts a server with this name and version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(Implementation::new(name, version))
    }

    pub(crate) fn shared(&self) -> &Arc<ServerState> {
        &self.shared
    }

    pub(crate) fn from_shared(shared: Arc<ServerState>) -> Server {
        Server { shared }
    }

    /// The tools, resources and prompts; they can change while the server serves.
    pub fn catalog(&self) -> &Catalog {
        &self.shared.catalog
    }

    /// Tells everybody who subscribed to a resource that it has changed.
    pub fn resource_updated(&self, uri: &str) {
        self.shared.hub.announce(&ChangeNotification::Resource(uri));
    }

    /// Makes a stream the place where a session hears of changes.
    pub fn attach_stream(&self, session: &Arc<Session>, stream: &Arc<MessageStream>) {
        session.set_unsolicited(stream.clone());
        self.shared.hub.add_session(session, stream);
    }

    /// A stream of messages to a client; they are gone once read.
    pub fn new_stream(&self) -> Arc<MessageStream> {
        self.shared.new_stream()
    }

    /// A stream that keeps what it delivered, within what the session's streams may keep together.
    pub fn new_resumable_stream(&self, session: &Session) -> Arc<MessageStream> {
        self.shared.new_resumable_stream(session)
    }

    /// What counts the bytes that are kept for clients.
    pub fn budget(&self) -> &Arc<ByteBudget> {
        &self.shared.budget
    }

    /// Ends what would never end by itself: listeners get their last message.
    pub fn shut_down(&self) {
        self.shared.shutdown.send_replace(true);
    }
}

impl ServerState {
    pub(crate) fn new_stream(&self) -> Arc<MessageStream> {
        MessageStream::new(self.limits.stream, self.budget.clone())
    }

    pub(crate) fn new_resumable_stream(&self, session: &Session) -> Arc<MessageStream> {
        MessageStream::new_resumable(self.limits.stream, self.budget.clone(), session.retention_counter())
    }

    /// The answer to a revision that is not spoken.
    pub(crate) fn unsupported_revision(&self, requested: &str) -> ProtocolError {
        let supported: Vec<&str> = self.revisions.iter().map(|revision| revision.as_str()).collect();
        let message =
            format!("unsupported protocol version: {requested}; supported: {}", supported.join(", "));
        let data = json!({"supported": supported, "requested": requested});
        ProtocolError::Other(ErrorObject::new(UNSUPPORTED_PROTOCOL_VERSION, message).with_data(data))
    }

    pub(crate) async fn until_shutdown(&self) {
        let mut shutdown = self.shutdown.subscribe();
        let _ = shutdown.wait_for(|down| *down).await;
    }

    pub(crate) fn initialize_result(&self, revision: Revision) -> Bytes {
        self.opening.initialize[revision.index()].clone()
    }

    pub(crate) fn discover_result(&self, _revision: Revision) -> Bytes {
        self.opening.discover.clone()
    }

    pub(crate) fn write_complete(
        &self,
        out: &mut Vec<u8>,
        revision: Revision,
        result: &impl Serialize,
        own_meta: Option<Meta>,
        cache: CachePolicy,
    ) {
        self.stamp.write_complete(out, revision, result, own_meta, cache);
    }

    pub(crate) fn write_typed(&self, out: &mut Vec<u8>, result_type: &str, result: &impl Serialize) {
        self.stamp.write_typed(out, result_type, result);
    }
}

/// What every result of 2026-07-28 carries besides its own members, encoded once.
#[derive(Debug)]
pub(crate) struct ResultEnvelope {
    server_info: Value,
    /// `"resultType":"complete","_meta":{…}`
    complete: Vec<u8>,
    /// `,"ttlMs":…,"cacheScope":…`
    cache: Vec<u8>,
}

impl ResultEnvelope {
    fn new(implementation: &Implementation, ttl: Duration, scope: CacheScope) -> ResultEnvelope {
        let server_info = json!(implementation);
        let mut complete = b"\"resultType\":\"complete\",\"_meta\":".to_vec();
        write_json(&mut complete, &json!({meta::SERVER_INFO: server_info}));
        let scope = match scope {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        };
        let cache = format!(",\"ttlMs\":{},\"cacheScope\":\"{scope}\"", ttl.as_millis()).into_bytes();
        ResultEnvelope { server_info, complete, cache }
    }

    /// Appends a complete result as its revision writes it. `result` must serialise to an object
    /// without `_meta`; that is `own_meta`.
    pub(crate) fn write_complete(
        &self,
        out: &mut Vec<u8>,
        revision: Revision,
        result: &impl Serialize,
        own_meta: Option<Meta>,
        cache: CachePolicy,
    ) {
        write_json(out, result);
        if !revision.has_result_types() {
            if let Some(meta) = own_meta {
                reopen(out);
                out.extend_from_slice(b"\"_meta\":");
                write_json(out, &meta);
                out.push(b'}');
            }
            return;
        }
        reopen(out);
        match own_meta {
            None => out.extend_from_slice(&self.complete),
            Some(mut meta) => {
                meta.insert(meta::SERVER_INFO.to_owned(), self.server_info.clone());
                out.extend_from_slice(b"\"resultType\":\"complete\",\"_meta\":");
                write_json(out, &meta);
            }
        }
        match cache {
            CachePolicy::Unsaid => {}
            CachePolicy::AsSet => out.extend_from_slice(&self.cache),
            CachePolicy::Never => out.extend_from_slice(b",\"ttlMs\":0,\"cacheScope\":\"private\""),
        }
        out.push(b'}');
    }

    /// Appends a result of another type than `complete`.
    pub(crate) fn write_typed(&self, out: &mut Vec<u8>, result_type: &str, result: &impl Serialize) {
        write_json(out, result);
        reopen(out);
        out.extend_from_slice(b"\"resultType\":");
        write_json(out, &result_type);
        out.extend_from_slice(b",\"_meta\":");
        write_json(out, &json!({meta::SERVER_INFO: self.server_info}));
        out.push(b'}');
    }
}

/// Makes room for more members in the object that was just written.
fn reopen(out: &mut Vec<u8>) {
    out.pop();
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}

/// Builds a [`Server`].
#[derive(Debug)]
pub struct ServerBuilder {
    implementation: Implementation,
    instructions: Option<String>,
    snapshot: CatalogSnapshot,
    mistakes: Vec<CatalogError>,
    limits: ServerLimits,
    page_size: usize,
    cache: (Duration, CacheScope),
    tasks: Option<TaskLimits>,
    state_key: Option<[u8; 32]>,
    extensions: Map<String, Value>,
    declares: CapabilityFlags,
    states: StateMap,
    revisions: Vec<Revision>,
    withholds: CapabilityFlags,
    wording: Option<NotFoundFormatter>,
}

#[derive(Debug, Default)]
struct CapabilityFlags {
    tools: bool,
    resources: bool,
    prompts: bool,
}

impl ServerBuilder {
    fn new(implementation: Implementation) -> ServerBuilder {
        ServerBuilder {
            implementation,
            instructions: None,
            snapshot: CatalogSnapshot::default(),
            mistakes: Vec::new(),
            limits: ServerLimits::default(),
            page_size: 1_000,
            cache: (Duration::ZERO, CacheScope::Private),
            tasks: None,
            state_key: None,
            extensions: Map::new(),
            declares: CapabilityFlags::default(),
            states: StateMap::default(),
            revisions: Revision::ALL.to_vec(),
            withholds: CapabilityFlags::default(),
            wording: None,
        }
    }

    /// Its name for people.
    pub fn title(mut self, title: impl Into<String>) -> ServerBuilder {
        self.implementation.title = Some(title.into());
        self
    }

    /// What it is for.
    pub fn description(mut self, description: impl Into<String>) -> ServerBuilder {
        self.implementation.description = Some(description.into());
        self
    }

    /// Its home on the web.
    pub fn website_url(mut self, url: impl Into<String>) -> ServerBuilder {
        self.implementation.website_url = Some(url.into());
        self
    }

    /// Its pictures.
    pub fn icons(mut self, icons: Vec<Icon>) -> ServerBuilder {
        self.implementation.icons = icons;
        self
    }

    /// How to use it, for the model.
    pub fn instructions(mut self, instructions: impl Into<String>) -> ServerBuilder {
        self.instructions = Some(instructions.into());
        self
    }

    fn add_with(
        mut self,
        add: impl FnOnce(&mut CatalogSnapshot) -> Result<(), CatalogError>,
    ) -> ServerBuilder {
        if let Err(mistake) = add(&mut self.snapshot) {
            self.mistakes.push(mistake);
        }
        self
    }

    /// Adds entries: `entries![one, two]`, a value with `#[tools]` on its `impl` block, or a list.
    #[expect(clippy::should_implement_trait, reason = "nobody adds servers up")]
    pub fn add(self, entries: impl IntoEntries) -> ServerBuilder {
        let entries = entries.into_entries();
        entries.into_iter().fold(self, |builder, entry| builder.add_with(|snapshot| snapshot.add(entry)))
    }

    /// Something that entries share; they take it as [`State<T>`](crate::State). One of each type.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, state: T) -> ServerBuilder {
        self.states.insert(state);
        self
    }

    /// Adds a tool.
    pub fn tool(self, entry: ToolEntry) -> ServerBuilder {
        self.add_with(|snapshot| snapshot.tools.add(entry))
    }

    /// Adds a resource.
    pub fn resource(self, entry: ResourceEntry) -> ServerBuilder {
        self.add_with(|snapshot| snapshot.resources.add(entry))
    }

    /// Adds a resource template.
    pub fn template(self, entry: TemplateEntry) -> ServerBuilder {
        self.add_with(|snapshot| snapshot.templates.add(entry))
    }

    /// Adds a list of resources.
    pub fn resource_list(self, entry: ResourceListEntry) -> ServerBuilder {
        self.add_with(|snapshot| snapshot.add(entry.into()))
    }

    /// Adds a prompt.
    pub fn prompt(self, entry: PromptEntry) -> ServerBuilder {
        self.add_with(|snapshot| snapshot.prompts.add(entry))
    }

    /// Offers tools, resources and prompts even while there are none yet.
    pub fn offer_all(mut self) -> ServerBuilder {
        self.declares = CapabilityFlags { tools: true, resources: true, prompts: true };
        self
    }

    /// Finds tools, prompts and resources whatever the case of their names and URIs, for what once was served
    /// that way. An entry that is spelled as asked comes first.
    pub fn ignore_case(mut self) -> ServerBuilder {
        self.snapshot.ignore_case();
        self
    }

    /// Other words, and another code, for what is not there: [`ProtocolError::UnknownTool`], `UnknownPrompt`
    /// and `UnknownResource`. `None` leaves an error as it is.
    pub fn map_not_found(
        mut self,
        word: impl Fn(&ProtocolError) -> Option<ErrorObject> + Send + Sync + 'static,
    ) -> ServerBuilder {
        self.wording = Some(NotFoundFormatter(Box::new(word)));
        self
    }

    /// The revisions it speaks; all unless told.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> ServerBuilder {
        let mut revisions: Vec<Revision> = revisions.into_iter().collect();
        revisions.sort_unstable();
        revisions.dedup();
        self.revisions = revisions;
        self
    }

    /// Leaves all tools out.
    pub fn without_tools(mut self) -> ServerBuilder {
        self.withholds.tools = true;
        self
    }

    /// Leaves all resources out.
    pub fn without_resources(mut self) -> ServerBuilder {
        self.withholds.resources = true;
        self
    }

    /// Leaves all prompts out.
    pub fn without_prompts(mut self) -> ServerBuilder {
        self.withholds.prompts = true;
        self
    }

    /// How much it does at once, and for how long.
    pub fn limits(mut self, limits: ServerLimits) -> ServerBuilder {
        self.limits = limits;
        self
    }

    /// How many entries one page of a list shows; 1,000 unless told.
    pub fn page_size(mut self, size: usize) -> ServerBuilder {
        self.page_size = size.max(1);
        self
    }

    /// How long, and for whom, lists and resources may be kept (2026-07-28); not at all unless told.
    pub fn cache(mut self, ttl: Duration, scope: CacheScope) -> ServerBuilder {
        self.cache = (ttl, scope);
        self
    }

    /// Turns on the tasks extension.
    pub fn tasks(mut self, limits: TaskLimits) -> ServerBuilder {
        self.tasks = Some(limits);
        self
    }

    /// Declares an extension that the entries serve by themselves.
    pub fn extension(mut self, name: impl Into<String>, settings: Value) -> ServerBuilder {
        self.extensions.insert(name.into(), settings);
        self
    }

    /// The key that seals states between two rounds of a request. Servers that share work share it;
    /// without one, a key is made at start.
    pub fn state_key(mut self, key: [u8; 32]) -> ServerBuilder {
        self.state_key = Some(key);
        self
    }

    /// The server, or every mistake in its entries.
    pub fn build(mut self) -> Result<Server, BuildError> {
        self.mistakes.extend(self.snapshot.check_states(&self.states).err());
        if self.revisions.is_empty() {
            let reason = "it speaks no revision at all; name at least one".to_owned();
            let name = self.implementation.name.clone();
            self.mistakes.push(CatalogError::Invalid { kind: "server", name, reason });
        }
        if !self.mistakes.is_empty() {
            return Err(BuildError(self.mistakes));
        }
        self.snapshot.remove_kinds(self.withholds.tools, self.withholds.resources, self.withholds.prompts);
        let hub = Arc::new(SubscriptionHub::default());
        let capabilities = self.capabilities();
        let (ttl, scope) = self.cache;
        let stamp = Arc::new(ResultEnvelope::new(&self.implementation, ttl, scope));
        let opening = HandshakeResults::new(&self, &capabilities, &stamp);
        let state_key = self.state_key.unwrap_or_else(random_bytes);
        let states = Arc::new(self.states);
        let catalog = Catalog::new(self.snapshot, hub.clone(), self.page_size, stamp.clone(), states.clone());
        let shared = ServerState {
            catalog,
            states,
            revisions: self.revisions,
            capabilities,
            sealer: StateSealer::new(&state_key, self.limits.state_lifetime),
            tasks: self.tasks.map(|limits| Arc::new(TaskStore::new(limits, hub.clone()))),
            hub,
            turns: Arc::new(CallScheduler::new(self.limits.running_calls, self.limits.waiting_calls)),
            budget: ByteBudget::new(self.limits.held_bytes),
            limits: self.limits,
            stamp,
            opening,
            shutdown: watch::Sender::new(false),
            wording: self.wording,
        };
        Ok(Server { shared: Arc::new(shared) })
    }

    fn capabilities(&self) -> ServerCapabilities {
        let snapshot = &self.snapshot;
        let tools = self.declares.tools || !snapshot.tools.is_empty();
        let resources = self.declares.resources
            || !snapshot.resources.is_empty()
            || !snapshot.templates.is_empty()
            || !snapshot.lists.is_empty();
        let prompts = self.declares.prompts || !snapshot.prompts.is_empty();
        let completes = snapshot.prompts.iter().any(|entry| !entry.completers.is_empty())
            || snapshot.templates.iter().any(|entry| !entry.completers.is_empty());
        let mut extensions = self.extensions.clone();
        if self.tasks.is_some() {
            extensions.insert(meta::TASKS_EXTENSION.to_owned(), json!({}));
        }
        ServerCapabilities {
            tools: tools.then_some(ListCapability { list_changed: true }),
            resources: resources.then_some(ResourcesCapability { list_changed: true, subscribe: true }),
            prompts: prompts.then_some(ListCapability { list_changed: true }),
            completions: completes.then(Map::new),
            logging: Some(Map::new()),
            extensions,
            experimental: Map::new(),
        }
    }
}

impl HandshakeResults {
    fn new(
        builder: &ServerBuilder,
        capabilities: &ServerCapabilities,
        stamp: &ResultEnvelope,
    ) -> HandshakeResults {
        let initialize = Revision::ALL.map(|revision| {
            let mut result = InitializeResult {
                protocol_version: revision.as_str().to_owned(),
                capabilities: capabilities.clone(),
                server_info: builder.implementation.clone(),
                instructions: builder.instructions.clone(),
            };
            result.capabilities.shape(revision);
            result.server_info.shape(revision);
            let mut out = Vec::new();
            write_json(&mut out, &result);
            Bytes::from(out)
        });
        let result = DiscoverResult {
            supported_versions: Revision::DISCOVERABLE.map(|revision| revision.as_str().to_owned()).to_vec(),
            capabilities: capabilities.clone(),
            instructions: builder.instructions.clone(),
        };
        let mut discover = Vec::new();
        let revision = Revision::DISCOVERABLE[0];
        stamp.write_complete(&mut discover, revision, &result, None, CachePolicy::AsSet);
        HandshakeResults { initialize, discover: discover.into() }
    }
}

/// Every mistake in a server's entries.
#[derive(Clone, PartialEq, Eq)]
pub struct BuildError(pub Vec<CatalogError>);

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = |mistake: &CatalogError| match mistake {
            // Whoever builds the server may see where; whoever calls it may not.
            CatalogError::Duplicate { kind, name, first, second } => {
                format!("{kind} {name:?} is there twice: {first} and {second}; rename one")
            }
            other => other.to_string(),
        };
        let lines: Vec<String> = self.0.iter().map(line).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// What `main` prints when it returns the error.
impl std::fmt::Debug for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for BuildError {}

/// An unguessable id: 128 bits.
pub(crate) fn random_id() -> String {
    URL_SAFE_NO_PAD.encode(random_bytes::<16>())
}

/// Bytes nobody can guess. Without them no id and no key may be handed out: better not to serve at all.
fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(clippy::expect_used, reason = "the operating system's randomness is a precondition")]
    getrandom::fill(&mut bytes).expect("the operating system gives randomness");
    bytes
}
