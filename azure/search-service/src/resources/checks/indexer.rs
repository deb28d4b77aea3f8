//! Data sources and indexers: what they name must exist. The rest is checked by whoever runs them.

use crate::ApiError;
use crate::resources::{ResourceKind, ResourceRegistry};

use super::place::ResourceProperty;

pub(super) fn data_source(top: &ResourceProperty<'_>) -> Result<(), ApiError> {
    top.required("credentials")?.object()
}

pub(super) fn indexer(top: &ResourceProperty<'_>, all: &ResourceRegistry) -> Result<(), ApiError> {
    top.required("dataSourceName")?.check_reference(ResourceKind::DataSource, all)?;
    // An alias does not do: the service writes to one index and must know it.
    top.required("targetIndexName")?.check_reference(ResourceKind::Index, all)?;
    match top.optional("skillsetName").filter(|place| place.value != "") {
        Some(skillset) => skillset.check_reference(ResourceKind::Skillset, all),
        None => Ok(()),
    }
}
