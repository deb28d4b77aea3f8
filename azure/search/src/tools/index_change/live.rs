//! The state before a change: the index, its aliases, its documents and its indexers.

use serde_json::Value;

use super::IndexChangeRequest;
use crate::service::client::{SearchClient, odata_key};
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::reading::{ServiceReader, alias_target};

/// The live index and the definitions that refer to it.
#[derive(Clone, Debug)]
pub(super) struct LiveIndex {
    /// The name of the index, even if it was requested by an alias.
    pub(super) name: String,
    pub(super) definition: Value,
    pub(super) etag: Option<String>,
    pub(super) documents: u64,
    /// Aliases of the index.
    pub(super) aliases: Vec<IndexAlias>,
    /// Names of other indexes and aliases, which are not available for a new index.
    pub(super) taken: Vec<String>,
    /// Indexers that write to the index.
    pub(super) indexers: Vec<String>,
}

/// An alias of the index.
#[derive(Clone, Debug)]
pub(super) struct IndexAlias {
    pub(super) name: String,
    pub(super) etag: Option<String>,
}

impl LiveIndex {
    pub(super) async fn read(
        shared: &SearchServerState,
        wish: &IndexChangeRequest,
    ) -> Result<LiveIndex, ServiceFailure> {
        let reader = ServiceReader::new(shared, wish.client_request_id.clone());
        let index = reader.definition(&wish.index_name).await?;
        let named = index.body.get("name").and_then(Value::as_str);
        let name = named.unwrap_or(&wish.index_name).to_owned();
        let documents = count(&shared.client, &name).await?;
        let mut taken = names(shared, "indexes").await?;
        let listed = match shared.client.get("aliases").send().await {
            Ok(answer) => answer.body,
            // Older API versions have no aliases.
            Err(failure) if matches!(failure.kind, Kind::ResourceNotFound | Kind::InvalidRequest) => {
                Value::Null
            }
            Err(failure) => return Err(failure),
        };
        let mut aliases = Vec::new();
        for alias in listed.get("value").and_then(Value::as_array).into_iter().flatten() {
            let Some(alias_name) = alias.get("name").and_then(Value::as_str) else { continue };
            taken.push(alias_name.to_owned());
            if alias_target(alias) == Some(name.as_str()) {
                let etag = alias.get("@odata.etag").and_then(Value::as_str).map(str::to_owned);
                aliases.push(IndexAlias { name: alias_name.to_owned(), etag });
            }
        }
        move_alias_first(&mut aliases, wish, &name, &taken)?;
        if let Some(alias) = aliases.first_mut().filter(|alias| alias.etag.is_none()) {
            alias.etag = shared.client.get(format!("aliases{}", odata_key(&alias.name))).send().await?.etag();
        }
        let indexers = shared.client.get("indexers").query("$select", "name,targetIndexName").send().await;
        // Without permission to read indexers, the plan contains none.
        let indexers = indexers.map(|answer| answer.body).unwrap_or_default();
        let writes = |indexer: &&Value| indexer.get("targetIndexName").and_then(Value::as_str) == Some(&name);
        let indexers = indexers.get("value").and_then(Value::as_array).into_iter().flatten().filter(writes);
        let indexers =
            indexers.filter_map(|indexer| indexer.get("name")?.as_str().map(str::to_owned)).collect();
        let etag = index.etag();
        Ok(LiveIndex { name, etag, documents, aliases, taken, indexers, definition: index.body })
    }
}

/// Moves the alias of the request to the front.
fn move_alias_first(
    aliases: &mut Vec<IndexAlias>,
    wish: &IndexChangeRequest,
    index: &str,
    taken: &[String],
) -> Result<(), ServiceFailure> {
    let asked = wish.alias_name.as_deref();
    let meant = asked.or(Some(wish.index_name.as_str()).filter(|name| *name != index));
    let Some(meant) = meant else { return Ok(()) };
    match aliases.iter().position(|alias| alias.name == meant) {
        Some(place) => aliases.swap(0, place),
        None if taken.iter().any(|name| name == meant) => {
            let text =
                format!("\"{meant}\" is not an alias of \"{index}\"; use another aliasName or remove it");
            return Err(ServiceFailure::new(Kind::InvalidRequest, text));
        }
        None => aliases.clear(),
    }
    Ok(())
}

async fn names(shared: &SearchServerState, kind: &str) -> Result<Vec<String>, ServiceFailure> {
    let listed = shared.client.get(kind).query("$select", "name").send().await?.body;
    let listed = listed.get("value").and_then(Value::as_array).into_iter().flatten();
    Ok(listed.filter_map(|one| one.get("name")?.as_str().map(str::to_owned)).collect())
}

/// Returns the number of documents of an index.
pub(crate) async fn count(client: &SearchClient, index: &str) -> Result<u64, ServiceFailure> {
    let answer = client.get(format!("indexes{}/docs/$count", odata_key(index))).send().await?;
    let text = answer.body.as_str().and_then(|text| text.trim().parse().ok());
    answer.body.as_u64().or(text).ok_or_else(|| {
        ServiceFailure::new(
            Kind::ServerError,
            format!("the service returned no document count for \"{index}\""),
        )
    })
}
