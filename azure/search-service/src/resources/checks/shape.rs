//! The members of each kind of definition and their types, of all API versions.
//!
//! A misspelled member would be stored and have no effect, so Azure AI Search and this service reject it. The index hook
//! checks the members of indexes.

use bindpost_azure_search_model::ApiError;

use super::ResourceObject;
use crate::resources::ResourceKind;

/// The type of a member.
#[derive(Debug, Clone, Copy)]
enum MemberType {
    Text,
    Boolean,
    Object,
    Objects,
    Texts,
}

use MemberType::{Boolean, Object, Objects, Text, Texts};

type KnownMember = (&'static str, MemberType);

const ALIAS: &[KnownMember] = &[("name", Text), ("description", Text), ("indexes", Texts)];
const SYNONYM_MAP: &[KnownMember] =
    &[("name", Text), ("description", Text), ("format", Text), ("synonyms", Text), ("encryptionKey", Object)];
const DATA_SOURCE: &[KnownMember] = &[
    ("name", Text),
    ("description", Text),
    ("type", Text),
    // Responses have the first spelling, SDKs the second one.
    ("subtype", Text),
    ("subType", Text),
    ("credentials", Object),
    ("container", Object),
    ("identity", Object),
    ("indexerPermissionOptions", Texts),
    ("dataChangeDetectionPolicy", Object),
    ("dataDeletionDetectionPolicy", Object),
    ("encryptionKey", Object),
];
const INDEXER: &[KnownMember] = &[
    ("name", Text),
    ("description", Text),
    ("dataSourceName", Text),
    ("skillsetName", Text),
    ("targetIndexName", Text),
    ("schedule", Object),
    ("parameters", Object),
    ("fieldMappings", Objects),
    ("outputFieldMappings", Objects),
    ("disabled", Boolean),
    ("encryptionKey", Object),
    ("cache", Object),
];
const SKILLSET: &[KnownMember] = &[
    ("name", Text),
    ("description", Text),
    ("skills", Objects),
    ("cognitiveServices", Object),
    ("knowledgeStore", Object),
    ("indexProjections", Object),
    ("encryptionKey", Object),
];
const KNOWLEDGE_BASE: &[KnownMember] = &[
    ("name", Text),
    ("description", Text),
    ("knowledgeSources", Objects),
    ("models", Objects),
    ("encryptionKey", Object),
    // Agents until 2025.
    ("targetIndexes", Objects),
    ("outputConfiguration", Object),
    ("requestLimits", Object),
    // Previews of knowledge bases.
    ("retrievalInstructions", Text),
    ("answerInstructions", Text),
    ("outputMode", Text),
    ("retrievalReasoningEffort", Object),
    ("corsOptions", Object),
    ("tags", Object),
    ("retrieveDefaults", Object),
];

/// Rejects members that the kind does not have, and members of the wrong type.
pub(super) fn check_members(kind: ResourceKind, top: &ResourceObject<'_>) -> Result<(), ApiError> {
    let known = match kind {
        // The kinds of knowledge sources have different members. `knowledge` checks them.
        ResourceKind::Index | ResourceKind::KnowledgeSource => return Ok(()),
        ResourceKind::Alias => ALIAS,
        ResourceKind::SynonymMap => SYNONYM_MAP,
        ResourceKind::DataSource => DATA_SOURCE,
        ResourceKind::Indexer => INDEXER,
        ResourceKind::Skillset => SKILLSET,
        ResourceKind::KnowledgeBase => KNOWLEDGE_BASE,
    };
    check_types(top, known)
}

fn check_types(given: &ResourceObject<'_>, known: &[KnownMember]) -> Result<(), ApiError> {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    given.allow_only(&names)?;
    for (name, expected) in known {
        match expected {
            Text => given.text(name).map(drop),
            Boolean => given.boolean(name).map(drop),
            Object => given.object(name).map(drop),
            Objects => given.objects(name).map(drop),
            Texts => given.texts(name).map(drop),
        }?;
    }
    Ok(())
}
