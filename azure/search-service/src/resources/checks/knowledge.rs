//! Knowledge sources and knowledge bases.

use std::collections::HashSet;

use crate::ApiError;
use crate::resources::{Kind, Resources};

use super::place::Place;

const KINDS: [&str; 7] =
    ["searchIndex", "azureBlob", "file", "indexedOneLake", "indexedSharePoint", "remoteSharePoint", "web"];

pub(super) fn source(top: &Place<'_>, all: &Resources) -> Result<(), ApiError> {
    match top.required("kind")?.one_of(&KINDS)? {
        "searchIndex" => {
            let parameters = top.required("searchIndexParameters")?;
            parameters.object()?;
            parameters.required("searchIndexName")?.names(Kind::Index, all)
        }
        "azureBlob" => {
            let parameters = top.required("azureBlobParameters")?;
            parameters.object()?;
            parameters.required("containerName")?.some_text().map(|_| ())
        }
        _ => Ok(()),
    }
}

pub(super) fn base(top: &Place<'_>, all: &Resources) -> Result<(), ApiError> {
    let sources = top.required("knowledgeSources")?;
    let elements = sources.elements()?;
    if elements.is_empty() {
        return Err(sources.wrong("must have at least one knowledge source"));
    }
    let mut names = HashSet::new();
    for source in &elements {
        source.object()?;
        let name = source.required("name")?;
        name.names(Kind::KnowledgeSource, all)?;
        if !names.insert(name.text()?) {
            return Err(name.wrong("names a knowledge source that is in the list already"));
        }
    }
    if let Some(models) = top.optional("models") {
        for model in models.elements()? {
            model.object()?;
            model.required("kind")?.some_text()?;
        }
    }
    Ok(())
}
