//! Knowledge sources and knowledge bases.

use std::collections::HashSet;

use crate::ApiError;
use crate::resources::{ResourceKind, ResourceRegistry};

use super::place::ResourceProperty;

const KINDS: [&str; 7] =
    ["searchIndex", "azureBlob", "file", "indexedOneLake", "indexedSharePoint", "remoteSharePoint", "web"];

pub(super) fn source(top: &ResourceProperty<'_>, all: &ResourceRegistry) -> Result<(), ApiError> {
    match top.required("kind")?.one_of(&KINDS)? {
        "searchIndex" => {
            let parameters = top.required("searchIndexParameters")?;
            parameters.object()?;
            parameters.required("searchIndexName")?.check_reference(ResourceKind::Index, all)
        }
        "azureBlob" => {
            let parameters = top.required("azureBlobParameters")?;
            parameters.object()?;
            parameters.required("containerName")?.non_empty_text().map(|_| ())
        }
        _ => Ok(()),
    }
}

pub(super) fn base(top: &ResourceProperty<'_>, all: &ResourceRegistry) -> Result<(), ApiError> {
    let sources = top.required("knowledgeSources")?;
    let elements = sources.elements()?;
    if elements.is_empty() {
        return Err(sources.error("must have at least one knowledge source"));
    }
    let mut names = HashSet::new();
    for source in &elements {
        source.object()?;
        let name = source.required("name")?;
        name.check_reference(ResourceKind::KnowledgeSource, all)?;
        if !names.insert(name.text()?) {
            return Err(name.error("names a knowledge source that is already in the list"));
        }
    }
    if let Some(models) = top.optional("models") {
        for model in models.elements()? {
            model.object()?;
            model.required("kind")?.non_empty_text()?;
        }
    }
    Ok(())
}
