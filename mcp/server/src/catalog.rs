//! [`Catalog`]: entries (definition and handler): add, find, list, page, announce changes.
//!
//! Readers work on a snapshot that never changes; a change makes a new one. Lists are encoded once
//! per snapshot and revision, and handed out as bytes.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bindpost_mcp_protocol::{Params, Prompt, Resource, ResourceTemplate, Revision, Shape, Tool};
use bytes::Bytes;
use serde::Serialize;
use serde::ser::SerializeMap as _;

use crate::cursor::{Cursor, Kind};
use crate::error::ProtocolError;
use crate::prompt::PromptEntry;
use crate::resource::{Readable, ResourceEntry, TemplateEntry};
use crate::server::{Cache, Stamp};
use crate::subscriptions::{Change, Hub};
use crate::tool::ToolEntry;

/// Why an entry was not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// There is one of that name already.
    #[error("{kind} {name:?} is there already")]
    Duplicate {
        /// What it is.
        kind: &'static str,
        /// Its name or URI.
        name: String,
    },
    /// The definition cannot be served.
    #[error("{kind} {name:?}: {reason}")]
    Invalid {
        /// What it is.
        kind: &'static str,
        /// Its name or URI.
        name: String,
        /// What to change.
        reason: String,
    },
}

/// The tools, resources, templates and prompts of a server. It can change while the server serves.
#[derive(Debug)]
pub struct Catalog {
    current: RwLock<Arc<Snapshot>>,
    hub: Arc<Hub>,
    page_size: usize,
    stamp: Arc<Stamp>,
}

impl Catalog {
    pub(crate) fn new(snapshot: Snapshot, hub: Arc<Hub>, page_size: usize, stamp: Arc<Stamp>) -> Catalog {
        Catalog { current: RwLock::new(Arc::new(snapshot)), hub, page_size, stamp }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change<T>(&self, change: Change<'_>, make: impl FnOnce(&mut Snapshot) -> Option<T>) -> Option<T> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&current);
        let made = make(&mut next)?;
        *current = Arc::new(next);
        drop(current);
        self.hub.announce(&change);
        Some(made)
    }

    fn try_change(
        &self,
        change: Change<'_>,
        make: impl FnOnce(&mut Snapshot) -> Result<(), CatalogError>,
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
        self.try_change(Change::Tools, |snapshot| snapshot.add_tool(entry))
    }

    /// Removes a tool; `false` if there is none of that name.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.change(Change::Tools, |snapshot| snapshot.tools.remove(name)).is_some()
    }

    /// Adds a resource.
    pub fn add_resource(&self, entry: ResourceEntry) -> Result<(), CatalogError> {
        self.try_change(Change::Resources, |snapshot| snapshot.add_resource(entry))
    }

    /// Removes a resource; `false` if there is none of that URI.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.change(Change::Resources, |snapshot| snapshot.resources.remove(uri)).is_some()
    }

    /// Adds a resource template.
    pub fn add_template(&self, entry: TemplateEntry) -> Result<(), CatalogError> {
        self.try_change(Change::Resources, |snapshot| snapshot.add_template(entry))
    }

    /// Removes a resource template; `false` if there is none of that URI template.
    pub fn remove_template(&self, uri_template: &str) -> bool {
        self.change(Change::Resources, |snapshot| snapshot.templates.remove(uri_template)).is_some()
    }

    /// Adds a prompt.
    pub fn add_prompt(&self, entry: PromptEntry) -> Result<(), CatalogError> {
        self.try_change(Change::Prompts, |snapshot| snapshot.add_prompt(entry))
    }

    /// Removes a prompt; `false` if there is none of that name.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(Change::Prompts, |snapshot| snapshot.prompts.remove(name)).is_some()
    }

    /// One page of a list as an encoded result.
    pub(crate) fn page(
        &self,
        kind: Kind,
        revision: Revision,
        params: &Params,
    ) -> Result<Bytes, ProtocolError> {
        let snapshot = self.snapshot();
        let after = match params.get("cursor").filter(|cursor| !cursor.is_null()) {
            None => None,
            Some(raw) => {
                let cursor = raw.as_text().and_then(|text| Cursor::decode(kind, &text));
                let unknown = || {
                    let reason = format!("unknown cursor {}; start again without one", raw.as_json());
                    ProtocolError::invalid(kind.method(), reason)
                };
                Some(cursor.ok_or_else(unknown)?.after)
            }
        };
        let size = self.page_size;
        Ok(match kind {
            Kind::Tools => snapshot.tools.page(kind, revision, after, size, &self.stamp),
            Kind::Resources => snapshot.resources.page(kind, revision, after, size, &self.stamp),
            Kind::Templates => snapshot.templates.page(kind, revision, after, size, &self.stamp),
            Kind::Prompts => snapshot.prompts.page(kind, revision, after, size, &self.stamp),
        })
    }
}

impl Kind {
    fn method(self) -> &'static str {
        match self {
            Kind::Tools => "tools/list",
            Kind::Resources => "resources/list",
            Kind::Templates => "resources/templates/list",
            Kind::Prompts => "prompts/list",
        }
    }

    /// The member of the result that holds the list.
    fn member(self) -> &'static str {
        match self {
            Kind::Tools => "tools",
            Kind::Resources => "resources",
            Kind::Templates => "resourceTemplates",
            Kind::Prompts => "prompts",
        }
    }
}

/// One page as its result shows it.
struct Page<D> {
    member: &'static str,
    definitions: Vec<D>,
    next_cursor: Option<String>,
}

impl<D: Serialize> Serialize for Page<D> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut page = serializer.serialize_map(None)?;
        page.serialize_entry(self.member, &self.definitions)?;
        if let Some(cursor) = &self.next_cursor {
            page.serialize_entry("nextCursor", cursor)?;
        }
        page.end()
    }
}

/// The catalog at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) tools: Section<ToolEntry>,
    pub(crate) resources: Section<ResourceEntry>,
    pub(crate) templates: Section<TemplateEntry>,
    pub(crate) prompts: Section<PromptEntry>,
}

impl Snapshot {
    pub(crate) fn add_tool(&mut self, mut entry: ToolEntry) -> Result<(), CatalogError> {
        entry.compile().map_err(|reason| invalid::<ToolEntry>(&entry, reason))?;
        self.tools.add(entry)
    }

    pub(crate) fn add_resource(&mut self, mut entry: ResourceEntry) -> Result<(), CatalogError> {
        entry.compile().map_err(|reason| invalid::<ResourceEntry>(&entry, reason))?;
        self.resources.add(entry)
    }

    pub(crate) fn add_template(&mut self, mut entry: TemplateEntry) -> Result<(), CatalogError> {
        entry.compile().map_err(|reason| invalid::<TemplateEntry>(&entry, reason))?;
        self.templates.add(entry)
    }

    pub(crate) fn add_prompt(&mut self, mut entry: PromptEntry) -> Result<(), CatalogError> {
        entry.compile().map_err(|reason| invalid::<PromptEntry>(&entry, reason))?;
        self.prompts.add(entry)
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

    /// The resource with this URI, or the first template that covers it.
    pub(crate) fn readable(&self, uri: &str) -> Option<Readable> {
        if let Some(entry) = self.resources.get(uri) {
            return Some(Readable::plain(&entry));
        }
        self.templates.entries.iter().find_map(|(_, entry)| {
            entry.matches(uri).map(|variables| Readable::from_template(entry, variables))
        })
    }

    pub(crate) fn has_resource(&self, uri: &str) -> bool {
        self.resources.get(uri).is_some()
            || self.templates.entries.iter().any(|(_, entry)| entry.matches(uri).is_some())
    }
}

fn invalid<E: Entry>(entry: &E, reason: String) -> CatalogError {
    CatalogError::Invalid { kind: E::WORD, name: entry.key().to_owned(), reason }
}

/// A kind of entry.
pub(crate) trait Entry {
    /// What it is, for people.
    const WORD: &'static str;
    type Definition: Serialize + Shape + Clone;
    fn key(&self) -> &str;
    fn definition(&self) -> &Self::Definition;
}

impl Entry for ToolEntry {
    const WORD: &'static str = "tool";
    type Definition = Tool;
    fn key(&self) -> &str {
        &self.definition.name
    }
    fn definition(&self) -> &Tool {
        &self.definition
    }
}

impl Entry for ResourceEntry {
    const WORD: &'static str = "resource";
    type Definition = Resource;
    fn key(&self) -> &str {
        &self.definition.uri
    }
    fn definition(&self) -> &Resource {
        &self.definition
    }
}

impl Entry for TemplateEntry {
    const WORD: &'static str = "resource template";
    type Definition = ResourceTemplate;
    fn key(&self) -> &str {
        &self.definition.uri_template
    }
    fn definition(&self) -> &ResourceTemplate {
        &self.definition
    }
}

impl Entry for PromptEntry {
    const WORD: &'static str = "prompt";
    type Definition = Prompt;
    fn key(&self) -> &str {
        &self.definition.name
    }
    fn definition(&self) -> &Prompt {
        &self.definition
    }
}

/// All entries of one kind, in the order they were added.
#[derive(Debug)]
pub(crate) struct Section<E> {
    /// Each with a number that grows and is never used again.
    entries: Vec<(u64, Arc<E>)>,
    by_key: HashMap<String, Arc<E>>,
    last: u64,
    /// The encoded pages, per revision; made when first asked for.
    pages: [OnceLock<Vec<Bytes>>; Revision::ALL.len()],
}

impl<E> Default for Section<E> {
    fn default() -> Section<E> {
        Section { entries: Vec::new(), by_key: HashMap::new(), last: 0, pages: Default::default() }
    }
}

impl<E> Clone for Section<E> {
    /// Without the encoded pages: a clone is made to be changed.
    fn clone(&self) -> Section<E> {
        Section {
            entries: self.entries.clone(),
            by_key: self.by_key.clone(),
            last: self.last,
            pages: Default::default(),
        }
    }
}

impl<E: Entry> Section<E> {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        self.entries.iter().map(|(_, entry)| &**entry)
    }

    fn get(&self, key: &str) -> Option<Arc<E>> {
        self.by_key.get(key).cloned()
    }

    fn add(&mut self, entry: E) -> Result<(), CatalogError> {
        let key = entry.key().to_owned();
        if self.by_key.contains_key(&key) {
            return Err(CatalogError::Duplicate { kind: E::WORD, name: key });
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

    fn page(&self, kind: Kind, revision: Revision, after: Option<u64>, size: usize, stamp: &Stamp) -> Bytes {
        let start = after.map_or(0, |after| self.entries.partition_point(|(number, _)| *number <= after));
        let all = self.pages[revision.index()].get_or_init(|| {
            let starts = (0..self.entries.len().max(1)).step_by(size);
            starts.map(|start| self.encode_page(kind, revision, start, size, stamp)).collect()
        });
        // An entry that came or went between two requests moves what follows off the page borders.
        match all.get(start / size).filter(|_| start.is_multiple_of(size)) {
            Some(page) => page.clone(),
            None => self.encode_page(kind, revision, start, size, stamp),
        }
    }

    fn encode_page(&self, kind: Kind, revision: Revision, start: usize, size: usize, stamp: &Stamp) -> Bytes {
        let end = (start + size).min(self.entries.len());
        let entries = self.entries.get(start..end).unwrap_or_default();
        let definitions: Vec<E::Definition> = entries
            .iter()
            .map(|(_, entry)| {
                let mut definition = entry.definition().clone();
                definition.shape(revision);
                definition
            })
            .collect();
        let next = (end < self.entries.len()).then(|| entries.last()).flatten();
        let result = Page {
            member: kind.member(),
            definitions,
            next_cursor: next.map(|(last, _)| Cursor { kind, after: *last }.encode()),
        };
        let mut out = Vec::new();
        stamp.write_complete(&mut out, revision, &result, None, Cache::AsSet);
        out.into()
    }
}
