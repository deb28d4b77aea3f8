//! [`VisibleEntries`]: the entries that one caller sees, and the filter that decides it.
//!
//! All look-ups of a request go through this type, so that a hidden entry is an unknown one for every method.

use std::fmt;
use std::sync::Arc;

use bindpost_mcp_protocol::{Prompt, Resource, ResourceTemplate, Tool};

use crate::auth::{AccessRule, Caller};
use crate::catalog::entry_view::EntryView;
use crate::catalog::equivalent_uri;
use crate::catalog::prompt::PromptEntry;
use crate::catalog::resource::{ReadableResource, ResourceEntry, TemplateEntry};
use crate::catalog::tool::ToolEntry;
use crate::catalog::{Catalog, CatalogSnapshot};
use crate::peer::subscriptions::ChangeNotification;

/// Decides which entries each caller sees.
pub(crate) struct EntryFilter(Box<ShowsEntry>);

type ShowsEntry = dyn Fn(&Caller, EntryView<'_>) -> bool + Send + Sync;

impl fmt::Debug for EntryFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EntryFilter")
    }
}

impl EntryFilter {
    pub(crate) fn new(shows: impl Fn(&Caller, EntryView<'_>) -> bool + Send + Sync + 'static) -> EntryFilter {
        EntryFilter(Box::new(shows))
    }
}

/// The entries of a [`Catalog`] that one caller sees, as [`ServerBuilder::show_if`] decides.
///
/// Access rules are independent of it: a caller may see an entry and lack the rights to use it. The
/// value does not change when the catalog does.
///
/// [`ServerBuilder::show_if`]: crate::ServerBuilder::show_if
#[derive(Clone, Debug)]
pub struct VisibleEntries<'a> {
    snapshot: Arc<CatalogSnapshot>,
    filter: Option<&'a EntryFilter>,
    caller: &'a Caller,
}

impl VisibleEntries<'_> {
    /// Returns the definitions of the tools.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.snapshot.tools.iter().filter(|entry| self.shows(*entry)).map(|entry| &entry.definition)
    }

    /// Returns the definitions of the resources, without those of lists that are computed on request.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.snapshot.resources.iter().filter(|entry| self.shows(*entry)).map(|entry| &entry.definition)
    }

    /// Returns the definitions of the resource templates.
    pub fn templates(&self) -> impl Iterator<Item = &ResourceTemplate> {
        self.snapshot.templates.iter().filter(|entry| self.shows(*entry)).map(|entry| &entry.definition)
    }

    /// Returns the definitions of the prompts.
    pub fn prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.snapshot.prompts.iter().filter(|entry| self.shows(*entry)).map(|entry| &entry.definition)
    }

    pub(crate) fn snapshot(&self) -> &Arc<CatalogSnapshot> {
        &self.snapshot
    }

    /// Returns whether the view depends on the caller.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    pub(crate) fn shows<'e>(&self, entry: impl Into<EntryView<'e>>) -> bool {
        self.filter.is_none_or(|EntryFilter(shows)| shows(self.caller, entry.into()))
    }

    pub(crate) fn tool(&self, name: &str) -> Option<Arc<ToolEntry>> {
        self.snapshot.tool(name).filter(|entry| self.shows(&**entry))
    }

    pub(crate) fn resource(&self, uri: &str) -> Option<Arc<ResourceEntry>> {
        self.snapshot.resource(uri).filter(|entry| self.shows(&**entry))
    }

    pub(crate) fn template(&self, uri_template: &str) -> Option<Arc<TemplateEntry>> {
        self.snapshot.template(uri_template).filter(|entry| self.shows(&**entry))
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<Arc<PromptEntry>> {
        self.snapshot.prompt(name).filter(|entry| self.shows(&**entry))
    }

    /// Returns the resource with this URI, or the first template that matches it.
    pub(crate) fn find_readable(&self, uri: &str) -> Option<ReadableResource> {
        if let Some(entry) = self.snapshot.resource(uri) {
            return self.shows(&*entry).then(|| ReadableResource::from_entry(entry));
        }
        self.matching_templates(uri)
            .next()
            .map(|(entry, variables)| ReadableResource::from_template(entry, variables))
    }

    pub(crate) fn has_resource(&self, uri: &str) -> bool {
        match self.snapshot.resource(uri) {
            Some(entry) => self.shows(&*entry),
            None => self.matching_templates(uri).next().is_some(),
        }
    }

    pub(crate) fn access_of_resource(&self, uri: &str) -> Option<Arc<AccessRule>> {
        match self.snapshot.resource(uri) {
            Some(entry) => self.shows(&*entry).then(|| entry.access.clone()),
            None => self.matching_templates(uri).next().map(|(entry, _)| entry.access.clone()),
        }
    }

    /// Returns the templates that match a URI, with the values of their variables.
    fn matching_templates(
        &self,
        uri: &str,
    ) -> impl Iterator<Item = (&Arc<TemplateEntry>, Vec<(String, String)>)> {
        let templates = self.snapshot.templates.shared_entries().filter(|entry| self.shows(&***entry));
        templates.filter_map(move |entry| {
            let found = entry.matches(uri).or_else(|| entry.matches(&equivalent_uri(uri)?));
            found.map(|variables| (entry, variables))
        })
    }
}

impl Catalog {
    /// Returns the entries that a caller sees, as [`ServerBuilder::show_if`](crate::ServerBuilder::show_if)
    /// decides.
    ///
    /// ```
    /// # use bindpost_mcp_server::{Caller, Server, ToolEntry};
    /// let server = Server::builder("shop", "1.0.0")
    ///     .tool(ToolEntry::new("search", async || "found"))
    ///     .tool(ToolEntry::new("restock", async || "ordered"))
    ///     .show_if(|caller, entry| entry.name() != "restock" || caller.has_role("Manager"))
    ///     .build()?;
    /// let visible = server.catalog().visible_to(&Caller::ANONYMOUS);
    /// assert!(visible.tools().map(|tool| &tool.name).eq(["search"]));
    /// # Ok::<(), bindpost_mcp_server::BuildError>(())
    /// ```
    pub fn visible_to<'a>(&'a self, caller: &'a Caller) -> VisibleEntries<'a> {
        VisibleEntries { snapshot: self.snapshot(), filter: self.filter.as_ref(), caller }
    }

    /// Notifies all sessions and listeners of one caller that its lists have changed. Call it when the
    /// answers of [`ServerBuilder::show_if`](crate::ServerBuilder::show_if) change for this caller.
    pub fn announce_view(&self, caller: &Caller) {
        self.announce_lists(|listener| listener == caller);
    }

    /// Notifies all clients that their lists have changed. Call it when the answers of
    /// [`ServerBuilder::show_if`](crate::ServerBuilder::show_if) change for many callers.
    pub fn announce_all_views(&self) {
        self.announce_lists(|_| true);
    }

    fn announce_lists(&self, reaches: impl Fn(&Caller) -> bool) {
        let snapshot = self.snapshot();
        for (change, has_entries) in [
            (ChangeNotification::Tools, !snapshot.tools.is_empty()),
            (ChangeNotification::Resources, snapshot.has_resources()),
            (ChangeNotification::Prompts, !snapshot.prompts.is_empty()),
        ] {
            if has_entries {
                self.hub.announce_to(&change, &reaches);
            }
        }
    }

    /// Notifies the subscribers of a resource that still see it.
    pub(crate) fn announce_resource(&self, uri: &str) {
        let change = ChangeNotification::Resource(uri);
        if self.filter.is_none() {
            return self.hub.announce(&change);
        }
        // The filter is code of the server's author. It runs before the hub is locked.
        let mut callers = self.hub.callers();
        callers.retain(|caller| self.visible_to(caller).has_resource(uri));
        self.hub.announce_to(&change, |caller| callers.contains(caller));
    }
}
