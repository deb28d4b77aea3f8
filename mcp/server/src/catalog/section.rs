//! [`CatalogSection`]: the entries of one kind, found by their keys and listed in pages.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Arc, OnceLock};

use bindpost_mcp_protocol::{Prompt, Resource, ResourceTemplate, Revision, ShapeForRevision, Tool};
use bytes::Bytes;
use serde::Serialize;

use super::{CatalogError, ListPage, PageRequest, invalid};
use crate::auth::AccessRule;
use crate::catalog::cursor::ListCursor;
use crate::catalog::entry_view::EntryView;
use crate::catalog::prompt::PromptEntry;
use crate::catalog::resource::{ResourceEntry, TemplateEntry};
use crate::catalog::tool::ToolEntry;
use crate::handler::signature::Signature;
use crate::result_envelope::PerPolicy;

/// A kind of entry that is listed.
pub(crate) trait CatalogEntry: Sized {
    /// The name of the kind in messages.
    const WORD: &'static str;
    type Definition: Serialize + ShapeForRevision + Clone;
    fn key(&self) -> &str;
    fn definition(&self) -> &Self::Definition;
    fn view(&self) -> EntryView<'_>;
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
            fn view(&self) -> EntryView<'_> {
                self.into()
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
    pub(super) entries: Vec<(u64, Arc<E>)>,
    by_key: HashMap<String, Arc<E>>,
    last: u64,
    pub(super) ignores_case: bool,
    /// The encoded pages of each revision with all entries, created with the first request.
    pages: PerPolicy<[OnceLock<Vec<Bytes>>; Revision::ALL.len()]>,
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
        self.shared_entries().map(|entry| &**entry)
    }

    pub(super) fn shared_entries(&self) -> impl Iterator<Item = &Arc<E>> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    pub(super) fn get(&self, key: &str) -> Option<Arc<E>> {
        let found = self.by_key.get(key);
        let by_letters = || self.shared_entries().find(|entry| same_letters(entry.key(), key));
        found.or_else(|| if self.ignores_case { by_letters() } else { None }).cloned()
    }

    /// Returns an empty section that continues the numbering of this one.
    pub(super) fn successor(&self) -> CatalogSection<E> {
        self.successor_with(|_| false)
    }

    /// Returns a section that continues the numbering of this one and has these of its entries.
    pub(super) fn successor_with(&self, keep: impl Fn(&E) -> bool) -> CatalogSection<E> {
        let entries: Vec<_> = self.entries.iter().filter(|(_, entry)| keep(entry)).cloned().collect();
        let by_key = entries.iter().map(|(_, entry)| (entry.key().to_owned(), entry.clone())).collect();
        let CatalogSection { last, ignores_case, .. } = *self;
        CatalogSection { entries, by_key, last, ignores_case, ..CatalogSection::default() }
    }

    /// Returns whether the listed definitions of both sections differ.
    pub(super) fn differs(&self, other: &CatalogSection<E>) -> bool {
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

    pub(super) fn remove(&mut self, key: &str) -> Option<()> {
        self.by_key.remove(key)?;
        self.entries.retain(|(_, entry)| entry.key() != key);
        Some(())
    }

    pub(super) fn page(&self, view: &PageRequest<'_>) -> Bytes {
        let start =
            view.after.map_or(0, |after| self.entries.partition_point(|(number, _)| *number <= after));
        if !view.is_complete() && !self.iter().all(|entry| view.lists(entry)) {
            return self.encode_page(view, start, |entry| view.lists(entry));
        }
        let pages = &self.pages.get(view.cache_policy())[view.revision.index()];
        let all = pages.get_or_init(|| {
            let starts = (0..self.entries.len().max(1)).step_by(view.size);
            starts.map(|start| self.encode_page(view, start, |_| true)).collect()
        });
        // After an entry was added or removed, a cursor may point between two page boundaries.
        match all.get(start / view.size).filter(|_| start.is_multiple_of(view.size)) {
            Some(page) => page.clone(),
            None => self.encode_page(view, start, |_| true),
        }
    }

    fn encode_page(&self, view: &PageRequest<'_>, start: usize, lists: impl Fn(&E) -> bool) -> Bytes {
        let PageRequest { kind, revision, size, stamp, .. } = *view;
        let entries = self.entries.get(start..).unwrap_or_default().iter();
        let mut entries = entries.filter(|(_, entry)| lists(entry));
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
        stamp.write_complete(&mut out, revision, &result, None, view.cache_policy());
        out.into()
    }
}
