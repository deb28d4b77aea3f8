//! Data sources and indexers: what they name must exist. The rest is checked by whoever runs them.

use crate::ApiError;
use crate::resources::{Kind, Resources};

use super::place::Place;

pub(super) fn data_source(top: &Place<'_>) -> Result<(), ApiError> {
    top.required("credentials")?.object()
}

pub(super) fn indexer(top: &Place<'_>, all: &Resources) -> Result<(), ApiError> {
    top.required("dataSourceName")?.names(Kind::DataSource, all)?;
    // An alias does not do: the service writes to one index and must know it.
    top.required("targetIndexName")?.names(Kind::Index, all)?;
    match top.optional("skillsetName").filter(|place| place.value != "") {
        Some(skillset) => skillset.names(Kind::Skillset, all),
        None => Ok(()),
    }
}
