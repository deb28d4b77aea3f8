//! Knowledge sources and knowledge bases.

use std::collections::HashSet;

use bindpost_azure_search_model::ApiError;
use serde_json::Value;

use crate::resources::{ResourceKind, ResourceRegistry};

use super::{ResourceObject, check_reference};

/// The kinds of knowledge sources, and the member with the parameters of each.
const KINDS: [(&str, &str); 12] = [
    ("searchIndex", "searchIndexParameters"),
    ("azureBlob", "azureBlobParameters"),
    ("file", "fileParameters"),
    ("indexedOneLake", "indexedOneLakeParameters"),
    ("indexedSharePoint", "indexedSharePointParameters"),
    ("indexedSql", "indexedSqlParameters"),
    ("remoteSharePoint", "remoteSharePointParameters"),
    ("web", "webParameters"),
    ("workIQ", "workIQParameters"),
    ("mcpServer", "mcpServerParameters"),
    ("fabricDataAgent", "fabricDataAgentParameters"),
    ("fabricOntology", "fabricOntologyParameters"),
];
const SEARCH_INDEX: [&str; 7] = [
    "searchIndexName",
    "sourceDataSelect",
    "sourceDataFields",
    "searchFields",
    "semanticConfigurationName",
    "baseFilter",
    "queryHints",
];

pub(super) fn source(top: &ResourceObject<'_>, all: &ResourceRegistry) -> Result<(), ApiError> {
    let parameters = top.choice("kind", &KINDS)?.ok_or_else(|| top.missing("kind"))?;
    let mut members =
        vec!["name", "kind", "description", "encryptionKey", "resultsProcessing", "corsOptions", parameters];
    // Clients send the parameters of other kinds as null.
    members.extend(KINDS.iter().map(|(_, member)| *member).filter(|member| top.value(member).is_none()));
    top.allow_only(&members)?;
    top.object("encryptionKey")?;
    let given = top.object(parameters)?;
    match parameters {
        "searchIndexParameters" => search_index(&given.ok_or_else(|| top.missing(parameters))?, all),
        "azureBlobParameters" => {
            given.ok_or_else(|| top.missing(parameters))?.required_text("containerName").map(drop)
        }
        _ => Ok(()),
    }
}

fn search_index(given: &ResourceObject<'_>, all: &ResourceRegistry) -> Result<(), ApiError> {
    given.allow_only(&SEARCH_INDEX)?;
    let name = given.required_text("searchIndexName")?;
    check_reference(given, "searchIndexName", name, ResourceKind::Index, all)?;
    given.text("sourceDataSelect")?;
    given.text("baseFilter")?;
    for list in ["sourceDataFields", "searchFields"] {
        for field in given.objects(list)? {
            field.allow_only(&["name"])?;
            field.required_text("name")?;
        }
    }
    let Some(wanted) = given.text("semanticConfigurationName")? else { return Ok(()) };
    let index = all.get(ResourceKind::Index, name);
    let configurations = index.as_ref().and_then(|index| index.value.pointer("/semantic/configurations"));
    let mut configurations = configurations.and_then(Value::as_array).into_iter().flatten();
    if configurations.any(|configuration| configuration.get("name").and_then(Value::as_str) == Some(wanted)) {
        return Ok(());
    }
    let problem = format_args!("names '{wanted}', which is no semantic configuration of the index '{name}'");
    Err(given.error("semanticConfigurationName", problem))
}

pub(super) fn base(top: &ResourceObject<'_>, all: &ResourceRegistry) -> Result<(), ApiError> {
    for target in top.objects("targetIndexes")? {
        let name = target.required_text("indexName")?;
        check_reference(&target, "indexName", name, ResourceKind::Index, all)?;
    }
    let sources = match top.value("targetIndexes") {
        Some(_) => top.objects("knowledgeSources")?,
        None => top.required_objects("knowledgeSources")?,
    };
    let mut names = HashSet::new();
    for source in &sources {
        let name = source.required_text("name")?;
        check_reference(source, "name", name, ResourceKind::KnowledgeSource, all)?;
        if !names.insert(name) {
            return Err(source.error("name", "names a knowledge source that is already in the list"));
        }
    }
    for model in top.objects("models")? {
        model.required_text("kind")?;
    }
    Ok(())
}
