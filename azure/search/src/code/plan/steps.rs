//! The steps of a push, in an order in which every definition exists before it is used, and no search fails.
//!
//! New indexes are filled before aliases point to them. Indexers of an index that is copied are paused until then.
//! Deletions come last, in the opposite order.

use serde_json::{Value, json};

use super::build::PlanBuilder;
use crate::code::canonical::referenced_indexes;
use crate::code::kinds::CodeKind;
use crate::code::live::LiveState;
use crate::code::push::PushStep;
use crate::code::secrets;

/// Returns the steps of all changes that are possible.
pub(super) fn steps(plan: &PlanBuilder<'_>) -> Vec<PushStep> {
    let live = plan.live;
    let mut steps = Vec::new();
    let of = |kinds: &'static [CodeKind]| {
        kinds.iter().flat_map(|kind| plan.writes.iter().filter(move |write| write.kind == *kind))
    };
    let is_new = |name: &str| live.get(CodeKind::Index, name).is_none();
    for write in of(&[CodeKind::SynonymMap, CodeKind::DataSource]) {
        steps.push(put(live, write.kind, &write.name, write.body.clone(), false));
    }
    let paused = paused_indexers(plan);
    for (name, body) in &paused {
        if let Some(indexer) = live.get(CodeKind::Indexer, name)
            && indexer.json.get("disabled") != Some(&Value::Bool(true))
        {
            steps.push(put(live, CodeKind::Indexer, name, body.clone(), false));
        }
        steps.push(PushStep::WaitForIndexer { name: name.clone() });
    }
    for rebuild in &plan.rebuilds {
        steps.push(put(live, CodeKind::Index, &rebuild.to, rebuild.body.clone(), false));
        let (from, to) = (rebuild.from.clone(), rebuild.to.clone());
        steps.push(PushStep::Copy {
            from: from.clone(),
            to: to.clone(),
            paging: rebuild.paging.clone(),
            documents: rebuild.documents,
        });
        let etag = live.get(CodeKind::Index, &from).and_then(|index| index.etag.clone());
        steps.push(PushStep::Verify { from, to, etag });
    }
    for write in of(&[CodeKind::Index]).filter(|write| is_new(&write.name)) {
        steps.push(put(live, write.kind, &write.name, write.body.clone(), false));
    }
    for rebuild in plan.rebuilds.iter().filter(|rebuild| rebuild.gives_name) {
        steps.extend(delete(live, CodeKind::Index, &rebuild.from));
    }
    for (alias, index) in &plan.aliases {
        if live.names.target(alias) != Some(index) {
            let body = json!({"name": alias, "indexes": [index]});
            steps.push(put(live, CodeKind::Alias, alias, body, false));
        }
    }
    for write in of(&[CodeKind::Index]).filter(|write| !is_new(&write.name)) {
        steps.push(put(live, write.kind, &write.name, write.body.clone(), write.downtime));
    }
    let last: &[CodeKind] =
        &[CodeKind::Skillset, CodeKind::Indexer, CodeKind::KnowledgeSource, CodeKind::KnowledgeBase];
    for write in of(last) {
        steps.push(put(live, write.kind, &write.name, write.body.clone(), false));
    }
    // Paused indexers that do not change otherwise continue.
    for (name, _) in &paused {
        let is_written = of(&[CodeKind::Indexer]).any(|write| write.name == *name);
        if let Some(indexer) = live.get(CodeKind::Indexer, name).filter(|_| !is_written) {
            steps.push(put(live, CodeKind::Indexer, name, masked(&indexer.json), false));
        }
    }
    let mut deletions = plan.deletions.clone();
    if plan.options.delete_old {
        let replaced = plan.rebuilds.iter().filter(|rebuild| !rebuild.gives_name);
        deletions.extend(replaced.map(|rebuild| (CodeKind::Index, rebuild.from.clone())));
    }
    deletions.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    steps.extend(deletions.iter().filter_map(|(kind, name)| delete(live, *kind, name)));
    steps
}

/// Returns the indexers that write to an index that is copied, each with its definition while it is paused.
fn paused_indexers(plan: &PlanBuilder<'_>) -> Vec<(String, Value)> {
    let indexers = plan.live.all(CodeKind::Indexer).filter(|(_, indexer)| {
        let targets = referenced_indexes(CodeKind::Indexer, &indexer.json);
        let is_copied = |target: &String| {
            let index = plan.live.names.target(target).unwrap_or(target);
            plan.rebuilds.iter().any(|rebuild| rebuild.from == index)
        };
        targets.iter().any(is_copied)
    });
    let paused = indexers.map(|(name, indexer)| {
        let mut body = masked(&indexer.json);
        if let Value::Object(members) = &mut body {
            members.insert("disabled".to_owned(), true.into());
        }
        (name.to_owned(), body)
    });
    paused.collect()
}

/// Returns the step that writes a definition, unless it is changed meanwhile.
fn put(live: &LiveState, kind: CodeKind, name: &str, body: Value, downtime: bool) -> PushStep {
    let known = live.get(kind, name);
    PushStep::Put {
        kind,
        name: name.to_owned(),
        body,
        before: known.map(|known| masked(&known.json)),
        etag: known.and_then(|known| known.etag.clone()),
        downtime,
    }
}

fn delete(live: &LiveState, kind: CodeKind, name: &str) -> Option<PushStep> {
    let known = live.get(kind, name)?;
    Some(PushStep::Delete {
        kind,
        name: name.to_owned(),
        before: masked(&known.json),
        etag: known.etag.clone(),
    })
}

/// Returns a definition of the service for the journal: without secrets and ETag.
pub(super) fn masked(definition: &Value) -> Value {
    let mut masked = definition.clone();
    secrets::mask(&mut masked, None);
    if let Value::Object(members) = &mut masked {
        members.retain(|name, _| !matches!(name.as_str(), "@odata.etag" | "@odata.context"));
    }
    masked
}
