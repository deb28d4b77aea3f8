//! Data sources and indexers. Checks that the definitions they name exist. The `indexers` module
//! checks the rest.

use bindpost_azure_search_model::ApiError;

use crate::resources::{ResourceKind, ResourceRegistry};

use super::{ResourceObject, check_reference};

pub(super) fn data_source(top: &ResourceObject<'_>) -> Result<(), ApiError> {
    top.required_object("credentials")?.allow_only(&["connectionString"])?;
    top.object_or_empty("container")?.allow_only(&["name", "query"])
}

pub(super) fn indexer(top: &ResourceObject<'_>, all: &ResourceRegistry) -> Result<(), ApiError> {
    // An alias is not allowed as the target. The indexer writes to one specific index.
    for (member, kind) in
        [("dataSourceName", ResourceKind::DataSource), ("targetIndexName", ResourceKind::Index)]
    {
        check_reference(top, member, top.required_text(member)?, kind, all)?;
    }
    match top.text("skillsetName")? {
        None | Some("") => Ok(()),
        Some(name) => check_reference(top, "skillsetName", name, ResourceKind::Skillset, all),
    }
}
