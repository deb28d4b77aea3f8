//! What each kind of definition must look like, and what must exist for it.
//!
//! Members that are unknown here are kept: newer versions of the API have more of them, and clients send back
//! what they were given.

mod indexer;
mod knowledge;
mod place;
mod skillset;

use serde_json::Value;

use crate::ApiError;
use crate::indexers::{DataSourceDefinition, IndexerDefinition, Skillset};
use crate::syntax::synonyms::SynonymRules;

use self::place::ResourceProperty;
use super::{ResourceKind, ResourceRegistry};

/// Refuses a definition before anything is made of it. The index hook checks indexes further.
pub(super) fn check(
    kind: ResourceKind,
    name: &str,
    value: &Value,
    all: &ResourceRegistry,
) -> Result<(), ApiError> {
    let top = ResourceProperty::top(kind, name, value);
    if let Some(description) = top.optional("description") {
        description.text()?;
    }
    match kind {
        ResourceKind::Index => check_name_is_free(kind, name, ResourceKind::Alias, all),
        ResourceKind::Alias => alias(&top, name, all),
        ResourceKind::SynonymMap => synonym_map(&top),
        ResourceKind::DataSource => {
            DataSourceDefinition::parse(value)?;
            indexer::data_source(&top)
        }
        ResourceKind::Indexer => {
            indexer::indexer(&top, all)?;
            IndexerDefinition::parse(value).map(|_| ())
        }
        ResourceKind::Skillset => {
            skillset::skillset(&top)?;
            Skillset::parse(value).map(|_| ())
        }
        ResourceKind::KnowledgeSource => knowledge::source(&top, all),
        ResourceKind::KnowledgeBase => knowledge::base(&top, all),
    }
}

/// Refuses to delete what others cannot be without.
pub(super) fn check_deletable(
    kind: ResourceKind,
    name: &str,
    all: &ResourceRegistry,
) -> Result<(), ApiError> {
    let (by, pointer, how) = match kind {
        ResourceKind::Index => {
            (ResourceKind::Alias, "/indexes", "Delete it or point it to another index first")
        }
        ResourceKind::KnowledgeSource => {
            (ResourceKind::KnowledgeBase, "/knowledgeSources", "Delete it or take the source out of it first")
        }
        _ => return Ok(()),
    };
    let names = |element: &Value| element.as_str().or_else(|| element.get("name")?.as_str()) == Some(name);
    let user = all.list(by).into_iter().find(|user| {
        user.value.pointer(pointer).and_then(Value::as_array).is_some_and(|used| used.iter().any(names))
    });
    match user {
        None => Ok(()),
        Some(user) => Err(ApiError::new(
            http::StatusCode::BAD_REQUEST,
            "OperationNotAllowed",
            format!("The {kind} '{name}' cannot be deleted: the {by} '{}' uses it. {how}.", user.name),
        )),
    }
}

fn alias(top: &ResourceProperty<'_>, name: &str, all: &ResourceRegistry) -> Result<(), ApiError> {
    check_name_is_free(ResourceKind::Alias, name, ResourceKind::Index, all)?;
    let indexes = top.required("indexes")?;
    match indexes.elements()?.as_slice() {
        [index] => index.check_reference(ResourceKind::Index, all),
        several => {
            Err(indexes
                .error(format_args!("must have exactly one name of an index, and has {}", several.len())))
        }
    }
}

/// Indexes and aliases are asked for by the same addresses.
fn check_name_is_free(
    kind: ResourceKind,
    name: &str,
    other: ResourceKind,
    all: &ResourceRegistry,
) -> Result<(), ApiError> {
    if all.exists(other, name) {
        let message = format!(
            "Cannot create {kind} '{name}' because there is {} {other} of this name. Choose another one.",
            other.article()
        );
        return Err(ApiError::invalid(message));
    }
    Ok(())
}

fn synonym_map(top: &ResourceProperty<'_>) -> Result<(), ApiError> {
    // Clients of old versions leave it out.
    if let Some(format) = top.optional("format") {
        format.one_of(&["solr"])?;
    }
    SynonymRules::parse(top.required("synonyms")?.text()?).map(|_| ())
}
