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
use crate::syntax::synonyms::Synonyms;

use self::place::Place;
use super::{Kind, Resources};

/// Refuses a definition before anything is made of it. The index hook checks indexes further.
pub(super) fn check(kind: Kind, name: &str, value: &Value, all: &Resources) -> Result<(), ApiError> {
    let top = Place::top(kind, name, value);
    if let Some(description) = top.optional("description") {
        description.text()?;
    }
    match kind {
        Kind::Index => name_is_free(kind, name, Kind::Alias, all),
        Kind::Alias => alias(&top, name, all),
        Kind::SynonymMap => synonym_map(&top),
        Kind::DataSource => {
            DataSourceDefinition::parse(value)?;
            indexer::data_source(&top)
        }
        Kind::Indexer => {
            indexer::indexer(&top, all)?;
            IndexerDefinition::parse(value).map(|_| ())
        }
        Kind::Skillset => {
            skillset::skillset(&top)?;
            Skillset::parse(value).map(|_| ())
        }
        Kind::KnowledgeSource => knowledge::source(&top, all),
        Kind::KnowledgeBase => knowledge::base(&top, all),
    }
}

/// Refuses to delete what others cannot be without.
pub(super) fn may_go(kind: Kind, name: &str, all: &Resources) -> Result<(), ApiError> {
    let (by, pointer, how) = match kind {
        Kind::Index => (Kind::Alias, "/indexes", "Delete it or point it to another index first"),
        Kind::KnowledgeSource => {
            (Kind::KnowledgeBase, "/knowledgeSources", "Delete it or take the source out of it first")
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

fn alias(top: &Place<'_>, name: &str, all: &Resources) -> Result<(), ApiError> {
    name_is_free(Kind::Alias, name, Kind::Index, all)?;
    let indexes = top.required("indexes")?;
    match indexes.elements()?.as_slice() {
        [index] => index.names(Kind::Index, all),
        several => {
            Err(indexes
                .wrong(format_args!("must have exactly one name of an index, and has {}", several.len())))
        }
    }
}

/// Indexes and aliases are asked for by the same addresses.
fn name_is_free(kind: Kind, name: &str, other: Kind, all: &Resources) -> Result<(), ApiError> {
    if all.exists(other, name) {
        let message = format!(
            "Cannot create {kind} '{name}' because there is {} {other} of this name. Choose another one.",
            other.article()
        );
        return Err(ApiError::invalid(message));
    }
    Ok(())
}

fn synonym_map(top: &Place<'_>) -> Result<(), ApiError> {
    // Clients of old versions leave it out.
    if let Some(format) = top.optional("format") {
        format.one_of(&["solr"])?;
    }
    Synonyms::parse(top.required("synonyms")?.text()?).map(|_| ())
}
