//! [`ToolSet`]: which tools a server offers.

use bindpost_mcp_server::{Entry, EntryView};

/// Tools that search and read documents, and what a caller needs to know for it.
const QUERY: [&str; 11] = [
    "searchDocuments",
    "profileIndex",
    "buildFilter",
    "explainSearch",
    "getDocument",
    "suggest",
    "autocomplete",
    "countDocuments",
    "retrieve",
    "listIndexes",
    "getIndex",
];
/// The prompts for these tools.
const QUERY_PROMPTS: [&str; 1] = ["answer_from_index"];

/// Which tools and prompts a server offers. Each set contains those before it. Few tools cost a model fewer tokens, and it
/// chooses better among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolSet {
    /// Tools that search and read documents.
    Query,
    /// Also tools that read definitions and status, analyze and diagnose. None changes the service.
    Read,
    /// Also tools that change documents and definitions, and that run indexers.
    Manage,
    /// Also three tools for every other operation of the API description.
    #[default]
    All,
}

impl ToolSet {
    /// Whether no tool of the set changes the service.
    pub(crate) fn only_reads(self) -> bool {
        self <= ToolSet::Read
    }

    /// Whether the set has the tools for every operation.
    pub(crate) fn has_operations(self) -> bool {
        self == ToolSet::All
    }

    /// Whether the set has this entry. Resources are in every set.
    pub(crate) fn has(self, entry: &Entry) -> bool {
        self > ToolSet::Query
            || match entry {
                Entry::Tool(tool) => QUERY.contains(&EntryView::from(tool).name()),
                Entry::Prompt(prompt) => QUERY_PROMPTS.contains(&EntryView::from(prompt).name()),
                _ => true,
            }
    }
}
