//! [`EntryView`]: the definition of an entry, as hooks and views see it.

use bindpost_mcp_protocol::{Meta, Prompt, Resource, ResourceTemplate, Tool};

use crate::catalog::prompt::PromptEntry;
use crate::catalog::resource::{ResourceEntry, TemplateEntry};
use crate::catalog::tool::ToolEntry;

/// The definition of an entry. Its variant is the kind of the entry.
///
/// ```
/// use bindpost_mcp_server::EntryView;
///
/// /// Entries are marked as internal by a member of their `_meta`.
/// fn is_internal(entry: EntryView<'_>) -> bool {
///     entry.meta().is_some_and(|meta| meta.contains_key("example.com/internal"))
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum EntryView<'a> {
    /// A tool.
    Tool(&'a Tool),
    /// A resource.
    Resource(&'a Resource),
    /// A resource template.
    Template(&'a ResourceTemplate),
    /// A prompt.
    Prompt(&'a Prompt),
}

impl<'a> EntryView<'a> {
    /// Returns the name of the kind: `tool`, `resource`, `resource template` or `prompt`.
    pub fn kind(self) -> &'static str {
        match self {
            EntryView::Tool(_) => "tool",
            EntryView::Resource(_) => "resource",
            EntryView::Template(_) => "resource template",
            EntryView::Prompt(_) => "prompt",
        }
    }

    /// Returns the name of a tool or prompt, the URI of a resource, or the URI template of a template.
    pub fn name(self) -> &'a str {
        match self {
            EntryView::Tool(tool) => &tool.name,
            EntryView::Resource(resource) => &resource.uri,
            EntryView::Template(template) => &template.uri_template,
            EntryView::Prompt(prompt) => &prompt.name,
        }
    }

    /// Returns whether the entry changes nothing: a resource, a prompt, or a tool with `readOnlyHint`.
    pub fn is_read_only(self) -> bool {
        match self {
            EntryView::Tool(tool) => {
                tool.annotations.as_ref().is_some_and(|hints| hints.read_only_hint == Some(true))
            }
            EntryView::Resource(_) | EntryView::Template(_) | EntryView::Prompt(_) => true,
        }
    }

    /// Returns the `_meta` of the definition.
    pub fn meta(self) -> Option<&'a Meta> {
        match self {
            EntryView::Tool(tool) => tool.meta.as_ref(),
            EntryView::Resource(resource) => resource.meta.as_ref(),
            EntryView::Template(template) => template.meta.as_ref(),
            EntryView::Prompt(prompt) => prompt.meta.as_ref(),
        }
    }
}

impl<'a> From<&'a ToolEntry> for EntryView<'a> {
    fn from(entry: &'a ToolEntry) -> EntryView<'a> {
        EntryView::Tool(&entry.definition)
    }
}

impl<'a> From<&'a ResourceEntry> for EntryView<'a> {
    fn from(entry: &'a ResourceEntry) -> EntryView<'a> {
        EntryView::Resource(&entry.definition)
    }
}

impl<'a> From<&'a TemplateEntry> for EntryView<'a> {
    fn from(entry: &'a TemplateEntry) -> EntryView<'a> {
        EntryView::Template(&entry.definition)
    }
}

impl<'a> From<&'a PromptEntry> for EntryView<'a> {
    fn from(entry: &'a PromptEntry) -> EntryView<'a> {
        EntryView::Prompt(&entry.definition)
    }
}
