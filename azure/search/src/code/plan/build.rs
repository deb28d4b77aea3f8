//! Builds a plan: compares each definition, decides what it needs, and collects the writes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::difference::differences;
use super::steps::{masked, steps};
use super::{ChangeAction, PlanDifference, PlanOptions, PlanSummary, ResourceChange, SearchPlan};
use crate::code::canonical::{referenced_indexes, rename_indexes, to_folder, to_service};
use crate::code::failure::CodeError;
use crate::code::folder::SearchFolder;
use crate::code::kinds::CodeKind;
use crate::code::live::{LiveDefinition, LiveState};
use crate::code::{SecretLookup, files, secrets};
use crate::service::client::SearchClient;
use crate::tools::index_change::copy::CopyPaging;
use crate::tools::index_change::fields;
use crate::tools::index_change::live::count;
use crate::tools::index_change::plan::{next_free, unreadable_fields};

/// A definition that a push writes.
#[derive(Clone, Debug)]
pub(super) struct PlannedWrite {
    pub(super) kind: CodeKind,
    /// The name in the service.
    pub(super) name: String,
    pub(super) body: Value,
    pub(super) downtime: bool,
}

/// An index that is replaced by a new one with its documents.
#[derive(Clone, Debug)]
pub(super) struct PlannedRebuild {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) body: Value,
    pub(super) paging: CopyPaging,
    pub(super) documents: u64,
    /// Whether the old index is deleted, because an alias takes its name.
    pub(super) gives_name: bool,
}

/// A plan that is being built.
pub(super) struct PlanBuilder<'a> {
    client: &'a SearchClient,
    folder: &'a SearchFolder,
    pub(super) live: &'a LiveState,
    pub(super) options: PlanOptions,
    secrets: &'a SecretLookup,
    changes: Vec<ResourceChange>,
    notes: Vec<String>,
    /// The index of each logical name, after the push.
    physical: BTreeMap<String, String>,
    pub(super) rebuilds: Vec<PlannedRebuild>,
    pub(super) writes: Vec<PlannedWrite>,
    /// The index of each alias, after the push.
    pub(super) aliases: BTreeMap<String, String>,
    pub(super) deletions: Vec<(CodeKind, String)>,
    /// Names of new indexes of rebuilds.
    reserved: BTreeSet<String>,
}

impl<'a> PlanBuilder<'a> {
    pub(super) fn new(
        client: &'a SearchClient,
        folder: &'a SearchFolder,
        live: &'a LiveState,
        options: PlanOptions,
        secrets: &'a SecretLookup,
    ) -> PlanBuilder<'a> {
        PlanBuilder {
            client,
            folder,
            live,
            options,
            secrets,
            changes: Vec::new(),
            notes: Vec::new(),
            physical: BTreeMap::new(),
            rebuilds: Vec::new(),
            writes: Vec::new(),
            aliases: BTreeMap::new(),
            deletions: Vec::new(),
            reserved: BTreeSet::new(),
        }
    }

    pub(super) async fn build(mut self) -> Result<SearchPlan, CodeError> {
        let (folder, live) = (self.folder, self.live);
        for (index, _) in live.all(CodeKind::Index).filter(|(index, _)| live.names.is_current(index)) {
            self.physical.insert(live.names.logical(index).to_owned(), index.to_owned());
        }
        for (name, wanted) in folder.all(CodeKind::Index) {
            self.index(name, wanted).await?;
        }
        for kind in CodeKind::ALL {
            match kind {
                CodeKind::Index => {}
                CodeKind::Alias => self.folder_aliases(),
                kind => self.definitions(kind),
            }
        }
        self.followers();
        self.missing();
        self.changes.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
        let push_steps = steps(&self);
        let told = push_steps.iter().map(ToString::to_string).collect();
        let fingerprint = files::fingerprint(&(
            &push_steps,
            self.options,
            self.changes.iter().map(|change| &change.blocked).collect::<Vec<_>>(),
        ));
        Ok(SearchPlan {
            fingerprint,
            summary: summary(&self.changes),
            changes: self.changes,
            steps: told,
            notes: self.notes,
            push_steps,
        })
    }

    /// Plans an index of the folder.
    async fn index(&mut self, name: &str, wanted: &Value) -> Result<(), CodeError> {
        let live = self.live;
        let Some(physical) = live.names.physical(name) else {
            let change = self.new_index(name, wanted);
            self.changes.push(change);
            return Ok(());
        };
        let mut change = ResourceChange::new(CodeKind::Index, name, ChangeAction::Nothing);
        change.live_name = (physical != name).then(|| physical.to_owned());
        let Some(index) = live.get(CodeKind::Index, physical) else { return Ok(()) };
        change.differences = differences(
            CodeKind::Index,
            &to_folder(CodeKind::Index, &index.json, &live.names, Some(wanted)),
            wanted,
        );
        let has = |effect: &str, change: &ResourceChange| {
            change.differences.iter().any(|difference| difference.effect == effect)
        };
        let has_alias = !live.names.aliases_of(physical).is_empty();
        let body = to_service(CodeKind::Index, wanted, physical, &|name| name.to_owned());
        let write = |downtime| PlannedWrite {
            kind: CodeKind::Index,
            name: physical.to_owned(),
            body: body.clone(),
            downtime,
        };
        if has("impossible", &change) {
            change.action = ChangeAction::Impossible;
            change.blocked = Some("no index can have this definition; see the differences".to_owned());
        } else if has("rebuild", &change)
            || has("downtime", &change) && has_alias && !self.options.allow_downtime
        {
            self.rebuild(&mut change, physical, index, wanted).await?;
        } else if has("downtime", &change) {
            change.action = ChangeAction::UpdateWithDowntime;
            if self.options.allow_downtime {
                self.writes.push(write(true));
            } else {
                change.blocked = Some(
                    "the index would be offline for some seconds, and it has no alias behind which it can be rebuilt\n  fix: \
                     push with --allow-downtime, or give it an alias that its callers use"
                        .to_owned(),
                );
            }
        } else if !change.differences.is_empty() || self.updates_secrets(wanted) {
            change.action = ChangeAction::Update;
            self.writes.push(write(false));
        }
        if matches!(change.action, ChangeAction::Update | ChangeAction::UpdateWithDowntime) {
            self.check_secrets(&mut change, &body, Some(&index.json));
        }
        self.changes.push(change);
        Ok(())
    }

    /// Plans an index that the service does not have: as a version behind an alias of its name.
    fn new_index(&mut self, name: &str, wanted: &Value) -> ResourceChange {
        let mut change = ResourceChange::new(CodeKind::Index, name, ChangeAction::Create);
        if let Some(target) = self.live.names.target(name) {
            change.blocked = Some(format!(
                "the service has an alias of this name, which points to {target}\n  fix: rename one of them"
            ));
            return change;
        }
        if self.live.names.taken().contains(name) {
            change.blocked = Some(format!(
                "the service has an index of this name as another version of {}\n  fix: rename the file and the index",
                self.live.names.logical(name)
            ));
            return change;
        }
        let has_alias = self.folder.aliases_of(name).next().is_some();
        let is_behind_alias = self.folder.settings.behind_aliases
            && !has_alias
            && !self.live.unsupported.contains(&CodeKind::Alias);
        let physical = if is_behind_alias { self.live.names.first_free(name) } else { name.to_owned() };
        if is_behind_alias {
            change.new_name = Some(physical.clone());
            change.notes.push(format!(
                "it is created as {physical} behind the alias {name}, so that it can be rebuilt"
            ));
            self.aliases.insert(name.to_owned(), physical.clone());
        }
        let body = to_service(CodeKind::Index, wanted, &physical, &|name| name.to_owned());
        self.check_secrets(&mut change, &body, None);
        self.physical.insert(name.to_owned(), physical.clone());
        self.writes.push(PlannedWrite { kind: CodeKind::Index, name: physical, body, downtime: false });
        change
    }

    /// Plans a new index that replaces an index: behind its aliases, or behind an alias of its name.
    async fn rebuild(
        &mut self,
        change: &mut ResourceChange,
        physical: &str,
        index: &LiveDefinition,
        wanted: &Value,
    ) -> Result<(), CodeError> {
        let fail = || CodeError::service(format!("cannot count the documents of {physical}"));
        let documents = count(self.client, physical).await.map_err(fail())?;
        let (old, new_fields) = (fields::all(&index.json), fields::all(wanted));
        let lost = unreadable_fields(&old, &new_fields);
        let aliases: Vec<String> =
            self.live.names.aliases_of(physical).into_iter().map(str::to_owned).collect();
        let taken: Vec<String> = self.live.names.taken().iter().chain(&self.reserved).cloned().collect();
        let new = next_free(physical, &taken);
        change.action = match aliases.is_empty() {
            true => ChangeAction::RebuildWithDowntime,
            false => ChangeAction::Rebuild,
        };
        change.documents = Some(documents);
        change.new_name = Some(new.clone());
        let paging = match CopyPaging::choose(&old, &new_fields, documents) {
            Err(why) => {
                change.blocked = Some(format!("the documents cannot be copied: {why}"));
                return Ok(());
            }
            Ok(_) if !lost.is_empty() => {
                change.blocked = Some(format!(
                    "a copy would lose the content of {}, which are not retrievable\n  fix: make them retrievable first (a \
                     change in place), or add a new index, fill it from the source and switch the alias",
                    lost.join(", ")
                ));
                return Ok(());
            }
            Ok(paging) => paging,
        };
        change.notes.extend(paging.warning());
        if aliases.is_empty() && !self.options.allow_downtime {
            change.blocked = Some(format!(
                "a rebuild needs an alias, and callers use the index {physical} by its own name\n  fix: add aliases/NAME.json \
                 with \"indexes\": [\"{physical}\"], push, and let callers use it; or push with --allow-downtime: the new \
                 index then takes the name as an alias, and requests fail for a moment"
            ));
            return Ok(());
        }
        if documents > 0 {
            let note = "documents that other programs write during the copy may be lost: stop them first";
            change.notes.push(note.to_owned());
        }
        let body = to_service(CodeKind::Index, wanted, &new, &|name| name.to_owned());
        self.check_secrets(change, &body, None);
        let gives_name = aliases.is_empty();
        for alias in aliases.into_iter().chain(gives_name.then(|| physical.to_owned())) {
            change.notes.push(match gives_name {
                true => format!("the index {alias} is deleted, and its name becomes an alias of {new}"),
                false => format!("the alias {alias} is switched to {new}"),
            });
            self.aliases.insert(alias, new.clone());
        }
        self.reserved.insert(new.clone());
        self.physical.insert(change.name.clone(), new.clone());
        self.rebuilds.push(PlannedRebuild {
            from: physical.to_owned(),
            to: new,
            body,
            paging,
            documents,
            gives_name,
        });
        Ok(())
    }

    /// Plans the aliases that have files.
    fn folder_aliases(&mut self) {
        for (name, definition) in self.folder.all(CodeKind::Alias) {
            let mut change = ResourceChange::new(CodeKind::Alias, name, ChangeAction::Nothing);
            let index =
                referenced_indexes(CodeKind::Alias, definition).into_iter().next().unwrap_or_default();
            let target = self.physical.get(&index).cloned().unwrap_or(index);
            if self.live.unsupported.contains(&CodeKind::Alias) {
                change.blocked = Some(unsupported(self.client));
            } else if self.live.get(CodeKind::Index, name).is_some() {
                change.blocked =
                    Some("the service has an index of this name\n  fix: rename the alias".to_owned());
            } else {
                match self.live.names.target(name) {
                    None => change.action = ChangeAction::Create,
                    Some(old) if old != target => {
                        change.action = ChangeAction::Update;
                        change.differences.push(PlanDifference::in_place(
                            "indexes",
                            format!("{old} → {target}"),
                            "searches use the new index at once",
                        ));
                    }
                    Some(_) => {}
                }
                self.aliases.insert(name.to_owned(), target);
            }
            self.changes.push(change);
        }
    }

    /// Plans the definitions of a kind that refer to indexes at most.
    fn definitions(&mut self, kind: CodeKind) {
        for (name, wanted) in self.folder.all(kind) {
            let mut change = ResourceChange::new(kind, name, ChangeAction::Nothing);
            let body = to_service(kind, wanted, name, &|index| {
                self.physical.get(index).cloned().unwrap_or_else(|| index.to_owned())
            });
            if self.live.unsupported.contains(&kind) {
                change.blocked = Some(unsupported(self.client));
                self.changes.push(change);
                continue;
            }
            let live = self.live.get(kind, name);
            match live {
                None => change.action = ChangeAction::Create,
                Some(live) => {
                    let known = to_folder(kind, &live.json, &self.live.names, Some(wanted));
                    change.differences = differences(kind, &known, wanted);
                    change.differences.extend(self.moved_references(kind, &live.json));
                    if !change.differences.is_empty() || self.updates_secrets(wanted) {
                        change.action = ChangeAction::Update;
                    }
                }
            }
            if change.action != ChangeAction::Nothing {
                self.check_secrets(&mut change, &body, live.map(|live| &live.json));
                self.writes.push(PlannedWrite { kind, name: name.to_owned(), body, downtime: false });
            }
            self.changes.push(change);
        }
    }

    /// Returns the references of a definition to indexes that are rebuilt.
    fn moved_references(&self, kind: CodeKind, live: &Value) -> Vec<PlanDifference> {
        let names = referenced_indexes(kind, live);
        let moved = self.rebuilds.iter().filter(|rebuild| names.contains(&rebuild.from));
        moved
            .map(|rebuild| {
                let change = format!("{} → {}", rebuild.from, rebuild.to);
                PlanDifference::in_place("index", change, "it follows the rebuild")
            })
            .collect()
    }

    /// Lets definitions that are not in the folder follow the rebuild of their index.
    fn followers(&mut self) {
        let kinds =
            [CodeKind::Skillset, CodeKind::Indexer, CodeKind::KnowledgeSource, CodeKind::KnowledgeBase];
        for kind in kinds {
            let folder = self.folder;
            for (name, live) in self.live.all(kind).filter(|(name, _)| folder.get(kind, name).is_none()) {
                let moved = self.moved_references(kind, &live.json);
                if moved.is_empty() || self.options.prune {
                    continue;
                }
                let mut body = masked(&live.json);
                rename_indexes(kind, &mut body, &|index| self.moved_name(index));
                let mut change = ResourceChange::new(kind, name, ChangeAction::Update);
                change.differences = moved;
                change.notes.push("it is not in the folder".to_owned());
                self.writes.push(PlannedWrite { kind, name: name.to_owned(), body, downtime: false });
                self.changes.push(change);
            }
        }
    }

    fn moved_name(&self, index: &str) -> String {
        let rebuild = self.rebuilds.iter().find(|rebuild| rebuild.from == index);
        rebuild.map_or_else(|| index.to_owned(), |rebuild| rebuild.to.clone())
    }

    /// Plans what the folder does not have: definitions, and other versions of indexes.
    fn missing(&mut self) {
        let names = &self.live.names;
        for kind in CodeKind::ALL {
            for (name, _) in self.live.all(kind) {
                let logical = if kind == CodeKind::Index { names.logical(name) } else { name };
                let is_version = kind == CodeKind::Index && !names.is_current(name);
                let is_implicit = kind == CodeKind::Alias && names.is_implicit(name);
                let is_planned =
                    self.changes.iter().any(|change| change.kind == kind && change.name == logical);
                if self.folder.get(kind, logical).is_some() || is_version || is_implicit || is_planned {
                    continue;
                }
                let mut change = ResourceChange::new(kind, logical, ChangeAction::Keep);
                change.live_name = (name != logical).then(|| name.to_owned());
                if self.options.prune {
                    change.action = ChangeAction::Delete;
                    self.deletions.push((kind, name.to_owned()));
                    if kind == CodeKind::Index && names.is_implicit(logical) {
                        self.deletions.push((CodeKind::Alias, logical.to_owned()));
                    }
                }
                self.changes.push(change);
            }
        }
        for (index, logical) in names.other_versions() {
            if self.options.delete_old {
                self.deletions.push((CodeKind::Index, index.to_owned()));
            } else {
                self.notes.push(format!(
                    "the index {index} is another version of {logical}; push --delete-old deletes it"
                ));
            }
        }
    }

    /// Whether a definition is written because it may have new secrets.
    fn updates_secrets(&self, wanted: &Value) -> bool {
        self.options.update_secrets && wanted.to_string().contains("${")
    }

    /// Blocks a change whose secrets are not known.
    fn check_secrets(&self, change: &mut ResourceChange, body: &Value, live: Option<&Value>) {
        let missing = secrets::resolve(&mut body.clone(), live, self.secrets);
        if !missing.is_empty() {
            let names: BTreeSet<String> = missing.into_iter().collect();
            let names: Vec<String> = names.into_iter().collect();
            change.blocked = Some(format!(
                "its secrets are not set, and the service has none to keep\n  fix: export {}=…",
                names.join("=… ")
            ));
        }
    }
}

fn unsupported(client: &SearchClient) -> String {
    format!(
        "the service has no such definitions in API version {}\n  fix: choose another one with --api-version",
        client.api_version()
    )
}

fn summary(changes: &[ResourceChange]) -> PlanSummary {
    let mut summary = PlanSummary::default();
    for change in changes {
        match change.action {
            _ if change.blocked.is_some() => summary.blocked += 1,
            ChangeAction::Create => summary.create += 1,
            ChangeAction::Update | ChangeAction::UpdateWithDowntime => summary.update += 1,
            ChangeAction::Rebuild | ChangeAction::RebuildWithDowntime => summary.rebuild += 1,
            ChangeAction::Delete => summary.delete += 1,
            ChangeAction::Nothing | ChangeAction::Keep | ChangeAction::Impossible => summary.unchanged += 1,
        }
    }
    summary
}

impl ResourceChange {
    fn new(kind: CodeKind, name: &str, action: ChangeAction) -> ResourceChange {
        ResourceChange {
            kind,
            name: name.to_owned(),
            action,
            live_name: None,
            new_name: None,
            differences: Vec::new(),
            documents: None,
            notes: Vec::new(),
            blocked: None,
        }
    }
}

impl PlanDifference {
    fn in_place(path: &str, change: String, why: &str) -> PlanDifference {
        PlanDifference { path: path.to_owned(), change, effect: "inPlace", why: why.to_owned() }
    }
}
