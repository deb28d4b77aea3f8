//! Compares two definitions of an index and determines the effect of each difference.

use serde_json::{Map, Value, json};

use super::fields::{self, DefinitionField};

/// The effect of a change, in increasing order of cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ChangeEffect {
    None,
    Update,
    /// An update that takes the index offline for some seconds (`allowIndexDowntime`).
    Downtime,
    Rebuild,
    Impossible,
}

/// One difference.
#[derive(Clone, Debug)]
pub(crate) struct IndexChange {
    pub(crate) path: String,
    pub(crate) change: String,
    pub(crate) effect: ChangeEffect,
    pub(crate) why: &'static str,
}

impl IndexChange {
    fn new(
        path: impl Into<String>,
        change: impl Into<String>,
        effect: ChangeEffect,
        why: &'static str,
    ) -> IndexChange {
        IndexChange { path: path.into(), change: change.into(), effect, why }
    }

    pub(crate) fn to_json(&self) -> Value {
        let effect = match self.effect {
            ChangeEffect::None => "none",
            ChangeEffect::Update | ChangeEffect::Downtime => "update",
            ChangeEffect::Rebuild => "rebuild",
            ChangeEffect::Impossible => "impossible",
        };
        let mut told = json!({"path": self.path, "change": self.change, "effect": effect, "why": self.why});
        if self.effect == ChangeEffect::Downtime {
            told["downtime"] = true.into();
        }
        told
    }
}

/// Parts of custom analysis. Existing parts cannot change, because documents were analyzed with them.
const ANALYSIS: [&str; 5] = ["analyzers", "tokenizers", "tokenFilters", "charFilters", "normalizers"];
/// The default of the service for `maxAgeInSeconds` in `corsOptions`.
const DEFAULT_CORS_AGE: u64 = 300;
const BM25: &str = "#Microsoft.Azure.Search.BM25Similarity";

/// Returns all differences, in the order of the definitions.
pub(crate) fn compare(live: &Value, wanted: &Value) -> Vec<IndexChange> {
    let mut changes = Vec::new();
    let (old, new) = (fields::all(live), fields::all(wanted));
    compare_keys(&new, &mut changes);
    compare_fields(&old, &new, &mut changes);
    compare_analysis(live, wanted, &mut changes);
    compare_suggesters(live, wanted, &old, &mut changes);
    compare_similarity(live, wanted, &mut changes);
    compare_vectors(live, wanted, &old, &mut changes);
    compare_rest(live, wanted, &mut changes);
    changes
}

fn compare_keys(new: &[DefinitionField], changes: &mut Vec<IndexChange>) {
    let keys: Vec<&DefinitionField> = new.iter().filter(|field| field.flag("key")).collect();
    let why = "an index has exactly one key: a retrievable Edm.String at the root";
    match keys.as_slice() {
        [key] if key.kind() == "Edm.String" && !key.path.contains('/') && key.flag("retrievable") => {}
        [key] => changes.push(IndexChange::new(
            field_path(&key.path),
            "cannot be the key",
            ChangeEffect::Impossible,
            why,
        )),
        several => {
            changes.push(IndexChange::new(
                "fields",
                format!("{} keys", several.len()),
                ChangeEffect::Impossible,
                why,
            ));
        }
    }
}

fn field_path(path: &str) -> String {
    format!("fields/{path}")
}

fn compare_fields(old: &[DefinitionField], new: &[DefinitionField], changes: &mut Vec<IndexChange>) {
    for before in old {
        let path = || field_path(&before.path);
        match new.iter().find(|after| after.path == before.path) {
            Some(after) => compare_field(before, after, changes),
            // The change of the parent includes all subfields.
            None if parent_is_in(&before.path, old) && !parent_is_in(&before.path, new) => {}
            None => changes.push(IndexChange::new(
                path(),
                "removed",
                ChangeEffect::Rebuild,
                "existing fields cannot be deleted",
            )),
        }
    }
    for after in new {
        let is_new = !old.iter().any(|before| before.path == after.path);
        let parent_is_new = after.path.contains('/') && !parent_is_in(&after.path, old);
        if is_new && !parent_is_new {
            let why = "fields can be added; their value is null until documents are indexed again";
            changes.push(IndexChange::new(field_path(&after.path), "added", ChangeEffect::Update, why));
        }
    }
}

fn parent_is_in(path: &str, fields: &[DefinitionField]) -> bool {
    path.rsplit_once('/').is_some_and(|(parent, _)| fields.iter().any(|field| field.path == parent))
}

fn compare_field(before: &DefinitionField, after: &DefinitionField, changes: &mut Vec<IndexChange>) {
    let mut differ = |attribute: &str, old: Value, new: Value, effect: ChangeEffect, why: &'static str| {
        if old != new {
            let path = format!("{}/{attribute}", field_path(&before.path));
            changes.push(IndexChange::new(
                path,
                format!("{} → {}", short_value(&old), short_value(&new)),
                effect,
                why,
            ));
        }
    };
    let fixed = "how a field is stored and indexed is fixed when it is created";
    differ("type", before.kind().into(), after.kind().into(), ChangeEffect::Rebuild, fixed);
    if before.kind() != after.kind() || before.is_complex() {
        // With another type the other attributes are not comparable.
        return;
    }
    for attribute in ["key", "searchable", "filterable", "sortable", "facetable", "stored"] {
        let flags = (before.flag(attribute).into(), after.flag(attribute).into());
        differ(attribute, flags.0, flags.1, ChangeEffect::Rebuild, fixed);
    }
    if before.flag("searchable") == after.flag("searchable") {
        let analyzers = |of: &str| (before.analyzer(of).into(), after.analyzer(of).into());
        let (old, new) = analyzers("indexAnalyzer");
        differ("analyzer", old, new, ChangeEffect::Rebuild, "existing documents were analyzed with it");
        let (old, new) = analyzers("searchAnalyzer");
        let is_told = before.analyzer("indexAnalyzer") != after.analyzer("indexAnalyzer");
        if !is_told {
            differ("searchAnalyzer", old, new, ChangeEffect::Update, "it is used at query time");
        }
    }
    let members = |name: &str| (given(before, name), given(after, name));
    for name in ["normalizer", "dimensions", "vectorEncoding"] {
        let (old, new) = members(name);
        differ(name, old, new, ChangeEffect::Rebuild, fixed);
    }
    let (old, new) = members("vectorSearchProfile");
    differ(
        "vectorSearchProfile",
        old,
        new,
        ChangeEffect::Rebuild,
        "vectors are indexed by the profile's algorithm",
    );
    let flags = (before.flag("retrievable").into(), after.flag("retrievable").into());
    differ("retrievable", flags.0, flags.1, ChangeEffect::Update, "it only affects results");
    let (old, new) = members("synonymMaps");
    differ("synonymMaps", old, new, ChangeEffect::Update, "synonyms are applied at query time");
    for name in ["permissionFilter", "sensitivityLabel"] {
        let (old, new) = members(name);
        differ(name, old, new, ChangeEffect::Rebuild, fixed);
    }
}

fn given(field: &DefinitionField, member: &str) -> Value {
    normalized(field.json.get(member).unwrap_or(&Value::Null))
}

fn short_value(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string().chars().take(80).collect(),
    }
}

/// Removes members without meaning: nulls, empty arrays, and members that the service adds.
pub(crate) fn normalized(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept =
                members.iter().filter(|(name, _)| !matches!(name.as_str(), "@odata.context" | "@odata.etag"));
            let kept: Map<String, Value> = kept
                .map(|(name, value)| (name.clone(), normalized(value)))
                .filter(|(_, value)| !is_empty(value))
                .collect();
            Value::Object(kept)
        }
        Value::Array(list) if list.is_empty() => Value::Null,
        Value::Array(list) => list.iter().map(normalized).collect(),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// Returns the elements of an array with their names.
fn elements_by_name(value: Option<&Value>) -> Vec<(String, Value)> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.map(|element| {
        let name = element.get("name").and_then(Value::as_str).unwrap_or_default();
        (name.to_owned(), normalized(element))
    })
    .collect()
}

/// Returns the differences between two arrays of named elements: name and `added`, `removed` or `changed`.
fn list_differences(old: Option<&Value>, new: Option<&Value>) -> Vec<(String, &'static str)> {
    let (old, new) = (elements_by_name(old), elements_by_name(new));
    let mut differences = Vec::new();
    for (name, before) in &old {
        match new.iter().find(|(other, _)| other == name) {
            None => differences.push((name.clone(), "removed")),
            Some((_, after)) if after != before => differences.push((name.clone(), "changed")),
            Some(_) => {}
        }
    }
    let added = new.iter().filter(|(name, _)| !old.iter().any(|(other, _)| other == name));
    differences.extend(added.map(|(name, _)| (name.clone(), "added")));
    differences
}

fn compare_analysis(live: &Value, wanted: &Value, changes: &mut Vec<IndexChange>) {
    for part in ANALYSIS {
        for (name, change) in list_differences(live.get(part), wanted.get(part)) {
            let (effect, why) = match change {
                "added" => (
                    ChangeEffect::Downtime,
                    "new parts of analysis need allowIndexDowntime: some seconds offline",
                ),
                _ => (ChangeEffect::Rebuild, "existing parts of analysis cannot be changed or deleted"),
            };
            changes.push(IndexChange::new(format!("{part}/{name}"), change, effect, why));
        }
    }
}

fn compare_suggesters(live: &Value, wanted: &Value, old: &[DefinitionField], changes: &mut Vec<IndexChange>) {
    let sources = |definition: &Value| -> Vec<String> {
        let suggesters = definition.get("suggesters").and_then(Value::as_array).into_iter().flatten();
        let lists = suggesters.filter_map(|suggester| suggester.get("sourceFields")?.as_array());
        lists.flatten().filter_map(|path| path.as_str().map(str::to_owned)).collect()
    };
    let (before, after) = (sources(live), sources(wanted));
    let joins_late = |path: &&String| !before.contains(path) && old.iter().any(|field| field.path == **path);
    if let Some(path) = after.iter().find(joins_late) {
        let why = "only fields that are new in the same update can join a suggester";
        changes.push(IndexChange::new(
            "suggesters",
            format!("existing field {path} added"),
            ChangeEffect::Rebuild,
            why,
        ));
        return;
    }
    for (name, change) in list_differences(live.get("suggesters"), wanted.get("suggesters")) {
        let why = "its fields are new or were in it before";
        changes.push(IndexChange::new(format!("suggesters/{name}"), change, ChangeEffect::Update, why));
    }
}

fn compare_similarity(live: &Value, wanted: &Value, changes: &mut Vec<IndexChange>) {
    let read = |definition: &Value| match definition.get("similarity").filter(|value| !value.is_null()) {
        Some(similarity) => normalized(similarity),
        None => json!({"@odata.type": BM25}),
    };
    let (old, new) = (read(live), read(wanted));
    if old == new {
        return;
    }
    let (effect, why) = match old.get("@odata.type") == new.get("@odata.type") {
        true => (ChangeEffect::Downtime, "k1 and b can change with allowIndexDowntime: some seconds offline"),
        false => (ChangeEffect::Rebuild, "the kind of ranking is fixed when an index is created"),
    };
    changes.push(IndexChange::new(
        "similarity",
        format!("{} → {}", short_value(&old), short_value(&new)),
        effect,
        why,
    ));
}

fn compare_vectors(live: &Value, wanted: &Value, old: &[DefinitionField], changes: &mut Vec<IndexChange>) {
    let part = |definition: &Value, name: &str| {
        definition.get("vectorSearch").and_then(|all| all.get(name)).cloned()
    };
    let vectors: Vec<&DefinitionField> = old.iter().filter(|field| field.is_vector()).collect();
    for name in ["algorithms", "compressions", "profiles", "vectorizers"] {
        let (before, after) = (part(live, name), part(wanted, name));
        for (element, change) in list_differences(before.as_ref(), after.as_ref()) {
            let is_fixed = change != "added"
                && name != "vectorizers"
                && !vectors.is_empty()
                && affects_indexing(&element, before.as_ref(), after.as_ref());
            let (effect, why) = match is_fixed {
                true => (
                    ChangeEffect::Rebuild,
                    "existing vectors were indexed with it; add a new one under another name instead",
                ),
                false => (ChangeEffect::Update, "it is used by new fields, or at query time"),
            };
            changes.push(IndexChange::new(format!("vectorSearch/{name}/{element}"), change, effect, why));
        }
    }
}

/// Returns whether the change of an element affects indexing. `efSearch` and the
/// vectorizer affect only queries.
fn affects_indexing(element: &str, before: Option<&Value>, after: Option<&Value>) -> bool {
    let stripped = |list: Option<&Value>| {
        let found = elements_by_name(list).into_iter().find(|(name, _)| name == element);
        found.map(|(_, mut json)| {
            for parameters in ["hnswParameters", "parameters"] {
                if let Some(Value::Object(members)) = json.get_mut(parameters) {
                    members.remove("efSearch");
                }
            }
            if let Value::Object(members) = &mut json {
                members.remove("vectorizer");
                members.remove("rescoringOptions");
            }
            normalized(&json)
        })
    };
    stripped(before) != stripped(after)
}

fn compare_rest(live: &Value, wanted: &Value, changes: &mut Vec<IndexChange>) {
    const TOLD: [&str; 5] = ["name", "fields", "suggesters", "similarity", "vectorSearch"];
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (old, new) = (members(live), members(wanted));
    let mut names: Vec<&String> =
        old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))).collect();
    names.retain(|name| {
        !name.starts_with("@odata.") && !TOLD.contains(&name.as_str()) && !ANALYSIS.contains(&name.as_str())
    });
    for name in names {
        let read = |members: &Map<String, Value>| {
            let mut value = normalized(members.get(name).unwrap_or(&Value::Null));
            if name == "corsOptions" && !value.is_null() && value.get("maxAgeInSeconds").is_none() {
                value["maxAgeInSeconds"] = DEFAULT_CORS_AGE.into();
            }
            value
        };
        let (before, after) = (read(&old), read(&new));
        if before == after || (is_empty(&before) && is_empty(&after)) {
            continue;
        }
        let change = match (is_empty(&before), is_empty(&after)) {
            (true, _) => "added",
            (_, true) => "removed: an update replaces the complete definition",
            _ => "changed",
        };
        let (effect, why) = match name.as_str() {
            "encryptionKey" if change != "changed" => {
                (ChangeEffect::Rebuild, "encryption is fixed when an index is created")
            }
            "scoringProfiles" => {
                for (profile, change) in list_differences(old.get(name), new.get(name)) {
                    let path = format!("scoringProfiles/{profile}");
                    changes.push(IndexChange::new(
                        path,
                        change,
                        ChangeEffect::Update,
                        "it is used at query time",
                    ));
                }
                continue;
            }
            _ => (ChangeEffect::Update, "it changes without affecting documents"),
        };
        changes.push(IndexChange::new(name.clone(), change, effect, why));
    }
}
