//! Checks the shape of each kind of definition, and that the definitions it refers to exist.

mod indexer;
mod knowledge;
mod shape;
mod skillset;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::syntax::synonyms::SynonymRules;
use bindpost_net_json::{JsonPlace, ObjectReader};
use serde_json::Value;

use crate::indexers::{DataSourceDefinition, IndexerDefinition, Skillset};

use super::{ResourceKind, ResourceRegistry};

/// A definition, or an object in it.
type ResourceObject<'a> = ObjectReader<'a, ApiError>;

/// Rejects an invalid definition before it is stored. The index hook makes further checks on indexes.
pub(super) fn check(
    kind: ResourceKind,
    name: &str,
    value: &Value,
    all: &ResourceRegistry,
) -> Result<(), ApiError> {
    let top = ResourceObject::new(value, JsonPlace::of(format!("the {kind} '{name}'")))?;
    top.text("description")?;
    shape::check_members(kind, &top)?;
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

/// Rejects the deletion of a definition that others need.
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
            (ResourceKind::KnowledgeBase, "/knowledgeSources", "Delete it or remove the source from it first")
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

fn alias(top: &ResourceObject<'_>, name: &str, all: &ResourceRegistry) -> Result<(), ApiError> {
    check_name_is_free(ResourceKind::Alias, name, ResourceKind::Index, all)?;
    top.required_value("indexes")?;
    match top.texts("indexes")?.as_slice() {
        [index] => check_reference(top, "indexes[0]", index, ResourceKind::Index, all),
        several => {
            let problem = format_args!("must contain exactly one index name, but has {}", several.len());
            Err(top.error("indexes", problem))
        }
    }
}

/// Checks that the name in a member is the name of an existing definition.
fn check_reference(
    given: &ResourceObject<'_>,
    member: &str,
    name: &str,
    kind: ResourceKind,
    all: &ResourceRegistry,
) -> Result<(), ApiError> {
    if all.exists(kind, name) {
        return Ok(());
    }
    let article = kind.article();
    let problem = "that doesn't exist. Create it first, or correct the name";
    Err(given.error(member, format_args!("refers to {article} {kind} '{name}' {problem}")))
}

/// Checks that a name is not used by the other kind. Indexes and aliases share their URLs.
fn check_name_is_free(
    kind: ResourceKind,
    name: &str,
    other: ResourceKind,
    all: &ResourceRegistry,
) -> Result<(), ApiError> {
    if all.exists(other, name) {
        let message = format!(
            "Cannot create {kind} '{name}' because there is {} {other} with this name. Choose another name.",
            other.article()
        );
        return Err(ApiError::invalid(message));
    }
    Ok(())
}

fn synonym_map(top: &ResourceObject<'_>) -> Result<(), ApiError> {
    // Clients with old API versions omit it.
    top.choice("format", &[("solr", ())])?;
    SynonymRules::parse(top.required_text_or_empty("synonyms")?).map(|_| ())
}
