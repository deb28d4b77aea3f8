//! What a service has: all definitions, and the versions of its indexes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::failure::CodeError;
use super::kinds::CodeKind;
use super::names::IndexNames;
use crate::service::client::{SearchClient, odata_key};
use crate::service::failure::{Kind, ServiceFailure};
use crate::tools::reading::alias_target;

/// A definition of the service.
#[derive(Clone, Debug)]
pub(crate) struct LiveDefinition {
    pub(crate) json: Value,
    /// `None` if the service has no ETags for this kind, as for aliases in old API versions.
    pub(crate) etag: Option<String>,
}

/// All definitions of a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveState {
    definitions: BTreeMap<CodeKind, BTreeMap<String, LiveDefinition>>,
    pub(crate) names: IndexNames,
    /// Kinds that the service does not have in this API version.
    pub(crate) unsupported: Vec<CodeKind>,
}

impl LiveState {
    pub(crate) async fn read(client: &SearchClient) -> Result<LiveState, CodeError> {
        let mut state = LiveState::default();
        for kind in CodeKind::ALL {
            let listed = client.get(kind.collection(client)).send().await;
            let body = match listed {
                Ok(answer) => answer.body,
                Err(failure) if !kind.is_everywhere() && is_unknown(&failure) => {
                    state.unsupported.push(kind);
                    continue;
                }
                Err(failure) => {
                    return Err(CodeError::service(format!("cannot read the {}", kind.folder()))(failure));
                }
            };
            let listed = body.get("value").and_then(Value::as_array).into_iter().flatten();
            let definitions = listed.filter_map(|json| {
                let name = json.get("name")?.as_str()?.to_owned();
                Some((name, LiveDefinition { etag: etag_of(json), json: json.clone() }))
            });
            state.definitions.insert(kind, definitions.collect());
        }
        let indexes: Vec<String> = state.all(CodeKind::Index).map(|(name, _)| name.to_owned()).collect();
        let aliases = state
            .all(CodeKind::Alias)
            .filter_map(|(name, alias)| Some((name.to_owned(), alias_target(&alias.json)?.to_owned())));
        state.names = IndexNames::new(&indexes, aliases.collect());
        Ok(state)
    }

    /// Returns all definitions of a kind, by name.
    pub(crate) fn all(&self, kind: CodeKind) -> impl Iterator<Item = (&str, &LiveDefinition)> {
        let all = self.definitions.get(&kind).into_iter().flatten();
        all.map(|(name, definition)| (name.as_str(), definition))
    }

    pub(crate) fn get(&self, kind: CodeKind, name: &str) -> Option<&LiveDefinition> {
        self.definitions.get(&kind)?.get(name)
    }
}

/// Returns one definition, or `None` if it does not exist.
pub(crate) async fn read_one(
    client: &SearchClient,
    kind: CodeKind,
    name: &str,
) -> Result<Option<LiveDefinition>, ServiceFailure> {
    let path = format!("{}{}", kind.collection(client), odata_key(name));
    match client.get(path).send().await {
        // Some services resolve an alias in the path of an index.
        Ok(answer) if answer.body.get("name").and_then(Value::as_str).is_some_and(|told| told != name) => {
            Ok(None)
        }
        Ok(answer) => {
            let etag = etag_of(&answer.body).or_else(|| answer.etag());
            Ok(Some(LiveDefinition { etag, json: answer.body }))
        }
        Err(failure) if failure.status == Some(404) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Returns the ETag in a definition. The header of Azure has another form of it, `W/"0x1"`.
pub(crate) fn etag_of(json: &Value) -> Option<String> {
    json.get("@odata.etag").and_then(Value::as_str).map(str::to_owned)
}

/// Whether the failure means that the API version does not have such definitions.
fn is_unknown(failure: &ServiceFailure) -> bool {
    matches!(failure.kind, Kind::ResourceNotFound | Kind::InvalidRequest)
        && matches!(failure.status, Some(400 | 404 | 405))
}
