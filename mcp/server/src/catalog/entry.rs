//! [`Entry`]: an entry of any kind, the builder methods that all kinds share, and the registration of several
//! entries at once.

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
    /// A resource template.
    Template(TemplateEntry),
    /// A list of resources that is computed on request.
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

/// A value whose methods are entries. The attribute `#[tools]` on an `impl` block implements this trait.
///
/// Register the value itself, or an `Arc` of it, with [`ServerBuilder::add`](crate::ServerBuilder::add).
pub trait Toolbox: Send + Sync + 'static {
    /// Returns the entries. All of them share the value.
    fn entries(self: Arc<Self>) -> Vec<Entry>;
}

/// A value that [`ServerBuilder::add`](crate::ServerBuilder::add) can register.
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no entries",
    label = "not an entry, a list of entries or a toolbox",
    note = "for functions with `#[tool]`, `#[resource]` or `#[prompt]` write `entries![first, second]`",
    note = "for a value with methods put `#[tools]` on its `impl` block and register the value"
)]
pub trait IntoEntries {
    /// Converts the value into its entries.
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
            /// Sets the description for the model.
            pub fn description(mut self, description: impl Into<String>) -> $Entry {
                self.definition.description = Some(description.into());
                self
            }

            /// Sets the display name.
            pub fn title(mut self, title: impl Into<String>) -> $Entry {
                self.definition.title = Some(title.into());
                self
            }

            /// Sets the icons that a client may show for the entry.
            pub fn icons(mut self, icons: impl IntoIterator<Item = impl Into<Icon>>) -> $Entry {
                self.definition.icons = icons.into_iter().map(Into::into).collect();
                self
            }

            /// Sets the `_meta` of the definition.
            pub fn meta(mut self, meta: Meta) -> $Entry {
                self.definition.meta = Some(meta);
                self
            }

            /// Adds a member to the `_meta` of the definition.
            pub fn with_meta(mut self, name: impl Into<String>, value: impl Serialize) -> $Entry {
                if let Ok(value) = serde_json::to_value(value) {
                    self.definition.meta.get_or_insert_default().insert(name.into(), value);
                }
                self
            }

            #[doc = concat!("Sets the timeout of ", $Run, " instead of the server's default. `None` means no timeout.")]
            pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> $Entry {
                self.timeout = Some(timeout.into());
                self
            }

            /// Permits every caller, authenticated or not.
            pub fn anonymous(self) -> $Entry {
                self.access(AccessRule::anonymous())
            }

            /// Permits users who granted all of these scopes, and API keys that have them. Applications
            /// that act on their own behalf are rejected unless `roles` permits them.
            pub fn scopes(self, scopes: impl IntoIterator<Item = impl Into<String>>) -> $Entry {
                let access = AccessRule::clone(&self.access).with_scopes(scopes);
                self.access(access)
            }

            /// Requires all of these roles of users, in addition to the scopes.
            pub fn user_roles(self, roles: impl IntoIterator<Item = impl Into<String>>) -> $Entry {
                let access = AccessRule::clone(&self.access).with_user_roles(roles);
                self.access(access)
            }

            /// Permits applications that act on their own behalf and have all of these roles. These roles
            /// do not permit users.
            pub fn roles(self, roles: impl IntoIterator<Item = impl Into<String>>) -> $Entry {
                let access = AccessRule::clone(&self.access).with_roles(roles);
                self.access(access)
            }

            /// Sets the callers that may use the entry.
            pub fn access(mut self, access: AccessRule) -> $Entry {
                self.access = Arc::new(access);
                self
            }

            /// Returns the source location of the entry, for error messages.
            pub(crate) fn origin(&self) -> &'static Location<'static> {
                self.origin
            }
        }
    };
}
pub(crate) use entry_methods;
