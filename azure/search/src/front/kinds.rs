//! The table of kinds of definitions: one line each, from which their tools and resources are made.

use crate::client::SearchClient;

/// A kind of definition that the service keeps.
#[derive(Debug)]
pub(crate) struct DefinitionKind {
    /// In names of tools: `getIndex`.
    pub(crate) one: &'static str,
    /// In names of tools: `listIndexes`.
    pub(crate) many: &'static str,
    /// In sentences, with its article.
    pub(crate) word: &'static str,
    /// In sentences.
    pub(crate) words: &'static str,
    /// The argument that names one.
    pub(crate) argument: &'static str,
    path: &'static str,
    /// How operations of this kind begin in documents; the first that the document has counts.
    pub(crate) operations: &'static [&'static str],
    /// Its schema in documents, likewise.
    pub(crate) schemas: &'static [&'static str],
    /// What it is for.
    pub(crate) about: &'static str,
    /// What lists show of one besides its name, its description and its ETag. Of parts that have names, the names.
    pub(crate) listed: &'static [&'static str],
    /// Whether the service itself can leave members out of its list.
    pub(crate) selects: bool,
    /// Whether changing one may lose what was there.
    pub(crate) replaces: bool,
    /// What goes with one that is deleted.
    pub(crate) loses: &'static str,
}

/// Skillsets are left to the tools that call any operation.
pub(crate) const KINDS: &[DefinitionKind] = &[
    DefinitionKind {
        one: "Index",
        many: "Indexes",
        word: "an index",
        words: "indexes",
        argument: "indexName",
        path: "indexes",
        operations: &["Indexes"],
        schemas: &["SearchIndex"],
        about: "fields, analyzers, scoring profiles, vector search",
        listed: &["fields"],
        selects: true,
        replaces: true,
        loses: "Its documents go with it.",
    },
    DefinitionKind {
        one: "Indexer",
        many: "Indexers",
        word: "an indexer",
        words: "indexers",
        argument: "indexerName",
        path: "indexers",
        operations: &["Indexers"],
        schemas: &["SearchIndexer"],
        about: "which data source feeds which index, schedule, mappings",
        listed: &["dataSourceName", "targetIndexName"],
        selects: true,
        replaces: false,
        loses: "Its history and its place in the data source go with it; documents stay.",
    },
    DefinitionKind {
        one: "DataSource",
        many: "DataSources",
        word: "a data source",
        words: "data sources",
        argument: "dataSourceName",
        path: "datasources",
        operations: &["DataSources"],
        schemas: &["SearchIndexerDataSource"],
        about: "where indexers read; secrets are never shown, and null keeps them",
        listed: &["type", "container"],
        selects: true,
        replaces: false,
        loses: "Indexers that read from it will fail.",
    },
    DefinitionKind {
        one: "SynonymMap",
        many: "SynonymMaps",
        word: "a synonym map",
        words: "synonym maps",
        argument: "synonymMapName",
        path: "synonymmaps",
        operations: &["SynonymMaps"],
        schemas: &["SynonymMap"],
        about: "words that mean the same to searches",
        listed: &[],
        selects: true,
        replaces: true,
        loses: "Its rules go with it, and fields that name it lose their synonyms.",
    },
    DefinitionKind {
        one: "Alias",
        many: "Aliases",
        word: "an alias",
        words: "aliases",
        argument: "aliasName",
        path: "aliases",
        operations: &["Aliases"],
        schemas: &["SearchAlias"],
        about: "another name of an index",
        listed: &["indexes"],
        selects: false,
        replaces: false,
        loses: "Whoever searches by that name will fail; the index stays.",
    },
    DefinitionKind {
        one: "Agent",
        many: "Agents",
        word: "a knowledge agent",
        words: "knowledge agents (knowledge bases)",
        argument: "agentName",
        path: "agents",
        operations: &["KnowledgeAgents", "KnowledgeBases"],
        schemas: &["KnowledgeAgent", "KnowledgeBase"],
        about: "knowledge sources and models that `retrieve` answers from",
        listed: &["knowledgeSources"],
        selects: false,
        replaces: false,
        loses: "Whoever retrieves from it will fail.",
    },
    DefinitionKind {
        one: "KnowledgeSource",
        many: "KnowledgeSources",
        word: "a knowledge source",
        words: "knowledge sources",
        argument: "sourceName",
        path: "knowledgesources",
        operations: &["KnowledgeSources"],
        schemas: &["KnowledgeSource"],
        about: "what knowledge agents read",
        listed: &["kind"],
        selects: false,
        replaces: false,
        loses: "Agents that use it will fail.",
    },
];

impl DefinitionKind {
    /// Its path at the service. Knowledge agents were renamed with 2025-11-01.
    pub(crate) fn path(&self, client: &SearchClient) -> &'static str {
        match self.path {
            "agents" if client.has_knowledge_bases() => "knowledgebases",
            path => path,
        }
    }

    /// Where its resources are: `search://indexes`.
    pub(crate) fn resource(&self) -> String {
        format!("search://{}", self.path)
    }

    /// Whether it is of this path.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        self.path == path
    }
}

/// The kind of this path, if it is one of the table.
pub(crate) fn kind_of(path: &str) -> Option<&'static DefinitionKind> {
    KINDS.iter().find(|kind| kind.has_path(path))
}
