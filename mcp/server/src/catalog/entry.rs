//! What all kinds of entries have in common, and how several are registered at once.

use std::sync::Arc;

use crate::catalog::prompt::PromptEntry;
use crate::catalog::resource::{ResourceEntry, TemplateEntry};
use crate::catalog::resource_list::ResourceListEntry;
use crate::catalog::tool::ToolEntry;

/// An entry of any kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Entry {
    /// A tool.
    Tool(ToolEntry),
    /// A resource.
    Resource(ResourceEntry),
    /// A family of resources.
    Template(TemplateEntry),
    /// Resources that are listed when somebody asks.
    ResourceList(ResourceListEntry),
    /// A prompt.
    Prompt(PromptEntry),
}

impl From<ToolEntry> for Entry {
    fn from(entry: ToolEntry) -> Entry {
        Entry::Tool(entry)
    }
}

impl From<ResourceEntry> for Entry {
    fn from(entry: ResourceEntry) -> Entry {
        Entry::Resource(entry)
    }
}

impl From<TemplateEntry> for Entry {
    fn from(entry: TemplateEntry) -> Entry {
        Entry::Template(entry)
    }
}

impl From<ResourceListEntry> for Entry {
    fn from(entry: ResourceListEntry) -> Entry {
        Entry::ResourceList(entry)
    }
}

impl From<PromptEntry> for Entry {
    fn from(entry: PromptEntry) -> Entry {
        Entry::Prompt(entry)
    }
}

/// A value whose methods are entries: what `#[tools]` makes of an `impl` block.
///
/// Register the value itself, or an `Arc` of it, with [`ServerBuilder::add`](crate::ServerBuilder::add).
pub trait Toolbox: Send + Sync + 'static {
    /// The entries; all of them share the value.
    fn entries(self: Arc<Self>) -> Vec<Entry>;
}

/// Can be registered with [`ServerBuilder::add`](crate::ServerBuilder::add).
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no entries",
    label = "not an entry, a list of entries or a toolbox",
    note = "for functions with `#[tool]`, `#[resource]` or `#[prompt]` write `entries![first, second]`",
    note = "for a value with methods put `#[tools]` on its `impl` block and register the value"
)]
pub trait IntoEntries {
    /// The entries.
    fn into_entries(self) -> Vec<Entry>;
}

impl IntoEntries for Vec<Entry> {
    fn into_entries(self) -> Vec<Entry> {
        self
    }
}

impl<const N: usize> IntoEntries for [Entry; N] {
    fn into_entries(self) -> Vec<Entry> {
        self.into()
    }
}

impl IntoEntries for Entry {
    fn into_entries(self) -> Vec<Entry> {
        vec![self]
    }
}

impl<T: Toolbox> IntoEntries for T {
    fn into_entries(self) -> Vec<Entry> {
        Arc::new(self).entries()
    }
}

impl<T: Toolbox> IntoEntries for Arc<T> {
    fn into_entries(self) -> Vec<Entry> {
        self.entries()
    }
}

/// The builder methods that every kind of entry has.
macro_rules! entry_methods {
    ($Entry:ident, $Run:literal) => {
        impl $Entry {
            /// What it is for, for the model.
            pub fn description(mut self, description: impl Into<String>) -> $Entry {
                self.definition.description = Some(description.into());
                self
            }

            /// Its name for people.
            pub fn title(mut self, title: impl Into<String>) -> $Entry {
                self.definition.title = Some(title.into());
                self
            }

            /// Its pictures.
            pub fn icons(mut self, icons: impl IntoIterator<Item = impl Into<Icon>>) -> $Entry {
                self.definition.icons = icons.into_iter().map(Into::into).collect();
                self
            }

            /// Its `_meta`.
            pub fn meta(mut self, meta: Meta) -> $Entry {
                self.definition.meta = Some(meta);
                self
            }

            /// One more member of its `_meta`.
            pub fn with_meta(mut self, name: impl Into<String>, value: impl Serialize) -> $Entry {
                if let Ok(value) = serde_json::to_value(value) {
                    self.definition.meta.get_or_insert_default().insert(name.into(), value);
                }
                self
            }

            #[doc = concat!("How long ", $Run, " may take, instead of the server's default; `None` for as long as it likes.")]
            pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> $Entry {
                self.timeout = Some(timeout.into());
                self
            }

            /// Anybody may use it, known or not.
            pub fn anonymous(self) -> $Entry {
                self.access(AccessRule::anonymous())
            }

            /// Users who have granted all of these scopes may use it, and API keys that have them. Applications
            /// that act for themselves may not, unless `roles` lets them.
            pub fn scopes(self, scopes: impl IntoIterator<Item = impl Into<String>>) -> $Entry {
                let access = AccessRule::clone(&self.access).with_scopes(scopes);
                self.access(access)
            }

            /// Users need all of these roles besides the scopes.
            pub fn user_roles(self, roles: impl IntoIterator<Item = impl Into<String>>) -> $Entry {
                let access = AccessRule::clone(&self.access).with_user_roles(roles);
                self.access(access)
            }

            /// Applications that act for themselves and have all of these roles may use it. Users may not by
            /// these, whatever their roles.
            pub fn roles(self, roles: impl IntoIterator<Item = impl Into<String>>) -> $Entry {
                let access = AccessRule::clone(&self.access).with_roles(roles);
                self.access(access)
            }

            /// Who may use it.
            pub fn access(mut self, access: AccessRule) -> $Entry {
                self.access = Arc::new(access);
                self
            }

            /// Where it was written, for messages about it.
            pub(crate) fn origin(&self) -> &'static Location<'static> {
                self.origin
            }
        }
    };
}
pub(crate) use entry_methods;
