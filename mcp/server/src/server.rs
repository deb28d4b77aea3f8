//! [`Server`] and its builder, and the state that all calls share.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bindpost_mcp_protocol::jsonrpc::write_json;
use bindpost_mcp_protocol::lifecycle::{
    DiscoverResult, Icon, Implementation, InitializeResult, ListCapability, ResourcesCapability,
    ServerCapabilities,
};
use bindpost_mcp_protocol::{ErrorObject, Meta, Revision, ShapeForRevision, meta};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::auth::Caller;
use crate::budget::ByteBudget;
use crate::call::scheduler::CallScheduler;
use crate::call::seal::StateSealer;
use crate::call::tasks::{TaskLimits, TaskStore};
use crate::catalog::app_page::uses_pages;
use crate::catalog::entry::IntoEntries;
use crate::catalog::entry_view::EntryView;
use crate::catalog::prompt::PromptEntry;
use crate::catalog::resource::{ResourceEntry, TemplateEntry};
use crate::catalog::resource_list::ResourceListEntry;
use crate::catalog::tool::{TaskSupport, ToolEntry};
use crate::catalog::visible_entries::EntryFilter;
use crate::catalog::{Catalog, CatalogError, CatalogSnapshot};
use crate::error::{ProtocolError, ToolError};
use crate::handler::extract::StateMap;
use crate::hooks::quota::{CallQuota, QuotaCounter};
use crate::hooks::{HookChain, NextHandler, Operation, OperationResult};
use crate::peer::session::Session;
use crate::peer::stream::{MessageStream, StreamLimits};
use crate::peer::subscriptions::SubscriptionHub;
use crate::result_envelope::{CachePolicy, CacheScope, ResultEnvelope};
use crate::skills::{SkillDrafts, SkillIndex};
use crate::transport::TransportAbilities;

/// The limits on concurrency, memory and time of a server.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// The timeout of a call. An entry can set its own. `None` means no timeout.
    pub call_timeout: Option<Duration>,
    /// The maximum number of calls that run at once. One extra call for every four may run for a client
    /// that has no other call running.
    pub running_calls: usize,
    /// The maximum number of queued calls; further calls are rejected. Callers take turns, and so do the
    /// sessions of one caller. When the queue is full, a call of the client with the most queued calls is
    /// rejected in favour of a client with fewer.
    pub waiting_calls: usize,
    /// The maximum number of concurrent calls of one session.
    pub calls_per_session: usize,
    /// The limits of a stream.
    pub stream: StreamLimits,
    /// The maximum number of bytes held for all clients together: bodies being received, bodies of queued
    /// calls, unread and retained messages of streams, results of tasks, large responses. At the limit the
    /// oldest retained messages are dropped first; then requests that need more memory are rejected.
    pub held_bytes: usize,
    /// The maximum number of concurrent `subscriptions/listen` requests.
    pub listeners: usize,
    /// The maximum number of concurrent `subscriptions/listen` requests of one authenticated caller.
    pub listeners_per_caller: usize,
    /// The maximum time between two rounds of one request.
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

/// An MCP server: a catalog and everything needed to answer requests. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<ServerState>,
}

/// The state that all calls share.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) catalog: Catalog,
    pub(crate) states: Arc<StateMap>,
    /// The supported revisions, oldest first.
    pub(crate) revisions: Vec<Revision>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) limits: ServerLimits,
    pub(crate) hub: Arc<SubscriptionHub>,
    pub(crate) sealer: StateSealer,
    pub(crate) tasks: Option<Arc<TaskStore>>,
    pub(crate) turns: Arc<CallScheduler>,
    pub(crate) budget: Arc<ByteBudget>,
    pub(crate) stamp: Arc<ResultEnvelope>,
    opening: HandshakeResults,
    /// The results for transports that cannot carry notifications.
    opening_without_notifications: HandshakeResults,
    shutdown: watch::Sender<bool>,
    pub(crate) wording: Option<NotFoundFormatter>,
    pub(crate) hooks: HookChain,
    pub(crate) skills: Option<SkillIndex>,
}

/// Formats the errors for unknown tools, prompts and resources.
pub(crate) struct NotFoundFormatter(pub(crate) Box<Word>);

type Word = dyn Fn(&ProtocolError) -> Option<ErrorObject> + Send + Sync;

impl std::fmt::Debug for NotFoundFormatter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NotFoundFormatter")
    }
}

/// The results of `initialize` and `server/discover` with the same capabilities, encoded once.
#[derive(Debug)]
struct HandshakeResults {
    initialize: [Bytes; Revision::ALL.len()],
    discover: Bytes,
}

impl Server {
    /// Returns a builder for a server with this name and version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(Implementation::new(name, version))
    }

    pub(crate) fn shared(&self) -> &Arc<ServerState> {
        &self.shared
    }

    pub(crate) fn from_shared(shared: Arc<ServerState>) -> Server {
        Server { shared }
    }

    /// Returns the tools, resources and prompts. They can change while the server runs.
    pub fn catalog(&self) -> &Catalog {
        &self.shared.catalog
    }

    /// Notifies all subscribers of a resource that it has changed.
    pub fn resource_updated(&self, uri: &str) {
        self.shared.catalog.announce_resource(uri);
    }

    /// Ends all `subscriptions/listen` requests with their result. They would not end by themselves.
    pub fn shut_down(&self) {
        self.shared.shutdown.send_replace(true);
    }
}

/// For [transports](crate::transport).
impl Server {
    /// Returns the supported revisions, oldest first.
    pub fn revisions(&self) -> &[Revision] {
        &self.shared.revisions
    }

    /// Makes this stream the target of the session's change notifications.
    pub fn attach_stream(&self, session: &Arc<Session>, stream: &Arc<MessageStream>) {
        session.set_unsolicited(stream.clone());
        self.shared.hub.add_session(session, stream);
    }

    /// Returns a new stream of messages to a client. Messages are discarded once they are read.
    pub fn new_stream(&self) -> Arc<MessageStream> {
        self.shared.new_stream()
    }

    /// Returns a new stream that retains delivered messages, within the limit that the
    /// session's streams share.
    pub fn new_resumable_stream(&self, session: &Session) -> Arc<MessageStream> {
        self.shared.new_resumable_stream(session)
    }

    /// Returns the budget of the bytes held for clients.
    pub fn budget(&self) -> &Arc<ByteBudget> {
        &self.shared.budget
    }
}

impl ServerState {
    pub(crate) fn new_stream(&self) -> Arc<MessageStream> {
        MessageStream::new(self.limits.stream, self.budget.clone())
    }

    pub(crate) fn new_resumable_stream(&self, session: &Session) -> Arc<MessageStream> {
        MessageStream::new_resumable(self.limits.stream, self.budget.clone(), session.retention_counter())
    }

    /// Returns the error for a revision that is not supported.
    pub(crate) fn unsupported_revision(&self, requested: &str) -> ProtocolError {
        ProtocolError::unsupported_version(requested, &self.revisions)
    }

    pub(crate) async fn until_shutdown(&self) {
        let mut shutdown = self.shutdown.subscribe();
        let _ = shutdown.wait_for(|down| *down).await;
    }

    pub(crate) fn initialize_result(&self, revision: Revision, abilities: TransportAbilities) -> Bytes {
        self.opening_for(revision, abilities).initialize[revision.index()].clone()
    }

    pub(crate) fn discover_result(&self, revision: Revision, abilities: TransportAbilities) -> Bytes {
        self.opening_for(revision, abilities).discover.clone()
    }

    fn opening_for(&self, revision: Revision, abilities: TransportAbilities) -> &HandshakeResults {
        match abilities.notifies(revision) {
            true => &self.opening,
            false => &self.opening_without_notifications,
        }
    }

    /// Returns the cache policy of a resource that this caller reads. What an authenticated caller reads is
    /// never public.
    pub(crate) fn cache_policy(&self, caller: &Caller) -> CachePolicy {
        self.stamp.cache_policy(caller.is_authenticated() || self.catalog.visible_to(caller).is_filtered())
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
    hooks: HookChain,
    filter: Option<EntryFilter>,
    quotas: Vec<CallQuota>,
    pub(crate) skills: SkillDrafts,
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
            hooks: HookChain::default(),
            filter: None,
            quotas: Vec::new(),
            skills: SkillDrafts::default(),
        }
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> ServerBuilder {
        self.implementation.title = Some(title.into());
        self
    }

    /// Sets the description of what the server is for.
    pub fn description(mut self, description: impl Into<String>) -> ServerBuilder {
        self.implementation.description = Some(description.into());
        self
    }

    /// Sets the URL of the server's website.
    pub fn website_url(mut self, url: impl Into<String>) -> ServerBuilder {
        self.implementation.website_url = Some(url.into());
        self
    }

    /// Sets the icons that a client may show for the server.
    pub fn icons(mut self, icons: Vec<Icon>) -> ServerBuilder {
        self.implementation.icons = icons;
        self
    }

    /// Sets the instructions for the model on how to use the server.
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
    #[expect(clippy::should_implement_trait, reason = "a builder is not a number")]
    pub fn add(self, entries: impl IntoEntries) -> ServerBuilder {
        let entries = entries.into_entries();
        entries.into_iter().fold(self, |builder, entry| builder.add_with(|snapshot| snapshot.add(entry)))
    }

    /// Adds a value that handlers share and take as [`State<T>`](crate::State). Each type can have one value.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, state: T) -> ServerBuilder {
        if !self.states.insert(state) {
            let name = std::any::type_name::<T>().to_owned();
            let reason = "the server has a value of this type already; remove one `.state(…)`, or make one of the two \
                          a type of its own"
                .to_owned();
            self.mistakes.push(CatalogError::Invalid { kind: "state", name, reason });
        }
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

    /// Declares the capabilities for tools, resources and prompts even if the catalog has none yet.
    pub fn offer_all(mut self) -> ServerBuilder {
        self.declares = CapabilityFlags { tools: true, resources: true, prompts: true };
        self
    }

    /// Ignores case when tools, prompts and resources are looked up by name or URI. An exact
    /// match has precedence.
    pub fn ignore_case(mut self) -> ServerBuilder {
        self.snapshot.ignore_case();
        self
    }

    /// Replaces the error for an unknown entry: [`ProtocolError::UnknownTool`], `UnknownPrompt` or
    /// `UnknownResource`. `None` keeps the default error.
    pub fn map_not_found(
        mut self,
        word: impl Fn(&ProtocolError) -> Option<ErrorObject> + Send + Sync + 'static,
    ) -> ServerBuilder {
        self.wording = Some(NotFoundFormatter(Box::new(word)));
        self
    }

    /// Adds a hook: an async function that runs around each tool call, resource read and prompt.
    ///
    /// The hook gets the [`Operation`] with its caller and its entry. It calls `next` to run the operation,
    /// and returns its result, a changed one, or another one. A hook that does not call `next` replaces the
    /// handler. Several hooks nest: the first one that was added is the outermost.
    ///
    /// ```
    /// use bindpost_mcp_server::{NextHandler, Operation, OperationResult, Server, ToolEntry, ToolError};
    ///
    /// async fn audit(operation: Operation, next: NextHandler) -> Result<OperationResult, ToolError> {
    ///     let entry = format!("{} {}", operation.entry().kind(), operation.name());
    ///     let caller = operation.caller().id().unwrap_or("anonymous").to_owned();
    ///     let result = next.run(operation).await;
    ///     println!("{caller} used the {entry}: {}", if result.is_ok() { "ok" } else { "error" });
    ///     result
    /// }
    ///
    /// let server = Server::builder("audited", "1.0.0")
    ///     .around(audit)
    ///     .around(async |operation: Operation, next: NextHandler| {
    ///         if operation.name() == "delete" && !operation.caller().has_role("Administrator") {
    ///             return Err(ToolError::new("only an administrator may delete"));
    ///         }
    ///         next.run(operation).await
    ///     })
    ///     .tool(ToolEntry::new("delete", async || "deleted"))
    ///     .build()
    ///     .unwrap();
    /// # let _ = server;
    /// ```
    ///
    /// When hooks run:
    ///
    /// - A hook runs after the caller is authorized, the arguments are validated and the call is
    ///   admitted. A request that is rejected before does not reach it. The result of a tool is checked
    ///   against the output schema after all hooks.
    /// - The timeout of the entry includes its hooks. A panic in a hook or in the handler ends that call only,
    ///   and drops the hooks around it.
    /// - A call that runs as a task runs its hooks in the task too. They return when the task ends.
    /// - A handler that asks the client ends its request in modern revisions: the hooks are dropped at their
    ///   `.await` with the handler, and run again from their start with the retry that has the answers. In
    ///   a session they wait with the handler and run once.
    /// - When a call is cancelled or times out, its hooks are dropped at their `.await` with the handler.
    ///   A hook that must see each end keeps a value with `Drop`, or waits for
    ///   [`Context::cancelled`](crate::Context::cancelled).
    pub fn around<Fut>(
        mut self,
        hook: impl Fn(Operation, NextHandler) -> Fut + Send + Sync + 'static,
    ) -> ServerBuilder
    where
        Fut: Future<Output = Result<OperationResult, ToolError>> + Send + 'static,
    {
        self.hooks.push(hook);
        self
    }

    /// Limits how many operations each caller may run in a period. Several quotas apply together.
    ///
    /// Authenticated callers are counted by their id, anonymous ones by their address. The counts are kept in
    /// memory, by each instance of the server for itself. A call beyond the quota fails with a text that
    /// tells the model when to try again, a read or a prompt with a JSON-RPC error (HTTP status 429). A call
    /// that asks the client is counted once in every revision. A quota is a [hook](ServerBuilder::around): it
    /// runs after the caller is authorized and the arguments are validated.
    ///
    /// ```
    /// use std::time::Duration;
    /// use bindpost_mcp_server::{CallQuota, Server, ToolEntry};
    ///
    /// let server = Server::builder("mail", "1.0.0")
    ///     .tool(ToolEntry::new("send_mail", async || "sent"))
    ///     .quota(CallQuota::new(5, Duration::from_secs(3600)).entries(["send_mail"]))
    ///     .build()
    ///     .unwrap();
    /// # let _ = server;
    /// ```
    pub fn quota(mut self, quota: CallQuota) -> ServerBuilder {
        self.quotas.push(quota.clone());
        let counter = Arc::new(QuotaCounter::new(quota));
        self.around(move |operation, next| counter.clone().limit(operation, next))
    }

    /// Shows an entry to a caller only if this function returns `true`. By default every caller sees all
    /// entries.
    ///
    /// An entry that a caller does not see is unknown to it: it is not listed, and calls, reads, completions
    /// and subscriptions are answered as if it did not exist. Use an [access rule](crate::AccessRule) instead
    /// if a caller may know of an entry that it lacks the rights for.
    ///
    /// The function runs for each request, so it should only look at data in memory. When its answers change,
    /// notify the clients with [`Catalog::announce_view`] or [`Catalog::announce_all_views`].
    ///
    /// ```
    /// use bindpost_mcp_server::{Caller, EntryView, Server, ToolEntry};
    ///
    /// let server = Server::builder("shop", "1.0.0")
    ///     .tool(ToolEntry::new("search", async || "found"))
    ///     .tool(ToolEntry::new("restock", async || "ordered").with_meta("shop.example/staff", true))
    ///     .show_if(|caller: &Caller, entry: EntryView<'_>| {
    ///         let for_staff = entry.meta().is_some_and(|meta| meta.contains_key("shop.example/staff"));
    ///         !for_staff || caller.has_role("Staff")
    ///     })
    ///     .build()
    ///     .unwrap();
    /// # let _ = server;
    /// ```
    pub fn show_if(
        mut self,
        shows: impl Fn(&Caller, EntryView<'_>) -> bool + Send + Sync + 'static,
    ) -> ServerBuilder {
        self.filter = Some(EntryFilter::new(shows));
        self
    }

    /// Sets the supported revisions. Default: all.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> ServerBuilder {
        let mut revisions: Vec<Revision> = revisions.into_iter().collect();
        revisions.sort_unstable();
        revisions.dedup();
        self.revisions = revisions;
        self
    }

    /// Removes all tools.
    pub fn without_tools(mut self) -> ServerBuilder {
        self.withholds.tools = true;
        self
    }

    /// Removes all resources, templates and lists of resources.
    pub fn without_resources(mut self) -> ServerBuilder {
        self.withholds.resources = true;
        self
    }

    /// Removes all prompts.
    pub fn without_prompts(mut self) -> ServerBuilder {
        self.withholds.prompts = true;
        self
    }

    /// Sets the limits on concurrency, memory and time.
    pub fn limits(mut self, limits: ServerLimits) -> ServerBuilder {
        self.limits = limits;
        self
    }

    /// Sets the maximum number of entries on one page of a list. Default: 1,000.
    pub fn page_size(mut self, size: usize) -> ServerBuilder {
        self.page_size = size.max(1);
        self
    }

    /// Sets how long lists and resources may be cached, and by whom (2026-07-28). By default they
    /// are not cached. What depends on the caller is never public: the resources that an authenticated caller
    /// reads, and lists that show what the caller may use or see.
    pub fn cache(mut self, ttl: Duration, scope: CacheScope) -> ServerBuilder {
        self.cache = (ttl, scope);
        self
    }

    /// Enables tasks: the tasks extension, and those that clients of 2025-11-25 request. By default they are enabled if a
    /// tool runs as a task ([`ToolEntry::task`]). [`Context::go_on_as_task`](crate::Context::go_on_as_task) alone does not enable them.
    pub fn tasks(mut self, limits: TaskLimits) -> ServerBuilder {
        self.tasks = Some(limits);
        self
    }

    /// Declares an extension that the entries implement themselves.
    pub fn extension(mut self, name: impl Into<String>, settings: Value) -> ServerBuilder {
        self.extensions.insert(name.into(), settings);
        self
    }

    /// Sets the key that encrypts `requestState` between two rounds of a request. Instances that serve the
    /// same clients share one key. By default a random key is generated at start.
    pub fn state_key(mut self, key: [u8; 32]) -> ServerBuilder {
        self.state_key = Some(key);
        self
    }

    /// Returns the server, or every mistake in its entries.
    pub fn build(mut self) -> Result<Server, BuildError> {
        let skills = std::mem::take(&mut self.skills);
        let skills = skills.resolve(self.page_size, &mut self.snapshot, &mut self.mistakes);
        let skills = skills.filter(|_| !self.withholds.resources);
        if skills.is_some() {
            self.extensions.insert(meta::SKILLS_EXTENSION.to_owned(), json!({"directoryRead": true}));
        }
        self.mistakes.extend(self.snapshot.update_pages().err());
        self.mistakes.extend(self.snapshot.missing_pages());
        self.mistakes.extend(self.snapshot.check_states(&self.states));
        if self.revisions.is_empty() {
            let reason = "it supports no protocol revision; name at least one".to_owned();
            let name = self.implementation.name.clone();
            self.mistakes.push(CatalogError::Invalid { kind: "server", name, reason });
        }
        for name in self.quotas.iter().flat_map(|quota| quota.unknown_names(|name| self.snapshot.has(name))) {
            let reason =
                "no entry has this name; use `applies_if` for entries that are added later".to_owned();
            self.mistakes.push(CatalogError::Invalid { kind: "quota", name: name.to_owned(), reason });
        }
        if !self.mistakes.is_empty() {
            return Err(BuildError(self.mistakes));
        }
        self.snapshot.warn_of_useless_lists();
        // A tool that runs as a task needs them, and its author has asked for them.
        let runs_as_task = |tool: &ToolEntry| tool.task_support != TaskSupport::Never;
        if self.tasks.is_none() && self.snapshot.tools.iter().any(runs_as_task) {
            self.tasks = Some(TaskLimits::default());
        }
        self.snapshot.remove_kinds(self.withholds.tools, self.withholds.resources, self.withholds.prompts);
        let hub = Arc::new(SubscriptionHub::default());
        let capabilities = self.capabilities();
        let (ttl, scope) = self.cache;
        let stamp = Arc::new(ResultEnvelope::new(&self.implementation, ttl, scope));
        let opening = HandshakeResults::new(&self, &capabilities, &stamp);
        let opening_without_notifications =
            HandshakeResults::new(&self, &without_notifications(&capabilities), &stamp);
        let state_key = self.state_key.unwrap_or_else(random_bytes);
        let states = Arc::new(self.states);
        let (page_size, filter) = (self.page_size, self.filter);
        let catalog =
            Catalog::new(self.snapshot, hub.clone(), page_size, stamp.clone(), states.clone(), filter);
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
            opening_without_notifications,
            shutdown: watch::Sender::new(false),
            wording: self.wording,
            hooks: self.hooks,
            skills,
        };
        Ok(Server { shared: Arc::new(shared) })
    }

    fn capabilities(&self) -> ServerCapabilities {
        let snapshot = &self.snapshot;
        let tools = self.declares.tools || !snapshot.tools.is_empty();
        let resources = self.declares.resources || snapshot.has_resources();
        let prompts = self.declares.prompts || !snapshot.prompts.is_empty();
        let completes = snapshot.prompts.iter().any(|entry| !entry.completers.is_empty())
            || snapshot.templates.iter().any(|entry| !entry.completers.is_empty());
        let mut extensions = self.extensions.clone();
        if self.tasks.is_some() {
            extensions.insert(meta::TASKS_EXTENSION.to_owned(), json!({}));
        }
        if snapshot.tools.iter().any(|tool| uses_pages(&tool.definition)) {
            extensions.entry(meta::APPS_EXTENSION).or_insert_with(|| json!({}));
        }
        ServerCapabilities {
            tools: tools.then_some(ListCapability { list_changed: true }),
            resources: resources.then_some(ResourcesCapability { list_changed: true, subscribe: true }),
            prompts: prompts.then_some(ListCapability { list_changed: true }),
            completions: completes.then(Map::new),
            logging: Some(Map::new()),
            tasks: self
                .tasks
                .is_some()
                .then(|| json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})),
            extensions,
            experimental: Map::new(),
        }
    }
}

/// Returns the capabilities that need no notifications.
fn without_notifications(capabilities: &ServerCapabilities) -> ServerCapabilities {
    ServerCapabilities {
        tools: capabilities.tools.map(|_| ListCapability::default()),
        resources: capabilities.resources.map(|_| ResourcesCapability::default()),
        prompts: capabilities.prompts.map(|_| ListCapability::default()),
        logging: None,
        ..capabilities.clone()
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
        let revision = Revision::DISCOVERABLE[0];
        let mut result = DiscoverResult {
            supported_versions: Revision::DISCOVERABLE.map(|revision| revision.as_str().to_owned()).to_vec(),
            capabilities: capabilities.clone(),
            instructions: builder.instructions.clone(),
        };
        result.capabilities.shape(revision);
        let mut discover = Vec::new();
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
            // The developer sees the source locations; clients must not.
            CatalogError::Duplicate { kind, name, first, second } => {
                format!("{kind} {name:?} is defined twice: {first} and {second}; rename one")
            }
            other => other.to_string(),
        };
        let lines: Vec<String> = self.0.iter().map(line).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// `main` prints this when it returns the error.
impl std::fmt::Debug for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for BuildError {}

/// Returns an unguessable id with 128 random bits.
pub(crate) fn random_id() -> String {
    URL_SAFE_NO_PAD.encode(random_bytes::<16>())
}

/// Returns unguessable random bytes. It panics without a source of randomness, because ids and keys must
/// not be predictable.
fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(clippy::expect_used, reason = "the operating system's randomness is a precondition")]
    getrandom::fill(&mut bytes).expect("the operating system provides randomness");
    bytes
}
