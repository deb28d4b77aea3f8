//! The eight kinds of definitions.

use std::fmt;

/// A kind of definition. Kinds are stored in this order. [`ResourceKind::collection`] returns the wire names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    Index,
    DataSource,
    Indexer,
    Skillset,
    SynonymMap,
    Alias,
    KnowledgeSource,
    /// Called an agent until the end of 2025. Both names refer to the same definitions.
    KnowledgeBase,
}

impl ResourceKind {
    pub const ALL: [Self; 8] = [
        Self::Index,
        Self::DataSource,
        Self::Indexer,
        Self::Skillset,
        Self::SynonymMap,
        Self::Alias,
        Self::KnowledgeSource,
        Self::KnowledgeBase,
    ];

    /// The first segment of its URLs, and its name in the store.
    pub fn collection(self) -> &'static str {
        match self {
            Self::Index => "indexes",
            Self::DataSource => "datasources",
            Self::Indexer => "indexers",
            Self::Skillset => "skillsets",
            Self::SynonymMap => "synonymmaps",
            Self::Alias => "aliases",
            Self::KnowledgeSource => "knowledgesources",
            Self::KnowledgeBase => "knowledgebases",
        }
    }

    pub(crate) fn article(self) -> &'static str {
        match self {
            Self::Index | Self::Indexer | Self::Alias => "an",
            _ => "a",
        }
    }

    pub(crate) fn exists_code(self) -> &'static str {
        match self {
            Self::Index => "CannotCreateExistingIndex",
            Self::DataSource => "CannotCreateExistingDataSource",
            Self::Indexer => "CannotCreateExistingIndexer",
            Self::Skillset => "CannotCreateExistingSkillset",
            Self::SynonymMap => "CannotCreateExistingSynonymMap",
            Self::Alias => "CannotCreateExistingAlias",
            Self::KnowledgeSource => "CannotCreateExistingKnowledgeSource",
            Self::KnowledgeBase => "CannotCreateExistingKnowledgeBase",
        }
    }
}

/// The name in messages.
impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => "index",
            Self::DataSource => "data source",
            Self::Indexer => "indexer",
            Self::Skillset => "skillset",
            Self::SynonymMap => "synonym map",
            Self::Alias => "alias",
            Self::KnowledgeSource => "knowledge source",
            Self::KnowledgeBase => "knowledge base",
        })
    }
}
