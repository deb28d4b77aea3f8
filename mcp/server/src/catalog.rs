//! [`Catalog`]: the entries of a server, each with its definition and handler.
//!
//! Readers use an immutable snapshot, and each change creates a new one. Lists are encoded once per
//! snapshot and revision, and shared as bytes.

pub(crate) mod app_page;
pub(crate) mod completion;
pub(crate) mod cursor;
pub(crate) mod entry;
pub(crate) mod entry_view;
pub(crate) mod listing;
pub(crate) mod prompt;
pub(crate) mod prompt_arguments;
pub(crate) mod resource;
pub(crate) mod resource_list;
pub(crate) mod section;
pub(crate) mod tool;
pub(crate) mod uri_template;
pub(crate) mod visible_entries;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bindpost_mcp_protocol::resources::ListResourcesResult;
use bindpost_mcp_protocol::{Params, Resource, Revision};
use bytes::Bytes;
use serde::Serialize;
use serde::ser::SerializeMap as _;

use self::cursor::{ListCursor, ListKind};
use self::entry::{Entry, IntoEntries};
use self::entry_view::EntryView;
use self::prompt::PromptEntry;
use self::resource::{ResourceEntry, TemplateEntry};
use self::resource_list::ResourceListEntry;
use self::section::{CatalogEntry, CatalogSection};
use self::tool::ToolEntry;
use self::visible_entries::{EntryFilter, VisibleEntries};
use crate::auth::{AccessRule, Caller};
use crate::error::{ProtocolError, ToolError};
use crate::handler::context::Context;
use crate::handler::extract::StateMap;
use crate::peer::subscriptions::{ChangeNotification, SubscriptionHub};
use crate::result_envelope::{CachePolicy, ResultEnvelope};
use crate::server::BuildError;

/// Why an entry was not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// An entry of that kind and name exists already.
    #[error("{kind} {name:?} already exists")]
    Duplicate {
        /// The kind of the entry, such as `tool`.
        kind: &'static str,
        /// The name or URI of the entry.
        name: String,
        /// The source location of the existing entry.
        first: String,
        /// The source location of the rejected entry.
        second: String,
    },
    /// The definition is invalid.
    #[error("{kind} {name:?}: {reason}")]
    Invalid {
        /// The kind of the entry, such as `tool`.
        kind: &'static str,
        /// The name or URI of the entry.
        name: String,
        /// What to change.
        reason: String,
    },
}

/// The tools, resources, templates and prompts of a server. They can change while the server runs.
#[derive(Debug)]
pub struct Catalog {
    current: RwLock<Arc<CatalogSnapshot>>,
    hub: Arc<SubscriptionHub>,
    page_size: usize,
    stamp: Arc<ResultEnvelope>,
    states: Arc<StateMap>,
    filter: Option<EntryFilter>,
}

impl Catalog {
    pub(crate) fn new(
        snapshot: CatalogSnapshot,
        hub: Arc<SubscriptionHub>,
        page_size: usize,
        stamp: Arc<ResultEnvelope>,
        states: Arc<StateMap>,
        filter: Option<EntryFilter>,
    ) -> Catalog {
        Catalog { current: RwLock::new(Arc::new(snapshot)), hub, page_size, stamp, states, filter }
    }

    pub(crate) fn snapshot(&self) -> Arc<CatalogSnapshot> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change<T>(
        &self,
        change: ChangeNotification<'_>,
        make: impl FnOnce(&mut CatalogSnapshot) -> Option<T>,
    ) -> Option<T> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = CatalogSnapshot::clone(&current);
        let made = make(&mut next)?;
        *current = Arc::new(next);
        drop(current);
        self.hub.announce(&change);
        Some(made)
    }

    fn try_change(
        &self,
        change: ChangeNotification<'_>,
        make: impl FnOnce(&mut CatalogSnapshot) -> Result<(), CatalogError>,
    ) -> Result<(), CatalogError> {
        let mut refused = Ok(());
        self.change(change, |snapshot| match make(snapshot) {
            Ok(()) => Some(()),
            Err(error) => {
                refused = Err(error);
                None
            }
        });
        refused
    }

    /// Adds a tool.
    pub fn add_tool(&self, entry: ToolEntry) -> Result<(), CatalogError> {
        let mut has_new_page = false;
        self.try_change(ChangeNotification::Tools, |snapshot| {
            snapshot.tools.add(entry)?;
            has_new_page = snapshot.update_pages()?;
            snapshot.require_states(&self.states)
        })?;
        if has_new_page {
            self.hub.announce(&ChangeNotification::Resources);
        }
        Ok(())
    }

    /// Removes a tool. Returns `false` if no tool has that name.
    pub fn remove_tool(&self, name: &str) -> bool {
        let has_removed_page = self.change(ChangeNotification::Tools, |snapshot| {
            snapshot.tools.remove(name)?;
            // The pages of the other tools were valid before.
            Some(snapshot.update_pages().unwrap_or(false))
        });
        if has_removed_page == Some(true) {
            self.hub.announce(&ChangeNotification::Resources);
        }
        has_removed_page.is_some()
    }

    /// Adds a resource.
    pub fn add_resource(&self, entry: ResourceEntry) -> Result<(), CatalogError> {
        self.try_change(ChangeNotification::Resources, |snapshot| {
            snapshot.resources.add(entry)?;
            snapshot.require_states(&self.states)
        })
    }

    /// Removes a resource. Returns `false` if no resource has that URI.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.change(ChangeNotification::Resources, |snapshot| snapshot.resources.remove(uri)).is_some()
    }

    /// Adds a resource template.
    pub fn add_template(&self, entry: TemplateEntry) -> Result<(), CatalogError> {
        self.try_change(ChangeNotification::Resources, |snapshot| {
            snapshot.templates.add(entry)?;
            snapshot.require_states(&self.states)
        })
    }

    /// Removes a resource template. Returns `false` if no template has that URI template.
    pub fn remove_template(&self, uri_template: &str) -> bool {
        self.change(ChangeNotification::Resources, |snapshot| snapshot.templates.remove(uri_template))
            .is_some()
    }

    /// Adds a prompt.
    pub fn add_prompt(&self, entry: PromptEntry) -> Result<(), CatalogError> {
        self.try_change(ChangeNotification::Prompts, |snapshot| {
            snapshot.prompts.add(entry)?;
            snapshot.require_states(&self.states)
        })
    }

    /// Removes a prompt. Returns `false` if no prompt has that name.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(ChangeNotification::Prompts, |snapshot| snapshot.prompts.remove(name)).is_some()
    }

    /// Notifies clients that a list has changed. The methods that add, remove and replace entries do it
    /// themselves. A list of resources that is computed on request cannot know when it changes.
    pub fn announce_list(&self, kind: ListKind) {
        self.hub.announce(&match kind {
            ListKind::Tools => ChangeNotification::Tools,
            ListKind::Resources | ListKind::Templates => ChangeNotification::Resources,
            ListKind::Prompts => ChangeNotification::Prompts,
        });
    }

    /// Replaces all entries at once and announces the lists that changed. If an entry is
    /// invalid, nothing changes. The files of skills stay.
    pub fn replace(&self, entries: impl IntoEntries) -> Result<(), BuildError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = current.successor();
        let added = entries.into_entries().into_iter().map(|entry| next.add(entry));
        let mut mistakes: Vec<CatalogError> = added.filter_map(Result::err).collect();
        mistakes.extend(next.update_pages().err());
        mistakes.extend(next.check_states(&self.states));
        if !mistakes.is_empty() {
            return Err(BuildError(mistakes));
        }
        let before = std::mem::replace(&mut *current, Arc::new(next));
        let now = current.clone();
        drop(current);
        for (change, differs) in [
            (ChangeNotification::Tools, before.tools.differs(&now.tools)),
            (
                ChangeNotification::Resources,
                before.resources.differs(&now.resources) || before.templates.differs(&now.templates),
            ),
            (ChangeNotification::Prompts, before.prompts.differs(&now.prompts)),
        ] {
            if differs {
                self.hub.announce(&change);
            }
        }
        Ok(())
    }

    /// Returns one page of a list as an encoded result. With `permitted`, only the entries that this
    /// caller may use are listed.
    pub(crate) fn page(
        &self,
        kind: ListKind,
        revision: Revision,
        params: &Params,
        visible: &VisibleEntries<'_>,
        permitted: Option<&Caller>,
    ) -> Result<Bytes, ProtocolError> {
        let snapshot = visible.snapshot();
        let after = parse_cursor(kind, params)?;
        let (size, stamp) = (self.page_size, &*self.stamp);
        let view = PageRequest { kind, revision, after, size, visible, permitted, stamp };
        Ok(match kind {
            ListKind::Tools => snapshot.tools.page(&view),
            ListKind::Resources => snapshot.resources.page(&view),
            ListKind::Templates => snapshot.templates.page(&view),
            ListKind::Prompts => snapshot.prompts.page(&view),
        })
    }

    /// Returns one page of the resources: first the registered ones, then those of the lists of resources.
    pub(crate) async fn page_with_dynamic_resources(
        &self,
        context: Context,
        after: Option<u64>,
        permitted: Option<&Caller>,
        asker: Option<&Caller>,
    ) -> Result<ListResourcesResult, ToolError> {
        let caller = context.caller().clone();
        let visible = self.visible_to(&caller);
        let snapshot = visible.snapshot();
        let fixed = snapshot.resources.entries.iter();
        let fixed = fixed.filter(|(_, entry)| {
            permitted.is_none_or(|caller| entry.access.permits(caller)) && visible.shows(&**entry)
        });
        let mut all: Vec<(u64, Resource)> =
            fixed.map(|(number, entry)| (*number, entry.definition.clone())).collect();
        let mut number = FIRST_LISTED;
        for list in &snapshot.lists {
            if asker.is_some_and(|asker| !list.access.permits(asker)) {
                continue;
            }
            for resource in list.list(context.clone()).await? {
                let is_shown = visible.shows(EntryView::Resource(&resource));
                if is_shown && snapshot.resource(&resource.uri).is_none() {
                    all.push((number, resource));
                    number += 1;
                }
            }
        }
        let mut rest = all.into_iter().filter(|(number, _)| after.is_none_or(|after| *number > after));
        let page: Vec<(u64, Resource)> = rest.by_ref().take(self.page_size).collect();
        let last = page.last().map(|(number, _)| *number).filter(|_| rest.next().is_some());
        Ok(ListResourcesResult {
            resources: page.into_iter().map(|(_, resource)| resource).collect(),
            next_cursor: last.map(|after| ListCursor { kind: ListKind::Resources, after }.encode()),
        })
    }
}

/// The first number of resources from lists of resources. Registered entries have smaller numbers.
const FIRST_LISTED: u64 = 1 << 40;

/// Parses the cursor of a list request: the number of the last entry of the page before.
pub(crate) fn parse_cursor(kind: ListKind, params: &Params) -> Result<Option<u64>, ProtocolError> {
    let Some(raw) = params.get("cursor").filter(|cursor| !cursor.is_null()) else { return Ok(None) };
    let cursor = raw.as_text().and_then(|text| ListCursor::decode(kind, &text));
    let unknown = || {
        let reason = format!("unknown cursor {}; start again without one", raw.as_json());
        ProtocolError::invalid_params(kind.method(), reason)
    };
    Ok(Some(cursor.ok_or_else(unknown)?.after))
}

/// The parameters of one page of a list.
struct PageRequest<'a> {
    kind: ListKind,
    revision: Revision,
    after: Option<u64>,
    size: usize,
    visible: &'a VisibleEntries<'a>,
    /// The caller, if only the entries that it may use are listed.
    permitted: Option<&'a Caller>,
    stamp: &'a ResultEnvelope,
}

impl PageRequest<'_> {
    /// Whether all entries are listed to every caller.
    fn is_complete(&self) -> bool {
        self.permitted.is_none() && !self.visible.is_filtered()
    }

    fn lists(&self, entry: &impl CatalogEntry) -> bool {
        self.permitted.is_none_or(|caller| entry.access().permits(caller)) && self.visible.shows(entry.view())
    }

    /// The cache members of the page. A list that depends on its caller must not be shared by caches.
    fn cache_policy(&self) -> CachePolicy {
        self.stamp.cache_policy(!self.is_complete())
    }
}

impl ListKind {
    fn method(self) -> &'static str {
        match self {
            ListKind::Tools => "tools/list",
            ListKind::Resources => "resources/list",
            ListKind::Templates => "resources/templates/list",
            ListKind::Prompts => "prompts/list",
        }
    }

    /// The member of the result that holds the list.
    fn member(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Resources => "resources",
            ListKind::Templates => "resourceTemplates",
            ListKind::Prompts => "prompts",
        }
    }
}

/// One page of a list, as it is serialised.
struct ListPage<D> {
    member: &'static str,
    definitions: Vec<D>,
    next_cursor: Option<String>,
}

impl<D: Serialize> Serialize for ListPage<D> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut page = serializer.serialize_map(None)?;
        page.serialize_entry(self.member, &self.definitions)?;
        if let Some(cursor) = &self.next_cursor {
            page.serialize_entry("nextCursor", cursor)?;
        }
        page.end()
    }
}

/// An immutable version of the catalog.
#[derive(Debug, Default)]
pub(crate) struct CatalogSnapshot {
    pub(crate) tools: CatalogSection<ToolEntry>,
    pub(crate) resources: CatalogSection<ResourceEntry>,
    pub(crate) templates: CatalogSection<TemplateEntry>,
    pub(crate) prompts: CatalogSection<PromptEntry>,
    pub(crate) lists: Vec<Arc<ResourceListEntry>>,
    has_anonymous: OnceLock<bool>,
}

impl Clone for CatalogSnapshot {
    /// Clones the entries without the cached values, because a clone is made to be changed.
    fn clone(&self) -> CatalogSnapshot {
        let CatalogSnapshot { tools, resources, templates, prompts, lists, .. } = self;
        CatalogSnapshot {
            tools: tools.clone(),
            resources: resources.clone(),
            templates: templates.clone(),
            prompts: prompts.clone(),
            lists: lists.clone(),
            has_anonymous: OnceLock::new(),
        }
    }
}

impl CatalogSnapshot {
    /// Ignores case when entries are looked up.
    pub(crate) fn ignore_case(&mut self) {
        self.tools.ignores_case = true;
        self.resources.ignores_case = true;
        self.prompts.ignores_case = true;
    }

    /// Returns a snapshot that continues the numbering of this one. It has the files of skills only, which
    /// do not change.
    fn successor(&self) -> CatalogSnapshot {
        CatalogSnapshot {
            tools: self.tools.successor(),
            resources: self.resources.successor_with(|entry| entry.is_skill_file),
            templates: self.templates.successor(),
            prompts: self.prompts.successor(),
            ..CatalogSnapshot::default()
        }
    }

    /// Adds an entry of any kind.
    pub(crate) fn add(&mut self, entry: Entry) -> Result<(), CatalogError> {
        match entry {
            Entry::Tool(entry) => self.tools.add(entry),
            Entry::Resource(entry) => self.resources.add(entry),
            Entry::Template(entry) => self.templates.add(entry),
            Entry::Prompt(entry) => self.prompts.add(entry),
            Entry::ResourceList(mut entry) => {
                let kind = "list of resources";
                if let Err(reason) = entry.compile() {
                    return Err(CatalogError::Invalid { kind, name: entry.scheme, reason });
                }
                if let Some(first) = self.lists.iter().find(|other| other.scheme == entry.scheme) {
                    let (first, second) = (first.origin().to_string(), entry.origin().to_string());
                    return Err(CatalogError::Duplicate { kind, name: entry.scheme, first, second });
                }
                self.lists.push(Arc::new(entry));
                Ok(())
            }
        }
    }

    /// Removes all entries of these kinds.
    pub(crate) fn remove_kinds(&mut self, tools: bool, resources: bool, prompts: bool) {
        if tools {
            self.tools = CatalogSection::default();
        }
        if resources {
            self.resources = CatalogSection::default();
            self.templates = CatalogSection::default();
            self.lists.clear();
        }
        if prompts {
            self.prompts = CatalogSection::default();
        }
    }

    /// Checks that the server has all the state that the entries need.
    /// Returns the entries that need states which the server does not have.
    pub(crate) fn check_states(&self, states: &StateMap) -> Vec<CatalogError> {
        fn check<E: CatalogEntry>(section: &CatalogSection<E>, states: &StateMap) -> Vec<CatalogError> {
            let check = |entry: &E| {
                let reason = states.check_signature(entry.signature()).err()?;
                Some(invalid(entry, reason))
            };
            section.iter().filter_map(check).collect()
        }
        let lists = self.lists.iter().filter_map(|list| {
            let reason = states.check_signature(&list.signature).err()?;
            Some(CatalogError::Invalid { kind: "list of resources", name: list.scheme.clone(), reason })
        });
        let mut mistakes = check(&self.tools, states);
        mistakes.extend(check(&self.resources, states));
        mistakes.extend(check(&self.templates, states));
        mistakes.extend(check(&self.prompts, states));
        mistakes.extend(lists);
        mistakes
    }

    /// Warns of lists whose scheme no resource and no template has yet: what they list cannot be read.
    pub(crate) fn warn_of_useless_lists(&self) {
        let uris = self.resources.iter().map(|entry| entry.definition.uri.as_str());
        let uris = uris.chain(self.templates.iter().map(|entry| entry.definition.uri_template.as_str()));
        let schemes: BTreeSet<&str> =
            uris.filter_map(|uri| uri.split_once(':')).map(|(scheme, _)| scheme).collect();
        for list in &self.lists {
            let scheme = list.scheme.as_str();
            if !schemes.contains(scheme) {
                tracing::warn!(
                    scheme,
                    "no resource has the scheme of this list, so what it lists cannot be read; a list names the scheme \
                     of its URIs, `menu` for `menu://…`"
                );
            }
        }
    }

    /// Like [`check_states`](CatalogSnapshot::check_states), for one added entry.
    fn require_states(&self, states: &StateMap) -> Result<(), CatalogError> {
        self.check_states(states).into_iter().next().map_or(Ok(()), Err)
    }

    pub(crate) fn tool(&self, name: &str) -> Option<Arc<ToolEntry>> {
        self.tools.get(name)
    }

    pub(crate) fn resource(&self, uri: &str) -> Option<Arc<ResourceEntry>> {
        self.resources.get(uri).or_else(|| self.resources.get(&equivalent_uri(uri)?))
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<Arc<PromptEntry>> {
        self.prompts.get(name)
    }

    pub(crate) fn template(&self, uri_template: &str) -> Option<Arc<TemplateEntry>> {
        self.templates.get(uri_template)
    }

    fn accesses(&self) -> impl Iterator<Item = &AccessRule> {
        let tools = self.tools.iter().map(|entry| &*entry.access);
        let resources = self.resources.iter().map(|entry| &*entry.access);
        let templates = self.templates.iter().map(|entry| &*entry.access);
        let prompts = self.prompts.iter().map(|entry| &*entry.access);
        tools.chain(resources).chain(templates).chain(prompts)
    }

    /// Returns whether at least one entry permits unauthenticated callers.
    pub(crate) fn has_anonymous(&self) -> bool {
        *self.has_anonymous.get_or_init(|| self.accesses().any(AccessRule::is_anonymous))
    }

    /// Returns whether at least one entry has an access rule of its own.
    #[cfg(feature = "testing")]
    pub(crate) fn has_access_rules(&self) -> bool {
        self.accesses().chain(self.list_accesses()).any(|access| *access != AccessRule::default())
    }

    fn list_accesses(&self) -> impl Iterator<Item = &AccessRule> {
        self.lists.iter().map(|list| &*list.access)
    }

    /// Returns every scope that some entry requires, sorted.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let all: BTreeSet<&String> =
            self.accesses().chain(self.list_accesses()).flat_map(AccessRule::scopes).collect();
        all.into_iter().cloned().collect()
    }

    /// Returns whether an entry of any kind has this name, URI or URI template.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tools.get(name).is_some()
            || self.resources.get(name).is_some()
            || self.templates.get(name).is_some()
            || self.prompts.get(name).is_some()
    }

    /// Returns whether there are resources, templates or lists of resources.
    pub(crate) fn has_resources(&self) -> bool {
        !self.resources.is_empty() || !self.templates.is_empty() || !self.lists.is_empty()
    }
}

fn invalid<E: CatalogEntry>(entry: &E, reason: String) -> CatalogError {
    CatalogError::Invalid { kind: E::WORD, name: entry.key().to_owned(), reason }
}

/// Returns the other spelling of a URI whose path is empty: with or without a slash (RFC 3986, section 6.2.3).
/// Clients normalize `file://readme.md` to `file://readme.md/`.
pub(crate) fn equivalent_uri(uri: &str) -> Option<String> {
    let (_, rest) = uri.split_once("://")?;
    match rest.strip_suffix('/') {
        Some(authority) if !authority.is_empty() && !authority.contains('/') => {
            uri.strip_suffix('/').map(str::to_owned)
        }
        None if !rest.is_empty() && !rest.contains(['/', '?', '#']) => Some(format!("{uri}/")),
        _ => None,
    }
}
