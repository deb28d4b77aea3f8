//! The plan of a change: the changes with their effects, the strategy, and the steps as tool calls.

use serde_json::{Map, Value, json};

use super::IndexChangeRequest;
use super::compare::{ChangeEffect, IndexChange, compare};
use super::copy::CopyPaging;
use super::fields::{self, DefinitionField};
use super::live::LiveIndex;
use crate::tools::builder::into_members;

/// How the live definition becomes the wanted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeStrategy {
    Nothing,
    UpdateInPlace,
    UpdateWithDowntime,
    RebuildBehindAlias,
    RebuildNeedsAlias,
    Impossible,
}

/// A plan.
#[derive(Clone, Debug)]
pub(super) struct ChangePlan {
    pub(super) strategy: ChangeStrategy,
    changes: Vec<IndexChange>,
    pub(super) new_name: String,
    /// The definition of the index after the change.
    pub(super) wanted: Value,
    pub(super) alias: Option<String>,
    pub(super) paging: Result<CopyPaging, String>,
    /// Fields whose content a copy would lose.
    lost: Vec<String>,
    index: String,
    documents: u64,
    etag: Option<String>,
    indexers: Vec<String>,
    notes: Vec<String>,
}

impl ChangePlan {
    pub(super) fn new(live: &LiveIndex, wish: &IndexChangeRequest) -> ChangePlan {
        let changes = compare(&live.definition, &wish.body);
        let most = changes.iter().map(|change| change.effect).max().unwrap_or(ChangeEffect::None);
        let strategy = match (most, live.aliases.is_empty()) {
            (ChangeEffect::None, _) => ChangeStrategy::Nothing,
            (ChangeEffect::Update, _) => ChangeStrategy::UpdateInPlace,
            (ChangeEffect::Downtime, _) => ChangeStrategy::UpdateWithDowntime,
            (ChangeEffect::Rebuild, false) => ChangeStrategy::RebuildBehindAlias,
            (ChangeEffect::Rebuild, true) => ChangeStrategy::RebuildNeedsAlias,
            (ChangeEffect::Impossible, _) => ChangeStrategy::Impossible,
        };
        let (old, new) = (fields::all(&live.definition), fields::all(&wish.body));
        let mut notes = Vec::new();
        if live.aliases.len() > 1
            && wish.alias_name.is_none()
            && strategy == ChangeStrategy::RebuildBehindAlias
        {
            let names: Vec<&str> = live.aliases.iter().map(|alias| alias.name.as_str()).collect();
            notes.push(format!(
                "the index has several aliases ({}); only the first is switched, choose another with aliasName",
                names.join(", ")
            ));
        }
        ChangePlan {
            strategy,
            changes,
            new_name: wish.new_index_name.clone().unwrap_or_else(|| next_free(&live.name, &live.taken)),
            wanted: wish.body.clone(),
            alias: live.aliases.first().map(|alias| alias.name.clone()),
            paging: CopyPaging::choose(&old, &new, live.documents),
            lost: unreadable_fields(&old, &new),
            index: live.name.clone(),
            documents: live.documents,
            etag: live.etag.clone(),
            indexers: live.indexers.clone(),
            notes,
        }
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Returns why the plan cannot be applied, if it cannot.
    pub(super) fn refusal(&self) -> Option<String> {
        match self.strategy {
            ChangeStrategy::Impossible => {
                Some("no index can have this definition; see the changes".to_owned())
            }
            ChangeStrategy::RebuildNeedsAlias => Some(format!(
                "a rebuild requires an alias, and \"{}\" has none: create one, let callers use it, then \
                 apply",
                self.index
            )),
            ChangeStrategy::RebuildBehindAlias if !self.lost.is_empty() => Some(format!(
                "a copy would lose the content of {}: these fields are not retrievable. Make them retrievable first \
                 (an update in place), or create the new index and index it from the source",
                self.lost.join(", ")
            )),
            ChangeStrategy::RebuildBehindAlias => self.paging.as_ref().err().cloned(),
            _ => None,
        }
    }

    /// Returns the question for the user's confirmation.
    pub(super) fn question(&self, wish: &IndexChangeRequest) -> String {
        let index = &self.index;
        match self.strategy {
            ChangeStrategy::RebuildBehindAlias => {
                let alias = self.alias.as_deref().unwrap_or_default();
                let old = if wish.keep_old == Some(false) { "deleted" } else { "kept" };
                format!(
                    "Create the index \"{}\", copy {} documents from \"{index}\" to it and switch the alias \
                     \"{alias}\"? The old index is {old}.",
                    self.new_name, self.documents
                )
            }
            ChangeStrategy::UpdateWithDowntime => format!(
                "Change the index \"{index}\"? It is offline for some seconds, and slow for some minutes."
            ),
            _ => format!("Change the definition of the index \"{index}\" ({} changes)?", self.changes.len()),
        }
    }

    fn summary(&self) -> String {
        let index = &self.index;
        let changes = match self.changes.len() {
            1 => "1 change".to_owned(),
            several => format!("{several} changes"),
        };
        match self.strategy {
            ChangeStrategy::Nothing => format!("\"{index}\" already has this definition."),
            ChangeStrategy::UpdateInPlace => format!("{changes}, all possible in place."),
            ChangeStrategy::UpdateWithDowntime => {
                format!("{changes}, possible in place with some seconds offline.")
            }
            ChangeStrategy::RebuildBehindAlias => format!(
                "{changes}, part of which needs a new index: {} documents are copied to \"{}\", then the alias \
                 \"{}\" is switched.",
                self.documents,
                self.new_name,
                self.alias.as_deref().unwrap_or_default()
            ),
            ChangeStrategy::RebuildNeedsAlias => format!(
                "{changes}, part of which needs a new index; \"{index}\" has no alias, so its callers \
                 would have to change the name they use."
            ),
            ChangeStrategy::Impossible => "No index can have this definition; see the changes.".to_owned(),
        }
    }

    /// Returns the plan as JSON. Of changes that exceed the size, only the number is returned.
    pub(super) fn to_json(&self, bytes: usize) -> Map<String, Value> {
        let changes: Vec<Value> = self.changes.iter().map(IndexChange::to_json).collect();
        let fitting = bindpost_mcp_openapi::count_fitting(&changes, bytes);
        let strategy = match self.strategy {
            ChangeStrategy::Nothing => "nothing",
            ChangeStrategy::UpdateInPlace => "updateInPlace",
            ChangeStrategy::UpdateWithDowntime => "updateWithDowntime",
            ChangeStrategy::RebuildBehindAlias => "rebuildBehindAlias",
            ChangeStrategy::RebuildNeedsAlias => "rebuildNeedsAlias",
            ChangeStrategy::Impossible => "impossible",
        };
        let mut told = into_members(json!({
            "indexName": self.index,
            "summary": self.summary(),
            "strategy": strategy,
            "changes": changes.get(..fitting).unwrap_or_default(),
            "steps": self.steps(),
            "estimatedDocuments": self.documents,
            "etag": self.etag,
        }));
        if fitting < changes.len() {
            told.insert("changesLeftOut".to_owned(), (changes.len() - fitting).into());
        }
        let rebuilds =
            matches!(self.strategy, ChangeStrategy::RebuildBehindAlias | ChangeStrategy::RebuildNeedsAlias);
        let mut notes = self.notes.clone();
        if rebuilds {
            told.insert("newIndexName".to_owned(), self.new_name.clone().into());
            told.insert("notRetrievableFields".to_owned(), self.lost.clone().into());
            notes.extend(self.refusal());
            notes.extend(self.paging.as_ref().ok().and_then(CopyPaging::warning));
            notes.push(
                "documents that are written during the copy may be lost: stop all writers first".to_owned(),
            );
            if !self.indexers.is_empty() {
                notes.push(format!(
                    "these indexers continue to write to \"{}\"; change their target to the new index: {}",
                    self.index,
                    self.indexers.join(", ")
                ));
            }
        }
        if !notes.is_empty() {
            told.insert("notes".to_owned(), notes.into());
        }
        told
    }

    /// Returns the steps as tool calls.
    fn steps(&self) -> Vec<Value> {
        let call = |tool: &str, arguments: Value| json!({"tool": tool, "arguments": arguments});
        let again = |more: Value| {
            let mut arguments =
                into_members(json!({"indexName": self.index, "body": "(the same)", "apply": true}));
            arguments.extend(into_members(more));
            call("planIndexChange", Value::Object(arguments))
        };
        match self.strategy {
            ChangeStrategy::Nothing | ChangeStrategy::Impossible => Vec::new(),
            ChangeStrategy::UpdateInPlace | ChangeStrategy::UpdateWithDowntime => {
                vec![again(json!({"etag": self.etag}))]
            }
            ChangeStrategy::RebuildBehindAlias if self.refusal().is_none() => {
                let mut steps = vec![again(
                    json!({"etag": self.etag, "aliasName": self.alias, "newIndexName": self.new_name}),
                )];
                steps.extend(self.indexer_steps());
                steps
            }
            ChangeStrategy::RebuildBehindAlias | ChangeStrategy::RebuildNeedsAlias => {
                let body = json!("(the same, with this name)");
                let mut steps =
                    vec![call("createOrUpdateIndex", json!({"indexName": self.new_name, "body": body}))];
                if self.alias.is_none() && self.lost.is_empty() && self.paging.is_ok() {
                    let name = format!("{}-alias", self.index);
                    let alias = json!({"name": name, "indexes": [self.index]});
                    steps = vec![
                        call("createOrUpdateAlias", json!({"aliasName": name, "body": alias})),
                        json!({"do": format!("let callers use \"{name}\" instead of \"{}\"", self.index)}),
                        again(json!({"aliasName": name})),
                    ];
                } else {
                    steps.push(json!({"do": format!("fill \"{}\" from the source", self.new_name)}));
                    let alias = self.alias.clone().unwrap_or_else(|| format!("{}-alias", self.index));
                    let body = json!({"name": alias, "indexes": [self.new_name]});
                    steps.push(call("createOrUpdateAlias", json!({"aliasName": alias, "body": body})));
                }
                steps.extend(self.indexer_steps());
                steps
            }
        }
    }

    fn indexer_steps(&self) -> impl Iterator<Item = Value> {
        let step = |name: &String| {
            json!({"tool": "createOrUpdateIndexer", "arguments": {"indexerName": name,
                "body": format!("(unchanged, with targetIndexName \"{}\")", self.new_name)}})
        };
        self.indexers.iter().map(step)
    }
}

/// Returns fields of the new index whose values cannot be retrieved from the old one.
pub(crate) fn unreadable_fields(old: &[DefinitionField], new: &[DefinitionField]) -> Vec<String> {
    let unreadable = old.iter().filter(|field| !field.is_complex() && !field.flag("retrievable"));
    let wanted = unreadable.filter(|field| new.iter().any(|other| other.path == field.path));
    wanted.map(|field| field.path.clone()).collect()
}

/// Returns the next version name that is not in use: `hotels` → `hotels-v2`, `hotels-v2` → `hotels-v3`.
pub(crate) fn next_free(name: &str, taken: &[String]) -> String {
    let numbered =
        name.rsplit_once("-v").and_then(|(base, number)| Some((base, number.parse::<u32>().ok()?)));
    let (base, mut number) = numbered.unwrap_or((name, 1));
    loop {
        number = number.saturating_add(1);
        let next = format!("{base}-v{number}");
        if number == u32::MAX || !taken.contains(&next) {
            return next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::next_free;

    #[test]
    fn new_names_increment_and_skip_existing_names() {
        let taken = ["hotels-v2", "hotels-v3"].map(str::to_owned);
        assert_eq!(next_free("hotels", &taken), "hotels-v4");
        assert_eq!(next_free("hotels", &[]), "hotels-v2");
        assert_eq!(next_free("hotels-v2", &taken), "hotels-v4");
        assert_eq!(next_free("rev-vista", &[]), "rev-vista-v2");
    }
}
