//! [`Catalog`]: the entries of a server, each with its definition and handler.
//!
//! Readers use an immutable snapshot, and each change creates a new one. Lists are encoded once per
//! snapshot and revision, and shared as bytes.

pub(crate) mod completion;
pub(crate) mod cursor;
pub(crate) mod entry;
pub(crate) mod entry_view;
pub(crate) mod listing;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod resource_list;
pub(crate) mod tool;
pub(crate) mod uri_template;

use std::collections::{BTreeSet, HashMap};
use std::panic::Location;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bindpost_mcp_protocol::resources::ListResourcesResult;
use bindpost_mcp_protocol::{Params, Prompt, Resource, ResourceTemplate, Revision, ShapeForRevision, Tool};
use bytes::Bytes;
use serde::Serialize;
use serde::ser::SerializeMap as _;

use self::cursor::{ListCursor, ListKind};
use self::entry::{Entry, IntoEntries};
use self::prompt::PromptEntry;
use self::resource::{ReadableResource, ResourceEntry, TemplateEntry};
use self::resource_list::ResourceListEntry;
use self::tool::ToolEntry;
use crate::auth::{AccessRule, Caller};
use crate::error::{ProtocolError, ToolError};
use crate::handler::context::Context;
use crate::handler::extract::StateMap;
use crate::handler::signature::Signature;
use crate::peer::subscriptions::{ChangeNotification, SubscriptionHub};
use crate::server::{BuildError, CachePolicy, ResultEnvelope};

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
}

impl Catalog {
    pub(crate) fn new(
        snapshot: CatalogSnapshot,
        hub: Arc<SubscriptionHub>,
        page_size: usize,
        stamp: Arc<ResultEnvelope>,
        states: Arc<StateMap>,
    ) -> Catalog {
        Catalog { current: RwLock::new(Arc::new(snapshot)), hub, page_size, stamp, states }
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
        self.try_change(ChangeNotification::Tools, |snapshot| {
            snapshot.tools.add(entry)?;
            snapshot.check_states(&self.states)
        })
    }

    /// Removes a tool. Returns `false` if no tool has that name.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.change(ChangeNotification::Tools, |snapshot| snapshot.tools.remove(name)).is_some()
    }

    /// Adds a resource.
    pub fn add_resource(&self, entry: ResourceEntry) -> Result<(), CatalogError> {
        self.try_change(ChangeNotification::Resources, |snapshot| {
            snapshot.resources.add(entry)?;
            snapshot.check_states(&self.states)
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
            snapshot.check_states(&self.states)
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
            snapshot.check_states(&self.states)
        })
    }

    /// Removes a prompt. Returns `false` if no prompt has that name.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(ChangeNotification::Prompts, |snapshot| snapshot.prompts.remove(name)).is_some()
    }

    /// Replaces all entries at once and announces the lists that changed. If an entry is
    /// invalid, nothing changes.
    pub fn replace(&self, entries: impl IntoEntries) -> Result<(), BuildError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = current.successor();
        let added = entries.into_entries().into_iter().map(|entry| next.add(entry));
        let mut mistakes: Vec<CatalogError> = added.filter_map(Result::err).collect();
        mistakes.extend(next.check_states(&self.states).err());
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

    /// Returns one page of a list as an encoded result. With `seer`, only the entries that it may
    /// use are listed.
    pub(crate) fn page(
        &self,
        kind: ListKind,
        revision: Revision,
        params: &Params,
        seer: Option<&Caller>,
    ) -> Result<Bytes, ProtocolError> {
        let snapshot = self.snapshot();
        let after = parse_cursor(kind, params)?;
        let view = PageRequest { kind, revision, after, size: self.page_size, seer, stamp: &self.stamp };
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
        seer: Option<&Caller>,
        asker: Option<&Caller>,
    ) -> Result<ListResourcesResult, ToolError> {
        let snapshot = self.snapshot();
        let fixed = snapshot.resources.entries.iter();
        let fixed = fixed.filter(|(_, entry)| seer.is_none_or(|seer| entry.access.permits(seer)));
        let mut all: Vec<(u64, Resource)> =
            fixed.map(|(number, entry)| (*number, entry.definition.clone())).collect();
        let mut number = FIRST_LISTED;
        for list in &snapshot.lists {
            if asker.is_some_and(|asker| !list.access.permits(asker)) {
                continue;
            }
            for resource in list.list(context.clone()).await? {
                if snapshot.resource(&resource.uri).is_none() {
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
    seer: Option<&'a Caller>,
    stamp: &'a ResultEnvelope,
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

    /// Returns an empty snapshot that continues the numbering of this one.
    fn successor(&self) -> CatalogSnapshot {
        CatalogSnapshot {
            tools: self.tools.successor(),
            resources: self.resources.successor(),
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
    pub(crate) fn check_states(&self, states: &StateMap) -> Result<(), CatalogError> {
        fn check<E: CatalogEntry>(
            section: &CatalogSection<E>,
            states: &StateMap,
        ) -> Result<(), CatalogError> {
            section.iter().try_for_each(|entry| {
                states.check_signature(entry.signature()).map_err(|reason| invalid(entry, reason))
            })
        }
        check(&self.tools, states)?;
        check(&self.resources, states)?;
        check(&self.templates, states)?;
        check(&self.prompts, states)?;
        self.lists.iter().try_for_each(|list| {
            states.check_signature(&list.signature).map_err(|reason| CatalogError::Invalid {
                kind: "list of resources",
                name: list.scheme.clone(),
                reason,
            })
        })
    }

    pub(crate) fn tool(&self, name: &str) -> Option<Arc<ToolEntry>> {
        self.tools.get(name)
    }

    pub(crate) fn resource(&self, uri: &str) -> Option<Arc<ResourceEntry>> {
        self.resources.get(uri)
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<Arc<PromptEntry>> {
        self.prompts.get(name)
    }

    pub(crate) fn template(&self, uri_template: &str) -> Option<Arc<TemplateEntry>> {
        self.templates.get(uri_template)
    }

    pub(crate) fn access_of_tool(&self, name: &str) -> Option<Arc<AccessRule>> {
        self.tools.get(name).map(|entry| entry.access.clone())
    }

    pub(crate) fn access_of_prompt(&self, name: &str) -> Option<Arc<AccessRule>> {
        self.prompts.get(name).map(|entry| entry.access.clone())
    }

    pub(crate) fn access_of_template(&self, uri_template: &str) -> Option<Arc<AccessRule>> {
        self.templates.get(uri_template).map(|entry| entry.access.clone())
    }

    pub(crate) fn access_of_resource(&self, uri: &str) -> Option<Arc<AccessRule>> {
        if let Some(entry) = self.resources.get(uri) {
            return Some(entry.access.clone());
        }
        let covering = self.templates.iter().find(|entry| entry.matches(uri).is_some());
        covering.map(|entry| entry.access.clone())
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

    /// Returns every scope that some entry requires, sorted.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let all: BTreeSet<&String> = self.accesses().flat_map(AccessRule::scopes).collect();
        all.into_iter().cloned().collect()
    }

    /// Returns the resource with this URI, or the first template that matches it.
    pub(crate) fn find_readable(&self, uri: &str) -> Option<ReadableResource> {
        if let Some(entry) = self.resources.get(uri) {
            return Some(ReadableResource::from_entry(entry));
        }
        self.templates.entries.iter().find_map(|(_, entry)| {
            entry.matches(uri).map(|variables| ReadableResource::from_template(entry, variables))
        })
    }

    pub(crate) fn has_resource(&self, uri: &str) -> bool {
        self.resources.get(uri).is_some()
            || self.templates.entries.iter().any(|(_, entry)| entry.matches(uri).is_some())
    }
}

fn invalid<E: CatalogEntry>(entry: &E, reason: String) -> CatalogError {
    CatalogError::Invalid { kind: E::WORD, name: entry.key().to_owned(), reason }
}

/// A kind of entry that is listed.
pub(crate) trait CatalogEntry: Sized {
    /// The name of the kind in messages.
    const WORD: &'static str;
    type Definition: Serialize + ShapeForRevision + Clone;
    fn key(&self) -> &str;
    fn definition(&self) -> &Self::Definition;
    fn access(&self) -> &AccessRule;
    fn signature(&self) -> &Signature;
    fn place(&self) -> &'static Location<'static>;
    fn prepare(&mut self) -> Result<(), String>;
    /// Returns whether both entries match the same requests although their keys differ.
    fn clashes(&self, _other: &Self) -> bool {
        false
    }
}

macro_rules! listed {
    ($Entry:ident, $word:literal, $Definition:ident, $key:ident $(, $clashes:ident)?) => {
        impl CatalogEntry for $Entry {
            const WORD: &'static str = $word;
            type Definition = $Definition;
            fn key(&self) -> &str {
                &self.definition.$key
            }
            fn definition(&self) -> &$Definition {
                &self.definition
            }
            fn access(&self) -> &AccessRule {
                &self.access
            }
            fn signature(&self) -> &Signature {
                &self.signature
            }
            fn place(&self) -> &'static Location<'static> {
                self.origin()
            }
            fn prepare(&mut self) -> Result<(), String> {
                self.compile()
            }
            $(fn clashes(&self, other: &$Entry) -> bool {
                self.$clashes(other)
            })?
        }
    };
}

listed!(ToolEntry, "tool", Tool, name);
listed!(ResourceEntry, "resource", Resource, uri);
listed!(TemplateEntry, "resource template", ResourceTemplate, uri_template, covers_the_same);
listed!(PromptEntry, "prompt", Prompt, name);

fn same_letters(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.eq_ignore_ascii_case(other)
}

/// All entries of one kind, in the order they were added.
#[derive(Debug)]
pub(crate) struct CatalogSection<E> {
    /// The entries with ascending numbers. A number is never used again.
    entries: Vec<(u64, Arc<E>)>,
    by_key: HashMap<String, Arc<E>>,
    last: u64,
    ignores_case: bool,
    /// The encoded pages of each revision, created with the first request.
    pages: [OnceLock<Vec<Bytes>>; Revision::ALL.len()],
}

impl<E> Default for CatalogSection<E> {
    fn default() -> CatalogSection<E> {
        CatalogSection {
            entries: Vec::new(),
            by_key: HashMap::new(),
            last: 0,
            ignores_case: false,
            pages: Default::default(),
        }
    }
}

impl<E> Clone for CatalogSection<E> {
    /// Clones the entries without the encoded pages, because a clone is made to be changed.
    fn clone(&self) -> CatalogSection<E> {
        CatalogSection {
            entries: self.entries.clone(),
            by_key: self.by_key.clone(),
            last: self.last,
            ignores_case: self.ignores_case,
            pages: Default::default(),
        }
    }
}

impl<E: CatalogEntry> CatalogSection<E> {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        self.entries.iter().map(|(_, entry)| &**entry)
    }

    fn get(&self, key: &str) -> Option<Arc<E>> {
        let found = self.by_key.get(key);
        let by_letters =
            || self.entries.iter().map(|(_, entry)| entry).find(|entry| same_letters(entry.key(), key));
        found.or_else(|| if self.ignores_case { by_letters() } else { None }).cloned()
    }

    /// Returns an empty section that continues the numbering of this one.
    fn successor(&self) -> CatalogSection<E> {
        CatalogSection { last: self.last, ignores_case: self.ignores_case, ..CatalogSection::default() }
    }

    /// Returns whether the listed definitions of both sections differ.
    fn differs(&self, other: &CatalogSection<E>) -> bool {
        let shown = |section: &CatalogSection<E>| {
            section.iter().map(|entry| serde_json::to_vec(entry.definition()).ok()).collect::<Vec<_>>()
        };
        shown(self) != shown(other)
    }

    pub(crate) fn add(&mut self, mut entry: E) -> Result<(), CatalogError> {
        entry.prepare().map_err(|reason| invalid(&entry, reason))?;
        let key = entry.key().to_owned();
        if let Some(first) = self.by_key.get(&key) {
            let (first, second) = (first.place().to_string(), entry.place().to_string());
            return Err(CatalogError::Duplicate { kind: E::WORD, name: key, first, second });
        }
        if let Some(other) = self.iter().find(|other| other.clashes(&entry)) {
            let reason = format!("{:?} ({}) covers the same URIs; keep one", other.key(), other.place());
            return Err(invalid(&entry, reason));
        }
        let entry = Arc::new(entry);
        self.last += 1;
        self.entries.push((self.last, entry.clone()));
        self.by_key.insert(key, entry);
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Option<()> {
        self.by_key.remove(key)?;
        self.entries.retain(|(_, entry)| entry.key() != key);
        Some(())
    }

    fn page(&self, view: &PageRequest<'_>) -> Bytes {
        let start =
            view.after.map_or(0, |after| self.entries.partition_point(|(number, _)| *number <= after));
        if let Some(seer) = view.seer
            && !self.entries.iter().all(|(_, entry)| entry.access().permits(seer))
        {
            return self.encode_page(view, start);
        }
        let view = PageRequest { seer: None, ..*view };
        let all = self.pages[view.revision.index()].get_or_init(|| {
            let starts = (0..self.entries.len().max(1)).step_by(view.size);
            starts.map(|start| self.encode_page(&view, start)).collect()
        });
        // After an entry was added or removed, a cursor may point between two page boundaries.
        match all.get(start / view.size).filter(|_| start.is_multiple_of(view.size)) {
            Some(page) => page.clone(),
            None => self.encode_page(&view, start),
        }
    }

    fn encode_page(&self, view: &PageRequest<'_>, start: usize) -> Bytes {
        let PageRequest { kind, revision, size, seer, stamp, .. } = *view;
        let entries = self.entries.get(start..).unwrap_or_default().iter();
        let mut entries = entries.filter(|(_, entry)| seer.is_none_or(|seer| entry.access().permits(seer)));
        let mut last = None;
        let definitions: Vec<E::Definition> = entries
            .by_ref()
            .take(size)
            .map(|(number, entry)| {
                last = Some(*number);
                let mut definition = entry.definition().clone();
                definition.shape(revision);
                definition
            })
            .collect();
        let next = last.filter(|_| entries.next().is_some());
        let result = ListPage {
            member: kind.member(),
            definitions,
            next_cursor: next.map(|after| ListCursor { kind, after }.encode()),
        };
        let mut out = Vec::new();
        stamp.write_complete(&mut out, revision, &result, None, CachePolicy::AsSet);
        out.into()
    }
}
