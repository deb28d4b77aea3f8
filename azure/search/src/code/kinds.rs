//! The kinds of definitions in a folder.

use serde::{Deserialize, Serialize};

use crate::service::client::SearchClient;

/// A kind of definition. The order is the one in which definitions are created: each refers only to
/// kinds before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CodeKind {
    SynonymMap,
    DataSource,
    Index,
    Alias,
    Skillset,
    Indexer,
    KnowledgeSource,
    KnowledgeBase,
}

impl CodeKind {
    pub const ALL: [CodeKind; 8] = [
        CodeKind::SynonymMap,
        CodeKind::DataSource,
        CodeKind::Index,
        CodeKind::Alias,
        CodeKind::Skillset,
        CodeKind::Indexer,
        CodeKind::KnowledgeSource,
        CodeKind::KnowledgeBase,
    ];

    /// The name of its folder, and of the kind in plans and reports.
    pub fn folder(self) -> &'static str {
        match self {
            CodeKind::SynonymMap => "synonym-maps",
            CodeKind::DataSource => "data-sources",
            CodeKind::Index => "indexes",
            CodeKind::Alias => "aliases",
            CodeKind::Skillset => "skillsets",
            CodeKind::Indexer => "indexers",
            CodeKind::KnowledgeSource => "knowledge-sources",
            CodeKind::KnowledgeBase => "knowledge-bases",
        }
    }

    /// Returns its path in the service.
    pub(crate) fn collection(self, client: &SearchClient) -> &'static str {
        match self {
            CodeKind::SynonymMap => "synonymmaps",
            CodeKind::DataSource => "datasources",
            CodeKind::Index => "indexes",
            CodeKind::Alias => "aliases",
            CodeKind::Skillset => "skillsets",
            CodeKind::Indexer => "indexers",
            CodeKind::KnowledgeSource => "knowledgesources",
            CodeKind::KnowledgeBase if client.has_knowledge_bases() => "knowledgebases",
            CodeKind::KnowledgeBase => "agents",
        }
    }

    /// Whether all API versions have this kind.
    pub(crate) fn is_everywhere(self) -> bool {
        !matches!(self, CodeKind::Alias | CodeKind::KnowledgeSource | CodeKind::KnowledgeBase)
    }
}
