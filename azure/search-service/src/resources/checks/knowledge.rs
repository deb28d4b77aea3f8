//! Knowledge sources and knowledge bases.

use std::collections::HashSet;

use bindpost_azure_search_model::ApiError;

use crate::resources::{ResourceKind, ResourceRegistry};

use super::{ResourceObject, check_reference};

const KINDS: [&str; 7] =
    ["searchIndex", "azureBlob", "file", "indexedOneLake", "indexedSharePoint", "remoteSharePoint", "web"];

pub(super) fn source(top: &ResourceObject<'_>, all: &ResourceRegistry) -> Result<(), ApiError> {
    let kinds = KINDS.map(|kind| (kind, kind));
    match top.choice("kind", &kinds)?.ok_or_else(|| top.missing("kind"))? {
        "searchIndex" => {
            let parameters = top.required_object("searchIndexParameters")?;
            let index = parameters.required_text("searchIndexName")?;
            check_reference(&parameters, "searchIndexName", index, ResourceKind::Index, all)
        }
        "azureBlob" => top.required_object("azureBlobParameters")?.required_text("containerName").map(|_| ()),
        _ => Ok(()),
    }
}

pub(super) fn base(top: &ResourceObject<'_>, all: &ResourceRegistry) -> Result<(), ApiError> {
    let sources = top.required_objects("knowledgeSources")?;
    if sources.is_empty() {
        return Err(top.error("knowledgeSources", "must have at least one knowledge source"));
    }
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
