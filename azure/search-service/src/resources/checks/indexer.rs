//! Data sources and indexers. Checks that the definitions they name exist. The `indexers` module
//! checks the rest.

use crate::ApiError;
use crate::resources::{ResourceKind, ResourceRegistry};

use super::place::ResourceProperty;

pub(super) fn data_source(top: &ResourceProperty<'_>) -> Result<(), ApiError> {
    top.required("credentials")?.object()
}

pub(super) fn indexer(top: &ResourceProperty<'_>, all: &ResourceRegistry) -> Result<(), ApiError> {
    top.required("dataSourceName")?.check_reference(ResourceKind::DataSource, all)?;
    // An alias is not allowed. The indexer writes to one specific index.
    top.required("targetIndexName")?.check_reference(ResourceKind::Index, all)?;
    match top.optional("skillsetName").filter(|place| place.value != "") {
        Some(skillset) => skillset.check_reference(ResourceKind::Skillset, all),
        None => Ok(()),
    }
}
