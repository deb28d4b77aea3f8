//! The table of kinds of definitions. Tools and resources are generated from it.

use crate::service::client::SearchClient;

/// A kind of definition in the service.
#[derive(Debug)]
pub(crate) struct DefinitionKind {
    /// Singular in tool names: `getIndex`.
    pub(crate) one: &'static str,
    /// Plural in tool names: `listIndexes`.
    pub(crate) many: &'static str,
    /// Singular in sentences, with its article.
    pub(crate) word: &'static str,
    /// Plural in sentences.
    pub(crate) words: &'static str,
    /// The argument with the name of one.
    pub(crate) argument: &'static str,
    path: &'static str,
    /// Prefixes of the operations of this kind in API descriptions. The first that exists is used.
    pub(crate) operations: &'static [&'static str],
    /// Names of its schema in API descriptions. The first that exists is used.
    pub(crate) schemas: &'static [&'static str],
    /// Its purpose.
    pub(crate) about: &'static str,
    /// Members in lists besides name, description and ETag. Of parts that have names, only the names
    /// are listed.
    pub(crate) listed: &'static [&'static str],
    /// Whether the service supports `$select` in its list.
    pub(crate) selects: bool,
    /// Whether an update may lose data.
    pub(crate) replaces: bool,
    /// The consequences of a deletion.
    pub(crate) loses: &'static str,
}

/// Skillsets are served by the tools that call any operation.
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
        loses: "Its documents are deleted too.",
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
        loses: "Its history and its position in the data source are deleted; documents are kept.",
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
        about: "where indexers read; secrets are never returned, and null keeps them",
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
        about: "words that are equivalent in searches",
        listed: &[],
        selects: true,
        replaces: true,
        loses: "Its rules are deleted, and fields that use it lose their synonyms.",
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
        loses: "Searches by that name will fail; the index is kept.",
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
        loses: "Retrievals from it will fail.",
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
    /// Returns its path in the service. Knowledge agents were renamed in 2025-11-01.
    pub(crate) fn path(&self, client: &SearchClient) -> &'static str {
        match self.path {
            "agents" if client.has_knowledge_bases() => "knowledgebases",
            path => path,
        }
    }

    /// Returns the URI of its resources: `search://indexes`.
    pub(crate) fn resource(&self) -> String {
        format!("search://{}", self.path)
    }

    /// Returns whether it has this path.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        self.path == path
    }
}

/// Returns the kind with this path, if there is one.
pub(crate) fn kind_of(path: &str) -> Option<&'static DefinitionKind> {
    KINDS.iter().find(|kind| kind.has_path(path))
}
